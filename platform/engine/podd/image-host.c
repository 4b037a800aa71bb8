/*
 * image-host.c - the images that need no download.
 *
 *   host:     the host's /usr under a synthetic /etc, home, and so on; `user` may sudo
 *   runtime:  Debian's static busybox and /workspace/{tini,envd,agentbox-entrypoint.sh}
 *   idle:     runtime: with the mark of an idle image
 *
 * Only files on the lists below are copied out of the host's /etc: nothing that could
 * hold a secret.
 */
#include "engine/podd/image.h"

#include <dirent.h>
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
#include "base/id.h"
#include "base/str.h"

#define SHAPE "3" /* changes when what is built below changes */
#define USER_ID 1000

struct text_file {
	const char *path;
	mode_t mode;
	const char *text;
};

static const char passwd_text[] =
	"root:x:0:0:root:/root:/bin/sh\n"
	"daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
	"bin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
	"sys:x:3:3:sys:/dev:/usr/sbin/nologin\n"
	"man:x:6:12:man:/var/cache/man:/usr/sbin/nologin\n"
	"mail:x:8:8:mail:/var/mail:/usr/sbin/nologin\n"
	"www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
	"_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n"
	"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
	"user:x:1000:1000:user:/home/user:/bin/sh\n";
static const char passwd_bash_text[] =
	"root:x:0:0:root:/root:/bin/bash\n"
	"daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
	"bin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
	"sys:x:3:3:sys:/dev:/usr/sbin/nologin\n"
	"man:x:6:12:man:/var/cache/man:/usr/sbin/nologin\n"
	"mail:x:8:8:mail:/var/mail:/usr/sbin/nologin\n"
	"www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
	"_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n"
	"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
	"user:x:1000:1000:user:/home/user:/bin/bash\n";
static const char group_text[] =
	"root:x:0:\ndaemon:x:1:\nbin:x:2:\nsys:x:3:\nadm:x:4:\ntty:x:5:\n"
	"disk:x:6:\nman:x:12:\nmail:x:8:\nkmem:x:15:\nsudo:x:27:user\n"
	"www-data:x:33:\nshadow:x:42:\nutmp:x:43:\nstaff:x:50:\nusers:x:100:\n"
	"nogroup:x:65534:\nuser:x:1000:\n";
static const char shadow_text[] =
	"root:*:19000:0:99999:7:::\nuser:*:19000:0:99999:7:::\n";
static const char sudoers_text[] =
	"Defaults env_reset\n"
	"Defaults "
	"secure_path=\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"\n"
	"root ALL=(ALL:ALL) ALL\n"
	"user ALL=(ALL:ALL) NOPASSWD: ALL\n";
/* Inside a sandbox there is no password to ask for: who may become whom is sudoers' and
 * the kernel's business. */
static const char pam_text[] =
	"auth required pam_permit.so\naccount required pam_permit.so\n"
	"password required pam_permit.so\nsession required pam_permit.so\n";

static const struct text_file host_files[] = {
	{ "etc/passwd", 0644, passwd_bash_text },
	{ "etc/group", 0644, group_text },
	{ "etc/shadow", 0640, shadow_text },
	{ "etc/sudoers", 0440, sudoers_text },
	{ "etc/pam.d/sudo", 0644, pam_text },
	{ "etc/pam.d/sudo-i", 0644, pam_text },
	{ "etc/pam.d/su", 0644, pam_text },
	{ "etc/pam.d/su-l", 0644, pam_text },
	{ "etc/pam.d/other", 0644, pam_text },
	{ "etc/nsswitch.conf", 0644,
	  "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: "
	  "files\n"
	  "protocols: files\nservices: files\nethers: files\nrpc: files\n" },
	{ "etc/host.conf", 0644, "multi on\n" },
	{ "etc/profile", 0644,
	  "PATH=\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"\nexport "
	  "PATH\n"
	  "for i in /etc/profile.d/*.sh; do [ -r \"$i\" ] && . \"$i\"; done\nunset i\n" },
	{ "etc/timezone", 0644, "Etc/UTC\n" },
	{ 0 },
};

static const struct text_file runtime_files[] = {
	{ "etc/passwd", 0644, passwd_text },
	{ "etc/group", 0644, group_text },
	{ "etc/nsswitch.conf", 0644, "hosts: files dns\n" },
	{ 0 },
};

/* Copied from the host when there; a name ending in '/' is a folder, copied with all
 * below it. */
