/*
 * oci.c - config.json from typed fields. Nothing in it is a path or an option somebody
 * else chose, but for the Pod's own command, variables, working folder and mount points,
 * which have their meaning inside the container only.
 */
#include "engine/podd/podd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

#define DEFAULT_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define RUNTIME_MOUNT "/mnt/agentbox"

/* What the container engines give by default. */
static const char *const default_caps[] = {
	"CAP_CHOWN",   "CAP_DAC_OVERRIDE", "CAP_FSETID",           "CAP_FOWNER",
	"CAP_MKNOD",   "CAP_NET_RAW",      "CAP_SETGID",           "CAP_SETUID",
	"CAP_SETFCAP", "CAP_SETPCAP",      "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT",
	"CAP_KILL",    "CAP_AUDIT_WRITE",
};

static const char *const all_caps[] = {
	"CAP_CHOWN",
	"CAP_DAC_OVERRIDE",
	"CAP_DAC_READ_SEARCH",
	"CAP_FOWNER",
	"CAP_FSETID",
	"CAP_KILL",
	"CAP_SETGID",
	"CAP_SETUID",
	"CAP_SETPCAP",
	"CAP_LINUX_IMMUTABLE",
	"CAP_NET_BIND_SERVICE",
	"CAP_NET_BROADCAST",
	"CAP_NET_ADMIN",
	"CAP_NET_RAW",
	"CAP_IPC_LOCK",
	"CAP_IPC_OWNER",
	"CAP_SYS_MODULE",
	"CAP_SYS_RAWIO",
	"CAP_SYS_CHROOT",
	"CAP_SYS_PTRACE",
	"CAP_SYS_PACCT",
	"CAP_SYS_ADMIN",
	"CAP_SYS_BOOT",
	"CAP_SYS_NICE",
	"CAP_SYS_RESOURCE",
	"CAP_SYS_TIME",
	"CAP_SYS_TTY_CONFIG",
	"CAP_MKNOD",
	"CAP_LEASE",
	"CAP_AUDIT_WRITE",
	"CAP_AUDIT_CONTROL",
	"CAP_SETFCAP",
	"CAP_MAC_OVERRIDE",
	"CAP_MAC_ADMIN",
	"CAP_SYSLOG",
	"CAP_WAKE_ALARM",
	"CAP_BLOCK_SUSPEND",
	"CAP_AUDIT_READ",
	"CAP_PERFMON",
	"CAP_BPF",
	"CAP_CHECKPOINT_RESTORE",
};

static const char *const masked[] = { "/proc/acpi",
				      "/proc/kcore",
				      "/proc/keys",
				      "/proc/latency_stats",
				      "/proc/timer_list",
				      "/proc/timer_stats",
				      "/proc/sched_debug",
				      "/proc/scsi",
				      "/proc/interrupts",
				      "/sys/firmware",
				      "/sys/devices/virtual/powercap" };
static const char *const read_only[] = { "/proc/bus", "/proc/fs", "/proc/irq",
					 "/proc/sys", "/proc/sysrq-trigger" };

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static json_object *add(json_object *o, const char *key, json_object *value)
{
	json_object_object_add(o, key, value);
	return value;
}

static void add_str(json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, json_object_new_string(value));
}

static void push(json_object *a, const char *value)
{
	json_object_array_add(a, json_object_new_string(value));
}

/* ---- process ---- */

struct identity {
	uint32_t uid, gid;
	char home[256];
};

static bool read_field(char **line, char *out, size_t size)
{
	char *end;

	if (!*line)
		return false;
	end = strchr(*line, ':');
	if (end)
		*end = '\0';
	if (abx__str_copy(out, size, *line) < 0)
		return false;
	*line = end ? end + 1 : NULL;
	return true;
}

/* The line of etc/passwd (or etc/group) with this name or number. Fields 2 and 3 as
 * numbers. */
