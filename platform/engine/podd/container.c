/*
 * container.c - one life of one container: starter (a fork that becomes crun), init, end.
 *
 * A container ends by SIGKILL to its init through a pidfd, after SIGTERM and a while
 * where its Pod asks for grace: its PID namespace, hence all of it, dies with it, and
 * with the last process its mounts. crun is not asked; its state lay in the container's
 * own /run.
 */
#include "engine/podd/podd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

#define START_DEADLINE_MS 30000

uint64_t abx__proc_start_time(pid_t pid)
{
	char path[40], *text, *p;
	uint64_t n = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	text = abx__fs_read(AT_FDCWD, path, 4096, NULL);
	/* The name may hold anything; what follows its last ')' is field 3 on. The start
	 * is field 22. */
	p = text ? strrchr(text, ')') : NULL;
	for (int field = 2; p && field < 22; field++) {
		p = strchr(p, ' ');
		if (p)
			p++;
	}
	if (p && *p) {
		p[strcspn(p, " ")] = '\0';
		if (abx__parse_u64(p, 0, UINT64_MAX, &n) < 0)
			n = 0;
	}
	/* A zombie is no container any more. */
	abx__free(text);
	return n;
}

static void pod_path(const struct pod *pod, const char *sub, char *out, size_t size)
{
	snprintf(out, size, "pods/%s/%s", pod->key, sub);
}

/* ---- giving back ---- */

static void on_closed(uv_handle_t *handle)
{
	struct container *c = handle->data;

	if (--c->closing > 0)
		return;
	abx__image_unref(c->image);
	abx__free(c->image_name);
	abx__free(c);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Frees what the kernel holds for it now, the memory when the loop has let go of its
 * handles. */
static void container_free(struct container *c)
{
	struct podd *podd = c->pod->podd;
	char path[256];

	abx__child_forget(podd, &c->starter);
	abx__child_forget(podd, &c->init);
	close_fd(&c->gate);
	close_fd(&c->said_fd);
	close_fd(&c->pid_fd);
	if (c->dir[0] && strcmp(c->dir, c->pod->kept) != 0) {
		pod_path(c->pod, c->dir, path, sizeof(path));
		abx__folder_trash(podd, path);
	}
	c->closing = 1 + c->poll_open;
	if (c->poll_open)
		uv_close((uv_handle_t *)&c->poll, on_closed);
	uv_close((uv_handle_t *)&c->timer, on_closed);
	close_fd(&c->pidfd);
}

static struct container *container_new(struct pod *pod, const abx__spec_container *spec,
				       struct image *image, const char *image_name)
{
	struct container *c = abx__calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->image_name = abx__strdup(image_name);
	if (!c->image_name) {
		abx__free(c);
		return NULL;
	}
	c->pod = pod;
	c->spec = spec;
	c->image = image ? abx__image_ref(image) : NULL;
	c->is_idle = image && image->is_idle;
	c->generation = pod->generation;
	c->gate = c->pidfd = c->said_fd = c->pid_fd = -1;
	c->init_status = -1;
	uv_timer_init(&pod->podd->loop, &c->timer);
	c->timer.data = c;
	return c;
}

/* Tells the Pod and goes. */
static void ended(struct container *c, const char *start_error, int status)
{
	c->ending = true;
	/* In this order: the step that follows may free the Pod; `c` itself lives until
	 * the loop's next turn. */
	container_free(c);
	abx__pod_container_ended(c, start_error, status);
}

/* ---- the running init ---- */

static void finish_when_dead(struct container *c, bool pidfd_says)
{
	/* Our own child: wait for its status, which follows at once. Somebody else's: its
	 * pidfd is all there is. */
	if (c->init.pid && !c->init_reaped && pidfd_says)
		return;
	ended(c, NULL, c->init_status);
}

static void on_pidfd(uv_poll_t *poll, int status, int events)
{
	struct container *c = poll->data;

	(void)status;
	(void)events;
	uv_poll_stop(poll);
	finish_when_dead(c, true);
}

static void on_init_exit(struct child *child, int status)
{
	struct container *c = child->owner;

	c->init_reaped = true;
	c->init_status = status;
	finish_when_dead(c, false);
}

static int watch_init(struct container *c, pid_t pid, bool ours)
{
	c->pidfd = pidfd_open(pid, 0);
	if (c->pidfd < 0)
		return ABX_ENOTFOUND;
	fcntl(c->pidfd, F_SETFL, O_NONBLOCK);
	c->start_time = abx__proc_start_time(pid);
	if (uv_poll_init(&c->pod->podd->loop, &c->poll, c->pidfd) < 0)
		return ABX_EIO;
	c->poll.data = c;
	c->poll_open = true;
	if (ours) {
		c->init =
			(struct child){ .pid = pid, .on_exit = on_init_exit, .owner = c };
		abx__child_add(c->pod->podd, &c->init);
	}
	uv_poll_start(&c->poll, UV_READABLE, on_pidfd);
	c->state = CONTAINER_RUNNING;
	return ABX_OK;
}

static void kill_init(struct container *c)
{
	if (c->pidfd >= 0)
		pidfd_send_signal(c->pidfd, SIGKILL, NULL, 0);
}

static void on_grace_over(uv_timer_t *timer)
{
	kill_init(timer->data);
}

/* With the grace its Pod asks for. What idles has nothing to finish, and a claim waits
 * for its end. */
static void end_init(struct container *c)
{
	uint32_t grace_s = c->is_idle || c->is_init ? 0 : c->pod->spec->grace_s;

	if (!grace_s || c->pidfd < 0 ||
	    pidfd_send_signal(c->pidfd, SIGTERM, NULL, 0) < 0 ||
	    uv_timer_start(&c->timer, on_grace_over, (uint64_t)grace_s * 1000, 0) < 0)
		kill_init(c);
}

/* ---- starting ---- */

/* Both ends share the memory, not the position in it. */
static char *read_memory(int fd, size_t cap)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return abx__fs_read(AT_FDCWD, path, cap, NULL);
}

