/*
 * timers.h - the deadlines of the room in one heap. A place is reserved when an object is
 * made, so that setting a timer never fails.
 */
#ifndef ABX_CONTROL_TIMERS_H
#define ABX_CONTROL_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct abx__timer {
	int64_t at;
	size_t place; /* in the heap, plus one; 0: not set */
	void (*fire)(struct abx__timer *timer);
	void *owner;
} abx__timer;

typedef struct abx__timers {
	abx__timer **heap;
	size_t count, size, reserved;
} abx__timers;

void abx__timers_done(abx__timers *timers);
/* A place for one more timer; ABX_ENOMEM. */
int abx__timers_reserve(abx__timers *timers, abx__timer *timer,
			void (*fire)(abx__timer *timer), void *owner);
/* Clears it and gives the place back. A timer that was never reserved is fine. */
void abx__timers_release(abx__timers *timers, abx__timer *timer);
void abx__timers_set(abx__timers *timers, abx__timer *timer, int64_t at);
/* As set, unless it is set for an earlier moment already. */
void abx__timers_set_sooner(abx__timers *timers, abx__timer *timer, int64_t at);
void abx__timers_clear(abx__timers *timers, abx__timer *timer);
/* INT64_MAX: none. */
int64_t abx__timers_next(const abx__timers *timers);
/* Takes one that is due by `now` off the heap; NULL: none. */
abx__timer *abx__timers_pop(abx__timers *timers, int64_t now);

#endif
