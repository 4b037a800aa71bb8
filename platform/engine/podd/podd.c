/*
 * podd.c - podd's start, its loop and its end.
 *
 * Start: the state folder, the tag, the lock, the runtime's files, seccomp, cgroups,
 * network; then what an earlier podd left is adopted or removed, and only then is the
 * socket opened. End: Pods go on.
 */
#include "engine/podd/podd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/str.h"

#define SWEEP_MS 15000
#define LOG_MAX ((off_t)1 << 20)

/* ---- the state folder ---- */

static int open_folder(struct podd *podd, abx_error **reterr)
{
	const char *state = podd->options.state_dir;
	char real[PATH_MAX];
	struct stat st;
	char *dir;

	if (mkdir(state, 0711) < 0 && errno != EEXIST)
		return abx__error_errno(reterr, ABX_EIO, errno, "state folder %s", state);
	if (!realpath(state, real))
		return abx__error_errno(reterr, ABX_EIO, errno, "state folder %s", state);
	{
		uint8_t hash[ABX__SHA256_LEN];

		abx__sha256(real, strlen(real), hash);
		abx__hex(hash, 2, podd->tag);
	}
	dir = abx__strf("%s/podd", real);
	if (!dir)
		return abx__error_nomem(reterr);
	podd->dir = dir;
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return abx__error_errno(reterr, ABX_EIO, errno, "%s", dir);
	podd->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (podd->dir_fd < 0 || fstat(podd->dir_fd, &st) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "%s", dir);
	/* Ours alone. Whoever owns the state folder can move ours away and put another in
	 * its place: what lies in that one would be believed, so it is not used. */
	if (st.st_uid != 0 || (st.st_mode & 022))
		return abx__error_set(reterr, ABX_EDENIED,
				      "%s belongs to user %u with mode %03o, not to root "
				      "alone; remove it",
				      dir, st.st_uid, st.st_mode & 0777);
	/* Nobody else may pass: layers hold setuid programs that are root's out here. */
	if (fchmod(podd->dir_fd, 0700) < 0 ||
	    abx__fs_mkdir(podd->dir_fd, "pods", 0700, 0) < 0 ||
	    abx__fs_mkdir(podd->dir_fd, "trash", 0700, 0) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "%s", dir);
	return ABX_OK;
}

/*
 * An abstract socket is a lock that its owner's death releases. Children of a podd that
 * has just died hold it for the moment until the kernel has killed them too, hence the
 * patience.
 */
static int take_lock(struct podd *podd, abx_error **reterr)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "agentbox-podd-%s",
			 podd->tag);
	socklen_t len =
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);

	podd->lock_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	for (int i = 0; podd->lock_fd >= 0 && i < 150; i++) {
		if (bind(podd->lock_fd, (struct sockaddr *)&a, len) == 0)
			return ABX_OK;
		if (errno != EADDRINUSE)
			break;
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	}
	return abx__error_errno(reterr, ABX_ESTATE, errno,
				"another agentbox-podd runs for state folder %s (tag %s)",
				podd->options.state_dir, podd->tag);
}

/* The files Pods get to see, under the names they have in a Pod. */
static int copy_runtime(struct podd *podd, abx_error **reterr)
{
	static const struct {
		const char *to;
		const char *from[3];
	} files[] = {
		{ "rt/envd", { "agentbox-envd", "envd" } },
		{ "rt/tini", { "tini", "tini-static" } },
		{ "rt/agentbox-entrypoint.sh", { "agentbox-entrypoint.sh" } },
		{ "rt/agentbox-interpreter.pyz", { "agentbox-interpreter.pyz" } },
	};

	if (abx__fs_mkdir(podd->dir_fd, "rt", 0755, 0) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "runtime folder");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct stat from, to;
		bool done = false;
		char path[PATH_MAX] = "";

		for (int k = 0; !done && k < 3 && files[i].from[k]; k++) {
			snprintf(path, sizeof(path), "%s/%s", podd->options.runtime_dir,
				 files[i].from[k]);
			done = stat(path, &from) == 0;
		}
		if (!done && i == 1 && stat("/usr/bin/tini-static", &from) == 0) {
			abx__str_copy(path, sizeof(path), "/usr/bin/tini-static");
			done = true;
		}
		if (!done) {
			abx__log_warn(
				podd->log,
				"a file of the runtime is missing: Pods will lack it",
				"file=%s/%s", podd->options.runtime_dir,
				files[i].from[0]);
			unlinkat(podd->dir_fd, files[i].to, 0);
			continue;
		}
		/* Not touched when it is the same: running Pods share its pages, layers
		 * are named by its stamp. */
		if (fstatat(podd->dir_fd, files[i].to, &to, 0) == 0 &&
		    to.st_size == from.st_size &&
		    to.st_mtim.tv_sec >= from.st_mtim.tv_sec)
			continue;
		if (abx__fs_copy(AT_FDCWD, path, podd->dir_fd, files[i].to, 0755) < 0)
			return abx__error_errno(reterr, ABX_EIO, errno, "runtime file %s",
						path);
	}
	return ABX_OK;
}

