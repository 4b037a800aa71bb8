/*
 * pod-release.c - a sandbox ends and its Pod goes back: everything of the sandbox off it
 * and its container anew, in one write.
 */
#include <string.h>

#include "base/error.h"
#include "control/ingress.h"
#include "control/internal.h"

static const char *const claim_annotations[] = {
	ABX__ANNOTATION_SANDBOX_ID,
	ABX__ANNOTATION_CLAIMED_AT,
	ABX__ANNOTATION_STARTED_AT,
	ABX__ANNOTATION_IDLE_TIMEOUT,
	ABX__ANNOTATION_STARTUP_TIMEOUT,
	ABX__ANNOTATION_LAST_ACTIVE,
	ABX__ANNOTATION_METADATA,
	ABX__ANNOTATION_MANAGED_LABELS,
	ABX__ANNOTATION_MANAGED_ANNOTATIONS,
	ABX__ANNOTATION_SECURE,
	ABX__ANNOTATION_ON_TIMEOUT,
	ABX__ANNOTATION_AUTO_RESUME,
	ABX__ANNOTATION_PAUSED_AT,
	ABX__ANNOTATION_PAUSED_MEMORY,
	ABX__ANNOTATION_ENV_VARS,
	ABX__ANNOTATION_SNAPSHOT,
	ABX__ANNOTATION_INGRESS,
};
#define CLAIM_ANNOTATION_COUNT (sizeof(claim_annotations) / sizeof(claim_annotations[0]))

/* `fixed` and the strings of the JSON array `managed`, NULL-terminated; the strings are
 * borrowed. */
static const char **key_list(const char *const *fixed, size_t fixed_count,
			     json_object *managed)
{
	size_t more = json_object_is_type(managed, json_type_array)
			      ? json_object_array_length(managed)
			      : 0;
	const char **list = abx__calloc(fixed_count + more + 1, sizeof(*list));

	if (!list)
		return NULL;
	memcpy(list, fixed, fixed_count * sizeof(*list));
	for (size_t i = 0; i < more; i++)
		list[fixed_count + i] =
			json_object_get_string(json_object_array_get_idx(managed, i));
	return list;
}

void abx__pod_issue_release(abx__podrec *pod)
{
	static const char *const claim_labels[] = { ABX__LABEL_SANDBOX_ID,
						    ABX__LABEL_MANAGED_BY };
	const char **labels = key_list(claim_labels, 2, pod->managed_labels);
	const char **annotations = key_list(claim_annotations, CLAIM_ANNOTATION_COUNT,
					    pod->managed_annotations);
	abx__map set = ABX__MAP_INIT;

	pod->want_release = false;
	if (labels && annotations &&
	    abx__map_set(&set, ABX__LABEL_PHASE, ABX__PHASE_IDLE) == ABX_OK) {
		abx__pod_change change = {
			.set_labels = &set,
			.remove_labels = labels,
			.remove_annotations = annotations,
			.image = pod->pool->config.rest_image,
			.restart = true,
		};

		pod->control->config.runtime->ops->forget(pod->control->config.runtime,
							  pod->namespace_, pod->name);
		abx__pod_write(pod, ABX__WRITE_RELEASE, &change);
	} else {
		/* No memory for the cheap way: the other one needs none. */
		abx__pod_issue_delete(pod);
	}
	abx__map_done(&set);
	abx__free(labels);
	abx__free(annotations);
}

void abx__pod_release_failed(abx__podrec *pod)
{
	const char *reason = pod->reason;

	/* That a container ended says little; that a sandbox lost its Pod says more. */
	if (!*reason || strcmp(reason, "Error") == 0 || strcmp(reason, "Completed") == 0)
		reason = "PodFailed";
	if (pod->pool && pod->sandbox)
		abx__env_tell(pod->pool->env, pod->pool, true, ABX__EVENT_SANDBOX_FAILED,
			      NULL, "sandbox %s on Pod %s: %s%s%s", pod->sandbox->id,
			      pod->name, reason, pod->message ? ": " : "",
			      pod->message ? pod->message : "");
	abx__pod_release(pod, ABX__STOP_FAILED, reason, pod->message);
}

void abx__pod_release(abx__podrec *pod, const char *stop_reason,
		      const char *failure_reason, const char *failure_message)
{
	abx__sandbox *sandbox = pod->sandbox;

	if (sandbox) {
		sandbox->rec.state = ABX__SANDBOX_STOPPING;
		abx__history_add(sandbox, stop_reason, failure_reason, failure_message,
				 pod->phase == ABX__POD_FAILED ? pod->exit_code : -1);
		abx__timers_clear(&pod->control->timers, &sandbox->timer);
		abx__log_info(pod->control->config.log, "sandbox released",
			      "sandbox=%s pod=%s reason=%s failure=%s", sandbox->id,
			      pod->key, stop_reason,
			      failure_reason ? failure_reason : "");
	}
	pod->released_ms = abx__control_mono(pod->control);
	pod->want_release = true;
	pod->want_persist = pod->want_move = false;
	abx__podrec_set_state(pod, ABX__PODREC_STOPPING);
	abx__pod_settle(pod);
}
