/*
 * The HTTP server: answers that stream, held back by their reader, and connections that
 * are upgraded.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http-fixture.h"

/* ---- streaming answers ---- */

Test(io_http_server, the_head_of_a_stream_leaves_before_its_first_byte)
{
	struct fixture f = { 0 };

	fixture_start(&f, fixture_stream);
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, fixture_got(&f, "\r\n\r\n"));
	fixture_stop(&f);
}

Test(io_http_server, a_vanished_client_of_a_silent_stream_is_noticed)
{
	struct fixture f = { 0 };

	fixture_start(&f, fixture_stream);
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, fixture_got(&f, "\r\n\r\n"));
	close(f.fd);
	f.fd = -1;
	UNTIL(&f, f.closed == 1);
	cr_assert_eq(f.answered, 0);
	fixture_stop(&f);
}

struct flood {
	struct fixture *f;
	size_t left, most_queued;
	int drains, refs_done;
	char *piece;
};

static void ref_done(void *userdata)
{
	struct flood *flood = userdata;

	flood->refs_done++;
}

static void pour(abx__http_req *req, void *userdata)
{
	struct flood *flood = userdata;

	flood->drains++;
	while (flood->left > 0 && abx__http_res_queued(req) <= 256 * 1024) {
		cr_assert_eq(abx__http_res_write_ref(req, flood->piece, 65536, ref_done,
						     flood),
			     ABX_OK);
		flood->left -= 65536;
		if (abx__http_res_queued(req) > flood->most_queued)
			flood->most_queued = abx__http_res_queued(req);
	}
	if (flood->left == 0 && flood->drains > 0 && !flood->f->body_ends++)
		cr_assert_eq(abx__http_res_end(req), ABX_OK);
}

static void flood_handler(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;
	struct flood *flood = (struct flood *)(void *)f->body.data;

	abx__http_req_on_closed(req, fixture_closed, f);
	abx__http_res_begin(req, 200, (int64_t)flood->left);
	abx__http_res_on_drain(req, 128 * 1024, pour, flood);
}

Test(io_http_server, a_slow_reader_holds_a_stream_back_and_drain_goes_on)
{
	struct fixture f = { 0 };
	struct flood flood = { .f = &f, .left = 32 << 20, .piece = calloc(1, 65536) };
	char *save;

	fixture_start(&f, flood_handler);
	save = f.body.data;
	f.body.data = (char *)&flood;
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	for (int i = 0; i < 300; i++)
		uv_run(&f.loop, UV_RUN_NOWAIT);
	cr_assert_gt(flood.left, 0, "nothing held the stream back");
	cr_assert_eq(f.closed, 0);
	UNTIL(&f, f.answered == 1);
	UNTIL(&f, f.got.len > (32 << 20));
	cr_assert_eq(flood.refs_done, (32 << 20) / 65536);
	cr_assert_leq(flood.most_queued, 256 * 1024 + 2 * 65536);
	cr_assert_gt(flood.drains, 2);
	f.body.data = save;
	fixture_stop(&f);
	free(flood.piece);
}

Test(io_http_server, references_are_given_back_when_the_client_goes)
{
	struct fixture f = { 0 };
	struct flood flood = { .f = &f, .left = 4 << 20, .piece = calloc(1, 65536) };
	int given;

	fixture_start(&f, flood_handler);
	f.body.data = (char *)&flood;
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	for (int i = 0; i < 100; i++)
		uv_run(&f.loop, UV_RUN_NOWAIT);
	close(f.fd);
	f.fd = -1;
	UNTIL(&f, f.closed == 1);
	given = ((4 << 20) - (int)flood.left) / 65536;
	cr_assert_eq(flood.refs_done, given);
	f.body.data = NULL;
	fixture_stop(&f);
	free(flood.piece);
}

Test(io_http_server, an_answer_may_be_sent_much_later)
{
	struct fixture f = { 0 };

	fixture_start(&f, fixture_keep);
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, f.req);
	for (int i = 0; i < 20; i++)
		fixture_turn(&f);
	cr_assert_eq(f.closed, 0);
	abx__http_res_send(f.req, 200, NULL, "late", 4);
	cr_assert_eq(f.closed, 0, "closed ran inside the handler's call");
	UNTIL(&f, fixture_got(&f, "late") && f.answered == 1);
	fixture_stop(&f);
}

Test(io_http_server, a_client_that_takes_nothing_is_dropped)
{
	struct fixture f = { 0 };
	struct flood flood = { .f = &f, .left = 32 << 20, .piece = calloc(1, 65536) };
	int fd;

	fixture_start_with(&f, (abx__http_server_options){ .on_request = flood_handler,
							   .idle_timeout_ms = 80 });
	f.body.data = (char *)&flood;
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	fd = f.fd;
	f.fd = -1;
	UNTIL(&f, f.closed == 1);
	cr_assert_eq(f.answered, 0);
	close(fd);
	f.body.data = NULL;
	fixture_stop(&f);
	free(flood.piece);
}

/* ---- upgrades ---- */

static void raw_body(abx__http_req *req, const char *data, size_t len, int r,
		     void *userdata)
{
	struct fixture *f = userdata;

	f->body_r = r;
	if (!data) {
		f->body_ends++;
		if (r == ABX_OK) {
			abx__http_res_write(req, "bye", 3);
			abx__http_res_end(req);
		}
		return;
	}
	abx__http_res_write(req, data, len);
}

static void hijack(abx__http_req *req, void *userdata)
{
	struct fixture *f = userdata;

	f->calls++;
	abx__http_req_on_closed(req, fixture_closed, f);
	cr_assert(abx__http_req_is_upgrade(req));
	cr_assert_eq(abx__http_req_hijack(req), ABX_OK);
	abx__http_res_write(req, "HTTP/1.1 101 Switching Protocols\r\n\r\n", 36);
	abx__http_req_read(req, raw_body, f);
}

static const char upgrade[] =
	"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nearly";

Test(io_http_server, a_hijacked_connection_is_raw_and_half_closes)
{
	struct fixture f = { 0 };

	fixture_start(&f, hijack);
	fixture_say(&f, upgrade);
	UNTIL(&f, fixture_got(&f, "\r\n\r\nearly"));
	fixture_say(&f, " bird");
	UNTIL(&f, fixture_got(&f, "early bird"));
	shutdown(f.fd, SHUT_WR);
	UNTIL(&f, f.eof);
	cr_assert(fixture_got(&f, "early birdbye"));
	UNTIL(&f, f.closed == 1);
	cr_assert_eq(f.answered, 1);
	fixture_stop(&f);
}

Test(io_http_server, a_reset_of_a_hijacked_connection_is_an_error)
{
	struct fixture f = { 0 };
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	fixture_start(&f, hijack);
	fixture_say(&f, upgrade);
	UNTIL(&f, fixture_got(&f, "early"));
	setsockopt(f.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(f.fd);
	f.fd = -1;
	UNTIL(&f, f.closed == 1);
	cr_assert_eq(f.body_r, ABX_EIO);
	cr_assert_eq(f.answered, 0);
	fixture_stop(&f);
}
