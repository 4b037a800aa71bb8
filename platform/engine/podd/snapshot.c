/*
 * snapshot.c - a container's files as an image: `snapshot:ID`.
 *
 * The Pod stands still while a child copies its upper layers into a new layer, layers/
 * snap-ID, above those of the image it runs; snapshots/ID.json says which layers these
 * are, as a pulled image's file does. The child answers twice: a byte when the copy is
 * done, so that the Pod goes on before the disk has it all; its end when it is safe.
 *
 * A deleted snapshot is marked, and cannot be started any more; its file and its layer go
 * when no Pod runs from it and no other snapshot stands on it. abx__snapshots_sweep()
 * looks, whenever that may have become so and now and then.
 */
#include "engine/podd/image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "engine/podd/tree-copy.h"

#define FOLDER "snapshots"
#define LAYER_PREFIX "snap-"
#define DEADLINE_MS (10 * 60 * 1000)
#define ENTRIES_MAX 4000000u
#define BYTES_MAX ((uint64_t)16 << 30)
#define FREEZE_MS 15000
#define ABORTED "the Pod was stopped, swapped or deleted meanwhile"

struct snapshot_job {
	struct podd *podd;
	char id[ABX__SNAPSHOT_ID_MAX + 1];
	struct pod *pod; /* NULL once it goes on without being waited for */
	struct child child;
	int pipe_fd, child_fd;
	uv_poll_t poll;
	uv_timer_t deadline;
	unsigned closing;
	bool copied, aborted;
	char text[1024]; /* what the child says: "." when copied, then BYTES or an error
			  */
	size_t len;
	struct snapshot_job *next;
};

bool abx__snapshot_id_is_valid(const char *id)
{
	size_t len = strlen(id);

	return len >= 1 && len <= ABX__SNAPSHOT_ID_MAX &&
	       strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") == len;
}

const char *abx__snapshot_id_of(const char *reference)
{
	return abx__str_starts(reference, ABX__SNAPSHOT_SCHEME)
		       ? reference + strlen(ABX__SNAPSHOT_SCHEME)
		       : NULL;
}

static void file_of(const char *id, char out[96])
{
	snprintf(out, 96, FOLDER "/%.*s.json", ABX__SNAPSHOT_ID_MAX, id);
}

json_object *abx__snapshot_read(struct podd *podd, const char *id)
{
	char file[96];

	if (!abx__snapshot_id_is_valid(id))
		return NULL;
	file_of(id, file);
	return abx__fs_read_json(podd->dir_fd, file);
}

/* What a killed child leaves lies where its parent finds it. */
static void tmp_of(const struct snapshot_job *job, char out[64])
{
	snprintf(out, 64, "tmp/" LAYER_PREFIX "%s", job->id);
}

/* ---- in the child ---- */

