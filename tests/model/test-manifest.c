/* Manifests, and what they become. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "model/manifest.h"

#define HEAD(kind) "'apiVersion':'agents.navix.sh/v1alpha1','kind':'" kind "',"
#define ENV(spec)                                                                    \
	"{" HEAD("SandboxEnv") "'metadata':{'name':'demo'},'spec':{'templateRef':{'" \
			       "name':"                                              \
			       "'t'}," spec "}}"
#define MEMBER(member) ENV("'clusters':[{'clusterID':'local','members':[" member "]}]")
#define SIZE "'inlineResources':{'requests':{'cpu':'2','memory':'8Gi'}}"

static const abx__manifest_context local = { .cluster = "local",
					     .namespace_ = "default" };

static void expect_refused(const char *text, int code, const char *message)
{
	json_object *manifest = json_tokener_parse(text);
	abx__calls calls = { 0 };
	abx_error *err = NULL;
	int r;

	cr_assert(manifest, "%s", text);
	r = abx__manifest_calls(manifest, &local, &calls, &err);
	cr_expect_eq(r, code, "%s gave %d", text, r);
	cr_expect_str_eq(abx_error_message(err), message);
	cr_expect_null(calls.items);
	/* The code does not depend on somebody reading the error. */
	cr_expect_eq(abx__manifest_calls(manifest, &local, &calls, NULL), code);
	abx_error_free(err);
	json_object_put(manifest);
}

static void expect_call(const abx__calls *calls, size_t index, const char *method,
			const char *path, const char *body)
{
	cr_assert_lt(index, calls->count);
	cr_expect_str_eq(calls->items[index].method, method);
	cr_expect_str_eq(calls->items[index].path, path);
	cr_expect_str_eq(json_object_to_json_string_ext(
				 calls->items[index].body,
				 JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE),
			 body);
}

Test(model_manifest, only_documents_of_the_group_are_taken)
{
	expect_refused(
		"[]", ABX_EINVAL,
		"a manifest is an object with apiVersion, kind, metadata and spec");
	expect_refused("{}", ABX_EINVAL,
		       "apiVersion: expected \"agents.navix.sh/v1alpha1\", got \"\"");
	expect_refused("{'apiVersion':'v1','kind':'Pod'}", ABX_EINVAL,
		       "apiVersion: expected \"agents.navix.sh/v1alpha1\", got \"v1\"");
	expect_refused(
		"{" HEAD("Pod") "'x':1}", ABX_EINVAL,
		"kind: expected \"SandboxTemplate\" or \"SandboxEnv\", got \"Pod\"");
	expect_refused("{" HEAD("SandboxPool") "'x':1}", ABX_EUNSUPPORTED,
		       "kind: a SandboxPool is made by its env, not by hand");
}

Test(model_manifest, an_unknown_field_is_named_with_object_and_path)
{
	expect_refused(MEMBER("{'name':'a','config':{'foo':1}}"), ABX_EINVAL,
		       "SandboxEnv \"demo\": spec.clusters[0].members[0].config.foo: "
		       "unknown field");
	expect_refused(MEMBER("{'name':'demo-2c8gi','config':{" SIZE
			      "},'spec':{'replicas':-1}}"),
		       ABX_EINVAL,
		       "SandboxEnv \"demo\": spec.clusters[0].members[0].spec.replicas: "
		       "expected an "
		       "integer of at least 0, got -1");
	expect_refused("{" HEAD("SandboxTemplate") "'metadata':{'name':'t'},'spec':{'"
						   "image':'a'}}",
		       ABX_EINVAL, "SandboxTemplate \"t\": spec.image: unknown field");
	expect_refused("{" HEAD("SandboxEnv") "'metadata':{},'spec':{'templateRef':{'"
					      "name':'t'}}}",
		       ABX_EINVAL,
		       "SandboxEnv \"\": metadata.name: required, but not given");
	expect_refused(
		"{" HEAD("SandboxEnv") "'metadata':{'name':'Demo'},'spec':{}}",
		ABX_EINVAL,
		"SandboxEnv \"Demo\": metadata.name: \"Demo\" is not a name (lower-case "
		"letters, digits, '-' and '.')");
	expect_refused(
		"{" HEAD("SandboxEnv") "'metadata':{'name':'1a'},'spec':{'templateRef':{"
				       "'name':'t'}}}",
		ABX_EINVAL,
		"SandboxEnv \"1a\": metadata.name: env name \"1a\" is not valid");
}

