/*
 * folder.c - a Pod's folder: pod.json (what should be), run.json (what runs), vol/, a
 * folder a container, log; adoption after podd's restart; and the trash, emptied by a
 * child off everyone's path.
 *
 * agentboxd's documents are the truth about which Pods there are; the folder is what lets
 * podd find a running one again.
 */
#include "engine/podd/podd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

static void add_str(json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, json_object_new_string(value));
}

static void add_u64(json_object *o, const char *key, uint64_t value)
{
	json_object_object_add(o, key, json_object_new_int64((int64_t)value));
}

int abx__folder_save_pod(struct pod *pod)
{
	json_object *o = json_object_new_object();
	char path[256];
	int r;

	if (!o)
		return ABX_ENOMEM;
	add_str(o, "ns", pod->ns);
	add_str(o, "name", pod->name);
	add_u64(o, "n", pod->n);
	add_str(o, "image", pod->image);
	add_u64(o, "generation", pod->generation);
	json_object_object_add(o, "wipe", json_object_new_boolean(pod->wipe));
	add_u64(o, "init_next", pod->init_next);
	add_str(o, "activity", abx__pod_activity_name(pod->activity));
	if (pod->kept[0])
		add_str(o, "kept", pod->kept);
	if (pod->readiness.port)
		json_object_object_add(o, "readiness",
				       abx__readiness_print(&pod->readiness));
	json_object_object_add(o, "template", json_object_get(pod->template_json));
	snprintf(path, sizeof(path), "pods/%s/pod.json", pod->key);
	r = abx__fs_replace_json(pod->podd->dir_fd, path, o);
	json_object_put(o);
	return r;
}

static char *boot_id(void)
{
	char *id = abx__fs_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 64, NULL);

	if (id)
		id[strcspn(id, "\n")] = '\0';
	return id;
}

int abx__folder_save_run(struct pod *pod, const struct container *c)
{
	json_object *o = json_object_new_object();
	char *boot = boot_id();
	char path[256];
	int r = ABX_ENOMEM;

	if (o && boot) {
		add_str(o, "boot", boot);
		add_u64(o, "pid", (uint64_t)c->init.pid);
		add_u64(o, "start", c->start_time);
		add_str(o, "dir", c->dir);
		add_str(o, "image", c->image_name);
		add_u64(o, "generation", c->generation);
		json_object_object_add(o, "idle", json_object_new_boolean(c->is_idle));
		if (c->image)
			json_object_object_add(o, "image_data",
					       abx__image_to_json(c->image));
		snprintf(path, sizeof(path), "pods/%s/run.json", pod->key);
		r = abx__fs_replace_json(pod->podd->dir_fd, path, o);
	}
	json_object_put(o);
	abx__free(boot);
	return r;
}

static bool init_mounts(const abx__spec *spec, const char *volume)
{
	for (size_t k = 0; k < spec->init_count; k++)
		for (size_t i = 0; i < spec->init[k].mount_count; i++)
			if (strcmp(spec->init[k].mounts[i].volume, volume) == 0)
				return true;
	return false;
}

int abx__folder_make_volumes(struct pod *pod, abx_error **reterr)
{
	struct podd *podd = pod->podd;
	uid_t root = pod->spec->main.privileged ? 0 : abx__net_id_base(podd, pod->n);
	char path[256];

	snprintf(path, sizeof(path), "pods/%s/vol", pod->key);
	if (abx__fs_mkdir(podd->dir_fd, path, 0700, 0) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "%s", path);
	for (size_t i = 0; i < pod->spec->volume_count; i++) {
		const abx__spec_volume *v = &pod->spec->volumes[i];

		if (v->memory)
			continue;
		snprintf(path, sizeof(path), "pods/%s/vol/%s", pod->key, v->name);
		/* Those main may write to start empty with every restart; those init
		 * containers fill are kept from it. */
		if (pod->wipe && abx__spec_main_writes(pod->spec, v->name)) {
			abx__folder_trash(podd, path);
			if (init_mounts(pod->spec, v->name))
				pod->init_next = 0;
		}
		if (abx__fs_mkdir(podd->dir_fd, path, 0777, root) < 0)
			return abx__error_errno(reterr, ABX_EIO, errno, "volume %s",
						v->name);
	}
	pod->wipe = false;
	return ABX_OK;
}

/* ---- trash ---- */

#define TRASH_DELAY_MS 30

static void on_trash_timer(uv_timer_t *timer)
{
	abx__folder_trash_kick(timer->data);
}

/* Not at once: what makes trash is often a swap, and whoever waits for that goes first.
 */
