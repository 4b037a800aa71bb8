/* The body of an E2B create: what is taken, what is refused and how. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "serve/e2b.h"

static int parse(const char *text, bool v2, abx__e2b_create *c, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *body = NULL;

	cr_assert_eq(abx__json_parse_object(text, strlen(text), 0, &body, NULL), ABX_OK,
		     "%s", text);
	return abx__e2b_create_parse(body, v2, c, reterr);
}

static abx__e2b_create take(const char *text, bool v2)
{
	abx__e2b_create c = { 0 };
	abx_error *err = NULL;

	cr_assert_eq(parse(text, v2, &c, &err), ABX_OK, "%s: %s", text,
		     abx_error_message(err));
	return c;
}

Test(serve_body, refuses_by_name)
{
	/* The rest of a body behind "templateID", and what the message has to say. */
	static const char *const table[][2] = {
		{ "\"timeout\":0",
		  "timeout must be a positive integer number of seconds" },
		{ "\"timeout\":-1", "timeout must be a positive integer" },
		{ "\"timeout\":1.5", "timeout must be a positive integer" },
		{ "\"timeout\":\"60\"", "timeout must be a positive integer" },
		{ "\"timeout\":99999999999", "timeout must be a positive integer" },
		{ "\"autoPause\":1", "autoPause" },
		{ "\"autoPauseMemory\":false", "it needs autoPause" },
		{ "\"autoPause\":true,\"autoPauseMemory\":false,\"autoResume\":"
		  "{\"enabled\":true}",
		  "does not go with autoResume" },
		{ "\"autoResume\":{\"policy\":1}", "policy" },
		{ "\"autoResume\":{}", "autoResume: enabled is required" },
		{ "\"allow_internet_access\":false",
		  "allow_internet_access: false is not supported" },
		{ "\"mcp\":{\"a\":7}", "mcp[\"a\"] must be an object" },
		{ "\"mcp\":[]", "mcp" },
		{ "\"iam\":{\"tokens\":{\"a\":{}}}", "iam.tokens is not supported" },
		{ "\"volumeMounts\":[{\"name\":\"v\",\"path\":\"/v\"}]",
		  "volumeMounts is not" },
		{ "\"network\":{\"allowPublicTraffic\":false}",
		  "You cannot create a sandbox without public access unless you enable "
		  "secure envd access via 'secure' flag." },
		{ "\"network\":{\"allowOut\":[\"1.1.1.1\"]}",
		  "network.allowOut is not supported" },
		{ "\"network\":{\"denyOut\":[\"1.1.1.1\"]}",
		  "network.denyOut is not supported" },
		{ "\"network\":{\"rules\":{\"a.b\":[]}}",
		  "network.rules is not supported" },
		{ "\"network\":{\"maskRequestHost\":\"-https://abcd\"}",
		  "mask request host is not valid: -https://abcd" },
		{ "\"network\":{\"maskRequestHost\":7}", "maskRequestHost" },
		{ "\"network\":{\"egressProxy\":{\"address\":\"a\"}}",
		  "network.egressProxy is not" },
		{ "\"network\":{\"httpsPorts\":[49983]}",
		  "network.httpsPorts: port 49983 is envd's and does not speak TLS" },
		{ "\"network\":{\"httpsPorts\":[0]}",
		  "network.httpsPorts: a port is 1 to 65535, not 0" },
		{ "\"network\":{\"httpsPorts\":[\"a\"]}",
		  "network.httpsPorts must be integers" },
		{ "\"network\":{\"httpsPorts\":8443}", "httpsPorts" },
		{ "\"network\":{\"dnsServers\":[\"1.1.1.1\"]}",
		  "network.dnsServers is not" },
		{ "\"network\":{\"surprise\":1}", "surprise" },
		{ "\"surprise\":1", "surprise" },
		{ "\"metadata\":{\"k\":1}", "metadata[\"k\"] must be a string" },
		{ "\"envVars\":{\"k\":null}", "envVars[\"k\"] must be a string" },
		{ "\"envVars\":{\"a=b\":\"\"}", "\"a=b\" is not a name" },
		{ "\"metadata\":{\"agentbox.scitix.ai/no-wait\":\"maybe\"}", "no-wait" },
		{ "\"metadata\":{\"agentbox.scitix.ai/startup-timeout\":\"0\"}",
		  "startup-timeout" },
		{ "\"metadata\":{\"agentbox.scitix.ai/startup-timeout\":\"1m\"}",
		  "startup-timeout" },
		{ "\"metadata\":{\"agentbox.scitix.ai/image\":\"\"}", "is empty" },
		{ "\"metadata\":{\"agentbox.scitix.ai/allow-private-networks\":\"1\"}",
		  "not supported" },
		{ "\"metadata\":{\"agentbox.scitix.ai/typo\":\"1\"}", "typo" },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ABX_CLEANUP(abx__freep)
		char *text = abx__strf("{\"templateID\":\"base\",%s}", table[i][0]);
		abx__e2b_create c = { 0 };
		abx_error *err = NULL;
		int r = parse(text, false, &c, &err);

		cr_assert(r == ABX_EINVAL || r == ABX_EUNSUPPORTED, "%s gave %d", text,
			  r);
		cr_assert(strstr(abx_error_message(err), table[i][1]), "%s: \"%s\"", text,
			  abx_error_message(err));
		abx_error_free(err);
	}
}

Test(serve_body, needs_a_template)
{
	static const char *const bodies[] = { "{}", "{\"templateID\":\"\"}",
					      "{\"templateID\":\"  \"}",
					      "{\"templateID\":null}" };

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		abx__e2b_create c = { 0 };
		abx_error *err = NULL;

		cr_assert_eq(parse(bodies[i], true, &c, &err), ABX_EINVAL);
		cr_assert_str_eq(abx_error_message(err), "templateID is required");
		abx_error_free(err);
	}
}

