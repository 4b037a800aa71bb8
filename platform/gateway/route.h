/*
 * route.h - which sandbox and port a request is for, from its head alone. Pure.
 *
 * Forms, the first that fits wins (contract/e2b-control-api.md sections 7, 13 and 14):
 *   path     /sandboxes/ID/PORT/rest, also below /agent-sandbox/api/data; PORT all digits
 *   headers  E2b-Sandbox-Id + E2b-Sandbox-Port, or x-sandbox-id + x-sandbox-port
 *   host     PORT-ID.anything, PORT-ID-anything.anything
 * The path form yields to headers that name another sandbox: then the path is the
 * sandbox's own. Clients in the wild send the headers along with the path form, so
 * headers first would hand them their own prefix as a path.
 *
 * Below the platform's own domain the host alone decides: PORT-ID.DOMAIN is that
 * sandbox's whatever path and headers say, api.DOMAIN never is one's.
 */
#ifndef ABX_GATEWAY_ROUTE_H
#define ABX_GATEWAY_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#define ABX__ROUTE_ID_MAX 127
#define ABX__ROUTE_ENVD_PORT 49983

enum abx__route_form {
	ABX__ROUTE_NONE, /* not for the gateway */
	ABX__ROUTE_PATH,
	ABX__ROUTE_E2B_HEADERS,
	ABX__ROUTE_X_HEADERS,
	ABX__ROUTE_HOST,
};

/* What of a head decides. NULL for absent headers. */
typedef struct abx__route_input {
	const char *target; /* path and query as sent */
	const char *host;
	const char *e2b_id, *e2b_port;
	const char *x_id, *x_port;
	const char *domain; /* the platform's own; NULL: none is known */
} abx__route_input;

typedef struct abx__route {
	enum abx__route_form form;
	char id[ABX__ROUTE_ID_MAX + 1];
	uint16_t port;
	const char *
		rest; /* what the sandbox gets as the target, inside the input's target */
	bool add_slash;    /* ... with a slash put before it */
	const char *wrong; /* 400 with this text; NULL when fine */
} abx__route;

void abx__route_parse(const abx__route_input *in, abx__route *ret);

/* Is this path (of a target, up to '?') one of envd's control routes, decoded and
   cleaned? 1, 0, or ABX_EINVAL for broken percent encoding; ABX_ENOMEM. */
int abx__route_is_control(const char *target);

#endif
