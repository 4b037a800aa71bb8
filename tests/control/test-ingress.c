/* How traffic to a sandbox's ports is let in: its rules, its JSON, and that it survives.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "base/error.h"
#include "control/ingress.h"
#include "control/internal.h"
#include "world.h"

static world w;

static void setup(void)
{
	world_init(&w);
	world_template(&w, "base");
}

static void teardown(void)
{
	world_done(&w);
}

Test(control_ingress, a_mask_is_a_host_and_perhaps_a_port)
{
	static const char *const good[] = {
		"localhost",       "localhost:${PORT}", "a.example.com:8080",
		"[::1]:${PORT}",   "${PORT}.example",   "x-${PORT}-y.example.com",
		"my_host.example", "127.0.0.1",         "[fe80::1]",
	};
	static const char *const bad[] = {
		"",          "-https://abcd", "https://abcd", "a b",
		"a:b",       "a:0",           "a:65536",      "a:80:80",
		"a:",        ":80",           "[::1",         "[]",
		"a\r\nX: y", "a/b",           ".a",           "$PORT",
		"${PORT",    "a:${PORT}x",    "a@b",
	};
	static const char *const foreign = "h\xc3\xb6st.example";
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	char longest[ABX__INGRESS_MASK_MAX + 2];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_assert_eq(abx__ingress_check_mask(good[i], NULL), ABX_OK, "%s",
			     good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(abx__ingress_check_mask(bad[i], NULL), ABX_EINVAL, "%s",
			     bad[i]);
	cr_assert_eq(abx__ingress_check_mask(foreign, &err), ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err),
			 "mask request host 'h\xc3\xb6st.example' is not ASCII. Please "
			 "use ASCII characters only.");
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	cr_assert_eq(abx__ingress_check_mask(longest, NULL), ABX_EINVAL);
	cr_assert_eq(abx__ingress_check_mask(longest + 1, NULL), ABX_OK);
}

Test(control_ingress, what_cannot_be_read_keeps_the_traffic_out)
{
	static const char *const texts[] = { "null", "[]", "{}", "7",
					     "{\"allowPublicTraffic\":1}" };
	abx__ingress ingress;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		json_object *obj = json_tokener_parse(texts[i]);

		abx__ingress_read(obj, &ingress);
		cr_assert(ingress.closed, "%s", texts[i]);
		json_object_put(obj);
	}
}

Test(control_ingress, json_there_and_back)
{
	const abx__ingress given = { .mask_host = "h:${PORT}",
				     .https_ports = { 8443, 443 },
				     .https_count = 2 };
	json_object *obj = abx__ingress_json(&given);
	abx__ingress got;

	cr_assert_str_eq(json_object_to_json_string_ext(obj, JSON_C_TO_STRING_PLAIN),
			 "{\"allowPublicTraffic\":true,\"maskRequestHost\":\"h:${PORT}\","
			 "\"httpsPorts\":[8443,443]}");
	abx__ingress_read(obj, &got);
	cr_assert_eq(memcmp(&given, &got, sizeof(got)), 0);
	json_object_put(obj);
}

static const abx__sandbox_rec *record(const char *id)
{
	return abx__sandboxes_find(abx__control_sandboxes(w.control), id);
}

Test(control_ingress, it_and_its_token_survive_a_crash, .init = setup, .fini = teardown)
{
	const abx__ingress ingress = { .closed = true, .mask_host = "m" };
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .secure = true,
				       .ingress = &ingress };
	char envd[80], traffic[80];
	answer a = { 0 };

	world_env(&w, "demo", 1, NULL, NULL);
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 50);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	strcpy(envd, abx__secret_reveal(record(a.id)->access_token));
	strcpy(traffic, abx__secret_reveal(record(a.id)->traffic_token));
	cr_assert_eq(strlen(traffic), 64);
	cr_assert_str_neq(envd, traffic);
	cr_assert_str_eq(pod_annotation(&w, a.pod, ABX__ANNOTATION_INGRESS),
			 "{\"allowPublicTraffic\":false,\"maskRequestHost\":\"m\"}",
			 "no token on the Pod");
	world_crash(&w);
	world_boot(&w);
	world_pass(&w, 50);
	cr_assert(record(a.id));
	cr_assert_str_eq(abx__secret_reveal(record(a.id)->access_token), envd);
	cr_assert_str_eq(abx__secret_reveal(record(a.id)->traffic_token), traffic);
	cr_assert_str_eq(record(a.id)->ingress->mask_host, "m");
	cr_assert(record(a.id)->ingress->closed);
}

Test(control_ingress, a_public_sandbox_has_no_traffic_token, .init = setup,
     .fini = teardown)
{
	const abx__ingress ingress = { 0 };
	abx__claim_request request = { .namespace_ = "default",
				       .name = "demo",
				       .ingress = &ingress };
	answer a = { 0 };

	world_env(&w, "demo", 1, NULL, NULL);
	cr_assert_eq(claim_with(&w, &request, &a, NULL, NULL), ABX_OK);
	world_pass(&w, 50);
	cr_assert_null(record(a.id)->ingress);
	cr_assert_null(record(a.id)->traffic_token);
	cr_assert_null(pod_annotation(&w, a.pod, ABX__ANNOTATION_INGRESS));
}
