/*
 * metrics.c - see metrics.h. A sandbox's first answer is only what the next one is
 * compared with: how much CPU its Pod used before is not the sandbox's.
 */
#include "control/metrics.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/internal.h"

#define FIRST_SIZE 8
#define FIRST_LOOK_MS 1000
#define SHORTEST_MS 5

typedef struct sample {
	uint32_t unix_s;
	float cpu_pct;
	uint64_t memory_used, memory_cache, disk_used;
} sample;

struct abx__metrics {
	sample *ring; /* wraps once it has its full size */
	size_t size, count, first;
	bool asked; /* an answer is under way */
	bool based; /* the last_ ones are known */
	uint64_t last_cpu_ns;
	int64_t last_mono_ms;
	uint64_t memory_total, disk_total;
};

void abx__metrics_free(abx__metrics *metrics)
{
	if (metrics)
		abx__free(metrics->ring);
	abx__free(metrics);
}

bool abx__metrics_at(const abx__sandbox_rec *sandbox, size_t index, abx__metric *ret)
{
	const abx__metrics *m = sandbox->metrics;
	const sample *s;

	if (!m || index >= m->count)
		return false;
	s = &m->ring[(m->first + index) % m->size];
	*ret = (abx__metric){
		.unix_s = s->unix_s,
		.cpu_pct = s->cpu_pct,
		.memory_used = s->memory_used,
		.memory_cache = s->memory_cache,
		.memory_total = m->memory_total,
		.disk_used = s->disk_used,
		.disk_total = m->disk_total,
	};
	return true;
}

/* A place for one more: the ring grows to its full size, then the oldest gives way. */
static sample *place(abx__metrics *m)
{
	if (m->count == m->size && m->size < ABX__METRICS_MOST) {
		size_t size = m->size ? 2 * m->size : FIRST_SIZE;
		sample *ring;

		if (size > ABX__METRICS_MOST)
			size = ABX__METRICS_MOST;
		ring = abx__reallocarray(m->ring, size, sizeof(*ring));
		if (!ring)
			return NULL;
		m->ring = ring;
		m->size = size;
	}
	if (m->count < m->size)
		return &m->ring[m->count++];
	m->first = (m->first + 1) % m->size;
	return &m->ring[(m->first + m->count - 1) % m->size];
}

static double percent(const abx__sandbox *s, uint64_t cpu_ns, int64_t ms)
{
	double cores = s->rec.cpu_milli > 0 ? (double)s->rec.cpu_milli / 1000.0 : 1.0;

	return (double)cpu_ns / 1e6 / (double)ms / cores * 100.0;
}

static void take(abx__sandbox *s, const abx__pod_stats *stats)
{
	abx__metrics *m = s->metrics;
	int64_t now = abx__control_mono(s->control);
	sample *to = NULL;

	if (m->based && now > m->last_mono_ms && stats->cpu_ns >= m->last_cpu_ns)
		to = place(m);
	if (to)
		*to = (sample){
			.unix_s = (uint32_t)(abx__control_wall(s->control) / 1000),
			.cpu_pct = (float)percent(s, stats->cpu_ns - m->last_cpu_ns,
						  now - m->last_mono_ms),
			.memory_used = stats->memory_bytes,
			.memory_cache = stats->memory_cache,
			.disk_used = stats->disk_used,
		};
	m->based = true;
	m->last_cpu_ns = stats->cpu_ns;
	m->last_mono_ms = now;
	m->memory_total = stats->memory_total;
	m->disk_total = stats->disk_total;
}

/* ---- asking ---- */

/* Control's, so that it goes with it when the answer never comes. */
struct abx__metrics_asking {
	abx__control *control;
	abx__metrics_asking *prev, *next;
	char id[ABX__SANDBOX_ID_LEN + 1];
};

void abx__metrics_drop(abx__control *control)
{
	while (control->metrics_asking) {
		abx__metrics_asking *a = control->metrics_asking;

		DL_DELETE(control->metrics_asking, a);
		abx__free(a);
	}
}

static void on_stats(void *userdata, int r, const abx__pod_stats *stats,
		     const abx_error *err)
{
	abx__metrics_asking *a = userdata;
	abx__control *control = a->control;
	abx__sandbox *s = abx__sandboxes_get(&control->sandboxes, a->id);

	(void)err;
	if (s && s->metrics) {
		s->metrics->asked = false;
		if (r == ABX_OK && s->rec.state == ABX__SANDBOX_RUNNING)
			take(s, stats);
	}
	DL_DELETE(control->metrics_asking, a);
	abx__free(a);
	abx__control_call_end(control);
}

static void ask(abx__sandbox *s)
{
	abx__engine *engine = s->control->config.engine;
	abx__metrics_asking *a = abx__calloc(1, sizeof(*a));

	if (!s->metrics)
		s->rec.metrics = s->metrics = abx__calloc(1, sizeof(*s->metrics));
	if (!a || !s->metrics) {
		abx__free(a);
		return; /* the next turn tries again */
	}
	a->control = s->control;
	abx__str_copy(a->id, sizeof(a->id), s->id);
	DL_APPEND(s->control->metrics_asking, a);
	s->metrics->asked = true;
	abx__control_call_begin(s->control);
	engine->ops->stat_pod(engine, s->pod->namespace_, s->pod->name, on_stats, a);
}

static abx__sandbox *next_in_turn(abx__control *control)
{
	abx__sandboxes *table = &control->sandboxes;

	for (size_t i = 0; i < table->count; i++) {
		abx__sandbox *s = table->order[control->metrics_turn++ % table->count];

		if (s->rec.state == ABX__SANDBOX_RUNNING && s->pod &&
		    !(s->metrics && s->metrics->asked))
			return s;
	}
	return NULL;
}

void abx__metrics_fired(abx__timer *timer)
{
	abx__control *control = timer->owner;
	size_t count = control->sandboxes.count;
	abx__sandbox *s;
	int64_t wait;

	if (count == 0 || control->state != ABX__CONTROL_RUNNING)
		return;
	s = next_in_turn(control);
	if (s)
		ask(s);
	wait = ABX__METRICS_EVERY_MS / (int64_t)count;
	abx__control_set_timer(control, timer,
			       abx__control_mono(control) +
				       (wait < SHORTEST_MS ? SHORTEST_MS : wait));
}

void abx__metrics_wake(abx__control *control)
{
	if (!control->metrics_timer.place)
		abx__control_set_timer(control, &control->metrics_timer,
				       abx__control_mono(control) + FIRST_LOOK_MS);
}
