/*
 * claim.c - from a request to a sandbox: choose a pool, wait for an idle Pod, write the
 * claim on it, wait for the image, arm it, write that it runs, answer.
 *
 * All memory a claim needs up to the write is found when it is asked for. From the write
 * on, whatever goes wrong releases the Pod. The answer follows the write of phase
 * "running": that is what a restarted server goes by.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"
#include "control/internal.h"
#include "control/route.h"
#include "model/image-ref.h"

#define CONFLICTS_MAX 8
#define CONFLICT_WAIT_MS 1000
#define ROUTE_POOLS_MAX 256

static void on_claim_timer(abx__timer *timer);

void abx__claim_free(abx__claim *claim)
{
	if (!claim)
		return;
	if (claim->pool && claim->state == ABX__CLAIM_QUEUED && claim->prev) {
		DL_DELETE(claim->pool->queue, claim);
		claim->pool->waiting--;
	}
	if (claim->all_prev)
		DL_DELETE2(claim->control->claims, claim, all_prev, all_next);
	if (claim->sandbox) {
		claim->sandbox->claim = NULL;
		if (!claim->sandbox->pod)
			abx__sandbox_free(claim->sandbox);
	}
	abx__timers_release(&claim->control->timers, &claim->timer);
	abx__map_done(&claim->env_vars);
	abx__map_done(&claim->labels);
	abx__map_done(&claim->annotations);
	json_object_put(claim->managed_labels);
	json_object_put(claim->managed_annotations);
	abx__free(claim->image);
	abx__free(claim);
}

/* --- choosing a pool --- */

static int desired_of_others(const abx__env *env, const abx__pool *pool)
{
	int sum = 0;

	for (const abx__pool *other = env->pools; other; other = other->next)
		if (other != pool && other->config.group && pool->config.group &&
		    strcasecmp(other->config.group, pool->config.group) == 0)
			sum += other->config.replicas;
	return sum;
}

static abx__route_pool route_view(const abx__env *env, const abx__pool *pool)
{
	const abx__scale_policy *policy = &pool->config.policy;

	return (abx__route_pool){
		.name = pool->config.name,
		.priority = pool->config.priority,
		.ready_idle = pool->ready_idle,
		.waiting = pool->waiting,
		.desired = pool->config.replicas,
		.cap = abx__route_cap(pool->config.max,
				      policy->enabled ? policy->max : ABX__NO_CAP,
				      desired_of_others(env, pool)),
		.saturated = abx__pool_saturated_until_ms(pool) != 0,
	};
}

static bool is_in_group(const abx__pool *pool, const char *group)
{
	return !group ||
	       (pool->config.group && strcasecmp(pool->config.group, group) == 0);
}

static int choose_in_env(const abx__env *env, const char *group, abx__pool **ret,
			 abx_error **reterr)
{
	abx__route_pool views[ROUTE_POOLS_MAX];
	abx__pool *pools[ROUTE_POOLS_MAX];
	size_t count = 0;

	for (abx__pool *pool = env->pools; pool && count < ROUTE_POOLS_MAX;
	     pool = pool->next) {
		if (!is_in_group(pool, group))
			continue;
		pools[count] = pool;
		views[count++] = route_view(env, pool);
	}
	if (count == 0 && group)
		return abx__error_set(reterr, ABX_EUNAVAILABLE,
				      "env %s has no pool in scaling group %s",
				      env->object.name, group);
	if (count == 0) {
		abx__error_set(reterr, ABX_EUNAVAILABLE,
			       "env %s has no pool on this cluster", env->object.name);
		abx__error_hint(reterr, "add one: abx create envs %s pools -f pool.json",
				env->object.name);
		return ABX_EUNAVAILABLE;
	}
	*ret = pools[count == 1 ? 0 : abx__route_pick(views, count)];
	return ABX_OK;
}

static int check_owner(const abx__pool *pool, const abx__claim_request *request,
		       abx_error **reterr)
{
	const char *team = pool->config.team;

	if (request->admin || !team || !*team || abx__str_eq(team, request->team))
		return ABX_OK;
	return abx__error_set(reterr, ABX_EDENIED, "env %s belongs to another team",
			      pool->env_name);
}

