/*
 * events.h - what the platform decided about an env and its pools, and what it met: the
 * events of native-api.md, section 7.3.
 *
 * The newest ABX__EVENTS_MOST of an env are kept, also over a restart (written a few
 * seconds late). The same thing said again counts up; a warning about the same object
 * with the same reason does too, and its last message stands.
 */
#ifndef ABX_CONTROL_EVENTS_H
#define ABX_CONTROL_EVENTS_H

#include <stddef.h>

#include <agentbox/error.h>
#include <json-c/json.h>

#define ABX__EVENTS_MOST 128
#define ABX__KIND_ENV_STATE "EnvState" /* the document they are in */

/* Reasons, beside those of a Pod's engine (ErrImagePull, OOMKilled, ...). */
#define ABX__EVENT_POOL_CREATED "PoolCreated"
#define ABX__EVENT_POOL_DELETED "PoolDeleted"
#define ABX__EVENT_POOL_READY "PoolReady"
#define ABX__EVENT_POOL_RECOVERED "PoolRecovered"
#define ABX__EVENT_DEGRADED "Degraded"
#define ABX__EVENT_SCALE_UP "ScaleUp"
#define ABX__EVENT_SCALE_DOWN "ScaleDown"
#define ABX__EVENT_ROLL_STARTED "RolloutStarted"
#define ABX__EVENT_ROLL_COMPLETED "RolloutCompleted"
#define ABX__EVENT_CREATE_FAILED "FailedCreate"
#define ABX__EVENT_CLAIM_REFUSED "ClaimRefused"
#define ABX__EVENT_CLAIM_FAILED "ClaimFailed"
#define ABX__EVENT_SANDBOX_FAILED "SandboxFailed"
#define ABX__EVENT_NOT_CARRIED_OUT "EnvNotCarriedOut"
#define ABX__EVENT_QUOTA_EXHAUSTED "ResourceQuotaExhausted"
#define ABX__EVENT_QUOTA_GRANTED "AdmissionGranted"
#define ABX__EVENT_AUTO_UP "AutoscalerScaleUp"
#define ABX__EVENT_AUTO_UP_PARTIAL "AutoscalerScaleUpPartial"
#define ABX__EVENT_AUTO_UP_REJECTED "AutoscalerScaleUpRejected"
#define ABX__EVENT_AUTO_DOWN_STARTED "AutoscalerScaleDownStarted"
#define ABX__EVENT_AUTO_DOWN_COMPLETED "AutoscalerScaleDownCompleted"
#define ABX__EVENT_AUTO_DOWN_STUCK "AutoscalerScaleDownStuck"

struct abx__control;

/* A new array of EnvEvent objects {involvedKind, involvedName, reason, message, type,
   count, action?, firstTimestamp, lastTimestamp}, newest first, at most `limit`.
   ABX_ENOTFOUND (env), ABX_ENOMEM. */
int abx__control_env_events(struct abx__control *control, const char *namespace_,
			    const char *env, size_t limit, json_object **ret,
			    abx_error **reterr);

#endif
