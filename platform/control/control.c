/*
 * control.c - making, starting, ticking and closing the room.
 *
 * Start: templates, then envs, then the engine's Pods. Nothing is decided before all of
 * them are known.
 */
#include "control/control.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/internal.h"

#define DEFAULT_QUEUE_CAP 1024
#define DEFAULT_STARTUP_MS 120000

int64_t abx__control_mono(const abx__control *control)
{
	return control->config.clock->mono_ms(control->config.clock->userdata);
}

int64_t abx__control_wall(const abx__control *control)
{
	return control->config.clock->wall_ms(control->config.clock->userdata);
}

int64_t abx__control_start_us(abx__control *control, int64_t wall_ms)
{
	int64_t us = wall_ms * 1000;

	/* A clock that was set back further is believed. */
	if (us <= control->last_start_us && us + 1000000 > control->last_start_us)
		us = control->last_start_us + 1;
	control->last_start_us = us;
	return us;
}

static void tell_deadline(abx__control *control)
{
	int64_t next = abx__timers_next(&control->timers);

	if (control->ticking || next >= control->told_deadline_ms)
		return;
	control->told_deadline_ms = next;
	if (control->config.wake)
		control->config.wake(control->config.wake_userdata);
}

void abx__control_set_timer(abx__control *control, abx__timer *timer, int64_t at)
{
	abx__timers_set(&control->timers, timer, at);
	tell_deadline(control);
}

void abx__control_set_timer_sooner(abx__control *control, abx__timer *timer, int64_t at)
{
	abx__timers_set_sooner(&control->timers, timer, at);
	tell_deadline(control);
}

int64_t abx__control_next_deadline_ms(const abx__control *control)
{
	int64_t next = abx__timers_next(&control->timers);

	((abx__control *)control)->told_deadline_ms = next;
	return next;
}

void abx__control_tick(abx__control *control)
{
	/* What a timer sets for now runs in the next tick, so that one tick ends. */
	int64_t now = abx__control_mono(control);
	size_t budget = control->timers.count + 16;
	abx__timer *timer;

	control->ticking = true;
	while (budget-- > 0 && (timer = abx__timers_pop(&control->timers, now)))
		timer->fire(timer);
	control->ticking = false;
	control->told_deadline_ms = INT64_MAX;
	tell_deadline(control);
}

char *abx__control_key(const char *namespace_, const char *name)
{
	return abx__strf("%s/%s", namespace_, name);
}

abx__sandboxes *abx__control_sandboxes(abx__control *control)
{
	return &control->sandboxes;
}

static void on_close_timer(abx__timer *timer)
{
	abx__control *control = timer->owner;
	void (*done)(void *userdata) = control->close_done;

	if (control->in_flight > 0 || !done)
		return;
	control->close_done = NULL;
	done(control->close_userdata);
}

void abx__control_call_begin(abx__control *control)
{
	control->in_flight++;
}

void abx__control_call_end(abx__control *control)
{
	control->in_flight--;
	if (control->state == ABX__CONTROL_CLOSING && control->in_flight == 0)
		abx__control_set_timer(control, &control->close_timer, 0);
}

static int check_config(const abx__control_config *config, abx_error **reterr)
{
	if (!config->cluster_id || !abx__dns_label_is_valid(config->cluster_id))
		return abx__error_set(
			reterr, ABX_EINVAL,
			"cluster id \"%s\" is not a DNS label of 1..63 of [a-z0-9-]",
			config->cluster_id ? config->cluster_id : "");
	if (!config->store || !config->engine || !config->runtime || !config->clock ||
	    !config->token_key)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"control needs a store, an engine, a runtime, a clock and a key");
	return ABX_OK;
}

int abx__control_new(const abx__control_config *config, abx__control **ret,
		     abx_error **reterr)
{
	abx__control *control;
	int r = check_config(config, reterr);

	if (r < 0)
		return r;
	control = abx__calloc(1, sizeof(*control));
	if (!control)
		return abx__error_nomem(reterr);
	control->config = *config;
	memcpy(control->token_key, config->token_key, sizeof(control->token_key));
	control->config.token_key = control->token_key;
	control->cluster_id = abx__strdup(config->cluster_id);
	control->config.cluster_id = control->cluster_id;
	control->sandboxes.cluster_id = control->cluster_id;
	control->sandboxes.control = control;
	control->told_deadline_ms = INT64_MAX;
	if (control->config.queue_cap == 0)
		control->config.queue_cap = DEFAULT_QUEUE_CAP;
	if (control->config.startup_timeout_ms == 0)
		control->config.startup_timeout_ms = DEFAULT_STARTUP_MS;
	if (!control->cluster_id ||
	    abx__timers_reserve(&control->timers, &control->writes_timer, abx__writes_run,
				control) < 0 ||
	    abx__timers_reserve(&control->timers, &control->persist_timer,
				abx__persist_fired, control) < 0 ||
	    abx__timers_reserve(&control->timers, &control->metrics_timer,
				abx__metrics_fired, control) < 0 ||
	    abx__timers_reserve(&control->timers, &control->close_timer, on_close_timer,
				control) < 0 ||
	    abx__history_init(control) < 0 || abx__control_meters_init(control) < 0) {
		abx__control_free(control);
		return abx__error_nomem(reterr);
	}
	*ret = control;
	return ABX_OK;
}

