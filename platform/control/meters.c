/*
 * meters.c - see meters.h.
 */
#include "control/meters.h"

#include <string.h>

#include "base/error.h"
#include "control/internal.h"

#define POOL_LABELS "namespace", "pool", "team", "user", "sandbox_env"

static const abx__meter_family families[] = {
	[ABX__METER_CLAIM] = { .name = "agentbox_sandbox_claim_duration_seconds",
			       .help = "From a claim to its answer.",
			       .kind = ABX__METER_HISTOGRAM,
			       .labels = { POOL_LABELS, "outcome" },
			       .first = 0.01,
			       .factor = 2,
			       .buckets = 18 },
	[ABX__METER_CLAIM_PATH] = { .name = "agentbox_sandbox_claim_path_duration_"
					    "seconds",
				    .help = "Claims that succeeded, by what they had to "
					    "wait for.",
				    .kind = ABX__METER_HISTOGRAM,
				    .labels = { POOL_LABELS, "path" },
				    .first = 0.001,
				    .factor = 2,
				    .buckets = 20 },
	[ABX__METER_STARTING] = { .name = "agentbox_sandbox_starting_duration_seconds",
				  .help = "From taking a Pod until its sandbox runs.",
				  .kind = ABX__METER_HISTOGRAM,
				  .labels = { POOL_LABELS, "outcome" },
				  .first = 0.01,
				  .factor = 2,
				  .buckets = 20 },
	[ABX__METER_RUNNING] = { .name = "agentbox_sandbox_running_duration_seconds",
				 .help = "From a sandbox's start to its end.",
				 .kind = ABX__METER_HISTOGRAM,
				 .labels = { POOL_LABELS, "stop_reason" },
				 .first = 0.1,
				 .factor = 2,
				 .buckets = 20 },
	[ABX__METER_RECYCLE] = { .name = "agentbox_sandbox_recycle_duration_seconds",
				 .help = "From giving a Pod back until it is idle again.",
				 .kind = ABX__METER_HISTOGRAM,
				 .labels = { POOL_LABELS },
				 .first = 0.01,
				 .factor = 2,
				 .buckets = 18 },
	[ABX__METER_CREATE] = { .name = "agentbox_sandbox_create_total",
				.help = "Claims, by how they ended.",
				.kind = ABX__METER_COUNTER,
				.labels = { POOL_LABELS, "result" } },
	[ABX__METER_DELETE] = { .name = "agentbox_sandbox_delete_total",
				.help = "Sandboxes that ended.",
				.kind = ABX__METER_COUNTER,
				.labels = { POOL_LABELS, "stop_reason" } },
	[ABX__METER_UPDATE] = { .name = "agentbox_inplace_update_total",
				.help = "Changes of a Pod's image or a restart in place.",
				.kind = ABX__METER_COUNTER,
				.labels = { POOL_LABELS, "target", "result" } },
	[ABX__METER_CAS] = { .name = "agentbox_schedule_cas_outcome_total",
			     .help = "Conditional writes that claim a Pod.",
			     .kind = ABX__METER_COUNTER,
			     .labels = { "outcome" } },
	[ABX__METER_DISPATCH] = { .name = "agentbox_schedule_dispatch_latency_seconds",
				  .help = "From a claim until a Pod is taken for it.",
				  .kind = ABX__METER_HISTOGRAM,
				  .first = 0.005,
				  .factor = 2,
				  .buckets = 17 },
	[ABX__METER_PROTECTED] = { .name = "agentbox_schedule_skipped_scale_down_"
					   "protected_total",
				   .help = "Idle Pods marked by a scale-down that may "
					   "still be claimed.",
				   .kind = ABX__METER_COUNTER },
	[ABX__METER_EVICTED] = { .name = "agentbox_schedule_ready_queue_evicted_total",
				 .help = "Idle Pods that became unable to take a claim.",
				 .kind = ABX__METER_COUNTER },
};

int abx__control_meters_init(abx__control *control)
{
	control->meters = abx__meters_new(families, ABX__METER_COUNT);
	return control->meters ? ABX_OK : ABX_ENOMEM;
}

const abx__meters *abx__control_meters(const abx__control *control)
{
	return control->meters;
}

/* --- counting --- */

/* The values of POOL_LABELS: of a pool and, when it has one, of a sandbox's owner. */
static void pool_values(const abx__pool *pool, const abx__sandbox *s,
			const char *values[5])
{
	values[0] = pool->namespace_;
	values[1] = pool->config.name;
	values[2] = s && s->team ? s->team : pool->config.team;
	values[3] = s && s->user ? s->user : pool->config.user;
	values[4] = pool->env_name;
}

