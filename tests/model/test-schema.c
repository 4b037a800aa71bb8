/* The schema engine, over the generated tables of api/crds.yaml. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "model/gen/crds.h"

#define ENV_HEAD                                                                \
	"{\"apiVersion\":\"agents.navix.sh/v1alpha1\",\"kind\":\"SandboxEnv\"," \
	"\"metadata\":{\"name\":\"e2b\"},\"spec\":{\"templateRef\":{\"name\":\"t\"}"
#define MEMBER(config)                                                                 \
	ENV_HEAD ",\"clusters\":[{\"clusterID\":\"c1\",\"members\":[{\"name\":\"a\"}," \
		 "{\"name\":\"b\",\"config\":{" config "}}]}]}}"

static int parse_env(const char *text, unsigned flags, abx__m_sandbox_env **ret,
		     abx_error **err)
{
	return abx__m_sandbox_env_parse_text(text, strlen(text), flags, ret, err);
}

static void expect_refused(const char *text, const char *message)
{
	abx__m_sandbox_env *env = NULL;
	abx_error *err = NULL;

	cr_expect_eq(parse_env(text, 0, &env, &err), ABX_EINVAL, "%s", text);
	cr_expect_null(env);
	cr_expect_str_eq(abx_error_message(err), message);
	abx_error_free(err);
	abx__m_sandbox_env_free(env);
}

Test(model_schema, a_document_becomes_a_struct)
{
	ABX_CLEANUP(abx__m_sandbox_env_freep) abx__m_sandbox_env *env = NULL;
	const char *text =
		MEMBER("\"priority\":-3,\"maxReplicas\":7,\"labels\":{\"a/b\":\"c\"},"
		       "\"inlineResources\":{\"limits\":{\"cpu\":1,\"memory\":\"2Gi\"}},"
		       "\"updateStrategy\":{\"maxUnavailable\":3}");

	cr_assert_eq(parse_env(text, 0, &env, NULL), ABX_OK);
	cr_assert_eq(env->kind, ABX__M_SANDBOX_ENV_KIND_SANDBOX_ENV);
	cr_assert_str_eq(env->spec->template_ref->name, "t");
	cr_assert_eq(env->spec->mode, 0);
	cr_assert_eq(env->spec->n_clusters, 1);
	cr_assert_eq(env->spec->clusters[0].n_members, 2);

	abx__m_member_config *config = env->spec->clusters[0].members[1].config;

	cr_assert_eq(config->priority, -3);
	cr_assert(config->has_priority);
	cr_assert_not(config->has_min_replicas);
	cr_assert_eq(config->max_replicas, 7);
	cr_assert_str_eq(abx__map_get(&config->labels, "a/b"), "c");
	cr_assert_str_eq(abx__map_get(&config->inline_resources->limits, "cpu"), "1");
	cr_assert_str_eq(config->update_strategy->max_unavailable, "3");
	cr_assert_null(env->spec->clusters[0].members[0].config);
}

Test(model_schema, an_error_has_the_whole_path_what_and_got)
{
	expect_refused(MEMBER("\"foo\":1"),
		       "spec.clusters[0].members[1].config.foo: unknown field");
	expect_refused(
		MEMBER("\"priority\":\"1\""),
		"spec.clusters[0].members[1].config.priority: expected an integer of at "
		"least -2147483648, got \"1\"");
	expect_refused(MEMBER("\"minReplicas\":-1"),
		       "spec.clusters[0].members[1].config.minReplicas: expected an "
		       "integer of at "
		       "least 0, got -1");
	expect_refused(MEMBER("\"minReplicas\":1.5"),
		       "spec.clusters[0].members[1].config.minReplicas: expected an "
		       "integer of at "
		       "least 0, got 1.5");
	expect_refused(MEMBER("\"maxReplicas\":99999999999999999999"),
		       "spec.clusters[0].members[1].config.maxReplicas: the number is "
		       "too large");
	expect_refused(MEMBER("\"maxReplicas\":2147483648"),
		       "spec.clusters[0].members[1].config.maxReplicas: the number is "
		       "too large");
	expect_refused(
		MEMBER("\"inlineResources\":{\"requests\":{\"cpu\":\"2x\"}}"),
		"spec.clusters[0].members[1].config.inlineResources.requests[\"cpu\"]: "
		"\"2x\" is not a quantity");
	expect_refused(MEMBER("\"labels\":{\"a\":1}"),
		       "spec.clusters[0].members[1].config.labels[\"a\"]: expected a "
		       "string, got "
		       "a number");
	expect_refused(MEMBER("\"labels\":[]"),
		       "spec.clusters[0].members[1].config.labels: expected an object, "
		       "got an array");
	expect_refused(MEMBER("\"updateStrategy\":{\"autoUpdate\":\"yes\"}"),
		       "spec.clusters[0].members[1].config.updateStrategy.autoUpdate: "
		       "expected true "
		       "or false, got \"yes\"");
	expect_refused(MEMBER("\"updateStrategy\":{\"maxUnavailable\":\"20 %\"}"),
		       "spec.clusters[0].members[1].config.updateStrategy.maxUnavailable:"
		       " \"20 %\" "
		       "is not a number or a percentage such as 20%");
	expect_refused(
		ENV_HEAD ",\"mode\":\"warm\"}}",
		"spec.mode: expected one of \"WarmPool\", \"OnDemandJob\", got \"warm\"");
	expect_refused(
		ENV_HEAD ",\"overrides\":{\"image\":\"A\"}}}",
		"spec.overrides.image: image \"A\": the name is not valid (lower-case "
		"letters, digits and single separators)");
	expect_refused(ENV_HEAD ",\"overrides\":{\"defaultIdleTimeout\":300}}}",
		       "spec.overrides.defaultIdleTimeout: expected a duration such as "
		       "\"30s\", got "
		       "300");
	expect_refused(ENV_HEAD ",\"clusters\":[{\"clusterID\":\"\"}]}}",
		       "spec.clusters[0].clusterID: must not be empty");
	expect_refused(ENV_HEAD
		       ",\"clusters\":[{\"clusterID\":\"a\"},{\"clusterID\":\"a\"}]}}",
		       "spec.clusters[1].clusterID: \"a\" is there twice");
	expect_refused(ENV_HEAD ",\"overrides\":{\"image\":\"a\\u0000b\"}}}",
		       "spec.overrides.image: a NUL byte is not allowed");
	expect_refused("{\"kind\":\"SandboxEnv\"}",
		       "apiVersion: required, but not given");
	expect_refused("{\"kind\":\"SandboxPool\"}",
		       "kind: expected \"SandboxEnv\", got \"SandboxPool\"");
	expect_refused("[]", "expected an object, got an array");
	expect_refused("null", "expected an object, got null");
}

Test(model_schema, text_that_is_not_json_is_named)
{
	static const char *const cases[] = {
		"",     "{",   "{\"a\":1} x",      "{\"a\":'1'}", "{\"a\":1,}",
		"\x01", "tru", "{\"a\":\"\xff\"}", "/* c */ {}"
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		abx__m_sandbox_env *env = NULL;
		abx_error *err = NULL;

		cr_expect_eq(parse_env(cases[i], 0, &env, &err), ABX_EINVAL, "%s",
			     cases[i]);
		cr_expect(strstr(abx_error_message(err), "the body is not valid JSON: "),
			  "%s: %s", cases[i], abx_error_message(err));
		abx_error_free(err);
	}
}

