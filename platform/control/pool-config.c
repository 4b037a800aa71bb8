/*
 * pool-config.c - one member of an env's document, with its template, as a pool's
 * configuration: the Pod template materialised, the revision counted. Changes nothing but
 * what it returns.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"
#include "control/members.h"
#include "control/route.h"
#include "model/duration.h"
#include "model/image-ref.h"

#define DEFAULT_MAX_UNAVAILABLE 20 /* percent */
#define COUNT_MAX 10000            /* replicas of one pool */

void abx__pool_config_done(abx__pool_config *c)
{
	abx__free(c->name);
	abx__free(c->group);
	abx__free(c->template_);
	abx__free(c->template_version);
	abx__free(c->team);
	abx__free(c->user);
	abx__free(c->instance_type);
	abx__free(c->quota);
	json_object_put(c->labels);
	json_object_put(c->annotations);
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
	json_object *containers =
		abx__field_array(abx__members_spec(pod_template), "containers");

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
	json_object *ref = abx__field_object(abx__members_spec(env_doc), "templateRef");
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

/* What its quota counts, and what its caller wrote on it. */
static int copy_config(json_object *member, abx__pool_config *c)
{
	json_object *config = abx__field_object(member, "config");
	json_object *labels = abx__field_object(config, "labels");
	const char *type = abx__field_str(config, "instanceType");
	const char *quota = abx__field_str(labels, ABX__LABEL_QUOTA);

	c->labels = json_object_get(labels);
	c->annotations = json_object_get(abx__field_object(config, "annotations"));
	c->instance_type = abx__strdup(type);
	c->quota = abx__strdup(quota);
	c->multiplier = (int)abx__field_int(config, "multiplier", 1);
	if (c->multiplier < 1)
		c->multiplier = 1;
	return (type && !c->instance_type) || (quota && !c->quota) ? ABX_ENOMEM : ABX_OK;
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
	json_object *overrides =
		abx__field_object(abx__members_spec(env_doc), "overrides");
	abx__engine *engine = control->config.engine;
	char key[ABX__RESOURCE_KEY_SIZE];
	int r;

	if (copy_names(env_doc, member, template_spec, c) < 0 ||
	    copy_config(member, c) < 0)
		return abx__error_nomem(reterr);
	r = refuse_unhonoured(member, reterr);
	if (r == ABX_OK)
		r = abx__member_key(control, member, key, &c->cpu_milli, &c->memory_bytes,
				    reterr);
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
	json_object *template_spec = abx__members_spec(template_doc);
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
