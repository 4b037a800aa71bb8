/*
 * What the gateway refuses, and in which words.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"

#define RESERVED                                                                         \
	"This path is reserved for the E2B control plane; a sandbox's address does not " \
	"reach it"

Test(gateway_refuse, bodies_and_codes_are_the_contracts)
{
	static const struct {
		const char *request, *status, *body;
	} rows[] = {
		{ "GET / HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: "
		  "nope\r\nE2b-Sandbox-Port: 80\r\n\r\n",
		  "502",
		  "{\"sandboxId\":\"nope\",\"message\":\"The sandbox was not "
		  "found\",\"code\":502}" },
		{ "GET / HTTP/1.1\r\nHost: 49983-nope.x\r\n\r\n", "502",
		  "{\"sandboxId\":\"nope\",\"message\":\"The sandbox was not "
		  "found\",\"code\":502}" },
		{ "GET /sandboxes/nope/80/ HTTP/1.1\r\nHost: x\r\n\r\n", "502",
		  "{\"error\":\"The sandbox was not found\",\"sandboxId\":\"nope\","
		  "\"message\":\"The sandbox was not found\",\"code\":502}" },
		{ "GET / HTTP/1.1\r\nHost: 80-nope-00000000.x\r\n\r\n", "502",
		  "{\"sandboxId\":\"nope\",\"message\":\"The sandbox was not "
		  "found\",\"code\":502}" },
		{ "GET / HTTP/1.1\r\nHost: 80-closed.x\r\n\r\n", "403",
		  "{\"sandboxId\":\"closed\",\"message\":\"Sandbox is secured with "
		  "traffic access token. Token header 'e2b-traffic-access-token' is "
		  "missing\",\"code\":403}" },
		{ "GET / HTTP/1.1\r\nHost: 80-closed.x\r\n"
		  "E2b-Traffic-Access-Token: traffic-tokem\r\n\r\n",
		  "403",
		  "{\"sandboxId\":\"closed\",\"message\":\"Sandbox is secured with "
		  "traffic access token. Provided token in header "
		  "'e2b-traffic-access-token' is invalid\",\"code\":403}" },
		{ "GET / HTTP/1.1\r\nHost: 80-starting.x\r\n\r\n", "502",
		  "{\"sandboxId\":\"starting\",\"message\":\"The sandbox is not "
		  "running\",\"code\":502}" },
		{ "GET / HTTP/1.1\r\nHost: 80-stopping.x\r\n\r\n", "502",
		  "{\"sandboxId\":\"stopping\",\"message\":\"The sandbox is not "
		  "running\",\"code\":502}" },
		{ "GET / HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: abc\r\n\r\n", "400",
		  "missing header" },
		{ "GET / HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: a/b\r\nE2b-Sandbox-Port: "
		  "80\r\n\r\n",
		  "400", "Invalid sandbox ID" },
		{ "GET / HTTP/1.1\r\nHost: 70000-abc.x\r\n\r\n", "400",
		  "Invalid sandbox port" },
		{ "GET / HTTP/1.1\r\nHost: x\r\nx-sandbox-id: abc\r\nx-sandbox-port: "
		  "x\r\n\r\n",
		  "400", "{\"error\":\"invalid sandbox port\"}" },
		{ "POST /init?a=1 HTTP/1.1\r\nHost: 49983-abc.x\r\n\r\n", "404",
		  "{\"message\":\"" RESERVED "\",\"path\":\"/init\",\"code\":404}" },
		{ "POST /x/%2e%2e/%69nit HTTP/1.1\r\nHost: 49983-nope.x\r\n\r\n", "404",
		  "{\"message\":\"" RESERVED
		  "\",\"path\":\"/x/%2e%2e/%69nit\",\"code\":404}" },
		{ "POST /%6 HTTP/1.1\r\nHost: 49983-abc.x\r\n\r\n", "400",
		  "{\"sandboxId\":\"abc\",\"message\":\"The path's percent encoding is "
		  "broken\",\"code\":400}" },
	};
	struct fixture f = { 0 };

	fixture_start(&f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char status[32];

		abx__buf_clear(&f.w.got);
		snprintf(status, sizeof(status), "HTTP/1.1 %s ", rows[i].status);
		wire_say(&f.w, rows[i].request);
		WIRE_UNTIL(&f.w, wire_got(&f.w, rows[i].body));
		cr_assert(wire_got(&f.w, status), "row %zu: %s", i, f.w.got.data);
	}
	cr_assert_eq(f.served, 0);
	cr_assert_eq(f.engine.connects, 0);
	cr_assert_eq(f.table.touches, 0);
	fixture_stop(&f);
}

Test(gateway_refuse, control_routes_are_free_on_other_ports)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	ASK(&f, "GET /init HTTP/1.1\r\n" USER "\r\n", "hello");
	fixture_stop(&f);
}

Test(gateway_refuse, a_closed_port_is_502_after_five_tries_with_growing_waits)
{
	struct fixture f = { .opts.retry_ms = 20 };
	int64_t begun;

	fixture_start(&f);
	f.engine.fail_code = ABX_EUNAVAILABLE;
	begun = abx__mono_ms();
	ASK(&f, "GET / HTTP/1.1\r\nHost: 8000-abc.x\r\n\r\n", "HTTP/1.1 502 ");
	cr_assert(wire_got(&f.w, "{\"sandboxId\":\"abc\",\"message\":\"The sandbox is "
				 "running but port is not "
				 "open\",\"port\":8000,\"code\":502}"));
	cr_assert_eq(f.engine.connects, 5);
	cr_assert_geq(abx__mono_ms() - begun, 195);
	fixture_stop(&f);
}

Test(gateway_refuse, without_a_code_interpreter_its_calls_are_404_and_others_502)
{
	static const struct {
		const char *target, *host, *want;
	} rows[] = {
		{ "/execute", "49999-abc.x", "HTTP/1.1 404 " },
		{ "/contexts", "49999-abc.x", "HTTP/1.1 404 " },
		{ "/contexts/1/restart?a", "49999-abc.x", "python3-ipykernel" },
		{ "/executed", "49999-abc.x", "HTTP/1.1 502 " },
		{ "/", "49999-abc.x", "HTTP/1.1 502 " },
		{ "/execute", "8000-abc.x", "HTTP/1.1 502 " },
	};
	struct fixture f = { .opts.retry_ms = 1 };

	fixture_start(&f);
	f.engine.fail_code = ABX_EUNAVAILABLE;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char request[256];

		abx__buf_clear(&f.w.got);
		snprintf(request, sizeof(request), "POST %s HTTP/1.1\r\nHost: %s\r\n\r\n",
			 rows[i].target, rows[i].host);
		wire_say(&f.w, request);
		WIRE_UNTIL(&f.w, wire_got(&f.w, "\"code\":"));
		cr_assert(wire_got(&f.w, rows[i].want), "row %zu: %s", i, f.w.got.data);
	}
	fixture_stop(&f);
}

Test(gateway_refuse, a_port_that_opens_meanwhile_is_reached)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	f.engine.fail_first = 3;
	ASK(&f, "GET / HTTP/1.1\r\n" USER "\r\n", "hello");
	cr_assert_eq(f.engine.connects, 4);
	fixture_stop(&f);
}

Test(gateway_refuse, other_failures_of_the_engine)
{
	static const struct {
		int code;
		const char *status, *message;
	} rows[] = {
		{ ABX_ENOTFOUND, "HTTP/1.1 502 ", "The sandbox was not found" },
		{ ABX_EIO, "HTTP/1.1 502 ", "The sandbox could not be reached" },
	};
	struct fixture f = { 0 };

	fixture_start(&f);
	for (size_t i = 0; i < 2; i++) {
		abx__buf_clear(&f.w.got);
		f.engine.fail_code = rows[i].code;
		wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "\r\n");
		WIRE_UNTIL(&f.w, wire_got(&f.w, rows[i].message));
		cr_assert(wire_got(&f.w, rows[i].status));
	}
	cr_assert_eq(f.engine.connects, 2);
	fixture_stop(&f);
}

Test(gateway_refuse,
     a_connect_that_hangs_is_504_and_a_client_that_leaves_meanwhile_is_fine)
{
	struct fixture f = { .opts.connect_ms = 40 };

	fixture_start(&f);
	f.engine.silent = true;
	ASK(&f, "GET / HTTP/1.1\r\n" USER "\r\n", "HTTP/1.1 504 ");
	wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "\r\n");
	WIRE_UNTIL(&f.w, f.engine.connects == 2);
	wire_close(&f.w);
	WIRE_UNTIL(&f.w, f.table.ends == 2);
	fixture_stop(&f);
	cr_assert_eq(f.engine.pending, 0);
}

Test(gateway_refuse, an_answer_that_is_not_http_is_502)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	fixture_go_raw(&f);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" USER "\r\n");
	WIRE_UNTIL(&f.w, peer_has(&f, "\r\n\r\n"));
	peer_say(&f, "SSH-2.0-OpenSSH\r\n\r\n");
	WIRE_UNTIL(&f.w, wire_got(&f.w, "HTTP/1.1 502 "));
	cr_assert(wire_got(&f.w, "The sandbox's answer on the port is broken"));
	fixture_stop(&f);
}

static int check_key(void *userdata, const abx__http_req *req, const char *key,
		     const abx__sandbox_rec *sandbox)
{
	(void)userdata;
	(void)req;
	(void)sandbox;
	return key && strcmp(key, "good") == 0 ? ABX_OK : ABX_EUNAUTHENTICATED;
}

Test(gateway_refuse, keys_are_checked_when_asked_for_and_never_passed_on)
{
	struct fixture f = { .opts.check_key = check_key };

	fixture_start(&f);
	ASK(&f, "GET / HTTP/1.1\r\n" USER "\r\n", "HTTP/1.1 401 ");
	abx__buf_clear(&f.w.got);
	ASK(&f, "GET / HTTP/1.1\r\nHost: 80-nope.x\r\nX-API-Key: bad\r\n\r\n",
	    "HTTP/1.1 401 ");
	ASK(&f, "GET / HTTP/1.1\r\n" USER "X-API-Key: good\r\n\r\n", "hello");
	cr_assert_null(strstr(f.head, "good"));
	fixture_stop(&f);
}

#define FIREFOX "User-Agent: Mozilla/5.0 (X11; Linux) Firefox/128.0\r\n"

Test(gateway_refuse, people_get_a_page_and_programs_json)
{
	static const struct {
		const char *headers, *title; /* NULL: JSON */
	} rows[] = {
		{ FIREFOX, "Sandbox Not Found" },
		{ FIREFOX "Accept: text/html,application/json\r\n", "Sandbox Not Found" },
		{ FIREFOX "Sec-Fetch-Mode: navigate\r\nX-Requested-With: x\r\n",
		  "Sandbox Not Found" },
		{ FIREFOX "Accept: application/json\r\n", NULL },
		{ FIREFOX "Sec-Fetch-Mode: cors\r\n", NULL },
		{ FIREFOX "X-Requested-With: XMLHttpRequest\r\n", NULL },
		{ "User-Agent: curl/7.88.1\r\n", NULL },
		{ "", NULL },
	};
	struct fixture f = { 0 };

	fixture_start(&f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char request[512];

		abx__buf_clear(&f.w.got);
		snprintf(request, sizeof(request),
			 "GET / HTTP/1.1\r\nHost: 80-nope.x\r\n%s\r\n", rows[i].headers);
		wire_say(&f.w, request);
		WIRE_UNTIL(&f.w, wire_got(&f.w, rows[i].title ? "</html>" : "502}"));
		cr_assert(wire_got(&f.w, "HTTP/1.1 502 "));
		cr_assert(wire_got(&f.w,
				   rows[i].title
					   ? "Content-Type: text/html; charset=utf-8\r\n"
					   : "Content-Type: application/json; "
					     "charset=utf-8\r\n"),
			  "row %zu", i);
		if (!rows[i].title)
			continue;
		cr_assert(wire_got(&f.w, "\r\n\r\n<html"));
		cr_assert(wire_got(&f.w, rows[i].title));
		cr_assert(wire_got(&f.w, "nope"));
	}
	fixture_stop(&f);
}

