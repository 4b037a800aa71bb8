/*
 * members.c - what an env's document and its template say about the pools of this
 * cluster: names derived, rules checked, the Pod template materialised, the revision
 * counted. Changes nothing but what it returns.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"
#include "control/internal.h"
#include "control/route.h"
#include "model/duration.h"
#include "model/image-ref.h"

#define DEFAULT_MAX_UNAVAILABLE 20 /* percent */
#define COUNT_MAX 10000            /* replicas of one pool */

static json_object *spec_of(json_object *doc)
{
	return abx__field_object(doc, "spec");
}

json_object *abx__members_local(const abx__control *control, json_object *env_doc)
{
	json_object *clusters = abx__field_array(spec_of(env_doc), "clusters");

	for (size_t i = 0; i < abx__array_count(clusters); i++) {
		json_object *segment = json_object_array_get_idx(clusters, i);
		const char *id = abx__field_str(segment, "clusterID");

		if (id && strcmp(id, control->cluster_id) == 0)
			return abx__field_array(segment, "members");
	}
	return NULL;
}

json_object *abx__members_find(const abx__control *control, json_object *env_doc,
			       const char *name)
{
	json_object *members = abx__members_local(control, env_doc);

	for (size_t i = 0; i < abx__array_count(members); i++) {
		json_object *member = json_object_array_get_idx(members, i);

		if (abx__str_eq(abx__field_str(member, "name"), name))
			return member;
	}
	return NULL;
}

json_object *abx__groups_find(json_object *env_doc, const char *name)
{
	json_object *groups = abx__field_array(
		abx__field_object(spec_of(env_doc), "autoscaling"), "groups");

	for (size_t i = 0; i < abx__array_count(groups); i++) {
		json_object *group = json_object_array_get_idx(groups, i);
		const char *known = abx__field_str(group, "name");

		if (known && strcasecmp(known, name) == 0)
			return group;
	}
	return NULL;
}

/* --- autoscaling groups --- */

static const struct {
	const char *part; /* NULL: the group itself */
	const char *key;
	size_t offset;
} policy_fields[] = {
	{ NULL, "minReplicas", offsetof(abx__scale_policy, min) },
	{ NULL, "maxReplicas", offsetof(abx__scale_policy, max) },
	{ "scaleUpPolicy", "cooldownSeconds", offsetof(abx__scale_policy, cooldown_s) },
	{ "scaleUpPolicy", "idleThresholdSeconds",
	  offsetof(abx__scale_policy, idle_threshold_s) },
	{ "scaleUpPolicy", "idleZeroQuietWindowSeconds",
	  offsetof(abx__scale_policy, quiet_window_s) },
	{ "scaleUpPolicy", "saturationCooldownSeconds",
	  offsetof(abx__scale_policy, saturation_cooldown_s) },
	{ "scaleDownPolicy", "idleTimeoutSeconds",
	  offsetof(abx__scale_policy, idle_timeout_s) },
	{ "scaleDownPolicy", "stabilizationSeconds",
	  offsetof(abx__scale_policy, stabilization_s) },
	{ "scaleDownPolicy", "protectionWindowSeconds",
	  offsetof(abx__scale_policy, protection_s) },
};
#define POLICY_FIELD_COUNT (sizeof(policy_fields) / sizeof(policy_fields[0]))

static const char *const mode_names[] = {
	[ABX__SCALE_CONSERVATIVE] = "Conservative",
	[ABX__SCALE_DEFAULT] = "Default",
	[ABX__SCALE_AGGRESSIVE] = "Aggressive",
};

static int policy_check(const char *name, const abx__scale_policy *policy,
			abx_error **reterr)
{
	if (policy->mode == ABX__SCALE_AGGRESSIVE && policy->max == ABX__NO_CAP)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"scaling group %s: mode Aggressive needs maxReplicas", name);
	if (policy->max != ABX__NO_CAP && policy->min > policy->max)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"scaling group %s: minReplicas %d is above maxReplicas %d", name,
			policy->min, policy->max);
	return ABX_OK;
}

