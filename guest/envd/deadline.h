/*
 * deadline.h - time limits of commands, on a clock that stands still while the sandbox is
 * paused: the kernel's clock goes on while a frozen process does not.
 *
 * While there is a limit the clock ticks once a second. A tick that comes more than
 * ABX__DEADLINE_PAUSE_MS late is taken for a pause, and what passed since the last one
 * does not count; so a pause gives a command a second more at most. Without limits there
 * is no timer.
 */
#ifndef ABX_ENVD_DEADLINE_H
#define ABX_ENVD_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#define ABX__DEADLINE_TICK_MS 1000
#define ABX__DEADLINE_PAUSE_MS 2000

typedef struct abx__deadline {
	struct abx__deadline *prev, *next;
	bool is_armed;
	uint64_t at_ms;
	void (*passed)(struct abx__deadline *deadline);
} abx__deadline;

typedef struct abx__deadlines {
	uv_timer_t timer;
	uint64_t clock_ms;
	uint64_t seen_ms; /* the loop's time when the clock was set, */
	uint64_t wait_ms; /* and what the timer was to wait from there */
	abx__deadline *armed;
} abx__deadlines;

void abx__deadlines_init(abx__deadlines *deadlines, uv_loop_t *loop);
void abx__deadlines_close(abx__deadlines *deadlines);

/* `passed` runs once, from the loop, unless disarmed before; it may arm again. */
void abx__deadline_arm(abx__deadlines *deadlines, abx__deadline *deadline,
		       uint64_t timeout_ms, void (*passed)(abx__deadline *deadline));
void abx__deadline_disarm(abx__deadlines *deadlines, abx__deadline *deadline);

#endif
