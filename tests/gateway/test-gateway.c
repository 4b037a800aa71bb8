/*
 * The data plane over real sockets: a raw client, the gateway, and behind it either our
 * own server as the sandbox or a raw listener that does what the test wants.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "gateway/gateway.h"
#include "stub-connect.h"
#include "stub-sandboxes.h"
#include "wire.h"

struct fixture {
	uv_loop_t loop;
	abx__sandboxes table;
	struct stub_connect engine;
	abx__gateway *gateway;
	abx__http_server *front, *back;
	uint16_t front_port, back_port;
	int listener; /* a raw sandbox */
	int peer;     /* its accepted connection */
	abx__buf peer_got;
	struct wire w;
	int closes;
	/* of the sandbox's handler */
	int served, gone;
	char head[4096];
	abx__http_req *held;
	size_t swallowed;
	bool pause_all;
	abx__gateway_options opts;
	int armed_r, armed;
	char armed_text[256];
};

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

	if (abx__gateway_match(req))
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
	};
	uint16_t port = 0;

	cr_assert_eq(abx__http_server_new(&opts, ret, NULL), ABX_OK);
	cr_assert_eq(abx__http_server_listen_tcp(*ret, "127.0.0.1", 0, &port, NULL),
		     ABX_OK);
	return port;
}

static void start(struct fixture *f)
{
	signal(SIGPIPE, SIG_IGN);
	uv_loop_init(&f->loop);
	stub_sandboxes_add(&f->table, "abc", ABX__SANDBOX_RUNNING);
	stub_sandboxes_add(&f->table, "starting", ABX__SANDBOX_STARTING);
	stub_sandboxes_add(&f->table, "stopping", ABX__SANDBOX_STOPPING);
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

/* From here every port leads to a listener of the test's. */
static void go_raw(struct fixture *f)
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

static bool peer_has(struct fixture *f, const char *text)
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

static void peer_say(struct fixture *f, const char *text)
{
	cr_assert_eq(send(f->peer, text, strlen(text), MSG_NOSIGNAL),
		     (ssize_t)strlen(text));
}

static void peer_close(struct fixture *f)
{
	close(f->peer);
	f->peer = -1;
	abx__buf_clear(&f->peer_got);
}

static void one_closed(void *userdata)
{
	((struct fixture *)userdata)->closes++;
}

static void stop(struct fixture *f)
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
}

#define ENVD "Host: x\r\nE2b-Sandbox-Id: abc\r\nE2b-Sandbox-Port: 49983\r\n"
#define USER "Host: x\r\nE2b-Sandbox-Id: abc\r\nE2b-Sandbox-Port: 8000\r\n"

/* ---- passing ---- */

Test(gateway_pass, all_forms_reach_the_sandbox_with_path_and_query)
{
	static const char *const rows[] = {
		"GET /a%20b?x=1 HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: "
		"abc\r\nE2b-Sandbox-Port: 8000\r\n\r\n",
		"GET /a%20b?x=1 HTTP/1.1\r\nHost: x\r\nx-sandbox-id: "
		"abc\r\nx-sandbox-port: 8000\r\n\r\n",
		"GET /a%20b?x=1 HTTP/1.1\r\nHost: 8000-abc.local\r\n\r\n",
		"GET /sandboxes/abc/8000/a%20b?x=1 HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /agent-sandbox/api/data/sandboxes/abc/8000/a%20b?x=1 "
		"HTTP/1.1\r\nHost: x\r\n\r\n",
	};
	struct fixture f = { 0 };

	start(&f);
	for (int i = 0; i < 5; i++) {
		wire_say(&f.w, rows[i]);
		WIRE_UNTIL(&f.w, wire_count(&f.w, "hello") == i + 1);
		cr_assert(strstr(f.head, "GET /a%20b?x=1\n"), "%s", f.head);
	}
	cr_assert_eq(f.table.touches, 5);
	cr_assert_eq(f.table.begins, 5);
	WIRE_UNTIL(&f.w, f.table.ends == 5);
	wire_say(&f.w, "GET /v1/envs HTTP/1.1\r\nHost: x\r\n\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "other"));
	stop(&f);
}

Test(gateway_pass, headers_go_through_but_for_the_connections_own)
{
	struct fixture f = { 0 };

	start(&f);
	wire_say(&f.w, "POST /x HTTP/1.1\r\n" USER
		       "X-Access-Token: t\r\nConnection: X-Drop, keep-alive\r\nX-Drop: "
		       "1\r\nKeep-Alive: 5\r\n"
		       "TE: trailers\r\nProxy-Connection: x\r\nAGENTBOX-API-KEY: "
		       "secret\r\nX-Api-Key: mine\r\n"
		       "Content-Length: 3\r\n\r\nabc");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "\r\n\r\nabc"));
	cr_assert(strstr(f.head, "Host=x\n"));
	cr_assert(strstr(f.head, "X-Access-Token=t\n"));
	cr_assert(strstr(f.head, "Content-Length=3\n"));
	cr_assert(strstr(f.head, "X-Api-Key=mine\n"),
		  "without key checks it is the sandbox's own");
	cr_assert_null(strstr(f.head, "X-Drop"));
	cr_assert_null(strstr(f.head, "Keep-Alive"));
	cr_assert_null(strstr(f.head, "TE="));
	cr_assert_null(strstr(f.head, "Proxy-"));
	cr_assert_null(strstr(f.head, "secret"));
	cr_assert(wire_got(&f.w, "X-Back: yes\r\n"));
	cr_assert_not(wire_got(&f.w, "Keep-Alive"));
	cr_assert_eq(wire_count(&f.w, "Date:"), 1);
	stop(&f);
}

