/*
 * test-documents.c - templates, envs, member pools and groups as documents: what is
 * derived, what is refused.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "control/fields.h"
#include "model/keys.h"
#include "world.h"

static world w;

static void setup(void)
{
	world_init(&w);
}

static void teardown(void)
{
	world_done(&w);
}

TestSuite(control_documents, .init = setup, .fini = teardown, .timeout = 60);

static answer put_template(json_object *doc, bool create)
{
	abx_error *err = NULL;
	answer a = { 0 };
	int r = abx__control_template_put(w.control, doc, create, on_object, &a, &err);

	json_object_put(doc);
	if (r < 0) {
		on_done(&a, r, err);
		abx_error_free(err);
	}
	world_settle(&w);
	cr_assert_eq(a.calls, 1);
	return a;
}

static answer delete_template(const char *name)
{
	answer a = { 0 };

	cr_assert_eq(abx__control_template_delete(w.control, name, on_done, &a, NULL),
		     ABX_OK);
	world_settle(&w);
	return a;
}

static json_object *env_get(const char *name)
{
	json_object *doc = NULL;

	cr_assert_eq(abx__control_env_get(w.control, "default", name, &doc, NULL),
		     ABX_OK);
	return doc;
}

static json_object *member_of(json_object *env, size_t i)
{
	json_object *clusters =
		abx__field_array(abx__field_object(env, "spec"), "clusters");
	json_object *members =
		abx__field_array(json_object_array_get_idx(clusters, 0), "members");

	return json_object_array_get_idx(members, i);
}

static json_object *group_of(json_object *env, size_t i)
{
	json_object *autoscaling =
		abx__field_object(abx__field_object(env, "spec"), "autoscaling");

	return json_object_array_get_idx(abx__field_array(autoscaling, "groups"), i);
}

Test(control_documents, a_template_is_made_read_replaced_and_deleted)
{
	json_object *doc = NULL, *meta;
	answer a = put_template(template_doc("tmpl", IDLE_IMAGE), true);

	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	meta = abx__field_object(a.object, "metadata");
	cr_assert_str_eq(abx__field_str(a.object, "kind"), "SandboxTemplate");
	cr_assert_str_eq(abx__field_str(a.object, "apiVersion"),
			 "agents.navix.sh/v1alpha1");
	cr_assert_str_eq(abx__field_str(meta, "name"), "tmpl");
	cr_assert_eq(abx__field_int(meta, "generation", 0), 1);
	cr_assert_eq(strlen(abx__field_str(meta, "uid")), 36);
	cr_assert(abx__field_str(meta, "resourceVersion"));
	cr_assert(abx__field_str(meta, "creationTimestamp"));
	answer_done(&a);
	a = put_template(template_doc("tmpl", IDLE_IMAGE), true);
	cr_assert_eq(a.r, ABX_EEXISTS);
	a = put_template(template_doc("tmpl", "idle:2"), false);
	cr_assert_eq(a.r, ABX_OK);
	cr_assert_eq(
		abx__field_int(abx__field_object(a.object, "metadata"), "generation", 0),
		2);
	answer_done(&a);
	cr_assert_eq(abx__control_template_list(w.control, &doc, NULL), ABX_OK);
	cr_assert_eq(json_object_array_length(doc), 1);
	json_object_put(doc);
	cr_assert_eq(delete_template("tmpl").r, ABX_OK);
	cr_assert_eq(delete_template("tmpl").r, ABX_ENOTFOUND);
	a = put_template(template_doc("tmpl", "idle:2"), false);
	cr_assert_eq(a.r, ABX_ENOTFOUND);
}

Test(control_documents, a_template_an_env_is_bound_to_stays)
{
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	a = delete_template("tmpl");
	cr_assert_eq(a.r, ABX_ESTATE);
	cr_assert(strstr(a.message, "demo"), "%s", a.message);
}

Test(control_documents, a_runtime_class_nobody_has_is_refused_by_name)
{
	json_object *doc = template_doc("kata", NULL);
	json_object *spec = abx__field_object(
		abx__field_object(abx__field_object(doc, "spec"), "template"), "spec");
	answer a;

	json_object_object_add(spec, "runtimeClassName",
			       json_object_new_string("kata-clh"));
	a = put_template(doc, true);
	cr_assert_eq(a.r, ABX_EUNSUPPORTED);
	cr_assert(strstr(a.message, "kata-clh"), "%s", a.message);
	cr_assert_eq(fake_store_count(w.store), 0, "nothing is changed");
}

Test(control_documents, a_stale_resource_version_conflicts)
{
	json_object *doc = template_doc("tmpl", IDLE_IMAGE);
	answer a = put_template(template_doc("tmpl", IDLE_IMAGE), true);

	answer_done(&a);
	json_object_object_add(abx__field_object(doc, "metadata"), "resourceVersion",
			       json_object_new_string("999"));
	a = put_template(doc, false);
	cr_assert_eq(a.r, ABX_ECONFLICT);
	cr_assert(strstr(a.message, "999") && a.hint[0], "%s", a.message);
}

Test(control_documents, names_and_groups_are_derived)
{
	json_object *env, *config;

	world_env(&w, "demo", 1, NULL, NULL);
	env = env_get("demo");
	cr_assert_str_eq(abx__field_str(member_of(env, 0), "name"), "demo-1c2gi");
	config = abx__field_object(member_of(env, 0), "config");
	cr_assert_str_eq(abx__field_str(config, "scalingGroup"), "1c2gi");
	cr_assert_str_eq(abx__field_str(group_of(env, 0), "name"), "1c2gi");
	cr_assert_not(abx__field_bool(group_of(env, 0), "enabled", true));
	json_object_put(env);
}

/* Applies and expects a refusal that says this, with nothing changed. */
static void refused(json_object *doc, int code, const char *says)
{
	size_t before = fake_store_count(w.store);
	answer a = world_apply(&w, doc, true);

	cr_assert_eq(a.r, code, "%d: %s", a.r, a.message);
	cr_assert(strstr(a.message, says), "\"%s\" does not say \"%s\"", a.message, says);
	cr_assert_eq(fake_store_count(w.store), before);
	answer_done(&a);
}

