/*
 * e2b-routes.c - which operations of api/e2b.yaml are answered, and by what. Create's
 * body is checked by its handler: of many fields it says more than that they are unknown.
 */
#include "serve/e2b.h"

const abx__endpoint abx__e2b_endpoints[] = {
	{ "GetHealth", 0, abx__e2b_health },
	{ "CreateSandboxV2", ABX__BODY | ABX__BODY_OWN, abx__e2b_create_v2 },
	{ "CreateSandbox", ABX__BODY | ABX__BODY_OWN, abx__e2b_create_v1 },
	{ "ListSandboxesV2", 0, abx__e2b_list_v2 },
	{ "ListSandboxes", 0, abx__e2b_list_v1 },
	{ "GetSandbox", 0, abx__e2b_get },
	{ "DeleteSandbox", 0, abx__e2b_kill },
	{ "ConnectSandboxV2", ABX__BODY_MAYBE | ABX__BODY_OWN, abx__e2b_connect_v2 },
	{ "ConnectSandbox", ABX__BODY | ABX__BODY_OWN, abx__e2b_connect_v1 },
	{ "PauseSandbox", ABX__BODY_MAYBE | ABX__BODY_OWN, abx__e2b_pause },
	{ "ResumeSandbox", ABX__BODY_MAYBE | ABX__BODY_OWN, abx__e2b_resume },
	{ "ForkSandbox", ABX__BODY_MAYBE | ABX__BODY_OWN, abx__e2b_fork },
	{ "CreateSnapshot", ABX__BODY_MAYBE | ABX__BODY_OWN, abx__e2b_snapshot_create },
	{ "ListSnapshots", 0, abx__e2b_snapshot_list },
	{ "ListTemplateTags", 0, abx__e2b_template_tags },
	{ "DeleteTemplate", 0, abx__e2b_template_delete },
	{ "SetSandboxTimeout", ABX__BODY | ABX__BODY_OWN, abx__e2b_timeout },
	{ "RefreshSandbox", ABX__BODY_MAYBE | ABX__BODY_OWN, abx__e2b_refresh },
	{ "GetSandboxLogs", 0, abx__e2b_logs_v1 },
	{ "GetSandboxLogsV2", 0, abx__e2b_logs_v2 },
	{ "GetSandboxMetrics", 0, abx__e2b_metrics },
	{ "ListSandboxMetrics", 0, abx__e2b_metrics_many },
	{ "UpdateSandboxNetwork", ABX__BODY | ABX__BODY_OWN, abx__e2b_network_update },
	{ "ListTemplates", 0, abx__e2b_templates },
	{ "GetTemplateAlias", 0, abx__e2b_template_alias },
	{ "ListTeams", 0, abx__e2b_teams },
	{ "CreateAccessToken", 0, abx__e2b_access_token },
	{ "DeleteAccessToken", 0, abx__e2b_access_token },
	{ "GetTemplate", 0, abx__e2b_template },
	{ "ListAPIKeys", 0, abx__e2b_keys_list },
	{ "CreateAPIKey", ABX__BODY | ABX__BODY_OWN, abx__e2b_keys_create },
	{ "DeleteAPIKey", 0, abx__e2b_keys_delete },
};
const size_t abx__e2b_endpoint_count =
	sizeof(abx__e2b_endpoints) / sizeof(abx__e2b_endpoints[0]);

void abx__e2b_health(abx__call *call)
{
	abx__call_empty(call, 204);
}
