/*
 * manifest.c - manifests, and the calls an env or a template becomes.
 */
#include "model/manifest.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "model/gen/native.h"
#include "model/keys.h"
#include "model/names.h"
#include "model/rules.h"

#define CALLS_MAX 1024
#define PLACEHOLDER_CLUSTER "YOUR_CLUSTER_ID"

static const char *member_string(json_object *object, const char *key)
{
	json_object *value = json_object_object_get(object, key);

	return json_object_is_type(value, json_type_string)
		       ? json_object_get_string(value)
		       : NULL;
}

/* ---- checking ---- */

int abx__manifest_kind(json_object *manifest, enum abx__manifest_kind *ret,
		       abx_error **reterr)
{
	const char *version, *kind;

	if (!json_object_is_type(manifest, json_type_object))
		return abx__error_set(
			reterr, ABX_EINVAL,
			"a manifest is an object with apiVersion, kind, metadata and "
			"spec");
	version = member_string(manifest, "apiVersion");
	kind = member_string(manifest, "kind");
	if (!version || strcmp(version, ABX__API_VERSION) != 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "apiVersion: expected \"" ABX__API_VERSION
				      "\", got \"%.80s\"",
				      version ? version : "");
	if (abx__str_eq(kind, ABX__KIND_TEMPLATE)) {
		*ret = ABX__MANIFEST_TEMPLATE;
	} else if (abx__str_eq(kind, ABX__KIND_ENV)) {
		*ret = ABX__MANIFEST_ENV;
	} else if (abx__str_eq(kind, ABX__KIND_POOL)) {
		abx__error_set(reterr, ABX_EUNSUPPORTED,
			       "kind: a SandboxPool is made by its env, not by hand");
		abx__error_hint(reterr, "name the pool as a member of a SandboxEnv");
		return ABX_EUNSUPPORTED;
	} else {
		return abx__error_set(
			reterr, ABX_EINVAL,
			"kind: expected \"SandboxTemplate\" or \"SandboxEnv\", got "
			"\"%.80s\"",
			kind ? kind : "");
	}
	return ABX_OK;
}

/* Puts kind and name before the error that is there; gives `r` back. */
static int failed(json_object *manifest, int r, abx_error **reterr)
{
	const char *name =
		member_string(json_object_object_get(manifest, "metadata"), "name");
	const char *kind = member_string(manifest, "kind");

	abx__error_prefix(reterr, "%s \"%.80s\"", kind ? kind : "manifest",
			  name ? name : "");
	return r;
}

static int check_meta(const abx__m_object_meta *meta, abx_error **reterr)
{
	if (!meta->name)
		return abx__error_set(reterr, ABX_EINVAL,
				      "metadata.name: required, but not given");
	if (meta->generate_name)
		return abx__error_set(
			reterr, ABX_EUNSUPPORTED,
			"metadata.generateName: not offered; give metadata.name");
	if (meta->n_finalizers)
		return abx__error_set(reterr, ABX_EUNSUPPORTED,
				      "metadata.finalizers: not offered");
	if (meta->n_owner_references)
		return abx__error_set(reterr, ABX_EUNSUPPORTED,
				      "metadata.ownerReferences: not offered");
	return ABX_OK;
}

static int check_template(const abx__m_sandbox_template *template_, abx_error **reterr)
{
	int r = check_meta(template_->metadata, reterr);

	if (r < 0)
		return r;
	if (template_->metadata->namespace_)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"metadata.namespace: a template belongs to no namespace; leave "
			"it out");
	if (!template_->spec->template_)
		return abx__error_set(reterr, ABX_EINVAL,
				      "spec.template: required, but not given");
	return abx__rules_pod_template("spec.template.", template_->spec->template_,
				       reterr);
}

int abx__manifest_template(json_object *manifest, abx__m_sandbox_template **ret,
			   abx_error **reterr)
{
	ABX_CLEANUP(abx__m_sandbox_template_freep)
	abx__m_sandbox_template *template_ = NULL;
	int r = abx__m_sandbox_template_parse(manifest, 0, &template_, reterr);

	if (r == ABX_OK)
		r = check_template(template_, reterr);
	if (r < 0)
		return failed(manifest, r, reterr);
	*ret = abx_take(template_);
	return ABX_OK;
}