Test(model_manifest, names_and_groups_must_be_the_derived_ones)
{
	expect_refused(MEMBER("{'name':'demo-1c8gi','config':{" SIZE "}}"), ABX_EINVAL,
		       "SandboxEnv \"demo\": spec.clusters[0].members[0].name: "
		       "\"demo-1c8gi\" is not "
		       "the name this pool gets, \"demo-2c8gi\"");
	expect_refused(
		MEMBER("{'name':'demo-2c8gi','config':{" SIZE
		       ",'scalingGroup':'2c8Gi'}}"),
		ABX_EINVAL,
		"SandboxEnv \"demo\": spec.clusters[0].members[0].config.scalingGroup: "
		"\"2c8Gi\" is not the group this pool gets, \"2c8gi\"");
	expect_refused(MEMBER("{'name':'demo-2c8gi'}"), ABX_EINVAL,
		       "SandboxEnv \"demo\": spec.clusters[0].members[0].config: a size "
		       "is required: "
		       "inlineResources or instanceType");
	expect_refused(MEMBER("{'name':'d','config':{'inlineResources':{}}}"), ABX_EINVAL,
		       "SandboxEnv \"demo\": "
		       "spec.clusters[0].members[0].config.inlineResources: no "
		       "pool can be named without a CPU or memory size");
	expect_refused(
		MEMBER("{'name':'d','config':{'inlineResources':{'requests':{'memory':"
		       "'400m'}}}}"),
		ABX_EINVAL,
		"SandboxEnv \"demo\": "
		"spec.clusters[0].members[0].config.inlineResources: "
		"requests.memory: quantity \"400m\" is finer than one unit");
}

Test(model_manifest, what_no_call_can_carry_is_refused)
{
	expect_refused(MEMBER("{'name':'demo-2c8gi','config':{" SIZE ",'priority':1}}"),
		       ABX_EUNSUPPORTED,
		       "SandboxEnv \"demo\": spec.clusters[0].members[0].config: "
		       "priorities are not "
		       "offered by the native API");
	expect_refused(
		MEMBER("{'name':'demo-2c8gi','config':{" SIZE
		       "},'spec':{'idleImage':'a'}}"),
		ABX_EUNSUPPORTED,
		"SandboxEnv \"demo\": spec.clusters[0].members[0].spec: only replicas is "
		"taken; the rest is made from the template and the env's overrides");
	expect_refused(ENV("'defaults':{'instanceType':'small'}"), ABX_EUNSUPPORTED,
		       "SandboxEnv \"demo\": spec.defaults: not offered by the native "
		       "API; give each "
		       "member its size");
	expect_refused(
		"{" HEAD("SandboxEnv") "'metadata':{'name':'demo','namespace':'x'},"
				       "'spec':{'templateRef':{'name':'t'}}}",
		ABX_EINVAL,
		"SandboxEnv \"demo\": metadata.namespace: \"x\" is not the credential's "
		"namespace, \"default\"");
	expect_refused(
		"{" HEAD("SandboxEnv") "'metadata':{'name':'demo','finalizers':['x']},"
				       "'spec':{'templateRef':{'name':'t'}}}",
		ABX_EUNSUPPORTED,
		"SandboxEnv \"demo\": metadata.finalizers: not offered");
}

Test(model_manifest, rules_between_fields_hold)
{
	expect_refused(ENV("'autoscaling':{'groups':[{'name':'g','scaleUpPolicy':{'mode':"
			   "'Aggressive'}}]}"),
		       ABX_EINVAL,
		       "SandboxEnv \"demo\": spec.autoscaling.groups[0].maxReplicas: "
		       "required with "
		       "scaleUpPolicy.mode Aggressive");
	expect_refused(ENV("'autoscaling':{'groups':[{'name':'g','minReplicas':5,'"
			   "maxReplicas':4}]}"),
		       ABX_EINVAL,
		       "SandboxEnv \"demo\": spec.autoscaling.groups[0].minReplicas: 5 "
		       "is more than "
		       "maxReplicas, which is 4");
	expect_refused(MEMBER("{'name':'demo-2c8gi','config':{" SIZE
			      ",'minReplicas':2,'maxReplicas':1}}"),
		       ABX_EINVAL,
		       "SandboxEnv \"demo\": "
		       "spec.clusters[0].members[0].config.minReplicas: 2 is "
		       "more than maxReplicas, which is 1");
}