static json_object *env_with(const char *member_json, const char *spec_json)
{
	char text[2048];
	json_object *doc;

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"demo\"},\"spec\":{\"templateRef\":{\"name\":"
		 "\"tmpl\"}%s,"
		 "\"clusters\":[{\"clusterID\":\"local\",\"members\":[%s]}]}}",
		 spec_json ? spec_json : "", member_json);
	doc = json_tokener_parse(text);
	cr_assert(doc, "%s", text);
	return doc;
}

#define SIZE_1C2GI "\"inlineResources\":{\"limits\":{\"cpu\":\"1\",\"memory\":\"2Gi\"}}"

Test(control_documents, bad_envs_are_refused_with_the_reason)
{
	world_template(&w, "tmpl");
	refused(env_doc("a-name-of-more-than-24-characters", 1, NULL, NULL), ABX_EINVAL,
		"a-name-of-more-than-24-characters");
	refused(env_doc("demo", -1, NULL, NULL), ABX_EINVAL, "replicas");
	refused(env_doc("demo", 1, "{\"gateway\":{\"enabled\":true}}", NULL),
		ABX_EUNSUPPORTED, "gateway");
	refused(env_doc("demo", 1,
			"{\"volumes\":[{\"claimName\":\"x\",\"mountPath\":\"/x\"}]}",
			NULL),
		ABX_EUNSUPPORTED, "volumes");
	refused(env_doc("demo", 1, "{\"image\":\"no good\"}", NULL), ABX_EINVAL,
		"no good");
	refused(env_doc("demo", 1, "{\"defaultIdleTimeout\":\"soon\"}", NULL), ABX_EINVAL,
		"defaultIdleTimeout");
	refused(env_doc("demo", 1, "{\"updateStrategy\":{\"maxUnavailable\":\"many\"}}",
			NULL),
		ABX_EINVAL, "maxUnavailable");
	refused(env_doc("demo", 1, NULL, "{\"name\":\"9c9gi\",\"enabled\":true}"),
		ABX_EINVAL, "9c9gi");
	refused(env_doc("demo", 1, NULL,
			"{\"name\":\"1c2gi\",\"scaleUpPolicy\":{\"mode\":\"Aggressive\"}"
			"}"),
		ABX_EINVAL, "Aggressive needs maxReplicas");
	refused(env_doc("demo", 1, NULL,
			"{\"name\":\"1c2gi\",\"minReplicas\":3,\"maxReplicas\":2}"),
		ABX_EINVAL, "above maxReplicas");
	refused(env_with("{\"name\":\"demo-big\",\"config\":{" SIZE_1C2GI "}}", NULL),
		ABX_EINVAL, "demo-1c2gi");
	refused(env_with("{\"config\":{\"instanceType\":\"m.large\"}}", NULL),
		ABX_EUNSUPPORTED, "m.large");
	refused(env_with("{\"config\":{}}", NULL), ABX_EINVAL, "inlineResources");
	refused(env_with("{\"config\":{" SIZE_1C2GI
			 ",\"minReplicas\":5,\"maxReplicas\":2}}",
			 NULL),
		ABX_EINVAL, "above maxReplicas");
	refused(env_with("{\"config\":{" SIZE_1C2GI "},\"spec\":{\"idleImage\":\"x\"}}",
			 NULL),
		ABX_EUNSUPPORTED, "idleImage");
	refused(env_with("{\"config\":{" SIZE_1C2GI "}},{\"config\":{" SIZE_1C2GI "}}",
			 NULL),
		ABX_EINVAL, "two members");
	refused(env_with("{\"config\":{" SIZE_1C2GI "}}", ",\"mode\":\"OnDemandJob\""),
		ABX_EUNSUPPORTED, "OnDemandJob");
}

