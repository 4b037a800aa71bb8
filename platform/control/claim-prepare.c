/*
 * claim-prepare.c - all a claim needs up to its write: the sandbox, labels, annotations.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/claim.h"
#include "control/fields.h"
#include "control/ingress.h"
#include "model/image-ref.h"

int abx__claim_check_image(const abx__pool *pool, const abx__claim_request *request,
			   abx_error **reterr)
{
	const char *image = request->image ? request->image : pool->config.default_image;
	int r;

	if (request->snapshot_id)
		return ABX_OK;
	r = request->image ? abx__image_ref_check(request->image, reterr) : ABX_OK;

	if (r < 0)
		return r;
	if (!pool->config.refuse_idle_image ||
	    strcmp(image, pool->config.rest_image) != 0)
		return ABX_OK;
	abx__error_set(reterr, ABX_EINVAL,
		       "image %s is the idle image of env %s: a sandbox may not run "
		       "it",
		       image, pool->env_name);
	abx__error_hint(reterr,
			"name another image, or set overrides.podCreationImagePolicy to "
			"PoolDefaultImage");
	return ABX_EINVAL;
}

static bool is_ours(const char *key)
{
	return abx__str_starts(key, ABX__KEY_PREFIX) ||
	       abx__str_starts(key, "scheduling.navix.sh/") ||
	       abx__str_starts(key, "agentbox.io/");
}

/* The caller's own keys go onto the Pod and are remembered, to be taken off again. */
static int take_keys(const abx__map *own, abx__map *into, json_object **ret_keys,
		     abx_error **reterr)
{
	json_object *keys;

	if (!own || own->count == 0)
		return ABX_OK;
	keys = *ret_keys = json_object_new_array();
	for (size_t i = 0; i < own->count; i++) {
		const char *key = own->items[i].key;

		if (is_ours(key))
			return abx__error_set(reterr, ABX_EINVAL,
					      "key %s is the platform's", key);
		if (abx__map_set(into, key, own->items[i].value) < 0 ||
		    json_object_array_add(keys, json_object_new_string(key)) < 0)
			return abx__error_nomem(reterr);
	}
	return ABX_OK;
}

json_object *abx__claim_map_json(const abx__map *map)
{
	json_object *obj = json_object_new_object();

	for (size_t i = 0; obj && map && i < map->count; i++) {
		if (abx__field_set_str(obj, map->items[i].key, map->items[i].value) < 0) {
			json_object_put(obj);
			return NULL;
		}
	}
	return obj;
}

static int set_json(abx__map *annotations, const char *key, json_object *value)
{
	return value ? abx__map_set(annotations, key,
				    json_object_to_json_string_ext(
					    value, JSON_C_TO_STRING_PLAIN))
		     : ABX_OK;
}

static int set_seconds(abx__map *annotations, const char *key, int64_t ms)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, (ms + 999) / 1000);
	return abx__map_set(annotations, key, text);
}

static int prepare_annotations(abx__claim *claim, int64_t startup_ms)
{
	abx__sandbox *s = claim->sandbox;
	abx__map *a = &claim->annotations;
	json_object *metadata =
		s->rec.metadata.count ? abx__claim_map_json(&s->rec.metadata) : NULL;
	json_object *ingress = s->rec.ingress ? abx__ingress_json(s->rec.ingress) : NULL;
	int r = ABX_ENOMEM;

	if ((metadata || s->rec.metadata.count == 0) &&
	    abx__map_set(a, ABX__ANNOTATION_SANDBOX_ID, s->id) == ABX_OK &&
	    (ingress || !s->rec.ingress) &&
	    set_json(a, ABX__ANNOTATION_METADATA, metadata) == ABX_OK &&
	    set_json(a, ABX__ANNOTATION_INGRESS, ingress) == ABX_OK &&
	    set_json(a, ABX__ANNOTATION_MANAGED_LABELS, claim->managed_labels) ==
		    ABX_OK &&
	    set_json(a, ABX__ANNOTATION_MANAGED_ANNOTATIONS,
		     claim->managed_annotations) == ABX_OK &&
	    set_seconds(a, ABX__ANNOTATION_STARTUP_TIMEOUT, startup_ms) == ABX_OK &&
	    (s->rec.idle_timeout_ms == 0 ||
	     set_seconds(a, ABX__ANNOTATION_IDLE_TIMEOUT, s->rec.idle_timeout_ms) ==
		     ABX_OK) &&
	    (!claim->secure ||
	     abx__map_set(a, ABX__ANNOTATION_SECURE, "true") == ABX_OK) &&
	    abx__lifecycle_put(s, a) == ABX_OK)
		r = ABX_OK;
	json_object_put(metadata);
	json_object_put(ingress);
	return r;
}