static const char *const host_copies[] = {
	"alternatives/",
	"ssl/certs/",
	"ssl/openssl.cnf",
	"ld.so.cache",
	"ld.so.conf",
	"ld.so.conf.d/",
	"matplotlibrc",
	"bash.bashrc",
	"inputrc",
	"mime.types",
	"protocols",
	"services",
	"rpc",
	"debian_version",
	"login.defs",
	"locale.alias",
	"terminfo/",
	"python3/",
	"python3.11/",
	"python3.12/",
	"python3.13/",
	"perl/",
	"skel/",
	"ca-certificates.conf",
	"magic",
	"magic.mime",
	"ethertypes",
	"gai.conf",
	"lsb-release",
	"vim/",
	"emacs/",
	"fonts/",
	"java-17-openjdk/",
	"ImageMagick-6/",
	"R/",
	NULL,
};

static const struct {
	const char *path;
	mode_t mode;
	uid_t owner;
} folders[] = {
	{ "etc", 0755, 0 },           { "etc/pam.d", 0755, 0 },
	{ "etc/profile.d", 0755, 0 }, { "etc/ssl", 0755, 0 },
	{ "home", 0755, 0 },          { "home/user", 0755, USER_ID },
	{ "root", 0700, 0 },          { "tmp", 01777, 0 },
	{ "var", 0755, 0 },           { "var/tmp", 01777, 0 },
	{ "var/log", 0755, 0 },       { "var/lib", 0755, 0 },
	{ "var/cache", 0755, 0 },     { "var/spool", 0755, 0 },
	{ "var/mail", 0755, 0 },      { "run", 0755, 0 },
	{ "run/lock", 01777, 0 },     { "mnt", 0755, 0 },
	{ "mnt/agentbox", 0755, 0 },  { "opt", 0755, 0 },
	{ "srv", 0755, 0 },           { "media", 0755, 0 },
	{ "proc", 0555, 0 },          { "sys", 0555, 0 },
	{ "dev", 0755, 0 },           { "workspace", 0755, 0 },
	{ "usr", 0755, 0 },           { "usr/bin", 0755, 0 },
	{ "usr/sbin", 0755, 0 },      { "usr/lib", 0755, 0 },
};

/* A link that may be there already, or whose place an image fills otherwise: not worth an
 * error. */
static void try_link(const char *target, int fd, const char *path)
{
	int r = symlinkat(target, fd, path);

	(void)r;
}

static int make_folders(int fd, abx_error **reterr)
{
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (abx__fs_mkdir(fd, folders[i].path, folders[i].mode,
				  folders[i].owner) < 0)
			return abx__error_errno(reterr, ABX_EIO, errno, "folder %s",
						folders[i].path);
	if (symlinkat("/run", fd, "var/run") < 0 ||
	    symlinkat("/run/lock", fd, "var/lock") < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "var/run");
	return ABX_OK;
}

static int write_files(int fd, const struct text_file *files, abx_error **reterr)
{
	for (; files->path; files++)
		if (abx__fs_write(fd, files->path, files->text, strlen(files->text),
				  files->mode) < 0)
			return abx__error_errno(reterr, ABX_EIO, errno, "%s",
						files->path);
	return ABX_OK;
}

/* The files that make a runtime; tini may be Debian's. */
static int copy_runtime(struct podd *podd, int fd, abx_error **reterr)
{
	static const char *const names[] = { "envd", "tini", "agentbox-entrypoint.sh",
					     "agentbox-interpreter.pyz" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char from[64], to[64];

		snprintf(from, sizeof(from), "rt/%s", names[i]);
		snprintf(to, sizeof(to), "workspace/%s", names[i]);
		if (abx__fs_copy(podd->dir_fd, from, fd, to, 0755) < 0 && errno != ENOENT)
			return abx__error_errno(reterr, ABX_EIO, errno, "%s", to);
	}
	return ABX_OK;
}

/* ---- copies of the host's /etc ---- */

static void copy_link(int from_dir, const char *name, int to_dir)
{
	char target[4096];
	ssize_t n = readlinkat(from_dir, name, target, sizeof(target) - 1);

	if (n <= 0)
		return;
	target[n] = '\0';
	if (symlinkat(target, to_dir, name) < 0)
		return;
}

