/*
 * src/abx/resource-table.c - the rows of the registry (resources.h). Data only.
 */
#include <stddef.h>

#include "resources.h"

static const char *const env_modes[] = { "WarmPool", "OnDemandJob", NULL };
static const char *const booleans[] = { "true", "false", NULL };
static const char *const sizings[] = { "billed", "free-form", "either", NULL };
static const char *const scale_modes[] = { "Conservative", "Default", "Aggressive",
					   NULL };
static const char *const event_types[] = { "Normal", "Warning", NULL };
static const char *const pool_types[] = { "exclusive", "shared", "ondemand",
					  "idle",      "spot",   NULL };
static const char *const key_modes[] = { "unrestricted", "agent", NULL };
static const char *const grant_scopes[] = { "session", "key", NULL };

static const struct cli_column cluster_columns[] = {
	{ "id", "what --cluster takes" },
	{ "name", "for people" },
	{ 0 },
};

static const struct cli_column env_columns[] = {
	{ "name", "of the env; what a sandbox is created from", CLI_COL_FILTER },
	{ "templateName", "the template it is made of", CLI_COL_FILTER },
	{ "mode", "WarmPool keeps Pods; OnDemandJob is reserved", CLI_COL_FILTER, NULL,
	  env_modes },
	{ "memberCount", "its pools, in all clusters" },
	{ "desiredReplicas", "Pods its pools shall have" },
	{ "idleReplicas", "Pods that can be claimed now" },
	{ "ready", "whether a sandbox can be claimed", CLI_COL_FILTER, NULL, booleans },
	{ "poolSizing", "how its pools say their size", CLI_COL_WIDE | CLI_COL_FILTER,
	  NULL, sizings },
	{ "team", "whose it is", CLI_COL_WIDE | CLI_COL_FILTER },
	{ 0 },
};

static const struct cli_column env_details[] = {
	{ "name", "of the env" },
	{ "namespace", "where its objects live" },
	{ "template", "the template it is made of", 0, "spec.templateRef.name" },
	{ "templateVersion", "and its version", 0, "spec.templateRef.version" },
	{ "mode", "WarmPool or OnDemandJob", 0, "spec.mode" },
	{ "team", "whose it is" },
	{ "user", "whose it is" },
	{ "createdAt", "when it was made" },
	{ "poolSizing", "billed, free-form or either" },
	{ "memberCount", "its pools", 0, "status.memberCount" },
	{ "desiredReplicas", "Pods its pools shall have", 0, "status.desiredReplicas" },
	{ "runningReplicas", "Pods that are claimed", 0, "status.runningReplicas" },
	{ "idleReplicas", "Pods that can be claimed now", 0, "status.idleReplicas" },
	{ "overrides", "what it does differently from its template", 0,
	  "spec.overrides" },
	{ 0 },
};

static const struct cli_column pool_columns[] = {
	{ "name", "made of the env and the size", CLI_COL_FILTER },
	{ "owningEnv", "the env it belongs to", CLI_COL_FILTER },
	{ "replicas", "Pods it shall have", 0, "spec.replicas" },
	{ "idleReplicas", "Pods that can be claimed now", 0, "status.idleReplicas" },
	{ "runningReplicas", "Pods that are claimed", 0, "status.runningReplicas" },
	{ "scalingGroup", "the group whose autoscaler may size it", CLI_COL_FILTER },
	{ "phase", "Pending, Ready, ScalingUp, ScalingDown, Degraded or Terminating",
	  CLI_COL_WIDE | CLI_COL_FILTER, "status.phase" },
	{ 0 },
};

