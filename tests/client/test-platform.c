/*
 * test-platform.c - the native API: requests as they are, and manifests.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "fixture.h"

TestSuite(client_platform, .timeout = 30);

Test(client_platform, a_request_goes_out_as_it_is)
{
	static const fake_answer answers[] = {
		{ .method = "GET",
		  .path = "/v1/envs/base",
		  .query = "x=1",
		  .status = 200,
		  .body = "{\"env\":{\"name\":\"base\"}}" },
		{ .method = "DELETE",
		  .path = "/v1/envs/base",
		  .status = 202,
		  .body = "{\"status\":\"Terminating\"}" },
		{ .method = "PUT", .status = 204 },
		{ 0 },
	};
	char *json = NULL;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_platform_get(f.client, "/envs/base?x=1", &json, &f.err) == ABX_OK,
		  "%s", abx_error_message(f.err));
	cr_expect_str_eq(json, "{\"env\":{\"name\":\"base\"}}");
	abx_free(json);
	expect_seen(&f, 0, "agentbox-api-key: agbx_secret\n");
	expect_seen(&f, 0, "x-agentbox-client-version: 0.1.0\n");
	cr_expect(abx_platform_delete(f.client, "/envs/base", NULL, &f.err) == ABX_OK);
	cr_assert(abx_platform_request(f.client, "PUT", "/sandboxes/x/timeout",
				       "{\"timeout\":\"1m\"}", &json, &f.err) == ABX_OK);
	cr_expect_str_eq(json, "");
	abx_free(json);
	expect_seen(&f, 2, "\n\n{\"timeout\":\"1m\"}");
	json = abx_platform_escape("a b/c");
	cr_expect_str_eq(json, "a%20b%2Fc");
	abx_free(json);
	fixture_down(&f);
}

Test(client_platform, wrong_requests_are_refused_before_anything_is_sent)
{
	static const fake_answer answers[] = { { 0 } };
	char *json = NULL;
	fixture f;

	fixture_up(&f, answers);
	expect_error(&f,
		     abx_platform_request(f.client, "PATCH", "/x", NULL, &json, &f.err),
		     ABX_EINVAL, "'PATCH'");
	expect_error(&f, abx_platform_get(f.client, "envs", &json, &f.err), ABX_EINVAL,
		     "'envs'");
	expect_error(&f, abx_platform_get(f.client, "/a b", &json, &f.err), ABX_EINVAL,
		     "encoded");
	expect_error(&f, abx_platform_get(f.client, "/a\r\nX: y", &json, &f.err),
		     ABX_EINVAL, "encoded");
	expect_error(&f, abx_platform_request(f.client, "POST", "/x", "{", &json, &f.err),
		     ABX_EINVAL, "the body for /x");
	cr_expect(fake_server_count(f.server) == 0);
	fixture_down(&f);
}

Test(client_platform, refusals_carry_the_platforms_detail_as_hint)
{
	static const fake_answer answers[] = {
		{ .path = "/v1/a",
		  .status = 400,
		  .body = "{\"error\":\"unknown field spec.x\",\"detail\":\"look at the "
			  "schema\"}" },
		{ .path = "/v1/b",
		  .status = 404,
		  .body = "{\"error\":\"env 'b' not "
			  "found\",\"detail\":{\"availablePools\":[\"p\"],\"hint\":\"try "
			  "p\"}}" },
		{ .path = "/v1/c",
		  .status = 403,
		  .body = "{\"error\":\"admin api key required\"}" },
		{ .path = "/v1/d",
		  .status = 409,
		  .body = "{\"error\":\"env 'd' exists already\"}" },
		{ .path = "/v1/e",
		  .status = 409,
		  .body = "{\"error\":\"changed meanwhile\"}" },
		{ .path = "/v1/f",
		  .status = 400,
		  .body = "{\"error\":\"bad\",\"detail\":{\"n\":1}}" },
		{ 0 },
	};
	static const struct {
		const char *path, *text, *hint;
		int code;
	} rows[] = {
		{ "/a", "GET /a: unknown field spec.x", "look at the schema",
		  ABX_EINVAL },
		{ "/b", "env 'b' not found", "try p", ABX_ENOTFOUND },
		{ "/c", "admin api key required", NULL, ABX_EDENIED },
		{ "/d", "exists already", NULL, ABX_EEXISTS },
		{ "/e", "changed meanwhile", NULL, ABX_ECONFLICT },
		{ "/f", "bad", "{\"n\":1}", ABX_EINVAL },
	};
	fixture f;

	fixture_up(&f, answers);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *json = NULL;
		int r = abx_platform_get(f.client, rows[i].path, &json, &f.err);

		if (rows[i].hint)
			cr_expect_str_eq(abx_error_hint(f.err), rows[i].hint);
		else
			cr_expect_null(abx_error_hint(f.err));
		cr_expect(abx_error_http_status(f.err) >= 400);
		expect_error(&f, r, rows[i].code, rows[i].text);
	}
	fixture_down(&f);
}

Test(client_platform, an_e2b_address_has_no_platform_objects)
{
	abx_client_options o = ABX_CLIENT_OPTIONS_INIT;
	abx_client *client = NULL;
	char *json = NULL;
	fixture f = { 0 };

	o.flags = ABX_CLIENT_NO_ENVIRONMENT | ABX_CLIENT_NO_CONTEXT;
	o.e2b_api_url = "http://127.0.0.1:1";
	cr_assert(abx_client_new(&o, &client, &f.err) == ABX_OK);
	expect_error(&f, abx_platform_get(client, "/envs", &json, &f.err),
		     ABX_EUNSUPPORTED, "E2B API alone");
	abx_client_free(client);
	o.e2b_api_url = NULL;
	o.endpoint = "http://127.0.0.1:1";
	cr_assert(abx_client_new(&o, &client, &f.err) == ABX_OK);
	expect_error(&f, abx_platform_get(client, "/envs", &json, &f.err), ABX_EINVAL,
		     "no cluster");
	abx_client_free(client);
}

/* ---- manifests ---- */

