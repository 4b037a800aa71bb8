/*
 * fixture.c - see fixture.h.
 */
#include "fixture.h"
#include "io/http2.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void note_head(struct fixture *f, abx__http_req *req)
{
	const char *name, *value;
	size_t n;

	n = (size_t)snprintf(f->head, sizeof(f->head), "%s %s\n",
			     abx__http_req_method(req), abx__http_req_target(req));
	for (size_t i = 0; abx__http_req_header_at(req, i, &name, &value); i++)
		n += (size_t)snprintf(f->head + n, sizeof(f->head) - n, "%s=%s\n", name,
				      value);
}

static void back_closed(abx__http_req *req, bool answered, void *userdata)
{
	struct fixture *f = userdata;

	(void)req;
	f->gone += !answered;
	f->held = NULL;
}

static void echo_all(abx__http_req *req, int r, const char *data, size_t len,
		     void *userdata)
{
	(void)userdata;
	abx__http_res_header(req, "X-Back", "yes");
	abx__http_res_header(req, "Keep-Alive", "timeout=5");
	if (r < 0 || abx__http_res_send(req, 200, "text/plain", len ? data : "hello",
					len ? len : 5) < 0)
		abx__http_res_abort(req);
}

static void swallow(abx__http_req *req, const char *data, size_t len, int r,
		    void *userdata)
{
	struct fixture *f = userdata;

	f->swallowed += len;
	if (data && f->pause_all)
		abx__http_req_pause(req);
	if (!data && r == ABX_OK)
		abx__http_res_send(req, 200, NULL, "swallowed", 9);
}

static void fill(abx__http_req *req, void *userdata)
{
	static char piece[65536];
	struct fixture *f = userdata;

	while (f->swallowed > 0 && abx__http_res_queued(req) < 256 * 1024) {
		size_t n = f->swallowed < sizeof(piece) ? f->swallowed : sizeof(piece);

		if (abx__http_res_write(req, piece, n) < 0)
			return;
		f->swallowed -= n;
	}
	if (f->swallowed == 0 && !f->served++)
		abx__http_res_end(req);
}

/* The sandbox: what it does depends on the path. */
static void on_back(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;
	const char *path = abx__http_req_path(req);

	note_head(f, req);
	abx__http_req_on_closed(req, back_closed, f);
	if (strcmp(path, "/hold") == 0) {
		f->held = req;
		f->served++;
	} else if (strcmp(path, "/stream") == 0) {
		f->held = req;
		f->served++;
		abx__http_res_begin(req, 200, -1);
	} else if (strcmp(path, "/swallow") == 0) {
		f->served++;
		f->held = req;
		abx__http_req_read(req, swallow, f);
	} else if (strcmp(path, "/flood") == 0) {
		abx__http_res_begin(req, 200, -1);
		abx__http_res_on_drain(req, 65536, fill, f);
	} else if (strcmp(path, "/early") == 0) {
		f->served++;
		abx__http_res_send(req, 413, NULL, "no", 2);
	} else {
		f->served++;
		abx__http_req_read_all(req, 1 << 20, echo_all, f);
	}
}

static void on_front(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	if (abx__gateway_match(f->gateway, req))
		abx__gateway_serve(f->gateway, req);
	else
		abx__http_res_send(req, 404, NULL, "other", 5);
}

static uint16_t serve(struct fixture *f, abx__http_handler handler,
		      abx__http_server **ret)
{
	abx__http_server_options opts = {
		.loop = &f->loop,
		.on_request = handler,
		.userdata = f,
		.read_chunk_bytes = 256 * 1024,
		.http2 = handler == on_front ? &abx__http2 : NULL,
	};
	uint16_t port = 0;

	cr_assert_eq(abx__http_server_new(&opts, ret, NULL), ABX_OK);
	cr_assert_eq(abx__http_server_listen_tcp(*ret, "127.0.0.1", 0, &port, NULL),
		     ABX_OK);
	return port;
}

