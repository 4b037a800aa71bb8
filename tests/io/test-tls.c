/*
 * TLS below the HTTP server, over real sockets with OpenSSL as the client: handshakes
 * good, bad and slow, ALPN, streams and their ends; and the local CA.
 */
#include <criterion/criterion.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "io/http2.h"
#include "io/tls-local.h"
#include "io/tls.h"
#include "wire.h"

static const char *const names[] = { "localhost", "127.0.0.1", "::1", "box.test",
				     "*.box.test" };
#define NAME_COUNT (sizeof(names) / sizeof(names[0]))

struct fixture {
	uv_loop_t loop;
	char dir[64];
	abx__tls_context *context;
	abx__http_server *server;
	uint16_t port;
	bool server_closed;
	/* the client */
	struct wire w;
	SSL_CTX *ctx;
	SSL *ssl;
	abx__buf got;
	bool ended, failed;
	/* what handlers left */
	int calls, closed, answered, read_ends, read_r;
	abx__http_req *req;
	abx__buf seen;
	char *big;
};

static char *path_of(const struct fixture *f, const char *name)
{
	return abx__strf("%s/%s", f->dir, name);
}

static void make_context(struct fixture *f, bool h2)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP(abx__freep) char *cert = NULL;
	ABX_CLEANUP(abx__freep) char *key = NULL;

	snprintf(f->dir, sizeof(f->dir), "/tmp/abx-test-tls-XXXXXX");
	cr_assert_not_null(mkdtemp(f->dir));
	cert = path_of(f, "server.crt");
	key = path_of(f, "server.key");
	cr_assert_eq(abx__tls_local_make(f->dir, names, NAME_COUNT, NULL, &err), ABX_OK,
		     "%s", abx_error_message(err));
	cr_assert_eq(abx__tls_context_new(cert, key, h2, &f->context, &err), ABX_OK, "%s",
		     abx_error_message(err));
}

static void start_with(struct fixture *f, abx__http_server_options opts, bool h2)
{
	signal(SIGPIPE, SIG_IGN);
	memset(f, 0, sizeof(*f));
	f->got.cap = (size_t)1 << 30;
	f->w.fd = -1;
	make_context(f, h2);
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

static void start(struct fixture *f, abx__http_handler handler)
{
	start_with(f, (abx__http_server_options){ .on_request = handler }, true);
}

static void hang_up(struct fixture *f)
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
	((struct fixture *)userdata)->server_closed = true;
}

static void stop(struct fixture *f)
{
	int64_t end = abx__mono_ms() + 3000;

	hang_up(f);
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

/* ---- the client ---- */

static void call(struct fixture *f)
{
	ABX_CLEANUP(abx__freep) char *ca = path_of(f, "ca.crt");

	wire_open(&f->w, &f->loop, f->port);
	f->w.deaf = true; /* OpenSSL reads */
	f->ctx = SSL_CTX_new(TLS_client_method());
	cr_assert_eq(SSL_CTX_load_verify_locations(f->ctx, ca, NULL), 1);
	SSL_CTX_set_verify(f->ctx, SSL_VERIFY_PEER, NULL);
	f->ssl = SSL_new(f->ctx);
	SSL_set_fd(f->ssl, f->w.fd);
	SSL_set1_host(f->ssl, "8080-abc.box.test");
}

static void note(struct fixture *f, int n)
{
	int error = SSL_get_error(f->ssl, n);

	f->ended = f->ended || error == SSL_ERROR_ZERO_RETURN;
	f->failed = f->failed || error == SSL_ERROR_SSL || error == SSL_ERROR_SYSCALL;
}

static void turn(struct fixture *f)
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

#define UNTIL(f, cond)                                                    \
	do {                                                              \
		int64_t end__ = abx__mono_ms() + 5000;                    \
		while (!(cond) && abx__mono_ms() < end__)                 \
			turn(f);                                          \
		cr_assert(cond, "not within 5 s: %s; got: %.500s", #cond, \
			  abx__buf_str(&(f)->got));                       \
	} while (0)

static bool got(const struct fixture *f, const char *text)
{
	return strstr(abx__buf_str(&f->got), text) != NULL;
}

static void shake(struct fixture *f)
{
	UNTIL(f, SSL_is_init_finished(f->ssl));
}

static void say(struct fixture *f, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0 && !f->failed) {
		int n = SSL_write(f->ssl, at, (int)(len < 16384 ? len : 16384));

		if (n > 0) {
			at += n;
			len -= (size_t)n;
		} else {
			turn(f);
		}
	}
}

