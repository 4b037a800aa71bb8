/*
 * pod-request.c - what agentboxd asks for: a Pod is checked and made, swapped, deleted.
 * The rest is a step (pod.c).
 */
#include "engine/podd/podd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

#define PODS_MAX 4096u

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

	if (!ns || !name || !abx__pod_name_is_valid(ns) || !abx__pod_name_is_valid(name))
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
