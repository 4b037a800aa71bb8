/*
 * http-fixture.h - the HTTP server with one raw client. A test is one thread: the
 * client's descriptor is polled between turns of the loop.
 */
#ifndef ABX_TESTS_IO_HTTP_FIXTURE_H
#define ABX_TESTS_IO_HTTP_FIXTURE_H

#include <criterion/criterion.h>

#include "base/buf.h"
#include "base/clock.h"
#include "io/http-server.h"

struct fixture {
	uv_loop_t loop;
	abx__http_server *server;
	uint16_t port;
	int fd; /* the client's */
	abx__buf got;
	bool eof, reset;
	bool server_closed;
	/* what handlers left */
	int calls, closed, answered;
	abx__http_req *req;
	abx__buf body;
	int body_r, body_ends;
	size_t limit;
};

void fixture_start(struct fixture *f, abx__http_handler handler);
/* `loop` and `userdata` are set here. */
void fixture_start_with(struct fixture *f, abx__http_server_options opts);
/* Closes the server; nothing may be left open. */
void fixture_stop(struct fixture *f);
void fixture_turn(struct fixture *f);
void fixture_say(struct fixture *f, const char *text);
/* Whether, and how often, the client has been sent `text`. */
bool fixture_got(const struct fixture *f, const char *text);
int fixture_count(const struct fixture *f, const char *text);

/* Turns the loop until `cond` holds, at most three seconds. */
#define UNTIL(f, cond)                                                \
	do {                                                          \
		int64_t end__ = abx__mono_ms() + 3000;                \
		while (!(cond) && abx__mono_ms() < end__)             \
			fixture_turn(f);                              \
		cr_assert(cond, "not within 3 s: %s; got: %s", #cond, \
			  abx__buf_str(&(f)->got));                   \
	} while (0)

/* ---- handlers; all count calls and ends ---- */

void fixture_closed(abx__http_req *req, bool answered, void *userdata);
void fixture_hello(abx__http_req *req, void *userdata);
void fixture_keep(abx__http_req *req, void *userdata); /* for the test to answer */
/* The same, with a streamed answer begun. */
void fixture_stream(abx__http_req *req, void *userdata);
void fixture_echo(abx__http_req *req, void *userdata); /* the body */

#endif