static int choose_pool(const abx__control *control, const abx__claim_request *request,
		       abx__pool **ret, abx_error **reterr)
{
	const abx__env *env = abx__env_find(control, request->namespace_, request->name);
	abx__pool *pool = NULL;
	int r;

	if (env) {
		r = choose_in_env(env, request->scaling_group, &pool, reterr);
		if (r < 0)
			return r;
	} else if (request->or_pool) {
		pool = abx__pool_find(control, request->namespace_, request->name);
		if (pool && pool->deleting)
			pool = NULL;
	}
	if (!pool)
		return abx__error_set(reterr, ABX_ENOTFOUND,
				      "env %s does not exist in namespace %s",
				      request->name, request->namespace_);
	if (!env && !is_in_group(pool, request->scaling_group))
		return abx__error_set(reterr, ABX_EUNAVAILABLE,
				      "pool %s is not in scaling group %s", request->name,
				      request->scaling_group);
	*ret = pool;
	return check_owner(pool, request, reterr);
}

/* --- preparing --- */

static int check_image(const abx__pool *pool, const abx__claim_request *request,
		       abx_error **reterr)
{
	const char *image = request->image ? request->image : pool->config.default_image;
	int r = request->image ? abx__image_ref_check(request->image, reterr) : ABX_OK;

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

static json_object *map_json(const abx__map *map)
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
	json_object *metadata = s->rec.metadata.count ? map_json(&s->rec.metadata) : NULL;
	int r = ABX_ENOMEM;

	if ((metadata || s->rec.metadata.count == 0) &&
	    abx__map_set(a, ABX__ANNOTATION_SANDBOX_ID, s->id) == ABX_OK &&
	    set_json(a, ABX__ANNOTATION_METADATA, metadata) == ABX_OK &&
	    set_json(a, ABX__ANNOTATION_MANAGED_LABELS, claim->managed_labels) ==
		    ABX_OK &&
	    set_json(a, ABX__ANNOTATION_MANAGED_ANNOTATIONS,
		     claim->managed_annotations) == ABX_OK &&
	    set_seconds(a, ABX__ANNOTATION_STARTUP_TIMEOUT, startup_ms) == ABX_OK &&
	    (s->rec.idle_timeout_ms == 0 ||
	     set_seconds(a, ABX__ANNOTATION_IDLE_TIMEOUT, s->rec.idle_timeout_ms) ==
		     ABX_OK) &&
	    (!claim->secure || abx__map_set(a, ABX__ANNOTATION_SECURE, "true") == ABX_OK))
		r = ABX_OK;
	json_object_put(metadata);
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

	s->rec.namespace_ = s->namespace_ = abx__strdup(pool->namespace_);
	s->rec.pool = s->pool_name = abx__strdup(c->name);
	s->rec.env = s->env = abx__strdup(pool->env_name);
	s->rec.template_ = s->template_ = abx__strdup(c->template_);
	s->rec.image = s->image = abx__strdup(image);
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
	if (!s->namespace_ || !s->pool_name || !s->env || !s->template_ || !s->image ||
	    (request->team && !s->team) || (request->user && !s->user) ||
	    (request->metadata && abx__map_copy(&s->rec.metadata, request->metadata) < 0))
		return ABX_ENOMEM;
	if (abx__id_sandbox(s->id) < 0)
		return ABX_EIO;
	return request->secure
		       ? abx__sandbox_token(s->control, s->id, &s->rec.access_token)
		       : ABX_OK;
}