#define WHERE                                                          \
	{ .path = "/v1/clusters",                                      \
	  .status = 200,                                               \
	  .body = "{\"clusters\":[{\"id\":\"c1\",\"local\":true}]}" }, \
	{                                                              \
		.path = "/v1/auth/whoami", .status = 200,              \
		.body = "{\"namespace\":\"default\"}"                  \
	}

static const char env_yaml[] = "apiVersion: agents.navix.sh/v1alpha1\n"
			       "kind: SandboxEnv\n"
			       "metadata:\n"
			       "  name: e2b\n"
			       "spec:\n"
			       "  templateRef:\n"
			       "    name: e2b-envd\n"
			       "  mode: WarmPool\n"
			       "  clusters:\n"
			       "  - clusterID: c1\n"
			       "    members:\n"
			       "    - name: e2b-1c2gi\n"
			       "      config:\n"
			       "        scalingGroup: 1c2gi\n"
			       "        inlineResources:\n"
			       "          requests: {cpu: \"1\", memory: 2Gi}\n"
			       "          limits: {cpu: \"1\", memory: 2Gi}\n"
			       "      spec:\n"
			       "        replicas: 2\n";

static int apply(fixture *f, const char *text, const char *resource, int mode,
		 char **json)
{
	abx_apply_options o = ABX_APPLY_OPTIONS_INIT;

	o.mode = mode;
	o.resource = resource;
	o.name = "env.yaml";
	return abx_platform_apply(f->client, text, strlen(text), &o, json, &f->err);
}

Test(client_platform, an_env_becomes_the_calls_that_make_it)
{
	static const fake_answer answers[] = {
		WHERE,
		{ .method = "POST",
		  .path = "/v1/envs",
		  .status = 201,
		  .body = "{\"env\":{\"name\":\"e2b\"}}" },
		{ .method = "POST",
		  .path = "/v1/envs/e2b/sandboxpools",
		  .status = 202,
		  .body = "{}" },
		{ 0 },
	};
	char *json = NULL;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(apply(&f, env_yaml, NULL, ABX_APPLY_ANY, &json) == ABX_OK, "%s",
		  abx_error_message(f.err));
	cr_expect(fake_server_count(f.server) == 4);
	expect_seen(&f, 2, "POST /v1/envs\n");
	expect_seen(&f, 2, "\"name\":\"e2b\"");
	expect_seen(&f, 2, "\"templateRef\":{\"name\":\"e2b-envd\"");
	expect_seen(&f, 3, "\"replicas\":2");
	cr_expect(strstr(json, "{\"kind\":\"SandboxEnv\",\"name\":\"e2b\",\"action\":"
			       "\"created\",\"object\":{"
			       "\"env\":{\"name\":\"e2b\"}}}") != NULL,
		  "%s", json);
	cr_expect(strstr(json, "{\"kind\":\"SandboxPool\",\"name\":\"e2b-1c2gi\","
			       "\"action\":\"created\"") != NULL,
		  "%s", json);
	abx_free(json);
	fixture_down(&f);
}

