/*
 * tls-fixture.c - see tls-fixture.h.
 */
#include "tls-fixture.h"

#include <openssl/err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "io/http2.h"

const char *const tls_names[TLS_NAME_COUNT] = { "localhost", "127.0.0.1", "::1",
						"box.test", "*.box.test" };

char *tls_path(const struct tls_fixture *f, const char *name)
{
	return abx__strf("%s/%s", f->dir, name);
}

static void tls_make_context(struct tls_fixture *f, bool h2)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP(abx__freep) char *cert = NULL;
	ABX_CLEANUP(abx__freep) char *key = NULL;

	snprintf(f->dir, sizeof(f->dir), "/tmp/abx-test-tls-XXXXXX");
	cr_assert_not_null(mkdtemp(f->dir));
	cert = tls_path(f, "server.crt");
	key = tls_path(f, "server.key");
	cr_assert_eq(abx__tls_local_make(f->dir, tls_names, TLS_NAME_COUNT, NULL, &err),
		     ABX_OK, "%s", abx_error_message(err));
	cr_assert_eq(abx__tls_context_new(cert, key, h2, &f->context, &err), ABX_OK, "%s",
		     abx_error_message(err));
}

void tls_start_with(struct tls_fixture *f, abx__http_server_options opts, bool h2)
{
	signal(SIGPIPE, SIG_IGN);
	memset(f, 0, sizeof(*f));
	f->got.cap = (size_t)1 << 30;
	f->w.fd = -1;
	tls_make_context(f, h2);
	uv_loop_init(&f->loop);
	opts.loop = &f->loop;
	opts.userdata = f;
	opts.tls = f->context;
	opts.http2 = h2 ? &abx__http2 : NULL;
	cr_assert_eq(abx__http_server_new(&opts, &f->server, NULL), ABX_OK);
	cr_assert_eq(
		abx__http_server_listen_tcp(f->server, "127.0.0.1", 0, &f->port, NULL),
		ABX_OK);
}

void tls_start(struct tls_fixture *f, abx__http_handler handler)
{
	tls_start_with(f, (abx__http_server_options){ .on_request = handler }, true);
}

void tls_hang_up(struct tls_fixture *f)
{
	SSL_free(f->ssl);
	SSL_CTX_free(f->ctx);
	f->ssl = NULL;
	f->ctx = NULL;
	wire_done(&f->w);
	abx__buf_done(&f->got);
	f->got.cap = (size_t)1 << 30;
	f->ended = f->failed = false;
}

static void remove_dir(const char *dir)
{
	static const char *const files[] = { "ca.crt", "ca.key", "server.crt",
					     "server.key" };

	for (size_t i = 0; i < 4; i++) {
		ABX_CLEANUP(abx__freep) char *path = abx__strf("%s/%s", dir, files[i]);

		unlink(path);
	}
	cr_assert_eq(rmdir(dir), 0, "something else was left in %s", dir);
}

static void on_server_closed(void *userdata)
{
	((struct tls_fixture *)userdata)->server_closed = true;
}

void tls_stop(struct tls_fixture *f)
{
	int64_t end = abx__mono_ms() + 3000;

	tls_hang_up(f);
	abx__http_server_close(f->server, on_server_closed, f);
	while (!f->server_closed && abx__mono_ms() < end)
		uv_run(&f->loop, UV_RUN_NOWAIT);
	cr_assert(f->server_closed);
	abx__tls_context_free(f->context);
	abx__buf_done(&f->seen);
	abx__free(f->big);
	remove_dir(f->dir);
	cr_assert_eq(uv_loop_close(&f->loop), 0, "handles were left open");
}

void tls_call(struct tls_fixture *f)
{
	ABX_CLEANUP(abx__freep) char *ca = tls_path(f, "ca.crt");

	wire_open(&f->w, &f->loop, f->port);
	f->w.deaf = true; /* OpenSSL reads */
	f->ctx = SSL_CTX_new(TLS_client_method());
	cr_assert_eq(SSL_CTX_load_verify_locations(f->ctx, ca, NULL), 1);
	SSL_CTX_set_verify(f->ctx, SSL_VERIFY_PEER, NULL);
	f->ssl = SSL_new(f->ctx);
	SSL_set_fd(f->ssl, f->w.fd);
	SSL_set1_host(f->ssl, "8080-abc.box.test");
}

static void note(struct tls_fixture *f, int n)
{
	int error = SSL_get_error(f->ssl, n);

	f->ended = f->ended || error == SSL_ERROR_ZERO_RETURN;
	f->failed = f->failed || error == SSL_ERROR_SSL || error == SSL_ERROR_SYSCALL;
}

void tls_turn(struct tls_fixture *f)
{
	char buf[65536];
	int n;

	wire_turn(&f->w);
	ERR_clear_error();
	if (!SSL_is_init_finished(f->ssl)) {
		note(f, SSL_connect(f->ssl));
		return;
	}
	n = SSL_read(f->ssl, buf, sizeof(buf));
	if (n > 0)
		abx__buf_add(&f->got, buf, (size_t)n);
	else
		note(f, n);
}

bool tls_got(const struct tls_fixture *f, const char *text)
{
	return strstr(abx__buf_str(&f->got), text) != NULL;
}

void tls_shake(struct tls_fixture *f)
{
	UNTIL(f, SSL_is_init_finished(f->ssl));
}

void tls_say(struct tls_fixture *f, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0 && !f->failed) {
		int n = SSL_write(f->ssl, at, (int)(len < 16384 ? len : 16384));

		if (n > 0) {
			at += n;
			len -= (size_t)n;
		} else {
			tls_turn(f);
		}
	}
}

void tls_says(struct tls_fixture *f, const char *text)
{
	tls_say(f, text, strlen(text));
}

void tls_on_closed(abx__http_req *req, bool answered, void *userdata)
{
	struct tls_fixture *f = userdata;

	(void)req;
	f->closed++;
	f->answered += answered;
	f->req = NULL;
}

void tls_greet(abx__http_req *req, void *userdata)
{
	struct tls_fixture *f = userdata;
	const char *text = abx__http_req_is_tls(req) ? "over TLS" : "plain";

	f->calls++;
	abx__http_req_on_closed(req, tls_on_closed, f);
	abx__http_res_send(req, 200, "text/plain", text, strlen(text));
}