int abx__policy_read(json_object *group, abx__scale_policy *ret, abx_error **reterr)
{
	const char *name = abx__field_str(group, "name");
	const char *mode =
		abx__field_str(abx__field_object(group, "scaleUpPolicy"), "mode");
	abx__scale_policy policy = ABX__SCALE_POLICY_DEFAULT;

	name = name ? name : "";
	policy.enabled = abx__field_bool(group, "enabled", false);
	for (size_t i = 0; i < POLICY_FIELD_COUNT; i++) {
		json_object *part =
			policy_fields[i].part
				? abx__field_object(group, policy_fields[i].part)
				: group;
		int *slot = (int *)((char *)&policy + policy_fields[i].offset);
		int64_t value = abx__field_int(part, policy_fields[i].key, *slot);

		if (abx__field(part, policy_fields[i].key) &&
		    (value < 0 || value > INT32_MAX))
			return abx__error_set(reterr, ABX_EINVAL,
					      "scaling group %s: %s is %" PRId64
					      "; it must not be negative",
					      name, policy_fields[i].key, value);
		*slot = (int)value;
	}
	for (size_t i = 0; mode && i < 3; i++) {
		if (strcmp(mode, mode_names[i]) == 0) {
			policy.mode = (enum abx__scale_mode)i;
			mode = NULL;
		}
	}
	if (mode)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"scaling group %s: mode \"%s\" is not Conservative, Default or "
			"Aggressive",
			name, mode);
	*ret = policy;
	return policy_check(name, &policy, reterr);
}

json_object *abx__policy_document(const char *name, const abx__scale_policy *policy)
{
	json_object *group = json_object_new_object();
	json_object *up = json_object_new_object();
	json_object *down = json_object_new_object();

	abx__field_set_str(group, "name", name);
	abx__field_set_bool(group, "enabled", policy->enabled);
	abx__field_set_str(up, "mode", mode_names[policy->mode]);
	for (size_t i = 0; i < POLICY_FIELD_COUNT; i++) {
		const char *part = policy_fields[i].part;
		int value =
			*(const int *)((const char *)policy + policy_fields[i].offset);

		if (value == ABX__NO_CAP)
			continue;
		abx__field_set_int(!part                                ? group
				   : strcmp(part, "scaleUpPolicy") == 0 ? up
									: down,
				   policy_fields[i].key, value);
	}
	abx__field_take(group, "scaleUpPolicy", up);
	abx__field_take(group, "scaleDownPolicy", down);
	return group;
}

/* --- completing an env's document --- */

/* The shape decides the pool's name and, unless given, its group. */
static int member_key(json_object *member, char key[ABX__RESOURCE_KEY_SIZE],
		      int64_t *ret_cpu, int64_t *ret_memory, abx_error **reterr)
{
	json_object *config = abx__field_object(member, "config");
	json_object *resources = abx__field_object(config, "inlineResources");
	const char *type = abx__field_str(config, "instanceType");
	int r;

	if (!resources && type)
		return abx__error_set(
			reterr, ABX_EUNSUPPORTED,
			"config.instanceType %s: this cluster has no instance type "
			"catalogue; give inlineResources",
			type);
	if (!resources)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"config.inlineResources is required: it is the Pod's size");
	r = abx__resources_shape(resources, ret_cpu, ret_memory, reterr);
	return r < 0 ? r : abx__resource_key(*ret_cpu, *ret_memory, key, reterr);
}

static int complete_member(const char *env_name, json_object *member, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *derived = NULL;
	const char *given = abx__field_str(member, "name");
	json_object *config = abx__field_object(member, "config");
	char key[ABX__RESOURCE_KEY_SIZE];
	int64_t cpu, memory;
	int r = member_key(member, key, &cpu, &memory, reterr);

	if (r == ABX_OK)
		r = abx__pool_name(env_name, key, NULL, &derived, reterr);
	if (r < 0)
		return r;
	if (given && strcmp(given, derived) != 0)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"member %s: a pool of this shape in env %s is named %s", given,
			env_name, derived);
	if (!given)
		r = abx__field_set_str(member, "name", derived);
	if (r == ABX_OK && !abx__field_str(config, "scalingGroup"))
		r = abx__field_set_str(config, "scalingGroup", key);
	return r < 0 ? abx__error_nomem(reterr) : ABX_OK;
}

