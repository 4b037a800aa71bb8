/*
 * The data plane for clients of HTTP/2: the sandbox is spoken to as ever.
 */
#include "fixture.h"
#include "h2-wire.h"

static const char *const to_envd[] = { "e2b-sandbox-id", "abc", "e2b-sandbox-port",
				       "49983", NULL };

static bool has(const abx__buf *buf, const char *text)
{
	return strstr(abx__buf_str(buf), text) != NULL;
}

static void open_h2(struct fixture *f, struct h2_wire *w)
{
	fixture_start(f);
	h2_wire_open(w, &f->loop, f->front_port);
}

static void done(struct fixture *f, struct h2_wire *w)
{
	wire_close(&w->wire);
	fixture_stop(f);
	h2_wire_done(w);
}

Test(gateway_h2, requests_of_every_kind_pass)
{
	size_t len = 900000;
	char *big = abx__calloc(1, len);
	struct fixture f = { 0 };
	struct h2_wire w;
	struct h2_answer *get, *post, *long_one, *lost;

	open_h2(&f, &w);
	get = h2_ask_with(&w, "GET", "/a%20b?x=1", NULL, 0, false, to_envd);
	H2_UNTIL(&w, get->closed);
	cr_assert_eq(get->status, 200);
	cr_assert_str_eq(abx__buf_str(&get->body), "hello");
	cr_assert(strstr(f.head, "GET /a%20b?x=1\n"), "%s", f.head);
	cr_assert(strstr(f.head, "host=test\n"), "%s", f.head);
	post = h2_ask_with(&w, "POST", "/", "body", 4, false, to_envd);
	H2_UNTIL(&w, post->closed);
	cr_assert_str_eq(abx__buf_str(&post->body), "body");
	memset(big, 'b', len);
	long_one = h2_ask_with(&w, "POST", "/", big, len, false, to_envd);
	H2_UNTIL(&w, long_one->closed);
	cr_assert_eq(long_one->status, 200);
	cr_assert_eq(long_one->body.len, len);
	cr_assert_eq(memcmp(long_one->body.data, big, len), 0);
	lost = h2_ask(&w, "GET", "/sandboxes/unknown/8080/x", NULL);
	H2_UNTIL(&w, lost->closed);
	cr_assert_eq(lost->status, 502);
	cr_assert(has(&lost->body, "The sandbox was not found"));
	abx__free(big);
	done(&f, &w);
}

Test(gateway_h2, hundred_streams_share_a_connection)
{
	struct fixture f = { 0 };
	struct h2_wire w;
	struct h2_answer *a[100];

	open_h2(&f, &w);
	for (int i = 0; i < 100; i++)
		a[i] = h2_ask_with(&w, "POST", "/", "body", 4, false, to_envd);
	for (int i = 0; i < 100; i++) {
		H2_UNTIL(&w, a[i]->closed);
		cr_assert_eq(a[i]->status, 200);
		cr_assert_str_eq(abx__buf_str(&a[i]->body), "body");
	}
	cr_assert_eq(f.served, 100);
	done(&f, &w);
}

Test(gateway_h2, a_long_answer_streams_and_a_reset_reaches_the_sandbox)
{
	struct fixture f = { .swallowed = 5000000 };
	struct h2_wire w;
	struct h2_answer *a;

	open_h2(&f, &w);
	a = h2_ask_with(&w, "GET", "/flood", NULL, 0, false, to_envd);
	H2_UNTIL(&w, a->closed);
	cr_assert_eq(a->body.len, 5000000);
	f.swallowed = 500000000;
	w.no_window = true;
	a = h2_ask_with(&w, "GET", "/flood", NULL, 0, false, to_envd);
	H2_UNTIL(&w, a->body.len > 20000);
	for (int i = 0; i < 100; i++)
		h2_wire_turn(&w);
	cr_assert_gt(f.swallowed, 450000000, "the sandbox was not held back");
	nghttp2_submit_rst_stream(w.ng, NGHTTP2_FLAG_NONE, a->id, NGHTTP2_CANCEL);
	H2_UNTIL(&w, f.gone == 1);
	done(&f, &w);
}

Test(gateway_h2, trailers_pass_both_ways)
{
	struct fixture f = { 0 };
	struct h2_wire w;
	struct h2_answer *a;
	nghttp2_nv sum = H2_FIELD("x-sum", "7");

	open_h2(&f, &w);
	fixture_go_raw(&f);
	a = h2_ask_with(&w, "POST", "/x", "", 0, true, to_envd);
	H2_UNTIL(&w, peer_has(&f, "Transfer-Encoding: chunked\r\n"));
	a->data = "abc";
	a->left = 3;
	nghttp2_session_resume_data(w.ng, a->id);
	H2_UNTIL(&w, peer_has(&f, "3\r\nabc\r\n"));
	nghttp2_submit_trailer(w.ng, a->id, &sum, 1);
	H2_UNTIL(&w, peer_has(&f, "0\r\nx-sum: 7\r\n\r\n"));
	peer_say(&f, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		     "4\r\nbody\r\n0\r\nGrpc-Status: 0\r\n\r\n");
	H2_UNTIL(&w, a->closed);
	cr_assert_eq(a->status, 200);
	cr_assert_str_eq(abx__buf_str(&a->body), "body");
	cr_assert_str_eq(abx__buf_str(&a->trailers), "grpc-status: 0\n");
	done(&f, &w);
}

Test(gateway_h2, an_upgrade_the_sandbox_makes_unasked_is_502)
{
	struct fixture f = { 0 };
	struct h2_wire w;
	struct h2_answer *a;

	open_h2(&f, &w);
	fixture_go_raw(&f);
	a = h2_ask_with(&w, "GET", "/ws", NULL, 0, false, to_envd);
	H2_UNTIL(&w, peer_has(&f, "\r\n\r\n"));
	peer_say(&f, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nraw");
	H2_UNTIL(&w, a->closed);
	cr_assert_eq(a->status, 502);
	done(&f, &w);
}