void abx__folder_trash_soon(struct podd *podd)
{
	if (!uv_is_active((uv_handle_t *)&podd->trash_timer))
		uv_timer_start(&podd->trash_timer, on_trash_timer, TRASH_DELAY_MS, 0);
}

void abx__folder_trash(struct podd *podd, const char *path)
{
	char to[64];

	snprintf(to, sizeof(to), "trash/%llu", (unsigned long long)++podd->trash_seq);
	if (renameat2(podd->dir_fd, path, podd->dir_fd, to, RENAME_NOREPLACE) == 0)
		abx__folder_trash_soon(podd);
	else if (errno == EEXIST)
		abx__folder_trash(podd, path);
}

/* Moves away what a folder holds, but for what `keep` wants. */
static void trash_entries(struct podd *podd, const char *folder,
			  bool (*keep)(struct podd *podd, const char *name))
{
	int fd = openat(podd->dir_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[512];

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    (keep && keep(podd, e->d_name)))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		abx__folder_trash(podd, path);
	}
	if (d)
		closedir(d);
}

static bool is_a_pods(struct podd *podd, const char *name)
{
	struct pod *pod = NULL;

	HASH_FIND_STR(podd->pods, name, pod);
	return pod || name[0] == '.';
}

/* Folders of Pods that are gone, whose move to the trash failed. */
void abx__folder_sweep(struct podd *podd)
{
	trash_entries(podd, "pods", is_a_pods);
}

void abx__folder_trash_entries(struct podd *podd, const char *folder)
{
	trash_entries(podd, folder, NULL);
}

static void on_trash_done(struct child *child, int status)
{
	struct podd *podd = child->owner;

	(void)status;
	if (podd->trash_again) {
		podd->trash_again = false;
		abx__folder_trash_kick(podd);
	}
}

void abx__folder_trash_kick(struct podd *podd)
{
	pid_t pid;

	if (podd->trash_job.pid) {
		podd->trash_again = true;
		return;
	}
	pid = abx__child_fork();
	if (pid == 0) {
		ABX_CLEANUP(abx__closep)
		int fd =
			openat(podd->dir_fd, "trash", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		setpriority(PRIO_PROCESS, 0, 10);
		if (fd >= 0)
			abx__fs_empty(fd);
		abx__spares_make(podd);
		_exit(0);
	}
	if (pid < 0)
		return;
	podd->trash_job =
		(struct child){ .pid = pid, .on_exit = on_trash_done, .owner = podd };
	abx__child_add(podd, &podd->trash_job);
}

/* ---- adoption ---- */

static const char *get_str(json_object *o, const char *key)
{
	json_object *v;

	return json_object_object_get_ex(o, key, &v) &&
			       json_object_is_type(v, json_type_string)
		       ? json_object_get_string(v)
		       : NULL;
}

static uint64_t get_u64(json_object *o, const char *key)
{
	json_object *v;

	return json_object_object_get_ex(o, key, &v) &&
			       json_object_is_type(v, json_type_int)
		       ? (uint64_t)json_object_get_int64(v)
		       : 0;
}

static int open_ns(pid_t pid, const char *what)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, what);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* The container of run.json, if it still runs: same boot, same process. Its namespaces
 * are the Pod's. */
static void adopt_container(struct pod *pod)
{
	char path[256], *boot = boot_id();
	json_object *o;
	struct container *c = NULL;
	const char *dir, *image, *was;
	pid_t pid;

	snprintf(path, sizeof(path), "pods/%s/run.json", pod->key);
	o = abx__fs_read_json(pod->podd->dir_fd, path);
	if (o && boot && (dir = get_str(o, "dir")) && (image = get_str(o, "image")) &&
	    (was = get_str(o, "boot")) && strcmp(was, boot) == 0) {
		pid = (pid_t)get_u64(o, "pid");
		if (pid > 1 &&
		    abx__container_adopt(pod, pid, get_u64(o, "start"), dir, image,
					 get_u64(o, "generation"), &c) == ABX_OK) {
			pod->netns_fd = open_ns(pid, "net");
			pod->userns_fd =
				pod->spec->main.privileged ? -1 : open_ns(pid, "user");
			/* Still the same process after its namespaces were opened? */
			if (pod->netns_fd >= 0 &&
			    abx__proc_start_time(pid) == get_u64(o, "start")) {
				json_object *idle, *data;

				pod->has_net = true;
				pod->container = c;
				if (json_object_object_get_ex(o, "image_data", &data))
					c->image = abx__image_from_json(pod->podd, image,
									data);
				c->is_idle =
					json_object_object_get_ex(o, "idle", &idle) &&
					json_object_get_boolean(idle);
			}
		}
	}
	if (c && !pod->container) {
		c->handled = true;
		abx__container_end(c);
		c->next = pod->dying;
		pod->dying = c;
	}
	json_object_put(o);
	abx__free(boot);
}