static json_object *groups_made(json_object *env_doc)
{
	json_object *spec = spec_of(env_doc);
	json_object *autoscaling = abx__field_object(spec, "autoscaling");

	if (!autoscaling) {
		if (abx__field_take(spec, "autoscaling", json_object_new_object()) < 0)
			return NULL;
		autoscaling = abx__field_object(spec, "autoscaling");
	}
	if (!abx__field_array(autoscaling, "groups") &&
	    abx__field_take(autoscaling, "groups", json_object_new_array()) < 0)
		return NULL;
	return abx__field_array(autoscaling, "groups");
}

/* A group appears, disabled, with its first member. */
static int complete_group(json_object *env_doc, json_object *member, abx_error **reterr)
{
	const char *name =
		abx__field_str(abx__field_object(member, "config"), "scalingGroup");
	json_object *groups, *group;

	if (!name || !*name || abx__groups_find(env_doc, name))
		return ABX_OK;
	groups = groups_made(env_doc);
	group = json_object_new_object();
	if (!groups || abx__field_set_str(group, "name", name) < 0 ||
	    abx__field_set_bool(group, "enabled", false) < 0 ||
	    json_object_array_add(groups, group) < 0) {
		json_object_put(group);
		return abx__error_nomem(reterr);
	}
	return ABX_OK;
}

bool abx__env_names_group(json_object *env_doc, const char *name)
{
	json_object *clusters = abx__field_array(spec_of(env_doc), "clusters");

	for (size_t i = 0; i < abx__array_count(clusters); i++) {
		json_object *members = abx__field_array(
			json_object_array_get_idx(clusters, i), "members");

		for (size_t k = 0; k < abx__array_count(members); k++) {
			json_object *config = abx__field_object(
				json_object_array_get_idx(members, k), "config");
			const char *group = abx__field_str(config, "scalingGroup");

			if (group && strcasecmp(group, name) == 0)
				return true;
		}
	}
	return false;
}

/* Every group belongs to a member and makes sense. */
static int check_groups(json_object *env_doc, abx_error **reterr)
{
	json_object *groups = abx__field_array(
		abx__field_object(spec_of(env_doc), "autoscaling"), "groups");
	abx__scale_policy policy;

	for (size_t i = 0; i < abx__array_count(groups); i++) {
		json_object *group = json_object_array_get_idx(groups, i);
		const char *name = abx__field_str(group, "name");
		int r = abx__policy_read(group, &policy, reterr);

		if (r < 0)
			return r;
		if (!name || !abx__env_names_group(env_doc, name))
			return abx__error_set(
				reterr, ABX_EINVAL,
				"autoscaling group %s: no member has this scalingGroup",
				name ? name : "without a name");
	}
	return ABX_OK;
}

int abx__members_complete(const abx__control *control, const char *env_name,
			  json_object *env_doc, abx_error **reterr)
{
	json_object *members = abx__members_local(control, env_doc);

	for (size_t i = 0; i < abx__array_count(members); i++) {
		json_object *member = json_object_array_get_idx(members, i);
		int r;

		if (!abx__field_object(member, "config"))
			return abx__error_set(reterr, ABX_EINVAL,
					      "env %s: member %zu has no config",
					      env_name, i);
		r = complete_member(env_name, member, reterr);
		if (r == ABX_OK)
			r = complete_group(env_doc, member, reterr);
		if (r < 0)
			return abx__error_prefix(reterr, "env %s", env_name);
	}
	return check_groups(env_doc, reterr);
}

/* --- one member as a pool's configuration --- */