static const struct cli_column pool_details[] = {
	{ "name", "made of the env and the size" },
	{ "owningEnv", "the env it belongs to" },
	{ "namespace", "where it lives" },
	{ "phase", "how it is", 0, "status.phase" },
	{ "replicas", "Pods it shall have", 0, "spec.replicas" },
	{ "idleReplicas", "Pods that can be claimed now", 0, "status.idleReplicas" },
	{ "unavailableIdleReplicas", "idle ones that cannot be claimed yet", 0,
	  "status.unavailableIdleReplicas" },
	{ "runningReplicas", "Pods that are claimed", 0, "status.runningReplicas" },
	{ "startingReplicas", "Pods that start", 0, "status.startingReplicas" },
	{ "stoppingReplicas", "Pods that stop", 0, "status.stoppingReplicas" },
	{ "failedReplicas", "Pods that failed", 0, "status.failedReplicas" },
	{ "pendingRequests", "claims that wait for a Pod", 0, "status.pendingRequests" },
	{ "cpu", "of one Pod" },
	{ "memory", "of one Pod" },
	{ "scalingGroup", "its group" },
	{ "templateVersion", "the version its Pods are of" },
	{ "updateRevision", "the revision idle Pods are rolled to", 0,
	  "status.updateRevision" },
	{ "updatedReplicas", "Pods of that revision", 0, "status.updatedReplicas" },
	{ "createdAt", "when it was made" },
	{ "specYaml", "its Pod template", CLI_COL_TEXT },
	{ 0 },
};

static const struct cli_column group_columns[] = {
	{ "name", "the size its pools have", CLI_COL_FILTER },
	{ "enabled", "whether the autoscaler sizes it", CLI_COL_FILTER, NULL, booleans },
	{ "minReplicas", "fewest Pods" },
	{ "maxReplicas", "most Pods" },
	{ "mode", "how eagerly it grows", CLI_COL_FILTER, "scaleUpPolicy.mode",
	  scale_modes },
	{ "cooldownSeconds", "between two growths", CLI_COL_WIDE,
	  "scaleUpPolicy.cooldownSeconds" },
	{ "idleTimeoutSeconds", "idle time before it shrinks", CLI_COL_WIDE,
	  "scaleDownPolicy.idleTimeoutSeconds" },
	{ 0 },
};

static const struct cli_column group_details[] = {
	{ "name", "the size its pools have" },
	{ "enabled", "whether the autoscaler sizes it" },
	{ "minReplicas", "fewest Pods" },
	{ "maxReplicas", "most Pods" },
	{ "scaleUpMode", "how eagerly it grows", 0, "scaleUpPolicy.mode" },
	{ "cooldownSeconds", "between two growths", 0, "scaleUpPolicy.cooldownSeconds" },
	{ "idleThresholdSeconds", "0: off", 0, "scaleUpPolicy.idleThresholdSeconds" },
	{ "idleZeroQuietWindowSeconds", "0: off", 0,
	  "scaleUpPolicy.idleZeroQuietWindowSeconds" },
	{ "saturationCooldownSeconds", "after it was full", 0,
	  "scaleUpPolicy.saturationCooldownSeconds" },
	{ "idleTimeoutSeconds", "idle time before it shrinks", 0,
	  "scaleDownPolicy.idleTimeoutSeconds" },
	{ "stabilizationSeconds", "how long the need must be low", 0,
	  "scaleDownPolicy.stabilizationSeconds" },
	{ "protectionWindowSeconds", "after a growth, without shrinking", 0,
	  "scaleDownPolicy.protectionWindowSeconds" },
	{ 0 },
};

static const struct cli_column event_columns[] = {
	{ "type", "Normal or Warning", CLI_COL_FILTER, NULL, event_types },
	{ "reason", "one word for what happened", CLI_COL_FILTER },
	{ "object", "what it happened to", 0, "involvedName" },
	{ "message", "what happened" },
	{ "lastTimestamp", "when it happened last" },
	{ 0 },
};

static const struct cli_column sandbox_columns[] = {
	{ "sandboxId", "what exec, logs and the others take", CLI_COL_FILTER },
	{ "status",
	  "Pending, Starting, Running, Paused, Stopping, Failed, Completed, Canceled or "
	  "Released",
	  CLI_COL_FILTER },
	{ "envName", "the env it was created from", CLI_COL_FILTER },
	{ "poolName", "the pool its Pod is of", CLI_COL_FILTER },
	{ "metadata", "what was kept with it", CLI_COL_WIDE },
	{ "team", "whose it is", CLI_COL_WIDE | CLI_COL_FILTER },
	{ "user", "whose it is", CLI_COL_WIDE | CLI_COL_FILTER },
	{ 0 },
};