static int check_groups(const abx__m_env_autoscaling *autoscaling, abx_error **reterr)
{
	for (size_t i = 0; autoscaling && i < autoscaling->n_groups; i++) {
		const abx__m_autoscaling_group *group = &autoscaling->groups[i];
		char path[64];
		int r;

		snprintf(path, sizeof(path), "spec.autoscaling.groups[%zu].", i);
		r = abx__rules_group(path, group->min_replicas, group->has_max_replicas,
				     group->max_replicas,
				     group->scale_up_policy ? group->scale_up_policy->mode
							    : 0,
				     reterr);
		if (r < 0)
			return r;
	}
	return ABX_OK;
}

static int check_members(const abx__m_env_cluster *cluster, size_t index,
			 abx_error **reterr)
{
	for (size_t i = 0; i < cluster->n_members; i++) {
		const abx__m_member_config *config = cluster->members[i].config;
		char path[96];
		int r;

		snprintf(path, sizeof(path), "spec.clusters[%zu].members[%zu].config.",
			 index, i);
		r = config ? abx__rules_replica_bounds(path, config->min_replicas,
						       config->has_max_replicas,
						       config->max_replicas, reterr)
			   : ABX_OK;
		if (r < 0)
			return r;
	}
	return ABX_OK;
}

static int check_env(const abx__m_sandbox_env *env, abx_error **reterr)
{
	int r = check_meta(env->metadata, reterr);

	if (r < 0)
		return r;
	r = abx__env_name_check(env->metadata->name, reterr);
	if (r < 0) {
		abx__error_prefix(reterr, "metadata.name");
		return r;
	}
	r = check_groups(env->spec->autoscaling, reterr);
	for (size_t i = 0; i < env->spec->n_clusters && r == ABX_OK; i++)
		r = check_members(&env->spec->clusters[i], i, reterr);
	return r;
}

int abx__manifest_env(json_object *manifest, abx__m_sandbox_env **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__m_sandbox_env_freep) abx__m_sandbox_env *env = NULL;
	int r = abx__m_sandbox_env_parse(manifest, 0, &env, reterr);

	if (r == ABX_OK)
		r = check_env(env, reterr);
	if (r < 0)
		return failed(manifest, r, reterr);
	*ret = abx_take(env);
	return ABX_OK;
}

/* ---- calls ---- */

void abx__calls_done(abx__calls *calls)
{
	for (size_t i = 0; i < calls->count; i++) {
		abx__free(calls->items[i].path);
		json_object_put(calls->items[i].body);
	}
	for (size_t i = 0; i < calls->n_skipped; i++)
		abx__free(calls->skipped[i]);
	abx__free(calls->items);
	abx__free(calls->skipped);
	abx__free(calls->name);
	*calls = (abx__calls){ 0 };
}

/* Takes `body` over, also when it fails; a NULL body or path is an allocation that
 * failed. */
static int add_call(abx__calls *calls, const char *method, char *path, json_object *body,
		    abx_error **reterr)
{
	abx__call *items = NULL;

	if (path && body && calls->count < CALLS_MAX)
		items = abx__reallocarray(calls->items, calls->count + 1, sizeof(*items));
	if (!items) {
		abx__free(path);
		json_object_put(body);
		return calls->count < CALLS_MAX
			       ? abx__error_nomem(reterr)
			       : abx__error_set(reterr, ABX_ETOOBIG,
						"more than %d pools and groups",
						CALLS_MAX);
	}
	calls->items = items;
	items[calls->count++] =
		(abx__call){ .method = method, .path = path, .body = body };
	return ABX_OK;
}