static int prepare(abx__claim *claim, const abx__pool *pool,
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

/* --- the queue --- */

/* A Pod that cannot run, when there is one: the reason nobody's claim is served. */
static const abx__podrec *ailing(const abx__pool *pool)
{
	const abx__podrec *pod;

	for (pod = pool->pods; pod; pod = pod->next)
		if (pod->reason[0])
			return pod;
	return NULL;
}

static void capacity_error(const abx__pool *pool, const char *what, abx_error **reterr)
{
	const abx__podrec *pod = ailing(pool);
	const char *message = pod && pod->message ? pod->message : "";

	abx__error_set(reterr, ABX_EEXHAUSTED,
		       "%s in pool %s: %d running, %d starting, %d stopping, "
		       "%d waiting, %d replicas%s%s%s%.500s",
		       what, pool->config.name, pool->counts[ABX__PODREC_RUNNING],
		       pool->counts[ABX__PODREC_STARTING],
		       pool->counts[ABX__PODREC_STOPPING], pool->waiting,
		       pool->config.replicas, pod ? "; its Pods fail: " : "",
		       pod ? pod->reason : "", *message ? ": " : "", message);
	if (pod)
		abx__error_hint(reterr, "mend what makes the Pods of the pool fail");
	else
		abx__error_hint(reterr, "retry later, or give the pool more replicas");
}

int abx__control_retry_after_s(const abx__control *control, const char *namespace_,
			       const char *env)
{
	const abx__env *e = abx__env_find(control, namespace_, env);

	for (const abx__pool *pool = e ? e->pools : NULL; pool; pool = pool->next)
		if (pool->counts[ABX__PODREC_STOPPING] > 0)
			return 1;
	return 5;
}

static int admit(abx__control *control, abx__pool *pool,
		 const abx__claim_request *request, abx_error **reterr)
{
	if (pool->ready_idle > 0 && pool->waiting == 0)
		return ABX_OK;
	if (request->no_wait) {
		capacity_error(pool, "no idle Pod", reterr);
		return ABX_EEXHAUSTED;
	}
	if ((size_t)pool->waiting >= control->config.queue_cap) {
		capacity_error(pool, "the claim queue is full", reterr);
		return ABX_EEXHAUSTED;
	}
	return ABX_OK;
}

static int64_t startup_ms_of(const abx__control *control, const abx__pool *pool,
			     const abx__claim_request *request)
{
	if (request->startup_timeout_ms > 0)
		return request->startup_timeout_ms;
	if (pool->config.startup_timeout_ms > 0)
		return pool->config.startup_timeout_ms;
	return control->config.startup_timeout_ms;
}

static void enqueue(abx__claim *claim, const abx__claim_request *request,
		    int64_t startup_ms)
{
	abx__control *control = claim->control;
	abx__pool *pool = claim->pool;
	int64_t now = abx__control_mono(control);

	claim->asked_ms = now;
	claim->startup_deadline_ms = now + startup_ms;
	claim->queue_deadline_ms = claim->startup_deadline_ms;
	if (request->max_wait_ms > 0 && request->max_wait_ms < startup_ms)
		claim->queue_deadline_ms = now + request->max_wait_ms;
	claim->state = ABX__CLAIM_QUEUED;
	DL_APPEND(pool->queue, claim);
	pool->waiting++;
	DL_APPEND2(control->claims, claim, all_prev, all_next);
	abx__control_set_timer(control, &claim->timer, claim->queue_deadline_ms);
	pool->last_create_ms = now;
	abx__claims_dispatch(pool);
	if (pool->waiting > 0) {
		abx__pool_touch(pool, false);
		if (pool->config.policy.enabled && !pool->deleting)
			abx__control_set_timer_sooner(control, &pool->scale_timer, 0);
	}
}

int abx__control_claim(abx__control *control, const abx__claim_request *request,
		       abx__claim_done done, void *userdata, abx__claim **ret_claim,
		       abx_error **reterr)
{
	abx__pool *pool = NULL;
	abx__claim *claim;
	int64_t startup_ms;
	int r;

	if (control->state != ABX__CONTROL_RUNNING)
		return abx__error_set(reterr, ABX_EUNAVAILABLE,
				      "the server is starting or stopping");
	r = choose_pool(control, request, &pool, reterr);
	if (r == ABX_OK)
		r = check_image(pool, request, reterr);
	if (r == ABX_OK)
		r = admit(control, pool, request, reterr);
	if (r < 0)
		return r;
	claim = abx__calloc(1, sizeof(*claim));
	if (!claim)
		return abx__error_nomem(reterr);
	claim->control = control;
	claim->done = done;
	claim->userdata = userdata;
	startup_ms = startup_ms_of(control, pool, request);
	r = prepare(claim, pool, request, startup_ms, reterr);
	if (r == ABX_OK && abx__timers_reserve(&control->timers, &claim->timer,
					       on_claim_timer, claim) < 0)
		r = abx__error_nomem(reterr);
	if (r < 0) {
		abx__claim_free(claim);
		return r;
	}
	claim->pool = pool;
	if (ret_claim)
		*ret_claim = claim;
	enqueue(claim, request, startup_ms);
	return ABX_OK;
}

static void unqueue(abx__claim *claim)
{
	DL_DELETE(claim->pool->queue, claim);
	claim->prev = claim->next = NULL;
	claim->pool->waiting--;
}

/* Back to the front: it has waited longest. */
static void requeue(abx__claim *claim)
{
	claim->state = ABX__CLAIM_QUEUED;
	DL_PREPEND(claim->pool->queue, claim);
	claim->pool->waiting++;
	abx__control_set_timer(claim->control, &claim->timer, claim->queue_deadline_ms);
	abx__claims_dispatch(claim->pool);
}

/* --- taking a Pod --- */

static int note_claim_time(abx__claim *claim)
{
	char text[ABX__RFC3339_SIZE];

	claim->sandbox->rec.claimed_ms = abx__control_wall(claim->control);
	abx__rfc3339_format(claim->sandbox->rec.claimed_ms, text);
	return abx__map_set(&claim->annotations, ABX__ANNOTATION_CLAIMED_AT, text);
}

static int attach(abx__claim *claim, abx__podrec *pod)
{
	abx__sandbox *s = claim->sandbox;

	abx__free(s->pod_name);
	s->rec.pod = s->pod_name = abx__strdup(pod->name);
	if (!s->pod_name || note_claim_time(claim) < 0 ||
	    abx__sandboxes_add(&claim->control->sandboxes, s) < 0)
		return ABX_ENOMEM;
	s->pod = pod;
	pod->sandbox = s;
	json_object_put(pod->managed_labels);
	json_object_put(pod->managed_annotations);
	pod->managed_labels = json_object_get(claim->managed_labels);
	pod->managed_annotations = json_object_get(claim->managed_annotations);
	return ABX_OK;
}

static void detach(abx__claim *claim)
{
	abx__sandbox *s = claim->sandbox;

	abx__sandboxes_remove(&claim->control->sandboxes, s);
	if (s->pod)
		s->pod->sandbox = NULL;
	s->pod = NULL;
}

static void take(abx__claim *claim, abx__podrec *pod)
{
	static const char *const no_owner[] = { ABX__LABEL_TEAM, ABX__LABEL_USER, NULL };
	const abx__sandbox *s = claim->sandbox;
	abx__pod_change change = {
		.expect_version = pod->version,
		.set_labels = &claim->labels,
		.set_annotations = &claim->annotations,
		.image =
			pod->image && strcmp(pod->image, s->image) == 0 ? NULL : s->image,
		/* Whoever had it before is not its owner now. */
		.remove_labels = s->team && s->user ? NULL : no_owner + (s->team ? 1 : 0),
	};

	if (attach(claim, pod) < 0) {
		/* Told by the timer: this may still be the call that started the claim.
		 */
		detach(claim);
		claim->nomem = true;
		abx__control_set_timer(claim->control, &claim->timer, 0);
		return;
	}
	claim->state = ABX__CLAIM_WRITING;
	abx__control_set_timer(claim->control, &claim->timer, claim->startup_deadline_ms);
	abx__podrec_set_state(pod, ABX__PODREC_STARTING);
	if (change.image)
		claim->control->config.runtime->ops->forget(
			claim->control->config.runtime, pod->namespace_, pod->name);
	abx__pod_write(pod, ABX__WRITE_CLAIM, &change);
}

void abx__claims_dispatch(abx__pool *pool)
{
	while (pool->queue && pool->idle) {
		abx__claim *claim = pool->queue;

		unqueue(claim);
		take(claim, pool->idle);
	}
}

/* --- ending --- */

void abx__claim_fail(abx__claim *claim, int r, const abx_error *err,
		     const char *stop_reason, const char *failure_reason)
{
	abx__sandbox *s = claim->sandbox;
	abx__podrec *pod = s->pod;
	abx__claim_done done = claim->done;
	void *userdata = claim->userdata;

	if (claim->prev)
		unqueue(claim);
	abx__timers_clear(&claim->control->timers, &claim->timer);
	s->claim = NULL;
	if (pod) {
		claim->sandbox = NULL;
		abx__pod_release(pod, stop_reason, failure_reason);
	}
	abx__claim_free(claim);
	if (done)
		done(userdata, r, NULL, err);
}

void abx__control_claim_cancel(abx__control *control, abx__claim *claim)
{
	(void)control;
	claim->done = NULL;
	abx__claim_fail(claim, ABX_ECANCELED, NULL, ABX__STOP_CANCELED, NULL);
}

void abx__claims_drop_pool(abx__pool *pool)
{
	while (pool->queue) {
		ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

		abx__error_set(&err, ABX_ENOTFOUND, "pool %s was deleted",
			       pool->config.name);
		abx__claim_fail(pool->queue, ABX_ENOTFOUND, err, ABX__STOP_CANCELED,
				NULL);
	}
}

static void on_claim_timer(abx__timer *timer)
{
	abx__claim *claim = timer->owner;
	const abx__podrec *pod = claim->sandbox->pod;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int64_t waited = abx__control_mono(claim->control) - claim->asked_ms;

	if (claim->nomem) {
		abx__error_nomem(&err);
		abx__claim_fail(claim, ABX_ENOMEM, err, ABX__STOP_CANCELED, NULL);
		return;
	}
	if (claim->state == ABX__CLAIM_QUEUED) {
		char what[64];

		snprintf(what, sizeof(what), "no Pod became free within %" PRId64 " s",
			 (waited + 500) / 1000);
		capacity_error(claim->pool, what, &err);
		abx__claim_fail(claim, ABX_EEXHAUSTED, err, ABX__STOP_CANCELED, NULL);
		return;
	}
	abx__error_set(&err, ABX_ETIMEDOUT,
		       "sandbox of env %s with image %s was not ready within %" PRId64
		       " s%s%s",
		       claim->sandbox->env, claim->sandbox->image, (waited + 500) / 1000,
		       pod && pod->reason[0] ? ": " : "", pod ? pod->reason : "");
	abx__error_hint(
		&err,
		"give it a longer startup timeout; the first pull of a large image is "
		"slow");
	abx__claim_fail(claim, ABX_ETIMEDOUT, err, ABX__STOP_FAILED, "StartupTimeout");
}

void abx__claim_pod_gone(abx__claim *claim)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	abx__sandboxes_remove(&claim->control->sandboxes, claim->sandbox);
	abx__error_set(&err, ABX_EUNAVAILABLE,
		       "the Pod of sandbox %s vanished while it started",
		       claim->sandbox->id);
	abx__claim_fail(claim, ABX_EUNAVAILABLE, err, ABX__STOP_FAILED, "PodGone");
}

