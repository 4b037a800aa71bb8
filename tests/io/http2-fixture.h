/*
 * http2-fixture.h - the HTTP server with one HTTP/2 client, on one loop.
 */
#ifndef TESTS_IO_HTTP2_FIXTURE_H
#define TESTS_IO_HTTP2_FIXTURE_H

#include <criterion/criterion.h>

#include "base/buf.h"
#include "h2-wire.h"
#include "io/http-server.h"

struct h2_fixture {
	uv_loop_t loop;
	abx__http_server *server;
	uint16_t port;
	struct h2_wire w;
	bool server_closed;
	/* what handlers left */
	int calls, closed, answered, read_ends, read_r;
	abx__http_req *req;
	size_t body_bytes;
	uint64_t sum;
	abx__buf seen;
	size_t queued_most, to_write;
	char *big;
};

void h2_start(struct h2_fixture *f, abx__http_handler handler);
/* `loop`, `userdata` and `http2` are set here. */
void h2_start_with(struct h2_fixture *f, abx__http_server_options opts);
/* Closes client and server; nothing may be left open. */
void h2_stop(struct h2_fixture *f);

/* Notes the end of a request: for abx__http_req_on_closed(). */
void h2_on_closed(abx__http_req *req, bool answered, void *userdata);
/* A handler that answers with what it was asked. */
void h2_describe(abx__http_req *req, void *userdata);
/* One that keeps the request in `req` and answers nothing. */
void h2_keep(abx__http_req *req, void *userdata);
/* One that adds the body's bytes up and answers at its end. */
void h2_sum(abx__http_req *req, void *userdata);
void h2_on_server_closed(void *userdata);
/* Asks METHOD / with this body, which may be NULL, and waits for this status. */
struct h2_answer *h2_expect(struct h2_fixture *f, const char *method, const char *body,
			    int status);
bool h2_has(const abx__buf *buf, const char *text);

#endif
