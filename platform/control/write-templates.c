/*
 * write-templates.c - a template's document, made and checked when its write's turn
 * comes.
 */
#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"
#include "control/members.h"
#include "control/writes.h"
#include "model/image-ref.h"

/* A Pod is ready by one probe: a second one would be asked by nobody. */
static int check_probes(json_object *spec, abx_error **reterr)
{
	json_object *runtimes = abx__field_array(spec, "runtimes");
	bool found = false;

	for (size_t i = 0; i < abx__array_count(runtimes); i++) {
		if (!abx__field_object(json_object_array_get_idx(runtimes, i),
				       "readinessProbe"))
			continue;
		if (found)
			return abx__error_set(
				reterr, ABX_EUNSUPPORTED,
				"spec.runtimes[%zu].readinessProbe: one runtime has a "
				"probe already, and one says when a Pod is ready; leave "
				"this one out",
				i);
		found = true;
	}
	return ABX_OK;
}

static int check_template_spec(abx__write *w, json_object *spec, abx_error **reterr)
{
	abx__engine *engine = w->control->config.engine;
	json_object *pod = abx__field_object(spec, "template");
	const char *idle = abx__field_str(spec, "idleImage");
	const char *sizing = abx__field_str(
		abx__field_object(abx__field_object(w->input, "metadata"), "labels"),
		ABX__LABEL_POOL_SIZING);
	int r;

	if (!pod)
		return abx__error_set(reterr, ABX_EINVAL,
				      "template %s: spec.template is required", w->name);
	if (sizing && !abx__pool_sizing_is_valid(sizing))
		return abx__error_set(reterr, ABX_EINVAL,
				      "template %s: label " ABX__LABEL_POOL_SIZING
				      " is \"%s\", not billed, free-form or either",
				      w->name, sizing);
	r = idle ? abx__image_ref_check(idle, reterr) : ABX_OK;
	if (r < 0) {
		abx__error_prefix(reterr, "template %s: spec.idleImage", w->name);
		return r;
	}
	r = check_probes(spec, reterr);
	if (r == ABX_OK)
		r = engine->ops->check_template(engine, pod, reterr);
	if (r < 0)
		abx__error_prefix(reterr, "template %s", w->name);
	return r;
}

/* No env that is bound to it may break. */
static int check_bound_envs(abx__write *w, json_object *doc, abx_error **reterr)
{
	for (abx__env *env = w->control->envs; env; env = env->hh.next) {
		json_object *spec = abx__field_object(env->object.doc, "spec");
		const char *bound =
			abx__field_str(abx__field_object(spec, "templateRef"), "name");
		abx__pool_config *configs = NULL;
		size_t count = 0;
		int r;

		if (!abx__str_eq(bound, w->name))
			continue;
		r = abx__members_build(w->control, env->object.name, env->object.doc, doc,
				       &configs, &count, reterr);
		if (r < 0) {
			abx__error_prefix(reterr, "template %s", w->name);
			return r;
		}
		abx__members_free(configs, count);
	}
	return ABX_OK;
}

int abx__make_template(abx__write *w, json_object **ret, abx_error **reterr)
{
	const abx__template *old = abx__template_find(w->control, w->name);
	json_object *spec = abx__field_object(w->input, "spec");
	int r;

	if (w->create && old)
		return abx__error_set(reterr, ABX_EEXISTS, "template %s exists already",
				      w->name);
	if (!w->create && !old)
		return abx__error_set(reterr, ABX_ENOTFOUND, "template %s does not exist",
				      w->name);
	r = old ? abx__write_check_version(w->input, &old->object, reterr) : ABX_OK;
	if (r == ABX_OK)
		r = check_template_spec(w, spec, reterr);
	if (r == ABX_OK)
		r = check_bound_envs(w, w->input, reterr);
	return r < 0 ? r
		     : abx__write_stored_form(w->input, spec, old ? &old->object : NULL,
					      ret, reterr);
}

int abx__make_template_delete(abx__write *w, json_object **ret, abx_error **reterr)
{
	(void)ret;
	if (!abx__template_find(w->control, w->name))
		return abx__error_set(reterr, ABX_ENOTFOUND, "template %s does not exist",
				      w->name);
	for (abx__env *env = w->control->envs; env; env = env->hh.next) {
		json_object *spec = abx__field_object(env->object.doc, "spec");
		const char *bound =
			abx__field_str(abx__field_object(spec, "templateRef"), "name");

		if (abx__str_eq(bound, w->name)) {
			abx__error_set(reterr, ABX_ESTATE,
				       "template %s is in use by env %s", w->name,
				       env->key);
			abx__error_hint(reterr, "delete the env first");
			return ABX_ESTATE;
		}
	}
	return ABX_OK;
}
