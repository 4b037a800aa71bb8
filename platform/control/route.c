/*
 * route.c - filter, score, pick. Weights are the contract's.
 */
#include "control/route.h"

#include <string.h>

#define WEIGHT_PRIORITY 1000
#define WEIGHT_READY_IDLE 10
#define WEIGHT_HEADROOM 5
#define WEIGHT_WAITING (-2)
#define SATURATED (-1000000)

int abx__route_cap(int member_max, int group_max, int desired_of_others)
{
	int cap = member_max;

	if (group_max != ABX__NO_CAP) {
		int left =
			group_max > desired_of_others ? group_max - desired_of_others : 0;

		if (cap == ABX__NO_CAP || left < cap)
			cap = left;
	}
	return cap;
}

int64_t abx__route_score(const abx__route_pool *pool)
{
	int64_t headroom = 0;

	if (pool->cap != ABX__NO_CAP && pool->cap > pool->desired)
		headroom = pool->cap - pool->desired;
	return (int64_t)-pool->priority * WEIGHT_PRIORITY +
	       (int64_t)pool->ready_idle * WEIGHT_READY_IDLE +
	       headroom * WEIGHT_HEADROOM + (int64_t)pool->waiting * WEIGHT_WAITING +
	       (pool->saturated ? SATURATED : 0);
}

static bool is_usable(const abx__route_pool *pool)
{
	return pool->cap == ABX__NO_CAP || pool->desired < pool->cap ||
	       pool->ready_idle > 0;
}

static bool is_better(const abx__route_pool *a, const abx__route_pool *b)
{
	int64_t x = abx__route_score(a), y = abx__route_score(b);

	return x != y ? x > y : strcmp(a->name, b->name) < 0;
}

size_t abx__route_pick(const abx__route_pool *pools, size_t count)
{
	size_t best = count;

	for (size_t i = 0; i < count; i++)
		if (is_usable(&pools[i]) &&
		    (best == count || is_better(&pools[i], &pools[best])))
			best = i;
	if (best != count)
		return best;
	best = 0;
	for (size_t i = 1; i < count; i++)
		if (is_better(&pools[i], &pools[best]))
			best = i;
	return best;
}