Test(model_schema, an_unknown_field_comes_with_the_known_ones)
{
	abx__m_sandbox_env *env = NULL;
	abx_error *err = NULL;

	cr_assert_eq(parse_env(ENV_HEAD
			       ",\"overrides\":{\"gateway\":{\"enable\":true}}}}",
			       0, &env, &err),
		     ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err),
			 "spec.overrides.gateway.enable: unknown field");
	cr_assert_str_eq(abx_error_hint(err), "fields here: enabled");
	abx_error_free(err);
}

Test(model_schema, a_tolerant_parse_skips_what_it_does_not_know)
{
	ABX_CLEANUP(abx__m_sandbox_env_freep) abx__m_sandbox_env *env = NULL;

	cr_assert_eq(parse_env(MEMBER("\"foo\":{\"bar\":[1]},\"priority\":2"),
			       ABX__SCHEMA_TOLERANT, &env, NULL),
		     ABX_OK);
	cr_assert_eq(env->spec->clusters[0].members[1].config->priority, 2);
}

Test(model_schema, null_is_not_given)
{
	ABX_CLEANUP(abx__m_sandbox_env_freep) abx__m_sandbox_env *env = NULL;

	cr_assert_eq(parse_env(MEMBER("\"priority\":null,\"labels\":null,"
				      "\"inlineResources\":null"),
			       0, &env, NULL),
		     ABX_OK);
	cr_assert_not(env->spec->clusters[0].members[1].config->has_priority);
	expect_refused("{\"apiVersion\":null}", "apiVersion: required, but not given");
}

