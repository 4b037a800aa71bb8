/*
 * image.c - the account `user` and what goes with it, made where an image lacks them.
 *
 * A claim with another image waits for this, so it is done here rather than by a shell
 * and the image's own tools, which it may not even have.
 */
#include "envd/image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "envd/accounts.h"

#define FILE_MAX ((size_t)1 << 20)
#define ID_FIRST 1000
#define TREE_DEPTH_MAX 64
#define TREE_ENTRIES_MAX 1000000

static int read_file(int root, const char *path, abx__buf *text)
{
	ABX_CLEANUP(abx__closep)
	int fd = openat(root, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return ABX_EIO;
	do {
		if (abx__buf_reserve(text, 4096) < 0)
			return ABX_ETOOBIG;
		n = read(fd, text->data + text->len, 4096);
		text->len += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	return n < 0 ? ABX_EIO : ABX_OK;
}

/* A file that cannot be read counts as empty. */
static void scan(int root, const char *path, abx__accounts *ret)
{
	ABX_CLEANUP_BUF abx__buf text = ABX__BUF_INIT_CAP(FILE_MAX);

	abx__accounts_read(ret, abx__buf_str(&text),
			   read_file(root, path, &text) == ABX_OK ? text.len : 0);
}

static int write_text(int root, const char *path, int flags, mode_t mode,
		      const char *text)
{
	ABX_CLEANUP(abx__closep)
	int fd = openat(root, path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | flags, mode);
	size_t len = strlen(text);

	return fd >= 0 && write(fd, text, len) == (ssize_t)len ? ABX_OK : ABX_EIO;
}

static int add_line(int root, const char *path, char *line)
{
	int r = line ? write_text(root, path, O_APPEND, 0, line) : ABX_ENOMEM;

	abx__free(line);
	return r;
}

/* ---- the home ---- */

struct tree {
	uint32_t uid, gid;
	unsigned entries;
};

static void copy_data(int from, int to)
{
	char block[16384];
	ssize_t n;

	while ((n = read(from, block, sizeof(block))) > 0)
		if (write(to, block, (size_t)n) != n)
			return;
}

static void copy_file(int from_dir, int to_dir, const char *name)
{
	ABX_CLEANUP(abx__closep)
	int from = openat(from_dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ABX_CLEANUP(abx__closep) int to = -1;
	struct stat st;

	if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		    st.st_mode & 0777);
	if (to >= 0)
		copy_data(from, to);
}

static void copy_link(int from_dir, int to_dir, const char *name)
{
	char target[4096];
	ssize_t n = readlinkat(from_dir, name, target, sizeof(target) - 1);

	if (n <= 0)
		return;
	target[n] = '\0';
	if (symlinkat(target, to_dir, name) < 0)
		return;
}

/* Takes `from` over. */
static void copy_tree(int from, int to, struct tree *tree, unsigned depth)
{
	DIR *d = fdopendir(from);
	struct dirent *e;

	if (!d) {
		close(from);
		return;
	}
	while (depth < TREE_DEPTH_MAX && (e = readdir(d)) &&
	       tree->entries++ < TREE_ENTRIES_MAX) {
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode) &&
		    mkdirat(to, e->d_name, st.st_mode & 0777) == 0) {
			int sub = openat(dirfd(d), e->d_name,
					 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			ABX_CLEANUP(abx__closep)
			int sub_to =
				openat(to, e->d_name,
				       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			if (sub >= 0)
				copy_tree(sub, sub_to, tree, depth + 1);
		} else if (S_ISREG(st.st_mode)) {
			copy_file(dirfd(d), to, e->d_name);
		} else if (S_ISLNK(st.st_mode)) {
			copy_link(dirfd(d), to, e->d_name);
		}
	}
	closedir(d);
}

/* Takes `fd` over. */
static void own_tree(int fd, struct tree *tree, unsigned depth)
{
	DIR *d = fchown(fd, tree->uid, tree->gid) == 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!d) {
		close(fd);
		return;
	}
	while (depth < TREE_DEPTH_MAX && (e = readdir(d)) &&
	       tree->entries++ < TREE_ENTRIES_MAX) {
		int sub;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		sub = openat(dirfd(d), e->d_name,
			     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub >= 0)
			own_tree(sub, tree, depth + 1);
		else if (fchownat(dirfd(d), e->d_name, tree->uid, tree->gid,
				  AT_SYMLINK_NOFOLLOW) < 0)
			continue;
	}
	closedir(d);
}

static void make_home(int root, uint32_t uid, uint32_t gid)
{
	struct tree tree = { .uid = uid, .gid = gid };
	bool is_new;
	int home, skel;

	mkdirat(root, "home", 0755);
	is_new = mkdirat(root, "home/user", 0755) == 0;
	home = openat(root, "home/user", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (home < 0)
		return;
	skel = is_new ? openat(root, "etc/skel", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (skel >= 0)
		copy_tree(skel, home, &tree, 0);
	tree.entries = 0;
	own_tree(home, &tree, 0);
}

/* ---- the account ---- */

static void add_shadow(int root, abx__accounts *t)
{
	if (faccessat(root, "etc/shadow", W_OK, 0) < 0)
		return;
	scan(root, "etc/shadow", t);
	if (!t->has_user)
		add_line(root, "etc/shadow",
			 abx__strf("%suser:*:19700:0:99999:7:::\n", t->newline));
}

static int add_group(int root, uint32_t from, abx__accounts *t, uint32_t *ret_gid)
{
	scan(root, "etc/group", t);
	*ret_gid = t->has_user ? t->user_id : abx__accounts_free_id(t, from);
	return t->has_user ? ABX_OK
			   : add_line(root, "etc/group",
				      abx__strf("%suser:x:%u:\n", t->newline, *ret_gid));
}

static void make_account(int root, abx__accounts *t)
{
	const char *shell, *newline;
	uint32_t uid, gid;

	if (faccessat(root, "etc/passwd", F_OK, 0) < 0 &&
	    write_text(root, "etc/passwd", O_CREAT, 0644,
		       "root:x:0:0:root:/root:/bin/sh\n") < 0)
		return;
	if (faccessat(root, "etc/group", F_OK, 0) < 0 &&
	    write_text(root, "etc/group", O_CREAT, 0644, "root:x:0:\n") < 0)
		return;
	scan(root, "etc/passwd", t);
	if (t->has_user)
		return;
	uid = abx__accounts_free_id(t, ID_FIRST);
	newline = t->newline;
	shell = faccessat(root, "bin/bash", X_OK, 0) == 0 ? "/bin/bash" : "/bin/sh";
	if (add_group(root, uid, t, &gid) < 0 ||
	    add_line(root, "etc/passwd",
		     abx__strf("%suser:x:%u:%u::/home/user:%s\n", newline, uid, gid,
			       shell)) < 0)
		return;
	add_shadow(root, t);
	make_home(root, uid, gid);
}

/* sudo without a password, where there is sudo. */
static void allow_sudo(int root)
{
	const char *file = "etc/sudoers.d/agentbox-user";

	if (faccessat(root, "etc/sudoers.d", F_OK, 0) == 0 &&
	    write_text(root, file, O_CREAT | O_EXCL, 0440,
		       "user ALL=(ALL:ALL) NOPASSWD: ALL\n") < 0 &&
	    errno != EEXIST)
		unlinkat(root, file, 0);
}

/* Login shells read /etc/profile.d; an image without /etc/profile gets one that does. */
static void make_profile(int root)
{
	if (mkdirat(root, "etc/profile.d", 0755) < 0 && errno != EEXIST)
		return;
	write_text(root, "etc/profile", O_CREAT | O_EXCL, 0644,
		   "for i in /etc/profile.d/*.sh; do [ -r \"$i\" ] && . \"$i\"; done; "
		   "unset i\n");
}

void abx__image_prepare(const char *root_path)
{
	ABX_CLEANUP(abx__closep)
	int root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	abx__accounts *t = abx__malloc(sizeof(*t));
	mode_t mask = umask(022);

	if (root >= 0 && t && (mkdirat(root, "etc", 0755) == 0 || errno == EEXIST)) {
		make_account(root, t);
		allow_sudo(root);
		make_profile(root);
	}
	umask(mask);
	abx__free(t);
}
