/* Which sandbox and port a head names. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "gateway/route.h"
#include <agentbox/error.h>

static const char *rest_of(const abx__route *route, char out[256])
{
	snprintf(out, 256, "%s%s", route->add_slash ? "/" : "", route->rest);
	return out;
}

Test(gateway_route, the_api_s_own_calls_are_no_sandbox_s_whatever_their_headers_say)
{
	static const abx__route_input rows[] = {
		{ "/agent-sandbox/api/e2b/sandboxes/abc/connect", "h", "abc", "49983" },
		{ "/agent-sandbox/api/e2b", "h", "abc", "49983" },
		{ "/e2b/sandboxes/abc/connect", "h", "abc", "49983" },
		{ "/sandboxes/abc/connect", "h", "abc", "49983" },
		{ "/v2/sandboxes/abc/connect", "h", "abc", "49983" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		abx__route route;

		abx__route_parse(&rows[i], &route);
		cr_assert_eq(route.form, ABX__ROUTE_NONE, "%s went to the gateway",
			     rows[i].target);
	}
}

Test(gateway_route, every_form_finds_its_sandbox)
{
	static const struct {
		abx__route_input in;
		enum abx__route_form form;
		const char *id;
		int port;
		const char *rest;
	} rows[] = {
		{ { "/sandboxes/abc/8000/x/y?q=1", "h" },
		  ABX__ROUTE_PATH,
		  "abc",
		  8000,
		  "/x/y?q=1" },
		{ { "/sandboxes/abc/8000", "h" }, ABX__ROUTE_PATH, "abc", 8000, "/" },
		{ { "/sandboxes/abc/8000?q", "h" }, ABX__ROUTE_PATH, "abc", 8000, "/?q" },
		{ { "/sandboxes/abc/8000/", "h" }, ABX__ROUTE_PATH, "abc", 8000, "/" },
		{ { "/agent-sandbox/api/data/sandboxes/a.b-c/1/x", "h" },
		  ABX__ROUTE_PATH,
		  "a.b-c",
		  1,
		  "/x" },
		{ { "/sandboxes/abc/49983/files", "h", "abc", "49983" },
		  ABX__ROUTE_PATH,
		  "abc",
		  49983,
		  "/files" },
		{ { "/sandboxes/other/80/x", "h", "abc", "49983" },
		  ABX__ROUTE_E2B_HEADERS,
		  "abc",
		  49983,
		  "/sandboxes/other/80/x" },
		{ { "/files?path=x", "sandbox.e2b.app", "abc", "49983" },
		  ABX__ROUTE_E2B_HEADERS,
		  "abc",
		  49983,
		  "/files?path=x" },
		{ { "/agent-sandbox/api/data/files", "h", "abc", "49983" },
		  ABX__ROUTE_E2B_HEADERS,
		  "abc",
		  49983,
		  "/files" },
		{ { "/x", "h", NULL, NULL, "abc", "80" },
		  ABX__ROUTE_X_HEADERS,
		  "abc",
		  80,
		  "/x" },
		{ { "/x", "49983-abc.e2b.app" }, ABX__ROUTE_HOST, "abc", 49983, "/x" },
		{ { "/x", "8080-ABC-local.e2b.app:8443" },
		  ABX__ROUTE_HOST,
		  "abc-local",
		  8080,
		  "/x" },
		{ { "/agent-sandbox/api/data", "80-abc.x" },
		  ABX__ROUTE_HOST,
		  "abc",
		  80,
		  "/agent-sandbox/api/data" },
		{ { "*", "80-abc.x" }, ABX__ROUTE_HOST, "abc", 80, "*" },
		{ { "/sandboxes/abc/80", "80-abc.x" }, ABX__ROUTE_PATH, "abc", 80, "/" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		abx__route route;
		char rest[256];

		abx__route_parse(&rows[i].in, &route);
		cr_assert_eq(route.form, rows[i].form, "row %zu", i);
		cr_assert_null(route.wrong, "row %zu: %s", i, route.wrong);
		cr_assert_str_eq(route.id, rows[i].id);
		cr_assert_eq(route.port, rows[i].port, "row %zu", i);
		cr_assert_str_eq(rest_of(&route, rest), rows[i].rest);
	}
}

Test(gateway_route, below_its_own_domain_the_host_alone_decides)
{
	static const struct {
		const char *host, *target, *header_id;
		enum abx__route_form form;
		const char *id;
	} rows[] = {
		{ "80-abc.box.test", "/sandboxes/other/81/x", NULL, ABX__ROUTE_HOST,
		  "abc" },
		{ "80-abc.box.test:8443", "/e2b/x", "other", ABX__ROUTE_HOST, "abc" },
		{ "80-ABC-00.Box.Test", "/x", NULL, ABX__ROUTE_HOST, "abc-00" },
		{ "api.box.test", "/sandboxes/abc/80/x", NULL, ABX__ROUTE_NONE, "" },
		{ "API.box.test:1", "/sandboxes/abc/connect", "abc", ABX__ROUTE_NONE,
		  "" },
		/* The shared host, and names that are not ours, go by headers and path.
		 */
		{ "sandbox.box.test", "/x", "abc", ABX__ROUTE_E2B_HEADERS, "abc" },
		{ "box.test", "/sandboxes/abc/80/x", NULL, ABX__ROUTE_PATH, "abc" },
		{ "127.0.0.1:8443", "/x", "abc", ABX__ROUTE_E2B_HEADERS, "abc" },
		{ "[::1]:8443", "/x", "abc", ABX__ROUTE_E2B_HEADERS, "abc" },
		{ "[::ffff:10.0.0.1]:80", "/x", "abc", ABX__ROUTE_E2B_HEADERS, "abc" },
		{ "api.box.tester", "/sandboxes/abc/80/x", NULL, ABX__ROUTE_PATH, "abc" },
		{ "80-foo.a.box.test", "/sandboxes/abc/80/x", NULL, ABX__ROUTE_PATH,
		  "abc" },
		{ "80-foo.gateway.example", "/sandboxes/abc/80/x", NULL, ABX__ROUTE_PATH,
		  "abc" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const abx__route_input in = {
			.target = rows[i].target,
			.host = rows[i].host,
			.e2b_id = rows[i].header_id,
			.e2b_port = rows[i].header_id ? "49983" : NULL,
			.domain = "box.test",
		};
		abx__route route;

		abx__route_parse(&in, &route);
		cr_assert_eq(route.form, rows[i].form, "row %zu", i);
		cr_assert_null(route.wrong, "row %zu: %s", i, route.wrong);
		cr_assert_str_eq(route.id, rows[i].id, "row %zu", i);
		if (route.form == ABX__ROUTE_HOST)
			cr_assert_eq(route.rest, in.target, "row %zu", i);
	}
}