void fixture_start(struct fixture *f)
{
	static const abx__ingress ingress = { .closed = true,
					      .mask_host = "masked.example:${PORT}" };
	abx__sandbox_rec *closed;

	signal(SIGPIPE, SIG_IGN);
	uv_loop_init(&f->loop);
	stub_sandboxes_add(&f->table, "abc", ABX__SANDBOX_RUNNING);
	stub_sandboxes_add(&f->table, "starting", ABX__SANDBOX_STARTING);
	stub_sandboxes_add(&f->table, "stopping", ABX__SANDBOX_STOPPING);
	stub_sandboxes_add(&f->table, "closed", ABX__SANDBOX_RUNNING);
	closed = &f->table.recs[f->table.count - 1];
	closed->access_token = abx__secret_new("envd-token", 10);
	closed->traffic_token = abx__secret_new("traffic-token", 13);
	closed->ingress = &ingress;
	stub_connect_init(&f->engine, &f->loop);
	f->front_port = serve(f, on_front, &f->front);
	f->back_port = serve(f, on_back, &f->back);
	f->engine.to = f->back_port;
	f->opts.loop = &f->loop;
	f->opts.engine = &f->engine.engine;
	f->opts.sandboxes = &f->table;
	if (!f->opts.retry_ms)
		f->opts.retry_ms = 2;
	f->listener = f->peer = -1;
	cr_assert_eq(abx__gateway_new(&f->opts, &f->gateway, NULL), ABX_OK);
	wire_open(&f->w, &f->loop, f->front_port);
}

void fixture_go_raw(struct fixture *f)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);

	f->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(bind(f->listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	listen(f->listener, 8);
	getsockname(f->listener, (struct sockaddr *)&addr, &len);
	f->engine.to = ntohs(addr.sin_port);
}

bool peer_has(struct fixture *f, const char *text)
{
	char buf[4096];
	ssize_t n;

	if (f->peer < 0)
		f->peer = accept4(f->listener, NULL, NULL, SOCK_NONBLOCK);
	n = f->peer >= 0 ? recv(f->peer, buf, sizeof(buf), 0) : -1;
	if (n > 0)
		abx__buf_add(&f->peer_got, buf, (size_t)n);
	return strstr(abx__buf_str(&f->peer_got), text) != NULL;
}

void peer_say(struct fixture *f, const char *text)
{
	cr_assert_eq(send(f->peer, text, strlen(text), MSG_NOSIGNAL),
		     (ssize_t)strlen(text));
}

void peer_close(struct fixture *f)
{
	close(f->peer);
	f->peer = -1;
	abx__buf_clear(&f->peer_got);
}

static void one_closed(void *userdata)
{
	((struct fixture *)userdata)->closes++;
}

void fixture_stop(struct fixture *f)
{
	int64_t end = abx__mono_ms() + 3000;

	wire_done(&f->w);
	if (f->peer >= 0)
		close(f->peer);
	if (f->listener >= 0)
		close(f->listener);
	abx__gateway_close(f->gateway, one_closed, f);
	abx__http_server_close(f->front, one_closed, f);
	abx__http_server_close(f->back, one_closed, f);
	stub_connect_flush(&f->engine);
	while (f->closes < 3 && abx__mono_ms() < end)
		uv_run(&f->loop, UV_RUN_NOWAIT);
	cr_assert_eq(f->closes, 3, "not everything closed");
	uv_run(&f->loop, UV_RUN_NOWAIT);
	cr_assert_eq(uv_loop_close(&f->loop), 0, "handles were left open");
	cr_assert_eq(f->table.begins, f->table.ends, "a stream was not ended");
	abx__buf_done(&f->peer_got);
	for (size_t i = 0; i < f->table.count; i++) {
		abx__secret_free(f->table.recs[i].access_token);
		abx__secret_free(f->table.recs[i].traffic_token);
	}
}