Test(model_schema, defaults_are_those_of_the_contract)
{
	ABX_CLEANUP(abx__m_autoscaling_group_freep)
	abx__m_autoscaling_group *group = NULL;
	const char *text = "{\"name\":\"g\"}";

	cr_assert_eq(abx__m_autoscaling_group_parse_text(
			     text, strlen(text), ABX__SCHEMA_DEFAULTS, &group, NULL),
		     ABX_OK);
	cr_assert_not(group->enabled);
	cr_assert(group->has_enabled);
	cr_assert_eq(group->min_replicas, 0);
	cr_assert_not(group->has_max_replicas);
	cr_assert_eq(group->scale_up_policy->mode, ABX__M_SCALE_UP_MODE_DEFAULT);
	cr_assert_eq(group->scale_up_policy->cooldown_seconds, 30);
	cr_assert_eq(group->scale_up_policy->idle_threshold_seconds, 30);
	cr_assert_eq(group->scale_up_policy->idle_zero_quiet_window_seconds, 300);
	cr_assert_eq(group->scale_up_policy->saturation_cooldown_seconds, 60);
	cr_assert_eq(group->scale_down_policy->idle_timeout_seconds, 300);
	cr_assert_eq(group->scale_down_policy->stabilization_seconds, 60);
	cr_assert_eq(group->scale_down_policy->protection_window_seconds, 10);

	json_object *all = abx__m_autoscaling_group_print(group, 0);
	json_object *few =
		abx__m_autoscaling_group_print(group, ABX__SCHEMA_OMIT_DEFAULTS);

	cr_assert_str_eq(json_object_to_json_string_ext(few, JSON_C_TO_STRING_PLAIN),
			 "{\"name\":\"g\"}");
	cr_assert_eq(json_object_object_length(all), 5);
	json_object_put(all);
	json_object_put(few);
}

Test(model_schema, printing_gives_the_document_back)
{
	const char *text =
		MEMBER("\"labels\":{\"k\":\"v\"},\"inlineResources\":{\"requests\":{"
		       "\"cpu\":\"1\"}},"
		       "\"scalingGroup\":\"g\",\"minReplicas\":0,\"priority\":5");
	ABX_CLEANUP(abx__m_sandbox_env_freep) abx__m_sandbox_env *env = NULL;
	json_object *want = json_tokener_parse(text), *got;

	cr_assert_eq(parse_env(text, 0, &env, NULL), ABX_OK);
	got = abx__m_sandbox_env_print(env, 0);
	cr_assert(json_object_equal(want, got), "%s", json_object_to_json_string(got));
	json_object_put(want);
	json_object_put(got);
}

Test(model_schema, a_fields_own_shape_is_kept)
{
	const char *text = "{\"template\":{\"spec\":{\"x\":[1,2.5,null,{\"y\":\"z\"}]}},"
			   "\"runtimes\":[{\"name\":\"envd\",\"config\":[true]}]}";
	ABX_CLEANUP(abx__m_sandbox_template_spec_freep)
	abx__m_sandbox_template_spec *spec = NULL;
	json_object *got;

	cr_assert_eq(abx__m_sandbox_template_spec_parse_text(text, strlen(text), 0, &spec,
							     NULL),
		     ABX_OK);
	got = abx__m_sandbox_template_spec_print(spec, 0);
	cr_assert_str_eq(json_object_to_json_string_ext(got, JSON_C_TO_STRING_PLAIN),
			 text);
	json_object_put(got);
}

Test(model_schema, depth_items_and_lengths_have_ends)
{
	abx__m_sandbox_template_spec *spec = NULL;
	abx_error *err = NULL;
	json_object *deep = json_object_new_object(), *at = deep;
	json_object *wide = json_object_new_object(), *items = json_object_new_array();
	char *longer = abx__malloc(300000);

	for (int i = 0; i < 60; i++) {
		json_object *next = json_object_new_object();

		json_object_object_add(at, i ? "x" : "template", next);
		at = next;
	}
	cr_assert_eq(abx__m_sandbox_template_spec_parse(deep, 0, &spec, &err),
		     ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err),
			 "template: nested more than 32 levels deep");

	for (int i = 0; i < 17; i++)
		json_object_array_add(items, json_object_new_object());
	json_object_object_add(wide, "runtimes", items);
	cr_assert_eq(abx__m_sandbox_template_spec_parse(wide, 0, &spec, &err),
		     ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err), "runtimes: more than 16 items");
	json_object_put(wide);

	memset(longer, 'x', 299999);
	longer[299999] = '\0';
	wide = json_object_new_object();
	json_object_object_add(wide, "version", json_object_new_string(longer));
	cr_assert_eq(abx__m_sandbox_template_spec_parse(wide, 0, &spec, &err),
		     ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err), "version: longer than 256 characters");
	cr_assert_null(spec);
	abx_error_free(err);
	abx__free(longer);
	json_object_put(wide);
	json_object_put(deep);
}

Test(model_schema, a_length_counts_characters)
{
	char text[2048] = "{\"version\":\"";
	abx__m_sandbox_template_spec *spec = NULL;

	for (int i = 0; i < 256; i++)
		strncat(text, "\xc3\xa9", sizeof(text) - strlen(text) - 1);
	strncat(text, "\"}", sizeof(text) - strlen(text) - 1);
	cr_assert_eq(abx__m_sandbox_template_spec_parse_text(text, strlen(text), 0, &spec,
							     NULL),
		     ABX_OK);
	abx__m_sandbox_template_spec_free(spec);
}