Test(gateway_route, what_is_not_for_a_sandbox_passes_by)
{
	static const abx__route_input rows[] = {
		{ "/v1/envs", "127.0.0.1:8080" },
		{ "/sandboxes", "h" },
		{ "/sandboxes/abc", "h" },
		{ "/sandboxes/abc/connect", "h" },
		{ "/sandboxes/abc/80x", "h" },
		{ "/v2/sandboxes/abc/80/x", "h" },
		{ "/e2b/sandboxes/abc/80", "h" },
		{ "/", "8080-abc" },
		{ "/", "10.0.0.1" },
		{ "/", "8080.example.com" },
		{ "/", "a-b.example.com" },
		{ "/", NULL },
		{ "/agent-sandbox/api/database", "h" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		abx__route route;

		abx__route_parse(&rows[i], &route);
		cr_assert_eq(route.form, ABX__ROUTE_NONE, "row %zu", i);
	}
}

Test(gateway_route, malformed_ones_say_what_is_wrong)
{
	static const struct {
		abx__route_input in;
		const char *wrong;
	} rows[] = {
		{ { "/sandboxes/abc/0/x", "h" }, "missing or invalid sandbox port" },
		{ { "/sandboxes/abc/65536/x", "h" }, "missing or invalid sandbox port" },
		{ { "/sandboxes/abc/99999999999999999999/x", "h" },
		  "missing or invalid sandbox port" },
		{ { "/sandboxes/a%2fb/80/x", "h" }, "missing or invalid sandbox id" },
		{ { "/sandboxes//80/x", "h" }, "missing or invalid sandbox id" },
		{ { "/sandboxes/../80/x", "h" }, "missing or invalid sandbox id" },
		{ { "/agent-sandbox/api/data/x", "h" }, "missing sandbox id or port" },
		{ { "/x", "h", "abc", NULL }, "missing header" },
		{ { "/x", "h", NULL, "80" }, "missing header" },
		{ { "/x", "h", "a b", "80" }, "Invalid sandbox ID" },
		{ { "/x", "h", "", "80" }, "Invalid sandbox ID" },
		{ { "/x", "h", "abc", "eighty" }, "Invalid sandbox port" },
		{ { "/x", "h", NULL, NULL, "abc", NULL }, "missing sandbox id or port" },
		{ { "/x", "h", NULL, NULL, "abc", "0" }, "invalid sandbox port" },
		{ { "/x", "99999-abc.x" }, "Invalid sandbox port" },
		{ { "/x", "80-.x" }, "Invalid sandbox ID" },
		{ { "/x", "80-a_b.x" }, "Invalid sandbox ID" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		abx__route route;

		abx__route_parse(&rows[i].in, &route);
		cr_assert_neq(route.form, ABX__ROUTE_NONE, "row %zu", i);
		cr_assert_not_null(route.wrong, "row %zu", i);
		cr_assert_str_eq(route.wrong, rows[i].wrong);
	}
}

Test(gateway_route, control_routes_are_found_behind_any_spelling)
{
	static const struct {
		const char *target;
		int is;
	} rows[] = {
		{ "/init", 1 },
		{ "/init?x=1", 1 },
		{ "//init", 1 },
		{ "/init/", 1 },
		{ "/./init", 1 },
		{ "/files/../init", 1 },
		{ "/../../init", 1 },
		{ "/%69nit", 1 },
		{ "/files/%2e%2e/freeze", 1 },
		{ "/%2finit", 1 },
		{ "init", 1 },
		{ "/freeze", 1 },
		{ "/unfreeze", 1 },
		{ "/fsfreeze", 1 },
		{ "/fsthaw", 1 },
		{ "/collapse", 1 },
		{ "/upgrade", 1 },
		{ "/", 0 },
		{ "/files", 0 },
		{ "/initx", 0 },
		{ "/init/x", 0 },
		{ "/x/init", 0 },
		{ "/Init", 0 },
		{ "/..", 0 },
		{ "/%6", ABX_EINVAL },
		{ "/%00init", ABX_EINVAL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert_eq(abx__route_is_control(rows[i].target), rows[i].is, "%s",
			     rows[i].target);
}