static const struct cli_column sandbox_details[] = {
	{ "sandboxId", "its name" },
	{ "status", "how it is" },
	{ "envName", "the env it was created from" },
	{ "poolName", "the pool its Pod is of" },
	{ "namespace", "where it lives" },
	{ "podName", "its Pod" },
	{ "team", "whose it is" },
	{ "user", "whose it is" },
	{ "nodeName", "the machine it runs on" },
	{ "cpu", "what it may use" },
	{ "memory", "what it may use" },
	{ "claimedAt", "when it was asked for" },
	{ "startedAt", "when it ran" },
	{ "terminatedAt", "when it ended" },
	{ "durationSeconds", "how long it ran" },
	{ "idleTimeoutSeconds", "time without traffic before it is reclaimed" },
	{ "failureReason", "why it failed, one word" },
	{ "exitCode", "of its container" },
	{ "failureMessage", "why it failed" },
	{ "metadata", "what was kept with it" },
	{ "containerImages", "image by container" },
	{ 0 },
};

static const struct cli_column template_columns[] = {
	{ "name", "what an env's templateRef names", CLI_COL_FILTER },
	{ "version", "its version" },
	{ "description", "what it is for" },
	{ 0 },
};

static const struct cli_column template_details[] = {
	{ "name", "what an env's templateRef names" },
	{ "version", "its version" },
	{ "description", "what it is for" },
	{ "syncSource", "global or local" },
	{ "createdAt", "when it was made" },
	{ "docs", "its documentation", CLI_COL_TEXT },
	{ "crdYaml", "the whole object", CLI_COL_TEXT },
	{ 0 },
};

static const struct cli_column instancetype_columns[] = {
	{ "name", "what a pool's instanceType names", CLI_COL_FILTER },
	{ "baseResources", "of one; a pool may take a multiple", 0,
	  "baseResources.limits" },
	{ "cost", "of one", CLI_COL_WIDE },
	{ 0 },
};

static const struct cli_column quota_columns[] = {
	{ "name", "of the quota", CLI_COL_FILTER },
	{ "team", "whose it is", CLI_COL_FILTER },
	{ "poolType", "kind of capacity", CLI_COL_FILTER,
	  "metadata[\"quota.scitix.ai/pool-type\"]", pool_types },
	{ "pool", "of capacity", 0, "metadata[\"quota.scitix.ai/pool-name\"]" },
	{ "instanceType", "what is counted" },
	{ "used", "now", 0, "resources.used" },
	{ "ceiling", "how much there may be" },
	{ "free", "how much is left" },
	{ "note", "what a special ceiling means" },
	{ 0 },
};

static const struct cli_column volume_columns[] = {
	{ "claimName", "what a mount names", CLI_COL_FILTER },
	{ "displayName", "for people" },
	{ "capacity", "of the volume" },
	{ "storageClass", "of the volume", CLI_COL_WIDE },
	{ "accessModes", "of the volume", CLI_COL_WIDE },
	{ 0 },
};

static const struct cli_column key_columns[] = {
	{ "keyId", "its name", CLI_COL_FILTER },
	{ "mode", "agent keys' writes wait for a person", CLI_COL_FILTER, NULL,
	  key_modes },
	{ "user", "whose it is", CLI_COL_FILTER },
	{ "team", "whose it is", CLI_COL_FILTER },
	{ "role", "tenant or admin", CLI_COL_FILTER },
	{ "description", "what it is for", CLI_COL_WIDE },
	{ "issuedAt", "when it was made", CLI_COL_WIDE },
	{ 0 },
};