static int template_calls(json_object *manifest, abx__calls *calls, abx_error **reterr)
{
	ABX_CLEANUP(abx__m_sandbox_template_freep)
	abx__m_sandbox_template *template_ = NULL;
	abx__m_native_upsert_sandbox_template_request request = { 0 };
	const char *text;
	int r = abx__manifest_template(manifest, &template_, reterr);

	if (r < 0)
		return r;
	calls->name = abx__strdup(template_->metadata->name);
	text = json_object_to_json_string_ext(
		manifest, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	if (!calls->name || !text)
		return abx__error_nomem(reterr);
	request.crd_json = (char *)text;
	return add_call(calls, "POST", abx__strdup("/v1/admin/sandbox-templates"),
			abx__m_native_upsert_sandbox_template_request_print(&request, 0),
			reterr);
}

/* A shallow struct over the parsed manifest: what it points to stays the manifest's. */
static int env_call(const abx__m_sandbox_env *env, abx__calls *calls, abx_error **reterr)
{
	const abx__m_env_overrides *from = env->spec->overrides;
	abx__m_native_env_overrides overrides = { 0 };
	abx__m_native_create_sandbox_env_request body = {
		.name = env->metadata->name,
		.template_ref = env->spec->template_ref,
		.mode = env->spec->mode,
		.labels = env->metadata->labels,
		.annotations = env->metadata->annotations,
	};

	if (from) {
		overrides = (abx__m_native_env_overrides){
			.image = from->image,
			.pod_creation_image_policy = from->pod_creation_image_policy,
			.default_startup_timeout = from->default_startup_timeout,
			.default_idle_timeout = from->default_idle_timeout,
			.gateway = from->gateway,
			.envd = from->envd,
			.update_strategy = from->update_strategy,
			.volumes = from->volumes,
			.n_volumes = from->n_volumes,
		};
		body.overrides = &overrides;
	}
	return add_call(calls, "POST", abx__strdup("/v1/envs"),
			abx__m_native_create_sandbox_env_request_print(&body, 0), reterr);
}

/* Where a member is in the manifest, for errors. */
typedef struct place {
	size_t cluster, member;
} place;

__attribute__((format(printf, 4, 5))) static int
refuse(place at, int code, abx_error **reterr, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return abx__error_set(reterr, code, "spec.clusters[%zu].members[%zu].%s",
			      at.cluster, at.member, text);
}

/* What the native API has no field for. */
static int check_carried(const abx__m_env_member *member, place at, abx_error **reterr)
{
	const abx__m_member_config *config = member->config;
	const abx__m_member_spec *spec = member->spec;
	const char *field = NULL;

	if (config && ((config->has_priority && config->priority) ||
		       config->has_scale_up_priority || config->has_scale_down_priority))
		field = "config: priorities are not offered by the native API";
	else if (member->metadata &&
		 (member->metadata->labels.count || member->metadata->annotations.count))
		field = "metadata: written by the server; use config.labels and "
			"config.annotations";
	else if (spec && (spec->template_ || spec->idle_image || spec->n_runtimes ||
			  spec->template_name || spec->gateway || spec->max_unavailable ||
			  spec->default_startup_timeout || spec->default_idle_timeout ||
			  spec->pod_creation_image_policy))
		field = "spec: only replicas is taken; the rest is made from the "
			"template and the "
			"env's overrides";
	return field ? refuse(at, ABX_EUNSUPPORTED, reterr, "%s", field) : ABX_OK;
}

/* The group and name the server will derive; "" where the size comes from the catalogue.
 */
static int derive(const char *env, const abx__m_member_config *config, place at,
		  char key[ABX__RESOURCE_KEY_SIZE], char **ret_name, abx_error **reterr)
{
	json_object *resources;
	int64_t cpu, memory;
	int r;

	key[0] = '\0';
	if (!config || (!config->inline_resources && !config->instance_type))
		return refuse(
			at, ABX_EINVAL, reterr,
			"config: a size is required: inlineResources or instanceType");
	if (!config->inline_resources)
		return ABX_OK;
	resources = abx__m_resource_requirements_print(config->inline_resources, 0);
	if (!resources)
		return abx__error_nomem(reterr);
	r = abx__resources_shape(resources, &cpu, &memory, reterr);
	json_object_put(resources);
	if (r == ABX_OK)
		r = abx__resource_key(cpu, memory, key, reterr);
	if (r == ABX_OK)
		r = abx__pool_name(env, key, NULL, ret_name, reterr);
	if (r == ABX_EINVAL)
		abx__error_prefix(
			reterr, "spec.clusters[%zu].members[%zu].config.inlineResources",
			at.cluster, at.member);
	return r;
}

/* A quota's short name may stand behind the derived name; which, only the server knows.
 */
static bool is_derived_name(const abx__m_env_member *member, const char *derived)
{
	size_t len = strlen(derived);

	if (strcmp(member->name, derived) == 0)
		return true;
	return abx__map_get(&member->config->labels, ABX__LABEL_QUOTA) &&
	       strncmp(member->name, derived, len) == 0 && member->name[len] == '-';
}

static int check_derived(const char *env, const abx__m_env_member *member, place at,
			 abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *name = NULL;
	char key[ABX__RESOURCE_KEY_SIZE];
	const abx__m_member_config *config = member->config;
	int r = derive(env, config, at, key, &name, reterr);

	if (r < 0)
		return r;
	if (name && !is_derived_name(member, name)) {
		refuse(at, ABX_EINVAL, reterr,
		       "name: \"%s\" is not the name this pool gets, \"%s\"",
		       member->name, name);
		abx__error_hint(reterr,
				"a pool's name follows from its env and size: write %s",
				name);
		return ABX_EINVAL;
	}
	if (name && config->scaling_group && strcmp(config->scaling_group, key) != 0) {
		refuse(at, ABX_EINVAL, reterr,
		       "config.scalingGroup: \"%s\" is not the group this pool gets, "
		       "\"%s\"",
		       config->scaling_group, key);
		abx__error_hint(reterr, "a pool's group follows from its size: write %s",
				key);
		return ABX_EINVAL;
	}
	return ABX_OK;
}

static int pool_call(const char *env, const abx__m_env_member *member, place at,
		     abx__calls *calls, abx_error **reterr)
{
	const abx__m_member_config *config = member->config;
	abx__m_native_create_env_sandbox_pool_request body = { 0 };
	int r = check_carried(member, at, reterr);

	if (r == ABX_OK)
		r = check_derived(env, member, at, reterr);
	if (r < 0)
		return r;
	body = (abx__m_native_create_env_sandbox_pool_request){
		.instance_type = config->instance_type,
		.multiplier = config->multiplier,
		.has_multiplier = config->has_multiplier && config->multiplier > 0,
		.inline_resources = config->inline_resources,
		.min_replicas = config->min_replicas,
		.has_min_replicas = config->has_min_replicas,
		.max_replicas = config->max_replicas,
		.has_max_replicas = config->has_max_replicas,
		.labels = config->labels,
		.annotations = config->annotations,
		.update_strategy = config->update_strategy,
	};
	if (member->spec) {
		body.replicas = member->spec->replicas;
		body.has_replicas = member->spec->has_replicas;
	}
	return add_call(calls, "POST", abx__strf("/v1/envs/%s/sandboxpools", env),
			abx__m_native_create_env_sandbox_pool_request_print(&body, 0),
			reterr);
}

static int skip(abx__calls *calls, const char *cluster, abx_error **reterr)
{
	char **skipped =
		abx__reallocarray(calls->skipped, calls->n_skipped + 1, sizeof(*skipped));

	if (!skipped)
		return abx__error_nomem(reterr);
	calls->skipped = skipped;
	skipped[calls->n_skipped] = abx__strdup(cluster);
	if (!skipped[calls->n_skipped])
		return abx__error_nomem(reterr);
	calls->n_skipped++;
	return ABX_OK;
}

static int pool_calls(const abx__m_sandbox_env *env, const abx__manifest_context *context,
		      abx__calls *calls, abx_error **reterr)
{
	const char *other = NULL;
	bool found = false;

	for (size_t i = 0; i < env->spec->n_clusters; i++) {
		const abx__m_env_cluster *cluster = &env->spec->clusters[i];
		bool is_local = strcmp(cluster->cluster_id, context->cluster) == 0;
		int r = ABX_OK;

		if (!is_local) {
			other = cluster->cluster_id;
			r = skip(calls, other, reterr);
		}
		found = found || is_local;
		for (size_t j = 0; is_local && j < cluster->n_members && r == ABX_OK; j++)
			r = pool_call(env->metadata->name, &cluster->members[j],
				      (place){ i, j }, calls, reterr);
		if (r < 0)
			return r;
	}
	if (found || !other)
		return ABX_OK;
	abx__error_set(
		reterr, ABX_EINVAL,
		"spec.clusters: no entry is for this cluster, \"%s\"; there is \"%s\"",
		context->cluster, other);
	if (strcmp(other, PLACEHOLDER_CLUSTER) == 0)
		abx__error_hint(reterr, "write %s where it says " PLACEHOLDER_CLUSTER,
				context->cluster);
	return ABX_EINVAL;
}

static int group_calls(const abx__m_sandbox_env *env, abx__calls *calls,
		       abx_error **reterr)
{
	const abx__m_env_autoscaling *autoscaling = env->spec->autoscaling;

	for (size_t i = 0; autoscaling && i < autoscaling->n_groups; i++) {
		const abx__m_autoscaling_group *group = &autoscaling->groups[i];
		ABX_CLEANUP(abx__freep) char *name = abx__url_encode(group->name);
		json_object *body = abx__m_autoscaling_group_print(group, 0);
		int r;

		if (!name) {
			json_object_put(body);
			return abx__error_nomem(reterr);
		}
		if (body)
			json_object_object_del(body, "name"); /* the path's */
		r = add_call(calls, "PUT",
			     abx__strf("/v1/envs/%s/autoscaling/groups/%s",
				       env->metadata->name, name),
			     body, reterr);
		if (r < 0)
			return r;
	}
	return ABX_OK;
}

static int check_env_carried(const abx__m_sandbox_env *env,
			     const abx__manifest_context *context, abx_error **reterr)
{
	const abx__m_env_defaults *defaults = env->spec->defaults;
	const char *namespace_ = env->metadata->namespace_;

	if (defaults && (defaults->instance_type || defaults->has_multiplier))
		return abx__error_set(
			reterr, ABX_EUNSUPPORTED,
			"spec.defaults: not offered by the native API; give each "
			"member its size");
	if (namespace_ && context->namespace_ &&
	    strcmp(namespace_, context->namespace_) != 0)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"metadata.namespace: \"%s\" is not the credential's namespace, "
			"\"%s\"",
			namespace_, context->namespace_);
	return ABX_OK;
}

