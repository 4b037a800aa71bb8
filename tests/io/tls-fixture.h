/*
 * tls-fixture.h - the HTTP server below TLS, with one OpenSSL client, on one loop.
 */
#ifndef TESTS_IO_TLS_FIXTURE_H
#define TESTS_IO_TLS_FIXTURE_H

#include <criterion/criterion.h>
#include <openssl/ssl.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "io/http-server.h"
#include "io/tls-local.h"
#include "io/tls.h"
#include "wire.h"

/* What the fixture's certificate holds for. */
#define TLS_NAME_COUNT 5
extern const char *const tls_names[TLS_NAME_COUNT];

struct tls_fixture {
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

#define UNTIL(f, cond)                                                    \
	do {                                                              \
		int64_t end__ = abx__mono_ms() + 5000;                    \
		while (!(cond) && abx__mono_ms() < end__)                 \
			tls_turn(f);                                      \
		cr_assert(cond, "not within 5 s: %s; got: %.500s", #cond, \
			  abx__buf_str(&(f)->got));                       \
	} while (0)

void tls_start(struct tls_fixture *f, abx__http_handler handler);
/* `loop`, `userdata` and `tls` are set here. */
void tls_start_with(struct tls_fixture *f, abx__http_server_options opts, bool h2);
/* Closes client and server; nothing may be left open. */
void tls_stop(struct tls_fixture *f);
/* In the fixture's folder of files; the caller frees it. */
char *tls_path(const struct tls_fixture *f, const char *name);

/* The client. */
void tls_call(struct tls_fixture *f);    /* connects, shakes no hands yet */
void tls_hang_up(struct tls_fixture *f); /* to call again */
void tls_turn(struct tls_fixture *f);
void tls_shake(struct tls_fixture *f);
void tls_say(struct tls_fixture *f, const void *data, size_t len);
void tls_says(struct tls_fixture *f, const char *text);
bool tls_got(const struct tls_fixture *f, const char *text);

/* Notes the end of a request: for abx__http_req_on_closed(). */
void tls_on_closed(abx__http_req *req, bool answered, void *userdata);
/* A handler that answers a greeting. */
void tls_greet(abx__http_req *req, void *userdata);

#endif
