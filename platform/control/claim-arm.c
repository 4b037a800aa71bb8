/*
 * claim-arm.c - from a written claim to an armed Pod: its image runs, envd has been told
 * the variables and the token.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "control/claim.h"
#include "control/fields.h"

static void wipe_body(abx__podrec *pod)
{
	if (pod->init_body)
		abx__wipe(pod->init_body, pod->init_len);
	abx__free(pod->init_body);
	pod->init_body = NULL;
}

/* The token is hex and needs no escaping; it never enters a json_object, which could not
 * be wiped. */
static int init_body(const abx__sandbox *s, const char *vars, char **ret, size_t *ret_len)
{
	const abx__secret *token = s->rec.access_token;
	char stamp[ABX__RFC3339_SIZE];
	abx__buf buf = ABX__BUF_INIT;
	int r;

	abx__rfc3339_format(abx__control_wall(s->control), stamp);
	/* Reserved at once, so that no half of it is left behind by a growing buffer. */
	r = abx__buf_reserve(&buf, strlen(vars) + 256);
	if (r == ABX_OK)
		r = abx__buf_addf(
			&buf,
			"{\"envVars\":%s,\"defaultUser\":\"user\",\"timestamp\":\"%s\"",
			vars, stamp);
	if (r == ABX_OK && token)
		r = abx__buf_addf(&buf, ",\"accessToken\":\"%s\"",
				  abx__secret_reveal(token));
	if (r == ABX_OK)
		r = abx__buf_addc(&buf, '}');
	if (r == ABX_OK) {
		*ret_len = buf.len;
		*ret = abx__buf_take(&buf);
		r = *ret ? ABX_OK : ABX_ENOMEM;
	} else if (buf.data) {
		abx__wipe(buf.data, buf.len);
	}
	abx__buf_done(&buf);
	return r;
}

void abx__pod_armed(abx__podrec *pod)
{
	pod->arming = false;
	wipe_body(pod);
}

int abx__pod_arm(abx__podrec *pod, const char *vars, int64_t left_ms,
		 void (*done)(void *pod, int r, const abx_error *err))
{
	abx__control *control = pod->control;
	abx__runtime *runtime = control->config.runtime;
	int64_t most = control->config.arm_timeout_ms;

	if (init_body(pod->sandbox, vars, &pod->init_body, &pod->init_len) < 0)
		return ABX_ENOMEM;
	if (most > 0 && most < left_ms)
		left_ms = most;
	pod->arming = true;
	abx__control_call_begin(control);
	runtime->ops->arm(runtime, pod->namespace_, pod->name,
			  pod->sandbox->rec.runtime_port, pod->init_body, pod->init_len,
			  left_ms > 1 ? (uint64_t)left_ms : 1, done, pod);
	return ABX_OK;
}

static void on_armed(void *userdata, int r, const abx_error *err)
{
	abx__podrec *pod = userdata;
	abx__control *control = pod->control;
	abx__claim *claim = pod->sandbox ? pod->sandbox->claim : NULL;
	ABX_CLEANUP(abx__error_freep) abx_error *own = NULL;

	abx__pod_armed(pod);
	if (claim && claim->state == ABX__CLAIM_ARMING && !pod->want_release &&
	    !pod->gone) {
		if (r == ABX_OK) {
			abx__claim_start(claim);
		} else {
			own = abx__error_copy(err);
			abx__error_prefix(&own, "sandbox %s could not be armed",
					  claim->sandbox->id);
			abx__claim_fail(claim, r == ABX_EPROTO ? ABX_EUNAVAILABLE : r,
					own, ABX__STOP_FAILED, "ArmFailed");
		}
	}
	abx__pod_settle(pod);
	abx__control_call_end(control);
}

static void arm(abx__claim *claim)
{
	json_object *vars = abx__claim_map_json(&claim->env_vars);
	const char *text =
		vars ? json_object_to_json_string_ext(vars, JSON_C_TO_STRING_PLAIN)
		     : NULL;
	int64_t left = claim->startup_deadline_ms - abx__control_mono(claim->control);
	int r = ABX_ENOMEM;

	claim->state = ABX__CLAIM_ARMING;
	if (text)
		r = abx__pod_arm(claim->sandbox->pod, text, left, on_armed);
	json_object_put(vars);
	if (r < 0) {
		ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

		abx__error_nomem(&err);
		abx__claim_fail(claim, ABX_ENOMEM, err, ABX__STOP_FAILED, NULL);
	}
}

static void image_failed(abx__claim *claim)
{
	const abx__podrec *pod = claim->sandbox->pod;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	/* An image the caller chose is the caller's to correct. */
	int code = claim->image ? ABX_EINVAL : ABX_EUNAVAILABLE;

	abx__error_set(&err, code, "image %s does not run: %s%s%s", claim->sandbox->image,
		       pod->reason, pod->message ? ": " : "",
		       pod->message ? pod->message : "");
	abx__claim_fail(claim, code, err, ABX__STOP_FAILED, pod->reason);
}

void abx__claim_pod_changed(abx__claim *claim)
{
	const abx__podrec *pod = claim->sandbox->pod;

	if (claim->state != ABX__CLAIM_SWAPPING || !pod)
		return;
	if (pod->phase == ABX__POD_FAILED && pod->generation >= pod->target_generation)
		image_failed(claim);
	else if (abx__podrec_is_ready(pod))
		arm(claim);
}