Test(client_platform, what_exists_is_replaced_with_what_the_server_stamped_kept)
{
	static const fake_answer answers[] = {
		WHERE,
		{ .method = "POST",
		  .path = "/v1/envs",
		  .status = 409,
		  .body = "{\"error\":\"exists already\"}" },
		{ .method = "GET",
		  .path = "/v1/envs/e2b",
		  .status = 200,
		  .body = "{\"env\":{},\"editable\":{\"templateRef\":{\"name\":\"e2b-"
			  "envd\"},\"mode\":\"WarmPool\","
			  "\"labels\":{\"team\":\"t\"},\"overrides\":{"
			  "\"imagePullSecretConfigured\":true,"
			  "\"image\":\"old\"}}}" },
		{ .method = "PUT", .path = "/v1/envs/e2b", .status = 200, .body = "{}" },
		{ .method = "POST",
		  .path = "/v1/envs/e2b/sandboxpools",
		  .status = 409,
		  .body = "{}" },
		{ .method = "GET",
		  .path = "/v1/envs/e2b/sandboxpools/e2b-1c2gi",
		  .status = 200,
		  .body = "{\"editable\":{\"replicas\":9,\"annotations\":{\"a\":\"1\"}}"
			  "}" },
		{ .method = "PUT",
		  .path = "/v1/envs/e2b/sandboxpools/e2b-1c2gi",
		  .status = 200,
		  .body = "{}" },
		{ 0 },
	};
	char *json = NULL;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(apply(&f, env_yaml, NULL, ABX_APPLY_ANY, &json) == ABX_OK, "%s",
		  abx_error_message(f.err));
	expect_seen(&f, 4, "PUT /v1/envs/e2b\n");
	expect_seen(&f, 4, "\"labels\":{\"team\":\"t\"}");
	expect_seen(&f, 4, "\"imagePullSecretConfigured\":true");
	expect_not_seen(&f, 4, "\"old\"");
	expect_seen(&f, 7, "\"replicas\":2");
	expect_seen(&f, 7, "\"annotations\":{\"a\":\"1\"}");
	cr_expect(strstr(json, "\"action\":\"updated\"") != NULL);
	cr_expect_null(strstr(json, "\"action\":\"created\""));
	abx_free(json);

	/* The same document when it must not exist. */
	int r = apply(&f, env_yaml, NULL, ABX_APPLY_CREATE, &json);
	expect_error(&f, r, ABX_EEXISTS,
		     "apply: env.yaml: SandboxEnv e2b: it exists already");
	fixture_down(&f);
}

Test(client_platform, an_update_of_what_is_missing_is_refused)
{
	static const fake_answer answers[] = {
		WHERE,
		{ .method = "GET",
		  .path = "/v1/envs/e2b",
		  .status = 404,
		  .body = "{\"error\":\"env e2b not found\"}" },
		{ 0 },
	};
	char *json = NULL;
	fixture f;

	fixture_up(&f, answers);
	int r = apply(&f, env_yaml, NULL, ABX_APPLY_UPDATE, &json);
	expect_error(&f, r, ABX_ENOTFOUND, "env e2b not found");
	cr_expect(fake_server_count(f.server) == 3);
	fixture_down(&f);
}

Test(client_platform, native_bodies_go_where_they_belong)
{
	static const fake_answer answers[] = {
		{ .method = "POST", .path = "/v1/envs", .status = 201, .body = "{}" },
		{ .method = "PUT", .path = "/v1/envs/e2b", .status = 200, .body = "{}" },
		{ 0 },
	};
	char *json = NULL;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(apply(&f, "{\"name\":\"e2b\"}", "/envs", ABX_APPLY_CREATE, &json) ==
			  ABX_OK,
		  "%s", abx_error_message(f.err));
	cr_expect(strstr(json, "\"name\":\"e2b\",\"action\":\"created\"") != NULL, "%s",
		  json);
	abx_free(json);
	cr_assert(apply(&f, "name: e2b\n", "/envs/e2b", ABX_APPLY_UPDATE, &json) ==
		  ABX_OK);
	cr_expect(strstr(json, "\"action\":\"updated\"") != NULL, "%s", json);
	abx_free(json);
	cr_expect(fake_server_count(f.server) == 2);
	fixture_down(&f);
}

