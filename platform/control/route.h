/*
 * route.h - which pool of an env serves a claim (crds.md, section 7.2). Pure.
 */
#ifndef ABX_CONTROL_ROUTE_H
#define ABX_CONTROL_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ABX__NO_CAP (-1)

typedef struct abx__route_pool {
	const char *name;
	int priority; /* lower is preferred */
	int ready_idle;
	int waiting;    /* claims in its queue */
	int desired;    /* replicas wanted */
	int cap;        /* most replicas it may have; ABX__NO_CAP: none */
	bool saturated; /* saturatedUntil is ahead */
} abx__route_pool;

/* cap of a member: the smaller of its own maximum and what its group leaves it. */
int abx__route_cap(int member_max, int group_max, int desired_of_others);
int64_t abx__route_score(const abx__route_pool *pool);
/* Index of the pool that is taken; count must not be 0. */
size_t abx__route_pick(const abx__route_pool *pools, size_t count);

#endif