static double seconds(int64_t ms)
{
	return ms > 0 ? (double)ms / 1000.0 : 0;
}

static const char *outcome_of(int r)
{
	switch (r) {
	case ABX_OK:
		return "success";
	case ABX_EEXHAUSTED:
		return "no_idle";
	case ABX_ETIMEDOUT:
		return "timeout";
	default:
		return "error";
	}
}

static const char *path_of(const abx__claim *claim)
{
	if (claim->waited && claim->pool->scale.last_up_ms >= claim->asked_ms)
		return "scaled";
	if (claim->waited)
		return "queued";
	return claim->swapped ? "swapped" : "warm";
}

void abx__meter_claim_ended(const abx__claim *claim, int r)
{
	abx__control *control = claim->control;
	int64_t now = abx__control_mono(control);
	const char *values[6];

	pool_values(claim->pool, claim->sandbox, values);
	if (claim->taken_ms) {
		values[5] = r == ABX_OK ? "success" : "canceled";
		abx__meter_observe(control->meters, ABX__METER_STARTING, values,
				   seconds(now - claim->taken_ms));
	}
	if (r == ABX_ECANCELED)
		return;
	values[5] = outcome_of(r);
	abx__meter_observe(control->meters, ABX__METER_CLAIM, values,
			   seconds(now - claim->asked_ms));
	abx__meter_add(control->meters, ABX__METER_CREATE, values, 1);
	if (r < 0)
		return;
	values[5] = path_of(claim);
	abx__meter_observe(control->meters, ABX__METER_CLAIM_PATH, values,
			   seconds(now - claim->asked_ms));
}

void abx__meter_claim_refused(const abx__pool *pool)
{
	const char *values[6];

	pool_values(pool, NULL, values);
	values[5] = outcome_of(ABX_EEXHAUSTED);
	abx__meter_observe(pool->control->meters, ABX__METER_CLAIM, values, 0);
	abx__meter_add(pool->control->meters, ABX__METER_CREATE, values, 1);
}

void abx__meter_claim_taken(abx__claim *claim, bool swapped)
{
	claim->taken_ms = abx__control_mono(claim->control);
	claim->swapped = swapped;
	abx__meter_observe(claim->control->meters, ABX__METER_DISPATCH, NULL,
			   seconds(claim->taken_ms - claim->asked_ms));
}

void abx__meter_sandbox_ended(const abx__sandbox *s, const char *stop_reason)
{
	const abx__pool *pool = s->pod ? s->pod->pool : NULL;
	const char *values[6];

	if (!pool)
		return;
	pool_values(pool, s, values);
	values[5] = stop_reason;
	abx__meter_add(s->control->meters, ABX__METER_DELETE, values, 1);
	if (s->rec.started_ms)
		abx__meter_observe(
			s->control->meters, ABX__METER_RUNNING, values,
			seconds(abx__control_wall(s->control) - s->rec.started_ms));
}

void abx__meter_pod_written(const abx__podrec *pod, enum abx__podrec_write write, int r)
{
	abx__meters *meters = pod->control->meters;
	bool conflict = r == ABX_ECONFLICT || r == ABX_ENOTFOUND;
	const char *outcome = r == ABX_OK ? "success" : conflict ? "retriable" : "hard";
	const char *values[7];

	if (!pod->pool || (write != ABX__WRITE_CLAIM && write != ABX__WRITE_RELEASE))
		return;
	if (write == ABX__WRITE_CLAIM)
		abx__meter_add(meters, ABX__METER_CAS, &outcome, 1);
	pool_values(pod->pool, pod->sandbox, values);
	values[5] = write == ABX__WRITE_CLAIM ? "claim" : "release";
	values[6] = r == ABX_OK ? "success" : conflict ? "conflict" : "error";
	abx__meter_add(meters, ABX__METER_UPDATE, values, 1);
}

void abx__meter_pod_recycled(abx__podrec *pod)
{
	const char *values[5];

	if (!pod->released_ms || !pod->pool)
		return;
	pool_values(pod->pool, NULL, values);
	abx__meter_observe(pod->control->meters, ABX__METER_RECYCLE, values,
			   seconds(abx__control_mono(pod->control) - pod->released_ms));
	pod->released_ms = 0;
}

void abx__meter_count(abx__control *control, enum abx__control_meter meter)
{
	abx__meter_add(control->meters, meter, NULL, 1);
}

void abx__meter_pool_gone(const abx__pool *pool)
{
	const char *which[] = { "namespace", pool->namespace_, "pool", pool->config.name,
				NULL };

	if (pool->config.name)
		abx__meter_drop(pool->control->meters, which);
}

