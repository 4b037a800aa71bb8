/* The native API: envelopes, statuses and strictness, asked of the daemon. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "daemon.h"
#include "io/json.h"

TestSuite(serve_native, .init = daemon_begin, .fini = daemon_teardown, .timeout = 120);

Test(serve_native, ping_is_open_and_says_the_version)
{
	answer a = ask_with("GET", "/ping", NULL, NULL);

	cr_assert_eq(a.status, 200);
	cr_assert_str_eq(a.text, "{\"status\":\"ok\"}");
	cr_assert_not_null(answer_header(&a, "X-AgentBox-Server-Version"));
	answer_done(&a);
	a = ask_with("GET", "/openapi.json", NULL, NULL);
	cr_assert_eq(a.status, 200);
	cr_assert_str_eq(at(a.json, "openapi"), "3.0.3");
	answer_done(&a);
}

Test(serve_native, errors_have_their_envelope)
{
	answer a = ask_with("GET", "/v1/envs", NULL, NULL);

	cr_assert_eq(a.status, 401);
	cr_assert_str_eq(at(a.json, "error"), "missing api key");
	cr_assert_not_null(answer_header(&a, "X-AgentBox-Server-Version"));
	answer_done(&a);
	expect("GET", "/v1/ws/sync", NULL, 501, "{\"error\":\"");
	expect("GET", "/v1/nothing", NULL, 404, "{\"error\":");
	expect("DELETE", "/v1/envs", NULL, 405, "GET, POST");
	expect("GET", "/v1/approvals", NULL, 200, "{\"pending\":[],\"grants\":[]}");
	expect("GET", "/v1/sandboxes/x/terminal?token=t", NULL, 401, "token");
	expect("GET", "/v1/sandboxes/x/terminal", NULL, 401, "missing terminal token");
	expect("GET", "/ws/clusters/local/sandboxes/x/terminal?token=t", NULL, 401,
	       "token");
}

Test(serve_native, who_where_and_what)
{
	answer a = ask("GET", "/v1/auth/whoami", NULL);

	cr_assert_eq(a.status, 200);
	cr_assert_str_eq(at(a.json, "role"), "admin");
	cr_assert_str_eq(at(a.json, "namespace"), "default");
	answer_done(&a);
	expect("GET", "/v1/clusters", NULL, 200, "\"local\":true");
	expect("GET", "/v1/feature-gates", NULL, 200, "\"quota\":false");
	a = ask_unix("GET", "/v1/auth/whoami", NULL);
	cr_assert_eq(a.status, 200);
	cr_assert_str_eq(at(a.json, "role"), "admin");
	answer_done(&a);
}

Test(serve_native, envs)
{
	answer a;
	char *put;

	make_env("base", 1);
	a = ask("GET", "/v1/envs", NULL);
	cr_assert_eq(a.status, 200);
	cr_assert_str_eq(at(a.json, "items.0.name"), "base");
	cr_assert_str_eq(at(a.json, "items.0.templateName"), "t");
	cr_assert_str_eq(at(a.json, "items.0.memberCount"), "1");
	cr_assert_str_eq(at(a.json, "items.0.ready"), "true");
	answer_done(&a);
	a = ask("GET", "/v1/envs/base", NULL);
	cr_assert_eq(a.status, 200);
	cr_assert_str_eq(at(a.json, "env.name"), "base");
	cr_assert_str_eq(at(a.json, "env.spec.templateRef.name"), "t");
	cr_assert_str_eq(at(a.json, "env.spec.clusters.0.members.0.name"), "base-1c2gi");
	cr_assert_null(node(a.json, "env.spec.clusters.0.members.0.spec"));
	cr_assert_str_eq(at(a.json, "env.team"), "admin");
	put = abx__strdup(json_object_to_json_string(node(a.json, "editable")));
	answer_done(&a);
	expect("PUT", "/v1/envs/base", put, 200, "\"env\"");
	abx__free(put);
	expect("PUT", "/v1/envs/base", "{\"templateRef\":{\"name\":\"other\"}}", 400,
	       "templateRef");
	expect("PUT", "/v1/envs/nope", "{\"templateRef\":{\"name\":\"t\"}}", 404, "nope");
	expect("GET", "/v1/envs/nope", NULL, 404,
	       "{\"error\":\"sandbox env \\\"nope\\\" not found");
	expect("POST", "/v1/envs", "{\"name\":\"base\",\"templateRef\":{\"name\":\"t\"}}",
	       409, "base");
	expect("DELETE", "/v1/envs/base", NULL, 202, "\"Terminating\"");
	expect("DELETE", "/v1/envs/base", NULL, 404, "base");
}

Test(serve_native, overrides_are_replaced_as_a_whole)
{
	answer a;
	json_object *edit, *overrides;

	make_env("base", 1);
	a = ask("GET", "/v1/envs/base", NULL);
	edit = node(a.json, "editable");
	overrides = json_object_new_object();
	json_object_object_add(overrides, "defaultIdleTimeout",
			       json_object_new_string("90s"));
	json_object_object_add(edit, "overrides", overrides);
	expect("PUT", "/v1/envs/base", json_object_to_json_string(edit), 200, "90s");
	json_object_object_del(edit, "overrides");
	expect("PUT", "/v1/envs/base", json_object_to_json_string(edit), 200, NULL);
	answer_done(&a);
	a = ask("GET", "/v1/envs/base", NULL);
	cr_assert_null(strstr(a.text, "90s"));
	cr_assert_str_eq(at(a.json, "editable.overrides.envd.verbose"), "true");
	answer_done(&a);
}

Test(serve_native, guarded_bodies_are_strict)
{
	make_env("base", 1);
	expect("POST", "/v1/envs",
	       "{\"name\":\"x\",\"templateRef\":{\"name\":\"t\"},\"surprise\":1}", 400,
	       "surprise");
	expect("POST", "/v1/envs",
	       "{\"name\":\"x\",\"templateRef\":{\"name\":\"t\",\"deep\":1}}", 400,
	       "templateRef.deep");
	expect("POST", "/v1/envs", "{\"name\":\"x\",\"templateRef\":{\"name\":\"nope\"}}",
	       400, "nope");
	expect("POST", "/v1/envs",
	       "{\"name\":\"UPPER\",\"templateRef\":{\"name\":\"t\"}}", 400, "name");
	expect("POST", "/v1/envs", "{\"templateRef\":{\"name\":\"t\"}}", 400, "name");
	expect("POST", "/v1/envs", "{\"name\":\"x\"}", 400, "templateRef");
	expect("POST", "/v1/envs", "", 400, "request body");
	expect("POST", "/v1/envs",
	       "{\"name\":\"x\",\"templateRef\":{\"name\":\"t\"},\"mode\":"
	       "\"OnDemandJob\"}",
	       400, "OnDemandJob");
	expect("POST", "/v1/envs",
	       "{\"name\":\"x\",\"templateRef\":{\"name\":\"t\"},\"overrides\":{"
	       "\"gateway\":{\"enabled\":true}}}",
	       400, "gateway");
	expect("POST", "/v1/envs",
	       "{\"name\":\"x\",\"templateRef\":{\"name\":\"t\"},\"overrides\":{"
	       "\"imagePullSecret\":"
	       "{\"registries\":[{\"registry\":\"r\",\"username\":\"u\",\"password\":"
	       "\"p\"}]}}}",
	       400, "imagePullSecret");
	expect("POST", "/v1/envs/base/sandboxpools", "{\"replicas\":-1}", 400,
	       "replicas");
	expect("POST", "/v1/envs/base/sandboxpools",
	       "{\"inlineResources\":{\"requests\":{\"cpu\":\"x\"}}}", 400, "cpu");
	expect("POST", "/v1/envs/base/sandboxpools", "{\"nme\":1}", 400, "nme");
	expect("POST", "/v1/envs/base/sandboxpools", "{}", 400, NULL);
	expect("GET", "/v1/envs/x", NULL, 404, "x");
}

Test(serve_native, pools)
{
	static const char base[] = "/v1/envs/base/sandboxpools";
	char put[512];
	answer a;

	make_env("base", 1);
	a = ask("GET", base, NULL);
	cr_assert_eq(a.status, 200);
	cr_assert_str_eq(at(a.json, "total"), "1");
	cr_assert_not_null(at(a.json, "limit"));
	cr_assert_str_eq(at(a.json, "items.0.name"), "base-1c2gi");
	cr_assert_str_eq(at(a.json, "items.0.cpu"), "1");
	cr_assert_str_eq(at(a.json, "items.0.memory"), "2Gi");
	cr_assert_str_eq(at(a.json, "items.0.owningEnv"), "base");
	cr_assert_str_eq(at(a.json, "items.0.scalingGroup"), "1c2gi");
	cr_assert_str_eq(at(a.json, "items.0.spec.replicas"), "1");
	answer_done(&a);
	a = ask("GET", "/v1/envs/base/sandboxpools/base-1c2gi", NULL);
	cr_assert_eq(a.status, 200);
	cr_assert_str_eq(at(a.json, "template.name"), "base-1c2gi");
	cr_assert_str_eq(at(a.json, "editable.replicas"), "1");
	json_object_object_add(node(a.json, "editable"), "replicas",
			       json_object_new_int(3));
	snprintf(put, sizeof(put), "%s",
		 json_object_to_json_string(node(a.json, "editable")));
	answer_done(&a);
	expect("PUT", "/v1/envs/base/sandboxpools/base-1c2gi", put, 200, "base-1c2gi");
	wait_idle("base", 3);
	expect("PUT", "/v1/envs/base/sandboxpools/base-1c2gi",
	       "{\"inlineResources\":{\"requests\":{\"cpu\":\"2\",\"memory\":\"2Gi\"}}}",
	       400, "inlineResources");
	expect("POST", base,
	       "{\"inlineResources\":{\"requests\":{\"cpu\":\"1\",\"memory\":\"2Gi\"},"
	       "\"limits\":{\"cpu\":\"1\",\"memory\":\"2Gi\"}},\"replicas\":1}",
	       409, "base-1c2gi");
	expect("GET", "/v1/envs/base/sandboxpools/nope", NULL, 404, "nope");
	expect("POST", "/v1/envs/nope/sandboxpools", "{}", 404, "nope");
	expect("DELETE", "/v1/envs/base/sandboxpools/base-1c2gi", NULL, 202,
	       "\"Terminating\"");
	expect("DELETE", "/v1/envs/base/sandboxpools/base-1c2gi", NULL, 404, NULL);
}

Test(serve_native, groups)
{
	static const char path[] = "/v1/envs/base/autoscaling/groups/1c2gi";
	answer a;

	make_env("base", 1);
	expect("PUT", path, "{\"enabled\":true,\"minReplicas\":1,\"maxReplicas\":4}", 200,
	       "\"group\"");
	a = ask("GET", path, NULL);
	cr_assert_eq(a.status, 200);
	cr_assert_str_eq(at(a.json, "group.name"), "1c2gi");
	cr_assert_str_eq(at(a.json, "group.maxReplicas"), "4");
	cr_assert_null(node(a.json, "editable.name"));
	answer_done(&a);
	expect("GET", "/v1/envs/base/autoscaling/groups", NULL, 200, "\"total\":1");
	expect("GET", "/v1/envs/base/autoscaling", NULL, 200, "\"groups\"");
	expect("PUT", path,
	       "{\"enabled\":true,\"scaleUpPolicy\":{\"mode\":\"Aggressive\"}}", 400,
	       "maxReplicas");
	expect("PUT", path, "{\"minReplicas\":-1}", 400, "minReplicas");
	expect("PUT", "/v1/envs/base/autoscaling/groups/nope", "{}", 404, "nope");
	expect("GET", "/v1/envs/base/autoscaling/groups/nope", NULL, 404, "nope");
	expect("DELETE", path, NULL, 200, "\"Deleted\"");
}

Test(serve_native, templates)
{
	answer a;

	make_env("base", 1);
	a = ask("GET", "/v1/sandbox-templates", NULL);
	cr_assert_eq(a.status, 200);
	cr_assert_str_eq(at(a.json, "items.0.name"), "t");
	cr_assert_str_eq(at(a.json, "items.0.runtimeNames.0"), "envd");
	cr_assert_str_eq(at(a.json, "items.0.hasDocs"), "false");
	answer_done(&a);
	a = ask("GET", "/v1/sandbox-templates/t", NULL);
	cr_assert_eq(a.status, 200);
	cr_assert_not_null(strstr(at(a.json, "template.crdYaml"), "resourceVersion"));
	answer_done(&a);
	expect("GET", "/v1/sandbox-templates/nope", NULL, 404, "nope");
	expect("POST", "/v1/admin/sandbox-templates", "{}", 400, "crdJson");
	expect("POST", "/v1/admin/sandbox-templates", "{\"crdJson\":\"{\"}", 400,
	       "crdJson");
	expect("POST", "/v1/admin/sandbox-templates",
	       "{\"crdJson\":\"{\\\"apiVersion\\\":\\\"agents.navix.sh/"
	       "v1alpha1\\\",\\\"kind\\\":"
	       "\\\"SandboxTemplate\\\",\\\"metadata\\\":{\\\"name\\\":\\\"x\\\"},"
	       "\\\"spec\\\":"
	       "{\\\"idelImage\\\":\\\"i\\\"}}\"}",
	       400, "spec.idelImage");
	expect("DELETE", "/v1/admin/sandbox-templates/t", NULL, 409, "base");
	expect("DELETE", "/v1/admin/sandbox-templates/nope", NULL, 404, "nope");
	expect("PUT", "/v1/admin/sandbox-templates/other",
	       "{\"crdJson\":\"{\\\"apiVersion\\\":\\\"agents.navix.sh/"
	       "v1alpha1\\\",\\\"kind\\\":"
	       "\\\"SandboxTemplate\\\",\\\"metadata\\\":{\\\"name\\\":\\\"x\\\"},"
	       "\\\"spec\\\":{}}\"}",
	       400, "path");
}

Test(serve_native, sandboxes)
{
	char path[96], timeout[128];
	answer a;

	make_env("base", 1);
	a = ask("POST", "/v1/sandboxes",
		"{\"poolName\":\"base\",\"metadata\":{\"k\":\"v\"},\"idleTimeout\":"
		"\"10m\"}");
	cr_assert_eq(a.status, 201, "%s", a.text);
	cr_assert_str_eq(at(a.json, "sandbox.status"), "Running");
	cr_assert_str_eq(at(a.json, "sandbox.envName"), "base");
	cr_assert_str_eq(at(a.json, "sandbox.poolName"), "base-1c2gi");
	cr_assert_str_eq(at(a.json, "sandbox.metadata.k"), "v");
	cr_assert_str_eq(at(a.json, "sandbox.idleTimeoutSeconds"), "600");
	cr_assert_not_null(
		strstr(at(a.json, "sandbox.endpoints.envd.url"), "/sandboxes/"));
	snprintf(path, sizeof(path), "/v1/sandboxes/%s", at(a.json, "sandbox.sandboxId"));
	answer_done(&a);
	expect("GET", path, NULL, 200, "Running");
	a = ask("GET", "/v1/sandboxes", NULL);
	cr_assert_str_eq(at(a.json, "total"), "1");
	cr_assert_str_eq(at(a.json, "limit"), "20");
	cr_assert_str_eq(at(a.json, "offset"), "0");
	answer_done(&a);
	expect("GET", "/v1/sandboxes?status=Failed,Running", NULL, 200, "\"total\":1");
	expect("GET", "/v1/sandboxes?status=Failed", NULL, 200, "\"total\":0");
	expect("GET", "/v1/sandboxes?poolName=nope", NULL, 200, "\"total\":0");
	expect("GET", "/v1/sandboxes?limit=0", NULL, 400, "limit");
	expect("GET", "/v1/sandboxes?limit=1001", NULL, 400, "limit");
	a = ask("POST", "/v1/sandboxes",
		"{\"poolName\":\"base\",\"startupTimeout\":\"100ms\"}");
	cr_assert_eq(a.status, 429, "%s", a.text);
	cr_assert_str_eq(at(a.json, "detail.running"), "1");
	answer_done(&a);
	snprintf(timeout, sizeof(timeout), "%s/timeout", path);
	expect("PUT", timeout, "{\"timeout\":\"5m\"}", 204, NULL);
	expect("PUT", timeout, "{\"timeout\":\"0\"}", 204, NULL);
	expect("PUT", timeout, "{\"timeout\":\"soon\"}", 400, "timeout");
	expect("PUT", timeout, "{}", 400, "timeout");
	expect("POST", "/v1/sandboxes", "{\"poolName\":\"nope\"}", 404, "nope");
	expect("POST", "/v1/sandboxes", "{\"poolName\":\"far::base\"}", 404, "far");
	expect("POST", "/v1/sandboxes", "{}", 400, "poolName");
	expect("POST", "/v1/sandboxes", "{\"poolName\":\"base\",\"idleTimeout\":\"-1s\"}",
	       400, "idleTimeout");
	expect("DELETE", path, NULL, 202, "\"Stopping\"");
	expect("DELETE", path, NULL, 202, "\"Terminated\"");
	expect("GET", path, NULL, 200, "\"Completed\"");
	expect("GET", "/v1/sandboxes?status=Completed", NULL, 200, "\"total\":1");
	expect("GET", "/v1/sandboxes?status=Pending", NULL, 200, "\"total\":0");
	expect("GET", "/v1/statistics/sandboxes", NULL, 200, "\"Completed\":1");
	expect("GET", "/v1/admin/statistics/sandboxes", NULL, 200, "\"default\":1");
	snprintf(timeout, sizeof(timeout), "%s/logs", path);
	expect("GET", timeout, NULL, 200, "\"source\":\"cached\"");
	snprintf(timeout, sizeof(timeout), "%s/logs/stream", path);
	expect("GET", timeout, NULL, 200,
	       "{\"_meta\":true,\"source\":\"live\",\"truncated\":false}");
	snprintf(timeout, sizeof(timeout), "%s/exec-token", path);
	expect("POST", timeout, NULL, 404, NULL);
	expect("GET", "/v1/sandboxes/nope", NULL, 404, "nope");
	expect("DELETE", "/v1/sandboxes/nope", NULL, 404, "nope");
	expect("GET", "/v1/envs/base/events?limit=2", NULL, 200, "\"total\":2");
	expect("GET", "/v1/envs/base/events?limit=0", NULL, 400, "1 to 500");
	expect("GET", "/v1/envs/nope/events", NULL, 404, "nope");
}

Test(serve_native, a_name_that_is_cut_leaves_the_message_text)
{
	ABX_CLEANUP_BUF abx__buf body = ABX__BUF_INIT;
	answer a;

	abx__buf_adds(&body, "{\"name\":\"h");
	for (int i = 0; i < 100; i++)
		abx__buf_adds(&body, "\xc3\xb4");
	abx__buf_adds(&body, "\",\"templateRef\":{\"name\":\"t\"}}");
	a = ask("POST", "/v1/envs", abx__buf_str(&body));
	cr_expect_eq(a.status, 400);
	cr_expect(abx__utf8_is_valid(a.text, strlen(a.text)), "%s", a.text);
	answer_done(&a);
}