/* --- arming --- */

static void wipe_body(abx__podrec *pod)
{
	if (pod->init_body)
		abx__wipe(pod->init_body, pod->init_len);
	abx__free(pod->init_body);
	pod->init_body = NULL;
}

/* The token is hex and needs no escaping; it never enters a json_object, which could not
 * be wiped. */
static int init_body(const abx__claim *claim, char **ret, size_t *ret_len)
{
	const abx__secret *token = claim->sandbox->rec.access_token;
	json_object *vars = map_json(&claim->env_vars);
	char stamp[ABX__RFC3339_SIZE];
	abx__buf buf = ABX__BUF_INIT;
	const char *text =
		vars ? json_object_to_json_string_ext(vars, JSON_C_TO_STRING_PLAIN)
		     : NULL;
	int r = text ? ABX_OK : ABX_ENOMEM;

	abx__rfc3339_format(abx__control_wall(claim->control), stamp);
	/* Reserved at once, so that no half of it is left behind by a growing buffer. */
	if (r == ABX_OK)
		r = abx__buf_reserve(&buf, strlen(text) + 256);
	if (r == ABX_OK)
		r = abx__buf_addf(
			&buf,
			"{\"envVars\":%s,\"defaultUser\":\"user\",\"timestamp\":\"%s\"",
			text, stamp);
	if (r == ABX_OK && token)
		r = abx__buf_addf(&buf, ",\"accessToken\":\"%s\"",
				  abx__secret_reveal(token));
	if (r == ABX_OK)
		r = abx__buf_addc(&buf, '}');
	json_object_put(vars);
	if (r == ABX_OK) {
		*ret_len = buf.len;
		*ret = abx__buf_take(&buf);
		r = *ret ? ABX_OK : ABX_ENOMEM;
	} else if (buf.data) {
		abx__wipe(buf.data, buf.len);
	}
	abx__buf_done(&buf);
	return r;
}