/* --- gauges, as they are now --- */

enum gauge {
	DESIRED,
	IDLE,
	RUNNING,
	STARTING,
	STOPPING,
	FAILED,
	PENDING,
	INFO,
	READY_QUEUE,
	RESERVATIONS,
	RECORDS,
	DROPPED,
	GAUGE_COUNT
};

#define REPLICAS(which, text)                                                 \
	{                                                                     \
		.name = "agentbox_sandboxpool_replicas_" which, .help = text, \
		.kind = ABX__METER_GAUGE, .labels = { POOL_LABELS },          \
	}

static const abx__meter_family gauges[] = {
	[DESIRED] = REPLICAS("desired", "Pods a pool is to have."),
	[IDLE] = REPLICAS("idle", "Unclaimed Pods."),
	[RUNNING] = REPLICAS("running", "Pods with a sandbox."),
	[STARTING] = REPLICAS("starting", "Pods on their way to a sandbox."),
	[STOPPING] = REPLICAS("stopping", "Pods on their way back, or out."),
	[FAILED] = REPLICAS("failed", "Pods that do not run."),
	[PENDING] = { .name = "agentbox_sandboxpool_pending_requests",
		      .help = "Claims that wait.",
		      .kind = ABX__METER_GAUGE,
		      .labels = { POOL_LABELS } },
	[INFO] = { .name = "agentbox_sandbox_running_info",
		   .help = "A sandbox that runs.",
		   .kind = ABX__METER_GAUGE,
		   .labels = { POOL_LABELS, "pod", "sandbox_id" } },
	[READY_QUEUE] = { .name = "agentbox_schedule_ready_queue_size",
			  .help = "Idle Pods that can take a claim.",
			  .kind = ABX__METER_GAUGE },
	[RESERVATIONS] = { .name = "agentbox_schedule_reservations_size",
			   .help = "Claims that have a Pod and are not answered yet.",
			   .kind = ABX__METER_GAUGE },
	[RECORDS] = { .name = "agentbox_sandbox_records",
		      .help = "Records of sandboxes that ended.",
		      .kind = ABX__METER_GAUGE },
	[DROPPED] = { .name = "agentbox_meter_dropped",
		      .help = "Observations there was no room for.",
		      .kind = ABX__METER_GAUGE },
};

static void set_pool(abx__meters *m, const abx__pool *pool)
{
	static const struct {
		enum gauge gauge;
		enum abx__podrec_state state;
	} states[] = {
		{ IDLE, ABX__PODREC_IDLE },         { RUNNING, ABX__PODREC_RUNNING },
		{ STARTING, ABX__PODREC_STARTING }, { STOPPING, ABX__PODREC_STOPPING },
		{ FAILED, ABX__PODREC_FAILED },
	};
	const char *values[5];

	pool_values(pool, NULL, values);
	abx__meter_set(m, DESIRED, values, pool->config.replicas);
	abx__meter_set(m, PENDING, values, pool->waiting);
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		abx__meter_set(m, states[i].gauge, values, pool->counts[states[i].state]);
}

static void set_sandbox(abx__meters *m, const abx__sandbox *s)
{
	const char *values[] = { s->namespace_, s->pool_name, s->team, s->user,
				 s->env,        s->pod_name,  s->id };

	if (s->rec.state == ABX__SANDBOX_RUNNING)
		abx__meter_set(m, INFO, values, 1);
}

int abx__control_meters_print(abx__control *control, abx__buf *buf)
{
	abx__meters *m = abx__meters_new(gauges, GAUGE_COUNT);
	double ready = 0, reserved = 0;
	int r;

	if (!m)
		return ABX_ENOMEM;
	for (const abx__pool *pool = control->pools; pool; pool = pool->hh.next) {
		set_pool(m, pool);
		ready += pool->ready_idle;
	}
	for (size_t i = 0; i < control->sandboxes.count; i++)
		set_sandbox(m, control->sandboxes.order[i]);
	for (const abx__claim *c = control->claims; c; c = c->all_next)
		reserved += c->state != ABX__CLAIM_QUEUED;
	abx__meter_set(m, READY_QUEUE, NULL, ready);
	abx__meter_set(m, RESERVATIONS, NULL, reserved);
	abx__meter_set(m, RECORDS, NULL, (double)abx__history_count(control));
	abx__meter_set(
		m, DROPPED, NULL,
		(double)(abx__meters_dropped(control->meters) + abx__meters_dropped(m)));
	r = abx__meters_print(m, buf);
	abx__meters_free(m);
	return r < 0 ? r : abx__meters_print(control->meters, buf);
}