Test(gateway_pass, connections_to_the_runtime_are_kept_and_others_not)
{
	struct fixture f = { 0 };

	start(&f);
	for (int i = 1; i <= 3; i++) {
		wire_say(&f.w, "GET / HTTP/1.1\r\n" ENVD "\r\n");
		WIRE_UNTIL(&f.w, wire_count(&f.w, "hello") == i);
	}
	cr_assert_eq(f.engine.connects, 1);
	for (int i = 4; i <= 5; i++) {
		wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "\r\n");
		WIRE_UNTIL(&f.w, wire_count(&f.w, "hello") == i);
		cr_assert(strstr(f.head, "Connection=close\n"));
	}
	cr_assert_eq(f.engine.connects, 3);
	stop(&f);
}

Test(gateway_pass, what_is_forgotten_is_not_used_again)
{
	struct fixture f = { 0 };
	abx__runtime *runtime;

	start(&f);
	runtime = abx__gateway_runtime(f.gateway);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" ENVD "\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "hello"));
	runtime->ops->forget(runtime, "ns", "other");
	runtime->ops->forget(runtime, "ns", "abc");
	wire_say(&f.w, "GET /hold HTTP/1.1\r\n" ENVD "\r\n");
	WIRE_UNTIL(&f.w, f.held);
	cr_assert_eq(f.engine.connects, 2);
	runtime->ops->forget(runtime, "ns", "abc"); /* while in use */
	abx__http_res_send(f.held, 200, NULL, "hello", 5);
	WIRE_UNTIL(&f.w, wire_count(&f.w, "hello") == 2);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" ENVD "\r\n");
	WIRE_UNTIL(&f.w, wire_count(&f.w, "hello") == 3);
	cr_assert_eq(f.engine.connects, 3);
	stop(&f);
}

Test(gateway_pass, a_kept_connection_that_went_stale_is_replaced)
{
	struct fixture f = { 0 };

	start(&f);
	go_raw(&f);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" ENVD "\r\n");
	WIRE_UNTIL(&f.w, peer_has(&f, "\r\n\r\n"));
	peer_say(&f, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "one"));
	/* The request is on its way when the sandbox closes. */
	abx__buf_clear(&f.peer_got);
	wire_say(&f.w, "GET /second HTTP/1.1\r\n" ENVD "\r\n");
	WIRE_UNTIL(&f.w, peer_has(&f, "/second"));
	peer_close(&f);
	WIRE_UNTIL(&f.w, peer_has(&f, "/second"));
	peer_say(&f, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "two"));
	cr_assert_eq(f.engine.connects, 2);
	/* A fresh one that closes is the answer. */
	peer_close(&f);
	wire_turn(&f.w);
	wire_say(&f.w, "GET /third HTTP/1.1\r\n" ENVD "\r\n");
	WIRE_UNTIL(&f.w, peer_has(&f, "/third"));
	peer_close(&f);
	WIRE_UNTIL(&f.w, wire_got(&f.w, "HTTP/1.1 502 "));
	cr_assert_eq(f.engine.connects, 3);
	stop(&f);
}

