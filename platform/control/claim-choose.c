/*
 * claim-choose.c - which pool a claim goes to.
 */
#include <strings.h>

#include "base/error.h"
#include "base/str.h"
#include "control/claim.h"
#include "control/route.h"

#define ROUTE_POOLS_MAX 256

static int desired_of_others(const abx__env *env, const abx__pool *pool)
{
	int sum = 0;

	for (const abx__pool *other = env->pools; other; other = other->next)
		if (other != pool && other->config.group && pool->config.group &&
		    strcasecmp(other->config.group, pool->config.group) == 0)
			sum += other->config.replicas;
	return sum;
}

static abx__route_pool route_view(const abx__env *env, const abx__pool *pool)
{
	const abx__scale_policy *policy = &pool->config.policy;

	return (abx__route_pool){
		.name = pool->config.name,
		.priority = pool->config.priority,
		.ready_idle = pool->ready_idle,
		.waiting = pool->waiting,
		.desired = pool->config.replicas,
		.cap = abx__route_cap(pool->config.max,
				      policy->enabled ? policy->max : ABX__NO_CAP,
				      desired_of_others(env, pool)),
		.saturated = abx__pool_saturated_until_ms(pool) != 0,
	};
}

static bool is_in_group(const abx__pool *pool, const char *group)
{
	return !group ||
	       (pool->config.group && strcasecmp(pool->config.group, group) == 0);
}

static int choose_in_env(const abx__env *env, const char *group, abx__pool **ret,
			 abx_error **reterr)
{
	abx__route_pool views[ROUTE_POOLS_MAX];
	abx__pool *pools[ROUTE_POOLS_MAX];
	size_t count = 0;

	for (abx__pool *pool = env->pools; pool && count < ROUTE_POOLS_MAX;
	     pool = pool->next) {
		if (!is_in_group(pool, group))
			continue;
		pools[count] = pool;
		views[count++] = route_view(env, pool);
	}
	if (count == 0 && group)
		return abx__error_set(reterr, ABX_EUNAVAILABLE,
				      "env %s has no pool in scaling group %s",
				      env->object.name, group);
	if (count == 0) {
		abx__error_set(reterr, ABX_EUNAVAILABLE,
			       "env %s has no pool on this cluster", env->object.name);
		abx__error_hint(reterr, "add one: abx create envs %s pools -f pool.json",
				env->object.name);
		return ABX_EUNAVAILABLE;
	}
	*ret = pools[count == 1 ? 0 : abx__route_pick(views, count)];
	return ABX_OK;
}

static int check_owner(const abx__pool *pool, const abx__claim_request *request,
		       abx_error **reterr)
{
	const char *team = pool->config.team;

	if (request->admin || !team || !*team || abx__str_eq(team, request->team))
		return ABX_OK;
	return abx__error_set(reterr, ABX_EDENIED, "env %s belongs to another team",
			      pool->env_name);
}

int abx__claim_choose(const abx__control *control, const abx__claim_request *request,
		      abx__pool **ret, abx_error **reterr)
{
	const abx__env *env = abx__env_find(control, request->namespace_, request->name);
	abx__pool *pool = NULL;
	int r;

	if (env) {
		r = choose_in_env(env, request->scaling_group, &pool, reterr);
		if (r < 0)
			return r;
	} else if (request->or_pool) {
		pool = abx__pool_find(control, request->namespace_, request->name);
		if (pool && pool->deleting)
			pool = NULL;
	}
	if (!pool)
		return abx__error_set(reterr, ABX_ENOTFOUND,
				      "env %s does not exist in namespace %s",
				      request->name, request->namespace_);
	if (!env && !is_in_group(pool, request->scaling_group))
		return abx__error_set(reterr, ABX_EUNAVAILABLE,
				      "pool %s is not in scaling group %s", request->name,
				      request->scaling_group);
	*ret = pool;
	return check_owner(pool, request, reterr);
}
