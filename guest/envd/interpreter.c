/*
 * interpreter.c - a listener that starts its server.
 *
 * Whether the image can run it is read off the file system: starting Python to ask would
 * cost more than everything else envd does at its start.
 */
#include "envd/interpreter.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "envd/env-vars.h"
#include "envd/envd.h"
#include "envd/spawn.h"

#define BACKLOG 128
#define EARLY_US 5000000
#define FAILURES_MAX 3

extern char **environ;

/* ---- can the image run it ---- */

static bool exists(const char *dir, const char *name)
{
	ABX_CLEANUP(abx__freep) char *path = abx__strf("%s/%s", dir, name);

	return path && access(path, F_OK) == 0;
}

/* PREFIX/lib/python3[.N]/{site,dist}-packages/ipykernel. */
static bool has_ipykernel(const char *prefix)
{
	ABX_CLEANUP(abx__freep) char *lib = abx__strf("%s/lib", prefix);
	DIR *dir = lib ? opendir(lib) : NULL;
	struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir))) {
		ABX_CLEANUP(abx__freep) char *python = NULL;

		if (strncmp(entry->d_name, "python3", 7) != 0)
			continue;
		python = abx__strf("%s/%s", lib, entry->d_name);
		found = python && (exists(python, "site-packages/ipykernel") ||
				   exists(python, "dist-packages/ipykernel"));
	}
	if (dir)
		closedir(dir);
	return found;
}

/* `bin` is where python3 lies; what Debian's pip installs is found below /usr/local. */
static bool folder_has_ipykernel(const char *bin)
{
	ABX_CLEANUP(abx__freep) char *prefix = abx__strdup(bin);
	char *slash = prefix ? strrchr(prefix, '/') : NULL;

	if (!slash)
		return false;
	*slash = '\0';
	if (strcmp(prefix, "/usr") == 0 || !*prefix)
		return has_ipykernel("/usr") || has_ipykernel("/usr/local");
	return has_ipykernel(prefix);
}

char *abx__interpreter_find_python(const char *path)
{
	while (path && *path) {
		size_t len = strcspn(path, ":");
		ABX_CLEANUP(abx__freep) char *bin = abx__strndup(path, len);
		ABX_CLEANUP(abx__freep)
		char *python = bin ? abx__strf("%s/python3", bin) : NULL;

		if (python && access(python, X_OK) == 0)
			return folder_has_ipykernel(bin) ? abx_take(python) : NULL;
		path += len + (path[len] == ':');
	}
	return NULL;
}

/* ---- its start ---- */

/* Of this daemon's own start, rather than the image's. */
static bool is_ours(const char *name)
{
	return strncmp(name, "AGENTBOX_", 9) == 0 ||
	       strcmp(name, "UV_THREADPOOL_SIZE") == 0;
}

/* What envd was started with (the image's variables), the account's, and the sandbox's.
 */
static int collect_vars(abx__interpreter *interpreter, const abx__user *user,
			abx__map *ret)
{
	ABX_CLEANUP(abx__freep) char *port = NULL;
	int r = ABX_OK;

	for (char **each = environ; r >= 0 && *each; each++) {
		size_t len = strcspn(*each, "=");
		ABX_CLEANUP(abx__freep) char *name = abx__strndup(*each, len);

		if (!name)
			return ABX_ENOMEM;
		if ((*each)[len] == '=' && !is_ours(name))
			r = abx__map_set(ret, name, *each + len + 1);
	}
	if (r >= 0)
		r = abx__env_vars_of_user(interpreter->envd, user, ret);
	port = abx__strf("%u", (unsigned)interpreter->envd->port);
	if (r >= 0)
		r = port ? abx__map_set(ret, "AGENTBOX_ENVD_PORT", port) : ABX_ENOMEM;
	return r;
}

/* The daemon's own account: what runs in a cell may do what the sandbox may. */
static int find_user(abx__envd *envd, abx__user *ret)
{
	ABX_CLEANUP(abx__freep)
	char *name = abx__users_name_of_uid(&envd->users, geteuid());

	return name ? abx__users_find(&envd->users, name, ret, NULL) : ABX_ENOMEM;
}

