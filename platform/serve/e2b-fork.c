/*
 * e2b-fork.c - copies of a running sandbox: one snapshot of its files, then a create for
 * each. Memory is not copied: each starts anew on the same files, with the same
 * variables, metadata and rules. Every copy succeeds or fails for itself; the answer has
 * one entry for each.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "serve/e2b.h"

#define TIMEOUT_DEFAULT_MS 15000
#define COUNT_MAX 100
#define WAIT_MS 10000 /* for a Pod to become free */

typedef struct fork fork_;

/* One copy on its way. */
typedef struct copy {
	fork_ *fork;
	json_object *result; /* {sandbox} or {error}; NULL while it is made */
} copy;

struct fork {
	abx__call *call; /* held */
	char *snapshot_id;
	char origin[64];
	int64_t timeout_ms;
	size_t count, pending;
	copy copies[];
};

static void fork_free(fork_ *f)
{
	for (size_t i = 0; i < f->count; i++)
		json_object_put(f->copies[i].result);
	abx__free(f->snapshot_id);
	abx__free(f);
}

/* What runs from it goes on; its layer goes with the last of them. */
static void finish(fork_ *f)
{
	abx__call *call = f->call;
	json_object *array = json_object_new_array();

	for (size_t i = 0; array && i < f->count; i++)
		abx__json_push_take(array, abx_take(f->copies[i].result));
	abx__control_snapshot_delete(call->serve->control, f->snapshot_id, NULL, NULL,
				     NULL);
	abx__call_json(call, 201, array);
	fork_free(f);
	abx__call_drop(call);
}

static json_object *error_entry(const abx_error *err)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *inner = json_object_new_object();

	if (!o || !inner || abx__json_set_take(o, "error", inner) < 0 ||
	    abx__json_set_i64(inner, "code", abx__call_status_of(err)) < 0 ||
	    abx__json_set_str(inner, "message", abx_error_message(err)) < 0)
		return NULL;
	return abx_take(o);
}

static void made(copy *c, const abx__sandbox_rec *rec, const abx_error *err)
{
	fork_ *f = c->fork;
	json_object *o = rec ? json_object_new_object() : error_entry(err);

	if (rec && o)
		abx__json_set_take(o, "sandbox", abx__e2b_sandbox(rec));
	c->result = o;
	if (--f->pending == 0)
		finish(f);
}

static void on_claimed(void *userdata, int r, const abx__sandbox_rec *rec,
		       const abx_error *err)
{
	made(userdata, r == ABX_OK ? rec : NULL, err);
}

static void claim(copy *c, const abx__sandbox_rec *origin, const abx__snapshot_rec *s,
		  const abx__map *vars)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	const abx__call *call = c->fork->call;
	const abx__claim_request request = {
		.namespace_ = origin->namespace_,
		.name = origin->env,
		.or_pool = true,
		.snapshot_id = s->id,
		.snapshot = origin->snapshot ? origin->snapshot : origin->env,
		.idle_timeout_ms = c->fork->timeout_ms,
		.max_wait_ms = WAIT_MS,
		.secure = origin->access_token != NULL,
		.ingress = origin->ingress,
		.lifecycle = origin->lifecycle,
		.team = origin->team,
		.user = origin->user,
		.admin = abx__identity_sees_all(&call->who),
		.metadata = &origin->metadata,
		.env_vars = vars,
	};

	if (abx__control_claim(call->serve->control, &request, on_claimed, c, NULL,
			       &err) < 0)
		made(c, NULL, err);
}

static void on_snapshot(void *userdata, int r, const abx__snapshot_rec *s,
			const abx_error *err)
{
	fork_ *f = userdata;
	abx__call *call = f->call;
	abx__control *control = call->serve->control;
	abx__map vars = ABX__MAP_INIT;
	const abx__sandbox_rec *origin =
		abx__sandboxes_find(abx__control_sandboxes(control), f->origin);
	ABX_CLEANUP(abx__error_freep) abx_error *own = NULL;

	if (r == ABX_OK && !origin)
		r = abx__error_set(&own, ABX_ENOTFOUND,
				   "Sandbox \"%s\" doesn't exist or you don't have "
				   "access to it",
				   f->origin);
	if (r == ABX_OK)
		f->snapshot_id = abx__strdup(s->id);
	if (r == ABX_OK && !f->snapshot_id)
		r = abx__error_nomem(&own);
	if (r == ABX_OK)
		r = abx__control_env_vars(control, f->origin, &vars, &own);
	if (r < 0) {
		if (s)
			abx__control_snapshot_delete(control, s->id, NULL, NULL, NULL);
		abx__call_error(call, own ? own : err);
		abx__map_done(&vars);
		fork_free(f);
		abx__call_drop(call);
		return;
	}
	/* One more than there are, so that the last to be refused at once does not end it
	 * under us. */
	f->pending = f->count + 1;
	for (size_t i = 0; i < f->count; i++)
		claim(&f->copies[i], origin, s, &vars);
	abx__map_done(&vars);
	if (--f->pending == 0)
		finish(f);
}

static int parse(json_object *body, int64_t *ret_timeout_ms, int64_t *ret_count,
		 abx_error **reterr)
{
	static const char *const known[] = { "timeout", "count", NULL };
	int r = abx__json_only(body, known, reterr);

	*ret_timeout_ms = TIMEOUT_DEFAULT_MS;
	*ret_count = 1;
	if (r == ABX_OK)
		r = abx__e2b_seconds(body, "timeout", ret_timeout_ms, reterr);
	if (r >= 0)
		r = abx__json_get_i64(body, "count", INT32_MIN, INT32_MAX, ret_count,
				      reterr);
	if (r < 0)
		return r;
	if (*ret_count < 1)
		return abx__error_set(reterr, ABX_EINVAL, "Count must be at least 1");
	if (*ret_count > COUNT_MAX)
		return abx__error_set(reterr, ABX_EINVAL,
				      "Count cannot be greater than %d", COUNT_MAX);
	return ABX_OK;
}

void abx__e2b_fork(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	const abx__sandbox_rec *rec;
	int64_t timeout_ms, count;
	fork_ *f;

	if (parse(call->body, &timeout_ms, &count, &err) < 0) {
		abx__call_error(call, err);
		return;
	}
	if (!abx__call_timeout_fits(call, timeout_ms))
		return;
	rec = abx__call_sandbox(call);
	if (!rec)
		return;
	if (rec->state != ABX__SANDBOX_RUNNING) {
		abx__call_fail(call, 409,
			       "Sandbox '%s' is paused and cannot be forked; resume it "
			       "first",
			       rec->id);
		return;
	}
	f = abx__calloc(1, sizeof(*f) + (size_t)count * sizeof(f->copies[0]));
	if (!f) {
		abx__call_nomem(call);
		return;
	}
	f->call = call;
	f->timeout_ms = timeout_ms;
	f->count = (size_t)count;
	abx__str_copy(f->origin, sizeof(f->origin), rec->id);
	for (size_t i = 0; i < f->count; i++)
		f->copies[i].fork = f;
	abx__call_hold(call);
	if (abx__control_snapshot(call->serve->control, rec->id, NULL, NULL, true,
				  on_snapshot, f, &err) < 0) {
		abx__call_error(call, err);
		fork_free(f);
		abx__call_drop(call);
	}
}
