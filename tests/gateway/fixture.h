/*
 * fixture.h - a raw client, the gateway, and behind it either our own server as the
 * sandbox (what it does depends on the path) or a raw listener that does what the test
 * wants.
 */
#ifndef ABX_TESTS_GATEWAY_FIXTURE_H
#define ABX_TESTS_GATEWAY_FIXTURE_H

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

#define ENVD "Host: x\r\nE2b-Sandbox-Id: abc\r\nE2b-Sandbox-Port: 49983\r\n"
#define USER "Host: x\r\nE2b-Sandbox-Id: abc\r\nE2b-Sandbox-Port: 8000\r\n"

/* The client asks, and is sent `wanted` in time. */
#define ASK(f, request, wanted)                                 \
	do {                                                    \
		wire_say(&(f)->w, request);                     \
		WIRE_UNTIL(&(f)->w, wire_got(&(f)->w, wanted)); \
	} while (0)

/* With the sandboxes "abc" (running), "starting", "stopping", and "closed": running, its
 * ports behind the token "traffic-token", its Host masked. */
void fixture_start(struct fixture *f);
void fixture_stop(struct fixture *f);
/* From here every port leads to a listener of the test's. */
void fixture_go_raw(struct fixture *f);
/* Whether the raw sandbox has been sent `text`. */
bool peer_has(struct fixture *f, const char *text);
void peer_say(struct fixture *f, const char *text);
void peer_close(struct fixture *f);

#endif