Test(gateway_refuse, pages_name_the_sandbox_the_port_and_what_is_wrong)
{
	static const struct {
		const char *host, *header, *status, *text;
	} rows[] = {
		{ "8123-abc.x", "", "502",
		  "no service running on port <code>8123</code>" },
		{ "80-closed.x", "", "403", "Missing Traffic Access Token" },
		{ "80-closed.x", "e2b-traffic-access-token: no\r\n", "403",
		  "Invalid Traffic Access Token" },
		{ "80-stopping.x", "", "502", "Sandbox Not Running" },
	};
	struct fixture f = { 0 };

	fixture_start(&f);
	f.engine.fail_code = ABX_EUNAVAILABLE;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char request[512], status[32];

		abx__buf_clear(&f.w.got);
		snprintf(request, sizeof(request),
			 "GET / HTTP/1.1\r\nHost: %s\r\n" FIREFOX "%s\r\n", rows[i].host,
			 rows[i].header);
		snprintf(status, sizeof(status), "HTTP/1.1 %s ", rows[i].status);
		wire_say(&f.w, request);
		WIRE_UNTIL(&f.w, wire_got(&f.w, "</body></html>"));
		cr_assert(wire_got(&f.w, status));
		cr_assert(wire_got(&f.w, rows[i].text), "%s", f.w.got.data);
	}
	fixture_stop(&f);
}

