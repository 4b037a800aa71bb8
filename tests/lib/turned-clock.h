/*
 * turned-clock.h - a clock whose hands the test turns.
 */
#ifndef TESTS_LIB_TURNED_CLOCK_H
#define TESTS_LIB_TURNED_CLOCK_H

#include "base/clock.h"

typedef struct turned_clock {
	abx__clock clock;
	int64_t now_ms;  /* monotonic; wall time is TURNED_CLOCK_WALL_OFFSET later */
	int64_t jump_ms; /* and so much more: somebody set the clock */
} turned_clock;

#define TURNED_CLOCK_WALL_OFFSET INT64_C(1000000000000)

static inline int64_t turned_clock_mono(void *userdata)
{
	return ((turned_clock *)userdata)->now_ms;
}

static inline int64_t turned_clock_wall(void *userdata)
{
	const turned_clock *c = (const turned_clock *)userdata;

	return c->now_ms + TURNED_CLOCK_WALL_OFFSET + c->jump_ms;
}

static inline void turned_clock_init(turned_clock *c)
{
	c->now_ms = 1000;
	c->jump_ms = 0;
	c->clock.mono_ms = turned_clock_mono;
	c->clock.wall_ms = turned_clock_wall;
	c->clock.userdata = c;
}

#endif