static const struct cli_column admin_key_columns[] = {
	{ "keyId", "its name", CLI_COL_FILTER },
	{ "mode", "agent keys' writes wait for a person", CLI_COL_FILTER, NULL,
	  key_modes },
	{ "user", "whose it is", CLI_COL_FILTER },
	{ "team", "whose it is", CLI_COL_FILTER },
	{ "role", "tenant or admin", CLI_COL_FILTER },
	{ "description", "what it is for", CLI_COL_WIDE },
	{ 0 },
};

static const struct cli_column approval_columns[] = {
	{ "id", "what approve and deny take", CLI_COL_FILTER },
	{ "operation", "what was asked for", CLI_COL_FILTER },
	{ "summary", "in words" },
	{ "status", "pending, approved, denied or expired", CLI_COL_FILTER },
	{ "principal", "who asked", CLI_COL_FILTER, "principal.user" },
	{ "expiresAt", "until when it can be decided", CLI_COL_WIDE },
	{ "method", "of the request", CLI_COL_WIDE },
	{ "path", "of the request", CLI_COL_WIDE },
	{ 0 },
};

static const struct cli_column approval_details[] = {
	{ "id", "what approve and deny take" },
	{ "status", "pending, approved, denied or expired" },
	{ "operation", "what was asked for" },
	{ "summary", "in words" },
	{ "method", "of the request" },
	{ "path", "of the request" },
	{ "user", "who asked", 0, "principal.user" },
	{ "team", "who asked", 0, "principal.team" },
	{ "keyId", "with which key", 0, "principal.keyId" },
	{ "sessionId", "in which session" },
	{ "onceOnly", "whether it can only be given once" },
	{ "createdAt", "when it was asked" },
	{ "expiresAt", "until when it can be decided" },
	{ "decidedBy", "who decided" },
	{ "decidedAt", "when" },
	{ 0 },
};

static const struct cli_column grant_columns[] = {
	{ "id", "what delete takes", CLI_COL_FILTER },
	{ "operation", "what may be done", CLI_COL_FILTER },
	{ "scope", "for how long it holds", CLI_COL_FILTER, NULL, grant_scopes },
	{ "principal", "who may", CLI_COL_FILTER, "principal.user" },
	{ "grantedBy", "who gave it" },
	{ "expiresAt", "until when", CLI_COL_WIDE },
	{ 0 },
};

static const struct cli_column name_columns[] = {
	{ "name", "its name", CLI_COL_FILTER },
	{ 0 },
};

static const struct cli_column statistics_columns[] = {
	{ "total", "sandboxes" },
	{ "byStatus", "of each status" },
	{ "byNamespace", "of each namespace", CLI_COL_WIDE },
	{ 0 },
};

static const struct cli_column admin_template_columns[] = {
	{ "name", "of the template", CLI_COL_FILTER },
	{ "version", "its version" },
	{ "description", "what it is for", CLI_COL_WIDE },
	{ 0 },
};
static const struct cli_view env_views[] = {
	{ "docs", "how to use it, with this cluster's addresses", "", "envDocs" },
	{ "metrics", "charts, in a console", NULL, NULL },
	{ 0 },
};
static const struct cli_view pool_views[] = {
	{ "metrics", "charts, in a console", NULL, NULL },
	{ 0 },
};
static const struct cli_view sandbox_views[] = {
	{ "logs", "what its containers wrote", "/logs", NULL },
	{ 0 },
};

#define ALL_THREE (CLI_VERB_CREATE | CLI_VERB_UPDATE | CLI_VERB_DELETE)
#define READABLE (CLI_RES_ITEM | CLI_RES_GET)
#define TEMPLATE_EXAMPLE                                                          \
	"{\"crdJson\": \"{\\\"apiVersion\\\": \\\"agents.navix.sh/v1alpha1\\\", " \
	"\\\"kind\\\": "                                                          \
	"\\\"SandboxTemplate\\\", ...}\"}"