Test(gateway_refuse, the_traffic_token_opens_the_ports_and_goes_no_further)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	ASK(&f,
	    "GET / HTTP/1.1\r\nHost: 80-closed.x\r\n"
	    "e2b-traffic-access-token: traffic-token\r\n\r\n",
	    "hello");
	cr_assert_null(strstr(f.head, "traffic-token"));
	wire_say(&f.w, "GET / HTTP/1.1\r\nHost: 49983-closed.x\r\n\r\n");
	WIRE_UNTIL(&f.w, wire_count(&f.w, "hello") == 2);
	fixture_stop(&f);
}

Test(gateway_refuse, a_masked_host_hides_the_clients_own_but_not_from_envd)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	ASK(&f,
	    "GET / HTTP/1.1\r\nHost: 8080-closed.x\r\n"
	    "X-Forwarded-Host: liar\r\n"
	    "e2b-traffic-access-token: traffic-token\r\n\r\n",
	    "hello");
	cr_assert(strstr(f.head, "Host=masked.example:8080\n"), "%s", f.head);
	cr_assert(strstr(f.head, "X-Forwarded-Host=8080-closed.x\n"), "%s", f.head);
	cr_assert_null(strstr(f.head, "liar"));
	wire_say(&f.w, "GET / HTTP/1.1\r\nHost: 49983-closed.x\r\n\r\n");
	WIRE_UNTIL(&f.w, wire_count(&f.w, "hello") == 2);
	cr_assert(strstr(f.head, "Host=49983-closed.x\n"), "%s", f.head);
	cr_assert_null(strstr(f.head, "Forwarded"));
	fixture_stop(&f);
}