static void says(struct fixture *f, const char *text)
{
	say(f, text, strlen(text));
}

/* ---- handlers ---- */

static void on_closed(abx__http_req *req, bool answered, void *userdata)
{
	struct fixture *f = userdata;

	(void)req;
	f->closed++;
	f->answered += answered;
	f->req = NULL;
}

static void greet(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;
	const char *text = abx__http_req_is_tls(req) ? "over TLS" : "plain";

	f->calls++;
	abx__http_req_on_closed(req, on_closed, f);
	abx__http_res_send(req, 200, "text/plain", text, strlen(text));
}

static void keep(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->calls++;
	f->req = req;
	abx__http_req_on_closed(req, on_closed, f);
}

/* ---- handshakes ---- */

static const char get[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

Test(io_tls, certificate_holds_for_every_name_of_ours)
{
	static const char *const good[] = { "localhost", "box.test", "api.box.test",
					    "49983-abc.box.test" };
	static const char *const bad[] = { "a.b.box.test", "other.test", "xlocalhost" };
	struct fixture f;

	start(&f, greet);
	for (size_t i = 0; i < 4; i++) {
		call(&f);
		SSL_set1_host(f.ssl, good[i]);
		shake(&f);
		says(&f, get);
		UNTIL(&f, got(&f, "over TLS"));
		hang_up(&f);
	}
	for (size_t i = 0; i < 3; i++) {
		call(&f);
		SSL_set1_host(f.ssl, bad[i]);
		UNTIL(&f, f.failed);
		cr_assert_eq(SSL_get_verify_result(f.ssl), X509_V_ERR_HOSTNAME_MISMATCH);
		hang_up(&f);
	}
	for (size_t i = 1; i < 3; i++) {
		call(&f);
		SSL_set1_host(f.ssl, NULL);
		cr_assert_eq(
			X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(f.ssl), names[i]),
			1);
		shake(&f);
		hang_up(&f);
	}
	stop(&f);
}

Test(io_tls, versions_and_ciphers_are_todays)
{
	static const struct {
		int version;
		const char *ciphers;
		bool fine;
	} table[] = {
		{ TLS1_3_VERSION, NULL, true },
		{ TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256", true },
		{ TLS1_2_VERSION, "ECDHE-ECDSA-CHACHA20-POLY1305", true },
		{ TLS1_2_VERSION, "ECDHE-ECDSA-AES128-SHA", false },
		{ TLS1_2_VERSION, "AES128-GCM-SHA256", false },
		{ TLS1_1_VERSION, "ALL:@SECLEVEL=0", false },
	};
	struct fixture f;

	start(&f, greet);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		call(&f);
		if (table[i].ciphers)
			cr_assert_eq(SSL_set_cipher_list(f.ssl, table[i].ciphers), 1);
		SSL_set_min_proto_version(f.ssl, TLS1_VERSION);
		SSL_set_max_proto_version(f.ssl, table[i].version);
		UNTIL(&f, f.failed || SSL_is_init_finished(f.ssl));
		cr_assert_eq(!f.failed, table[i].fine, "row %zu", i);
		hang_up(&f);
	}
	stop(&f);
}

Test(io_tls, alpn_picks_the_protocol)
{
	static const unsigned char h2[] = "\x02h2\x08http/1.1", old[] = "\x08http/1.1",
				   other[] = "\x04spdy";
	struct fixture f;

	start(&f, greet);
	call(&f);
	SSL_set_alpn_protos(f.ssl, h2, sizeof(h2) - 1);
	shake(&f);
	/* The server's preface: SETTINGS. */
	UNTIL(&f, f.got.len > 9 && f.got.data[3] == 4);
	hang_up(&f);
	call(&f);
	SSL_set_alpn_protos(f.ssl, old, sizeof(old) - 1);
	shake(&f);
	says(&f, get);
	UNTIL(&f, got(&f, "HTTP/1.1 200"));
	hang_up(&f);
	call(&f);
	SSL_set_alpn_protos(f.ssl, other, sizeof(other) - 1);
	UNTIL(&f, f.failed);
	stop(&f);
}

