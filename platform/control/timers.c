/*
 * timers.c - a binary heap of deadlines, each knowing its place.
 */
#include "control/timers.h"

#include <agentbox/error.h>

#include "base/alloc.h"

void abx__timers_done(abx__timers *timers)
{
	abx__free(timers->heap);
	*timers = (abx__timers){ 0 };
}

int abx__timers_reserve(abx__timers *timers, abx__timer *timer,
			void (*fire)(abx__timer *timer), void *owner)
{
	if (timers->reserved == timers->size) {
		size_t size = timers->size ? 2 * timers->size : 64;
		abx__timer **heap = abx__reallocarray(timers->heap, size, sizeof(*heap));

		if (!heap)
			return ABX_ENOMEM;
		timers->heap = heap;
		timers->size = size;
	}
	timers->reserved++;
	*timer = (abx__timer){ .fire = fire, .owner = owner };
	return ABX_OK;
}

void abx__timers_release(abx__timers *timers, abx__timer *timer)
{
	if (!timer->fire)
		return;
	abx__timers_clear(timers, timer);
	timer->fire = NULL;
	timers->reserved--;
}

static void put(abx__timers *timers, size_t i, abx__timer *timer)
{
	timers->heap[i] = timer;
	timer->place = i + 1;
}

static void up(abx__timers *timers, size_t i, abx__timer *timer)
{
	while (i > 0 && timers->heap[(i - 1) / 2]->at > timer->at) {
		put(timers, i, timers->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	put(timers, i, timer);
}

static void down(abx__timers *timers, size_t i, abx__timer *timer)
{
	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= timers->count)
			break;
		if (child + 1 < timers->count &&
		    timers->heap[child + 1]->at < timers->heap[child]->at)
			child++;
		if (timers->heap[child]->at >= timer->at)
			break;
		put(timers, i, timers->heap[child]);
		i = child;
	}
	put(timers, i, timer);
}

void abx__timers_clear(abx__timers *timers, abx__timer *timer)
{
	size_t i = timer->place - 1;
	abx__timer *last;

	if (!timer->place)
		return;
	timer->place = 0;
	last = timers->heap[--timers->count];
	if (last == timer)
		return;
	up(timers, i, last);
	down(timers, last->place - 1, last);
}

void abx__timers_set(abx__timers *timers, abx__timer *timer, int64_t at)
{
	abx__timers_clear(timers, timer);
	timer->at = at;
	up(timers, timers->count++, timer);
}

void abx__timers_set_sooner(abx__timers *timers, abx__timer *timer, int64_t at)
{
	if (!timer->place || timer->at > at)
		abx__timers_set(timers, timer, at);
}

int64_t abx__timers_next(const abx__timers *timers)
{
	return timers->count ? timers->heap[0]->at : INT64_MAX;
}

abx__timer *abx__timers_pop(abx__timers *timers, int64_t now)
{
	abx__timer *timer;

	if (!timers->count || timers->heap[0]->at > now)
		return NULL;
	timer = timers->heap[0];
	abx__timers_clear(timers, timer);
	return timer;
}