Test(control_documents, an_env_needs_its_template)
{
	refused(env_doc("demo", 1, NULL, NULL), ABX_EINVAL, "tmpl");
}

Test(control_documents, template_and_mode_of_an_env_are_fixed)
{
	json_object *doc = env_doc("demo", 1, NULL, NULL);
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	world_template(&w, "other");
	json_object_object_add(
		abx__field_object(abx__field_object(doc, "spec"), "templateRef"), "name",
		json_object_new_string("other"));
	a = world_apply(&w, doc, false);
	cr_assert_eq(a.r, ABX_EINVAL);
	cr_assert(strstr(a.message, "tmpl") && strstr(a.message, "other"), "%s",
		  a.message);
	a = world_apply(&w, env_doc("demo", 1, NULL, NULL), true);
	cr_assert_eq(a.r, ABX_EEXISTS);
	a = world_apply(&w, env_doc("nosuch", 1, NULL, NULL), false);
	cr_assert_eq(a.r, ABX_ENOTFOUND);
}

Test(control_documents, status_of_an_env_is_true)
{
	json_object *env, *status, *member;

	world_env(&w, "demo", 3, NULL, NULL);
	cr_assert_eq(world_claim(&w, "demo").r, ABX_OK);
	env = env_get("demo");
	status = abx__field_object(env, "status");
	cr_assert_eq(abx__field_int(status, "memberCount", -1), 1);
	cr_assert_eq(abx__field_int(status, "desiredReplicas", -1), 3);
	cr_assert_eq(abx__field_int(status, "runningReplicas", -1), 1);
	cr_assert_eq(abx__field_int(status, "idleReplicas", -1), 2);
	cr_assert_str_eq(abx__field_str(condition_of(env, "Ready"), "reason"),
			 "AllMembersActive");
	cr_assert_str_eq(abx__field_str(condition_of(env, "Ready"), "status"), "True");
	member = json_object_array_get_idx(
		abx__field_array(json_object_array_get_idx(
					 abx__field_array(status, "clusters"), 0),
				 "observedMembers"),
		0);
	cr_assert_str_eq(abx__field_str(member, "name"), "demo-1c2gi");
	cr_assert_str_eq(abx__field_str(member, "state"), "Active");
	cr_assert_eq(abx__field_int(member, "idleCount", -1), 2);
	json_object_put(env);
}

static json_object *parse(const char *text)
{
	json_object *doc = json_tokener_parse(text);

	cr_assert(doc, "%s", text);
	return doc;
}

static answer pool_call(const char *pool, const char *text)
{
	json_object *member = parse(text);
	answer a = { 0 };

	if (pool)
		cr_assert_eq(abx__control_pool_update(w.control, "default", "demo", pool,
						      member, on_object, &a, NULL),
			     ABX_OK);
	else
		cr_assert_eq(abx__control_pool_create(w.control, "default", "demo",
						      member, on_object, &a, NULL),
			     ABX_OK);
	json_object_put(member);
	world_settle(&w);
	cr_assert_eq(a.calls, 1);
	return a;
}

#define SIZE_2C8GI "\"inlineResources\":{\"requests\":{\"cpu\":\"2\",\"memory\":\"8Gi\"}}"