Test(gateway_pass, a_request_whose_body_was_read_is_not_sent_twice)
{
	struct fixture f = { 0 };

	start(&f);
	go_raw(&f);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" ENVD "\r\n");
	WIRE_UNTIL(&f.w, peer_has(&f, "\r\n\r\n"));
	peer_say(&f, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "one"));
	wire_say(&f.w, "POST /second HTTP/1.1\r\n" ENVD "Content-Length: 3\r\n\r\nabc");
	WIRE_UNTIL(&f.w, peer_has(&f, "\r\n\r\nabc"));
	peer_close(&f);
	WIRE_UNTIL(&f.w, wire_got(&f.w, "HTTP/1.1 502 "));
	cr_assert_eq(f.engine.connects, 1);
	stop(&f);
}

Test(gateway_pass, kept_connections_are_closed_after_a_while)
{
	struct fixture f = { .opts.kept_ms = 40 };
	int64_t end;

	start(&f);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" ENVD "\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "hello"));
	for (end = abx__mono_ms() + 150; abx__mono_ms() < end;)
		wire_turn(&f.w);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" ENVD "\r\n");
	WIRE_UNTIL(&f.w, wire_count(&f.w, "hello") == 2);
	cr_assert_eq(f.engine.connects, 2);
	stop(&f);
}

Test(gateway_pass, head_204_and_http_1_0)
{
	struct fixture f = { 0 };

	start(&f);
	wire_say(&f.w, "HEAD / HTTP/1.1\r\n" ENVD "\r\n");
	WIRE_UNTIL(&f.w,
		   wire_got(&f.w, "Content-Length: 5\r\n") && wire_got(&f.w, "\r\n\r\n"));
	cr_assert_not(wire_got(&f.w, "hello"));
	wire_say(&f.w, "GET /stream HTTP/1.0\r\nHost: 8000-abc.x\r\n\r\n");
	WIRE_UNTIL(&f.w, f.held);
	abx__http_res_write(f.held, "text", 4);
	abx__http_res_end(f.held);
	WIRE_UNTIL(&f.w, f.w.eof);
	cr_assert(wire_got(&f.w, "Connection: close\r\n\r\ntext"));
	stop(&f);
}

Test(gateway_pass, an_answer_that_ends_with_the_sandboxs_connection)
{
	struct fixture f = { 0 };

	start(&f);
	go_raw(&f);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "\r\n");
	WIRE_UNTIL(&f.w, peer_has(&f, "\r\n\r\n"));
	peer_say(&f, "HTTP/1.0 200 OK\nContent-Type: text/html\n\n<p>");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "3\r\n<p>\r\n"));
	peer_close(&f);
	WIRE_UNTIL(&f.w, wire_got(&f.w, "\r\n0\r\n\r\n"));
	stop(&f);
}

