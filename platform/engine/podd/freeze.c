/*
 * freeze.c - what a Pod's main container is to do: run, stand still with its memory, or
 * be ended with its file system kept.
 *
 * Freezing is the kernel's: the Pod's cgroup, v1 freezer or v2 cgroup.freeze. It takes
 * effect when the last process has been caught, so a timer looks until then; a Pod is
 * shown as frozen only once nothing of it runs. The wish stands in pod.json, so a new
 * podd goes on with it. A stopped Pod's container folder (its upper layer) is named by
 * pod->kept and not trashed; the next start takes it over.
 */
#include "engine/podd/podd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/str.h"

#define LOOK_FIRST_MS 1
#define LOOK_LAST_MS 50

static const char *const names[] = {
	[POD_RUN] = "run",
	[POD_FREEZE] = "freeze",
	[POD_STOP] = "stop",
};

const char *abx__pod_activity_name(enum pod_activity activity)
{
	return names[activity];
}

int abx__pod_activity_parse(const char *name, enum pod_activity *ret)
{
	for (int i = POD_RUN; name && i <= POD_STOP; i++) {
		if (strcmp(names[i], name) == 0) {
			*ret = (enum pod_activity)i;
			return ABX_OK;
		}
	}
	return ABX_EINVAL;
}

/* ---- catching the last process ---- */

static void show(struct pod *pod, enum pod_activity activity)
{
	if (pod->shown == activity)
		return;
	pod->shown = activity;
	abx__server_pod(pod->podd, pod);
}

static void stands_still(struct pod *pod)
{
	if (pod->activity == POD_FREEZE)
		show(pod, POD_FREEZE);
	if (pod->snapshot)
		abx__snapshot_frozen(pod);
}

static void on_look(uv_timer_t *timer)
{
	struct podd *podd = timer->data;
	bool left = false;

	for (struct pod *pod = podd->pods; pod; pod = pod->hh.next) {
		if (!pod->freezing)
			continue;
		if (abx__cgroup_is_frozen(podd, pod->key)) {
			pod->freezing = false;
			pod->frozen = true;
			stands_still(pod);
		} else {
			/* The v1 freezer asks each process once. One that goes to wait in
			 * vfork(2) just then is not asked again until this is written. */
			abx__cgroup_freeze(podd, pod->key, true);
			left = true;
		}
	}
	if (!left)
		return;
	podd->freeze_look_ms *= 2;
	if (podd->freeze_look_ms > LOOK_LAST_MS)
		podd->freeze_look_ms = LOOK_LAST_MS;
	uv_timer_start(timer, on_look, podd->freeze_look_ms, 0);
}

static void freeze(struct pod *pod)
{
	struct podd *podd = pod->podd;

	if (pod->freezing)
		return;
	if (pod->frozen) {
		stands_still(pod);
		return;
	}
	abx__probe_stop(pod);
	abx__cgroup_freeze(podd, pod->key, true);
	pod->freezing = true;
	podd->freeze_look_ms = LOOK_FIRST_MS;
	uv_timer_start(&podd->freeze_timer, on_look, LOOK_FIRST_MS, 0);
}

void abx__pod_thaw(struct pod *pod)
{
	if (!pod->freezing && !pod->frozen)
		return;
	abx__cgroup_freeze(pod->podd, pod->key, false);
	pod->freezing = pod->frozen = false;
	/* Its probe was stopped, or never asked anything when podd is a new one. */
	if (abx__probe_is_due(pod) &&
	    (!pod->ready || abx__readiness_goes_on(&pod->readiness)))
		abx__probe_start(pod);
	show(pod, POD_RUN);
}

/* ---- what is wished ---- */

/* Its folder is what a start goes on with: from now on nobody trashes it. */
static void keep_files(struct pod *pod)
{
	if (pod->container && !pod->container->is_init)
		abx__str_copy(pod->kept, sizeof(pod->kept), pod->container->dir);
}

void abx__pod_drop_kept(struct pod *pod)
{
	char path[256];

	if (!pod->kept[0])
		return;
	snprintf(path, sizeof(path), "pods/%s/%s", pod->key, pod->kept);
	pod->kept[0] = '\0';
	/* A container that still uses it trashes it when it ends. */
	for (const struct container *c = pod->dying; c; c = c->next)
		if (strcmp(strrchr(path, '/') + 1, c->dir) == 0)
			return;
	if (!pod->container || strcmp(strrchr(path, '/') + 1, pod->container->dir) != 0)
		abx__folder_trash(pod->podd, path);
}

void abx__pod_keep_for_next(struct pod *pod)
{
	keep_files(pod);
}

int abx__pod_set_activity(struct pod *pod, const char *name, abx_error **reterr)
{
	enum pod_activity activity;

	if (abx__pod_activity_parse(name, &activity) < 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "activity is run, freeze or stop");
	if (activity == POD_FREEZE && !abx__cgroups_can_freeze(pod->podd))
		return abx__error_set(reterr, ABX_EUNSUPPORTED,
				      "this machine has no cgroup freezer");
	if (activity == pod->activity)
		return ABX_OK;
	/* What runs is a generation further than what was stopped: the swap says so. */
	if (activity == POD_RUN && pod->activity == POD_STOP)
		return abx__error_set(reterr, ABX_ECONFLICT,
				      "Pod %s is stopped: a swap starts it", pod->name);
	if (activity == POD_STOP)
		keep_files(pod);
	pod->activity = activity;
	if (abx__folder_save_pod(pod) < 0)
		abx__log_warn(pod->podd->log, "pod.json not written", "pod=%s",
			      pod->name);
	abx__pod_step(pod);
	return ABX_OK;
}

bool abx__pod_rests(struct pod *pod)
{
	struct container *c = pod->container;

	if (pod->activity == POD_STOP) {
		abx__pod_thaw(pod);
		if (!c && !pod->dying)
			show(pod, POD_STOP);
		return true;
	}
	if (pod->activity == POD_FREEZE || pod->snapshot) {
		if (pod->activity != POD_FREEZE)
			show(pod, POD_RUN);
		if (c && !c->is_init && c->state == CONTAINER_RUNNING && !c->ending &&
		    c->generation == pod->generation)
			freeze(pod);
		return false;
	}
	abx__pod_thaw(pod);
	show(pod, POD_RUN);
	return false;
}

/* ---- taking a folder over ---- */

/* overlayfs marks the work folder of a volatile mount and refuses it afterwards, since
 * after a power cut the upper layer may be torn. There was none: the machine still runs,
 * or the layer was synced when its container had ended. */
static void unmark(int dir_fd, const char *path, const char *work)
{
	static const char *const marks[] = { "/volatile/dirty", "/volatile", "" };
	char name[320];

	for (size_t i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "%s/%s/%s/incompat%s", path, work, "work",
			 marks[i]);
		unlinkat(dir_fd, name, i == 0 ? 0 : AT_REMOVEDIR);
	}
}

void abx__folder_reuse(struct podd *podd, const char *path)
{
	unmark(podd->dir_fd, path, "wk");
	unmark(podd->dir_fd, path, "uwk");
}