void abx__pool_config_done(abx__pool_config *c)
{
	abx__free(c->name);
	abx__free(c->group);
	abx__free(c->template_);
	abx__free(c->template_version);
	abx__free(c->team);
	abx__free(c->user);
	json_object_put(c->spec);
	json_object_put(c->pod_template);
	abx__free(c->default_image);
	abx__free(c->rest_image);
	abx__free(c->readiness);
	*c = (abx__pool_config){ 0 };
}

void abx__members_free(abx__pool_config *configs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		abx__pool_config_done(&configs[i]);
	abx__free(configs);
}

static int read_count(json_object *obj, const char *key, int absent, int *ret,
		      abx_error **reterr)
{
	int64_t value = abx__field_int(obj, key, absent);

	if (abx__field(obj, key) && (value < 0 || value > COUNT_MAX))
		return abx__error_set(reterr, ABX_EINVAL,
				      "%s is %" PRId64 "; it must be 0..%d", key, value,
				      COUNT_MAX);
	*ret = (int)value;
	return ABX_OK;
}

static int read_duration(json_object *obj, const char *key, int64_t *ret,
			 abx_error **reterr)
{
	const char *text = abx__field_str(obj, key);
	int r;

	*ret = 0;
	if (!text)
		return ABX_OK;
	r = abx__duration_parse(text, ret, reterr);
	if (r == ABX_OK && *ret < 0)
		r = abx__error_set(reterr, ABX_EINVAL, "\"%s\" is negative", text);
	return r < 0 ? abx__error_prefix(reterr, "overrides.%s", key) : ABX_OK;
}

static int read_max_unavailable(json_object *value, abx__pool_config *c,
				abx_error **reterr)
{
	char digits[16];
	const char *text = value ? json_object_get_string(value) : NULL;
	size_t len = text ? strlen(text) : 0;
	uint64_t number;

	c->max_unavailable = DEFAULT_MAX_UNAVAILABLE;
	c->max_unavailable_is_percent = true;
	if (!text)
		return ABX_OK;
	c->max_unavailable_is_percent = len > 0 && text[len - 1] == '%';
	if (c->max_unavailable_is_percent)
		len--;
	if (len == 0 || len >= sizeof(digits))
		return abx__error_set(reterr, ABX_EINVAL,
				      "maxUnavailable \"%s\" is no number", text);
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (abx__parse_u64(digits, 0, c->max_unavailable_is_percent ? 100 : COUNT_MAX,
			   &number) < 0)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"maxUnavailable \"%s\" is neither a count nor a percentage",
			text);
	c->max_unavailable = (int)number;
	return ABX_OK;
}

/* Member, then env, then the default. */
static json_object *strategy_field(json_object *config, json_object *overrides,
				   const char *key)
{
	json_object *value = abx__field(abx__field_object(config, "updateStrategy"), key);

	return value ? value
		     : abx__field(abx__field_object(overrides, "updateStrategy"), key);
}

static int read_strategy(json_object *config, json_object *overrides, abx__pool_config *c,
			 abx_error **reterr)
{
	json_object *update = strategy_field(config, overrides, "autoUpdate");

	c->auto_update = !update || json_object_get_boolean(update);
	return read_max_unavailable(strategy_field(config, overrides, "maxUnavailable"),
				    c, reterr);
}

static int read_sizes(json_object *member, abx__pool_config *c, abx_error **reterr)
{
	json_object *config = abx__field_object(member, "config");
	int r = read_count(abx__field_object(member, "spec"), "replicas", 0, &c->replicas,
			   reterr);

	if (r == ABX_OK)
		r = read_count(config, "minReplicas", 0, &c->min, reterr);
	if (r == ABX_OK)
		r = read_count(config, "maxReplicas", ABX__NO_CAP, &c->max, reterr);
	if (r < 0)
		return r;
	if (c->max != ABX__NO_CAP && c->min > c->max)
		return abx__error_set(reterr, ABX_EINVAL,
				      "minReplicas %d is above maxReplicas %d", c->min,
				      c->max);
	c->priority = (int)abx__field_int(config, "priority", 0);
	c->up_priority = (int)abx__field_int(config, "scaleUpPriority", c->priority);
	return ABX_OK;
}

