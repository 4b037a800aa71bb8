/*
 * src/abx/cmd-cp.c - `abx cp`: one or more files into a sandbox or out of it, streamed.
 *
 * ID:PATH names a file in a sandbox; "-" is stdin or stdout. A download is written beside
 * its target and renamed, so a broken one leaves nothing half. Directories are refused:
 * tar through `abx exec` carries them. So is what is no file: a pipe would be waited for,
 * and a device put out of its place by the rename.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

#define TAR_HINT                                                                      \
	"a directory goes with: tar -C DIR -c . | abx exec ID -- tar -C TARGET -x   " \
	"(and the other way round)"
#define MAX_ID_BYTES 128

struct place {
	char id[MAX_ID_BYTES]; /* "": here */
	const char *path;
};

/* ID:PATH has no slash before its colon; a local name with a colon is written ./NAME. */
static struct place place_of(const char *word)
{
	struct place p = { "", word };
	size_t n = strcspn(word, ":/");

	if (word[n] != ':' || n == 0 || n >= sizeof(p.id))
		return p;
	memcpy(p.id, word, n);
	p.path = word + n + 1;
	return p;
}

/* This side of a copy, and why it failed; 0: it did not. */
struct here {
	int fd;
	int error;
};

static int from_here(void *userdata, char *buf, size_t size, size_t *ret_len)
{
	struct here *here = userdata;
	ssize_t n;

	do
		n = read(here->fd, buf, size);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		here->error = errno;
		return ABX_EIO;
	}
	*ret_len = (size_t)n;
	return ABX_OK;
}

static int to_here(void *userdata, const char *data, size_t len)
{
	struct here *here = userdata;

	if (cli_write_all(here->fd, data, len) == ABX_OK)
		return ABX_OK;
	here->error = errno;
	return ABX_EIO;
}