Test(gateway_pass, interim_answers_pass_and_100_is_not_doubled)
{
	struct fixture f = { 0 };

	start(&f);
	go_raw(&f);
	wire_say(&f.w, "POST / HTTP/1.1\r\n" USER
		       "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "100 Continue"));
	wire_say(&f.w, "ok");
	WIRE_UNTIL(&f.w, peer_has(&f, "\r\n\r\nok"));
	cr_assert_not(strstr(f.peer_got.data, "Expect"));
	peer_say(
		&f,
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nz");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "\r\n\r\nz"));
	cr_assert_eq(wire_count(&f.w, "HTTP/1.1 100"), 1);
	cr_assert(wire_got(&f.w, "HTTP/1.1 103 \r\nLink: x\r\n\r\n"));
	stop(&f);
}

/* ---- streaming ---- */

Test(gateway_stream, pieces_pass_as_they_come)
{
	struct fixture f = { 0 };

	start(&f);
	wire_say(&f.w, "GET /stream HTTP/1.1\r\n" ENVD "\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "\r\n\r\n"));
	for (int i = 1; i <= 3; i++) {
		abx__http_res_write(f.held, "tick", 4);
		WIRE_UNTIL(&f.w, wire_count(&f.w, "4\r\ntick\r\n") == i);
	}
	abx__http_res_end(f.held);
	WIRE_UNTIL(&f.w, wire_got(&f.w, "\r\n0\r\n\r\n"));
	stop(&f);
}

Test(gateway_stream, a_chunked_request_passes_as_it_comes)
{
	struct fixture f = { 0 };

	start(&f);
	wire_say(&f.w,
		 "POST /swallow HTTP/1.1\r\n" ENVD "Transfer-Encoding: chunked\r\n\r\n");
	WIRE_UNTIL(&f.w, f.served == 1);
	wire_say(&f.w, "3\r\nabc\r\n");
	WIRE_UNTIL(&f.w, f.swallowed == 3);
	wire_say(&f.w, "0\r\n\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "swallowed"));
	cr_assert(strstr(f.head, "Transfer-Encoding=chunked\n"));
	cr_assert_null(strstr(f.head, "Content-Length"));
	stop(&f);
}

Test(gateway_stream, a_sandbox_that_takes_nothing_holds_the_client_back)
{
	struct fixture f = { .pause_all = true };
	static char piece[65536];
	const size_t total = 64 << 20;
	size_t sent = 0;

	start(&f);
	wire_say(&f.w,
		 "POST /swallow HTTP/1.1\r\n" ENVD "Content-Length: 67108864\r\n\r\n");
	for (int i = 0; i < 2000; i++) {
		ssize_t n = send(f.w.fd, piece, sizeof(piece), MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		uv_run(&f.loop, UV_RUN_NOWAIT);
	}
	cr_assert_lt(sent, total, "nothing held the client back");
	cr_assert_lt(f.swallowed, 1 << 20);
	f.pause_all = false;
	while (sent < total) {
		size_t want = total - sent < sizeof(piece) ? total - sent : sizeof(piece);
		ssize_t n = send(f.w.fd, piece, want, MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		abx__http_req_resume(f.held);
		uv_run(&f.loop, UV_RUN_NOWAIT);
	}
	WIRE_UNTIL(&f.w, wire_got(&f.w, "swallowed"));
	cr_assert_eq(f.swallowed, total);
	stop(&f);
}

Test(gateway_stream, a_client_that_takes_nothing_holds_the_sandbox_back)
{
	const size_t total = 64 << 20;
	struct fixture f = { .swallowed = total };

	start(&f);
	f.w.deaf = true;
	wire_say(&f.w, "GET /flood HTTP/1.1\r\n" ENVD "\r\n");
	for (int i = 0; i < 500; i++)
		wire_turn(&f.w);
	cr_assert_gt(f.swallowed, 16 << 20, "nothing held the sandbox back");
	f.w.deaf = false;
	WIRE_UNTIL(&f.w, f.w.got.len > total && strcmp(f.w.got.data + f.w.got.len - 5,
						       "0\r\n\r\n") == 0);
	stop(&f);
}

/* A sandbox may send as many interim answers as it likes. */
Test(gateway_stream, interim_answers_are_not_gathered_for_a_client_that_takes_nothing)
{
	static const char hint[] = "HTTP/1.1 103 Early Hints\r\nLink: ";
	static char text[32 << 10];
	const size_t total = 48 << 20;
	struct fixture f = { 0 };
	size_t sent = 0;

	memset(text, 'x', sizeof(text));
	memcpy(text, hint, strlen(hint));
	memcpy(text + sizeof(text) - 4, "\r\n\r\n", 4);
	start(&f);
	go_raw(&f);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "\r\n");
	WIRE_UNTIL(&f.w, peer_has(&f, "\r\n\r\n"));
	f.w.deaf = true;
	while (sent < total) {
		size_t at = sent % sizeof(text);
		ssize_t n = send(f.peer, text + at, sizeof(text) - at, MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		uv_run(&f.loop, UV_RUN_NOWAIT);
	}
	for (int i = 0; i < 500; i++)
		wire_turn(&f.w);
	f.w.deaf = false;
	WIRE_UNTIL(&f.w, wire_count(&f.w, "HTTP/1.1 103 ") > 0);
	fcntl(f.peer, F_SETFL, 0);
	peer_say(&f, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nz");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "\r\n\r\nz"));
	cr_assert_lt(f.w.got.len, total / 2, "%zu bytes were kept", f.w.got.len);
	stop(&f);
}

Test(gateway_stream, an_early_answer_passes_though_the_body_is_not_through)
{
	struct fixture f = { 0 };

	start(&f);
	wire_say(&f.w,
		 "POST /early HTTP/1.1\r\n" ENVD "Content-Length: 1000000\r\n\r\nabc");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "HTTP/1.1 413 "));
	WIRE_UNTIL(&f.w, f.w.eof);
	stop(&f);
}

Test(gateway_stream, a_client_that_goes_takes_the_sandboxs_side_along)
{
	static const char *const rows[] = {
		"GET /stream HTTP/1.1\r\n" ENVD "\r\n",
		"GET /hold HTTP/1.1\r\n" USER "\r\n",
		"POST /swallow HTTP/1.1\r\n" ENVD "Content-Length: 10\r\n\r\nabc",
	};

	for (size_t i = 0; i < 3; i++) {
		struct fixture f = { 0 };

		start(&f);
		wire_say(&f.w, rows[i]);
		WIRE_UNTIL(&f.w, f.held);
		wire_close(&f.w);
		WIRE_UNTIL(&f.w, f.gone == 1);
		cr_assert_eq(f.table.begins, 1);
		cr_assert_eq(f.table.ends, 1);
		stop(&f);
	}
}

Test(gateway_stream, a_sandbox_that_breaks_off_breaks_the_answer)
{
	struct fixture f = { 0 };

	start(&f);
	wire_say(&f.w, "GET /stream HTTP/1.1\r\n" ENVD "\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "\r\n\r\n"));
	abx__http_res_abort(f.held);
	WIRE_UNTIL(&f.w, f.w.eof || f.w.reset);
	cr_assert_not(wire_got(&f.w, "0\r\n\r\n"));
	stop(&f);
}

Test(gateway_stream, broken_chunks_of_the_client_are_400)
{
	struct fixture f = { 0 };

	start(&f);
	wire_say(&f.w, "POST /swallow HTTP/1.1\r\n" ENVD
		       "Transfer-Encoding: chunked\r\n\r\nzz\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "HTTP/1.1 400 "));
	WIRE_UNTIL(&f.w, f.gone == 1 || f.served == 0);
	stop(&f);
}

Test(gateway_stream, what_does_not_move_is_broken_off)
{
	struct fixture f = { .opts.idle_timeout_ms = 60 };

	start(&f);
	wire_say(&f.w, "GET /hold HTTP/1.1\r\n" ENVD "\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "HTTP/1.1 504 "));
	wire_say(&f.w, "GET /stream HTTP/1.1\r\n" ENVD "\r\n");
	WIRE_UNTIL(&f.w, f.w.eof || f.w.reset);
	stop(&f);
}

/* ---- upgrades ---- */

Test(gateway_upgrade, a_websocket_passes_raw_and_half_closes)
{
	struct fixture f = { 0 };
	char c;

	start(&f);
	go_raw(&f);
	wire_say(&f.w, "GET /ws HTTP/1.1\r\n" USER
		       "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
		       "Sec-WebSocket-Key: k\r\n\r\n");
	WIRE_UNTIL(&f.w, peer_has(&f, "\r\n\r\n"));
	cr_assert(peer_has(&f, "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
	cr_assert(peer_has(&f, "Sec-WebSocket-Key: k\r\n"));
	peer_say(&f, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: "
		     "websocket\r\nConnection: Upgrade\r\n"
		     "Sec-WebSocket-Accept: a\r\n\r\nserver first");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "\r\n\r\nserver first"));
	cr_assert(wire_got(&f.w,
			   "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
			   "Upgrade: websocket\r\nSec-WebSocket-Accept: a\r\n\r\n"));
	wire_say(&f.w, "\x81\x05hello");
	WIRE_UNTIL(&f.w, peer_has(&f, "\x81\x05hello"));
	peer_say(&f, "back");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "back"));
	shutdown(f.w.fd, SHUT_WR);
	for (int i = 0; i < 20; i++)
		wire_turn(&f.w);
	cr_assert_eq(recv(f.peer, &c, 1, 0), 0, "the half-close did not pass");
	peer_say(&f, " still");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "back still"));
	cr_assert_eq(f.table.ends, 0);
	peer_close(&f);
	WIRE_UNTIL(&f.w, f.w.eof && f.table.ends == 1);
	stop(&f);
}

Test(gateway_upgrade, a_refused_upgrade_is_an_ordinary_answer)
{
	struct fixture f = { 0 };

	start(&f);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" USER
		       "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "HTTP/1.1 200 OK") && wire_got(&f.w, "hello"));
	wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "\r\n");
	WIRE_UNTIL(&f.w, wire_count(&f.w, "hello") == 2);
	stop(&f);
}

Test(gateway_upgrade, a_101_nobody_asked_for_is_502)
{
	struct fixture f = { 0 };

	start(&f);
	go_raw(&f);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "\r\n");
	WIRE_UNTIL(&f.w, peer_has(&f, "\r\n\r\n"));
	peer_say(&f, "HTTP/1.1 101 Switching Protocols\r\n\r\nraw");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "HTTP/1.1 502 "));
	stop(&f);
}