static int open_in(struct podd *podd, const char *pod, const char *dir, const char *sub)
{
	char path[320];

	snprintf(path, sizeof(path), "pods/%s/%s/%s", pod, dir, sub);
	return openat(podd->dir_fd, path,
		      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int copy_upper(struct snapshot_job *job, const char *dir, const char *sub,
		      const char *to, struct tree_copy *copy, abx_error **reterr)
{
	struct podd *podd = job->podd;
	ABX_CLEANUP(abx__closep) int from = open_in(podd, job->pod->key, dir, sub);
	ABX_CLEANUP(abx__closep) int into = -1;

	if (mkdirat(podd->dir_fd, to, 0755) < 0 && errno != EEXIST)
		return abx__error_errno(reterr, ABX_EIO, errno, "%s", to);
	into = openat(podd->dir_fd, to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0 || into < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "layer of Pod %s",
					job->pod->name);
	return abx__tree_copy(copy, from, into, reterr);
}

/* hosts, hostname and resolv.conf come along, and are covered by the next Pod's own. */
static int copy_all(struct snapshot_job *job, const struct image *image, const char *dir,
		    const char *tmp, uint64_t *ret_bytes, abx_error **reterr)
{
	struct pod *pod = job->pod;
	struct tree_copy copy = {
		.id_base = pod->userns_fd >= 0 ? abx__net_id_base(job->podd, pod->n) : 0,
		.devices = pod->spec->main.privileged,
		.bytes_max = BYTES_MAX,
		.entries_max = ENTRIES_MAX,
	};
	char usr[96];
	int r = copy_upper(job, dir, "up", tmp, &copy, reterr);

	snprintf(usr, sizeof(usr), "%s/usr", tmp);
	if (r == ABX_OK && image->host_usr)
		r = copy_upper(job, dir, "uup", usr, &copy, reterr);
	*ret_bytes = copy.bytes;
	return r;
}

static int keep(struct snapshot_job *job, const struct image *image, const char *tmp,
		uint64_t bytes, abx_error **reterr)
{
	struct podd *podd = job->podd;
	json_object *o = abx__image_to_json(image), *layers = NULL;
	char layer[64], file[96];
	int r;

	snprintf(layer, sizeof(layer), LAYER_PREFIX "%s", job->id);
	r = abx__image_keep_layer(podd, tmp, layer, reterr);
	if (r < 0) {
		json_object_put(o);
		return r;
	}
	if (!o || !json_object_object_get_ex(o, "layers", &layers) ||
	    json_object_array_add(layers, json_object_new_string(layer)) < 0) {
		json_object_put(o);
		return abx__error_nomem(reterr);
	}
	json_object_object_add(o, "bytes", json_object_new_int64((int64_t)bytes));
	file_of(job->id, file);
	if (abx__fs_replace_json(podd->dir_fd, file, o) < 0)
		r = abx__error_errno(reterr, ABX_EIO, errno, "%s", file);
	json_object_put(o);
	return r;
}

static _Noreturn void job_main(struct snapshot_job *job, const struct image *image,
			       const char *dir, int fd)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	uint64_t bytes = 0;
	char tmp[64];
	int r = ABX_OK;

	umask(022);
	tmp_of(job, tmp);
	if (abx__fs_mkdir(job->podd->dir_fd, tmp, 0755, 0) < 0)
		r = abx__error_errno(&err, ABX_EIO, errno, "%s", tmp);
	if (r == ABX_OK)
		r = copy_all(job, image, dir, tmp, &bytes, &err);
	if (r == ABX_OK)
		r = keep(job, image, tmp, bytes, &err);
	if (r < 0) {
		dprintf(fd, "!%d %s", r, abx_error_message(err));
		_exit(1);
	}
	dprintf(fd, ".");
	/* Only now may anybody be told: a snapshot outlives a power cut. */
	setpriority(PRIO_PROCESS, 0, 10);
	syncfs(job->podd->dir_fd);
	dprintf(fd, "%llu", (unsigned long long)bytes);
	_exit(0);
}

/* ---- in podd ---- */

static void on_job_closed(uv_handle_t *handle)
{
	struct snapshot_job *job = handle->data;

	if (--job->closing == 0)
		abx__free(job);
}

static void job_forget(struct snapshot_job *job)
{
	struct snapshot_job **at = &job->podd->snapshots;

	while (*at && *at != job)
		at = &(*at)->next;
	if (*at)
		*at = job->next;
	abx__child_forget(job->podd, &job->child);
	close(job->pipe_fd);
	if (job->child_fd >= 0)
		close(job->child_fd);
	job->closing = 2;
	uv_close((uv_handle_t *)&job->poll, on_job_closed);
	uv_close((uv_handle_t *)&job->deadline, on_job_closed);
}

/* The Pod need not stand still for it any longer. */
static void let_go(struct snapshot_job *job)
{
	struct pod *pod = job->pod;

	if (!pod)
		return;
	job->pod = NULL;
	pod->snapshot = NULL;
	abx__pod_step(pod);
}

static void tell(struct snapshot_job *job, int r, uint64_t bytes, const char *message)
{
	abx__server_snapshot(job->podd, job->id, r, bytes, message);
	if (r < 0)
		abx__log_warn(job->podd->log, "snapshot not made",
			      "snapshot=%s message=%s", job->id, message);
}

static void read_pipe(struct snapshot_job *job)
{
	ssize_t n = read(job->pipe_fd, job->text + job->len,
			 sizeof(job->text) - 1 - job->len);

	if (n > 0)
		job->len += (size_t)n;
	job->text[job->len] = '\0';
}

static void on_pipe(uv_poll_t *poll, int status, int events)
{
	struct snapshot_job *job = poll->data;

	(void)events;
	read_pipe(job);
	if (status < 0 || job->len == 0 || job->copied)
		uv_poll_stop(poll);
	if (job->text[0] == '.' && !job->copied) {
		job->copied = true;
		let_go(job);
	}
}

static void on_job_exit(struct child *child, int status)
{
	struct snapshot_job *job = child->owner;
	uint64_t bytes = 0;
	int64_t code = ABX_EIO;
	char *text, tmp[64];

	uv_poll_stop(&job->poll);
	read_pipe(job);
	text = job->text;
	let_go(job);
	if (status == 0 && text[0] == '.' &&
	    abx__parse_u64(text + 1, 0, UINT64_MAX, &bytes) == ABX_OK) {
		tell(job, ABX_OK, bytes, "");
	} else {
		char *space = text[0] == '!' ? strchr(text, ' ') : NULL;

		if (space) {
			*space = '\0';
			if (abx__parse_i64(text + 1, INT32_MIN, -1, &code) < 0)
				code = ABX_EIO;
		}
		tell(job, job->aborted ? ABX_ECONFLICT : (int)code, 0,
		     job->aborted ? ABORTED
		     : space      ? space + 1
				  : "the process that copied the files died");
		tmp_of(job, tmp);
		abx__folder_trash(job->podd, tmp);
		abx__snapshot_delete(job->podd, job->id);
	}
	job_forget(job);
}

static void on_deadline(uv_timer_t *timer)
{
	struct snapshot_job *job = timer->data;

	if (job->child.pid) {
		kill(job->child.pid, SIGKILL);
		return;
	}
	tell(job, ABX_ETIMEDOUT, 0, "the Pod did not stand still");
	let_go(job);
	job_forget(job);
}

void abx__snapshot_abort(struct pod *pod)
{
	struct snapshot_job *job = pod->snapshot;

	if (!job)
		return;
	job->pod = NULL;
	job->aborted = true;
	pod->snapshot = NULL;
	if (job->child.pid) {
		kill(job->child.pid, SIGKILL);
		return;
	}
	/* It never began: the Pod did not stand still yet. */
	tell(job, ABX_ECONFLICT, 0, ABORTED);
	job_forget(job);
}

void abx__snapshot_frozen(struct pod *pod)
{
	struct snapshot_job *job = pod->snapshot;
	const struct container *c = pod->container;
	pid_t pid;

	if (job->child.pid)
		return;
	pid = abx__child_fork();
	if (pid == 0)
		job_main(job, c->image, c->dir, job->child_fd);
	close(job->child_fd);
	job->child_fd = -1;
	if (pid < 0) {
		tell(job, ABX_EIO, 0, "no process could be started to copy the files");
		let_go(job);
		job_forget(job);
		return;
	}
	job->child = (struct child){ .pid = pid, .on_exit = on_job_exit, .owner = job };
	abx__child_add(pod->podd, &job->child);
	uv_timer_start(&job->deadline, on_deadline, DEADLINE_MS, 0);
}

static struct snapshot_job *job_new(struct pod *pod, const char *id)
{
	struct snapshot_job *job = abx__calloc(1, sizeof(*job));
	int fds[2];

	if (!job || pipe2(fds, O_CLOEXEC) < 0) {
		abx__free(job);
		return NULL;
	}
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	job->pipe_fd = fds[0];
	job->child_fd = fds[1];
	if (uv_poll_init(&pod->podd->loop, &job->poll, job->pipe_fd) < 0) {
		close(fds[0]);
		close(fds[1]);
		abx__free(job);
		return NULL;
	}
	uv_timer_init(&pod->podd->loop, &job->deadline);
	job->poll.data = job->deadline.data = job;
	job->podd = pod->podd;
	job->pod = pod;
	abx__str_copy(job->id, sizeof(job->id), id);
	job->next = pod->podd->snapshots;
	pod->podd->snapshots = job;
	return job;
}

int abx__pod_snapshot(struct pod *pod, const char *id, abx_error **reterr)
{
	const abx__spec_mount *mount = abx__spec_main_writes(pod->spec, NULL);
	const struct container *c = pod->container;
	struct snapshot_job *job;
	json_object *there;
	size_t layers = 0;

	if (!abx__snapshot_id_is_valid(id))
		return abx__error_set(reterr, ABX_EINVAL,
				      "a snapshot's id is [a-z0-9], at most %d",
				      ABX__SNAPSHOT_ID_MAX);
	there = abx__snapshot_read(pod->podd, id);
	json_object_put(there);
	if (there)
		return abx__error_set(reterr, ABX_EEXISTS, "snapshot %s exists", id);
	if (pod->snapshot)
		return abx__error_set(reterr, ABX_ECONFLICT,
				      "a snapshot of Pod %s is being made", pod->name);
	if (!c || c->is_init || c->state != CONTAINER_RUNNING || c->ending ||
	    c->generation != pod->generation || !c->image)
		return abx__error_set(reterr, ABX_ECONFLICT,
				      "Pod %s does not run: there is nothing to snapshot",
				      pod->name);
	if (!abx__cgroups_can_freeze(pod->podd))
		return abx__error_set(reterr, ABX_EUNSUPPORTED,
				      "this machine has no cgroup freezer");
	if (mount)
		return abx__error_set(reterr, ABX_EUNSUPPORTED,
				      "the template's volume \"%s\" at %s can be written "
				      "to, and a snapshot would not hold what is in it",
				      mount->volume, mount->path);
	while (c->image->layers[layers])
		layers++;
	if (layers >= ABX__IMAGE_LAYER_MAX)
		return abx__error_set(reterr, ABX_ETOOBIG,
				      "Pod %s stands on %zu layers already", pod->name,
				      layers);
	job = job_new(pod, id);
	if (!job)
		return abx__error_nomem(reterr);
	pod->snapshot = job;
	uv_poll_start(&job->poll, UV_READABLE, on_pipe);
	uv_timer_start(&job->deadline, on_deadline, FREEZE_MS, 0);
	abx__pod_step(pod);
	return ABX_OK;
}

/* ---- deleting ---- */

static bool runs_from(const struct pod *pod, const char *id)
{
	const char *mine = abx__snapshot_id_of(pod->image);

	if (mine && strcmp(mine, id) == 0)
		return true;
	mine = pod->container ? abx__snapshot_id_of(pod->container->image_name) : NULL;
	if (mine && strcmp(mine, id) == 0)
		return true;
	for (const struct container *c = pod->dying; c; c = c->next) {
		mine = abx__snapshot_id_of(c->image_name);
		if (mine && strcmp(mine, id) == 0)
			return true;
	}
	return false;
}

static bool is_used(const struct podd *podd, const char *id)
{
	for (const struct pod *pod = podd->pods; pod; pod = pod->hh.next)
		if (runs_from(pod, id))
			return true;
	return false;
}

static bool is_being_made(const struct podd *podd, const char *id)
{
	for (const struct snapshot_job *job = podd->snapshots; job; job = job->next)
		if (strcmp(job->id, id) == 0)
			return true;
	return false;
}

static bool stands_on(json_object *o, const char *layer)
{
	json_object *layers = NULL;

	json_object_object_get_ex(o, "layers", &layers);
	for (size_t i = 0; layers && i < json_object_array_length(layers); i++) {
		const char *name =
			json_object_get_string(json_object_array_get_idx(layers, i));

		if (name && strcmp(name, layer) == 0)
			return true;
	}
	return false;
}

static DIR *open_folder(struct podd *podd, const char *name)
{
	int fd = openat(podd->dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (!d && fd >= 0)
		close(fd);
	return d;
}

/* "ID.json" */
static bool id_in(const char *file, char id[ABX__SNAPSHOT_ID_MAX + 1])
{
	size_t len = strlen(file);

	if (len < 6 || len - 5 > ABX__SNAPSHOT_ID_MAX ||
	    strcmp(file + len - 5, ".json") != 0)
		return false;
	memcpy(id, file, len - 5);
	id[len - 5] = '\0';
	return abx__snapshot_id_is_valid(id);
}

/* Gives the files of all that are left, to look layers up in. */
static json_object *drop_deleted(struct podd *podd)
{
	json_object *left = json_object_new_array();
	DIR *d = open_folder(podd, FOLDER);
	struct dirent *e;

	while (d && left && (e = readdir(d))) {
		char id[ABX__SNAPSHOT_ID_MAX + 1], file[96];
		json_object *o, *v;

		if (!id_in(e->d_name, id) || !(o = abx__snapshot_read(podd, id)))
			continue;
		if (!json_object_object_get_ex(o, "deleted", &v) || is_used(podd, id)) {
			json_object_array_add(left, o);
			continue;
		}
		json_object_put(o);
		file_of(id, file);
		unlinkat(podd->dir_fd, file, 0);
		abx__image_forget(podd, id);
	}
	if (d)
		closedir(d);
	return left;
}

void abx__snapshots_sweep(struct podd *podd)
{
	json_object *left = drop_deleted(podd);
	DIR *d = left ? open_folder(podd, "layers") : NULL;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		bool used = !abx__str_starts(e->d_name, LAYER_PREFIX) ||
			    is_being_made(podd, e->d_name + strlen(LAYER_PREFIX));
		char path[320];

		for (size_t i = 0; !used && i < json_object_array_length(left); i++)
			used = stands_on(json_object_array_get_idx(left, i), e->d_name);
		if (used)
			continue;
		snprintf(path, sizeof(path), "layers/%s", e->d_name);
		abx__folder_trash(podd, path);
	}
	if (d)
		closedir(d);
	json_object_put(left);
}

int abx__snapshot_delete(struct podd *podd, const char *id)
{
	json_object *o = abx__snapshot_read(podd, id);
	char file[96];
	int r = ABX_OK;

	if (!o)
		return ABX_OK;
	json_object_object_add(o, "deleted", json_object_new_boolean(true));
	file_of(id, file);
	r = abx__fs_replace_json(podd->dir_fd, file, o);
	json_object_put(o);
	abx__snapshots_sweep(podd);
	return r;
}

int abx__snapshots_open(struct podd *podd)
{
	return abx__fs_mkdir(podd->dir_fd, FOLDER, 0700, 0);
}