Test(model_manifest, a_manifest_for_another_cluster_says_so)
{
	json_object *manifest = json_tokener_parse(
		ENV("'clusters':[{'clusterID':'YOUR_CLUSTER_ID','members':[]}]"));
	abx__calls calls = { 0 };
	abx_error *err = NULL;

	cr_assert_eq(abx__manifest_calls(manifest, &local, &calls, &err), ABX_EINVAL);
	cr_assert_str_eq(
		abx_error_message(err),
		"SandboxEnv \"demo\": spec.clusters: no entry is for this cluster, "
		"\"local\"; there is \"YOUR_CLUSTER_ID\"");
	cr_assert_str_eq(abx_error_hint(err),
			 "write local where it says YOUR_CLUSTER_ID");
	abx_error_free(err);
	json_object_put(manifest);
}

Test(model_manifest, an_env_becomes_calls_in_order)
{
	json_object *manifest = json_tokener_parse("{" HEAD(
		"SandboxEnv") "'metadata':{'name':'demo','labels':{'a':'b'},'uid':'u'},"
			      "'status':{'memberCount':1},"
			      "'spec':{'templateRef':{'name':'t','version':'1'},'mode':'"
			      "WarmPool',"
			      "'overrides':{'image':'python','defaultIdleTimeout':'5m','"
			      "envd':{'verbose':false}},"
			      "'autoscaling':{'groups':[{'name':'2c8gi','enabled':true,'"
			      "maxReplicas':4}]},"
			      "'clusters':[{'clusterID':'other','members':[{'name':'x'}]}"
			      ","
			      "{'clusterID':'local','members':[{'name':'demo-2c8gi','"
			      "config':{" SIZE
			      ",'scalingGroup':'2c8gi','minReplicas':1,'maxReplicas':9,"
			      "'labels':{'c':'d'},'updateStrategy':{'autoUpdate':false}},"
			      "'spec':{'replicas':3}},"
			      "{'name':'demo-q','config':{'instanceType':'small','"
			      "multiplier':2,"
			      "'labels':{'quota.scitix.ai/url':'q'}}}]}]}}");
	ABX__CLEANUP_CALLS abx__calls calls = { 0 };
	abx_error *err = NULL;

	cr_assert(manifest);
	cr_assert_eq(abx__manifest_calls(manifest, &local, &calls, &err), ABX_OK, "%s",
		     abx_error_message(err));
	cr_assert_eq(calls.kind, ABX__MANIFEST_ENV);
	cr_assert_str_eq(calls.name, "demo");
	cr_assert_eq(calls.count, 4);
	expect_call(
		&calls, 0, "POST", "/v1/envs",
		"{\"name\":\"demo\",\"templateRef\":{\"name\":\"t\",\"version\":\"1\"},"
		"\"mode\":\"WarmPool\",\"overrides\":{\"image\":\"python\","
		"\"defaultIdleTimeout\":\"5m\",\"envd\":{\"verbose\":false}},"
		"\"labels\":{\"a\":\"b\"}}");
	expect_call(
		&calls, 1, "POST", "/v1/envs/demo/sandboxpools",
		"{\"inlineResources\":{\"requests\":{\"cpu\":\"2\",\"memory\":\"8Gi\"}},"
		"\"replicas\":3,\"minReplicas\":1,\"maxReplicas\":9,\"labels\":{\"c\":"
		"\"d\"},"
		"\"updateStrategy\":{\"autoUpdate\":false}}");
	expect_call(&calls, 2, "POST", "/v1/envs/demo/sandboxpools",
		    "{\"instanceType\":\"small\",\"multiplier\":2,"
		    "\"labels\":{\"quota.scitix.ai/url\":\"q\"}}");
	expect_call(&calls, 3, "PUT", "/v1/envs/demo/autoscaling/groups/2c8gi",
		    "{\"enabled\":true,\"maxReplicas\":4}");
	cr_assert_eq(calls.n_skipped, 1);
	cr_assert_str_eq(calls.skipped[0], "other");
	json_object_put(manifest);
}