Test(gateway_upgrade, a_client_that_resets_takes_the_sandbox_along)
{
	struct fixture f = { 0 };
	struct linger now = { .l_onoff = 1, .l_linger = 0 };
	char c;
	ssize_t n = -1;

	start(&f);
	go_raw(&f);
	wire_say(&f.w,
		 "GET / HTTP/1.1\r\n" USER "Connection: Upgrade\r\nUpgrade: x\r\n\r\n");
	WIRE_UNTIL(&f.w, peer_has(&f, "\r\n\r\n"));
	peer_say(&f, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: "
		     "Upgrade\r\n\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "\r\n\r\n"));
	setsockopt(f.w.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	wire_close(&f.w);
	WIRE_UNTIL(&f.w, f.table.ends == 1);
	for (int i = 0; i < 20; i++)
		wire_turn(&f.w);
	n = recv(f.peer, &c, 1, 0);
	cr_assert(n == 0 || (n < 0 && errno == ECONNRESET));
	stop(&f);
}

/* ---- refusals ---- */

Test(gateway_refuse, bodies_and_codes_are_the_contracts)
{
	static const struct {
		const char *request, *status, *body;
	} rows[] = {
		{ "GET / HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: "
		  "nope\r\nE2b-Sandbox-Port: 80\r\n\r\n",
		  "502",
		  "{\"sandboxId\":\"nope\",\"message\":\"The sandbox was not "
		  "found\",\"code\":502}" },
		{ "GET / HTTP/1.1\r\nHost: 49983-nope.x\r\n\r\n", "502",
		  "{\"sandboxId\":\"nope\",\"message\":\"The sandbox was not "
		  "found\",\"code\":502}" },
		{ "GET /sandboxes/nope/80/ HTTP/1.1\r\nHost: x\r\n\r\n", "502",
		  "{\"error\":\"The sandbox was not found\",\"sandboxId\":\"nope\","
		  "\"message\":\"The sandbox was not found\",\"code\":502}" },
		{ "GET / HTTP/1.1\r\nHost: 80-starting.x\r\n\r\n", "502",
		  "{\"sandboxId\":\"starting\",\"message\":\"The sandbox is not "
		  "running\",\"code\":502}" },
		{ "GET / HTTP/1.1\r\nHost: 80-stopping.x\r\n\r\n", "502",
		  "{\"sandboxId\":\"stopping\",\"message\":\"The sandbox is not "
		  "running\",\"code\":502}" },
		{ "GET / HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: abc\r\n\r\n", "400",
		  "missing header" },
		{ "GET / HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: a/b\r\nE2b-Sandbox-Port: "
		  "80\r\n\r\n",
		  "400", "Invalid sandbox ID" },
		{ "GET / HTTP/1.1\r\nHost: 70000-abc.x\r\n\r\n", "400",
		  "Invalid sandbox port" },
		{ "GET / HTTP/1.1\r\nHost: x\r\nx-sandbox-id: abc\r\nx-sandbox-port: "
		  "x\r\n\r\n",
		  "400", "{\"error\":\"invalid sandbox port\"}" },
		{ "POST /init?a=1 HTTP/1.1\r\nHost: 49983-abc.x\r\n\r\n", "404",
		  "{\"message\":\"not found\",\"path\":\"/init\",\"code\":404}" },
		{ "POST /x/%2e%2e/%69nit HTTP/1.1\r\nHost: 49983-nope.x\r\n\r\n", "404",
		  "{\"message\":\"not "
		  "found\",\"path\":\"/x/%2e%2e/%69nit\",\"code\":404}" },
		{ "POST /%6 HTTP/1.1\r\nHost: 49983-abc.x\r\n\r\n", "400",
		  "{\"sandboxId\":\"abc\",\"message\":\"The path's percent encoding is "
		  "broken\",\"code\":400}" },
	};
	struct fixture f = { 0 };

	start(&f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char status[32];

		abx__buf_clear(&f.w.got);
		snprintf(status, sizeof(status), "HTTP/1.1 %s ", rows[i].status);
		wire_say(&f.w, rows[i].request);
		WIRE_UNTIL(&f.w, wire_got(&f.w, rows[i].body));
		cr_assert(wire_got(&f.w, status), "row %zu: %s", i, f.w.got.data);
	}
	cr_assert_eq(f.served, 0);
	cr_assert_eq(f.engine.connects, 0);
	cr_assert_eq(f.table.touches, 0);
	stop(&f);
}

Test(gateway_refuse, control_routes_are_free_on_other_ports)
{
	struct fixture f = { 0 };

	start(&f);
	wire_say(&f.w, "GET /init HTTP/1.1\r\n" USER "\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "hello"));
	stop(&f);
}

Test(gateway_refuse, a_closed_port_is_502_after_five_tries_with_growing_waits)
{
	struct fixture f = { .opts.retry_ms = 20 };
	int64_t begun;

	start(&f);
	f.engine.fail_code = ABX_EUNAVAILABLE;
	begun = abx__mono_ms();
	wire_say(&f.w, "GET / HTTP/1.1\r\nHost: 8000-abc.x\r\n\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "HTTP/1.1 502 "));
	cr_assert(wire_got(&f.w, "{\"sandboxId\":\"abc\",\"message\":\"The sandbox is "
				 "running but port is not "
				 "open\",\"port\":8000,\"code\":502}"));
	cr_assert_eq(f.engine.connects, 5);
	cr_assert_geq(abx__mono_ms() - begun, 195);
	stop(&f);
}

Test(gateway_refuse, a_port_that_opens_meanwhile_is_reached)
{
	struct fixture f = { 0 };

	start(&f);
	f.engine.fail_first = 3;
	wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "hello"));
	cr_assert_eq(f.engine.connects, 4);
	stop(&f);
}

Test(gateway_refuse, other_failures_of_the_engine)
{
	static const struct {
		int code;
		const char *status, *message;
	} rows[] = {
		{ ABX_ENOTFOUND, "HTTP/1.1 502 ", "The sandbox was not found" },
		{ ABX_EIO, "HTTP/1.1 502 ", "The sandbox could not be reached" },
	};
	struct fixture f = { 0 };

	start(&f);
	for (size_t i = 0; i < 2; i++) {
		abx__buf_clear(&f.w.got);
		f.engine.fail_code = rows[i].code;
		wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "\r\n");
		WIRE_UNTIL(&f.w, wire_got(&f.w, rows[i].message));
		cr_assert(wire_got(&f.w, rows[i].status));
	}
	cr_assert_eq(f.engine.connects, 2);
	stop(&f);
}

Test(gateway_refuse,
     a_connect_that_hangs_is_504_and_a_client_that_leaves_meanwhile_is_fine)
{
	struct fixture f = { .opts.connect_ms = 40 };

	start(&f);
	f.engine.silent = true;
	wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "HTTP/1.1 504 "));
	wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "\r\n");
	WIRE_UNTIL(&f.w, f.engine.connects == 2);
	wire_close(&f.w);
	WIRE_UNTIL(&f.w, f.table.ends == 2);
	stop(&f);
	cr_assert_eq(f.engine.pending, 0);
}

