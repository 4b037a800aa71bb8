/* Bodies and routes of the native and the E2B API, as generated. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/error.h"
#include "model/gen/e2b.h"
#include "model/gen/native.h"
#include "model/gen/openapi.h"
#include "model/gen/routes.h"

#define PARSE(type, text, flags, ret, err) \
	type##_parse_text(text, strlen(text), flags, ret, err)

static const abx__route *route(const abx__route *routes, size_t count,
			       const char *operation)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(routes[i].operation_id, operation) == 0)
			return &routes[i];
	cr_assert(false, "no operation %s", operation);
	return NULL;
}

Test(model_wire, every_operation_of_the_contract_has_a_route)
{
	const abx__route *create = route(abx__m_native_routes, ABX__M_NATIVE_ROUTE_COUNT,
					 "CreateEnvSandboxPool");

	cr_assert_eq(ABX__M_NATIVE_ROUTE_COUNT, 53);
	cr_assert_eq(ABX__M_E2B_ROUTE_COUNT, 66);
	cr_assert_str_eq(create->method, "POST");
	cr_assert_str_eq(create->path, "/v1/envs/{name}/sandboxpools");
	cr_assert_eq(create->request,
		     &abx__m_native_create_env_sandbox_pool_request_schema);
	cr_assert_eq(create->success, 202);
	cr_assert(create->strict);
	cr_assert_eq(create->auth, ABX__AUTH_KEY);
	cr_assert_eq(route(abx__m_native_routes, ABX__M_NATIVE_ROUTE_COUNT,
			   "AdminCreateSandboxTemplate")
			     ->auth,
		     ABX__AUTH_ADMIN);

	create = route(abx__m_e2b_routes, ABX__M_E2B_ROUTE_COUNT, "CreateSandboxV2");
	cr_assert_str_eq(create->path, "/v2/sandboxes");
	cr_assert_eq(create->success, 201);
	cr_assert_not(create->strict);
	cr_assert_eq(route(abx__m_e2b_routes, ABX__M_E2B_ROUTE_COUNT, "GetHealth")->auth,
		     ABX__AUTH_NONE);
}

Test(model_wire, only_the_guarded_routes_are_strict)
{
	size_t strict = 0;

	for (size_t i = 0; i < ABX__M_NATIVE_ROUTE_COUNT; i++)
		strict += abx__m_native_routes[i].strict;
	cr_assert_eq(strict, 4);
	for (size_t i = 0; i < ABX__M_E2B_ROUTE_COUNT; i++)
		cr_assert_not(abx__m_e2b_routes[i].strict);
}

Test(model_wire, the_specifications_are_json_with_their_references)
{
	static const char *const texts[] = { abx__m_native_openapi, abx__m_e2b_openapi };

	for (size_t i = 0; i < 2; i++) {
		json_object *spec = json_tokener_parse(texts[i]);

		cr_assert(spec);
		cr_assert(json_object_object_get(spec, "paths"));
		cr_assert_null(strstr(texts[i], ".yaml#"));
		json_object_put(spec);
	}
	cr_assert_eq(strlen(abx__m_native_openapi), abx__m_native_openapi_len);
}

Test(model_wire, env_names_are_checked_at_create)
{
	abx__m_native_create_sandbox_env_request *body = NULL;
	abx_error *err = NULL;

	cr_assert_eq(PARSE(abx__m_native_create_sandbox_env_request,
			   "{\"name\":\"A\",\"templateRef\":{\"name\":\"t\"}}", 0, &body,
			   &err),
		     ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err), "name: env name \"A\" is not valid");
	cr_assert_eq(PARSE(abx__m_native_create_sandbox_env_request,
			   "{\"templateRef\":{\"name\":\"t\"}}", 0, &body, &err),
		     ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err), "name: required, but not given");
	cr_assert_eq(PARSE(abx__m_native_create_sandbox_env_request,
			   "{\"name\":\"a\",\"templateRef\":{\"name\":\"t\"},"
			   "\"overrides\":{\"volumes\":[{\"claimName\":\"c\"}]}}",
			   0, &body, &err),
		     ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err),
			 "overrides.volumes[0].mountPath: required, but not given");
	abx_error_free(err);
}

Test(model_wire, a_registry_password_is_a_secret)
{
	ABX_CLEANUP(abx__m_native_upsert_sandbox_env_request_freep)
	abx__m_native_upsert_sandbox_env_request *body = NULL;
	abx_error *err = NULL;

	cr_assert_eq(PARSE(abx__m_native_upsert_sandbox_env_request,
			   "{\"templateRef\":{\"name\":\"t\"},\"overrides\":{"
			   "\"imagePullSecret\":{"
			   "\"registries\":[{\"registry\":\"r\",\"username\":\"u\","
			   "\"password\":12345}]}}}",
			   0, &body, &err),
		     ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err), "overrides.imagePullSecret.registries[0]"
						 ".password: expected a string, got a "
						 "number");
	abx_error_free(err);
	cr_assert_eq(PARSE(abx__m_native_upsert_sandbox_env_request,
			   "{\"templateRef\":{\"name\":\"t\"},\"overrides\":{"
			   "\"imagePullSecret\":{"
			   "\"registries\":[{\"registry\":\"r\",\"username\":\"u\","
			   "\"password\":\"hush\"}]}}}",
			   0, &body, NULL),
		     ABX_OK);
	cr_assert(abx__secret_equals(
		body->overrides->image_pull_secret->registries[0].password, "hush", 4));
}

Test(model_wire, pool_bodies_refuse_a_name_and_negative_replicas)
{
	abx__m_native_create_env_sandbox_pool_request *body = NULL;
	abx_error *err = NULL;

	cr_assert_eq(PARSE(abx__m_native_create_env_sandbox_pool_request,
			   "{\"name\":\"p\"}", 0, &body, &err),
		     ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err), "name: unknown field");
	cr_assert_eq(PARSE(abx__m_native_create_env_sandbox_pool_request,
			   "{\"replicas\":-1}", 0, &body, &err),
		     ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err),
			 "replicas: expected an integer of at least 0, got -1");
	abx_error_free(err);
}

Test(model_wire, an_e2b_create_is_read_whole)
{
	ABX_CLEANUP(abx__m_e2b_new_sandbox_freep) abx__m_e2b_new_sandbox *body = NULL;

	cr_assert_eq(
		PARSE(abx__m_e2b_new_sandbox,
		      "{\"templateID\":\"base\",\"timeout\":300,\"secure\":true,"
		      "\"allow_internet_access\":false,\"metadata\":{\"a\":\"b\"},"
		      "\"envVars\":{\"K\":\"V\"},\"autoPause\":false,\"brandNew\":{\"x\":"
		      "1},"
		      "\"network\":{\"allowOut\":[\"1.1.1.1\"],\"egressProxy\":null}}",
		      ABX__SCHEMA_TOLERANT, &body, NULL),
		ABX_OK);
	cr_assert_str_eq(body->template_id, "base");
	cr_assert_eq(body->timeout, 300);
	cr_assert(body->secure && body->has_secure);
	cr_assert(body->has_allow_internet_access && !body->allow_internet_access);
	cr_assert_str_eq(abx__map_get(&body->env_vars, "K"), "V");
	cr_assert_eq(body->network->n_allow_out, 1);
	cr_assert_null(body->network->egress_proxy);
}

Test(model_wire, timeouts_below_one_are_refused)
{
	static const char *const bodies[] = { "{\"timeout\":0}", "{\"timeout\":-5}" };

	for (size_t i = 0; i < 2; i++) {
		abx__m_e2b_sandbox_timeout_request *body = NULL;
		abx_error *err = NULL;

		cr_assert_eq(PARSE(abx__m_e2b_sandbox_timeout_request, bodies[i],
				   ABX__SCHEMA_TOLERANT, &body, &err),
			     ABX_EINVAL);
		cr_assert(strstr(abx_error_message(err),
				 "timeout: expected an integer of at least 1, got "));
		abx_error_free(err);
	}
}

Test(model_wire, a_variables_value_stays_out_of_errors)
{
	abx__m_e2b_new_sandbox_v2 *body = NULL;
	abx_error *err = NULL;

	cr_assert_eq(PARSE(abx__m_e2b_new_sandbox_v2,
			   "{\"templateID\":\"b\",\"envVars\":{\"TOKEN\":123456}}",
			   ABX__SCHEMA_TOLERANT, &body, &err),
		     ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err),
			 "envVars[\"TOKEN\"]: expected a string, got a number");
	abx_error_free(err);
}

Test(model_wire, required_members_of_answers_are_there_when_empty)
{
	abx__m_e2b_team_api_key key = { .id = (char *)"i", .name = (char *)"n" };
	abx__m_e2b_identifier_masking_details mask = { .prefix = (char *)"e2b_",
						       .masked_value_prefix =
							       (char *)"ab",
						       .masked_value_suffix =
							       (char *)"cd",
						       .value_length = 40,
						       .has_value_length = true };
	abx__m_native_sandbox_env_list list = { 0 };
	json_object *json;

	key.mask = &mask;
	key.created_at = (char *)"2026-12-01T00:00:00Z";
	json = abx__m_e2b_team_api_key_print(&key, 0);
	cr_assert_str_eq(
		json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN),
		"{\"id\":\"i\",\"name\":\"n\",\"mask\":{\"prefix\":\"e2b_\","
		"\"valueLength\":40,\"maskedValuePrefix\":\"ab\",\"maskedValueSuffix\":"
		"\"cd\"},\"createdAt\":\"2026-12-01T00:00:00Z\"}");
	json_object_put(json);
	json = abx__m_native_sandbox_env_list_print(&list, 0);
	cr_assert_str_eq(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN),
			 "{\"items\":[]}");
	json_object_put(json);
}

Test(model_wire, zero_counts_are_left_out_of_env_answers)
{
	abx__m_sandbox_env_status status = { .has_member_count = true,
					     .has_idle_replicas = true,
					     .idle_replicas = 2 };
	json_object *json = abx__m_sandbox_env_status_print(&status, 0);

	cr_assert_str_eq(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN),
			 "{\"idleReplicas\":2}");
	json_object_put(json);
}
