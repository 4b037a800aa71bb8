/*
 * pod.c - what a Pod should be, what it is, and the next step between the two.
 *
 * abx__pod_step() is idempotent: namespaces, then images, then init containers in order,
 * then the main container; a new generation ends the old main container first and starts
 * the new one behind a gate that opens when the old one is dead, so the mounts are made
 * while it dies. Every event (a child's end, an image, a request) ends in a step.
 * Requests: pod-request.c; namespaces and connections: pod-net.c.
 */
#include "engine/podd/podd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/alloc.h"

/* ---- the table ---- */

bool abx__pod_name_is_valid(const char *s)
{
	size_t len = strlen(s);

	return len >= 1 && len <= 63 && s[0] != '-' &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

static int make_key(const char *ns, const char *name, char key[ABX__POD_KEY_SIZE])
{
	if (!abx__pod_name_is_valid(ns) || !abx__pod_name_is_valid(name))
		return ABX_EINVAL;
	return snprintf(key, ABX__POD_KEY_SIZE, "%s_%s", ns, name) < ABX__POD_KEY_SIZE
		       ? ABX_OK
		       : ABX_EINVAL;
}

struct pod *abx__pod_find(struct podd *podd, const char *ns, const char *name)
{
	char key[ABX__POD_KEY_SIZE];
	struct pod *pod = NULL;

	if (make_key(ns, name, key) == ABX_OK)
		HASH_FIND_STR(podd->pods, key, pod);
	return pod;
}

struct pod *abx__pod_alloc(struct podd *podd, const char *ns, const char *name)
{
	struct pod *pod = abx__calloc(1, sizeof(*pod));

	if (!pod)
		return NULL;
	pod->podd = podd;
	pod->seq = ++podd->container_seq;
	pod->userns_fd = pod->netns_fd = pod->net_job_fd = -1;
	pod->exit_code = -1;
	pod->ns = abx__strdup(ns);
	pod->name = abx__strdup(name);
	if (!pod->ns || !pod->name || make_key(ns, name, pod->key) < 0) {
		abx__pod_free(pod);
		return NULL;
	}
	return pod;
}

void abx__pod_free(struct pod *pod)
{
	if (!pod)
		return;
	abx__pod_close_net(pod);
	abx__spec_free(pod->spec);
	json_object_put(pod->template_json);
	abx__free(pod->ns);
	abx__free(pod->name);
	abx__readiness_done(&pod->readiness);
	abx__free(pod->image);
	abx__free(pod->running_image);
	abx__free(pod->reason);
	abx__free(pod->message);
	abx__free(pod);
}

/* ---- what is reported ---- */

static const char *phase_of(const struct pod *pod)
{
	if (pod->failed_generation == pod->generation)
		return "failed";
	return pod->running_generation == pod->generation ? "running" : "pending";
}

json_object *abx__pod_view(const struct pod *pod)
{
	json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	json_object_object_add(o, "ns", json_object_new_string(pod->ns));
	json_object_object_add(o, "name", json_object_new_string(pod->name));
	json_object_object_add(o, "generation",
			       json_object_new_int64((int64_t)pod->generation));
	json_object_object_add(o, "image", json_object_new_string(pod->image));
	json_object_object_add(o, "running_generation",
			       json_object_new_int64((int64_t)pod->running_generation));
	json_object_object_add(
		o, "running_image",
		json_object_new_string(pod->running_image ? pod->running_image : ""));
	json_object_object_add(o, "phase", json_object_new_string(phase_of(pod)));
	json_object_object_add(o, "ready", json_object_new_boolean(pod->ready));
	json_object_object_add(o, "reason",
			       json_object_new_string(pod->reason ? pod->reason : ""));
	json_object_object_add(o, "message",
			       json_object_new_string(pod->message ? pod->message : ""));
	json_object_object_add(o, "exit_code", json_object_new_int(pod->exit_code));
	json_object_object_add(
		o, "activity",
		json_object_new_string(abx__pod_activity_name(pod->shown)));
	return o;
}

static void set_trouble(struct pod *pod, const char *reason, const char *message)
{
	abx__free(pod->reason);
	abx__free(pod->message);
	pod->reason = reason ? abx__strdup(reason) : NULL;
	pod->message = message ? abx__strdup(message) : NULL;
}

static void set_stopped(struct pod *pod)
{
	abx__probe_stop(pod);
	pod->ready = false;
	pod->running_generation = 0;
	abx__free(abx_take(pod->running_image));
}

void abx__pod_fail(struct pod *pod, const char *reason, const char *message)
{
	pod->failed_generation = pod->generation;
	pod->ready = false;
	set_trouble(pod, reason, message);
	abx__log_warn(pod->podd->log, "Pod failed", "pod=%s reason=%s message=%s",
		      pod->name, reason, message);
	abx__server_pod(pod->podd, pod);
}

/* ---- containers coming and going ---- */

void abx__pod_container_running(struct container *c)
{
	struct pod *pod = c->pod;
	bool probed = abx__probe_is_due(pod) && pod->activity != POD_FREEZE;

	if (c->is_init)
		return;
	/* The question is under way while run.json is written; nobody hears of the answer
	 * before. */
	if (probed)
		abx__probe_start(pod);
	abx__folder_trash_soon(pod->podd);
	if (c->init.pid && abx__folder_save_run(pod, c) < 0)
		abx__log_warn(pod->podd->log, "run.json not written", "pod=%s",
			      pod->name);
	abx__free(pod->running_image);
	if (pod->kept[0] && pod->activity != POD_STOP) {
		pod->kept[0] = '\0';
		abx__folder_save_pod(pod);
	}
	pod->running_image = abx__strdup(c->image_name);
	pod->running_generation = c->generation;
	pod->exit_code = -1;
	set_trouble(pod, NULL, NULL);
	if (pod->activity == POD_FREEZE) {
		/* As a new podd meets it: it answers no probe. */
		abx__pod_rests(pod);
		abx__server_pod(pod->podd, pod);
	} else {
		pod->ready = !probed;
		abx__server_pod(pod->podd, pod);
	}
}

/* How it ended, for people. */
static void report_end(struct container *c, int status)
{
	struct pod *pod = c->pod;
	bool oom = abx__cgroup_oom_kills(pod->podd, pod->key) > c->oom_before;
	const char *what = c->is_init ? "init container" : "container";
	char text[512];

	pod->exit_code = status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	if (oom && (pod->exit_code == 137 || pod->exit_code < 0))
		snprintf(
			text, sizeof(text),
			"%s %s with image %.200s was killed: it used up its memory limit",
			what, c->spec->name, c->image_name);
	else if (pod->exit_code >= 0)
		snprintf(text, sizeof(text),
			 "%s %s with image %.200s ended with exit code %d", what,
			 c->spec->name, c->image_name, pod->exit_code);
	else if (status >= 0)
		snprintf(text, sizeof(text),
			 "%s %s with image %.200s was killed by signal %d", what,
			 c->spec->name, c->image_name, WTERMSIG(status));
	else
		snprintf(text, sizeof(text),
			 "%s %s with image %.200s ended while agentbox-podd was away",
			 what, c->spec->name, c->image_name);
	abx__pod_fail(pod,
		      oom && (pod->exit_code == 137 || pod->exit_code < 0) ? "OOMKilled"
		      : pod->exit_code == 0                                ? "Completed"
									   : "Error",
		      text);
}

static bool take_dying(struct pod *pod, struct container *c)
{
	for (struct container **at = &pod->dying; *at; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			return true;
		}
	return false;
}

void abx__pod_container_ended(struct container *c, const char *start_error, int status)
{
	struct pod *pod = c->pod;

	if (!take_dying(pod, c) && pod->container == c) {
		abx__snapshot_abort(pod);
		pod->container = NULL;
		if (c->is_init && !start_error && status == 0) {
			pod->init_next++;
			abx__folder_save_pod(pod);
		} else {
			set_stopped(pod);
			if (start_error)
				abx__pod_fail(pod, "StartError", start_error);
			else
				report_end(c, status);
		}
	}
	abx__pod_step(pod);
}

/* ---- stages ---- */

/* READY, or false with the Pod failed or waiting. */
static bool want_image(struct pod *pod, const char *reference,
		       const abx__spec_container *c, struct image **ret)
{
	const char *reason = NULL, *message = NULL;
	enum image_state state =
		abx__image_want(pod->podd, reference, c->pull_always, c->pull_never,
				pod->since_ms, ret, &reason, &message);
	char text[1024];

	if (state == IMAGE_READY)
		return true;
	if (state == IMAGE_FAILED) {
		snprintf(text, sizeof(text), "%s%s%s",
			 strstr(message, reference) ? "" : reference,
			 strstr(message, reference) ? "" : ": ", message);
		abx__pod_fail(pod, reason, text);
	}
	return false;
}

static void start_container(struct pod *pod, const abx__spec_container *spec,
			    struct image *image, const char *name, bool is_init)
{
	abx_error *err = NULL;

	if (abx__container_start(pod, spec, image, name, is_init, pod->dying == NULL,
				 &pod->container, &err) < 0)
		abx__pod_fail(pod, "StartError", abx_error_message(err));
	abx_error_free(err);
}

static void end_container(struct pod *pod)
{
	struct container *c = pod->container;

	abx__snapshot_abort(pod);
	pod->container = NULL;
	c->handled = true;
	c->next = pod->dying;
	pod->dying = c;
	abx__container_end(c);
	/* In a frozen v1 group it would not die. */
	abx__pod_thaw(pod);
}

void abx__pod_end_main(struct pod *pod)
{
	set_stopped(pod);
	end_container(pod);
}

/* Nothing of it runs any more: links, groups, folder go. */
static void tear_down(struct pod *pod)
{
	struct podd *podd = pod->podd;
	char path[256];

	abx__probe_stop(pod);
	abx__snapshot_abort(pod);
	abx__cgroup_kill(podd, pod->key);
	abx__net_remove(podd, pod->n);
	abx__pod_close_net(pod);
	abx__cgroup_remove(podd, pod->key);
	snprintf(path, sizeof(path), "pods/%s", pod->key);
	abx__folder_trash(podd, path);
	HASH_DEL(podd->pods, pod);
	abx__server_gone(podd, pod->ns, pod->name);
	abx__pod_free(pod);
}

static bool needs_volumes(const struct pod *pod)
{
	return pod->wipe && pod->spec->volume_count > 0;
}

static void step_start(struct pod *pod)
{
	struct image *main_image, *image;
	abx_error *err = NULL;

	/* All images first, so that nothing half-started waits for a registry. */
	for (size_t i = pod->init_next; i < pod->spec->init_count; i++)
		if (!want_image(pod, pod->spec->init[i].image, &pod->spec->init[i],
				&image))
			return;
	if (!want_image(pod, pod->image, &pod->spec->main, &main_image))
		return;
	/* Its upper layer may belong to one that is still dying. */
	if (pod->kept[0] && pod->dying)
		return;
	if (needs_volumes(pod)) {
		if (pod->dying)
			return;
		if (abx__folder_make_volumes(pod, &err) < 0) {
			abx__pod_fail(pod, "StartError", abx_error_message(err));
			abx_error_free(err);
			return;
		}
	}
	if (pod->init_next < pod->spec->init_count) {
		const abx__spec_container *c = &pod->spec->init[pod->init_next];

		if (!pod->dying && want_image(pod, c->image, c, &image))
			start_container(pod, c, image, c->image, true);
		return;
	}
	start_container(pod, &pod->spec->main, main_image, pod->image, false);
}

void abx__pod_step(struct pod *pod)
{
	if (pod->net_job.pid || pod->podd->stopping)
		return;
	if (pod->deleting) {
		if (pod->container)
			end_container(pod);
		if (!pod->dying && !pod->container)
			tear_down(pod);
		return;
	}
	if (pod->container && !pod->container->is_init &&
	    pod->container->generation != pod->generation) {
		set_stopped(pod);
		end_container(pod);
	}
	if (pod->activity == POD_STOP && pod->container)
		abx__pod_end_main(pod);
	if (abx__pod_rests(pod))
		return;
	if (pod->failed_generation == pod->generation)
		return;
	if (!pod->has_net) {
		abx__pod_make_net(pod);
		return;
	}
	if (pod->container) {
		if (!pod->dying)
			abx__container_open_gate(pod->container);
		return;
	}
	step_start(pod);
}

void abx__pods_step(struct podd *podd)
{
	struct pod *pod, *tmp;

	HASH_ITER(hh, podd->pods, pod, tmp)
	abx__pod_step(pod);
}
