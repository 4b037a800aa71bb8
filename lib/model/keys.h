/*
 * keys.h - the labels, annotations and other fixed names of the object model (crds.md,
 * section 4; the reserved metadata keys of e2b-control-api.md, section 12).
 */
#ifndef ABX_MODEL_KEYS_H
#define ABX_MODEL_KEYS_H

#define ABX__API_GROUP "agents.navix.sh"
#define ABX__API_VERSION "agents.navix.sh/v1alpha1"
#define ABX__KEY_PREFIX "agentbox.navix.sh/"

#define ABX__KIND_TEMPLATE "SandboxTemplate"
#define ABX__KIND_ENV "SandboxEnv"
#define ABX__KIND_POOL "SandboxPool"
#define ABX__KIND_SNAPSHOT "SandboxSnapshot"

/* Labels. */
#define ABX__LABEL_POOL ABX__KEY_PREFIX "sandbox-pool"
#define ABX__LABEL_PHASE ABX__KEY_PREFIX "sandbox-phase"
#define ABX__LABEL_SANDBOX_ID ABX__KEY_PREFIX "sandbox-id"
#define ABX__LABEL_MANAGED_BY ABX__KEY_PREFIX "managed-by"
#define ABX__LABEL_TEMPLATE_HASH ABX__KEY_PREFIX "template-hash"
#define ABX__LABEL_ENV ABX__KEY_PREFIX "env"
#define ABX__LABEL_SCALING_GROUP ABX__KEY_PREFIX "scaling-group"
#define ABX__LABEL_POOL_SIZING ABX__KEY_PREFIX "pool-sizing"
#define ABX__LABEL_TEAM "scheduling.navix.sh/team"
#define ABX__LABEL_USER "scheduling.navix.sh/user"
#define ABX__LABEL_QUOTA "quota.scitix.ai/url"
#define ABX__LABEL_SYNC_SOURCE "agentbox.io/sync-source"

/* Values of labels. */
#define ABX__PHASE_IDLE "idle"
#define ABX__PHASE_STARTING "starting"
#define ABX__PHASE_RUNNING "running"
#define ABX__PHASE_STOPPING "stopping"
#define ABX__PHASE_FAILED "failed"
#define ABX__PHASE_PAUSED "paused"
#define ABX__MANAGED_BY_API "sandbox-api-server"

/* Annotations of Pods. */
#define ABX__ANNOTATION_SANDBOX_ID ABX__KEY_PREFIX "sandbox-id"
#define ABX__ANNOTATION_CLAIMED_AT ABX__KEY_PREFIX "claimed-at"
#define ABX__ANNOTATION_STARTED_AT ABX__KEY_PREFIX "started-at"
#define ABX__ANNOTATION_IDLE_TIMEOUT ABX__KEY_PREFIX "idle-timeout"
#define ABX__ANNOTATION_STARTUP_TIMEOUT ABX__KEY_PREFIX "startup-timeout"
#define ABX__ANNOTATION_LAST_ACTIVE ABX__KEY_PREFIX "last-active"
#define ABX__ANNOTATION_METADATA ABX__KEY_PREFIX "sandbox-metadata"
#define ABX__ANNOTATION_MANAGED_LABELS ABX__KEY_PREFIX "managed-label-keys"
#define ABX__ANNOTATION_MANAGED_ANNOTATIONS ABX__KEY_PREFIX "managed-annotation-keys"
#define ABX__ANNOTATION_STOP_REASON ABX__KEY_PREFIX "stop-reason"
#define ABX__ANNOTATION_TERMINATED_AT ABX__KEY_PREFIX "terminated-at"
#define ABX__ANNOTATION_FAILURE_REASON ABX__KEY_PREFIX "failure-reason"
#define ABX__ANNOTATION_FAILURE_MESSAGE ABX__KEY_PREFIX "failure-message"
#define ABX__ANNOTATION_EXIT_CODE ABX__KEY_PREFIX "exit-code"
#define ABX__ANNOTATION_RUNNING_IMAGES ABX__KEY_PREFIX "running-images"
#define ABX__ANNOTATION_CONTAINER_ID ABX__KEY_PREFIX "container-id"
#define ABX__ANNOTATION_EGRESS_POLICY ABX__KEY_PREFIX "egress-policy"
#define ABX__ANNOTATION_EGRESS_INJECT ABX__KEY_PREFIX "egress-inject"
#define ABX__ANNOTATION_POST_START_HOOKS ABX__KEY_PREFIX "post-start-hooks"
#define ABX__ANNOTATION_SCALE_DOWN_PROTECTED ABX__KEY_PREFIX "scale-down-protected"
#define ABX__ANNOTATION_ON_TIMEOUT ABX__KEY_PREFIX "on-timeout"
#define ABX__ANNOTATION_AUTO_RESUME ABX__KEY_PREFIX "auto-resume"
#define ABX__ANNOTATION_PAUSED_AT ABX__KEY_PREFIX "paused-at"
#define ABX__ANNOTATION_PAUSED_MEMORY ABX__KEY_PREFIX "paused-memory"
#define ABX__ANNOTATION_ENV_VARS ABX__KEY_PREFIX "sealed-env-vars"
#define ABX__ANNOTATION_SNAPSHOT ABX__KEY_PREFIX "snapshot"
#define ABX__ANNOTATION_STATUS_DETAIL ABX__KEY_PREFIX "sandbox-status-detail"