Test(control_documents, a_member_pool_is_made_scaled_and_deleted)
{
	answer a, gone = { 0 };
	json_object *env, *list = NULL;

	world_env(&w, "demo", 1, NULL, NULL);
	a = pool_call(NULL, "{\"config\":{" SIZE_2C8GI "},\"spec\":{\"replicas\":2}}");
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	cr_assert_str_eq(abx__field_str(abx__field_object(a.object, "metadata"), "name"),
			 "demo-2c8gi");
	cr_assert_eq(abx__field_int(abx__field_object(a.object, "spec"), "replicas", -1),
		     2);
	answer_done(&a);
	world_pass(&w, 500);
	cr_assert_eq(world_counts(&w, "demo").idle, 3);
	a = pool_call(NULL, "{\"config\":{" SIZE_2C8GI "}}");
	cr_assert_eq(a.r, ABX_EEXISTS, "%s", a.message);
	a = pool_call("demo-2c8gi",
		      "{\"config\":{" SIZE_2C8GI "},\"spec\":{\"replicas\":4}}");
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
	world_pass(&w, 500);
	cr_assert_eq(world_counts(&w, "demo").idle, 5);
	a = pool_call("demo-2c8gi", "{\"config\":{" SIZE_1C2GI "}}");
	cr_assert_eq(a.r, ABX_EINVAL);
	cr_assert(strstr(a.message, "inlineResources") && strstr(a.message, "8Gi"), "%s",
		  a.message);
	a = pool_call("nosuch", "{\"config\":{" SIZE_1C2GI "}}");
	cr_assert_eq(a.r, ABX_ENOTFOUND);
	cr_assert_eq(abx__control_pool_list(w.control, "default", "demo", &list, NULL),
		     ABX_OK);
	cr_assert_eq(json_object_array_length(list), 2);
	json_object_put(list);
	cr_assert_eq(abx__control_pool_delete(w.control, "default", "demo", "demo-2c8gi",
					      on_done, &gone, NULL),
		     ABX_OK);
	world_pass(&w, 500);
	cr_assert_eq(gone.r, ABX_OK, "%s", gone.message);
	cr_assert_eq(abx__fake_engine_count(w.engine), 1);
	env = env_get("demo");
	cr_assert_null(group_of(env, 1), "the group went with its last member");
	json_object_put(env);
}

static answer group_put(const char *group, const char *text)
{
	json_object *policy = parse(text);
	answer a = { 0 };

	cr_assert_eq(abx__control_group_put(w.control, "default", "demo", group, policy,
					    on_object, &a, NULL),
		     ABX_OK);
	json_object_put(policy);
	world_settle(&w);
	return a;
}

Test(control_documents, a_group_takes_its_policy_with_defaults)
{
	json_object *up;
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	a = group_put("1c2gi", "{\"enabled\":true,\"maxReplicas\":4}");
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	up = abx__field_object(a.object, "scaleUpPolicy");
	cr_assert_str_eq(abx__field_str(up, "mode"), "Default");
	cr_assert_eq(abx__field_int(up, "cooldownSeconds", -1), 30);
	cr_assert_eq(abx__field_int(a.object, "maxReplicas", -1), 4);
	answer_done(&a);
	cr_assert_eq(group_put("9c9gi", "{}").r, ABX_ENOTFOUND);
	cr_assert_eq(group_put("1c2gi", "{\"scaleUpPolicy\":{\"mode\":\"Wild\"}}").r,
		     ABX_EINVAL);
	a = pool_call("demo-1c2gi",
		      "{\"config\":{\"inlineResources\":{\"requests\":{\"cpu\":\"1\","
		      "\"memory\":\"2Gi\"}}},\"spec\":{\"replicas\":3}}");
	cr_assert_eq(a.r, ABX_EINVAL, "replicas are the autoscaler's now: %s", a.message);
	cr_assert(strstr(a.message, "autoscaler"), "%s", a.message);
}

Test(control_documents, an_enabled_groups_floor_holds_at_once)
{
	answer a;

	world_env(&w, "demo", 1, NULL, NULL);
	a = group_put("1c2gi", "{\"enabled\":true,\"minReplicas\":3}");
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
	world_pass(&w, 500);
	cr_assert_eq(world_counts(&w, "demo").idle, 3);
}

Test(control_documents, a_store_that_fails_changes_nothing)
{
	answer a;

	world_env(&w, "demo", 2, NULL, NULL);
	fake_store_fail(w.store, 1, ABX_EEXHAUSTED);
	a = world_apply(&w, env_doc("demo", 5, NULL, NULL), false);
	cr_assert_eq(a.r, ABX_EEXHAUSTED);
	world_pass(&w, 500);
	cr_assert_eq(world_counts(&w, "demo").replicas, 2);
	a = world_apply(&w, env_doc("demo", 5, NULL, NULL), false);
	cr_assert_eq(a.r, ABX_OK, "and works again");
	answer_done(&a);
}

Test(control_documents, a_segment_of_another_cluster_is_kept_and_left_alone)
{
	json_object *doc = env_doc("demo", 1, NULL, NULL), *clusters, *env;
	answer a;

	world_template(&w, "tmpl");
	clusters = abx__field_array(abx__field_object(doc, "spec"), "clusters");
	json_object_array_add(
		clusters,
		parse("{\"clusterID\":\"far\",\"members\":[{\"name\":\"demo-8c8gi\","
		      "\"config\":{\"scalingGroup\":\"8c8gi\"}}]}"));
	a = world_apply(&w, doc, true);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
	world_pass(&w, 500);
	cr_assert_eq(abx__fake_engine_count(w.engine), 1);
	env = env_get("demo");
	cr_assert_eq(json_object_array_length(abx__field_array(
			     abx__field_object(env, "spec"), "clusters")),
		     2);
	json_object_put(env);
}