/* The side here, when it was the one that failed, else the other. Takes `err`. */
static int copy_failed(const struct here *here, const char *name, const char *other,
		       abx_error *err)
{
	if (here->error == 0)
		return cli_fail_error(other, err);
	abx_error_free(err);
	return cli_fail(NULL, "%s: %s", name, strerror(here->error));
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* ---- into a sandbox ---- */

/* The target itself, or the source's name in it when it is a directory or ends in a
 * slash. */
static int upload_target(abx_sandbox *sandbox, const struct cli_args *args,
			 const char *source, const char *target, char *buf, size_t size)
{
	abx_file_options opts = ABX_FILE_OPTIONS_INIT;
	abx_file_info *info = NULL;
	bool dir = target[0] == '\0' || target[strlen(target) - 1] == '/';

	opts.user = args->user;
	if (!dir && abx_file_stat(sandbox, target, &opts, &info, NULL) >= 0)
		dir = info->type == ABX_FILE_DIRECTORY;
	abx_file_info_free(info);
	if (dir && strcmp(source, "-") == 0)
		return cli_fail("name the file: ID:PATH",
				"%s is a directory, and stdin has no name", target);
	bool slash = dir && target[0] != '\0' && target[strlen(target) - 1] != '/';
	int n = snprintf(buf, size, "%s%s%s", target, slash ? "/" : "",
			 dir ? base_of(source) : "");
	return n < 0 || (size_t)n >= size
		       ? cli_fail(NULL, "%s: the path is too long", target)
		       : 0;
}

static int upload_fd(abx_sandbox *sandbox, const struct cli_args *args, int fd,
		     const char *source, const char *target)
{
	abx_file_options opts = ABX_FILE_OPTIONS_INIT;
	struct here here = { .fd = fd };
	abx_error *err = NULL;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return cli_fail(NULL, "%s: %s", source, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return cli_fail(TAR_HINT, "%s is a directory", source);
	if (!S_ISREG(st.st_mode) && strcmp(source, "-") != 0)
		return cli_fail("what comes out of it goes with: cat FILE | abx cp - "
				"ID:PATH",
				"%s: not a regular file", source);
	opts.user = args->user;
	opts.content_length = S_ISREG(st.st_mode) ? st.st_size : 0;
	if (abx_file_write_stream(sandbox, target, &opts, from_here, &here, &err) < 0)
		return copy_failed(&here, source, target, err);
	return 0;
}

static int upload(abx_sandbox *sandbox, const struct cli_args *args, const char *source,
		  const char *target)
{
	char path[PATH_MAX];
	int fd = STDIN_FILENO, r;

	if (strcmp(source, "-") != 0) {
		fd = open(source, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0)
			return cli_fail(NULL, "%s: %s", source, strerror(errno));
	}
	r = upload_target(sandbox, args, source, target, path, sizeof(path));
	if (r == 0)
		r = upload_fd(sandbox, args, fd, source, path);
	if (fd != STDIN_FILENO)
		close(fd);
	return r;
}

/* ---- out of a sandbox ---- */

static int refuse_directory(abx_sandbox *sandbox, const struct cli_args *args,
			    const char *source)
{
	abx_file_options opts = ABX_FILE_OPTIONS_INIT;
	abx_file_info *info = NULL;
	abx_error *err = NULL;

	opts.user = args->user;
	if (abx_file_stat(sandbox, source, &opts, &info, &err) < 0)
		return cli_fail_error(source, err);
	bool dir = info->type == ABX_FILE_DIRECTORY;
	abx_file_info_free(info);
	return dir ? cli_fail(TAR_HINT, "%s is a directory", source) : 0;
}

static int download_fd(abx_sandbox *sandbox, const struct cli_args *args,
		       const char *source, int fd, const char *target)
{
	abx_file_options opts = ABX_FILE_OPTIONS_INIT;
	struct here here = { .fd = fd };
	abx_error *err = NULL;

	opts.user = args->user;
	if (abx_file_read_stream(sandbox, source, &opts, to_here, &here, &err) < 0)
		return copy_failed(&here, target, source, err);
	return 0;
}

static int download(abx_sandbox *sandbox, const struct cli_args *args, const char *source,
		    const char *target)
{
	char path[PATH_MAX], part[PATH_MAX + 16];
	struct stat st;
	int n;

	if (refuse_directory(sandbox, args, source) != 0)
		return 1;
	if (strcmp(target, "-") == 0)
		return download_fd(sandbox, args, source, STDOUT_FILENO, "stdout");
	bool dir = target[strlen(target) - 1] == '/' ||
		   (stat(target, &st) == 0 && S_ISDIR(st.st_mode));
	n = snprintf(path, sizeof(path), "%s%s%s", target, dir ? "/" : "",
		     dir ? base_of(source) : "");
	if (n < 0 || (size_t)n >= sizeof(path))
		return cli_fail(NULL, "%s: the path is too long", target);
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return cli_fail("abx cp ID:FILE - writes to stdout", "%s: %s", path,
				S_ISDIR(st.st_mode) ? "a directory"
						    : "not a regular file");
	snprintf(part, sizeof(part), "%s.XXXXXX", path);
	int fd = mkostemp(part, O_CLOEXEC);
	if (fd < 0)
		return cli_fail(NULL, "%s: %s", path, strerror(errno));
	mode_t mask = umask(0);
	umask(mask);
	fchmod(fd, 0666 & ~mask);
	int r = download_fd(sandbox, args, source, fd, path);
	if (close(fd) < 0 && r == 0)
		r = cli_fail(NULL, "%s: %s", path, strerror(errno));
	if (r == 0 && rename(part, path) < 0)
		r = cli_fail(NULL, "%s: %s", path, strerror(errno));
	if (r != 0)
		unlink(part);
	return r;
}

int cmd_cp(const struct cli_args *args)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	CLI_CLEANUP(cli_sandbox_freep) abx_sandbox *sandbox = NULL;

	if (args->n_words < 2)
		return cli_fail("abx cp FILE... ID:PATH, or abx cp ID:FILE... PATH",
				"cp needs a source and a target");
	size_t n = args->n_words - 1;
	struct place target = place_of(args->words[n]);
	struct place first = place_of(args->words[0]);
	if ((target.id[0] == '\0') == (first.id[0] == '\0'))
		return cli_fail("abx cp FILE... ID:PATH, or abx cp ID:FILE... PATH",
				"one side of cp is in a sandbox, the other is here");
	for (size_t i = 1; i < n; i++)
		if (strcmp(place_of(args->words[i]).id, first.id) != 0)
			return cli_fail(NULL,
					"all sources of one cp are in the same place");
	if (target.path[0] == '\0' && target.id[0] == '\0')
		return cli_fail(NULL, "cp needs a target");
	if (cli_sandbox(args, target.id[0] != '\0' ? target.id : first.id, &client,
			&sandbox) != 0)
		return 1;
	int code = 0;
	for (size_t i = 0; i < n; i++) {
		const char *source = place_of(args->words[i]).path;
		int r = target.id[0] != '\0'
				? upload(sandbox, args, source, target.path)
				: download(sandbox, args, source, target.path);
		if (r != 0)
			code = 1;
	}
	return code;
}
