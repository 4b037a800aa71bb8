/*
 * native-routes.c - which operations of api/native.yaml are answered, and by what; and
 * the routes outside it.
 */
#include "serve/native.h"
#include "serve/prometheus.h"

const abx__endpoint abx__native_endpoints[] = {
	{ "Ping", 0, abx__native_ping },
	{ "GetOpenAPI", 0, abx__native_openapi },
	{ "GetMetrics", 0, abx__prometheus_metrics },

	{ "GetWhoAmI", 0, abx__native_whoami },
	{ "ListClusters", 0, abx__native_clusters },
	{ "GetFeatureGates", 0, abx__native_gates },

	{ "ListQuotas", 0, abx__native_quotas },
	{ "ListVolumes", 0, abx__native_volumes },
	{ "ListInstanceTypes", 0, abx__native_instance_types },
	{ "GetUserSandboxStatistics", 0, abx__native_statistics },
	{ "AdminGetSandboxStatistics", 0, abx__native_statistics_all },
	{ "ListTeams", 0, abx__native_teams },
	{ "ListUsersByTeam", 0, abx__native_users },
	{ "ListNamespaces", 0, abx__native_namespaces },

	{ "SelfCreateAPIKey", ABX__BODY_MAYBE, abx__native_key_create },
	{ "SelfListAPIKeys", 0, abx__native_key_list },
	{ "SelfDeleteAPIKey", 0, abx__native_key_delete },
	{ "CreateAPIKey", ABX__BODY, abx__native_key_create_for },
	{ "ListAPIKeys", 0, abx__native_key_list },
	{ "DeleteAPIKey", 0, abx__native_key_delete_any },
	{ "PromoteAPIKey", 0, abx__native_key_promote },

	{ "ListApprovals", 0, abx__native_approval_list },
	{ "GetApproval", 0, abx__native_approval_get },
	{ "DecideApproval", ABX__BODY, abx__native_approval_decide },
	{ "RevokeApprovalGrant", 0, abx__native_grant_revoke },

	{ "CreateSandbox", ABX__BODY, abx__native_sandbox_create },
	{ "ListSandboxes", 0, abx__native_sandbox_list },
	{ "GetSandbox", 0, abx__native_sandbox_get },
	{ "DeleteSandbox", 0, abx__native_sandbox_delete },
	{ "SetSandboxTimeout", ABX__BODY, abx__native_sandbox_timeout },

	{ "GetSandboxLogs", 0, abx__native_logs },
	{ "StreamSandboxLogs", 0, abx__native_logs_stream },
	{ "ExecSandboxCommand", ABX__BODY, abx__native_exec },
	{ "CreateSandboxExecToken", 0, abx__native_exec_token },
	{ "IsSandboxReady", 0, abx__native_is_ready },
	{ "OpenTerminal", 0, abx__native_terminal },

	{ "ListSandboxEnvs", 0, abx__native_env_list },
	{ "CreateSandboxEnv", ABX__BODY, abx__native_env_create },
	{ "GetSandboxEnv", 0, abx__native_env_get },
	{ "UpdateSandboxEnv", ABX__BODY, abx__native_env_update },
	{ "DeleteSandboxEnv", 0, abx__native_env_delete },

	{ "ListEnvEvents", 0, abx__native_events },

	{ "GetEnvAutoscaling", 0, abx__native_groups_spec },
	{ "ListEnvAutoscalingGroups", 0, abx__native_group_list },
	{ "GetEnvAutoscalingGroup", 0, abx__native_group_get },
	{ "UpdateEnvAutoscalingGroup", ABX__BODY, abx__native_group_put },
	{ "DeleteEnvAutoscalingGroup", 0, abx__native_group_delete },

	{ "ListEnvSandboxPools", 0, abx__native_pool_list },
	{ "CreateEnvSandboxPool", ABX__BODY, abx__native_pool_create },
	{ "GetEnvSandboxPool", 0, abx__native_pool_get },
	{ "UpdateEnvSandboxPool", ABX__BODY_MAYBE, abx__native_pool_update },
	{ "DeleteEnvSandboxPool", 0, abx__native_pool_delete },

	{ "ListSandboxTemplates", 0, abx__native_template_list },
	{ "GetSandboxTemplate", 0, abx__native_template_get },
	{ "AdminListSandboxTemplates", 0, abx__native_template_list_all },
	{ "AdminCreateSandboxTemplate", ABX__BODY, abx__native_template_create },
	{ "AdminUpdateSandboxTemplate", ABX__BODY, abx__native_template_update },
	{ "AdminDeleteSandboxTemplate", 0, abx__native_template_delete },
};
const size_t abx__native_endpoint_count =
	sizeof(abx__native_endpoints) / sizeof(abx__native_endpoints[0]);

const abx__route abx__native_extra_routes[] = {
	{ .method = "GET",
	  .path = "/ping",
	  .operation_id = "Ping",
	  .auth = ABX__AUTH_NONE },
	{ .method = "GET",
	  .path = "/openapi.json",
	  .operation_id = "GetOpenAPI",
	  .auth = ABX__AUTH_NONE },
	{ .method = "GET",
	  .path = "/metrics",
	  .operation_id = "GetMetrics",
	  .auth = ABX__AUTH_ADMIN },
	{ .method = "GET",
	  .path = "/v1/sandboxes/{sandboxId}/terminal",
	  .operation_id = "OpenTerminal",
	  .auth = ABX__AUTH_NONE }, /* a token is */
	{ .method = "GET",
	  .path = "/ws/clusters/{clusterID}/sandboxes/{sandboxId}/terminal",
	  .operation_id = "OpenTerminal",
	  .auth = ABX__AUTH_NONE },
	{ .method = "GET",
	  .path = "/v1/sandboxes/{sandboxId}/logs/stream",
	  .operation_id = "StreamSandboxLogs",
	  .auth = ABX__AUTH_KEY },
	{ .method = "GET",
	  .path = "/v1/ws/sync",
	  .operation_id = "Sync",
	  .auth = ABX__AUTH_KEY },
};
const size_t abx__native_extra_route_count =
	sizeof(abx__native_extra_routes) / sizeof(abx__native_extra_routes[0]);
