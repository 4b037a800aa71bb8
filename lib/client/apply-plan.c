/*
 * apply-plan.c - the text of manifests into documents, and documents into the writes of
 * an apply. Pure: what the server knows is asked for by apply.c.
 */
#include "client/apply-plan.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "io/json.h"
#include "io/yaml.h"
#include "model/manifest.h"
#include "model/names.h"

#define MAX_TEXT ((size_t)4 << 20)

static struct step *new_step(struct apply *apply, const char *kind, size_t document)
{
	struct step *step;

	if (apply->count == apply->size) {
		size_t size = apply->size ? apply->size * 2 : 8;
		struct step *steps =
			abx__reallocarray(apply->steps, size, sizeof(*steps));

		if (!steps)
			return NULL;
		apply->steps = steps;
		apply->size = size;
	}
	step = &apply->steps[apply->count++];
	*step = (struct step){ .kind = kind, .document = document };
	return step;
}

static bool is_whole_object(json_object *document)
{
	return json_object_object_get_ex(document, "apiVersion", NULL) ||
	       json_object_object_get_ex(document, "kind", NULL);
}

/* "/envs/base" of "/v1/envs/base". */
static char *behind_v1(const char *path)
{
	return abx__strdup(abx__str_starts(path, "/v1/") ? path + 3 : path);
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The name the server gives a pool of this body, as "/envs/ENV/sandboxpools/NAME"; NULL
 * when only the server knows. */
static char *pool_item_path(const char *path, json_object *body)
{
	ABX_CLEANUP(abx__freep) char *env = NULL;
	ABX_CLEANUP(abx__freep) char *pool = NULL;
	const char *end = strstr(path, "/sandboxpools");
	char key[ABX__RESOURCE_KEY_SIZE];
	json_object *resources = NULL;
	int64_t cpu = 0, memory = 0;

	if (!end || !abx__str_starts(path, "/envs/") ||
	    abx__json_get_object(body, "inlineResources", &resources, NULL) <= 0 ||
	    abx__resources_shape(resources, &cpu, &memory, NULL) < 0 ||
	    abx__resource_key(cpu, memory, key, NULL) < 0)
		return NULL;
	env = abx__strndup(path + 6, (size_t)(end - path - 6));
	if (!env || abx__pool_name(env, key, NULL, &pool, NULL) < 0)
		return NULL;
	return abx__strf("%s/%s", path, pool);
}

static int finish_step(struct step *step, const char *object_name)
{
	if (abx__str_ends(step->path, "/sandboxpools")) {
		step->kind = "SandboxPool";
		step->item_path = pool_item_path(step->path, step->body);
		step->name = abx__strdup(step->item_path ? last_part(step->item_path)
							 : object_name);
	} else if (strstr(step->path, "/autoscaling/groups/")) {
		step->kind = "ScalingGroup";
		step->name = abx__strdup(last_part(step->path));
	} else {
		step->item_path = abx__strf("%s/%s", step->path, object_name);
		step->name = abx__strdup(object_name);
		if (!step->item_path)
			return ABX_ENOMEM;
	}
	return step->name ? ABX_OK : ABX_ENOMEM;
}

/* A pool of a group that the same document gives to the autoscaler keeps its size when it
 * is there already. */
static void note_autoscaled(struct apply *apply, size_t first)
{
	for (size_t i = first; i < apply->count; i++) {
		struct step *group = &apply->steps[i];
		bool enabled = false;

		if (!abx__str_eq(group->kind, "ScalingGroup") ||
		    abx__json_get_bool(group->body, "enabled", &enabled, NULL) <= 0 ||
		    !enabled)
			continue;
		for (size_t j = first; j < apply->count; j++)
			if (abx__str_eq(apply->steps[j].kind, "SandboxPool") &&
			    abx__str_ends(apply->steps[j].name, group->name))
				apply->steps[j].drop_replicas = true;
	}
}

static int plan_object(struct apply *apply, json_object *document, size_t number,
		       abx_error **reterr)
{
	const abx__manifest_context context = { .cluster = apply->cluster,
						.namespace_ = apply->namespace_ };
	ABX__CLEANUP_CALLS abx__calls calls = { 0 };
	size_t first = apply->count;
	int r;

	r = abx__manifest_calls(document, &context, &calls, reterr);
	if (r < 0)
		return r;
	for (size_t i = 0; i < calls.count; i++) {
		struct step *step =
			new_step(apply,
				 calls.kind == ABX__MANIFEST_TEMPLATE ? "SandboxTemplate"
								      : "SandboxEnv",
				 number);

		if (!step)
			return abx__error_nomem(reterr);
		step->method = calls.items[i].method;
		step->path = behind_v1(calls.items[i].path);
		step->body = json_object_get(calls.items[i].body);
		if (!step->path || finish_step(step, calls.name) < 0)
			return abx__error_nomem(reterr);
	}
	note_autoscaled(apply, first);
	return ABX_OK;
}

static const char *kind_of_resource(const char *resource)
{
	if (strstr(resource, "/autoscaling/groups"))
		return "ScalingGroup";
	if (strstr(resource, "/sandboxpools"))
		return "SandboxPool";
	if (strstr(resource, "sandbox-templates"))
		return "SandboxTemplate";
	if (abx__str_ends(resource, "/api-keys"))
		return "APIKey";
	return abx__str_starts(resource, "/envs") ? "SandboxEnv" : "Object";
}

/* A native body: POST to a collection, PUT to an item. Which one it is, the mode says;
 * ANY tries to create. */
static int plan_native(struct apply *apply, json_object *document, size_t number,
		       abx_error **reterr)
{
	const char *name = NULL;
	struct step *step;

	if (!apply->resource) {
		abx__error_set(reterr, ABX_EINVAL, "no apiVersion and kind");
		abx__error_hint(
			reterr,
			"write a whole object (kind: SandboxEnv, ...), or say which "
			"resource the body is for");
		return ABX_EINVAL;
	}
	step = new_step(apply, kind_of_resource(apply->resource), number);
	if (!step)
		return abx__error_nomem(reterr);
	step->method = apply->mode == ABX_APPLY_UPDATE ? "PUT" : "POST";
	step->path = abx__strdup(apply->resource);
	step->body = json_object_get(document);
	if (!step->path)
		return abx__error_nomem(reterr);
	if (step->method[1] == 'U') {
		step->name = abx__strdup(last_part(apply->resource));
	} else if (abx__json_get_str(document, "name", &name, NULL) > 0) {
		step->name = abx__strdup(name);
		step->item_path = abx__strf("%s/%s", step->path, name);
	} else {
		step->item_path = pool_item_path(step->path, step->body);
		step->name =
			abx__strdup(step->item_path ? last_part(step->item_path) : "");
	}
	return step->name ? ABX_OK : abx__error_nomem(reterr);
}

int abx__apply_in_document(struct apply *apply, size_t number, int r, abx_error **reterr)
{
	if (json_object_array_length(apply->documents) > 1)
		abx__error_prefix(reterr, "document %zu", number);
	if (apply->source)
		abx__error_prefix(reterr, "%s", apply->source);
	return r;
}

int abx__apply_plan(struct apply *apply, abx_error **reterr)
{
	size_t count = json_object_array_length(apply->documents);

	for (size_t i = 0; i < count; i++) {
		json_object *document = json_object_array_get_idx(apply->documents, i);
		int r;

		if (is_whole_object(document))
			r = plan_object(apply, document, i + 1, reterr);
		else
			r = plan_native(apply, document, i + 1, reterr);
		if (r < 0)
			return abx__apply_in_document(apply, i + 1, r, reterr);
	}
	return ABX_OK;
}

/* ---- parsing ---- */

static int parse_json(const char *text, size_t len, json_object **ret, abx_error **reterr)
{
	json_object *document = NULL;
	int r = abx__json_parse_object(text, len, MAX_TEXT, &document, reterr);

	if (r < 0)
		return r;
	*ret = json_object_new_array();
	if (!*ret) {
		json_object_put(document);
		return abx__error_nomem(reterr);
	}
	return abx__json_push_take(*ret, document) < 0 ? abx__error_nomem(reterr)
						       : ABX_OK;
}

static int check_documents(json_object *documents, abx_error **reterr)
{
	size_t count = json_object_array_length(documents);

	if (!count)
		return abx__error_set(reterr, ABX_EINVAL, "there is no document in it");
	for (size_t i = 0; i < count; i++)
		if (!json_object_is_type(json_object_array_get_idx(documents, i),
					 json_type_object))
			return abx__error_set(reterr, ABX_EINVAL,
					      "document %zu is not an object", i + 1);
	return ABX_OK;
}

int abx__apply_parse(struct apply *apply, const char *text, size_t len,
		     abx_error **reterr)
{
	size_t at = 0;
	int r;

	if (len > MAX_TEXT)
		return abx__error_set(reterr, ABX_ETOOBIG, "it is over %zu bytes",
				      MAX_TEXT);
	while (at < len && strchr(" \t\r\n", text[at]) && text[at])
		at++;
	if (at < len && text[at] == '{')
		r = parse_json(text, len, &apply->documents, reterr);
	else
		r = abx__yaml_parse(text, len, MAX_TEXT, &apply->documents, reterr);
	if (r >= 0)
		r = check_documents(apply->documents, reterr);
	if (r < 0 && apply->source)
		abx__error_prefix(reterr, "%s", apply->source);
	return r;
}

bool abx__apply_has_objects(json_object *documents)
{
	for (size_t i = 0; i < json_object_array_length(documents); i++)
		if (is_whole_object(json_object_array_get_idx(documents, i)))
			return true;
	return false;
}