Test(model_schema, a_struct_made_by_hand_is_checked)
{
	abx__m_runtime runtime = { .port = 70000, .has_port = true };
	abx_error *err = NULL;

	cr_assert_eq(abx__schema_validate(&abx__m_runtime_schema, &runtime, &err),
		     ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err), "name: required, but not given");
	cr_assert_eq(abx__schema_set_string(&runtime.name, "envd"), ABX_OK);
	cr_assert_eq(abx__schema_validate(&abx__m_runtime_schema, &runtime, &err),
		     ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err),
			 "port: expected an integer from 1 to 65535, got "
			 "70000");
	abx_error_free(err);
	runtime.port = 49983;
	cr_assert_eq(abx__schema_validate(&abx__m_runtime_schema, &runtime, NULL),
		     ABX_OK);
	abx__m_runtime_done(&runtime);
	cr_assert_null(runtime.name);
}

Test(model_schema, times_are_rfc_3339)
{
	static const struct {
		const char *text;
		int r;
	} cases[] = {
		{ "2026-12-01T09:30:00Z", ABX_OK },
		{ "2026-12-01T09:30:00.123456789Z", ABX_OK },
		{ "2026-12-01t09:30:00+02:00", ABX_OK },
		{ "2026-12-01", ABX_EINVAL },
		{ "2026-12-01T09:30:00", ABX_EINVAL },
		{ "2026-13-01T09:30:00Z", ABX_EINVAL },
		{ "2026-12-01T24:30:00Z", ABX_EINVAL },
		{ "2026-12-01T09:30:00.Z", ABX_EINVAL },
		{ "2026-12-01T09:30:00+2:00", ABX_EINVAL },
		{ "2026-12-01 09:30:00Z", ABX_EINVAL },
		{ "", ABX_EINVAL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		abx__m_env_cluster_status status = { .cluster_id = (char *)"c" };
		char *text = abx__strdup(cases[i].text);

		status.last_snapshot_time = text;
		cr_expect_eq(abx__schema_validate(&abx__m_env_cluster_status_schema,
						  &status, NULL),
			     cases[i].r, "%s", cases[i].text);
		abx__free(text);
	}
}

Test(model_schema, help_text_lists_the_fields)
{
	ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT;

	cr_assert_eq(abx__schema_describe(&abx__m_runtime_schema, 2, &buf), ABX_OK);
	cr_assert(strstr(buf.data, "name*  string  Such as envd.\n"));
	cr_assert(strstr(buf.data, "protocol  one of TCP, UDP, SCTP (default TCP)\n"));
	cr_assert(strstr(buf.data, "readinessProbe  object"));
	cr_assert(strstr(buf.data, "\n  httpGet*  object\n"));
	cr_assert_null(strstr(buf.data, "scheme"));
}

Test(model_schema, every_failed_allocation_is_reported)
{
	const char *text = MEMBER(
		"\"labels\":{\"k\":\"v\"},\"inlineResources\":{\"requests\":{\"cpu\":"
		"\"1\"}},"
		"\"scalingGroup\":\"g\",\"updateStrategy\":{\"maxUnavailable\":\"20%\"}");
	int r = ABX_ENOMEM;

	for (unsigned n = 0; r != ABX_OK; n++) {
		abx__m_sandbox_env *env = NULL;
		abx_error *err = NULL;

		abx__test_fail_alloc_after(n);
		r = parse_env(text, ABX__SCHEMA_DEFAULTS, &env, &err);
		abx__test_alloc_reset();
		cr_assert(r == ABX_OK || r == ABX_ENOMEM, "allocation %u gave %d", n, r);
		cr_assert((r == ABX_OK) == (env != NULL));
		cr_assert(r == ABX_OK || abx_error_code(err) == ABX_ENOMEM);
		abx_error_free(err);
		abx__m_sandbox_env_free(env);
	}
}

Test(model_schema, every_failed_allocation_of_an_error_is_reported)
{
	int r = ABX_ENOMEM;

	for (unsigned n = 0; r != ABX_EINVAL; n++) {
		abx__m_sandbox_env *env = NULL;
		abx_error *err = NULL;

		abx__test_fail_alloc_after(n);
		r = parse_env(ENV_HEAD ",\"mode\":\"warm\"}}", 0, &env, &err);
		abx__test_alloc_reset();
		cr_assert(r == ABX_EINVAL || r == ABX_ENOMEM, "allocation %u gave %d", n,
			  r);
		cr_assert(err);
		abx_error_free(err);
	}
}