static void start(abx__claim *claim);

static void on_armed(void *userdata, int r, const abx_error *err)
{
	abx__podrec *pod = userdata;
	abx__control *control = pod->control;
	abx__claim *claim = pod->sandbox ? pod->sandbox->claim : NULL;
	ABX_CLEANUP(abx__error_freep) abx_error *own = NULL;

	pod->arming = false;
	wipe_body(pod);
	if (claim && claim->state == ABX__CLAIM_ARMING && !pod->want_release &&
	    !pod->gone) {
		if (r == ABX_OK) {
			start(claim);
		} else {
			own = abx__error_copy(err);
			abx__error_prefix(&own, "sandbox %s could not be armed",
					  claim->sandbox->id);
			abx__claim_fail(claim, r == ABX_EPROTO ? ABX_EUNAVAILABLE : r,
					own, ABX__STOP_FAILED, "ArmFailed");
		}
	}
	abx__pod_settle(pod);
	abx__control_call_end(control);
}

static void arm(abx__claim *claim)
{
	abx__control *control = claim->control;
	abx__podrec *pod = claim->sandbox->pod;
	abx__runtime *runtime = control->config.runtime;
	int64_t left = claim->startup_deadline_ms - abx__control_mono(control);

	claim->state = ABX__CLAIM_ARMING;
	if (init_body(claim, &pod->init_body, &pod->init_len) < 0) {
		ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

		abx__error_nomem(&err);
		abx__claim_fail(claim, ABX_ENOMEM, err, ABX__STOP_FAILED, NULL);
		return;
	}
	if (control->config.arm_timeout_ms > 0 && control->config.arm_timeout_ms < left)
		left = control->config.arm_timeout_ms;
	pod->arming = true;
	abx__control_call_begin(control);
	runtime->ops->arm(runtime, pod->namespace_, pod->name,
			  claim->sandbox->rec.runtime_port, pod->init_body, pod->init_len,
			  left > 1 ? (uint64_t)left : 1, on_armed, pod);
}

