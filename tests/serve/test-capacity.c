/* Instance types and quotas from files, and GET /metrics. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon.h"

static char types_path[] = "/tmp/abx-types-XXXXXX",
	    quotas_path[] = "/tmp/abx-quotas-XXXXXX";

static void write_file(char *path, const char *text)
{
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	/* The daemon reads it as another account. */
	cr_assert_eq(chmod(path, 0644), 0);
}

static void teardown(void)
{
	daemon_teardown();
	unlink(types_path);
	unlink(quotas_path);
}

TestSuite(serve_capacity, .fini = teardown, .timeout = 120);

static void begin(void)
{
	write_file(types_path, "items:\n"
			       "- name: 1c8g\n"
			       "  baseResources: {cpu: \"1\", memory: 8Gi}\n"
			       "  maxMultiplier: 4\n"
			       "  cost: 1 credit\n");
	write_file(quotas_path, "items:\n"
				"- name: q/ten\n"
				"  shortName: ten\n"
				"  resources:\n"
				"    total: {1c8g: \"3\"}\n");
	daemon_start("--instance-types", types_path, "--quotas", quotas_path, NULL);
	expect("POST", "/v1/admin/sandbox-templates",
	       "{\"crdJson\":\"{\\\"apiVersion\\\":\\\"agents.navix.sh/v1alpha1\\\","
	       "\\\"kind\\\":\\\"SandboxTemplate\\\",\\\"metadata\\\":{\\\"name\\\":"
	       "\\\"t\\\",\\\"labels\\\":{\\\"agentbox.navix.sh/pool-sizing\\\":"
	       "\\\"billed\\\"}},\\\"spec\\\":{\\\"idleImage\\\":\\\"idle:1\\\","
	       "\\\"template\\\":{\\\"spec\\\":{\\\"containers\\\":[{\\\"name\\\":"
	       "\\\"sandbox\\\",\\\"image\\\":\\\"w:1\\\"}]}}}}\"}",
	       201, NULL);
	expect("POST", "/v1/envs", "{\"name\":\"demo\",\"templateRef\":{\"name\":\"t\"}}",
	       201, "\"poolSizing\":\"billed\"");
}

Test(serve_capacity, files_become_lists_and_gates)
{
	begin();
	expect("GET", "/v1/feature-gates", NULL, 200,
	       "{\"quota\":true,\"instanceType\":true,\"volumes\":false}");
	expect("GET", "/v1/instancetypes", NULL, 200,
	       "{\"items\":[{\"name\":\"1c8g\",\"baseResources\":{\"cpu\":\"1\","
	       "\"memory\":\"8Gi\"},\"maxMultiplier\":4,\"cost\":\"1 credit\"}],"
	       "\"total\":1}");
	expect("POST", "/v1/envs/demo/sandboxpools",
	       "{\"inlineResources\":{\"requests\":{\"cpu\":\"1\",\"memory\":\"2Gi\"}}}",
	       400, "quota.scitix.ai/url");
	expect("POST", "/v1/envs/demo/sandboxpools",
	       "{\"instanceType\":\"1c8g\",\"replicas\":2,\"labels\":{"
	       "\"quota.scitix.ai/url\":\"q/ten\"}}",
	       202, "\"name\":\"demo-1c8gi-ten\"");
	expect("GET", "/v1/quotas", NULL, 200,
	       "\"resources\":{\"total\":{\"1c8g\":\"3\"},\"used\":{\"1c8g\":\"2\"},"
	       "\"reserved\":{\"1c8g\":\"0\"},\"free\":{\"1c8g\":\"1\"}}");
	expect("PUT", "/v1/envs/demo/sandboxpools/demo-1c8gi-ten",
	       "{\"instanceType\":\"1c8g\",\"inlineResources\":{\"requests\":{\"cpu\":"
	       "\"1\",\"memory\":\"8Gi\"},\"limits\":{\"cpu\":\"1\",\"memory\":\"8Gi\"}},"
	       "\"replicas\":9,\"labels\":{\"quota.scitix.ai/url\":\"q/ten\"},"
	       "\"annotations\":{\"scheduling.navix.sh/reservation-replica-quota\":"
	       "\"{\\\"1c8g\\\":\\\"1\\\"}\"}}",
	       429, "room for 3 of 9");
}