Test(client_platform, documents_are_checked_before_the_first_is_sent)
{
	static const fake_answer answers[] = { WHERE, { 0 } };
	static const struct {
		const char *text;
		int code;
		const char *message;
	} rows[] = {
		{ "", ABX_EINVAL, "no document" },
		{ "- a\n", ABX_EINVAL, "not an object" },
		{ "a: [", ABX_EINVAL, "apply: env.yaml: YAML, line" },
		{ "{\"a\":", ABX_EINVAL, "apply: env.yaml: " },
		{ "name: x\n", ABX_EINVAL, "no apiVersion and kind" },
		{ "apiVersion: agents.navix.sh/v1alpha1\nkind: Nonsense\nmetadata: "
		  "{name: x}\n",
		  ABX_EINVAL, "Nonsense" },
		{ "apiVersion: agents.navix.sh/v1alpha1\nkind: SandboxEnv\nmetadata: "
		  "{name: x}\nspec: {templateRef: "
		  "{name: t}, bogus: 1}\n",
		  ABX_EINVAL, "bogus" },
	};
	fixture f;

	fixture_up(&f, answers);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *json = NULL;
		int r = apply(&f, rows[i].text, NULL, ABX_APPLY_ANY, &json);

		expect_error(&f, r, rows[i].code, rows[i].message);
	}
	for (unsigned i = 0; i < fake_server_count(f.server); i++)
		expect_not_seen(&f, i, "POST ");
	fixture_down(&f);
}

Test(client_platform, a_refusals_body_is_kept)
{
	static const fake_answer answers[] = {
		{ .path = "/v1/a",
		  .status = 428,
		  .body = "{\"error\":\"wait\",\"errorCode\":\"APPROVAL_REQUIRED\","
			  "\"detail\":{\"url\":\"http://c/x\"}}" },
		{ .path = "/v1/b", .status = 500, .body = "no json" },
		{ 0 },
	};
	char *json = NULL;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_platform_get(f.client, "/a", &json, &f.err) < 0);
	cr_expect_str_eq(abx_error_detail(f.err), answers[0].body);
	abx_error_free(f.err);
	f.err = NULL;
	cr_assert(abx_platform_get(f.client, "/b", &json, &f.err) < 0);
	cr_expect_null(abx_error_detail(f.err));
	abx_error_free(f.err);
	f.err = NULL;
	fixture_down(&f);
}

Test(client_platform, a_bodys_schema_is_told_without_a_client)
{
	static const struct {
		const char *method, *path, *has;
	} rows[] = {
		{ "POST", "/envs", "\"schema\":\"CreateSandboxEnvRequest\"" },
		{ "PUT", "/envs/demo", "\"schema\":\"UpsertSandboxEnvRequest\"" },
		{ "PUT", "/envs/{name}/autoscaling/groups/{groupName}",
		  "\"type\":\"Conservative | Default | Aggressive\"" },
		{ "POST", "/envs/{name}/sandboxpools",
		  "\"name\":\"multiplier\",\"type\":\"int\",\"required\":false,"
		  "\"fixed\":true,\"lever\":" },
		{ "POST", "/api-keys", "\"default\":\"unrestricted\"" },
		{ "POST", "/admin/api-keys", "\"name\":\"tokenHash\"" },
	}, wrong[] = {
		{ "GET", "/envs", "GET /envs" },       { "POST", "/env", "/env" },
		{ "POST", "/envs/", "/envs/" },	       { "PUT", "/envs//", "/envs//" },
		{ "POST", "envs", "envs" },	       { "POST", "", "POST" },
		{ "PUT", "/envs/a/sandboxpools", "" }, { "DELETE", "/envs/a", "" },
	};
	abx_error *err = NULL;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *json = NULL;

		cr_assert(abx_platform_schema(rows[i].method, rows[i].path, &json,
					      &err) == ABX_OK,
			  "%s", rows[i].path);
		cr_expect_not_null(strstr(json, rows[i].has), "%s: %s", rows[i].path,
				   json);
		abx_free(json);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char *json = NULL;

		cr_assert(abx_platform_schema(wrong[i].method, wrong[i].path, &json,
					      &err) == ABX_ENOTFOUND,
			  "%s", wrong[i].path);
		cr_expect_not_null(strstr(abx_error_message(err), wrong[i].has));
		abx_error_free(err);
		err = NULL;
	}
}

Test(client_platform, a_manifest_is_read_as_apply_reads_it)
{
	char *json = NULL;
	abx_error *err = NULL;

	cr_assert(abx_platform_parse("a: 1\n---\nb: x\n", 14, &json, &err) == ABX_OK);
	cr_expect_str_eq(json, "[{\"a\":1},{\"b\":\"x\"}]");
	abx_free(json);
	cr_expect(abx_platform_parse("{", 1, &json, &err) == ABX_EINVAL);
	abx_error_free(err);
	err = NULL;
	cr_expect(abx_platform_parse("- 1\n", 4, &json, &err) == ABX_EINVAL);
	cr_expect_not_null(strstr(abx_error_message(err), "not an object"));
	abx_error_free(err);
}