Test(io_tls, alpn_offers_no_h2_where_it_is_not_spoken)
{
	static const unsigned char h2[] = "\x02h2\x08http/1.1";
	const unsigned char *name;
	struct fixture f;
	unsigned len;

	start_with(&f, (abx__http_server_options){ .on_request = greet }, false);
	call(&f);
	SSL_set_alpn_protos(f.ssl, h2, sizeof(h2) - 1);
	shake(&f);
	SSL_get0_alpn_selected(f.ssl, &name, &len);
	cr_assert(len == 8 && memcmp(name, "http/1.1", 8) == 0);
	stop(&f);
}

Test(io_tls, sessions_are_resumed_by_ticket)
{
	SSL_SESSION *session;
	struct fixture f;

	start(&f, greet);
	call(&f);
	shake(&f);
	says(&f, get);
	UNTIL(&f, got(&f, "over TLS")); /* tickets came with it */
	session = SSL_get1_session(f.ssl);
	SSL_shutdown(f.ssl);
	hang_up(&f);
	call(&f);
	SSL_set_session(f.ssl, session);
	shake(&f);
	cr_assert(SSL_session_reused(f.ssl));
	says(&f, get);
	UNTIL(&f, got(&f, "over TLS"));
	SSL_SESSION_free(session);
	stop(&f);
}

Test(io_tls, renegotiation_is_refused)
{
	struct fixture f;

	start(&f, greet);
	call(&f);
	SSL_set_max_proto_version(f.ssl, TLS1_2_VERSION);
	shake(&f);
	SSL_renegotiate(f.ssl);
	SSL_do_handshake(f.ssl);
	UNTIL(&f, f.failed || SSL_is_init_finished(f.ssl));
	says(&f, get);
	UNTIL(&f, f.failed || got(&f, "over TLS"));
	cr_assert_eq(SSL_num_renegotiations(f.ssl), 1);
	cr_assert_eq(SSL_total_renegotiations(f.ssl), 1);
	stop(&f);
}

Test(io_tls, slow_handshake_is_closed_at_its_deadline)
{
	struct fixture f;

	start_with(&f,
		   (abx__http_server_options){ .on_request = greet,
					       .handshake_timeout_ms = 50 },
		   true);
	wire_open(&f.w, &f.loop, f.port);
	cr_assert_eq(send(f.w.fd, "\x16\x03\x01\x02", 4, MSG_NOSIGNAL), 4);
	WIRE_UNTIL(&f.w, f.w.eof || f.w.reset);
	stop(&f);
}

Test(io_tls, handshakes_at_one_time_are_capped)
{
	struct fixture f;
	struct wire waits[3];

	start_with(&f,
		   (abx__http_server_options){ .on_request = greet, .max_handshakes = 3 },
		   true);
	for (int i = 0; i < 3; i++) {
		wire_open(&waits[i], &f.loop, f.port);
		wire_turn(&waits[i]);
	}
	wire_open(&f.w, &f.loop, f.port);
	WIRE_UNTIL(&f.w, f.w.eof || f.w.reset);
	wire_done(&f.w);
	/* One that ends makes room. */
	wire_done(&waits[0]);
	for (int i = 0; i < 20; i++)
		wire_turn(&waits[1]);
	call(&f);
	shake(&f);
	/* Those that are through do not count. */
	wire_open(&waits[0], &f.loop, f.port);
	for (int i = 0; i < 20; i++)
		wire_turn(&waits[0]);
	cr_assert_not(waits[0].eof || waits[0].reset);
	for (int i = 0; i < 3; i++)
		wire_done(&waits[i]);
	stop(&f);
}

Test(io_tls, plain_http_is_told_to_say_https)
{
	struct fixture f;

	start(&f, greet);
	wire_open(&f.w, &f.loop, f.port);
	wire_say(&f.w, get);
	WIRE_UNTIL(&f.w, f.w.eof);
	cr_assert(wire_got(&f.w, "HTTP/1.1 400"));
	cr_assert(wire_got(&f.w, "\r\n\r\nthis port speaks TLS; say https, not http"));
	cr_assert_eq(f.calls, 0);
	stop(&f);
}

Test(io_tls, garbage_is_closed_with_an_alert)
{
	struct fixture f;

	start(&f, greet);
	wire_open(&f.w, &f.loop, f.port);
	cr_assert_eq(send(f.w.fd, "\x16\x03\x01\x00\x05hello!!", 12, MSG_NOSIGNAL), 12);
	WIRE_UNTIL(&f.w, f.w.eof || f.w.reset);
	cr_assert(f.w.got.len == 0 || f.w.got.data[0] == 21, "not an alert");
	wire_done(&f.w);
	/* And in the middle of a connection. */
	call(&f);
	shake(&f);
	cr_assert_eq(send(f.w.fd, "\x17\x03\x03\x00\x05hello", 10, MSG_NOSIGNAL), 10);
	UNTIL(&f, f.failed);
	cr_assert_eq(f.calls, 0);
	stop(&f);
}

