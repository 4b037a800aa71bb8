/*
 * The data plane over real sockets: what passes, how it streams, upgrades, the end.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"

/* ---- passing ---- */

Test(gateway_pass, all_forms_reach_the_sandbox_with_path_and_query)
{
	static const char *const rows[] = {
		"GET /a%20b?x=1 HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: "
		"abc\r\nE2b-Sandbox-Port: 8000\r\n\r\n",
		"GET /a%20b?x=1 HTTP/1.1\r\nHost: x\r\nx-sandbox-id: "
		"abc\r\nx-sandbox-port: 8000\r\n\r\n",
		"GET /a%20b?x=1 HTTP/1.1\r\nHost: 8000-abc.local\r\n\r\n",
		"GET /a%20b?x=1 HTTP/1.1\r\nHost: 8000-abc-00000000.local\r\n\r\n",
		"GET /sandboxes/abc/8000/a%20b?x=1 HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /agent-sandbox/api/data/sandboxes/abc/8000/a%20b?x=1 "
		"HTTP/1.1\r\nHost: x\r\n\r\n",
	};
	struct fixture f = { 0 };

	fixture_start(&f);
	for (int i = 0; i < 6; i++) {
		wire_say(&f.w, rows[i]);
		WIRE_UNTIL(&f.w, wire_count(&f.w, "hello") == i + 1);
		cr_assert(strstr(f.head, "GET /a%20b?x=1\n"), "%s", f.head);
	}
	cr_assert_eq(f.table.touches, 6);
	cr_assert_eq(f.table.begins, 6);
	WIRE_UNTIL(&f.w, f.table.ends == 6);
	ASK(&f, "GET /v1/envs HTTP/1.1\r\nHost: x\r\n\r\n", "other");
	fixture_stop(&f);
}

Test(gateway_pass, headers_go_through_but_for_the_connections_own)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	ASK(&f,
	    "POST /x HTTP/1.1\r\n" USER
	    "X-Access-Token: t\r\nConnection: X-Drop, keep-alive\r\nX-Drop: "
	    "1\r\nKeep-Alive: 5\r\n"
	    "TE: trailers\r\nProxy-Connection: x\r\nAGENTBOX-API-KEY: "
	    "secret\r\nX-Api-Key: mine\r\n"
	    "Content-Length: 3\r\n\r\nabc",
	    "\r\n\r\nabc");
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
	fixture_stop(&f);
}

Test(gateway_pass, connections_to_the_runtime_are_kept_and_others_not)
{
	struct fixture f = { 0 };

	fixture_start(&f);
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
	fixture_stop(&f);
}

Test(gateway_pass, what_is_forgotten_is_not_used_again)
{
	struct fixture f = { 0 };
	abx__runtime *runtime;

	fixture_start(&f);
	runtime = abx__gateway_runtime(f.gateway);
	ASK(&f, "GET / HTTP/1.1\r\n" ENVD "\r\n", "hello");
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
	fixture_stop(&f);
}