/* Containers' folders nobody uses any more, and spares of an earlier podd. */
static void trash_containers(struct pod *pod)
{
	char path[512];
	DIR *d;
	struct dirent *e;
	int fd;

	snprintf(path, sizeof(path), "pods/%s", pod->key);
	fd = openat(pod->podd->dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd >= 0 ? fdopendir(fd) : NULL;
	while (d && (e = readdir(d))) {
		if ((e->d_name[0] != 'c' && strncmp(e->d_name, "spare-", 6) != 0) ||
		    e->d_type != DT_DIR || strcmp(pod->kept, e->d_name) == 0 ||
		    (pod->container && strcmp(pod->container->dir, e->d_name) == 0) ||
		    (pod->dying && strcmp(pod->dying->dir, e->d_name) == 0))
			continue;
		snprintf(path, sizeof(path), "pods/%s/%s", pod->key, e->d_name);
		abx__folder_trash(pod->podd, path);
	}
	if (d)
		closedir(d);
}

static struct pod *load_pod(struct podd *podd, const char *folder)
{
	char path[512];
	json_object *o, *t = NULL;
	const char *ns, *name, *image;
	struct pod *pod = NULL;

	snprintf(path, sizeof(path), "pods/%s/pod.json", folder);
	o = abx__fs_read_json(podd->dir_fd, path);
	if (!o)
		return NULL;
	ns = get_str(o, "ns");
	name = get_str(o, "name");
	image = get_str(o, "image");
	if (ns && name && image && json_object_object_get_ex(o, "template", &t))
		pod = abx__pod_alloc(podd, ns, name);
	if (pod &&
	    (strcmp(pod->key, folder) != 0 || abx__spec_parse(t, &pod->spec, NULL) < 0 ||
	     !(pod->image = abx__strdup(image)))) {
		abx__pod_free(pod);
		pod = NULL;
	}
	if (pod) {
		json_object *wipe, *readiness;
		const char *kept = get_str(o, "kept");

		/* A folder of an earlier release says nothing: it runs. */
		abx__pod_activity_parse(get_str(o, "activity"), &pod->activity);
		if (kept && strchr(kept, '/') == NULL)
			abx__str_copy(pod->kept, sizeof(pod->kept), kept);

		pod->template_json = json_object_get(t);
		pod->n = (uint32_t)get_u64(o, "n");
		pod->generation = get_u64(o, "generation");
		pod->init_next = get_u64(o, "init_next");
		pod->wipe = json_object_object_get_ex(o, "wipe", &wipe) &&
			    json_object_get_boolean(wipe);
		if (json_object_object_get_ex(o, "readiness", &readiness))
			abx__readiness_parse(readiness, &pod->readiness, NULL);
	}
	json_object_put(o);
	return pod;
}

static void adopt_pod(struct podd *podd, const char *folder)
{
	struct pod *pod = load_pod(podd, folder);
	abx_error *err = NULL;
	char path[512];

	if (!pod) {
		abx__log_warn(podd->log,
			      "a Pod's folder does not hold together and is removed",
			      "folder=%s", folder);
		snprintf(path, sizeof(path), "pods/%s", folder);
		abx__cgroup_kill(podd, folder);
		abx__folder_trash(podd, path);
		return;
	}
	HASH_ADD_STR(podd->pods, key, pod);
	adopt_container(pod);
	/* Processes podd does not know: a container that was being started when podd
	 * died. */
	if (!pod->container)
		abx__cgroup_kill(podd, pod->key);
	trash_containers(pod);
	if (abx__cgroup_make(podd, pod->key, &pod->spec->main, &err) < 0)
		abx__log_warn(podd->log, "limits could not be set again",
			      "pod=%s error=%s", pod->name, abx_error_message(err));
	abx_error_free(err);
	if (pod->container && pod->container->generation == pod->generation)
		abx__pod_container_running(pod->container);
}

void abx__folder_adopt(struct podd *podd)
{
	DIR *d;
	struct dirent *e;
	int fd = openat(podd->dir_fd, "pods", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	d = fd >= 0 ? fdopendir(fd) : NULL;
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			adopt_pod(podd, e->d_name);
	if (d)
		closedir(d);
}