Test(gateway_refuse, an_answer_that_is_not_http_is_502)
{
	struct fixture f = { 0 };

	start(&f);
	go_raw(&f);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "\r\n");
	WIRE_UNTIL(&f.w, peer_has(&f, "\r\n\r\n"));
	peer_say(&f, "SSH-2.0-OpenSSH\r\n\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "HTTP/1.1 502 "));
	cr_assert(wire_got(&f.w, "The sandbox's answer on the port is broken"));
	stop(&f);
}

static int check_key(void *userdata, const abx__http_req *req, const char *key,
		     const abx__sandbox_rec *sandbox)
{
	(void)userdata;
	(void)req;
	(void)sandbox;
	return key && strcmp(key, "good") == 0 ? ABX_OK : ABX_EUNAUTHENTICATED;
}

Test(gateway_refuse, keys_are_checked_when_asked_for_and_never_passed_on)
{
	struct fixture f = { .opts.check_key = check_key };

	start(&f);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "HTTP/1.1 401 "));
	abx__buf_clear(&f.w.got);
	wire_say(&f.w, "GET / HTTP/1.1\r\nHost: 80-nope.x\r\nX-API-Key: bad\r\n\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "HTTP/1.1 401 "));
	wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "X-API-Key: good\r\n\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "hello"));
	cr_assert_null(strstr(f.head, "good"));
	stop(&f);
}