static pid_t read_pid(struct container *c)
{
	char *text = read_memory(c->pid_fd, 64);
	uint64_t pid = 0;

	if (!text || abx__parse_u64(text, 2, INT32_MAX, &pid) < 0)
		pid = 0;
	abx__free(text);
	return (pid_t)pid;
}

/* What the starter or crun wrote on failing: the last line, without crun's time stamp. */
static char *start_error(struct container *c)
{
	char *text = read_memory(c->said_fd, 65536), *line, *stamp;

	if (!text || !*text) {
		abx__free(text);
		return abx__strf("container %s with image %s did not start",
				 c->spec->name, c->image_name);
	}
	for (size_t n = strlen(text); n && text[n - 1] == '\n';)
		text[--n] = '\0';
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	stamp = strstr(line, ": ");
	if (line[0] == '2' && strchr("0123456789", line[1]) && stamp && stamp - line < 40)
		line = stamp + 2;
	if (strstr(line, c->image_name))
		stamp = abx__strdup(line);
	else
		stamp = abx__strf("container %s with image %s: %s", c->spec->name,
				  c->image_name, line);
	abx__free(text);
	return stamp;
}

static void on_starter_exit(struct child *child, int status)
{
	struct container *c = child->owner;
	struct podd *podd = c->pod->podd;
	pid_t pid = status == 0 ? read_pid(c) : 0;

	uv_timer_stop(&c->timer);
	if (c->gate >= 0) {
		close(c->gate);
		c->gate = -1;
	}
	if (pid && abx__child_orphan(podd, pid, &c->init_status)) {
		ended(c, NULL, c->init_status);
		return;
	}
	if (!pid || watch_init(c, pid, true) < 0) {
		char *text = start_error(c);

		/* crun may have got as far as a process. Nothing else of the Pod runs
		 * while a gate was open. */
		if (!c->pod->dying || c->pod->dying == c)
			abx__cgroup_kill(podd, c->pod->key);
		ended(c, text ? text : "out of memory", -1);
		abx__free(text);
		return;
	}
	close_fd(&c->said_fd);
	close_fd(&c->pid_fd);
	if (c->ending) {
		kill_init(c);
		return;
	}
	abx__pod_container_running(c);
}

static void on_start_deadline(uv_timer_t *timer)
{
	struct container *c = timer->data;

	if (c->starter.pid)
		kill(c->starter.pid, SIGKILL);
}

static void start_clock(struct container *c)
{
	uv_timer_start(&c->timer, on_start_deadline, START_DEADLINE_MS, 0);
}

static _Noreturn void starter_main(struct container *c, int gate, int crun_fd,
				   bool in_cgroup, bool made)
{
	struct pod *pod = c->pod;
	struct podd *podd = pod->podd;
	struct start_plan plan = {
		.podd = podd,
		.pod_key = pod->key,
		.hostname = pod->spec->hostname ? pod->spec->hostname : pod->name,
		.upper = abx__upper_of(pod),
		.dir = c->dir,
		.pod_spec = pod->spec,
		.spec = c->spec,
		.image = c->image,
		.image_name = c->image_name,
		.userns_fd = pod->userns_fd,
		.netns_fd = pod->netns_fd,
		.gate = gate,
		.in_cgroup = in_cgroup,
		.said_fd = c->said_fd,
		.pid_fd = c->pid_fd,
		.kept = strcmp(c->dir, pod->kept) == 0,
		.made = made,
		.crun = podd->options.crun,
		.crun_fd = crun_fd,
	};

	plan.id_base = plan.upper.id_base;
	for (size_t i = 0; pod->spec->runtime_class && i < podd->options.class_count; i++)
		if (strcmp(podd->options.classes[i].name, pod->spec->runtime_class) ==
		    0) {
			plan.crun = podd->options.classes[i].crun;
			plan.crun_fd = -1;
		}
	abx__start_run(&plan);
	_exit(1);
}

