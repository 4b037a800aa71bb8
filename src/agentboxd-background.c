/*
 * agentboxd-background.c - --daemon: the first process stays until the instance is ready
 * or its child ended, and then says why.
 */
#include "agentboxd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "io/json.h"

#define LOG_READ_MAX 65536

static off_t size_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size : 0;
}

/* "what: error" of a line of the log; false: it is no error's. */
static bool say_error_line(const char *line, size_t len)
{
	ABX_CLEANUP_JSON json_object *o = NULL;
	const char *level = "", *what = "", *fields = "";

	if (abx__json_parse_object(line, len, 0, &o, NULL) < 0 ||
	    abx__json_get_str(o, "level", &level, NULL) <= 0 ||
	    strcmp(level, "error") != 0 || abx__json_get_str(o, "msg", &what, NULL) <= 0)
		return false;
	if (abx__json_get_str(o, "fields", &fields, NULL) < 0)
		fields = "";
	fprintf(stderr, "agentboxd: %s%s%s\n", what, *fields ? ": " : "", fields);
	return true;
}

/* The first error behind `from`: those after it mostly follow from it. */
static void say_first_error(const char *path, off_t from)
{
	ABX_CLEANUP(abx__closep)
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ABX_CLEANUP(abx__freep) char *text = abx__malloc(LOG_READ_MAX);
	ssize_t n = fd >= 0 && text ? pread(fd, text, LOG_READ_MAX, from) : 0;
	const char *line = text, *end;

	while (n > 0 && (end = memchr(line, '\n', (size_t)(text + n - line)))) {
		if (say_error_line(line, (size_t)(end - line)))
			return;
		line = end + 1;
	}
}

static int wait_ready(int fd, pid_t pid, const agentboxd_settings *s, off_t log_at)
{
	char buf[16];
	int status = 0;
	ssize_t n;

	do {
		n = read(fd, buf, sizeof(buf));
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		return 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == AGENTBOXD_RUNS_ALREADY) {
		fprintf(stderr,
			"agentboxd: an instance of %s runs already; agentboxd --stop "
			"ends it\n",
			s->state_dir);
		return AGENTBOXD_RUNS_ALREADY;
	}
	say_first_error(s->log_file, log_at);
	fprintf(stderr, "agentboxd: it did not start; its log is %s\n", s->log_file);
	return 1;
}

int agentboxd_daemonize(agentboxd_settings *s, abx_error **reterr)
{
	off_t log_at = size_of(s->log_file);
	int fds[2], null;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "pipe");
	pid = fork();
	if (pid < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "fork");
	if (pid > 0) {
		close(fds[1]);
		_exit(wait_ready(fds[0], pid, s, log_at));
	}
	close(fds[0]);
	s->ready_fd = fds[1];
	setsid();
	if (chdir("/") < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "/");
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	return ABX_OK;
}
