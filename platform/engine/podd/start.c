/*
 * start.c - from a fork of podd to a running container: mounts in a mount namespace of
 * its own, then crun.
 *
 * Everything is laid out below a tmpfs over /run that nobody else sees:
 *   /run/l0..lN      layers, idmapped, read-only
 *   /run/p           the container's folder: up/, wk/
 *   /run/root        the overlay
 *   /run/v0..        volumes
 *   /run/rt          the runtime
 *   /run/ns/{user,net}
 *   /run/boot_id     what the container sees as the kernel's
 * When the container ends the kernel drops all of it; the host's mount table never hears
 * of it. Short names keep the overlay's options within mount(2)'s one page for hundreds
 * of layers. What crun has to say goes to memory that podd holds, not to the disk.
 */
#include "engine/podd/podd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* <sys/mount.h> and <linux/mount.h> do not agree with each other in this libc; the few
 * calls needed are declared. */
extern int mount(const char *source, const char *target, const char *type,
		 unsigned long flags, const void *data);
extern int umount2(const char *target, int flags);
#define DETACH 2 /* MNT_DETACH */

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

static int attach(int dir_fd, const char *path, const char *to, int idmap_fd,
		  uint64_t attrs, abx_error **reterr)
{
	unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (path ? 0 : AT_EMPTY_PATH);
	struct mount_attr attr = { .attr_set =
					   attrs | (idmap_fd >= 0 ? MOUNT_ATTR_IDMAP : 0),
				   .userns_fd = idmap_fd >= 0 ? (uint64_t)idmap_fd : 0 };
	ABX_CLEANUP(abx__closep)
	int fd = (int)syscall(SYS_open_tree, dir_fd, path ? path : "", flags);

	if (fd < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "open_tree %s", to);
	if (attr.attr_set &&
	    syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "mount_setattr %s", to);
	if (syscall(SYS_move_mount, fd, "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "move_mount %s", to);
	return ABX_OK;
}

static int make_dir(const char *path, abx_error **reterr)
{
	return mkdir(path, 0755) < 0
		       ? abx__error_errno(reterr, ABX_EIO, errno, "mkdir %s", path)
		       : ABX_OK;
}

/* A mount namespace that tells nobody, a tmpfs to build on, and descriptors opened before
 * /run was covered. */
static int open_stage(const struct start_plan *plan, int *ret_state, abx_error **reterr)
{
	ABX_CLEANUP(abx__closep) int state = -1;

	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "mount namespace");
	if (plan->podd->hybrid)
		umount2("/sys/fs/cgroup/unified", DETACH);
	state = open(plan->podd->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (state < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "%s", plan->podd->dir);
	if (mount("agentbox", "/run", "tmpfs", MS_NOSUID, "mode=755,size=16m") < 0 ||
	    chdir("/run") < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "tmpfs");
	*ret_state = abx_take_fd(state);
	return ABX_OK;
}

static int attach_layers(const struct start_plan *plan, int state, abx__buf *lower,
			 abx_error **reterr)
{
	size_t count = 0;
	int r = ABX_OK;

	while (plan->image->layers[count])
		count++;
	/* overlayfs lists the topmost first. */
	for (size_t i = count; r == ABX_OK && i-- > 0;) {
		char from[160], to[24];

		snprintf(from, sizeof(from), "layers/%s", plan->image->layers[i]);
		snprintf(to, sizeof(to), "l%zu", i);
		r = make_dir(to, reterr);
		if (r == ABX_OK)
			r = attach(state, from, to, plan->userns_fd, MOUNT_ATTR_RDONLY,
				   reterr);
		if (r == ABX_OK &&
		    abx__buf_addf(lower, "%s%s", lower->len ? ":" : "", to) < 0)
			r = abx__error_nomem(reterr);
	}
	return r;
}

static int mount_overlay(const struct start_plan *plan, const char *lower,
			 const char *upper, const char *work, const char *to,
			 abx_error **reterr)
{
	char options[4096];
	unsigned long flags = plan->id_base ? MS_NODEV : 0;

	/* The upper layer is thrown away with the container: nothing of it needs to reach
	 * the disk. */
	if (snprintf(options, sizeof(options),
		     "lowerdir=%s,upperdir=%s,workdir=%s,volatile", lower, upper,
		     work) >= (int)sizeof(options))
		return abx__error_set(reterr, ABX_ETOOBIG, "too many layers");
	if (mount("overlay", to, "overlay", flags, options) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "overlay");
	return ABX_OK;
}

static int make_upper(const struct start_plan *plan, abx_error **reterr)
{
	ABX_CLEANUP(abx__closep) int fd = open("p", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || abx__upper_make(fd, &plan->upper) < 0
		       ? abx__error_errno(reterr, ABX_EIO, errno, "upper layer")
		       : ABX_OK;
}

static int mount_root(const struct start_plan *plan, int state, abx_error **reterr)
{
	abx__buf lower = ABX__BUF_INIT_CAP(4000);
	char from[256];
	int r;

	snprintf(from, sizeof(from), "pods/%s/%s", plan->pod_key, plan->dir);
	r = make_dir("p", reterr);
	if (r == ABX_OK)
		r = make_dir("root", reterr);
	if (r == ABX_OK)
		r = attach(state, from, "p", -1, 0, reterr);
	/* What an earlier container left is its own business, and not to be trusted. */
	if (r == ABX_OK && !plan->made)
		r = make_upper(plan, reterr);
	if (r == ABX_OK)
		r = attach_layers(plan, state, &lower, reterr);
	if (r == ABX_OK)
		r = mount_overlay(plan, abx__buf_str(&lower), "p/up", "p/wk", "root",
				  reterr);
	abx__buf_done(&lower);
	return r;
}

/* Every layer's usr/, the topmost first: the lowest is the built-in one, the others are
 * snapshots'. */
static int list_usr(const struct start_plan *plan, abx__buf *lower, abx_error **reterr)
{
	size_t count = 0;
	int r = ABX_OK;

	while (plan->image->layers[count])
		count++;
	for (size_t i = count; r == ABX_OK && i-- > 0;) {
		char usr[40];
		struct stat st;

		snprintf(usr, sizeof(usr), "l%zu/usr", i);
		if (lstat(usr, &st) == 0 && S_ISDIR(st.st_mode))
			r = abx__buf_addf(lower, "%s:", usr);
	}
	if (r == ABX_OK)
		r = abx__buf_adds(lower, "hu");
	return r < 0 ? abx__error_nomem(reterr) : ABX_OK;
}

/* The host's /usr below the layers' usr/; writes go to an upper layer of the container's
 * own. */
static int mount_host_usr(const struct start_plan *plan, abx_error **reterr)
{
	abx__buf lower = ABX__BUF_INIT_CAP(4000);
	int r = make_dir("hu", reterr);

	if (r == ABX_OK)
		r = attach(AT_FDCWD, "/usr", "hu", plan->userns_fd, MOUNT_ATTR_RDONLY,
			   reterr);
	if (r == ABX_OK && !plan->kept &&
	    (abx__fs_mkdir(AT_FDCWD, "p/uup", 0755, plan->id_base) < 0 ||
	     abx__fs_mkdir(AT_FDCWD, "p/uwk", 0700, plan->id_base) < 0))
		r = abx__error_errno(reterr, ABX_EIO, errno, "upper layer");
	if (r == ABX_OK)
		r = list_usr(plan, &lower, reterr);
	if (r == ABX_OK)
		r = mount_overlay(plan, abx__buf_str(&lower), "p/uup", "p/uwk",
				  "root/usr", reterr);
	abx__buf_done(&lower);
	return r;
}

static int open_volume(const struct start_plan *plan, int state, const abx__spec_mount *m,
		       abx_error **reterr)
{
	char path[256];
	int fd, sub;

	snprintf(path, sizeof(path), "pods/%s/vol/%s", plan->pod_key, m->volume);
	fd = abx__fs_open_beneath(state, path, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "volume %s", m->volume);
	if (!m->sub_path)
		return fd;
	/* Made when missing, as Kubernetes does; never through a link a container left
	 * there. */
	for (const char *p = m->sub_path; *p;) {
		char part[256];
		size_t len = strcspn(p, "/");

		if (len >= sizeof(part))
			break;
		memcpy(part, p, len);
		part[len] = '\0';
		if (mkdirat(fd, part, 0755) == 0 &&
		    fchownat(fd, part, plan->id_base, plan->id_base,
			     AT_SYMLINK_NOFOLLOW) < 0)
			break;
		sub = abx__fs_open_beneath(fd, part, O_PATH);
		close(fd);
		if (sub < 0)
			return abx__error_errno(reterr, ABX_EIO, errno,
						"volume %s: subPath %s", m->volume,
						m->sub_path);
		fd = sub;
		p += len + (p[len] == '/');
		if (!*p)
			return fd;
	}
	close(fd);
	return abx__error_set(reterr, ABX_EINVAL, "volume %s: subPath %s cannot be made",
			      m->volume, m->sub_path);
}

static int attach_volume(const struct start_plan *plan, int state, size_t i,
			 abx_error **reterr)
{
	const abx__spec_mount *m = &plan->spec->mounts[i];
	const abx__spec_volume *volume = abx__spec_find_volume(plan->pod_spec, m->volume);
	ABX_CLEANUP(abx__closep) int fd = -1;
	char to[24], options[96], size[40] = "";
	int r;

	snprintf(to, sizeof(to), "v%zu", i);
	r = make_dir(to, reterr);
	if (r < 0)
		return r;
	if (volume && volume->memory) {
		if (volume->size_bytes)
			snprintf(size, sizeof(size), ",size=%llu",
				 (unsigned long long)volume->size_bytes);
		snprintf(options, sizeof(options), "mode=1777,uid=%u,gid=%u%s",
			 plan->id_base, plan->id_base, size);
		return mount("tmpfs", to, "tmpfs", MS_NODEV | MS_NOSUID, options) < 0
			       ? abx__error_errno(reterr, ABX_EIO, errno, "volume %s",
						  m->volume)
			       : ABX_OK;
	}
	fd = open_volume(plan, state, m, reterr);
	if (fd < 0)
		return fd;
	return attach(fd, NULL, to, -1,
		      (m->read_only ? MOUNT_ATTR_RDONLY : 0) |
			      (plan->id_base ? MOUNT_ATTR_NODEV : 0),
		      reterr);
}

static int attach_rest(const struct start_plan *plan, int state, abx_error **reterr)
{
	int r = ABX_OK;

	for (size_t i = 0; r == ABX_OK && i < plan->spec->mount_count; i++)
		r = attach_volume(plan, state, i, reterr);
	if (r == ABX_OK)
		r = make_dir("rt", reterr);
	if (r == ABX_OK)
		r = attach(state, "rt", "rt", -1,
			   MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
			   reterr);
	if (r == ABX_OK)
		r = make_dir("ns", reterr);
	return r;
}

static int bind_namespace(int fd, const char *to, abx_error **reterr)
{
	char from[40];

	snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
	if (abx__fs_write(AT_FDCWD, to, "", 0, 0444) < 0 ||
	    mount(from, to, NULL, MS_BIND, NULL) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "%s", to);
	return ABX_OK;
}

static int bind_namespaces(const struct start_plan *plan, abx_error **reterr)
{
	int r = bind_namespace(plan->netns_fd, "ns/net", reterr);

	if (r == ABX_OK && plan->userns_fd >= 0)
		r = bind_namespace(plan->userns_fd, "ns/user", reterr);
	return r;
}

static int write_config(const struct start_plan *plan, abx_error **reterr)
{
	ABX_CLEANUP(abx__closep)
	int root = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char *text = NULL;
	int r;

	if (root < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "root");
	r = abx__oci_config(plan, root, &text, reterr);
	if (r == ABX_OK &&
	    abx__fs_write(AT_FDCWD, "config.json", text, strlen(text), 0600) < 0)
		r = abx__error_errno(reterr, ABX_EIO, errno, "config.json");
	abx__free(text);
	return r;
}

/* A boot of its own for each start of a container, as a machine has and systemd-nspawn
 * gives: programs tell by it whether they went on or began again. */
static int write_boot_id(abx_error **reterr)
{
	char *id = abx__fs_read(AT_FDCWD, "/proc/sys/kernel/random/uuid", 64, NULL);
	int r = id ? abx__fs_write(AT_FDCWD, "boot_id", id, strlen(id), 0444) : -1;

	abx__free(id);
	return r < 0 ? abx__error_errno(reterr, ABX_EIO, errno, "boot_id") : ABX_OK;
}

static int wait_gate(int gate)
{
	char byte;
	ssize_t n;

	if (gate < 0)
		return ABX_OK;
	do
		n = read(gate, &byte, 1);
	while (n < 0 && errno == EINTR);
	return n == 1 ? ABX_OK : ABX_ECANCELED;
}

/* stdin from nowhere, output to the Pod's log, crun's own two files; everything else is
 * closed at exec. The log begins anew: what the container before wrote may be another
 * sandbox's. That one is dead by now. */
static int set_descriptors(const struct start_plan *plan, int state, abx_error **reterr)
{
	char path[256];
	int null = open("/dev/null", O_RDONLY), log;

	snprintf(path, sizeof(path), "pods/%s/log", plan->pod_key);
	log = openat(state, path,
		     O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		     0600);
	if (null < 0 || log < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 ||
	    dup2(log, 2) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "log");
	return syscall(SYS_close_range, 3, ~0U, 1U << 2 /* CLOSE_RANGE_CLOEXEC */) < 0 ||
			       fcntl(plan->said_fd, F_SETFD, 0) < 0 ||
			       fcntl(plan->pid_fd, F_SETFD, 0) < 0
		       ? abx__error_errno(reterr, ABX_EIO, errno, "descriptors")
		       : ABX_OK;
}

static int build(const struct start_plan *plan, int *ret_state, abx_error **reterr)
{
	int r = open_stage(plan, ret_state, reterr);

	if (r == ABX_OK)
		r = mount_root(plan, *ret_state, reterr);
	if (r == ABX_OK && plan->image->host_usr)
		r = mount_host_usr(plan, reterr);
	if (r == ABX_OK)
		r = attach_rest(plan, *ret_state, reterr);
	if (r == ABX_OK)
		r = bind_namespaces(plan, reterr);
	if (r == ABX_OK)
		r = write_boot_id(reterr);
	if (r == ABX_OK)
		r = write_config(plan, reterr);
	return r;
}

static void exec_crun(const struct start_plan *plan)
{
	char said[40], pid[48];
	const char *argv[] = { "crun",
			       "--cgroup-manager=disabled",
			       "--root=/run/crun",
			       said,
			       "run",
			       "--detach",
			       "--bundle=/run",
			       pid,
			       plan->dir,
			       NULL };
	char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
	char *const envp[] = { path, NULL };

	snprintf(said, sizeof(said), "--log=file:/proc/self/fd/%d", plan->said_fd);
	snprintf(pid, sizeof(pid), "--pid-file=/proc/self/fd/%d", plan->pid_fd);
	if (plan->crun_fd >= 0)
		execveat(plan->crun_fd, "", (char *const *)argv, envp, AT_EMPTY_PATH);
	execve(plan->crun, (char *const *)argv, envp);
}

int abx__start_run(const struct start_plan *plan)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP(abx__closep) int state = -1;
	sigset_t none;
	int r;

	umask(022);
	r = build(plan, &state, &err);
	if (r == ABX_OK && wait_gate(plan->gate) < 0)
		return ABX_ECANCELED;
	if (r == ABX_OK && !plan->in_cgroup &&
	    abx__cgroup_enter(plan->podd, plan->pod_key) < 0)
		r = abx__error_errno(&err, ABX_EIO, errno, "cgroup");
	if (r == ABX_OK)
		r = set_descriptors(plan, state, &err);
	if (r == ABX_OK) {
		setsid();
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		exec_crun(plan);
		r = abx__error_errno(&err, ABX_EIO, errno, "%s", plan->crun);
	}
	if (write(plan->said_fd, abx_error_message(err), strlen(abx_error_message(err))) <
	    0)
		return r; /* then podd says that it did not start */
	return r;
}