/* A raw sandbox that has answered one request; the connection is kept. */
static void start_with_a_kept_one(struct fixture *f)
{
	fixture_start(f);
	fixture_go_raw(f);
	wire_say(&f->w, "GET / HTTP/1.1\r\n" ENVD "\r\n");
	WIRE_UNTIL(&f->w, peer_has(f, "\r\n\r\n"));
	peer_say(f, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none");
	WIRE_UNTIL(&f->w, wire_got(&f->w, "one"));
}

Test(gateway_pass, a_kept_connection_that_went_stale_is_replaced)
{
	struct fixture f = { 0 };

	start_with_a_kept_one(&f);
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
	fixture_stop(&f);
}

Test(gateway_pass, a_request_whose_body_was_read_is_not_sent_twice)
{
	struct fixture f = { 0 };

	start_with_a_kept_one(&f);
	wire_say(&f.w, "POST /second HTTP/1.1\r\n" ENVD "Content-Length: 3\r\n\r\nabc");
	WIRE_UNTIL(&f.w, peer_has(&f, "\r\n\r\nabc"));
	peer_close(&f);
	WIRE_UNTIL(&f.w, wire_got(&f.w, "HTTP/1.1 502 "));
	cr_assert_eq(f.engine.connects, 1);
	fixture_stop(&f);
}

Test(gateway_pass, kept_connections_are_closed_after_a_while)
{
	struct fixture f = { .opts.kept_ms = 40 };
	int64_t end;

	fixture_start(&f);
	ASK(&f, "GET / HTTP/1.1\r\n" ENVD "\r\n", "hello");
	for (end = abx__mono_ms() + 150; abx__mono_ms() < end;)
		wire_turn(&f.w);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" ENVD "\r\n");
	WIRE_UNTIL(&f.w, wire_count(&f.w, "hello") == 2);
	cr_assert_eq(f.engine.connects, 2);
	fixture_stop(&f);
}

Test(gateway_pass, head_204_and_http_1_0)
{
	struct fixture f = { 0 };

	fixture_start(&f);
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
	fixture_stop(&f);
}

Test(gateway_pass, an_answer_that_ends_with_the_sandboxs_connection)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	fixture_go_raw(&f);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "\r\n");
	WIRE_UNTIL(&f.w, peer_has(&f, "\r\n\r\n"));
	peer_say(&f, "HTTP/1.0 200 OK\nContent-Type: text/html\n\n<p>");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "3\r\n<p>\r\n"));
	peer_close(&f);
	WIRE_UNTIL(&f.w, wire_got(&f.w, "\r\n0\r\n\r\n"));
	fixture_stop(&f);
}

Test(gateway_pass, interim_answers_pass_and_100_is_not_doubled)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	fixture_go_raw(&f);
	ASK(&f,
	    "POST / HTTP/1.1\r\n" USER
	    "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n",
	    "100 Continue");
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
	fixture_stop(&f);
}

/* ---- streaming ---- */

Test(gateway_stream, pieces_pass_as_they_come)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	ASK(&f, "GET /stream HTTP/1.1\r\n" ENVD "\r\n", "\r\n\r\n");
	for (int i = 1; i <= 3; i++) {
		abx__http_res_write(f.held, "tick", 4);
		WIRE_UNTIL(&f.w, wire_count(&f.w, "4\r\ntick\r\n") == i);
	}
	abx__http_res_end(f.held);
	WIRE_UNTIL(&f.w, wire_got(&f.w, "\r\n0\r\n\r\n"));
	fixture_stop(&f);
}

Test(gateway_stream, a_chunked_request_passes_as_it_comes)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	wire_say(&f.w,
		 "POST /swallow HTTP/1.1\r\n" ENVD "Transfer-Encoding: chunked\r\n\r\n");
	WIRE_UNTIL(&f.w, f.served == 1);
	wire_say(&f.w, "3\r\nabc\r\n");
	WIRE_UNTIL(&f.w, f.swallowed == 3);
	ASK(&f, "0\r\n\r\n", "swallowed");
	cr_assert(strstr(f.head, "Transfer-Encoding=chunked\n"));
	cr_assert_null(strstr(f.head, "Content-Length"));
	fixture_stop(&f);
}

Test(gateway_stream, a_sandbox_that_takes_nothing_holds_the_client_back)
{
	struct fixture f = { .pause_all = true };
	static char piece[65536];
	const size_t total = 64 << 20;
	size_t sent = 0;

	fixture_start(&f);
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
	fixture_stop(&f);
}

