/*
 * spec.c - parses a Pod template field by field against what the engine honours.
 *
 * Each object is walked over its keys with a table of readers; a key without a reader is
 * refused by its path. The table is the documentation: what is not in it does not exist
 * here. A container's own fields: spec-container.c.
 */
#include "engine/podd/spec-read.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

#define GRACE_MAX_S 3600
#define PLATFORM_PREFIX "agentbox.navix.sh/"

static int read_main(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_container_read(at, v, &((abx__spec *)into)->main);
}

static int read_init(const struct spec_at *at, json_object *v, void *into)
{
	abx__spec *spec = into;

	abx__spec_container *c;
	int r;

	if (spec->init_count >= ABX__SPEC_INIT_MAX)
		return abx__spec_invalid(at, "too many init containers");
	c = &spec->init[spec->init_count++];
	r = abx__spec_container_read(at, v, c);
	if (r == ABX_OK && (c->cpu_milli || c->memory_bytes))
		r = abx__spec_refuse(at, "resources.limits: an init container runs "
					 "within the limits of the main container");
	return r;
}

static int s_containers(const struct spec_at *at, json_object *v, void *into)
{
	if (json_object_is_type(v, json_type_array) && json_object_array_length(v) > 1)
		return abx__spec_refuse(at,
					"the local engine runs one main container a Pod");
	return abx__spec_array(at, v, read_main, into);
}

static int s_init_containers(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_array(at, v, read_init, into);
}

static int v_name(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_label(at, v, &((abx__spec_volume *)into)->name);
}

static int ed_medium(const struct spec_at *at, json_object *v, void *into)
{
	const char *s = json_object_get_string(v);

	if (*s && strcmp(s, "Memory") != 0)
		return abx__spec_invalid(at, "must be \"\" or Memory");
	((abx__spec_volume *)into)->memory = *s != '\0';
	return ABX_OK;
}

static int ed_size(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_bytes(at, v, &((abx__spec_volume *)into)->size_bytes);
}

static const struct spec_field empty_dir_fields[] = { { "medium", ed_medium },
						      { "sizeLimit", ed_size },
						      { 0 } };

static int v_empty_dir(const struct spec_at *at, json_object *v, void *into)
{
	abx__spec_volume *volume = into;
	int r = abx__spec_object(at, v, empty_dir_fields, volume);

	if (r == ABX_OK && volume->size_bytes && !volume->memory)
		return abx__spec_refuse(
			at, "sizeLimit is kept only with medium: Memory here");
	return r;
}

static const struct spec_field volume_fields[] = { { "name", v_name },
						   { "emptyDir", v_empty_dir },
						   { 0 } };

static int read_volume(const struct spec_at *at, json_object *v, void *into)
{
	abx__spec *spec = into;
	abx__spec_volume *volume;
	int r;

	if (spec->volume_count >= ABX__SPEC_VOLUME_MAX)
		return abx__spec_invalid(at, "too many volumes");
	volume = &spec->volumes[spec->volume_count++];
	r = abx__spec_object(at, v, volume_fields, volume);
	if (r < 0)
		return r;
	if (!volume->name)
		return abx__spec_invalid(at, "needs a name");
	if (!json_object_object_get_ex(v, "emptyDir", NULL))
		return abx__spec_invalid(
			at,
			"needs emptyDir, the one kind of volume the local engine has");
	if (abx__spec_find_volume(spec, volume->name) != volume)
		return abx__spec_invalid(at, "has the name of another volume");
	return ABX_OK;
}

static int s_volumes(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_array(at, v, read_volume, into);
}

static int s_runtime_class(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_string(at, v, &((abx__spec *)into)->runtime_class);
}

static int s_hostname(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_label(at, v, &((abx__spec *)into)->hostname);
}

/* True and false come to the same here: there are no services to link. */
static int s_inert_bool(const struct spec_at *at, json_object *v, void *into)
{
	bool unused;

	(void)into;
	return abx__spec_bool(at, v, &unused);
}

static int s_only_false(const struct spec_at *at, json_object *v, void *into)
{
	bool b = false;
	int r = abx__spec_bool(at, v, &b);

	(void)into;
	return r == ABX_OK && b
		       ? abx__spec_refuse(at,
					  "only false is supported by the local engine")
		       : r;
}

static int s_grace(const struct spec_at *at, json_object *v, void *into)
{
	int64_t n = json_object_get_int64(v);

	if (!json_object_is_type(v, json_type_int) || n < 0 || n > GRACE_MAX_S)
		return abx__spec_invalid(at, "must be a number of seconds, 0 to 3600");
	((abx__spec *)into)->grace_s = (uint32_t)n;
	return ABX_OK;
}

/* A container that ends is its Pod's end; the pool makes another Pod. */
static int s_restart_policy(const struct spec_at *at, json_object *v, void *into)
{
	(void)into;
	return json_object_is_type(v, json_type_string) &&
			       strcmp(json_object_get_string(v), "Never") == 0
		       ? ABX_OK
		       : abx__spec_refuse(at, "only Never: the local engine starts no "
					      "container again in place; its pool makes "
					      "another Pod");
}

