/*
 * lifecycle.c - what a Pod's annotations say about pausing, and the variables a sandbox
 * was created with, which a start from its files needs again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/claim.h"

#define ON_TIMEOUT_PAUSE "pause"
#define ON_TIMEOUT_FILES "pause-files"

int abx__lifecycle_put(const abx__sandbox *s, abx__map *annotations)
{
	const abx__lifecycle *l = &s->rec.lifecycle;
	char text[24];
	int r = ABX_OK;

	if (l->auto_pause)
		r = abx__map_set(annotations, ABX__ANNOTATION_ON_TIMEOUT,
				 l->files_only ? ON_TIMEOUT_FILES : ON_TIMEOUT_PAUSE);
	if (r == ABX_OK && l->auto_resume) {
		snprintf(text, sizeof(text), "%" PRId64, s->first_timeout_ms / 1000);
		r = abx__map_set(annotations, ABX__ANNOTATION_AUTO_RESUME, text);
	}
	if (r == ABX_OK && s->snapshot)
		r = abx__map_set(annotations, ABX__ANNOTATION_SNAPSHOT, s->snapshot);
	if (r == ABX_OK && s->sealed_vars)
		r = abx__map_set(annotations, ABX__ANNOTATION_ENV_VARS, s->sealed_vars);
	return r;
}

static int64_t time_of(const char *text)
{
	int64_t us = 0;

	return text && abx__rfc3339_parse(text, &us) == ABX_OK ? us / 1000 : 0;
}

int abx__lifecycle_read(abx__sandbox *s, const abx__map *annotations)
{
	const char *on_timeout = abx__map_get(annotations, ABX__ANNOTATION_ON_TIMEOUT);
	const char *resume = abx__map_get(annotations, ABX__ANNOTATION_AUTO_RESUME);
	const char *vars = abx__map_get(annotations, ABX__ANNOTATION_ENV_VARS);
	const char *snapshot = abx__map_get(annotations, ABX__ANNOTATION_SNAPSHOT);
	uint64_t seconds = 0;

	if (snapshot) {
		s->rec.snapshot = s->snapshot = abx__strdup(snapshot);
		if (!s->snapshot)
			return ABX_ENOMEM;
	}
	s->rec.lifecycle = (abx__lifecycle){
		.auto_pause = on_timeout != NULL,
		.files_only = abx__str_eq(on_timeout, ON_TIMEOUT_FILES),
		.auto_resume = resume != NULL,
	};
	if (resume && abx__parse_u64(resume, 0, INT32_MAX, &seconds) == ABX_OK)
		s->first_timeout_ms = (int64_t)seconds * 1000;
	s->rec.paused_ms = time_of(abx__map_get(annotations, ABX__ANNOTATION_PAUSED_AT));
	s->rec.memory_kept = abx__str_eq(
		abx__map_get(annotations, ABX__ANNOTATION_PAUSED_MEMORY), "true");
	if (vars) {
		s->sealed_vars = abx__strdup(vars);
		if (!s->sealed_vars)
			return ABX_ENOMEM;
	}
	return ABX_OK;
}

int abx__sandbox_keep_vars(abx__sandbox *s, const abx__map *vars, abx_error **reterr)
{
	const abx__control_config *config = &s->control->config;
	json_object *o;
	const char *text;
	size_t len = 0;
	int r;

	if (!config->seal || !vars || vars->count == 0)
		return ABX_OK;
	o = abx__claim_map_json(vars);
	text = o ? json_object_to_json_string_length(o, JSON_C_TO_STRING_PLAIN, &len)
		 : NULL;
	r = text ? config->seal(config->seal_userdata, s->id, text, len, &s->sealed_vars,
				reterr)
		 : abx__error_nomem(reterr);
	json_object_put(o);
	if (r < 0)
		abx__error_prefix(reterr, "environment variables");
	return r;
}

int abx__sandbox_env_vars(const abx__sandbox *s, abx__secret **ret, abx_error **reterr)
{
	const abx__control_config *config = &s->control->config;
	int r;

	if (!s->sealed_vars || !config->unseal)
		return ABX_OK;
	r = config->unseal(config->seal_userdata, s->id, s->sealed_vars, ret, reterr);
	if (r < 0)
		abx__error_prefix(reterr, "variables of sandbox %s", s->id);
	return r;
}

int abx__control_env_vars(abx__control *control, const char *id, abx__map *ret,
			  abx_error **reterr)
{
	const abx__sandbox *s = abx__sandboxes_get(&control->sandboxes, id);
	ABX_CLEANUP(abx__secret_freep) abx__secret *vars = NULL;
	json_object *o;
	int r;

	if (!s)
		return abx__error_set(reterr, ABX_ENOTFOUND, "sandbox %s does not exist",
				      id);
	r = abx__sandbox_env_vars(s, &vars, reterr);
	if (r < 0 || !vars)
		return r;
	o = json_tokener_parse(abx__secret_reveal(vars));
	if (!json_object_is_type(o, json_type_object))
		r = abx__error_set(reterr, ABX_EPROTO,
				   "variables of sandbox %s do not hold together", id);
	if (r == ABX_OK) {
		json_object_object_foreach(o, key, value)
		{
			if (r == ABX_OK &&
			    abx__map_set(ret, key, json_object_get_string(value)) < 0)
				r = abx__error_nomem(reterr);
		}
	}
	json_object_put(o);
	return r;
}