/* ---- streams ---- */

static void echo_body(abx__http_req *req, const char *data, size_t len, int r,
		      void *userdata)
{
	struct fixture *f = userdata;

	if (data) {
		abx__http_res_write(req, data, len);
		return;
	}
	f->read_ends++;
	f->read_r = r;
	abx__http_res_end(req);
}

static void echo(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->calls++;
	abx__http_req_on_closed(req, on_closed, f);
	abx__http_res_begin(req, 200, abx__http_req_content_length(req));
	abx__http_req_read(req, echo_body, f);
}

Test(io_tls, large_bodies_pass_both_ways_unchanged)
{
	size_t len = 3000000;
	char head[100], *big = abx__malloc(len);
	struct fixture f;
	const char *body;

	for (size_t i = 0; i < len; i++)
		big[i] = (char)(i * 7 % 253);
	start(&f, echo);
	call(&f);
	shake(&f);
	snprintf(head, sizeof(head),
		 "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", len);
	says(&f, head);
	say(&f, big, len);
	UNTIL(&f, f.got.len > len && f.answered == 1);
	body = strstr(abx__buf_str(&f.got), "\r\n\r\n");
	cr_assert_not_null(body);
	UNTIL(&f, f.got.len == (size_t)(body + 4 - f.got.data) + len);
	body = strstr(abx__buf_str(&f.got), "\r\n\r\n");
	cr_assert_eq(memcmp(body + 4, big, len), 0);
	abx__free(big);
	stop(&f);
}

Test(io_tls, pipelined_requests_are_answered_in_turn)
{
	struct fixture f;
	int n = 0;

	start(&f, greet);
	call(&f);
	shake(&f);
	for (int i = 0; i < 20; i++)
		says(&f, get);
	UNTIL(&f, f.answered == 20);
	for (int i = 0; i < 20; i++)
		turn(&f);
	for (const char *p = abx__buf_str(&f.got); (p = strstr(p, "over TLS")); p++)
		n++;
	cr_assert_eq(n, 20);
	stop(&f);
}

static void refs_done(void *userdata)
{
	((struct fixture *)userdata)->read_ends++;
}

static void write_refs(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->big = abx__malloc(300000);
	memset(f->big, 'r', 300000);
	abx__http_req_on_closed(req, on_closed, f);
	abx__http_res_begin(req, 200, -1);
	cr_assert_eq(abx__http_res_write(req, "first ", 6), ABX_OK);
	cr_assert_eq(abx__http_res_write_ref(req, f->big, 300000, refs_done, f), ABX_OK);
	cr_assert_eq(f->read_ends, 0);
	abx__http_res_end(req);
}

Test(io_tls, referenced_bytes_leave_and_are_told)
{
	struct fixture f;

	start(&f, write_refs);
	call(&f);
	shake(&f);
	says(&f, get);
	UNTIL(&f, got(&f, "rrrr\r\n0\r\n\r\n"));
	cr_assert_gt(f.got.len, 300000);
	cr_assert_eq(f.read_ends, 1);
	stop(&f);
}