static const struct spec_field spec_fields[] = {
	{ "containers", s_containers },
	{ "initContainers", s_init_containers },
	{ "volumes", s_volumes },
	{ "runtimeClassName", s_runtime_class },
	{ "hostname", s_hostname },
	{ "automountServiceAccountToken", s_only_false },
	{ "enableServiceLinks", s_inert_bool },
	{ "shareProcessNamespace", s_only_false },
	{ "hostNetwork", s_only_false },
	{ "hostPID", s_only_false },
	{ "hostIPC", s_only_false },
	{ "terminationGracePeriodSeconds", s_grace },
	{ "restartPolicy", s_restart_policy },
	{ 0 },
};

static int t_spec(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_object(at, v, spec_fields, into);
}

/* Control puts them on each Pod, beside its own. */
static int meta_map(const struct spec_at *at, json_object *v, void *into)
{
	(void)into;
	if (!json_object_is_type(v, json_type_object))
		return abx__spec_invalid(at, "must be an object");
	json_object_object_foreach(v, key, value)
	{
		if (!json_object_is_type(value, json_type_string))
			return abx__spec_invalid(at, "must hold strings only");
		if (strncmp(key, PLATFORM_PREFIX, sizeof(PLATFORM_PREFIX) - 1) == 0)
			return abx__spec_invalid(at, "keys below " PLATFORM_PREFIX
						     " are the platform's own");
	}
	return ABX_OK;
}

static const struct spec_field metadata_fields[] = { { "labels", meta_map },
						     { "annotations", meta_map },
						     { "creationTimestamp",
						       abx__spec_text },
						     { 0 } };

static int t_metadata(const struct spec_at *at, json_object *v, void *into)
{
	return abx__spec_object(at, v, metadata_fields, into);
}

static const struct spec_field template_fields[] = { { "spec", t_spec },
						     { "metadata", t_metadata },
						     { 0 } };

const abx__spec_volume *abx__spec_find_volume(const abx__spec *spec, const char *name)
{
	for (size_t i = 0; i < spec->volume_count; i++)
		if (spec->volumes[i].name && strcmp(spec->volumes[i].name, name) == 0)
			return &spec->volumes[i];
	return NULL;
}

const abx__spec_mount *abx__spec_main_writes(const abx__spec *spec, const char *volume)
{
	for (size_t i = 0; i < spec->main.mount_count; i++) {
		const abx__spec_mount *m = &spec->main.mounts[i];

		if (!m->read_only && (!volume || strcmp(m->volume, volume) == 0))
			return m;
	}
	return NULL;
}

static int check_mounts(const abx__spec *spec, const abx__spec_container *c,
			abx_error **reterr)
{
	for (size_t i = 0; i < c->mount_count; i++)
		if (!abx__spec_find_volume(spec, c->mounts[i].volume))
			return abx__error_set(
				reterr, ABX_EINVAL,
				"container %s mounts volume %s, which spec.volumes lacks",
				c->name, c->mounts[i].volume);
	return ABX_OK;
}

static int check_whole(const abx__spec *spec, abx_error **reterr)
{
	int r;

	if (!spec->main.name)
		return abx__error_set(reterr, ABX_EINVAL,
				      "spec.containers: needs one container");
	r = check_mounts(spec, &spec->main, reterr);
	for (size_t i = 0; r == ABX_OK && i < spec->init_count; i++) {
		r = check_mounts(spec, &spec->init[i], reterr);
		if (r == ABX_OK && spec->init[i].privileged && !spec->main.privileged)
			r = abx__error_set(reterr, ABX_EUNSUPPORTED,
					   "spec.initContainers[%zu].securityContext."
					   "privileged: only "
					   "together with a privileged main container",
					   i);
	}
	return r;
}

int abx__spec_parse(json_object *template_json, abx__spec **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__spec_freep) abx__spec *spec = abx__calloc(1, sizeof(*spec));
	struct spec_at at = { "", reterr };
	int r;

	if (!spec)
		return abx__error_nomem(reterr);
	r = abx__spec_object(&at, template_json, template_fields, spec);
	if (r == ABX_OK)
		r = check_whole(spec, reterr);
	if (r < 0)
		return r;
	*ret = abx_take(spec);
	return ABX_OK;
}

void abx__spec_free(abx__spec *spec)
{
	if (!spec)
		return;
	abx__spec_container_done(&spec->main);
	for (size_t i = 0; i < spec->init_count; i++)
		abx__spec_container_done(&spec->init[i]);
	for (size_t i = 0; i < spec->volume_count; i++)
		abx__free(spec->volumes[i].name);
	abx__free(spec->runtime_class);
	abx__free(spec->hostname);
	abx__free(spec);
}