static int refuse_unhonoured(json_object *member, abx_error **reterr)
{
	json_object *metadata = abx__field_object(member, "metadata");
	json_object *spec = abx__field_object(member, "spec");

	if (metadata && json_object_object_length(metadata) > 0)
		return abx__error_set(
			reterr, ABX_EUNSUPPORTED,
			"metadata: the platform writes it; use config.labels and "
			"config.annotations");
	if (!spec)
		return ABX_OK;
	json_object_object_foreach(spec, key, value)
	{
		(void)value;
		if (strcmp(key, "replicas") != 0)
			return abx__error_set(
				reterr, ABX_EUNSUPPORTED,
				"spec.%s: the platform renders it from the template; "
				"leave it out",
				key);
	}
	return ABX_OK;
}

static json_object *first_container(json_object *pod_template)
{
	json_object *containers = abx__field_array(spec_of(pod_template), "containers");

	return abx__array_count(containers) ? json_object_array_get_idx(containers, 0)
					    : NULL;
}

static int set_image(json_object *pod_template, const char *image)
{
	json_object *container = first_container(pod_template);

	return container ? abx__field_set_str(container, "image", image) : ABX_EINVAL;
}

static json_object *copy_of(json_object *value)
{
	json_object *copy = NULL;

	return json_object_deep_copy(value, &copy, NULL) == 0 ? copy : NULL;
}

static int choose_images(json_object *template_spec, json_object *overrides,
			 abx__pool_config *c, abx_error **reterr)
{
	json_object *container =
		first_container(abx__field_object(template_spec, "template"));
	const char *own = abx__field_str(container, "image");
	const char *idle = abx__field_str(template_spec, "idleImage");
	const char *override = abx__field_str(overrides, "image");
	const char *policy = abx__field_str(overrides, "podCreationImagePolicy");
	bool use_default = policy && strcmp(policy, "PoolDefaultImage") == 0;
	int r;

	if (!own)
		return abx__error_set(reterr, ABX_EINVAL,
				      "template: the first container has no image");
	r = override ? abx__image_ref_check(override, reterr) : ABX_OK;
	if (r < 0)
		return abx__error_prefix(reterr, "overrides.image");
	c->refuse_idle_image = !use_default;
	c->default_image = abx__strdup(override ? override : own);
	c->rest_image = abx__strdup(use_default ? (override ? override : own)
				    : idle      ? idle
						: own);
	return c->default_image && c->rest_image ? ABX_OK : abx__error_nomem(reterr);
}

/* The runtime that claims arm: envd; NULL when the template names none. */
static json_object *armed_runtime(json_object *template_spec)
{
	json_object *runtimes = abx__field_array(template_spec, "runtimes");

	for (size_t i = 0; i < abx__array_count(runtimes); i++) {
		json_object *runtime = json_object_array_get_idx(runtimes, i);
		const char *name = abx__field_str(runtime, "name");
		int64_t port = abx__field_int(runtime, "port", 0);

		if (name && (strcmp(name, "envd") == 0 || strcmp(name, "e2b") == 0) &&
		    port > 0 && port <= UINT16_MAX)
			return runtime;
	}
	return NULL;
}

/* The probe that says whether a Pod is ready: of the one runtime that has one
 * (write-templates.c refuses a second). */
static json_object *readiness_of(json_object *template_spec)
{
	json_object *runtimes = abx__field_array(template_spec, "runtimes");

	for (size_t i = 0; i < abx__array_count(runtimes); i++) {
		json_object *probe = abx__field_object(
			json_object_array_get_idx(runtimes, i), "readinessProbe");

		if (probe)
			return probe;
	}
	return NULL;
}

