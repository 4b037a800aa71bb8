/*
 * pod.c - what a Pod should be, what it is, and the next step between the two.
 *
 * abx__pod_step() is idempotent: namespaces, then images, then init containers in order,
 * then the main container; a new generation ends the old main container first and starts
 * the new one behind a gate that opens when the old one is dead, so the mounts are made
 * while it dies. Every event (a child's end, an image, a request) ends in a step.
 */
#include "engine/podd/podd.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"

#define PODS_MAX 4096u

/* ---- the table ---- */

static bool name_is_valid(const char *s)
{
	size_t len = strlen(s);

	return len >= 1 && len <= 63 && s[0] != '-' &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

static int make_key(const char *ns, const char *name, char key[ABX__POD_KEY_SIZE])
{
	if (!name_is_valid(ns) || !name_is_valid(name))
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

static void close_namespaces(struct pod *pod)
{
	if (pod->userns_fd >= 0)
		close(pod->userns_fd);
	if (pod->netns_fd >= 0)
		close(pod->netns_fd);
	pod->userns_fd = pod->netns_fd = -1;
	pod->has_net = false;
}

void abx__pod_free(struct pod *pod)
{
	if (!pod)
		return;
	close_namespaces(pod);
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

/* Namespaces and link are made by a child, since the kernel may take its time;
 * descriptors come back by a socket. */
static _Noreturn void net_job_main(struct pod *pod, int sock)
{
	abx_error *err = NULL;
	int fds[2] = { -1, -1 };
	char control[CMSG_SPACE(sizeof(fds))] = { 0 };
	char text[1024] = "";
	struct iovec iov = { .iov_base = text, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	bool userns = !pod->spec->main.privileged;
	int r = abx__net_make(pod->podd, pod->n, userns, &fds[0], &fds[1], &err);

	if (r < 0) {
		abx__str_copy(text, sizeof(text), abx_error_message(err));
		iov.iov_len = strlen(text);
	} else {
		struct cmsghdr *h;
		size_t count = userns ? 2 : 1;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		h = CMSG_FIRSTHDR(&msg);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(h), userns ? fds : fds + 1, count * sizeof(int));
	}
	_exit(sendmsg(sock, &msg, 0) < 0 || r < 0 ? 1 : 0);
}

static int take_namespaces(struct pod *pod, char *text, size_t size)
{
	int fds[2] = { -1, -1 };
	char control[CMSG_SPACE(sizeof(fds))];
	struct iovec iov = { .iov_base = text, .iov_len = size - 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(pod->net_job_fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	struct cmsghdr *h = n >= 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	text[n > 0 ? n : 0] = '\0';
	if (!h)
		return ABX_EIO;
	if (h->cmsg_len == CMSG_LEN(2 * sizeof(int))) {
		memcpy(fds, CMSG_DATA(h), sizeof(fds));
		pod->userns_fd = fds[0];
		pod->netns_fd = fds[1];
	} else {
		memcpy(&pod->netns_fd, CMSG_DATA(h), sizeof(int));
	}
	pod->has_net = true;
	return ABX_OK;
}

static void on_net_job(struct child *child, int status)
{
	struct pod *pod = child->owner;
	char text[1024];

	(void)status;
	if (take_namespaces(pod, text, sizeof(text)) < 0 && !pod->deleting)
		abx__pod_fail(pod, "StartError",
			      *text ? text : "the Pod's network could not be made");
	close(pod->net_job_fd);
	pod->net_job_fd = -1;
	abx__pod_step(pod);
}

static void start_net_job(struct pod *pod)
{
	int socks[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, socks) < 0) {
		abx__pod_fail(pod, "StartError", "no socket pair for the Pod's network");
		return;
	}
	pid = abx__child_fork();
	if (pid == 0)
		net_job_main(pod, socks[1]);
	close(socks[1]);
	if (pid < 0) {
		close(socks[0]);
		abx__pod_fail(pod, "StartError", "no process for the Pod's network");
		return;
	}
	pod->net_job_fd = socks[0];
	pod->net_job = (struct child){ .pid = pid, .on_exit = on_net_job, .owner = pod };
	abx__child_add(pod->podd, &pod->net_job);
}

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
	close_namespaces(pod);
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
		start_net_job(pod);
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

/* ---- requests ---- */

static const char *get_str(json_object *o, const char *key)
{
	json_object *v;

	return json_object_object_get_ex(o, key, &v) &&
			       json_object_is_type(v, json_type_string)
		       ? json_object_get_string(v)
		       : NULL;
}

static bool number_is_used(struct podd *podd, uint32_t n)
{
	for (struct pod *pod = podd->pods; pod; pod = pod->hh.next)
		if (pod->n == n)
			return true;
	return false;
}

static uint32_t free_number(struct podd *podd)
{
	uint32_t n = 0;

	while (number_is_used(podd, n))
		n++;
	return n;
}

static int take_readiness(struct pod *pod, json_object *request, abx_error **reterr)
{
	json_object *probe;

	return json_object_object_get_ex(request, "readiness", &probe)
		       ? abx__readiness_parse(probe, &pod->readiness, reterr)
		       : ABX_OK;
}

static int check_spec(struct podd *podd, const abx__spec *spec, abx_error **reterr)
{
	bool known = !spec->runtime_class;

	for (size_t i = 0; !known && i < podd->options.class_count; i++)
		known = strcmp(podd->options.classes[i].name, spec->runtime_class) == 0;
	if (!known)
		return abx__error_set(
			reterr, ABX_EUNSUPPORTED,
			"spec.runtimeClassName: this machine has no runtime class %s",
			spec->runtime_class);
	/* An init container is privileged only beside a main one that is. */
	if (podd->options.no_privileged && spec->main.privileged)
		return abx__error_set(
			reterr, ABX_EUNSUPPORTED,
			"spec.containers[0].securityContext.privileged: this "
			"machine runs no privileged Pods (agentbox-podd "
			"--no-privileged)");
	if (!podd->userns && !spec->main.privileged)
		return abx__error_set(reterr, ABX_EUNSUPPORTED,
				      "the kernel or file system of this machine lacks "
				      "idmapped mounts, which "
				      "isolate unprivileged Pods");
	return ABX_OK;
}

static int fill_pod(struct pod *pod, json_object *request, abx_error **reterr)
{
	json_object *t, *generation;
	const char *image = get_str(request, "image");
	int r;

	if (!json_object_object_get_ex(request, "template", &t) || !image || !*image ||
	    !json_object_object_get_ex(request, "generation", &generation))
		return abx__error_set(reterr, ABX_EINVAL,
				      "a Pod needs template, image and generation");
	r = abx__spec_parse(t, &pod->spec, reterr);
	if (r == ABX_OK)
		r = check_spec(pod->podd, pod->spec, reterr);
	if (r == ABX_OK)
		r = take_readiness(pod, request, reterr);
	if (r < 0)
		return r;
	pod->template_json = json_object_get(t);
	pod->generation = (uint64_t)json_object_get_int64(generation);
	if (pod->generation < 1)
		return abx__error_set(reterr, ABX_EINVAL,
				      "a Pod's generation starts at 1");
	pod->since_ms = abx__wall_ms();
	pod->n = free_number(pod->podd);
	pod->image = abx__strdup(image);
	if (!pod->image)
		return abx__error_nomem(reterr);
	return pod->n < PODS_MAX ? ABX_OK
				 : abx__error_set(reterr, ABX_EEXHAUSTED,
						  "there are %u Pods already", PODS_MAX);
}

static int make_folder(struct pod *pod, abx_error **reterr)
{
	char path[256];

	snprintf(path, sizeof(path), "pods/%s", pod->key);
	if (mkdirat(pod->podd->dir_fd, path, 0700) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "folder of Pod %s",
					pod->name);
	if (abx__folder_make_volumes(pod, reterr) < 0)
		return ABX_EIO;
	if (abx__folder_save_pod(pod) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "pod.json of Pod %s",
					pod->name);
	return abx__cgroup_make(pod->podd, pod->key, &pod->spec->main, reterr);
}

int abx__pod_create(struct podd *podd, json_object *request, abx_error **reterr)
{
	const char *ns = get_str(request, "ns"), *name = get_str(request, "name");
	struct pod *pod;
	char path[256];
	int r;

	if (!ns || !name || !name_is_valid(ns) || !name_is_valid(name))
		return abx__error_set(
			reterr, ABX_EINVAL,
			"a Pod's namespace and name are [a-z0-9-], at most 63");
	if (abx__pod_find(podd, ns, name))
		return abx__error_set(reterr, ABX_EEXISTS, "Pod %s exists", name);
	pod = abx__pod_alloc(podd, ns, name);
	if (!pod)
		return abx__error_nomem(reterr);
	r = fill_pod(pod, request, reterr);
	if (r == ABX_OK) {
		r = make_folder(pod, reterr);
		if (r < 0) {
			abx__cgroup_remove(podd, pod->key);
			snprintf(path, sizeof(path), "pods/%s", pod->key);
			abx__folder_trash(podd, path);
		}
	}
	if (r < 0) {
		abx__pod_free(pod);
		return r;
	}
	HASH_ADD_STR(podd->pods, key, pod);
	abx__pod_step(pod);
	return ABX_OK;
}

int abx__pod_swap(struct podd *podd, struct pod *pod, json_object *request,
		  abx_error **reterr)
{
	const char *image = get_str(request, "image");
	json_object *generation, *restart, *keep;
	bool kept;
	char *copy;

	if (!image || !*image ||
	    !json_object_object_get_ex(request, "generation", &generation))
		return abx__error_set(reterr, ABX_EINVAL,
				      "a swap needs image and generation");
	if ((uint64_t)json_object_get_int64(generation) <= pod->generation)
		return abx__error_set(reterr, ABX_ECONFLICT,
				      "Pod %s is at generation %llu", pod->name,
				      (unsigned long long)pod->generation);
	copy = abx__strdup(image);
	if (!copy)
		return abx__error_nomem(reterr);
	abx__free(pod->image);
	pod->image = copy;
	pod->generation = (uint64_t)json_object_get_int64(generation);
	pod->since_ms = abx__wall_ms();
	pod->activity = POD_RUN;
	kept = json_object_object_get_ex(request, "keep", &keep) &&
	       json_object_get_boolean(keep);
	if (kept)
		abx__pod_keep_for_next(pod);
	else
		abx__pod_drop_kept(pod);
	if (json_object_object_get_ex(request, "restart", &restart) &&
	    json_object_get_boolean(restart))
		pod->wipe = true;
	/* Begun before it is written down, unless files are at stake: should podd die in
	 * between, what was begun dies with it, and agentboxd, whose document has the
	 * generation, asks again. */
	if (!kept)
		abx__pod_step(pod);
	if (abx__folder_save_pod(pod) < 0)
		abx__log_warn(podd->log, "pod.json not written", "pod=%s", pod->name);
	if (kept)
		abx__pod_step(pod);
	return ABX_OK;
}

void abx__pod_delete(struct pod *pod)
{
	pod->deleting = true;
	abx__probe_stop(pod);
	pod->ready = false;
	abx__pod_step(pod);
}

/* ---- a connection into it ---- */

static int socket_inside(struct pod *pod, int family, abx_error **reterr)
{
	int fd, error;

	if (setns(pod->netns_fd, CLONE_NEWNET) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "network of Pod %s",
					pod->name);
	fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	error = fd < 0 ? errno : 0;
	if (setns(pod->podd->host_netns_fd, CLONE_NEWNET) < 0)
		_exit(70); /* never go on in a Pod's network */
	return fd < 0 ? abx__error_errno(reterr, ABX_EIO, error, "socket") : fd;
}

/* 0, or what went wrong, as errno has it. Over loopback the answer is there when
 * connect(2) returns, unless the listener's queue is full. */
static int connect_now(int fd, const struct sockaddr *to, socklen_t to_len,
		       bool *ret_pending)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int error = 0;

	if (connect(fd, to, to_len) < 0 && errno != EINPROGRESS)
		return errno;
	*ret_pending = poll(&poll_fd, 1, 0) == 0;
	if (!*ret_pending && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		return errno;
	return error;
}

int abx__pod_connect(struct pod *pod, uint16_t port, int *ret_fd, bool *ret_pending,
		     abx_error **reterr)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
				   .sin6_port = htons(port),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	ABX_CLEANUP(abx__closep) int fd = -1;
	int error;

	if (pod->netns_fd < 0)
		return abx__error_set(reterr, ABX_EUNAVAILABLE,
				      "Pod %s has no network yet", pod->name);
	fd = socket_inside(pod, AF_INET, reterr);
	if (fd < 0)
		return fd;
	error = connect_now(fd, (struct sockaddr *)&v4, sizeof(v4), ret_pending);
	/* Servers told to listen on "localhost" may have taken ::1 for it. */
	if (error == ECONNREFUSED) {
		close(fd);
		fd = socket_inside(pod, AF_INET6, NULL);
		if (fd >= 0)
			error = connect_now(fd, (struct sockaddr *)&v6, sizeof(v6),
					    ret_pending);
	}
	if (error)
		return abx__error_errno(reterr, ABX_EUNAVAILABLE, error,
					"port %u of Pod %s", port, pod->name);
	*ret_fd = abx_take_fd(fd);
	return ABX_OK;
}