Test(gateway_stream, a_client_that_takes_nothing_holds_the_sandbox_back)
{
	const size_t total = 64 << 20;
	struct fixture f = { .swallowed = total };

	fixture_start(&f);
	f.w.deaf = true;
	wire_say(&f.w, "GET /flood HTTP/1.1\r\n" ENVD "\r\n");
	for (int i = 0; i < 500; i++)
		wire_turn(&f.w);
	cr_assert_gt(f.swallowed, 16 << 20, "nothing held the sandbox back");
	f.w.deaf = false;
	WIRE_UNTIL(&f.w, f.w.got.len > total && strcmp(f.w.got.data + f.w.got.len - 5,
						       "0\r\n\r\n") == 0);
	fixture_stop(&f);
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
	fixture_start(&f);
	fixture_go_raw(&f);
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
	fixture_stop(&f);
}

Test(gateway_stream, an_early_answer_passes_though_the_body_is_not_through)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	ASK(&f, "POST /early HTTP/1.1\r\n" ENVD "Content-Length: 1000000\r\n\r\nabc",
	    "HTTP/1.1 413 ");
	WIRE_UNTIL(&f.w, f.w.eof);
	fixture_stop(&f);
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

		fixture_start(&f);
		wire_say(&f.w, rows[i]);
		WIRE_UNTIL(&f.w, f.held);
		wire_close(&f.w);
		WIRE_UNTIL(&f.w, f.gone == 1);
		cr_assert_eq(f.table.begins, 1);
		cr_assert_eq(f.table.ends, 1);
		fixture_stop(&f);
	}
}

Test(gateway_stream, a_sandbox_that_breaks_off_breaks_the_answer)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	ASK(&f, "GET /stream HTTP/1.1\r\n" ENVD "\r\n", "\r\n\r\n");
	abx__http_res_abort(f.held);
	WIRE_UNTIL(&f.w, f.w.eof || f.w.reset);
	cr_assert_not(wire_got(&f.w, "0\r\n\r\n"));
	fixture_stop(&f);
}

Test(gateway_stream, broken_chunks_of_the_client_are_400)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	ASK(&f,
	    "POST /swallow HTTP/1.1\r\n" ENVD "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
	    "HTTP/1.1 400 ");
	WIRE_UNTIL(&f.w, f.gone == 1 || f.served == 0);
	fixture_stop(&f);
}

Test(gateway_stream, what_does_not_move_is_broken_off)
{
	struct fixture f = { .opts.idle_timeout_ms = 60 };

	fixture_start(&f);
	ASK(&f, "GET /hold HTTP/1.1\r\n" ENVD "\r\n", "HTTP/1.1 504 ");
	/* A sandbox that takes nothing of what waits for it, the answer begun or not. */
	f.pause_all = true;
	wire_say(&f.w,
		 "POST /swallow HTTP/1.1\r\n" ENVD "Content-Length: 100000000\r\n\r\n");
	f.w.reset = false;
	for (int64_t end = abx__mono_ms() + 5000;
	     !wire_got(&f.w, "HTTP/1.1 504 Gateway") ||
	     wire_count(&f.w, "HTTP/1.1 504 ") < 2;) {
		static char piece[65536];

		cr_assert_lt(abx__mono_ms(), end, "the stuck upload was not broken off");
		send(f.w.fd, piece, sizeof(piece), MSG_NOSIGNAL | MSG_DONTWAIT);
		wire_turn(&f.w);
		if (f.w.eof || f.w.reset)
			break;
	}
	fixture_stop(&f);
}

Test(gateway_stream, a_stream_under_way_may_be_silent)
{
	struct fixture f = { .opts.idle_timeout_ms = 40 };
	int64_t until;

	fixture_start(&f);
	ASK(&f, "GET /stream HTTP/1.1\r\n" ENVD "\r\n", "HTTP/1.1 200 ");
	until = abx__mono_ms() + 600;
	while (abx__mono_ms() < until)
		wire_turn(&f.w);
	cr_assert_not(f.w.eof || f.w.reset);
	abx__http_res_write(f.held, "data: late\n\n", 12);
	WIRE_UNTIL(&f.w, wire_got(&f.w, "data: late"));
	abx__http_res_end(f.held);
	WIRE_UNTIL(&f.w, wire_got(&f.w, "\r\n0\r\n\r\n"));
	fixture_stop(&f);
}