/* A folder of its own: an earlier container's, a spare, or a new and empty one. */
static int make_folder(struct container *c, bool *ret_made)
{
	struct pod *pod = c->pod;
	struct podd *podd = pod->podd;
	bool kept = pod->kept[0] && !c->is_init;
	char path[256];

	if (kept)
		abx__str_copy(c->dir, sizeof(c->dir), pod->kept);
	else
		snprintf(c->dir, sizeof(c->dir), "c%llu",
			 (unsigned long long)++podd->container_seq);
	pod_path(pod, c->dir, path, sizeof(path));
	if (kept)
		abx__folder_reuse(podd, path);
	*ret_made = kept || abx__spare_take(pod, path);
	if (*ret_made && !kept)
		return ABX_OK;
	return mkdirat(podd->dir_fd, path, 0700) < 0 && (errno != EEXIST || !kept)
		       ? ABX_EIO
		       : ABX_OK;
}

int abx__container_start(struct pod *pod, const abx__spec_container *spec,
			 struct image *image, const char *image_name, bool is_init,
			 bool gate_open, struct container **ret, abx_error **reterr)
{
	struct podd *podd = pod->podd;
	struct container *c = container_new(pod, spec, image, image_name);
	int gate[2] = { -1, -1 };
	int crun_fd, cgroup_fd;
	bool in_cgroup, made;
	pid_t pid;

	if (!c)
		return abx__error_nomem(reterr);
	c->is_init = is_init;
	c->oom_before = abx__cgroup_oom_kills(podd, pod->key);
	c->said_fd = memfd_create("start", MFD_CLOEXEC);
	c->pid_fd = memfd_create("pid", MFD_CLOEXEC);
	if (c->said_fd < 0 || c->pid_fd < 0 || make_folder(c, &made) < 0 ||
	    (!gate_open && pipe2(gate, O_CLOEXEC) < 0)) {
		int e = errno;

		container_free(c);
		return abx__error_errno(reterr, ABX_EIO, e, "container of Pod %s",
					pod->name);
	}
	crun_fd = abx__crun_sealed(podd);
	cgroup_fd = abx__cgroup_open(podd, pod->key);
	pid = abx__child_fork_into(cgroup_fd, &in_cgroup);
	if (pid == 0) {
		if (gate[1] >= 0)
			close(gate[1]);
		starter_main(c, gate[0], crun_fd, in_cgroup, made);
	}
	if (cgroup_fd >= 0)
		close(cgroup_fd);
	if (gate[0] >= 0)
		close(gate[0]);
	c->gate = gate[1];
	if (pid < 0) {
		int e = errno;

		container_free(c);
		return abx__error_errno(reterr, ABX_EIO, e, "fork");
	}
	c->starter = (struct child){ .pid = pid, .on_exit = on_starter_exit, .owner = c };
	abx__child_add(podd, &c->starter);
	if (gate_open)
		start_clock(c);
	*ret = c;
	return ABX_OK;
}

void abx__container_open_gate(struct container *c)
{
	char go = 1;

	if (c->gate < 0)
		return;
	if (write(c->gate, &go, 1) != 1)
		kill(c->starter.pid, SIGKILL);
	close(c->gate);
	c->gate = -1;
	start_clock(c);
}

int abx__container_adopt(struct pod *pod, pid_t pid, uint64_t start_time, const char *dir,
			 const char *image_name, uint64_t generation,
			 struct container **ret)
{
	struct container *c = container_new(pod, &pod->spec->main, NULL, image_name);

	if (!c)
		return ABX_ENOMEM;
	c->generation = generation;
	if (abx__str_copy(c->dir, sizeof(c->dir), dir) < 0 ||
	    watch_init(c, pid, false) < 0 || c->start_time != start_time) {
		c->dir[0] = '\0';
		container_free(c);
		return ABX_ENOTFOUND;
	}
	c->oom_before = abx__cgroup_oom_kills(pod->podd, pod->key);
	*ret = c;
	return ABX_OK;
}

void abx__container_end(struct container *c)
{
	if (c->ending)
		return;
	c->ending = true;
	if (c->state == CONTAINER_RUNNING) {
		end_init(c);
		return;
	}
	/* Behind a closed gate the starter goes by itself; past it crun is let finish,
	 * then its container ends. */
	if (c->gate >= 0) {
		close(c->gate);
		c->gate = -1;
		start_clock(c);
	}
}