/* Can layers of this file system be shown with shifted ids? Tried, not guessed. */
static bool try_idmap(struct podd *podd)
{
	int status = -1;
	pid_t pid = abx__child_fork();

	if (pid == 0) {
		abx_error *err = NULL;
		int user = -1, net = -1;
		struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };
		int fd = (int)syscall(SYS_open_tree, podd->dir_fd, "layers",
				      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

		podd->net.enabled = false;
		if (fd < 0 || abx__net_make(podd, 0, true, &user, &net, &err) < 0)
			_exit(1);
		attr.userns_fd = (uint64_t)user;
		_exit(syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr,
			      sizeof(attr)) == 0
			      ? 0
			      : 1);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0;
}

static void raise_limits(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

/* ---- events of the loop ---- */

static void on_child_signal(uv_signal_t *signal_, int signum)
{
	struct podd *podd = signal_->data;
	int status;
	pid_t pid;

	(void)signum;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct child *child;

		HASH_FIND_INT(podd->children, &pid, child);
		if (!child) {
			abx__child_note_orphan(podd, pid, status);
			continue;
		}
		abx__child_forget(podd, child);
		child->on_exit(child, status);
	}
}

static void podd_stop(struct podd *podd)
{
	if (podd->stopping)
		return;
	podd->stopping = true;
	uv_stop(&podd->loop);
}

static void on_term(uv_signal_t *signal_, int signum)
{
	(void)signum;
	podd_stop(signal_->data);
}