static bool look_up(int root_fd, const char *file, const char *name, int64_t id,
		    uint32_t *ret_id, uint32_t *ret_gid, char home[256])
{
	char *text = abx__fs_read_in_root(root_fd, file, (size_t)1 << 20, NULL);
	bool found = false;

	for (char *line = text, *end; !found && line && *line;
	     line = end ? end : line + strlen(line)) {
		char f[7][256] = { 0 };
		uint64_t n, g = 0;

		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		for (int i = 0; i < 7 && line; i++)
			if (!read_field(&line, f[i], sizeof(f[i])))
				break;
		line = end ? end : (char *)"";
		if (abx__parse_u64(f[2], 0, 65535, &n) < 0)
			continue;
		if (name ? strcmp(f[0], name) != 0 : (int64_t)n != id)
			continue;
		if (home && abx__parse_u64(f[3], 0, 65535, &g) < 0)
			continue;
		*ret_id = (uint32_t)n;
		if (ret_gid)
			*ret_gid = (uint32_t)g;
		if (home && *f[5])
			abx__str_copy(home, 256, f[5]);
		found = true;
	}
	abx__free(text);
	return found;
}

/* "user", "1000", "user:group", "1000:1000" of an image's config. */
static int image_user(const struct start_plan *plan, int root_fd, struct identity *who,
		      abx_error **reterr)
{
	char user[128];
	char *group;
	uint64_t n;

	if (!plan->image->user || !*plan->image->user)
		return ABX_OK;
	if (abx__str_copy(user, sizeof(user), plan->image->user) < 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "image %s: its User is too long", plan->image_name);
	group = strchr(user, ':');
	if (group)
		*group++ = '\0';
	if (abx__parse_u64(user, 0, 65535, &n) == ABX_OK)
		who->uid = (uint32_t)n;
	else if (!look_up(root_fd, "etc/passwd", user, -1, &who->uid, &who->gid,
			  who->home))
		return abx__error_set(
			reterr, ABX_ENOTFOUND,
			"image %s runs as user %s, which its /etc/passwd lacks",
			plan->image_name, user);
	if (!group || !*group)
		return ABX_OK;
	if (abx__parse_u64(group, 0, 65535, &n) == ABX_OK)
		who->gid = (uint32_t)n;
	else if (!look_up(root_fd, "etc/group", group, -1, &who->gid, NULL, NULL))
		return abx__error_set(
			reterr, ABX_ENOTFOUND,
			"image %s runs as group %s, which its /etc/group lacks",
			plan->image_name, group);
	return ABX_OK;
}

static int identify(const struct start_plan *plan, int root_fd, struct identity *who,
		    abx_error **reterr)
{
	uint32_t id, gid;
	int r;

	/* The template's user replaces the image's whole User: its group and home, too.
	 */
	if (plan->spec->uid >= 0) {
		who->uid = (uint32_t)plan->spec->uid;
	} else {
		r = image_user(plan, root_fd, who, reterr);
		if (r < 0)
			return r;
	}
	if (plan->spec->gid >= 0)
		who->gid = (uint32_t)plan->spec->gid;
	if (!*who->home &&
	    !look_up(root_fd, "etc/passwd", NULL, who->uid, &id, &gid, who->home))
		abx__str_copy(who->home, sizeof(who->home), who->uid ? "/" : "/root");
	return ABX_OK;
}

/* Later values win: image, then template. The vector's strings are the caller's. */
static int merge_env(const struct start_plan *plan, const struct identity *who,
		     char ***ret, size_t *ret_count)
{
	char *const *sources[] = { plan->image->env, plan->spec->env };
	size_t size = 4, n = 0;
	char **env;

	for (size_t s = 0; s < 2; s++)
		for (size_t i = 0; sources[s] && sources[s][i]; i++)
			size++;
	env = abx__calloc(size + 1, sizeof(*env));
	if (!env)
		return ABX_ENOMEM;
	env[n++] = abx__strdup(DEFAULT_PATH);
	env[n++] = abx__strf("HOSTNAME=%s", plan->hostname);
	env[n++] = abx__strf("HOME=%s", who->home);
	for (size_t s = 0; s < 2; s++)
		for (size_t i = 0; sources[s] && sources[s][i]; i++) {
			const char *item = sources[s][i];
			const char *eq = strchr(item, '=');
			size_t len = eq ? (size_t)(eq - item) + 1 : 0, k = 0;

			if (!eq)
				continue;
			while (k < n && env[k] && strncmp(env[k], item, len) != 0)
				k++;
			if (k < n)
				abx__free(env[k]);
			env[k < n ? k : n++] = abx__strdup(item);
		}
	for (size_t i = 0; i < n; i++)
		if (!env[i]) {
			while (n-- > 0)
				abx__free(env[n]);
			abx__free(env);
			return ABX_ENOMEM;
		}
	*ret = env;
	*ret_count = n;
	return ABX_OK;
}

