/* The manifests of deploy/samples, read as a person's program would, and what each
 * becomes. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "io/yaml.h"
#include "model/manifest.h"
#include "model/names.h"

static char *read_sample(const char *name)
{
	const char *top = getenv("top_srcdir");
	ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT;
	char path[4096], chunk[4096];
	size_t n;
	FILE *file;

	snprintf(path, sizeof(path), "%s/deploy/samples/%s", top ? top : ".", name);
	file = fopen(path, "re");
	cr_assert(file, "%s", path);
	while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0)
		cr_assert_eq(abx__buf_add(&buf, chunk, n), ABX_OK);
	fclose(file);
	return abx__buf_take(&buf);
}

static json_object *load(const char *name)
{
	ABX_CLEANUP(abx__freep) char *text = read_sample(name);
	json_object *documents = NULL, *manifest;
	abx_error *err = NULL;

	cr_assert_eq(abx__yaml_parse(text, strlen(text), 0, &documents, &err), ABX_OK,
		     "%s: %s", name, abx_error_message(err));
	cr_assert_eq(json_object_array_length(documents), 1);
	manifest = json_object_get(json_object_array_get_idx(documents, 0));
	json_object_put(documents);
	return manifest;
}

static void to_calls(const char *name, const char *cluster, abx__calls *calls)
{
	const abx__manifest_context context = { .cluster = cluster,
						.namespace_ = "default" };
	json_object *manifest = load(name);
	abx_error *err = NULL;

	cr_assert_eq(abx__manifest_calls(manifest, &context, calls, &err), ABX_OK,
		     "%s: %s", name, abx_error_message(err));
	json_object_put(manifest);
}

static void expect_body(const abx__calls *calls, size_t index, const char *path,
			const char *body)
{
	cr_assert_lt(index, calls->count);
	cr_expect_str_eq(calls->items[index].path, path);
	cr_expect_str_eq(json_object_to_json_string_ext(calls->items[index].body,
							JSON_C_TO_STRING_PLAIN),
			 body);
}

Test(model_samples, every_template_is_valid)
{
	static const struct {
		const char *file, *name;
	} cases[] = {
		{ "e2b-basic_sandboxtemplate.yaml", "e2b-envd" },
		{ "e2b-docker_sandboxtemplate.yaml", "e2b-envd-docker" },
		{ "e2b-kata_sandboxtemplate.yaml", "e2b-envd-kata" },
		{ "base_sandboxtemplate.yaml", "base" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_object *manifest = load(cases[i].file);
		ABX_CLEANUP(abx__m_sandbox_template_freep)
		abx__m_sandbox_template *template_ = NULL;
		ABX__CLEANUP_CALLS abx__calls calls = { 0 };
		abx_error *err = NULL;

		cr_assert_eq(abx__manifest_template(manifest, &template_, &err), ABX_OK,
			     "%s: %s", cases[i].file, abx_error_message(err));
		cr_expect_str_eq(template_->metadata->name, cases[i].name);
		cr_expect_eq(template_->spec->n_runtimes, 1);
		cr_expect_eq(template_->spec->runtimes[0].port, 49983);
		cr_expect_str_eq(
			template_->spec->runtimes[0].readiness_probe->http_get->path,
			"/health");
		json_object_put(manifest);
		to_calls(cases[i].file, "local", &calls);
		cr_expect_eq(calls.count, 1);
	}
}

Test(model_samples, the_template_that_needs_a_runtime_class_names_it)
{
	json_object *manifest = load("e2b-kata_sandboxtemplate.yaml"), *spec;

	cr_assert(json_pointer_get(manifest, "/spec/template/spec/runtimeClassName",
				   &spec) == 0);
	cr_assert_str_eq(json_object_get_string(spec), "kata-fc");
	json_object_put(manifest);
}

Test(model_samples, the_e2b_env_becomes_three_calls)
{
	ABX__CLEANUP_CALLS abx__calls calls = { 0 };

	to_calls("e2b_sandboxenv.yaml", "YOUR_CLUSTER_ID", &calls);
	cr_assert_eq(calls.count, 3);
	expect_body(&calls, 0, "/v1/envs",
		    "{\"name\":\"e2b\",\"templateRef\":{\"name\":\"e2b-envd\"},\"mode\":"
		    "\"WarmPool\"}");
	expect_body(
		&calls, 1, "/v1/envs/e2b/sandboxpools",
		"{\"inlineResources\":{\"requests\":{\"cpu\":\"1\",\"memory\":\"2Gi\"},"
		"\"limits\":{\"cpu\":\"1\",\"memory\":\"2Gi\"}},\"replicas\":2}");
	expect_body(&calls, 2, "/v1/envs/e2b/autoscaling/groups/1c2gi",
		    "{\"enabled\":true,\"minReplicas\":0,\"maxReplicas\":4}");
}

Test(model_samples, the_base_env_applies_as_it_is)
{
	ABX__CLEANUP_CALLS abx__calls calls = { 0 };

	to_calls("base_sandboxenv.yaml", "local", &calls);
	cr_assert_eq(calls.count, 3);
	expect_body(&calls, 0, "/v1/envs",
		    "{\"name\":\"base\",\"templateRef\":{\"name\":\"base\"},\"mode\":"
		    "\"WarmPool\","
		    "\"overrides\":{\"podCreationImagePolicy\":\"PoolDefaultImage\"}}");
	expect_body(
		&calls, 1, "/v1/envs/base/sandboxpools",
		"{\"inlineResources\":{\"requests\":{\"cpu\":\"1\",\"memory\":\"512Mi\"},"
		"\"limits\":{\"cpu\":\"1\",\"memory\":\"512Mi\"}},\"replicas\":4}");
	expect_body(&calls, 2, "/v1/envs/base/autoscaling/groups/1c512mi",
		    "{\"minReplicas\":0,\"maxReplicas\":16}");
}

Test(model_samples, a_fraction_in_yaml_is_the_fraction_written)
{
	static const char text[] = "requests:\n  cpu: 0.1\n  memory: 1.5e3\n";
	json_object *documents = NULL;
	int64_t cpu, memory;
	abx_error *err = NULL;

	cr_assert_eq(abx__yaml_parse(text, strlen(text), 0, &documents, NULL), ABX_OK);
	cr_assert_eq(abx__resources_shape(json_object_array_get_idx(documents, 0), &cpu,
					  &memory, &err),
		     ABX_OK, "%s", abx_error_message(err));
	cr_assert_eq(cpu, 100);
	cr_assert_eq(memory, 1500);
	json_object_put(documents);
}