Test(serve_capacity, a_file_that_is_wrong_is_named)
{
	char dir[64], out[2048];
	const char *args[] = { "--state-dir",      dir,        "--engine", "fake",
			       "--instance-types", types_path, NULL };

	write_file(types_path, "items:\n- name: a\n  baseResources: {cpu: much}\n");
	snprintf(dir, sizeof(dir), "%s.d", types_path);
	cr_assert_neq(run_to_end(out, sizeof(out), args), 0);
	cr_assert(strstr(out, "abx-types-"), "%s", out);
	cr_assert(strstr(out, "baseResources"), "%s", out);
	cr_assert_eq(rmdir(dir), 0, "nothing was made in it");
}

Test(serve_capacity, metrics_are_prometheus_text_for_admins)
{
	static const char *const no_key[] = { "AGENTBOX-API-KEY: nope", NULL };
	answer a;

	begin();
	expect("GET", "/v1/envs/nosuch", NULL, 404, NULL);
	a = ask("GET", "/metrics", NULL);
	cr_assert_eq(a.status, 200);
	cr_assert(strstr(answer_header(&a, "Content-Type"), "text/plain; version=0.0.4"));
	cr_assert(strstr(a.text, "# TYPE agentbox_http_requests_total counter\n"));
	cr_assert(strstr(a.text, "agentbox_http_requests_total{method=\"GET\",path=\"/v1/"
				 "envs/{name}\",status_code=\"404\",api=\"native\"} 1\n"),
		  "%s", a.text);
	cr_assert(strstr(a.text, "# TYPE agentbox_http_request_duration_seconds "
				 "histogram\n"));
	cr_assert(strstr(a.text, "agentbox_sandbox_records 0\n"));
	answer_done(&a);
	a = ask_with("GET", "/metrics", NULL, no_key);
	cr_assert_eq(a.status, 401);
	answer_done(&a);
}

/* --- who sees a template may make an env of it --- */

#define TEMPLATE_FOR_RED                                                        \
	"{\"crdJson\":\"{\\\"apiVersion\\\":\\\"agents.navix.sh/"               \
	"v1alpha1\\\",\\\"kind\\\":"                                            \
	"\\\"SandboxTemplate\\\",\\\"metadata\\\":{\\\"name\\\":\\\"reds\\\"}," \
	"\\\"spec\\\":"                                                         \
	"{\\\"visibility\\\":{\\\"rules\\\":[{\\\"team\\\":\\\"red\\\"}]},"     \
	"\\\"template\\\":"                                                     \
	"{\\\"spec\\\":{\\\"containers\\\":[{\\\"name\\\":\\\"sandbox\\\","     \
	"\\\"image\\\":"                                                        \
	"\\\"w:1\\\"}]}}}}\"}"

static int make_env_as(const char *team)
{
	char body[128], header[128];
	const char *const headers[] = { header, "Content-Type: application/json", NULL };
	answer a;
	int status;

	snprintf(body, sizeof(body), "{\"team\":\"%s\",\"user\":\"u\"}", team);
	a = ask("POST", "/v1/admin/api-keys", body);
	cr_assert_eq(a.status, 201, "%s", a.text);
	snprintf(header, sizeof(header), "AGENTBOX-API-KEY: %s", at(a.json, "apiKey"));
	answer_done(&a);
	snprintf(body, sizeof(body),
		 "{\"name\":\"of-%s\",\"templateRef\":{\"name\":\"reds\"}}", team);
	a = ask_with("POST", "/v1/envs", body, headers);
	status = a.status;
	cr_assert(status == 201 || strstr(a.text, "template reds does not exist"), "%s",
		  a.text);
	answer_done(&a);
	return status;
}

Test(serve_capacity, an_env_is_made_of_templates_its_maker_may_see)
{
	daemon_start(NULL);
	expect("POST", "/v1/admin/sandbox-templates", TEMPLATE_FOR_RED, 201, NULL);
	cr_assert_eq(make_env_as("blue"), 400);
	cr_assert_eq(make_env_as("red"), 201);
	expect("POST", "/v1/envs",
	       "{\"name\":\"of-admin\",\"templateRef\":{\"name\":"
	       "\"reds\"}}",
	       201, NULL);
	expect("GET", "/v1/envs", NULL, 200, "\"name\":\"of-red\"");
}