Test(model_manifest, a_template_travels_whole)
{
	const char *text =
		"{" HEAD("SandboxTemplate") "'metadata':{'name':'t'},'spec':{'template':"
					    "{'spec':{'containers':[{'name':'m','image':"
					    "'a'}]}}}}";
	json_object *manifest = json_tokener_parse(text), *inner;
	ABX__CLEANUP_CALLS abx__calls calls = { 0 };

	cr_assert_eq(abx__manifest_calls(manifest, &local, &calls, NULL), ABX_OK);
	cr_assert_eq(calls.count, 1);
	cr_assert_str_eq(calls.items[0].path, "/v1/admin/sandbox-templates");
	inner = json_tokener_parse(json_object_get_string(
		json_object_object_get(calls.items[0].body, "crdJson")));
	cr_assert(json_object_equal(inner, manifest));
	json_object_put(inner);
	json_object_put(manifest);
}

Test(model_manifest, a_template_needs_containers_with_names_and_images)
{
#define TEMPLATE(spec) \
	"{" HEAD("SandboxTemplate") "'metadata':{'name':'t'},'spec':{" spec "}}"
	expect_refused(TEMPLATE(""), ABX_EINVAL,
		       "SandboxTemplate \"t\": spec.template: required, but not given");
	expect_refused(
		TEMPLATE("'template':{}"), ABX_EINVAL,
		"SandboxTemplate \"t\": spec.template.spec: required, but not given");
	expect_refused(TEMPLATE("'template':{'spec':{'containers':[]}}"), ABX_EINVAL,
		       "SandboxTemplate \"t\": spec.template.spec.containers: expected "
		       "an array with "
		       "at least one container");
	expect_refused(TEMPLATE("'template':{'spec':{'containers':[{'image':'a'}]}}"),
		       ABX_EINVAL,
		       "SandboxTemplate \"t\": spec.template.spec.containers[0].name: "
		       "required, in "
		       "lower-case letters, digits and '-'");
	expect_refused(TEMPLATE("'template':{'spec':{'containers':[{'name':'a'}]}}"),
		       ABX_EINVAL,
		       "SandboxTemplate \"t\": spec.template.spec.containers[0].image: "
		       "required, but "
		       "not given");
	expect_refused(
		TEMPLATE("'template':{'spec':{'containers':[{'name':'a','image':'b'},"
			 "{'name':'a','image':'b'}]}}"),
		ABX_EINVAL,
		"SandboxTemplate \"t\": spec.template.spec.containers[1].name: \"a\" is "
		"there "
		"twice");
	expect_refused(
		TEMPLATE("'template':{'spec':{'containers':[{'name':'a','image':'b'}],"
			 "'initContainers':[{'name':'i','image':'B'}]}}"),
		ABX_EINVAL,
		"SandboxTemplate \"t\": spec.template.spec.initContainers[0].image: "
		"image "
		"\"B\": the name is not valid (lower-case letters, digits and single "
		"separators)");
	expect_refused(
		TEMPLATE("'runtimes':[{'name':'a'},{'name':'a'}]"), ABX_EINVAL,
		"SandboxTemplate \"t\": spec.runtimes[1].name: \"a\" is there twice");
	expect_refused(TEMPLATE("'runtimes':[{'name':'a','port':0}]"), ABX_EINVAL,
		       "SandboxTemplate \"t\": spec.runtimes[0].port: expected an "
		       "integer from 1 to "
		       "65535, got 0");
}

Test(model_manifest, every_failed_allocation_is_reported)
{
	json_object *manifest = json_tokener_parse(
		"{" HEAD("SandboxEnv") "'metadata':{'name':'demo'},"
				       "'spec':{'templateRef':{'name':'t'},'overrides':{'"
				       "image':'python'},"
				       "'autoscaling':{'groups':[{'name':'2c8gi','"
				       "maxReplicas':4}]},"
				       "'clusters':[{'clusterID':'other'},{'clusterID':'"
				       "local','members':["
				       "{'name':'demo-2c8gi','config':{" SIZE
				       "},'spec':{'replicas':3}}]}]}}");
	int r = ABX_ENOMEM;

	for (unsigned n = 0; r != ABX_OK; n++) {
		abx__calls calls = { 0 };
		abx_error *err = NULL;

		abx__test_fail_alloc_after(n);
		r = abx__manifest_calls(manifest, &local, &calls, &err);
		abx__test_alloc_reset();
		cr_assert(r == ABX_OK || r == ABX_ENOMEM, "allocation %u gave %d", n, r);
		cr_assert((r == ABX_OK) == (calls.count == 3));
		abx_error_free(err);
		abx__calls_done(&calls);
	}
	json_object_put(manifest);
}