Test(gateway_refuse, a_sandboxs_own_proof_is_as_good_as_a_key)
{
	static const struct {
		const char *line, *host, *header;
		bool passes;
	} rows[] = {
		{ "GET /", "80-closed.x", "", false },
		{ "GET /", "80-closed.x", "e2b-traffic-access-token: traffic-token\r\n",
		  true },
		{ "GET /", "80-closed.x", "e2b-traffic-access-token: x\r\n", false },
		{ "GET /", "80-abc.x", "e2b-traffic-access-token: traffic-token\r\n",
		  false },
		{ "GET /files?path=a&signature=v1_x", "49983-closed.x", "", true },
		{ "GET /files?path=a&xsignature=v1_x", "49983-closed.x", "", false },
		{ "GET /files/compose?signature=v1_x", "49983-closed.x", "", false },
		{ "GET /files?signature=v1_x", "49983-abc.x", "", false },
		{ "GET /files?signature=v1_x", "80-closed.x", "", false },
	};
	struct fixture f = { .opts.check_key = check_key };
	int passed = 0;

	fixture_start(&f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char request[512];

		abx__buf_clear(&f.w.got);
		snprintf(request, sizeof(request), "%s HTTP/1.1\r\nHost: %s\r\n%s\r\n",
			 rows[i].line, rows[i].host, rows[i].header);
		wire_say(&f.w, request);
		WIRE_UNTIL(&f.w, wire_got(&f.w, rows[i].passes ? "hello" : "401}"));
		passed += rows[i].passes;
	}
	cr_assert_eq(f.served, passed);
	fixture_stop(&f);
}

static int pretend_secure(void *userdata, int fd, int *ret_fd)
{
	int *secured = userdata;

	++*secured;
	*ret_fd = fd;
	return *secured == 2 ? ABX_EIO : ABX_OK;
}

Test(gateway_refuse, ports_that_speak_tls_are_spoken_to_through_it)
{
	static const abx__ingress ingress = { .https_ports = { 8443, 443 },
					      .https_count = 2 };
	int secured = 0;
	struct fixture f = { .opts.secure = pretend_secure,
			     .opts.secure_userdata = &secured };

	fixture_start(&f);
	f.table.recs[0].ingress = &ingress; /* abc */
	ASK(&f, "GET / HTTP/1.1\r\nHost: 8443-abc.x\r\n\r\n", "hello");
	cr_assert_eq(secured, 1);
	wire_say(&f.w, "GET / HTTP/1.1\r\nHost: 8000-abc.x\r\n\r\n");
	WIRE_UNTIL(&f.w, wire_count(&f.w, "hello") == 2);
	cr_assert_eq(secured, 1, "the other ports are plain");
	ASK(&f, "GET / HTTP/1.1\r\nHost: 443-abc.x\r\n\r\n", "HTTP/1.1 502 ");
	cr_assert_eq(secured, 2);
	fixture_stop(&f);
}
