/*
 * http-fixture.c - see http-fixture.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "http-fixture.h"

void fixture_closed(abx__http_req *req, bool answered, void *userdata)
{
	struct fixture *f = userdata;

	(void)req;
	f->closed++;
	f->answered += answered;
	f->req = NULL;
}

void fixture_start_with(struct fixture *f, abx__http_server_options opts)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	struct sockaddr_in addr = { .sin_family = AF_INET };

	signal(SIGPIPE, SIG_IGN);
	uv_loop_init(&f->loop);
	opts.loop = &f->loop;
	opts.userdata = f;
	cr_assert_eq(abx__http_server_new(&opts, &f->server, &err), ABX_OK);
	cr_assert_eq(
		abx__http_server_listen_tcp(f->server, "127.0.0.1", 0, &f->port, &err),
		ABX_OK, "%s", abx_error_message(err));
	f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	addr.sin_port = htons(f->port);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(connect(f->fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	fcntl(f->fd, F_SETFL, O_NONBLOCK);
}

void fixture_start(struct fixture *f, abx__http_handler handler)
{
	fixture_start_with(f, (abx__http_server_options){ .on_request = handler });
}

void fixture_turn(struct fixture *f)
{
	char buf[65536];
	ssize_t n;

	uv_run(&f->loop, UV_RUN_NOWAIT);
	n = f->fd >= 0 ? recv(f->fd, buf, sizeof(buf), 0) : -1;
	if (n > 0)
		abx__buf_add(&f->got, buf, (size_t)n);
	else if (n == 0)
		f->eof = true;
	else if (f->fd >= 0 && errno == ECONNRESET)
		f->reset = true;
	if (n <= 0)
		usleep(200);
}

bool fixture_got(const struct fixture *f, const char *text)
{
	return strstr(abx__buf_str(&f->got), text) != NULL;
}

int fixture_count(const struct fixture *f, const char *text)
{
	const char *p = abx__buf_str(&f->got);
	int n = 0;

	while ((p = strstr(p, text))) {
		n++;
		p += strlen(text);
	}
	return n;
}

void fixture_say(struct fixture *f, const char *text)
{
	size_t len = strlen(text);

	cr_assert_eq(send(f->fd, text, len, MSG_NOSIGNAL), (ssize_t)len);
}

static void server_closed(void *userdata)
{
	struct fixture *f = userdata;

	f->server_closed = true;
}

void fixture_stop(struct fixture *f)
{
	abx__http_server_close(f->server, server_closed, f);
	UNTIL(f, f->server_closed);
	if (f->fd >= 0)
		close(f->fd);
	cr_assert_eq(uv_loop_close(&f->loop), 0, "handles were left open");
	abx__buf_done(&f->got);
	abx__buf_done(&f->body);
}

/* ---- handlers ---- */

void fixture_hello(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->calls++;
	abx__http_req_on_closed(req, fixture_closed, f);
	cr_assert_eq(abx__http_res_send(req, 200, "text/plain", "hello", 5), ABX_OK);
}

void fixture_keep(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->calls++;
	f->req = req;
	abx__http_req_on_closed(req, fixture_closed, f);
}

static void echo_done(abx__http_req *req, int r, const char *data, size_t len,
		      void *userdata)
{
	struct fixture *f = userdata;

	f->body_r = r;
	f->body_ends++;
	if (r == ABX_ETOOBIG)
		abx__http_res_send(req, 413, "text/plain", "too big", 7);
	else if (r == ABX_EPROTO)
		abx__http_res_send(req, 400, "text/plain", "broken", 6);
	else if (r == ABX_OK)
		abx__http_res_send(req, 200, "text/plain", data, len);
}

void fixture_echo(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->calls++;
	abx__http_req_on_closed(req, fixture_closed, f);
	abx__http_req_read_all(req, f->limit ? f->limit : 1 << 20, echo_done, f);
}

void fixture_stream(abx__http_req *req, void *userdata)
{
	fixture_keep(req, userdata);
	abx__http_res_begin(req, 200, -1);
}