static void push_all(json_object *a, char *const *from)
{
	for (size_t i = 0; from && from[i]; i++)
		push(a, from[i]);
}

static int push_expanded(json_object *a, char *const *from, char *const *env)
{
	for (size_t i = 0; from && from[i]; i++) {
		char *s = NULL;
		int r = abx__spec_expand(from[i], env, &s);

		if (r < 0)
			return r;
		push(a, s);
		abx__free(s);
	}
	return ABX_OK;
}

/* Kubernetes' rule: command replaces Entrypoint and Cmd; args alone replace Cmd; $(NAME)
 * is looked for in the template's, not in the image's. */
static int make_args(const struct start_plan *plan, char *const *env, json_object *args)
{
	const abx__spec_container *c = plan->spec;
	int r = push_expanded(args, c->command, env);

	if (!c->command)
		push_all(args, plan->image->entrypoint);
	if (r == ABX_OK)
		r = push_expanded(args, c->args, env);
	if (!c->command && !c->args)
		push_all(args, plan->image->cmd);
	return r;
}

/* ---- does what shall run exist? ---- */

static bool is_there(const struct start_plan *plan, int root_fd, const char *path)
{
	int fd;
	bool runtime = true;

	for (size_t i = 0; i < plan->spec->mount_count; i++) {
		const char *at = plan->spec->mounts[i].path;
		size_t len = strlen(at);

		runtime &= strcmp(at, RUNTIME_MOUNT) != 0;
		/* Below a volume: crun will say. */
		if (strncmp(path, at, len) == 0 && path[len] == '/')
			return true;
	}
	if (runtime && strncmp(path, RUNTIME_MOUNT "/", strlen(RUNTIME_MOUNT) + 1) == 0) {
		char in_stage[256];

		if (!abx__spec_path_is_clean(path))
			return true; /* no way out of the folder; crun will say */
		return snprintf(in_stage, sizeof(in_stage), "rt/%s",
				path + strlen(RUNTIME_MOUNT) + 1) <
			       (int)sizeof(in_stage) &&
		       access(in_stage, F_OK) == 0;
	}
	fd = abx__fs_open_in_root(root_fd, path, O_PATH);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool is_on_path(const struct start_plan *plan, int root_fd, const char *name,
		       char *const *env)
{
	const char *path = NULL;

	for (size_t i = 0; env[i]; i++)
		if (strncmp(env[i], "PATH=", 5) == 0)
			path = env[i] + 5;
	while (path && *path) {
		size_t len = strcspn(path, ":");
		char full[512];

		if (snprintf(full, sizeof(full), "%.*s/%s", (int)len, path, name) <
			    (int)sizeof(full) &&
		    is_there(plan, root_fd, full))
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

/* The program itself, and the one behind a launcher's "--", such as tini's. */
static int check_program(const struct start_plan *plan, int root_fd, json_object *args,
			 char *const *env, abx_error **reterr)
{
	size_t n = json_object_array_length(args);
	bool after_dashes = true;

	if (n == 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "container %s has no command, and image %s has "
				      "neither Entrypoint nor Cmd",
				      plan->spec->name, plan->image_name);
	for (size_t i = 0; i < n && i < 16; i++) {
		const char *arg =
			json_object_get_string(json_object_array_get_idx(args, i));

		if (after_dashes &&
		    (arg[0] == '/'
			     ? !is_there(plan, root_fd, arg)
			     : !strchr(arg, '/') && !is_on_path(plan, root_fd, arg, env)))
			return abx__error_set(
				reterr, ABX_ENOTFOUND,
				"image %s has no %s, which container %s wants to run",
				plan->image_name, arg, plan->spec->name);
		after_dashes = strcmp(arg, "--") == 0;
	}
	return ABX_OK;
}

static void add_caps(const struct start_plan *plan, json_object *process, bool root)
{
	json_object *caps = add(process, "capabilities", json_object_new_object());
	json_object *bounding = json_object_new_array(),
		    *effective = json_object_new_array();
	const char *const *list = plan->spec->privileged ? all_caps : default_caps;
	size_t count = plan->spec->privileged ? COUNT(all_caps) : COUNT(default_caps);

	for (size_t i = 0; i < count; i++) {
		/* A host may hold some back from podd itself; crun would fail over them.
		 */
		if (plan->spec->privileged &&
		    prctl(PR_CAPBSET_READ, (unsigned long)i, 0, 0, 0) == 0)
			continue;
		push(bounding, list[i]);
		if (root)
			push(effective, list[i]);
	}
	add(caps, "bounding", bounding);
	add(caps, "effective", effective);
	add(caps, "permitted", json_object_get(effective));
}

static void add_rlimit(json_object *limits, const char *name, int resource, rlim_t most)
{
	struct rlimit now;
	json_object *o;

	if (getrlimit(resource, &now) < 0)
		return;
	if (now.rlim_max < most)
		most = now.rlim_max;
	o = json_object_new_object();
	add_str(o, "type", name);
	add(o, "soft", json_object_new_int64((int64_t)most));
	add(o, "hard", json_object_new_int64((int64_t)most));
	json_object_array_add(limits, o);
}

static int add_process(const struct start_plan *plan, int root_fd, json_object *config,
		       abx_error **reterr)
{
	json_object *process = add(config, "process", json_object_new_object());
	json_object *args = add(process, "args", json_object_new_array());
	json_object *list, *user = add(process, "user", json_object_new_object());
	struct identity who = { 0 };
	char **env = NULL;
	size_t count = 0;
	const char *cwd = plan->spec->working_dir ? plan->spec->working_dir
						  : plan->image->working_dir;
	int r = identify(plan, root_fd, &who, reterr);

	if (r < 0)
		return r;
	r = merge_env(plan, &who, &env, &count);
	if (r == ABX_OK)
		r = make_args(plan, env, args);
	if (r < 0) {
		abx__spec_strv_free(env);
		return abx__error_set(reterr, r, "command of container %s",
				      plan->spec->name);
	}
	list = add(process, "env", json_object_new_array());
	for (size_t i = 0; i < count; i++)
		push(list, env[i]);
	r = check_program(plan, root_fd, args, env, reterr);
	abx__spec_strv_free(env);
	if (r < 0)
		return r;
	add(process, "terminal", json_object_new_boolean(false));
	add_str(process, "cwd", cwd && cwd[0] == '/' ? cwd : "/");
	add(user, "uid", json_object_new_int64(who.uid));
	add(user, "gid", json_object_new_int64(who.gid));
	/* sudo must work for `user`, so the flag stays off; the bounding set and the
	 * namespace hold. */
	add(process, "noNewPrivileges", json_object_new_boolean(false));
	add_caps(plan, process, who.uid == 0);
	list = add(process, "rlimits", json_object_new_array());
	add_rlimit(list, "RLIMIT_NOFILE", RLIMIT_NOFILE, 1048576);
	add_rlimit(list, "RLIMIT_CORE", RLIMIT_CORE, 0);
	return ABX_OK;
}

/* ---- mounts ---- */

static void add_mount(json_object *mounts, const char *to, const char *type,
		      const char *source, const char *const *options)
{
	json_object *m = json_object_new_object(), *o;

	add_str(m, "destination", to);
	add_str(m, "type", type);
	add_str(m, "source", source);
	o = add(m, "options", json_object_new_array());
	for (; *options; options++)
		push(o, *options);
	json_object_array_add(mounts, m);
}

#define OPTIONS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void add_mounts(const struct start_plan *plan, json_object *config)
{
	json_object *mounts = add(config, "mounts", json_object_new_array());
	bool privileged = plan->spec->privileged, runtime = true;

	add_mount(mounts, "/proc", "proc", "proc", OPTIONS("nosuid", "noexec", "nodev"));
	add_mount(mounts, "/proc/sys/kernel/random/boot_id", "bind", "/run/boot_id",
		  OPTIONS("bind", "ro", "nosuid", "noexec", "nodev"));
	add_mount(mounts, "/dev", "tmpfs", "tmpfs",
		  OPTIONS("nosuid", "strictatime", "mode=755", "size=65536k"));
	add_mount(mounts, "/dev/pts", "devpts", "devpts",
		  OPTIONS("nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620",
			  "gid=5"));
	add_mount(mounts, "/dev/shm", "tmpfs", "shm",
		  OPTIONS("nosuid", "noexec", "nodev", "mode=1777", "size=65536k"));
	add_mount(mounts, "/dev/mqueue", "mqueue", "mqueue",
		  OPTIONS("nosuid", "noexec", "nodev"));
	add_mount(mounts, "/sys", "sysfs", "sysfs",
		  OPTIONS("nosuid", "noexec", "nodev", privileged ? "rw" : "ro"));
	if (privileged)
		add_mount(mounts, "/sys/fs/cgroup", "cgroup", "cgroup",
			  OPTIONS("nosuid", "noexec", "nodev", "relatime", "rw"));
	for (size_t i = 0; i < plan->spec->mount_count; i++) {
		const abx__spec_mount *m = &plan->spec->mounts[i];
		char source[32];

		snprintf(source, sizeof(source), "/run/v%zu", i);
		runtime &= strcmp(m->path, RUNTIME_MOUNT) != 0;
		add_mount(mounts, m->path, "bind", source,
			  OPTIONS("bind", m->read_only ? "ro" : "rw"));
	}
	if (runtime)
		add_mount(mounts, RUNTIME_MOUNT, "bind", "/run/rt",
			  OPTIONS("bind", "ro", "nosuid", "nodev"));
}

/* ---- linux ---- */

static void add_namespace(json_object *list, const char *type, const char *path)
{
	json_object *o = json_object_new_object();

	add_str(o, "type", type);
	if (path)
		add_str(o, "path", path);
	json_object_array_add(list, o);
}

static void add_paths(json_object *o, const char *key, const char *const *paths,
		      size_t count)
{
	json_object *a = add(o, key, json_object_new_array());

	for (size_t i = 0; i < count; i++)
		push(a, paths[i]);
}

/* A privileged container sees the host's devices, as it does under the container engines.
 */
static void add_devices(json_object *linux_)
{
	json_object *a = add(linux_, "devices", json_object_new_array());
	DIR *d = opendir("/dev");
	struct dirent *e;

	while (d && (e = readdir(d)) && json_object_array_length(a) < 512) {
		json_object *o;
		struct stat st;
		char path[300];

		snprintf(path, sizeof(path), "/dev/%s", e->d_name);
		if (strcmp(e->d_name, "console") == 0 || strcmp(e->d_name, "ptmx") == 0 ||
		    lstat(path, &st) < 0 ||
		    (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode)))
			continue;
		o = json_object_new_object();
		add_str(o, "path", path);
		add_str(o, "type", S_ISCHR(st.st_mode) ? "c" : "b");
		add(o, "major", json_object_new_int64(major(st.st_rdev)));
		add(o, "minor", json_object_new_int64(minor(st.st_rdev)));
		add(o, "fileMode", json_object_new_int64(st.st_mode & 0777));
		add(o, "uid", json_object_new_int64(st.st_uid));
		add(o, "gid", json_object_new_int64(st.st_gid));
		json_object_array_add(a, o);
	}
	if (d)
		closedir(d);
}

static void add_linux(const struct start_plan *plan, json_object *config)
{
	json_object *linux_ = add(config, "linux", json_object_new_object());
	json_object *namespaces = add(linux_, "namespaces", json_object_new_array());
	json_object *annotations;

	add_namespace(namespaces, "pid", NULL);
	add_namespace(namespaces, "ipc", NULL);
	add_namespace(namespaces, "uts", NULL);
	add_namespace(namespaces, "mount", NULL);
	add_namespace(namespaces, "cgroup", NULL);
	add_namespace(namespaces, "network", "/run/ns/net");
	if (plan->userns_fd >= 0)
		add_namespace(namespaces, "user", "/run/ns/user");
	if (plan->spec->privileged) {
		add_devices(linux_);
		return;
	}
	add_paths(linux_, "maskedPaths", masked, COUNT(masked));
	add_paths(linux_, "readonlyPaths", read_only, COUNT(read_only));
	annotations = add(config, "annotations", json_object_new_object());
	add_str(annotations, "run.oci.seccomp_bpf_data", plan->podd->seccomp);
}

int abx__oci_config(const struct start_plan *plan, int root_fd, char **ret,
		    abx_error **reterr)
{
	json_object *config = json_object_new_object(), *root;
	int r;

	if (!config)
		return abx__error_nomem(reterr);
	add_str(config, "ociVersion", "1.0.2");
	add_str(config, "hostname", plan->hostname);
	root = add(config, "root", json_object_new_object());
	add_str(root, "path", "/run/root");
	r = add_process(plan, root_fd, config, reterr);
	if (r == ABX_OK) {
		add_mounts(plan, config);
		add_linux(plan, config);
		*ret = abx__strdup(
			json_object_to_json_string_ext(config, JSON_C_TO_STRING_PLAIN));
		if (!*ret)
			r = abx__error_nomem(reterr);
	}
	json_object_put(config);
	return r;
}