/* As the engine takes it. */
static int print_readiness(json_object *probe, char **ret)
{
	static const char *const counts[] = { "initialDelaySeconds", "timeoutSeconds",
					      "periodSeconds", "successThreshold",
					      "failureThreshold" };
	json_object *get = abx__field_object(probe, "httpGet");
	const char *path = abx__field_str(get, "path");
	json_object *o = json_object_new_object();
	int r = ABX_ENOMEM;

	if (o && abx__field_set_int(o, "port", abx__field_int(get, "port", 0)) == ABX_OK)
		r = abx__field_set_str(o, "path", path ? path : "/");
	for (size_t i = 0; r == ABX_OK && i < sizeof(counts) / sizeof(counts[0]); i++)
		r = abx__field_share(o, counts[i], abx__field(probe, counts[i]));
	if (r == ABX_OK) {
		*ret = abx__strdup(json_object_to_json_string_ext(
			o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
		r = *ret ? ABX_OK : ABX_ENOMEM;
	}
	json_object_put(o);
	return r;
}

/* The port claims arm, and the readiness probe. */
static int read_runtimes(json_object *template_spec, abx__pool_config *c)
{
	json_object *probe = readiness_of(template_spec);

	c->runtime_port = (uint16_t)abx__field_int(armed_runtime(template_spec), "port",
						   ABX__RUNTIME_PORT);
	return probe ? print_readiness(probe, &c->readiness) : ABX_OK;
}

static int materialise_spec(json_object *member, json_object *overrides,
			    json_object *template_spec, abx__pool_config *c)
{
	json_object *config = abx__field_object(member, "config");
	json_object *resources = abx__field_object(config, "inlineResources");
	json_object *max = strategy_field(config, overrides, "maxUnavailable");
	json_object *pod = copy_of(abx__field_object(template_spec, "template"));
	json_object *spec = c->spec = json_object_new_object();
	const char *policy = c->refuse_idle_image ? "IdleImage" : "PoolDefaultImage";

	if (!pod || !spec || set_image(pod, c->default_image) < 0 ||
	    abx__field_take(first_container(pod), "resources", copy_of(resources)) < 0) {
		json_object_put(pod);
		return ABX_ENOMEM;
	}
	if (abx__field_take(spec, "template", pod) < 0 ||
	    abx__field_set_int(spec, "replicas", c->replicas) < 0 ||
	    abx__field_set_str(spec, "templateName", c->template_) < 0 ||
	    abx__field_set_str(spec, "podCreationImagePolicy", policy) < 0 ||
	    abx__field_share(spec, "defaultStartupTimeout",
			     abx__field(overrides, "defaultStartupTimeout")) < 0 ||
	    abx__field_share(spec, "defaultIdleTimeout",
			     abx__field(overrides, "defaultIdleTimeout")) < 0 ||
	    abx__field_share(spec, "maxUnavailable", max) < 0 ||
	    abx__field_share(spec, "idleImage", abx__field(template_spec, "idleImage")) <
		    0 ||
	    abx__field_share(spec, "runtimes", abx__field(template_spec, "runtimes")) < 0)
		return ABX_ENOMEM;
	c->pod_template = copy_of(pod);
	return c->pod_template && set_image(c->pod_template, c->rest_image) == ABX_OK
		       ? ABX_OK
		       : ABX_ENOMEM;
}

static int copy_label(json_object *env_doc, const char *key, char **ret)
{
	json_object *labels =
		abx__field_object(abx__field_object(env_doc, "metadata"), "labels");
	const char *value = abx__field_str(labels, key);

	*ret = abx__strdup(value);
	return !value || *ret ? ABX_OK : ABX_ENOMEM;
}

static int copy_names(json_object *env_doc, json_object *member,
		      json_object *template_spec, abx__pool_config *c)
{
	json_object *ref = abx__field_object(spec_of(env_doc), "templateRef");
	const char *group =
		abx__field_str(abx__field_object(member, "config"), "scalingGroup");
	const char *version = abx__field_str(template_spec, "version");

	c->name = abx__strdup(abx__field_str(member, "name"));
	c->template_ = abx__strdup(abx__field_str(ref, "name"));
	c->group = group && *group ? abx__strdup(group) : NULL;
	c->template_version = abx__strdup(version);
	if (!c->name || !c->template_ || (group && *group && !c->group) ||
	    (version && !c->template_version) ||
	    copy_label(env_doc, ABX__LABEL_TEAM, &c->team) < 0 ||
	    copy_label(env_doc, ABX__LABEL_USER, &c->user) < 0)
		return ABX_ENOMEM;
	return ABX_OK;
}

static int read_policy(json_object *env_doc, abx__pool_config *c, abx_error **reterr)
{
	json_object *group = c->group ? abx__groups_find(env_doc, c->group) : NULL;

	c->policy = (abx__scale_policy)ABX__SCALE_POLICY_DEFAULT;
	return group ? abx__policy_read(group, &c->policy, reterr) : ABX_OK;
}

static int build_one(const abx__control *control, json_object *env_doc,
		     json_object *template_spec, json_object *member, abx__pool_config *c,
		     abx_error **reterr)
{
	json_object *overrides = abx__field_object(spec_of(env_doc), "overrides");
	abx__engine *engine = control->config.engine;
	char key[ABX__RESOURCE_KEY_SIZE];
	int r;

	if (copy_names(env_doc, member, template_spec, c) < 0)
		return abx__error_nomem(reterr);
	r = refuse_unhonoured(member, reterr);
	if (r == ABX_OK)
		r = member_key(member, key, &c->cpu_milli, &c->memory_bytes, reterr);
	if (r == ABX_OK)
		r = read_sizes(member, c, reterr);
	if (r == ABX_OK)
		r = read_strategy(abx__field_object(member, "config"), overrides, c,
				  reterr);
	if (r == ABX_OK)
		r = read_duration(overrides, "defaultStartupTimeout",
				  &c->startup_timeout_ms, reterr);
	if (r == ABX_OK)
		r = read_duration(overrides, "defaultIdleTimeout", &c->idle_timeout_ms,
				  reterr);
	if (r == ABX_OK)
		r = read_policy(env_doc, c, reterr);
	if (r == ABX_OK)
		r = choose_images(template_spec, overrides, c, reterr);
	if (r < 0)
		return r;
	if (read_runtimes(template_spec, c) < 0 ||
	    materialise_spec(member, overrides, template_spec, c) < 0)
		return abx__error_nomem(reterr);
	r = abx__revision(c->spec, c->revision, reterr);
	return r < 0 ? r : engine->ops->check_template(engine, c->pod_template, reterr);
}

static int check_names_differ(const abx__pool_config *configs, size_t count,
			      abx_error **reterr)
{
	for (size_t i = 0; i < count; i++)
		for (size_t k = i + 1; k < count; k++)
			if (strcmp(configs[i].name, configs[k].name) == 0)
				return abx__error_set(
					reterr, ABX_EINVAL,
					"two members have the shape of pool %s",
					configs[i].name);
	return ABX_OK;
}

int abx__members_build(const abx__control *control, const char *env_name,
		       json_object *env_doc, json_object *template_doc,
		       abx__pool_config **ret, size_t *ret_count, abx_error **reterr)
{
	json_object *members = abx__members_local(control, env_doc);
	json_object *template_spec = spec_of(template_doc);
	size_t count = abx__array_count(members);
	abx__pool_config *configs = abx__calloc(count, sizeof(*configs));
	int r = configs ? ABX_OK : abx__error_nomem(reterr);

	for (size_t i = 0; r == ABX_OK && i < count; i++) {
		json_object *member = json_object_array_get_idx(members, i);

		r = build_one(control, env_doc, template_spec, member, &configs[i],
			      reterr);
		if (r < 0)
			abx__error_prefix(reterr, "env %s: member %s", env_name,
					  configs[i].name ? configs[i].name : "?");
	}
	if (r == ABX_OK)
		r = check_names_differ(configs, count, reterr);
	if (r < 0) {
		if (configs)
			abx__members_free(configs, count);
		return r;
	}
	*ret = configs;
	*ret_count = count;
	return ABX_OK;
}
