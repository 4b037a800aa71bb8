/*
 * src/abx/resources.c - the table of resources. Headings are column ids; where the answer
 * keeps a value elsewhere, the path says where. Reading, writing and help all go by it.
 */
#include <stdio.h>
#include <string.h>

#include "resources.h"

static const struct cli_column cluster_columns[] = { { "id" }, { "name" }, { 0 } };

static const struct cli_column env_columns[] = {
	{ "name" },
	{ "templateName" },
	{ "mode" },
	{ "memberCount" },
	{ "desiredReplicas" },
	{ "idleReplicas" },
	{ "ready" },
	{ "poolSizing", NULL, true },
	{ "team", NULL, true },
	{ 0 },
};
static const struct cli_column env_details[] = {
	{ "name" },
	{ "namespace" },
	{ "template", "spec.templateRef.name" },
	{ "templateVersion", "spec.templateRef.version" },
	{ "mode", "spec.mode" },
	{ "team" },
	{ "user" },
	{ "createdAt" },
	{ "poolSizing" },
	{ "memberCount", "status.memberCount" },
	{ "desiredReplicas", "status.desiredReplicas" },
	{ "runningReplicas", "status.runningReplicas" },
	{ "idleReplicas", "status.idleReplicas" },
	{ "overrides", "spec.overrides" },
	{ 0 },
};

static const struct cli_column pool_columns[] = {
	{ "name" },
	{ "owningEnv" },
	{ "replicas", "spec.replicas" },
	{ "idleReplicas", "status.idleReplicas" },
	{ "runningReplicas", "status.runningReplicas" },
	{ "scalingGroup" },
	{ "phase", "status.phase", true },
	{ 0 },
};
static const struct cli_column pool_details[] = {
	{ "name" },
	{ "owningEnv" },
	{ "namespace" },
	{ "phase", "status.phase" },
	{ "replicas", "spec.replicas" },
	{ "idleReplicas", "status.idleReplicas" },
	{ "unavailableIdleReplicas", "status.unavailableIdleReplicas" },
	{ "runningReplicas", "status.runningReplicas" },
	{ "startingReplicas", "status.startingReplicas" },
	{ "stoppingReplicas", "status.stoppingReplicas" },
	{ "failedReplicas", "status.failedReplicas" },
	{ "pendingRequests", "status.pendingRequests" },
	{ "cpu" },
	{ "memory" },
	{ "scalingGroup" },
	{ "templateVersion" },
	{ "updateRevision", "status.updateRevision" },
	{ "updatedReplicas", "status.updatedReplicas" },
	{ "createdAt" },
	{ 0 },
};

static const struct cli_column sandbox_columns[] = {
	{ "sandboxId" },
	{ "status" },
	{ "envName" },
	{ "poolName" },
	{ "metadata", NULL, true },
	{ "team", NULL, true },
	{ "user", NULL, true },
	{ 0 },
};
static const struct cli_column sandbox_details[] = {
	{ "sandboxId" },
	{ "status" },
	{ "envName" },
	{ "poolName" },
	{ "namespace" },
	{ "podName" },
	{ "team" },
	{ "user" },
	{ "nodeName" },
	{ "cpu" },
	{ "memory" },
	{ "claimedAt" },
	{ "startedAt" },
	{ "terminatedAt" },
	{ "durationSeconds" },
	{ "idleTimeoutSeconds" },
	{ "failureReason" },
	{ "exitCode" },
	{ "failureMessage" },
	{ "metadata" },
	{ "containerImages" },
	{ 0 },
};

static const struct cli_column template_columns[] = {
	{ "name" }, { "version" }, { "description" }, { 0 }
};
static const struct cli_column template_details[] = {
	{ "name" },       { "version" },   { "description" },
	{ "syncSource" }, { "createdAt" }, { 0 },
};

const struct cli_resource cli_resources[] = {
	{ "clusters", "cluster", NULL, "/clusters", "", false, cluster_columns, NULL,
	  "clusters this address reaches" },
	{ "envs", "env", NULL, "/envs", NULL, true, env_columns, env_details,
	  "what sandboxes are created from: a template, made yours" },
	{ "pools", "pool", "envs", "/sandboxpools", NULL, true, pool_columns,
	  pool_details, "Pods of one shape kept warm for an env" },
	{ "sandboxes", "sandbox", NULL, "/sandboxes", "", true, sandbox_columns,
	  sandbox_details, "Pods that were claimed" },
	{ "templates", "template", NULL, "/sandbox-templates", "/admin/sandbox-templates",
	  true, template_columns, template_details,
	  "Pod shape, idle image and runtimes that envs are made from" },
	{ 0 },
};

static bool under(const struct cli_resource *resource, const char *parent)
{
	if (resource->parent == NULL || parent == NULL)
		return resource->parent == parent;
	return strcmp(resource->parent, parent) == 0;
}

const struct cli_resource *cli_resource_find(const char *plural, const char *parent)
{
	for (const struct cli_resource *r = cli_resources; r->plural != NULL; r++)
		if (strcmp(r->plural, plural) == 0 && under(r, parent))
			return r;
	return NULL;
}

void cli_resource_names(const char *parent, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (const struct cli_resource *r = cli_resources; r->plural != NULL; r++) {
		if (!under(r, parent))
			continue;
		int n = snprintf(buf + used, size - used, "%s%s", used > 0 ? " " : "",
				 r->plural);
		if (n < 0 || (size_t)n >= size - used)
			return;
		used += (size_t)n;
	}
}