static void copy_tree(int from_dir, int to_dir, int depth)
{
	DIR *d = fdopendir(dup(from_dir));
	struct dirent *e;

	while (d && depth < 8 && (e = readdir(d))) {
		struct stat st;

		if (e->d_name[0] == '.' &&
		    (e->d_name[1] == '\0' || strcmp(e->d_name, "..") == 0))
			continue;
		if (fstatat(from_dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISLNK(st.st_mode)) {
			copy_link(from_dir, e->d_name, to_dir);
		} else if (S_ISREG(st.st_mode) && (st.st_mode & 0004)) {
			/* World-readable only: what the host keeps to itself stays there.
			 */
			abx__fs_copy(from_dir, e->d_name, to_dir, e->d_name,
				     st.st_mode & 0755);
		} else if (S_ISDIR(st.st_mode) && mkdirat(to_dir, e->d_name, 0755) == 0) {
			ABX_CLEANUP(abx__closep)
			int from = openat(from_dir, e->d_name,
					  O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			ABX_CLEANUP(abx__closep)
			int to = openat(to_dir, e->d_name,
					O_RDONLY | O_DIRECTORY | O_CLOEXEC);

			if (from >= 0 && to >= 0)
				copy_tree(from, to, depth + 1);
		}
	}
	if (d)
		closedir(d);
}

static void copy_host_etc(int fd)
{
	ABX_CLEANUP(abx__closep)
	int etc = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ABX_CLEANUP(abx__closep)
	int to = openat(fd, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; host_copies[i] && etc >= 0 && to >= 0; i++) {
		char name[64];
		size_t len = strlen(host_copies[i]);
		struct stat st;

		if (abx__str_copy(name, sizeof(name), host_copies[i]) < 0)
			continue;
		if (name[len - 1] == '/') {
			name[len - 1] = '\0';
			ABX_CLEANUP(abx__closep)
			int a = openat(etc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (a < 0 || mkdirat(to, name, 0755) < 0)
				continue;
			ABX_CLEANUP(abx__closep)
			int b = openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (b >= 0)
				copy_tree(a, b, 0);
		} else if (fstatat(etc, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			   S_ISREG(st.st_mode) && (st.st_mode & 0004)) {
			abx__fs_copy(etc, name, to, name, 0644);
		}
	}
	if (to >= 0) {
		try_link("../usr/lib/os-release", to, "os-release");
		try_link("/usr/share/zoneinfo/Etc/UTC", to, "localtime");
	}
}

/* Debian's merged /usr: /bin and friends are links into it. */
static int link_usr(int fd, abx_error **reterr)
{
	static const char *const names[] = { "bin",   "sbin",  "lib",
					     "lib32", "lib64", "libx32" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[16], target[64];
		ssize_t n;

		snprintf(path, sizeof(path), "/%s", names[i]);
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 0 && errno == ENOENT)
			continue;
		if (n < 0)
			return abx__error_set(reterr, ABX_EUNSUPPORTED,
					      "image host: needs a host with merged "
					      "/usr: %s is no link",
					      path);
		target[n] = '\0';
		if (symlinkat(target, fd, names[i]) < 0)
			return abx__error_errno(reterr, ABX_EIO, errno, "%s", names[i]);
	}
	/* `python` is what agents type; the layer's usr/ lies over the host's. */
	if (access("/usr/bin/python", F_OK) < 0 && access("/usr/bin/python3", F_OK) == 0)
		try_link("python3", fd, "usr/bin/python");
	return ABX_OK;
}

static void copy_skeleton(int fd)
{
	static const char *const names[] = { ".bashrc", ".profile", ".bash_logout" };
	ABX_CLEANUP(abx__closep)
	int skel = open("/etc/skel", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ABX_CLEANUP(abx__closep)
	int home = openat(fd, "home/user", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; i < 3 && skel >= 0 && home >= 0; i++)
		if (abx__fs_copy(skel, names[i], home, names[i], 0644) == ABX_OK &&
		    fchownat(home, names[i], USER_ID, USER_ID, AT_SYMLINK_NOFOLLOW) < 0)
			return;
}

/* ---- names: a built-in layer is known by what went into it ---- */

static void add_stamp(abx__buf *buf, int dir_fd, const char *path)
{
	struct stat st = { 0 };

	if (fstatat(dir_fd, path, &st, 0) < 0)
		st.st_size = -1;
	abx__buf_addf(buf, "%s %lld %lld.%09ld\n", path, (long long)st.st_size,
		      (long long)st.st_mtim.tv_sec, (long)st.st_mtim.tv_nsec);
}

static int layer_name(struct podd *podd, const char *kind, char out[64],
		      abx_error **reterr)
{
	static const char *const host_paths[] = {
		"/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl/certs",
		"/usr/bin/python3",  "/bin/busybox",     "/usr/lib/os-release",
		"/etc/matplotlibrc"
	};
	static const char *const rt[] = { "rt/envd", "rt/tini",
					  "rt/agentbox-entrypoint.sh",
					  "rt/agentbox-interpreter.pyz" };
	abx__buf buf = ABX__BUF_INIT;
	uint8_t hash[ABX__SHA256_LEN];
	char hex[17];
	int r;

	abx__buf_adds(&buf, SHAPE "\n");
	for (size_t i = 0; i < sizeof(host_paths) / sizeof(host_paths[0]); i++)
		add_stamp(&buf, AT_FDCWD, host_paths[i]);
	for (size_t i = 0; i < sizeof(rt) / sizeof(rt[0]); i++)
		add_stamp(&buf, podd->dir_fd, rt[i]);
	r = buf.data ? abx__sha256(buf.data, buf.len, hash) : ABX_ENOMEM;
	abx__buf_done(&buf);
	if (r < 0)
		return abx__error_nomem(reterr);
	abx__hex(hash, 8, hex);
	snprintf(out, 64, "%s-%s", kind, hex);
	return ABX_OK;
}

typedef int (*fill_fn)(struct podd *podd, int fd, abx_error **reterr);

static int keep_built_in(struct image_job *job, const char *kind, fill_fn fill,
			 abx_error **reterr)
{
	ABX_CLEANUP(abx__closep) int fd = -1;
	char layer[64], tmp[64];
	int r = layer_name(job->podd, kind, layer, reterr);

	if (r == ABX_OK && !abx__image_has_layer(job->podd, layer)) {
		r = abx__image_tmp(job->podd, tmp, reterr);
		if (r < 0)
			return r;
		fd = openat(job->podd->dir_fd, tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = fd < 0 ? abx__error_errno(reterr, ABX_EIO, errno, "%s", tmp)
			   : fill(job->podd, fd, reterr);
		if (r == ABX_OK)
			r = abx__image_keep_layer(job->podd, tmp, layer, reterr);
	}
	if (r == ABX_OK)
		abx__image_add_layer(job, layer);
	return r;
}

static int fill_host(struct podd *podd, int fd, abx_error **reterr)
{
	int r = make_folders(fd, reterr);

	if (r == ABX_OK)
		r = link_usr(fd, reterr);
	if (r == ABX_OK)
		copy_host_etc(fd);
	if (r == ABX_OK)
		r = write_files(fd, host_files, reterr);
	if (r == ABX_OK && fchownat(fd, "etc/shadow", 0, 42, 0) < 0)
		r = abx__error_errno(reterr, ABX_EIO, errno, "etc/shadow");
	if (r == ABX_OK)
		copy_skeleton(fd);
	return r == ABX_OK ? copy_runtime(podd, fd, reterr) : r;
}

/* The names busybox answers to, as links to it. */
static int link_applets(int fd, abx_error **reterr)
{
	char list[16384];
	size_t len = 0;
	ssize_t n;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "pipe");
	pid = abx__child_fork();
	if (pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		execl("/bin/busybox", "busybox", "--list", (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	while (pid > 0 && len < sizeof(list) - 1 &&
	       (n = read(fds[0], list + len, sizeof(list) - 1 - len)) > 0)
		len += (size_t)n;
	close(fds[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	list[len] = '\0';
	for (char *line = list, *end; *line; line = end + 1) {
		char path[64];

		end = strchr(line, '\n');
		if (!end)
			break;
		*end = '\0';
		if (*line && !strchr(line, '/') && strcmp(line, "busybox") != 0 &&
		    snprintf(path, sizeof(path), "bin/%s", line) < (int)sizeof(path))
			try_link("busybox", fd, path);
	}
	return len ? ABX_OK
		   : abx__error_set(reterr, ABX_EUNAVAILABLE,
				    "busybox --list gave nothing");
}

static int fill_runtime(struct podd *podd, int fd, abx_error **reterr)
{
	int r = make_folders(fd, reterr);

	if (r == ABX_OK && (abx__fs_mkdir(fd, "bin", 0755, 0) < 0 ||
			    abx__fs_mkdir(fd, "sbin", 0755, 0) < 0))
		r = abx__error_errno(reterr, ABX_EIO, errno, "bin");
	if (r == ABX_OK &&
	    abx__fs_copy(AT_FDCWD, "/bin/busybox", fd, "bin/busybox", 0755) < 0)
		r = abx__error_errno(
			reterr, ABX_EUNAVAILABLE, errno,
			"/bin/busybox (package busybox-static) is needed for this image");
	if (r == ABX_OK)
		r = link_applets(fd, reterr);
	if (r == ABX_OK)
		r = write_files(fd, runtime_files, reterr);
	return r == ABX_OK ? copy_runtime(podd, fd, reterr) : r;
}

static int fill_idle_mark(struct podd *podd, int fd, abx_error **reterr)
{
	(void)podd;
	if (abx__fs_mkdir(fd, "etc", 0755, 0) < 0 ||
	    abx__fs_write(fd, "etc/agentbox_is_idle_image", "", 0, 0644) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno,
					"etc/agentbox_is_idle_image");
	return ABX_OK;
}

int abx__image_build_runtime(struct image_job *job, bool idle, abx_error **reterr)
{
	int r = keep_built_in(job, "runtime", fill_runtime, reterr);

	if (r == ABX_OK && idle)
		r = keep_built_in(job, "idle", fill_idle_mark, reterr);
	return r;
}

int abx__image_build_host(struct image_job *job, abx_error **reterr)
{
	json_object_object_add(job->result, "host_usr", json_object_new_boolean(true));
	return keep_built_in(job, "host", fill_host, reterr);
}