static void image_failed(abx__claim *claim)
{
	const abx__podrec *pod = claim->sandbox->pod;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	/* An image the caller chose is the caller's to correct. */
	int code = claim->image ? ABX_EINVAL : ABX_EUNAVAILABLE;

	abx__error_set(&err, code, "image %s does not run: %s%s%s", claim->sandbox->image,
		       pod->reason, pod->message ? ": " : "",
		       pod->message ? pod->message : "");
	abx__claim_fail(claim, code, err, ABX__STOP_FAILED, pod->reason);
}

void abx__claim_pod_changed(abx__claim *claim)
{
	const abx__podrec *pod = claim->sandbox->pod;

	if (claim->state != ABX__CLAIM_SWAPPING || !pod)
		return;
	if (pod->phase == ABX__POD_FAILED && pod->generation >= pod->target_generation)
		image_failed(claim);
	else if (abx__podrec_is_ready(pod))
		arm(claim);
}

/* --- writing that it runs --- */

static void start(abx__claim *claim)
{
	abx__sandbox *s = claim->sandbox;
	abx__map labels = ABX__MAP_INIT, annotations = ABX__MAP_INIT;
	abx__pod_change change = { .set_labels = &labels,
				   .set_annotations = &annotations };
	int64_t wall = abx__control_wall(claim->control);
	char text[ABX__RFC3339_SIZE];

	claim->state = ABX__CLAIM_STARTING;
	abx__rfc3339_format(wall, text);
	if (abx__map_set(&labels, ABX__LABEL_PHASE, ABX__PHASE_RUNNING) == ABX_OK &&
	    abx__map_set(&annotations, ABX__ANNOTATION_STARTED_AT, text) == ABX_OK &&
	    abx__map_set(&annotations, ABX__ANNOTATION_LAST_ACTIVE, text) == ABX_OK) {
		s->persisted_active_ms = wall;
		abx__pod_write(s->pod, ABX__WRITE_START, &change);
	} else {
		ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

		abx__error_nomem(&err);
		abx__claim_fail(claim, ABX_ENOMEM, err, ABX__STOP_FAILED, NULL);
	}
	abx__map_done(&labels);
	abx__map_done(&annotations);
}

