/*
 * write-envs.c - an env's document, made and checked when its write's turn comes.
 */
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"
#include "control/writes.h"

static int refuse_unhonoured(abx__write *w, json_object *spec, abx_error **reterr)
{
	json_object *overrides = abx__field_object(spec, "overrides");
	const char *mode = abx__field_str(spec, "mode");

	if (mode && strcmp(mode, "OnDemandJob") == 0)
		return abx__error_set(
			reterr, ABX_EUNSUPPORTED,
			"env %s: mode OnDemandJob is reserved; use WarmPool", w->name);
	if (abx__field_bool(abx__field_object(overrides, "gateway"), "enabled", false))
		return abx__error_set(
			reterr, ABX_EUNSUPPORTED,
			"env %s: overrides.gateway.enabled: no egress gateway here",
			w->name);
	if (abx__array_count(abx__field_array(overrides, "volumes")))
		return abx__error_set(reterr, ABX_EUNSUPPORTED,
				      "env %s: overrides.volumes: no volume claims here",
				      w->name);
	if (!abx__field_bool(abx__field_object(overrides, "envd"), "verbose", true))
		return abx__error_set(
			reterr, ABX_EUNSUPPORTED,
			"env %s: overrides.envd.verbose: false is not offered here",
			w->name);
	return ABX_OK;
}

static const char *mode_of(json_object *spec)
{
	const char *mode = abx__field_str(spec, "mode");

	return mode ? mode : "WarmPool";
}

static int check_fixed(abx__write *w, json_object *spec, json_object *old,
		       abx_error **reterr)
{
	const char *template_ =
		abx__field_str(abx__field_object(spec, "templateRef"), "name");
	const char *in_force =
		abx__field_str(abx__field_object(old, "templateRef"), "name");

	if (!abx__str_eq(template_, in_force))
		return abx__error_set(
			reterr, ABX_EINVAL,
			"env %s: templateRef.name is fixed at create: it is %s, not %s; "
			"make a new env",
			w->name, in_force, template_ ? template_ : "absent");
	if (strcmp(mode_of(spec), mode_of(old)) != 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "env %s: mode is fixed at create: it is %s, not %s",
				      w->name, mode_of(old), mode_of(spec));
	return ABX_OK;
}

/* Completes, checks and wraps a spec that is ours to change. */
int abx__write_finish_env(abx__write *w, json_object *input, json_object *spec,
			  const abx__object *old, json_object **ret, abx_error **reterr)
{
	const char *template_ =
		abx__field_str(abx__field_object(spec, "templateRef"), "name");
	const abx__template *t =
		template_ ? abx__template_find(w->control, template_) : NULL;
	abx__pool_config *configs = NULL;
	json_object *doc = NULL;
	size_t count = 0;
	int r;

	if (!template_)
		return abx__error_set(reterr, ABX_EINVAL,
				      "env %s: templateRef.name is required", w->name);
	if (!t)
		return abx__error_set(reterr, ABX_EINVAL,
				      "env %s: template %s does not exist", w->name,
				      template_);
	r = refuse_unhonoured(w, spec, reterr);
	if (r == ABX_OK)
		r = abx__write_stored_form(input, spec, old, &doc, reterr);
	if (r == ABX_OK)
		r = abx__members_complete(w->control, w->name, doc, old ? old->doc : NULL,
					  reterr);
	if (r == ABX_OK)
		r = abx__members_build(w->control, w->name, doc, t->object.doc, &configs,
				       &count, reterr);
	if (r < 0) {
		json_object_put(doc);
		return r;
	}
	abx__members_free(configs, count);
	*ret = doc;
	return ABX_OK;
}

static json_object *labels_of(json_object *doc)
{
	return abx__field_object(abx__field_object(doc, "metadata"), "labels");
}

/* How its pools are sized is the template's to say when the env is made, and stays. */
static int stamp_sizing(abx__write *w, json_object *spec, const abx__env *old,
			abx_error **reterr)
{
	const char *name = abx__field_str(abx__field_object(spec, "templateRef"), "name");
	const abx__template *t = name ? abx__template_find(w->control, name) : NULL;
	json_object *from = old ? old->object.doc : t ? t->object.doc : NULL;
	const char *in_force = abx__field_str(labels_of(from), ABX__LABEL_POOL_SIZING);
	const char *given = abx__field_str(labels_of(w->input), ABX__LABEL_POOL_SIZING);
	json_object *metadata = abx__field_object(w->input, "metadata");

	if (given && !abx__str_eq(given, in_force))
		return abx__error_set(reterr, ABX_EINVAL,
				      "env %s: label " ABX__LABEL_POOL_SIZING
				      " is the server's: it is %s",
				      w->name, in_force ? in_force : "absent");
	if (!in_force || given)
		return ABX_OK;
	if (!labels_of(w->input) &&
	    abx__field_take(metadata, "labels", json_object_new_object()) < 0)
		return abx__error_nomem(reterr);
	return abx__field_set_str(labels_of(w->input), ABX__LABEL_POOL_SIZING, in_force) <
			       0
		       ? abx__error_nomem(reterr)
		       : ABX_OK;
}

int abx__make_env(abx__write *w, json_object **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__json_putp)
	json_object *spec = abx__write_copy(abx__field_object(w->input, "spec"));
	const abx__env *old = abx__write_env(w);
	int r;

	if (w->create && old)
		return abx__error_set(reterr, ABX_EEXISTS,
				      "env %s exists already in namespace %s", w->name,
				      w->namespace_);
	if (!w->create && !old)
		return abx__write_no_env(w, reterr);
	if (!spec)
		return abx__error_set(reterr, ABX_EINVAL, "env %s: spec is required",
				      w->name);
	r = old ? abx__write_check_version(w->input, &old->object, reterr) : ABX_OK;
	if (r == ABX_OK && old)
		r = check_fixed(w, spec, abx__field_object(old->object.doc, "spec"),
				reterr);
	if (r == ABX_OK)
		r = stamp_sizing(w, spec, old, reterr);
	return r < 0 ? r
		     : abx__write_finish_env(w, w->input, spec, old ? &old->object : NULL,
					     ret, reterr);
}

int abx__make_env_delete(abx__write *w, json_object **ret, abx_error **reterr)
{
	(void)ret;
	return abx__write_env(w) ? ABX_OK : abx__write_no_env(w, reterr);
}
