/*
 * deadline.c - one timer for all limits.
 */
#include "envd/deadline.h"

#include <utlist.h>

static void advance(abx__deadlines *deadlines)
{
	uint64_t now = uv_now(deadlines->timer.loop);
	uint64_t elapsed = now - deadlines->seen_ms;

	if (elapsed <= deadlines->wait_ms + ABX__DEADLINE_PAUSE_MS)
		deadlines->clock_ms += elapsed;
	deadlines->seen_ms = now;
}

static void on_tick(uv_timer_t *timer);

static void wait_for_next(abx__deadlines *deadlines)
{
	uint64_t wait = ABX__DEADLINE_TICK_MS;
	const abx__deadline *deadline;

	DL_FOREACH(deadlines->armed, deadline)
	{
		if (deadline->at_ms < deadlines->clock_ms + wait)
			wait = deadline->at_ms > deadlines->clock_ms
				       ? deadline->at_ms - deadlines->clock_ms
				       : 0;
	}
	deadlines->wait_ms = wait;
	uv_timer_start(&deadlines->timer, on_tick, wait, 0);
}

static abx__deadline *find_passed(const abx__deadlines *deadlines)
{
	abx__deadline *deadline;

	DL_FOREACH(deadlines->armed, deadline)
	{
		if (deadline->at_ms <= deadlines->clock_ms)
			return deadline;
	}
	return NULL;
}

static void on_tick(uv_timer_t *timer)
{
	abx__deadlines *deadlines = timer->data;
	abx__deadline *deadline;

	advance(deadlines);
	while ((deadline = find_passed(deadlines))) {
		abx__deadline_disarm(deadlines, deadline);
		deadline->passed(deadline);
	}
	if (deadlines->armed)
		wait_for_next(deadlines);
}

void abx__deadlines_init(abx__deadlines *deadlines, uv_loop_t *loop)
{
	*deadlines = (abx__deadlines){ 0 };
	uv_timer_init(loop, &deadlines->timer);
	deadlines->timer.data = deadlines;
}

void abx__deadlines_close(abx__deadlines *deadlines)
{
	uv_close((uv_handle_t *)&deadlines->timer, NULL);
}

void abx__deadline_arm(abx__deadlines *deadlines, abx__deadline *deadline,
		       uint64_t timeout_ms, void (*passed)(abx__deadline *deadline))
{
	bool is_first;

	abx__deadline_disarm(deadlines, deadline);
	is_first = !deadlines->armed;
	if (is_first)
		deadlines->seen_ms = uv_now(deadlines->timer.loop);
	else
		advance(deadlines);
	deadline->at_ms = deadlines->clock_ms + timeout_ms;
	deadline->passed = passed;
	deadline->is_armed = true;
	DL_APPEND(deadlines->armed, deadline);
	/* The timer that runs is early enough for the others; this one may be nearer. */
	if (is_first || timeout_ms < uv_timer_get_due_in(&deadlines->timer)) {
		deadlines->wait_ms = timeout_ms < ABX__DEADLINE_TICK_MS
					     ? timeout_ms
					     : ABX__DEADLINE_TICK_MS;
		uv_timer_start(&deadlines->timer, on_tick, deadlines->wait_ms, 0);
	}
}

void abx__deadline_disarm(abx__deadlines *deadlines, abx__deadline *deadline)
{
	if (!deadline->is_armed)
		return;
	deadline->is_armed = false;
	DL_DELETE(deadlines->armed, deadline);
	if (!deadlines->armed)
		uv_timer_stop(&deadlines->timer);
}
