/*
 * The gateway's routing: six lines are target, Host, E2b-Sandbox-Id, E2b-Sandbox-Port,
 * x-sandbox-id, x-sandbox-port; a line "-" is an absent header. A route without a
 * complaint has an id, a port, and a rest inside the target.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = abx__strndup((const char *)data, size), *at = text;
	const char *fields[6] = { NULL };
	abx__route_input in;
	abx__route route;

	if (!text)
		return 0;
	for (int i = 0; i < 6 && at; i++) {
		char *end = strchr(at, '\n');

		if (end)
			*end++ = '\0';
		fields[i] = i > 0 && strcmp(at, "-") == 0 ? NULL : at;
		at = end;
	}
	in = (abx__route_input){ fields[0], fields[1], fields[2], fields[3],
				 fields[4], fields[5], "box.test" };
	abx__route_parse(&in, &route);
	if (route.form != ABX__ROUTE_NONE && !route.wrong) {
		const char *end = in.target + strlen(in.target);

		if (!route.id[0] || strlen(route.id) > ABX__ROUTE_ID_MAX ||
		    route.port == 0 || route.rest < in.target || route.rest > end)
			abort();
		if (strpbrk(route.id, "/ \t%?"))
			abort();
	}
	if (route.rest)
		abx__route_is_control(route.rest);
	abx__free(text);
	return 0;
}