static int env_calls(json_object *manifest, const abx__manifest_context *context,
		     abx__calls *calls, abx_error **reterr)
{
	ABX_CLEANUP(abx__m_sandbox_env_freep) abx__m_sandbox_env *env = NULL;
	int r = abx__manifest_env(manifest, &env, reterr);

	if (r < 0)
		return r;
	calls->name = abx__strdup(env->metadata->name);
	if (!calls->name)
		return abx__error_nomem(reterr);
	r = check_env_carried(env, context, reterr);
	if (r == ABX_OK)
		r = env_call(env, calls, reterr);
	if (r == ABX_OK)
		r = pool_calls(env, context, calls, reterr);
	if (r == ABX_OK)
		r = group_calls(env, calls, reterr);
	return r < 0 ? failed(manifest, r, reterr) : ABX_OK;
}

int abx__manifest_calls(json_object *manifest, const abx__manifest_context *context,
			abx__calls *ret, abx_error **reterr)
{
	abx__calls calls = { 0 };
	int r = abx__manifest_kind(manifest, &calls.kind, reterr);

	if (r == ABX_OK && calls.kind == ABX__MANIFEST_TEMPLATE)
		r = template_calls(manifest, &calls, reterr);
	else if (r == ABX_OK)
		r = env_calls(manifest, context, &calls, reterr);
	if (r < 0) {
		abx__calls_done(&calls);
		return r;
	}
	*ret = calls;
	return ABX_OK;
}