static void succeed(abx__claim *claim)
{
	abx__sandbox *s = claim->sandbox;
	abx__claim_done done = claim->done;
	void *userdata = claim->userdata;
	int64_t wall = abx__control_wall(claim->control);

	s->rec.state = ABX__SANDBOX_RUNNING;
	abx__sandboxes_started(&claim->control->sandboxes, s, s->persisted_active_ms);
	s->rec.last_active_ms = wall;
	s->active_mono_ms = abx__control_mono(claim->control);
	abx__podrec_set_state(s->pod, ABX__PODREC_RUNNING);
	abx__sandbox_arm_idle(s);
	s->claim = NULL;
	claim->sandbox = NULL;
	abx__claim_free(claim);
	if (done)
		done(userdata, ABX_OK, &s->rec, NULL);
}

/* Somebody else changed the Pod: it goes back untouched, and waits for news of itself. */
static void conflict(abx__claim *claim)
{
	abx__podrec *pod = claim->sandbox->pod;

	detach(claim);
	pod->stale_version = pod->version;
	abx__control_set_timer(claim->control, &pod->timer,
			       abx__control_mono(claim->control) + CONFLICT_WAIT_MS);
	abx__podrec_set_state(pod, ABX__PODREC_IDLE);
	if (claim->conflicts++ < CONFLICTS_MAX) {
		requeue(claim);
	} else {
		ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

		abx__error_set(&err, ABX_EUNAVAILABLE,
			       "pool %s: its Pods change faster than they can "
			       "be claimed",
			       claim->pool->config.name);
		abx__claim_fail(claim, ABX_EUNAVAILABLE, err, ABX__STOP_CANCELED, NULL);
	}
}

static void claim_not_written(abx__claim *claim, int r, const abx_error *err)
{
	abx__podrec *pod = claim->sandbox->pod;
	ABX_CLEANUP(abx__error_freep) abx_error *own = NULL;

	if (r == ABX_ECONFLICT) {
		conflict(claim);
	} else if (r == ABX_ENOTFOUND) {
		/* It vanished unseen: another one will do. */
		detach(claim);
		abx__pod_gone(pod);
		requeue(claim);
	} else {
		own = abx__error_copy(err);
		abx__error_prefix(&own, "claim pod %s", pod->name);
		abx__claim_fail(claim, r, own, ABX__STOP_FAILED, NULL);
	}
}

void abx__claim_written(abx__claim *claim, enum abx__podrec_write write, int r,
			const abx_error *err)
{
	if (write == ABX__WRITE_CLAIM && claim->state == ABX__CLAIM_WRITING) {
		if (r < 0) {
			claim_not_written(claim, r, err);
			return;
		}
		claim->state = ABX__CLAIM_SWAPPING;
		abx__claim_pod_changed(claim);
	} else if (write == ABX__WRITE_START && claim->state == ABX__CLAIM_STARTING) {
		if (r < 0)
			claim_not_written(claim,
					  r == ABX_ECONFLICT || r == ABX_ENOTFOUND
						  ? ABX_EUNAVAILABLE
						  : r,
					  err);
		else
			succeed(claim);
	}
}