/* Values of stop-reason. */
#define ABX__STOP_COMPLETED "Completed"
#define ABX__STOP_CANCELED "Canceled"
#define ABX__STOP_RELEASED "Released"
#define ABX__STOP_FAILED "Failed"

/* Annotations of templates, pools and members. */
#define ABX__ANNOTATION_DOCS ABX__KEY_PREFIX "docs"
#define ABX__ANNOTATION_REGISTRY_REWRITE ABX__KEY_PREFIX "registry-rewrite"
#define ABX__ANNOTATION_ALLOW_READONLY_VOLUMES \
	ABX__KEY_PREFIX "allow-unenforceable-readonly-volumes"
#define ABX__ANNOTATION_TEMPLATE_NAME ABX__KEY_PREFIX "template-name"
#define ABX__ANNOTATION_TEMPLATE_VERSION ABX__KEY_PREFIX "template-version"
#define ABX__ANNOTATION_OVERRIDES ABX__KEY_PREFIX "overrides"
#define ABX__ANNOTATION_LAST_CREATE ABX__KEY_PREFIX "last-sandbox-create-time"
#define ABX__ANNOTATION_ENVD_VERSION ABX__KEY_PREFIX "envd-version"
#define ABX__ANNOTATION_RESERVATION_QUOTA "scheduling.navix.sh/reservation-replica-quota"

/* Others. */
#define ABX__FINALIZER ABX__KEY_PREFIX "sandbox-protection"
#define ABX__PULL_SECRET_PREFIX "ips-"

/* Reserved keys of the E2B surface's metadata: read at create, not stored. */
#define ABX__METADATA_PREFIX "agentbox.scitix.ai/"
#define ABX__METADATA_IMAGE ABX__METADATA_PREFIX "image"
#define ABX__METADATA_STARTUP_TIMEOUT ABX__METADATA_PREFIX "startup-timeout"
#define ABX__METADATA_SCALING_GROUP ABX__METADATA_PREFIX "scaling-group"
#define ABX__METADATA_NO_WAIT ABX__METADATA_PREFIX "no-wait"
#define ABX__METADATA_ALLOW_PRIVATE ABX__METADATA_PREFIX "allow-private-networks"
/* Added on reads. */
#define ABX__METADATA_NODE_NAME "agentbox.nodeName"
#define ABX__METADATA_CONTAINER_ID "agentbox.containerId"

#endif