Test(io_tls, end_of_a_connection_is_announced)
{
	struct fixture f;

	start(&f, greet);
	call(&f);
	shake(&f);
	says(&f, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	UNTIL(&f, f.ended || f.failed);
	cr_assert(f.ended, "the connection ended without close_notify");
	stop(&f);
}

static void half(abx__http_req *req, void *userdata)
{
	abx__http_req_on_closed(req, on_closed, userdata);
	abx__http_res_begin(req, 200, 100);
	abx__http_res_write(req, "half", 4);
	abx__http_res_abort(req);
}

Test(io_tls, broken_off_answer_is_not_announced_as_an_end)
{
	struct fixture f;

	start(&f, half);
	call(&f);
	shake(&f);
	says(&f, get);
	UNTIL(&f, f.ended || f.failed);
	cr_assert(f.failed);
	cr_assert_eq(f.answered, 0);
	stop(&f);
}

static void raw_bytes(abx__http_req *req, const char *data, size_t len, int r,
		      void *userdata)
{
	struct fixture *f = userdata;

	(void)req;
	if (data) {
		abx__buf_add(&f->seen, data, len);
		return;
	}
	f->read_ends++;
	f->read_r = r;
}

static void hijack(abx__http_req *req, void *userdata)
{
	static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\n\r\n";

	keep(req, userdata);
	cr_assert_eq(abx__http_req_hijack(req), ABX_OK);
	abx__http_res_write(req, answer, sizeof(answer) - 1);
	abx__http_req_read(req, raw_bytes, userdata);
}

static void upgrade(struct fixture *f)
{
	call(f);
	shake(f);
	says(f, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: "
		"x\r\n\r\nearly ");
	UNTIL(f, got(f, "101") && f->seen.len > 0);
}

Test(io_tls, client_may_end_its_side_first)
{
	struct fixture f;

	start(&f, hijack);
	upgrade(&f);
	says(&f, "late");
	SSL_shutdown(f.ssl); /* close_notify: its side alone */
	UNTIL(&f, f.read_ends == 1);
	cr_assert_eq(f.read_r, ABX_OK);
	cr_assert_str_eq(abx__buf_str(&f.seen), "early late");
	abx__http_res_write(f.req, "answer after the end", 20);
	UNTIL(&f, got(&f, "answer after the end"));
	cr_assert_eq(f.closed, 0);
	abx__http_res_end(f.req);
	UNTIL(&f, f.ended && f.closed == 1);
	cr_assert_eq(f.answered, 1);
	stop(&f);
}

Test(io_tls, server_may_end_its_side_first)
{
	struct fixture f;

	start(&f, hijack);
	upgrade(&f);
	abx__http_res_write(f.req, "bye", 3);
	abx__http_res_end(f.req);
	UNTIL(&f, f.ended && got(&f, "bye"));
	f.ended = false;
	says(&f, "still heard");
	UNTIL(&f, strstr(abx__buf_str(&f.seen), "still heard"));
	cr_assert_eq(f.closed, 0);
	SSL_shutdown(f.ssl);
	UNTIL(&f, f.closed == 1);
	cr_assert_eq(f.answered, 1);
	stop(&f);
}

Test(io_tls, raw_stream_that_is_cut_is_not_taken_for_ended)
{
	struct fixture f;

	start(&f, hijack);
	upgrade(&f);
	wire_close(&f.w); /* TCP's end without close_notify */
	for (int i = 0; i < 100 && f.closed == 0; i++)
		wire_turn(&f.w);
	cr_assert_eq(f.read_ends, 1);
	cr_assert_eq(f.read_r, ABX_EIO);
	cr_assert_eq(f.answered, 0);
	stop(&f);
}

static void begin_only(abx__http_req *req, void *userdata)
{
	keep(req, userdata);
	abx__http_res_begin(req, 200, -1);
}

Test(io_tls, open_stream_may_be_silent_for_many_idle_deadlines)
{
	struct fixture f;
	int64_t until;

	start_with(&f,
		   (abx__http_server_options){ .on_request = begin_only,
					       .idle_timeout_ms = 40,
					       .head_timeout_ms = 40,
					       .handshake_timeout_ms = 2000 },
		   true);
	call(&f);
	shake(&f);
	says(&f, get);
	UNTIL(&f, got(&f, "HTTP/1.1 200"));
	until = abx__mono_ms() + 500;
	while (abx__mono_ms() < until)
		turn(&f);
	cr_assert_eq(f.closed, 0);
	abx__http_res_write(f.req, "data: late\n\n", 12);
	UNTIL(&f, got(&f, "data: late"));
	abx__http_res_end(f.req);
	/* Then the connection is idle, and goes. */
	UNTIL(&f, f.ended);
	cr_assert_eq(f.answered, 1);
	stop(&f);
}

/* ---- files ---- */

Test(io_tls, reload_takes_new_files_and_keeps_the_old_when_they_are_bad)
{
	static const char *const other[] = { "renamed.test" };
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP(abx__freep) char *cert = NULL;
	struct fixture f;
	bool changed = false;

	start(&f, greet);
	cert = path_of(&f, "server.crt");
	cr_assert_eq(abx__tls_local_make(f.dir, other, 1, &changed, NULL), ABX_OK);
	cr_assert(changed);
	cr_assert_eq(abx__tls_context_reload(f.context, NULL), ABX_OK);
	call(&f);
	SSL_set1_host(f.ssl, "renamed.test");
	shake(&f);
	hang_up(&f);
	cr_assert_eq(truncate(cert, 10), 0);
	cr_assert_eq(abx__tls_context_reload(f.context, &err), ABX_EINVAL);
	cr_assert(strstr(abx_error_message(err), cert), "%s", abx_error_message(err));
	call(&f);
	SSL_set1_host(f.ssl, "renamed.test");
	shake(&f);
	stop(&f);
}

Test(io_tls, files_that_are_not_right_are_named)
{
	ABX_CLEANUP(abx__freep) char *cert = NULL;
	ABX_CLEANUP(abx__freep) char *key = NULL;
	ABX_CLEANUP(abx__freep) char *ca_key = NULL;
	abx__tls_context *context = NULL;
	abx_error *err = NULL;
	struct fixture f;

	start(&f, greet);
	cert = path_of(&f, "server.crt");
	key = path_of(&f, "server.key");
	ca_key = path_of(&f, "ca.key");
	cr_assert_eq(abx__tls_context_new("/nowhere.crt", key, true, &context, &err),
		     ABX_EIO);
	cr_assert(strstr(abx_error_message(err), "/nowhere.crt"));
	abx_error_free(err);
	err = NULL;
	cr_assert_eq(abx__tls_context_new(key, key, true, &context, &err), ABX_EINVAL);
	cr_assert(strstr(abx_error_message(err), "no certificate in PEM form"));
	abx_error_free(err);
	err = NULL;
	cr_assert_eq(abx__tls_context_new(cert, ca_key, true, &context, &err),
		     ABX_EINVAL);
	cr_assert(strstr(abx_error_message(err), "is not the key of"));
	abx_error_free(err);
	cr_assert_null(context);
	stop(&f);
}

/* ---- the local CA ---- */

static unsigned mode_of(const struct fixture *f, const char *name)
{
	ABX_CLEANUP(abx__freep) char *path = path_of(f, name);
	struct stat st;

	cr_assert_eq(stat(path, &st), 0);
	return st.st_mode & 07777;
}

Test(io_tls, local_ca_is_made_once_and_kept)
{
	struct fixture f;
	bool changed = true;

	start(&f, greet);
	cr_assert_eq(mode_of(&f, "ca.key"), 0600);
	cr_assert_eq(mode_of(&f, "server.key"), 0600);
	cr_assert_eq(mode_of(&f, "ca.crt"), 0644);
	cr_assert_eq(mode_of(&f, "server.crt"), 0644);
	cr_assert_eq(abx__tls_local_make(f.dir, names, NAME_COUNT, &changed, NULL),
		     ABX_OK);
	cr_assert_not(changed);
	/* A name less, and the CA stays. */
	cr_assert_eq(abx__tls_local_make(f.dir, names, NAME_COUNT - 1, &changed, NULL),
		     ABX_OK);
	cr_assert(changed);
	cr_assert_eq(abx__tls_context_reload(f.context, NULL), ABX_OK);
	call(&f);
	SSL_set1_host(f.ssl, "box.test");
	shake(&f);
	stop(&f);
}

Test(io_tls, local_ca_that_is_broken_is_made_anew)
{
	ABX_CLEANUP(abx__freep) char *key = NULL;
	struct fixture f;
	bool changed = false;

	start(&f, greet);
	key = path_of(&f, "ca.key");
	cr_assert_eq(truncate(key, 20), 0);
	cr_assert_eq(abx__tls_local_make(f.dir, names, NAME_COUNT, &changed, NULL),
		     ABX_OK);
	cr_assert(changed);
	cr_assert_eq(mode_of(&f, "ca.key"), 0600);
	cr_assert_eq(abx__tls_context_reload(f.context, NULL), ABX_OK);
	call(&f);
	shake(&f);
	stop(&f);
}

Test(io_tls, names_that_are_none_are_refused)
{
	static const char *const bad[] = { "",        "a b",      "a,DNS:evil", "*",
					   "*.*.x",   "a..b",     ".a",         "a.",
					   "-a.test", "1.2.3.4/5" };
	struct fixture f;

	start(&f, greet);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		abx_error *err = NULL;

		cr_assert_eq(abx__tls_local_make(f.dir, &bad[i], 1, NULL, &err),
			     ABX_EINVAL, "\"%s\" was taken", bad[i]);
		cr_assert(strstr(abx_error_message(err), "neither a host name nor"));
		abx_error_free(err);
	}
	stop(&f);
}