/* ---- closing ---- */

Test(gateway_close, with_everything_under_way_nothing_is_left)
{
	struct fixture f = { 0 };

	start(&f);
	wire_say(&f.w, "GET /stream HTTP/1.1\r\n" ENVD "\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "\r\n\r\n"));
	f.engine.silent = true;
	wire_done(&f.w);
	wire_open(&f.w, &f.loop, f.front_port);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "\r\n");
	WIRE_UNTIL(&f.w, f.engine.connects == 2);
	stop(&f);
}

/* ---- arming ---- */

static void armed(void *userdata, int r, const abx_error *err)
{
	struct fixture *f = userdata;

	f->armed++;
	f->armed_r = r;
	snprintf(f->armed_text, sizeof(f->armed_text), "%s",
		 err ? abx_error_message(err) : "");
}

static void arm(struct fixture *f, uint64_t deadline_ms)
{
	abx__runtime *runtime = abx__gateway_runtime(f->gateway);

	runtime->ops->arm(runtime, "ns", "abc", 49983, "{\"a\":1}", 7, deadline_ms, armed,
			  f);
}

Test(gateway_arm, init_is_posted_and_204_is_success_over_a_kept_connection)
{
	struct fixture f = { 0 };

	start(&f);
	go_raw(&f);
	for (int i = 1; i <= 2; i++) {
		arm(&f, 2000);
		WIRE_UNTIL(&f.w, peer_has(&f, "{\"a\":1}"));
		cr_assert(peer_has(&f, "POST /init HTTP/1.1\r\n"));
		cr_assert(peer_has(
			&f,
			"Content-Type: application/json\r\nContent-Length: 7\r\n\r\n"));
		abx__buf_clear(&f.peer_got);
		peer_say(&f, "HTTP/1.1 204 No Content\r\n\r\n");
		WIRE_UNTIL(&f.w, f.armed == i);
		cr_assert_eq(f.armed_r, ABX_OK);
	}
	cr_assert_eq(f.engine.connects, 1);
	stop(&f);
}