void abx__control_free(abx__control *control)
{
	if (!control)
		return;
	while (control->claims)
		abx__claim_free(control->claims);
	while (control->pods)
		abx__podrec_free(control->pods);
	abx__metrics_drop(control);
	abx__sandboxes_done(&control->sandboxes);
	abx__snapshots_done(control);
	abx__history_done(control);
	while (control->envs)
		abx__env_free(control->envs);
	while (control->pools)
		abx__pool_free(control->pools);
	abx__env_states_done(control);
	abx__meters_free(control->meters);
	control->meters = NULL;
	while (control->templates) {
		abx__template *t = control->templates;

		HASH_DEL(control->templates, t);
		abx__template_free(t);
	}
	abx__writes_drop(control);
	abx__timers_done(&control->timers);
	abx__wipe(control->token_key, sizeof(control->token_key));
	abx__free(control->cluster_id);
	abx__free(control);
}

/* --- start --- */

static void start_ended(abx__control *control, int r, const abx_error *err)
{
	abx__control_done done = control->start_done;

	control->start_done = NULL;
	if (r == ABX_OK)
		control->state = ABX__CONTROL_RUNNING;
	if (done)
		done(control->start_userdata, r, err);
}

void abx__pods_on_synced(void *userdata, int r, const abx_error *err)
{
	abx__control *control = userdata;
	ABX_CLEANUP(abx__error_freep) abx_error *nomem = NULL;

	if (r == ABX_OK && control->sync_nomem) {
		r = abx__error_nomem(&nomem);
		err = nomem;
	}
	if (control->state != ABX__CONTROL_STARTING)
		return;
	if (r == ABX_OK) {
		control->synced = true;
		abx__pods_adopted(control);
		abx__snapshots_adopted(control);
		abx__control_set_timer(control, &control->persist_timer,
				       abx__control_mono(control) +
					       ABX__LAST_ACTIVE_PERSIST_MS);
		if (control->sandboxes.count > 0)
			abx__metrics_wake(control);
	}
	start_ended(control, r, err);
}

/* What the store keeps, in the order it is read: what refers to others comes after them.
 */
static const struct {
	const char *kind;
	int (*load)(abx__control *control, const abx__doc *doc, abx_error **reterr);
	int (*load_all)(abx__control *control, const abx__doc *docs, size_t count,
			abx_error **reterr);
} kept_kinds[] = {
	{ ABX__KIND_TEMPLATE, .load = abx__template_load },
	{ ABX__KIND_ENV, .load = abx__env_load },
	{ ABX__KIND_SNAPSHOT, .load = abx__snapshot_load },
	{ ABX__KIND_RECORD, .load_all = abx__history_load },
	{ ABX__KIND_ENV_STATE, .load = abx__env_state_load },
};

static void read_next_kind(abx__control *control);

static void on_kind(void *userdata, int r, const abx__doc *docs, size_t count,
		    const abx_error *err)
{
	abx__control *control = userdata;
	const size_t kind = control->kinds_read++;
	ABX_CLEANUP(abx__error_freep) abx_error *own = NULL;

	abx__control_call_end(control);
	if (r == ABX_OK && kept_kinds[kind].load_all)
		r = kept_kinds[kind].load_all(control, docs, count, &own);
	else
		for (size_t i = 0; r == ABX_OK && i < count; i++)
			r = kept_kinds[kind].load(control, &docs[i], &own);
	if (r < 0 || control->state != ABX__CONTROL_STARTING)
		start_ended(control, r < 0 ? r : ABX_ECANCELED, own ? own : err);
	else
		read_next_kind(control);
}

static void read_next_kind(abx__control *control)
{
	const abx__store_ops *store = control->config.store->ops;
	const size_t kind = control->kinds_read;

	if (kind == sizeof(kept_kinds) / sizeof(kept_kinds[0])) {
		control->config.engine->ops->start(control->config.engine,
						   abx__pods_on_event,
						   abx__pods_on_synced, control);
		return;
	}
	abx__control_call_begin(control);
	store->list(control->config.store, kept_kinds[kind].kind, NULL, on_kind, control);
}

int abx__control_start(abx__control *control, abx__control_done done, void *userdata,
		       abx_error **reterr)
{
	if (control->state != ABX__CONTROL_NEW)
		return abx__error_set(reterr, ABX_ESTATE, "control was started already");
	control->state = ABX__CONTROL_STARTING;
	control->start_done = done;
	control->start_userdata = userdata;
	read_next_kind(control);
	return ABX_OK;
}

void abx__control_close(abx__control *control, void (*done)(void *userdata),
			void *userdata)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__claim *claim, *next;

	control->state = ABX__CONTROL_CLOSING;
	control->close_done = done;
	control->close_userdata = userdata;
	abx__error_set(&err, ABX_ECANCELED, "the server is stopping");
	DL_FOREACH_SAFE2(control->claims, claim, next, all_next)
	{
		abx__claim_fail(claim, ABX_ECANCELED, err, ABX__STOP_CANCELED, NULL);
	}
	abx__snapshots_close(control, err);
	abx__env_states_flush(control);
	for (size_t i = 0; i < control->sandboxes.count; i++)
		abx__sandbox_drop_moves(control->sandboxes.order[i], ABX_ECANCELED, err);
	abx__control_set_timer(control, &control->close_timer, 0);
}