const struct cli_resource cli_resources[] = {
	{ .plural = "clusters",
	  .kind = "cluster",
	  .path = "/clusters",
	  .list_field = "clusters",
	  .flags = CLI_RES_WIDE_OUT,
	  .docs = "concepts/cross-cluster",
	  .columns = cluster_columns,
	  .text = "Clusters this address reaches." },
	{ .plural = "envs",
	  .kind = "env",
	  .path = "/envs",
	  .flags = READABLE | CLI_RES_PAGE,
	  .verbs = ALL_THREE,
	  .docs = "concepts/envs",
	  .columns = env_columns,
	  .details = env_details,
	  .views = env_views,
	  .text = "What sandboxes are created from: a template, made yours.",
	  .example = "{\"name\": \"demo\", \"templateRef\": {\"name\": \"base\"}, "
		     "\"overrides\": {\"defaultIdleTimeout\": \"30m\"}}" },
	{ .plural = "pools",
	  .kind = "pool",
	  .parent = "envs",
	  .path = "/sandboxpools",
	  .flags = READABLE | CLI_RES_PAGE | CLI_RES_TABLE,
	  .verbs = ALL_THREE | CLI_VERB_SCALE,
	  .docs = "concepts/pools",
	  .columns = pool_columns,
	  .details = pool_details,
	  .views = pool_views,
	  .text = "Pods of one shape kept warm for an env. Their names are made by the "
		  "platform: ENV-SIZE.",
	  .example =
		  "{\"inlineResources\": {\"limits\": {\"cpu\": \"1\", \"memory\": "
		  "\"2Gi\"}}, \"replicas\": 2, \"minReplicas\": 0, \"maxReplicas\": 8}",
	  .example_update = "{\"replicas\": 2, \"minReplicas\": 0, \"maxReplicas\": 8}" },
	{ .plural = "scaling-groups",
	  .kind = "scaling-group",
	  .parent = "envs",
	  .path = "/autoscaling/groups",
	  .flags = READABLE | CLI_RES_PAGE | CLI_RES_TABLE,
	  .verbs = CLI_VERB_UPDATE | CLI_VERB_DELETE,
	  .docs = "concepts/autoscaling",
	  .columns = group_columns,
	  .details = group_details,
	  .text = "The pools of one size in one env, and how the autoscaler sizes them.",
	  .example_update =
		  "{\"enabled\": true, \"minReplicas\": 1, \"maxReplicas\": 20, "
		  "\"scaleUpPolicy\": {\"mode\": \"Default\"}}" },
	{ .plural = "events",
	  .kind = "event",
	  .parent = "envs",
	  .path = "/events",
	  .columns = event_columns,
	  .text = "What happened to an env and its pools, newest first." },
	{ .plural = "sandboxes",
	  .kind = "sandbox",
	  .path = "/sandboxes",
	  .flags = READABLE | CLI_RES_PAGE | CLI_RES_PAGED,
	  .docs = "concepts/inplace-update",
	  .columns = sandbox_columns,
	  .details = sandbox_details,
	  .views = sandbox_views,
	  .text = "Pods that were claimed. create --template makes one, kill ends it." },
	{ .plural = "templates",
	  .kind = "template",
	  .path = "/sandbox-templates",
	  .write_path = "/admin/sandbox-templates",
	  .flags = READABLE | CLI_RES_PAGE,
	  .verbs = ALL_THREE,
	  .docs = "concepts/templates",
	  .columns = template_columns,
	  .details = template_details,
	  .text = "Pod shape, idle image and runtimes that envs are made from. Writing "
		  "them needs an admin key.",
	  .example = TEMPLATE_EXAMPLE },
	{ .plural = "instancetypes",
	  .kind = "instancetype",
	  .path = "/instancetypes",
	  .gate = "instanceType",
	  .docs = "concepts/pools",
	  .columns = instancetype_columns,
	  .text = "Sizes a pool can be ordered in." },
	{ .plural = "quotas",
	  .kind = "quota",
	  .path = "/quotas",
	  .flags = CLI_RES_PAGE,
	  .gate = "quota",
	  .docs = "concepts/pools",
	  .columns = quota_columns,
	  .text = "How much a team may have, and has." },
	{ .plural = "volumes",
	  .kind = "volume",
	  .path = "/volumes",
	  .columns = volume_columns,
	  .text = "Volumes an env can mount." },
	{ .plural = "api-keys",
	  .kind = "api-key",
	  .path = "/api-keys",
	  .flags = CLI_RES_ITEM | CLI_RES_PAGE | CLI_RES_NEVER_BY_AGENT,
	  .verbs = CLI_VERB_CREATE | CLI_VERB_DELETE,
	  .columns = key_columns,
	  .text = "Your own keys; what they are is not shown here.",
	  .example = "{\"description\": \"for the nightly run\", \"mode\": \"agent\"}" },
	{ .plural = "admin-api-keys",
	  .kind = "admin-api-key",
	  .path = "/admin/api-keys",
	  .flags = CLI_RES_ITEM | CLI_RES_PAGE | CLI_RES_ADMIN | CLI_RES_NEVER_BY_AGENT,
	  .verbs = CLI_VERB_CREATE | CLI_VERB_DELETE,
	  .columns = admin_key_columns,
	  .text = "Everybody's keys.",
	  .example = "{\"team\": \"research\", \"user\": \"ada\", \"description\": "
		     "\"for the nightly run\"}" },
	{ .plural = "approvals",
	  .kind = "approval",
	  .path = "/approvals",
	  .list_field = "pending",
	  .flags = READABLE | CLI_RES_PAGE,
	  .columns = approval_columns,
	  .details = approval_details,
	  .text = "Writes of agent keys that wait for a person." },
	{ .plural = "grants",
	  .kind = "grant",
	  .path = "/approvals",
	  .item_path = "/approvals/grants",
	  .list_field = "grants",
	  .flags = CLI_RES_ITEM,
	  .verbs = CLI_VERB_DELETE,
	  .columns = grant_columns,
	  .text = "Approvals that hold for more than one write." },
	{ .plural = "admin-teams",
	  .kind = "team",
	  .path = "/admin/teams",
	  .flags = CLI_RES_ADMIN,
	  .columns = name_columns,
	  .text = "Teams that have keys." },
	{ .plural = "users",
	  .kind = "user",
	  .parent = "admin-teams",
	  .path = "/users",
	  .flags = CLI_RES_ADMIN,
	  .columns = name_columns,
	  .text = "Users of a team." },
	{ .plural = "admin-namespaces",
	  .kind = "namespace",
	  .path = "/admin/namespaces",
	  .flags = CLI_RES_ADMIN,
	  .columns = name_columns,
	  .text = "Namespaces that objects live in." },
	{ .plural = "statistics",
	  .kind = "statistics",
	  .path = "/statistics/sandboxes",
	  .list_field = "statistics",
	  .columns = statistics_columns,
	  .text = "Counts of your sandboxes." },
	{ .plural = "admin-statistics",
	  .kind = "admin-statistics",
	  .path = "/admin/statistics/sandboxes",
	  .list_field = "statistics",
	  .flags = CLI_RES_ADMIN,
	  .columns = statistics_columns,
	  .text = "Counts of all sandboxes." },
	{ .plural = "admin-templates",
	  .kind = "admin-template",
	  .path = "/admin/sandbox-templates",
	  .flags = CLI_RES_ITEM | CLI_RES_ADMIN,
	  .verbs = ALL_THREE,
	  .docs = "concepts/templates",
	  .columns = admin_template_columns,
	  .text = "Templates of all teams.",
	  .example = TEMPLATE_EXAMPLE },
	{ 0 },
};

const struct cli_action cli_actions[] = {
	{ "approve", "approved", "approvals", "/decision", "{\"decision\":\"approve\"}",
	  "Lets a held write of an agent key through, once." },
	{ "deny", "denied", "approvals", "/decision", "{\"decision\":\"deny\"}",
	  "Refuses a held write of an agent key." },
	{ "promote", "promoted", "admin-api-keys", "/promote", NULL,
	  "Makes a key known to all clusters." },
	{ 0 },
};