static int prepare_labels(abx__claim *claim)
{
	const abx__sandbox *s = claim->sandbox;
	abx__map *l = &claim->labels;

	if (abx__map_set(l, ABX__LABEL_SANDBOX_ID, s->id) < 0 ||
	    abx__map_set(l, ABX__LABEL_PHASE, ABX__PHASE_STARTING) < 0 ||
	    abx__map_set(l, ABX__LABEL_MANAGED_BY, ABX__MANAGED_BY_API) < 0 ||
	    (s->team && abx__map_set(l, ABX__LABEL_TEAM, s->team) < 0) ||
	    (s->user && abx__map_set(l, ABX__LABEL_USER, s->user) < 0))
		return ABX_ENOMEM;
	return ABX_OK;
}

static int fill_sandbox(abx__sandbox *s, const abx__pool *pool,
			const abx__claim_request *request)
{
	const abx__pool_config *c = &pool->config;
	const char *image = request->image ? request->image : c->default_image;

	if (request->snapshot_id) {
		s->rec.snapshot = s->snapshot = abx__strdup(request->snapshot);
		s->image = abx__strf(ABX__POD_SNAPSHOT_SCHEME "%s", request->snapshot_id);
		if (!s->image || !s->snapshot)
			return ABX_ENOMEM;
	} else {
		s->image = abx__strdup(image);
	}
	s->rec.namespace_ = s->namespace_ = abx__strdup(pool->namespace_);
	s->rec.pool = s->pool_name = abx__strdup(c->name);
	s->rec.env = s->env = abx__strdup(pool->env_name);
	s->rec.template_ = s->template_ = abx__strdup(c->template_);
	s->rec.image = s->image;
	s->rec.team = s->team = abx__strdup(request->team);
	s->rec.user = s->user = abx__strdup(request->user);
	s->rec.cpu_milli = c->cpu_milli;
	s->rec.memory_bytes = c->memory_bytes;
	s->rec.runtime_port = c->runtime_port;
	s->rec.state = ABX__SANDBOX_STARTING;
	s->rec.idle_timeout_ms =
		request->idle_timeout_ms ? request->idle_timeout_ms : c->idle_timeout_ms;
	if (s->rec.idle_timeout_ms == 0)
		s->rec.idle_timeout_ms = request->idle_default_ms;
	if (s->rec.idle_timeout_ms < 0)
		s->rec.idle_timeout_ms = 0;
	s->rec.idle_timeout_ms = (s->rec.idle_timeout_ms + 999) / 1000 * 1000;
	s->first_timeout_ms = s->rec.idle_timeout_ms;
	s->rec.lifecycle = request->lifecycle;
	if (!s->namespace_ || !s->pool_name || !s->env || !s->template_ || !s->image ||
	    (request->team && !s->team) || (request->user && !s->user) ||
	    (request->metadata && abx__map_copy(&s->rec.metadata, request->metadata) < 0))
		return ABX_ENOMEM;
	if (abx__id_sandbox(s->id) < 0)
		return ABX_EIO;
	if (request->secure &&
	    abx__sandbox_token(s->control, "", s->id, &s->rec.access_token) < 0)
		return ABX_ENOMEM;
	return abx__sandbox_set_ingress(s, request->ingress);
}

int abx__claim_prepare(abx__claim *claim, const abx__pool *pool,
		       const abx__claim_request *request, int64_t startup_ms,
		       abx_error **reterr)
{
	int r;

	claim->sandbox = abx__sandbox_new(claim->control);
	if (!claim->sandbox)
		return abx__error_nomem(reterr);
	claim->sandbox->claim = claim;
	claim->secure = request->secure;
	r = fill_sandbox(claim->sandbox, pool, request);
	if (r == ABX_EIO)
		return abx__error_set(reterr, r, "no random bytes for a sandbox id");
	if (r < 0)
		return abx__error_nomem(reterr);
	if (request->image) {
		claim->image = abx__strdup(request->image);
		if (!claim->image)
			return abx__error_nomem(reterr);
	}
	if (request->env_vars && abx__map_copy(&claim->env_vars, request->env_vars) < 0)
		return abx__error_nomem(reterr);
	r = abx__sandbox_keep_vars(claim->sandbox, request->env_vars, reterr);
	if (r < 0)
		return r;
	r = take_keys(request->labels, &claim->labels, &claim->managed_labels, reterr);
	if (r == ABX_OK)
		r = take_keys(request->annotations, &claim->annotations,
			      &claim->managed_annotations, reterr);
	if (r < 0)
		return r;
	if (prepare_labels(claim) < 0 || prepare_annotations(claim, startup_ms) < 0)
		return abx__error_nomem(reterr);
	return ABX_OK;
}
