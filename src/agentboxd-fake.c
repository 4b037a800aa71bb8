/*
 * agentboxd-fake.c - the fake engine on a real loop and clock, and a runtime that takes
 * every arming. One of it per process; for developers of clients and for tests, never for
 * work.
 */
#include "agentboxd.h"

#include "base/alloc.h"
#include "base/error.h"
#include "engine/fake.h"

typedef struct armed {
	void (*done)(void *userdata, int r, const abx_error *err);
	void *userdata;
	struct armed *next;
} armed;

static struct {
	abx__engine *engine;
	abx__runtime runtime;
	armed *first, **last;
	uv_prepare_t prepare;
	uv_timer_t timer;
} fake;

static void fake_arm(abx__runtime *runtime, const char *namespace_, const char *pod,
		     uint16_t port, const char *body, size_t body_len,
		     uint64_t deadline_ms,
		     void (*done)(void *userdata, int r, const abx_error *err),
		     void *userdata)
{
	armed *a = abx__calloc(1, sizeof(*a));

	(void)runtime;
	(void)namespace_;
	(void)pod;
	(void)port;
	(void)body;
	(void)body_len;
	(void)deadline_ms;
	if (!a) {
		done(userdata, ABX_ENOMEM, NULL);
		return;
	}
	a->done = done;
	a->userdata = userdata;
	*fake.last = a;
	fake.last = &a->next;
}

static void fake_forget(abx__runtime *runtime, const char *namespace_, const char *pod)
{
	(void)runtime;
	(void)namespace_;
	(void)pod;
}

static const abx__runtime_ops fake_ops = { .arm = fake_arm, .forget = fake_forget };

static void on_timer(uv_timer_t *timer)
{
	(void)timer;
}

static void complete_armed(void)
{
	while (fake.first) {
		armed *a = fake.first;

		fake.first = a->next;
		if (!fake.first)
			fake.last = &fake.first;
		a->done(a->userdata, ABX_OK, NULL);
		abx__free(a);
	}
}

/* Before the loop waits: all that is due happens, and the timer wakes it for the next. */
static void on_prepare(uv_prepare_t *prepare)
{
	int64_t next, now;

	(void)prepare;
	do {
		complete_armed();
	} while (abx__fake_engine_step(fake.engine));
	next = abx__fake_engine_next_ms(fake.engine);
	now = abx__mono_ms();
	if (fake.first)
		next = now;
	if (next != INT64_MAX)
		uv_timer_start(&fake.timer, on_timer,
			       next > now ? (uint64_t)(next - now) : 0, 0);
}

int agentboxd_fake_new(uv_loop_t *loop, abx__engine **ret_engine,
		       abx__runtime **ret_runtime, abx_error **reterr)
{
	const abx__fake_engine_options options = { .clock = &abx__clock_system,
						   .write_ms = 1,
						   .start_ms = 20,
						   .swap_ms = 20,
						   .delete_ms = 5 };
	int r = abx__fake_engine_new(&options, &fake.engine, reterr);

	if (r < 0)
		return r;
	fake.last = &fake.first;
	fake.runtime.ops = &fake_ops;
	uv_prepare_init(loop, &fake.prepare);
	uv_prepare_start(&fake.prepare, on_prepare);
	uv_timer_init(loop, &fake.timer);
	*ret_engine = fake.engine;
	*ret_runtime = &fake.runtime;
	return ABX_OK;
}

void agentboxd_fake_stop(void)
{
	if (!fake.engine)
		return;
	uv_close((uv_handle_t *)&fake.prepare, NULL);
	uv_close((uv_handle_t *)&fake.timer, NULL);
}