Test(serve_body, takes_what_the_sdks_send_by_default)
{
	/* e2b for Python 2.24 (v1), and what its defaults spell out. */
	abx__e2b_create c = take(
		"{\"templateID\":\"base\",\"metadata\":{},\"timeout\":300,\"envVars\":{},"
		"\"secure\":true,\"autoPause\":false,\"allow_internet_access\":true,"
		"\"autoResume\":{\"enabled\":false},\"network\":{\"allowPublicTraffic\":"
		"true},"
		"\"mcp\":null,\"volumeMounts\":[]}",
		false);

	cr_assert_str_eq(c.address.name, "base");
	cr_assert_eq(c.idle_timeout_ms, 300000);
	cr_assert(c.secure);
	cr_assert_null(c.image);
	abx__e2b_create_done(&c);
	/* v2: always secure, no timeout. */
	c = take("{\"templateID\":\"base\",\"metadata\":{},\"envVars\":{}}", true);
	cr_assert(c.secure);
	cr_assert_eq(c.idle_timeout_ms, 0);
	abx__e2b_create_done(&c);
	c = take("{\"templateID\":\"base\"}", false);
	cr_assert_not(c.secure);
	abx__e2b_create_done(&c);
}

Test(serve_body, of_mcp_the_names_are_noted)
{
	abx__e2b_create c = take("{\"templateID\":\"b\",\"mcp\":{\"browser\":{\"key\":"
				 "\"secret\"},\"exa\":{}}}",
				 true);

	cr_assert_str_eq(c.mcp, "browser,exa");
	abx__e2b_create_done(&c);
}

Test(serve_body, reads_how_traffic_is_let_in)
{
	abx__e2b_create c =
		take("{\"templateID\":\"b\",\"secure\":true,\"network\":{"
		     "\"allowPublicTraffic\":false,\"maskRequestHost\":\"h:${PORT}\","
		     "\"httpsPorts\":[8443]}}",
		     false);

	cr_assert(c.ingress.closed);
	cr_assert_str_eq(c.ingress.mask_host, "h:${PORT}");
	cr_assert_eq(c.ingress.https_count, 1);
	cr_assert_eq(c.ingress.https_ports[0], 8443);
	abx__e2b_create_done(&c);
	c = take("{\"templateID\":\"b\",\"network\":{\"allowPublicTraffic\":false}}",
		 true);
	cr_assert(c.ingress.closed, "v2 is secure");
	abx__e2b_create_done(&c);
	c = take("{\"templateID\":\"b\",\"network\":{}}", false);
	cr_assert_not(c.ingress.closed);
	abx__e2b_create_done(&c);
}

Test(serve_body, v2_cannot_be_insecure)
{
	abx__e2b_create c = { 0 };
	abx_error *err = NULL;

	cr_assert_eq(parse("{\"templateID\":\"b\",\"secure\":false}", true, &c, &err),
		     ABX_EINVAL);
	cr_assert(strstr(abx_error_message(err), "always secure"));
	abx_error_free(err);
}

Test(serve_body, reads_the_address_and_the_reserved_keys)
{
	abx__e2b_create c = take("{\"templateID\":\"c1::base//debian:12\"}", false);

	cr_assert_str_eq(c.address.cluster, "c1");
	cr_assert_str_eq(c.address.name, "base");
	cr_assert_str_eq(c.image, "debian:12");
	abx__e2b_create_done(&c);
	c = take("{\"templateID\":\"base//debian:12\",\"metadata\":{\"run\":\"7\","
		 "\"agentbox.scitix.ai/image\":\"alpine\","
		 "\"agentbox.scitix.ai/startup-timeout\":\"900\","
		 "\"agentbox.scitix.ai/scaling-group\":\"1c2gi\","
		 "\"agentbox.scitix.ai/no-wait\":\"true\","
		 "\"agentbox.scitix.ai/allow-private-networks\":\"false\"}}",
		 false);
	cr_assert_str_eq(c.image, "alpine", "the metadata key wins over the address");
	cr_assert_eq(c.startup_timeout_ms, 900000);
	cr_assert_str_eq(c.scaling_group, "1c2gi");
	cr_assert(c.no_wait);
	cr_assert_eq(c.metadata.count, 1, "reserved keys are not stored");
	cr_assert_str_eq(abx__map_get(&c.metadata, "run"), "7");
	abx__e2b_create_done(&c);
}

Test(serve_body, reports_out_of_memory)
{
	static const char text[] =
		"{\"templateID\":\"c::b//i\",\"metadata\":{\"a\":\"b\","
		"\"agentbox.scitix.ai/scaling-group\":\"g\"},"
		"\"envVars\":{\"A\":\"1\"},\"iam\":{}}";
	ABX_CLEANUP_JSON json_object *body = NULL;
	abx__e2b_create c = { 0 };
	int r = ABX_ENOMEM;

	cr_assert_eq(abx__json_parse_object(text, strlen(text), 0, &body, NULL), ABX_OK);
	for (unsigned n = 0; r != ABX_OK; n++) {
		abx_error *err = NULL;

		abx__test_fail_alloc_after(n);
		r = abx__e2b_create_parse(body, false, &c, &err);
		abx__test_alloc_reset();
		cr_assert(r == ABX_OK || r == ABX_ENOMEM, "allocation %u gave %d", n, r);
		abx_error_free(err);
	}
	abx__e2b_create_done(&c);
}