/* ---- trailers ---- */

Test(gateway_stream, trailers_pass_both_ways)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	fixture_go_raw(&f);
	wire_say(&f.w, "POST /x HTTP/1.1\r\n" USER "Trailer: X-Sum\r\n"
		       "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"
		       "X-Sum: 7\r\nContent-Length: 9\r\nHost: evil\r\n\r\n");
	WIRE_UNTIL(&f.w, peer_has(&f, "\r\n0\r\nX-Sum: 7\r\n\r\n"));
	cr_assert(peer_has(&f, "Trailer: X-Sum\r\n"));
	cr_assert_not(peer_has(&f, "evil"));
	peer_say(&f, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
		     "Trailer: grpc-status\r\n\r\n4\r\nbody\r\n0\r\n"
		     "grpc-status: 0\r\nX-More:  spaced \r\n\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "4\r\nbody\r\n0\r\ngrpc-status: 0\r\n"
					"X-More: spaced\r\n\r\n"));
	cr_assert(wire_got(&f.w, "Trailer: grpc-status\r\n"));
	fixture_stop(&f);
}

Test(gateway_stream, broken_trailers_of_the_sandbox_break_the_answer_off)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	fixture_go_raw(&f);
	wire_say(&f.w, "GET /x HTTP/1.1\r\n" USER "\r\n");
	WIRE_UNTIL(&f.w, peer_has(&f, "\r\n\r\n"));
	peer_say(&f, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		     "4\r\nbody\r\n0\r\nno colon\r\n\r\n");
	WIRE_UNTIL(&f.w, f.w.eof || f.w.reset);
	cr_assert_not(wire_got(&f.w, "0\r\n\r\n"));
	fixture_stop(&f);
}

/* ---- upgrades ---- */

Test(gateway_upgrade, a_websocket_passes_raw_and_half_closes)
{
	struct fixture f = { 0 };
	char c;

	fixture_start(&f);
	fixture_go_raw(&f);
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
	fixture_stop(&f);
}

Test(gateway_upgrade, a_refused_upgrade_is_an_ordinary_answer)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" USER
		       "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "HTTP/1.1 200 OK") && wire_got(&f.w, "hello"));
	wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "\r\n");
	WIRE_UNTIL(&f.w, wire_count(&f.w, "hello") == 2);
	fixture_stop(&f);
}

Test(gateway_upgrade, a_101_nobody_asked_for_is_502)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	fixture_go_raw(&f);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "\r\n");
	WIRE_UNTIL(&f.w, peer_has(&f, "\r\n\r\n"));
	peer_say(&f, "HTTP/1.1 101 Switching Protocols\r\n\r\nraw");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "HTTP/1.1 502 "));
	fixture_stop(&f);
}

Test(gateway_upgrade, a_client_that_resets_takes_the_sandbox_along)
{
	struct fixture f = { 0 };
	struct linger now = { .l_onoff = 1, .l_linger = 0 };
	char c;
	ssize_t n = -1;

	fixture_start(&f);
	fixture_go_raw(&f);
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
	fixture_stop(&f);
}

/* ---- closing ---- */

Test(gateway_close, with_everything_under_way_nothing_is_left)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	ASK(&f, "GET /stream HTTP/1.1\r\n" ENVD "\r\n", "\r\n\r\n");
	f.engine.silent = true;
	wire_done(&f.w);
	wire_open(&f.w, &f.loop, f.front_port);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "\r\n");
	WIRE_UNTIL(&f.w, f.engine.connects == 2);
	fixture_stop(&f);
}

Test(gateway_fault, failing_allocations_end_in_an_answer_or_a_closed_connection)
{
	for (unsigned n = 0; n < 60; n++) {
		struct fixture f = { 0 };
		int64_t end;

		fixture_start(&f);
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
		fixture_stop(&f);
	}
}