Test(gateway_arm, a_refusal_carries_envds_words)
{
	struct fixture f = { 0 };

	start(&f);
	go_raw(&f);
	arm(&f, 2000);
	WIRE_UNTIL(&f.w, peer_has(&f, "{\"a\":1}"));
	peer_say(&f, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 9\r\n\r\nno access");
	WIRE_UNTIL(&f.w, f.armed == 1);
	cr_assert_eq(f.armed_r, ABX_EPROTO);
	cr_assert_str_eq(f.armed_text, "arm Pod ns/abc: envd answered 401: no access");
	stop(&f);
}

Test(gateway_arm, a_runtime_that_is_not_up_yet_is_waited_for)
{
	struct fixture f = { 0 };

	start(&f);
	go_raw(&f);
	f.engine.fail_first = 4;
	arm(&f, 2000);
	WIRE_UNTIL(&f.w, peer_has(&f, "{\"a\":1}"));
	peer_say(&f, "HTTP/1.1 204 No Content\r\n\r\n");
	WIRE_UNTIL(&f.w, f.armed == 1);
	cr_assert_eq(f.armed_r, ABX_OK);
	stop(&f);
}

Test(gateway_arm, deadlines_and_lost_connections_have_their_codes)
{
	struct fixture f = { 0 };

	start(&f);
	go_raw(&f);
	arm(&f, 50); /* nobody answers */
	WIRE_UNTIL(&f.w, f.armed == 1);
	cr_assert_eq(f.armed_r, ABX_ETIMEDOUT);
	f.engine.fail_code = ABX_EUNAVAILABLE;
	arm(&f, 50); /* nobody listens */
	WIRE_UNTIL(&f.w, f.armed == 2);
	cr_assert(f.armed_r == ABX_EUNAVAILABLE || f.armed_r == ABX_ETIMEDOUT);
	f.engine.fail_code = 0;
	f.peer = -1;
	close(accept(f.listener, NULL, NULL));
	arm(&f, 2000);
	WIRE_UNTIL(&f.w, peer_has(&f, "{\"a\":1}"));
	peer_close(&f);
	WIRE_UNTIL(&f.w, f.armed == 3);
	cr_assert_eq(f.armed_r, ABX_EUNAVAILABLE);
	arm(&f, 2000);
	abx__gateway_runtime(f.gateway)->ops->forget(abx__gateway_runtime(f.gateway),
						     "ns", "abc");
	stop(&f);
	cr_assert_eq(f.armed, 4);
	cr_assert_eq(f.armed_r, ABX_ECANCELED);
}

Test(gateway_fault, failing_allocations_end_in_an_answer_or_a_closed_connection)
{
	for (unsigned n = 0; n < 60; n++) {
		struct fixture f = { 0 };
		int64_t end;

		start(&f);
		wire_turn(&f.w);
		wire_say(&f.w, "GET / HTTP/1.1\r\n" ENVD "Connection: close\r\n\r\n");
		abx__test_fail_alloc_after(n);
		for (int i = 0; i < 12; i++)
			uv_run(&f.loop, UV_RUN_NOWAIT);
		abx__test_alloc_reset();
		end = abx__mono_ms() + 2000;
		while (!f.w.eof && !f.w.reset && abx__mono_ms() < end)
			wire_turn(&f.w);
		cr_assert(f.w.eof || f.w.reset, "allocation %u: no end", n);
		stop(&f);
	}
}