/* A container may write as much as it likes; a megabyte of it is kept. */
static void trim_logs(struct podd *podd)
{
	for (struct pod *pod = podd->pods; pod; pod = pod->hh.next) {
		char path[256];
		struct stat st;

		snprintf(path, sizeof(path), "pods/%s/log", pod->key);
		if (fstatat(podd->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    st.st_size > LOG_MAX) {
			ABX_CLEANUP(abx__closep)
			int fd = openat(podd->dir_fd, path,
					O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

			if (fd >= 0 && ftruncate(fd, 0) < 0)
				abx__log_debug(podd->log, "log not trimmed", "pod=%s",
					       pod->name);
		}
	}
}

static void on_sweep(uv_timer_t *timer)
{
	struct podd *podd = timer->data;

	trim_logs(podd);
	abx__cgroup_sweep(podd);
	abx__net_check_rules(podd);
	abx__folder_sweep(podd);
	abx__snapshots_sweep(podd);
	abx__folder_trash_kick(podd);
}

static int open_loop(struct podd *podd, abx_error **reterr)
{
	if (uv_loop_init(&podd->loop) < 0 || abx__probes_open(podd) < 0)
		return abx__error_set(reterr, ABX_EIO, "event loop");
	uv_signal_init(&podd->loop, &podd->sig_child);
	uv_signal_init(&podd->loop, &podd->sig_term);
	uv_signal_init(&podd->loop, &podd->sig_int);
	uv_timer_init(&podd->loop, &podd->sweep);
	uv_timer_init(&podd->loop, &podd->freeze_timer);
	uv_timer_init(&podd->loop, &podd->trash_timer);
	podd->sig_child.data = podd->sig_term.data = podd->sig_int.data =
		podd->sweep.data = podd->freeze_timer.data = podd->trash_timer.data =
			podd;
	uv_signal_start(&podd->sig_child, on_child_signal, SIGCHLD);
	uv_signal_start(&podd->sig_term, on_term, SIGTERM);
	uv_signal_start(&podd->sig_int, on_term, SIGINT);
	uv_timer_start(&podd->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
	signal(SIGPIPE, SIG_IGN);
	return ABX_OK;
}

/* Without it no Pod would ever start: said now, not by every one of them. */
static int check_crun(const struct podd *podd, abx_error **reterr)
{
	if (access(podd->options.crun, X_OK) == 0)
		return ABX_OK;
	return abx__error_errno(
		reterr, ABX_EUNAVAILABLE, errno,
		"no crun to start containers with (Debian's package crun, or --crun): %s",
		podd->options.crun);
}

static int open_all(struct podd *podd, abx_error **reterr)
{
	int r = check_crun(podd, reterr);

	if (r == ABX_OK)
		r = open_folder(podd, reterr);

	if (r == ABX_OK)
		r = take_lock(podd, reterr);
	if (r == ABX_OK)
		r = copy_runtime(podd, reterr);
	if (r == ABX_OK)
		r = abx__seccomp_load(podd->options.seccomp_profile, &podd->seccomp,
				      reterr);
	if (r == ABX_OK)
		r = abx__cgroups_open(podd, reterr);
	if (r == ABX_OK)
		r = abx__net_open(podd, reterr);
	if (r < 0)
		return r;
	podd->container_seq = (uint64_t)abx__wall_ms() * 1000;
	podd->trash_seq = podd->container_seq;
	raise_limits();
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	r = open_loop(podd, reterr);
	if (r == ABX_OK)
		r = abx__images_open(podd, reterr);
	return r;
}

static void close_all(struct podd *podd)
{
	struct pod *pod, *tmp;

	abx__server_close(podd);
	abx__images_close(podd);
	HASH_ITER(hh, podd->pods, pod, tmp)
	abx__probe_stop(pod);
	abx__probes_close(podd);
	uv_close((uv_handle_t *)&podd->sig_child, NULL);
	uv_close((uv_handle_t *)&podd->sig_term, NULL);
	uv_close((uv_handle_t *)&podd->sig_int, NULL);
	uv_close((uv_handle_t *)&podd->sweep, NULL);
	uv_close((uv_handle_t *)&podd->freeze_timer, NULL);
	uv_close((uv_handle_t *)&podd->trash_timer, NULL);
	/* Containers' handles stay open: the process ends here, and its Pods go on
	 * without it. */
	for (int i = 0; i < 8; i++)
		uv_run(&podd->loop, UV_RUN_NOWAIT);
}

static void say_ready(int fd, const abx__log *log)
{
	if (fd < 0)
		return;
	if (write(fd, "ready\n", 6) < 0)
		abx__log_warn(log, "nobody waits for the ready notice", NULL);
	close(fd);
}

int abx__podd_run(const struct podd_options *options, const abx__log *log)
{
	static struct podd podd;
	abx_error *err = NULL;
	int r;

	podd.options = *options;
	podd.log = log;
	podd.dir_fd = podd.lock_fd = podd.host_netns_fd = podd.crun_fd = -1;
	r = open_all(&podd, &err);
	if (r == ABX_OK) {
		podd.userns = try_idmap(&podd);
		if (!podd.userns)
			abx__log_warn(
				log,
				"no idmapped mounts here: only privileged Pods can run",
				NULL);
		abx__folder_adopt(&podd);
		abx__net_sweep(&podd);
		abx__cgroup_sweep(&podd);
		abx__snapshots_sweep(&podd);
		abx__folder_trash_kick(&podd);
		r = abx__server_open(&podd, &err);
	}
	if (r < 0) {
		abx__log_error(log, "agentbox-podd cannot start", "error=%s",
			       abx_error_message(err));
		abx_error_free(err);
		return r;
	}
	abx__log_info(log, "ready", "tag=%s network=%d userns=%d socket=%s", podd.tag,
		      podd.net.enabled, podd.userns, options->socket_path);
	say_ready(options->ready_fd, log);
	abx__pods_step(&podd);
	uv_run(&podd.loop, UV_RUN_DEFAULT);
	close_all(&podd);
	abx__log_info(log, "stopped; Pods go on", NULL);
	return ABX_OK;
}

/* ---- purge ---- */

#define PURGE_PATIENCE_MS 20000

/* A group can be removed when the kernel has buried its last process: on a busy machine
 * that is not at once. */
static int purge_pods(struct podd *podd)
{
	struct pod *pod, *tmp;

	/* Groups of Pods whose folders are gone count as well: sweeping with no Pod known
	 * takes all of them. */
	HASH_ITER(hh, podd->pods, pod, tmp)
	HASH_DEL(podd->pods, pod);
	for (int i = 0; i < PURGE_PATIENCE_MS / 10; i++) {
		struct timespec pause_ = { .tv_nsec = 10000000 };
		bool left = false;

		abx__cgroup_sweep(podd);
		for (size_t k = 0; k < podd->cgroups.count; k++)
			if (rmdir(podd->cgroups.at[k].base) < 0 && errno != ENOENT)
				left = true;
		if (!left)
			return ABX_OK;
		nanosleep(&pause_, NULL);
	}
	abx__log_error(podd->log, "cgroups are left: processes in them do not end",
		       "tag=%s", podd->tag);
	return ABX_EFAIL;
}

int abx__podd_purge(const struct podd_options *options, const abx__log *log)
{
	static struct podd podd;
	abx_error *err = NULL;
	int r;

	podd.options = *options;
	podd.log = log;
	podd.dir_fd = podd.lock_fd = -1;
	r = open_folder(&podd, &err);
	if (r == ABX_OK)
		r = take_lock(&podd, &err);
	if (r == ABX_OK)
		r = abx__cgroups_open(&podd, &err);
	if (r < 0) {
		abx__log_error(log, "cannot purge", "error=%s", abx_error_message(err));
		abx_error_free(err);
		return r;
	}
	r = purge_pods(&podd);
	abx__net_purge(&podd);
	abx__fs_empty(podd.dir_fd);
	if (rmdir(podd.dir) < 0) {
		abx__log_error(log, "the state folder cannot be removed",
			       "folder=%s errno=%d", podd.dir, errno);
		r = ABX_EIO;
	}
	abx__cgroups_close(&podd);
	return r;
}