static pid_t run_program(abx__interpreter *interpreter, char *const *envp)
{
	const char *const files[] = { interpreter->python, NULL };
	const char *const argv[] = { "python3", "-B", interpreter->file,
				     interpreter->is_warm ? "--warm" : NULL, NULL };
	ABX_CLEANUP(abx__closep) int log = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	enum abx__spawn_step step;
	abx__spawn spawn = {
		.files = files,
		.argv = (char *const *)argv,
		.envp = envp,
		.cwd = "/",
		.uid = geteuid(),
		.gid = getegid(),
		.fds = { interpreter->listener, log, log },
	};

	return log < 0 ? -errno : abx__spawn_run(&spawn, &step);
}

static void start(abx__interpreter *interpreter)
{
	abx__envd *envd = interpreter->envd;
	ABX_CLEANUP(abx__user_done) abx__user user = { 0 };
	abx__map vars = ABX__MAP_INIT;
	char **envp = NULL;
	pid_t pid = -ENOMEM;

	uv_poll_stop(&interpreter->poll);
	if (find_user(envd, &user) == ABX_OK &&
	    collect_vars(interpreter, &user, &vars) == ABX_OK)
		envp = abx__env_vars_block(&vars);
	if (envp)
		pid = run_program(interpreter, envp);
	abx__free(envp);
	abx__map_done(&vars);
	if (pid > 0) {
		interpreter->pid = pid;
		interpreter->started_us = abx__mono_us();
		return;
	}
	abx__log_error(&envd->log, "the code interpreter cannot be started",
		       "python=%s error=\"%s\"", interpreter->python, strerror(-pid));
	abx__interpreter_close(interpreter);
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	start(poll->data);
}

static void wait_for_connection(abx__interpreter *interpreter)
{
	uv_poll_start(&interpreter->poll, UV_READABLE, on_connection);
}

void abx__interpreter_on_exit(abx__interpreter *interpreter, pid_t pid, int wait_status)
{
	bool is_early = abx__mono_us() - interpreter->started_us < EARLY_US;

	if (interpreter->pid != pid)
		return;
	interpreter->pid = 0;
	if (!interpreter->is_open)
		return;
	interpreter->failures = is_early ? interpreter->failures + 1 : 0;
	abx__log_warn(&interpreter->envd->log, "the code interpreter ended",
		      "wait_status=%d failures=%u", wait_status, interpreter->failures);
	if (interpreter->failures >= FAILURES_MAX)
		abx__interpreter_close(interpreter);
	else
		wait_for_connection(interpreter);
}

/* ---- the listener ---- */

static int listen_on(const char *ip, uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	ABX_CLEANUP(abx__closep)
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	if (inet_pton(AF_INET, ip ? ip : "0.0.0.0", &at.sin_addr) != 1)
		return -EAFNOSUPPORT;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return abx_take_fd(fd);
}

void abx__interpreter_init(abx__interpreter *interpreter, struct abx__envd *envd,
			   const struct abx__envd_options *opts)
{
	memset(interpreter, 0, sizeof(*interpreter));
	interpreter->envd = envd;
	interpreter->file = opts->interpreter;
	interpreter->is_warm = opts->interpreter_warm;
	interpreter->listener = -1;
	if (!interpreter->file || access(interpreter->file, R_OK) < 0)
		return;
	interpreter->python = abx__interpreter_find_python(getenv("PATH"));
	if (!interpreter->python)
		return;
	interpreter->listener = listen_on(opts->bind_ip, opts->interpreter_port);
	if (interpreter->listener < 0 ||
	    uv_poll_init(envd->loop, &interpreter->poll, interpreter->listener) < 0) {
		abx__log_warn(&envd->log, "no code interpreter", "port=%u error=\"%s\"",
			      (unsigned)opts->interpreter_port,
			      strerror(-interpreter->listener));
		return;
	}
	interpreter->poll.data = interpreter;
	interpreter->is_open = true;
	if (interpreter->is_warm)
		start(interpreter);
	else
		wait_for_connection(interpreter);
}

static void on_poll_closed(uv_handle_t *handle)
{
	abx__interpreter *interpreter = handle->data;

	abx__closep(&interpreter->listener);
	interpreter->listener = -1;
}

void abx__interpreter_close(abx__interpreter *interpreter)
{
	if (interpreter->is_open) {
		interpreter->is_open = false;
		uv_close((uv_handle_t *)&interpreter->poll, on_poll_closed);
	}
	if (interpreter->pid > 0)
		kill(interpreter->pid, SIGTERM);
	abx__free(interpreter->python);
	interpreter->python = NULL;
}
