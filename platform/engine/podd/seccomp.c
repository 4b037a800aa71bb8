/*
 * seccomp.c - the container engines' default profile, compiled once at start into the BPF
 * program crun loads.
 *
 * The profile is Debian's /usr/share/containers/seccomp.json. Its includes and excludes
 * are decided for the default capabilities, its argument rules kept. crun would compile
 * it anew for every container.
 *
 * Two things it lets through are closed here, as Docker's and containerd's profiles do:
 * new user namespaces, in which any program would hold every capability and could reach
 * the parts of the kernel where most of its holes have been; and AF_VSOCK, which knows no
 * network namespaces and leads to the hypervisor, the host and every other Pod.
 */
#include "engine/podd/podd.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/id.h"
#include "base/str.h"

static const char *const caps[] = {
	"CAP_CHOWN",   "CAP_DAC_OVERRIDE", "CAP_FSETID",           "CAP_FOWNER",
	"CAP_MKNOD",   "CAP_NET_RAW",      "CAP_SETGID",           "CAP_SETUID",
	"CAP_SETFCAP", "CAP_SETPCAP",      "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT",
	"CAP_KILL",    "CAP_AUDIT_WRITE",
};
#if defined(__x86_64__)
static const char *const arches[] = { "amd64", "x86", "x32" };
static const uint32_t more_arches[] = { SCMP_ARCH_X86, SCMP_ARCH_X32 };
#elif defined(__aarch64__)
static const char *const arches[] = { "arm64", "arm" };
static const uint32_t more_arches[] = { SCMP_ARCH_ARM };
#else
#error "the seccomp profile is converted for x86_64 and arm64 only"
#endif

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static bool in_list(const char *const *list, size_t count, const char *s)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i], s) == 0)
			return true;
	return false;
}

static json_object *list_of(json_object *o, const char *key)
{
	json_object *a;

	return json_object_object_get_ex(o, key, &a) &&
			       json_object_is_type(a, json_type_array)
		       ? a
		       : NULL;
}

/* Whether any item of o.caps / o.arches is ours. An absent list decides nothing: -1. */
static int any_of(json_object *o, const char *key, const char *const *list, size_t count)
{
	json_object *a = o ? list_of(o, key) : NULL;

	if (!a || json_object_array_length(a) == 0)
		return -1;
	for (size_t i = 0; i < json_object_array_length(a); i++)
		if (in_list(list, count,
			    json_object_get_string(json_object_array_get_idx(a, i))))
			return 1;
	return 0;
}

static bool applies(json_object *rule)
{
	json_object *includes = NULL, *excludes = NULL;

	json_object_object_get_ex(rule, "includes", &includes);
	json_object_object_get_ex(rule, "excludes", &excludes);
	return any_of(includes, "caps", caps, COUNT(caps)) != 0 &&
	       any_of(includes, "arches", arches, COUNT(arches)) != 0 &&
	       any_of(excludes, "caps", caps, COUNT(caps)) != 1 &&
	       any_of(excludes, "arches", arches, COUNT(arches)) != 1;
}

static int action_of(json_object *o, const char *action_key, const char *errno_key,
		     uint32_t *ret)
{
	json_object *v, *n;
	const char *s;
	int error = EPERM;

	if (!json_object_object_get_ex(o, action_key, &v))
		return ABX_EINVAL;
	s = json_object_get_string(v);
	if (json_object_object_get_ex(o, errno_key, &n) &&
	    json_object_is_type(n, json_type_int))
		error = json_object_get_int(n);
	if (strcmp(s, "SCMP_ACT_ALLOW") == 0)
		*ret = SCMP_ACT_ALLOW;
	else if (strcmp(s, "SCMP_ACT_ERRNO") == 0)
		*ret = SCMP_ACT_ERRNO((unsigned)error & 0xffff);
	else
		return ABX_EUNSUPPORTED;
	return ABX_OK;
}

static int read_arg(json_object *o, struct scmp_arg_cmp *ret)
{
	static const struct {
		const char *name;
		enum scmp_compare op;
	} ops[] = { { "SCMP_CMP_NE", SCMP_CMP_NE },
		    { "SCMP_CMP_LT", SCMP_CMP_LT },
		    { "SCMP_CMP_LE", SCMP_CMP_LE },
		    { "SCMP_CMP_EQ", SCMP_CMP_EQ },
		    { "SCMP_CMP_GE", SCMP_CMP_GE },
		    { "SCMP_CMP_GT", SCMP_CMP_GT },
		    { "SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ } };
	json_object *index = NULL, *value = NULL, *two = NULL, *op = NULL;

	json_object_object_get_ex(o, "index", &index);
	json_object_object_get_ex(o, "value", &value);
	json_object_object_get_ex(o, "valueTwo", &two);
	json_object_object_get_ex(o, "op", &op);
	for (size_t i = 0; op && i < COUNT(ops); i++)
		if (strcmp(ops[i].name, json_object_get_string(op)) == 0) {
			*ret = (struct scmp_arg_cmp){
				.arg = (unsigned)json_object_get_int(index),
				.op = ops[i].op,
				.datum_a = (uint64_t)json_object_get_int64(value),
				.datum_b = (uint64_t)json_object_get_int64(two)
			};
			return ABX_OK;
		}
	return ABX_EUNSUPPORTED;
}

/*
 * What the profile allows without a condition gets one here: 0 or libseccomp's error, 1:
 * not of these. clone(2) and unshare(2) have their flags in their first argument; those
 * of clone3(2), and all of socketcall(2), lie in memory where no filter sees them, and
 * libc does without these two.
 */
static int add_guarded(scmp_filter_ctx ctx, uint32_t action, const char *name, int nr)
{
	const struct scmp_arg_cmp no_userns = {
		.arg = 0, .op = SCMP_CMP_MASKED_EQ, .datum_a = CLONE_NEWUSER, .datum_b = 0
	};
	const struct scmp_arg_cmp no_vsock = { .arg = 0,
					       .op = SCMP_CMP_NE,
					       .datum_a = AF_VSOCK };

	if (action != SCMP_ACT_ALLOW)
		return 1;
	if (strcmp(name, "clone3") == 0 || strcmp(name, "socketcall") == 0)
		return 0;
	if (strcmp(name, "clone") == 0 || strcmp(name, "unshare") == 0)
		return seccomp_rule_add_array(ctx, action, nr, 1, &no_userns);
	return strcmp(name, "socket") == 0
		       ? seccomp_rule_add_array(ctx, action, nr, 1, &no_vsock)
		       : 1;
}

static int add_rule(scmp_filter_ctx ctx, json_object *rule, uint32_t default_action)
{
	json_object *names = list_of(rule, "names"), *args = list_of(rule, "args");
	struct scmp_arg_cmp cmp[6];
	size_t count = args ? json_object_array_length(args) : 0;
	uint32_t action;
	int r = action_of(rule, "action", "errnoRet", &action);

	if (r < 0 || !names || count > COUNT(cmp))
		return ABX_EUNSUPPORTED;
	if (action == default_action)
		return ABX_OK;
	for (size_t i = 0; i < count; i++)
		if (read_arg(json_object_array_get_idx(args, i), &cmp[i]) < 0)
			return ABX_EUNSUPPORTED;
	for (size_t i = 0; i < json_object_array_length(names); i++) {
		const char *name =
			json_object_get_string(json_object_array_get_idx(names, i));
		int nr = seccomp_syscall_resolve_name(name);

		/* Unknown here means unknown to this libseccomp: the default, ENOSYS,
		 * holds for it. */
		if (nr == __NR_SCMP_ERROR)
			continue;
		r = add_guarded(ctx, action, name, nr);
		if (r == 1)
			r = seccomp_rule_add_array(ctx, action, nr, (unsigned)count, cmp);
		if (r < 0 && r != -EEXIST && r != -EDOM)
			return ABX_EFAIL;
	}
	return ABX_OK;
}

static int compile(json_object *profile, int fd)
{
	json_object *rules = list_of(profile, "syscalls");
	scmp_filter_ctx ctx;
	uint32_t action;
	int r = action_of(profile, "defaultAction", "defaultErrnoRet", &action);

	if (r < 0 || !rules)
		return ABX_EUNSUPPORTED;
	ctx = seccomp_init(action);
	if (!ctx)
		return ABX_ENOMEM;
	for (size_t i = 0; i < COUNT(more_arches); i++)
		seccomp_arch_add(ctx, more_arches[i]);
	for (size_t i = 0; r == ABX_OK && i < json_object_array_length(rules); i++) {
		json_object *rule = json_object_array_get_idx(rules, i);

		if (applies(rule))
			r = add_rule(ctx, rule, action);
	}
	seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE,
			 2); /* a binary tree: a lookup, not a walk */
	if (r == ABX_OK && seccomp_export_bpf(ctx, fd) < 0)
		r = ABX_EFAIL;
	seccomp_release(ctx);
	return r;
}

int abx__seccomp_load(const char *profile_path, char **ret_base64, abx_error **reterr)
{
	ABX_CLEANUP(abx__closep) int fd = memfd_create("seccomp", MFD_CLOEXEC);
	int status = -1;
	char *data, *path;
	size_t len = 0;
	pid_t pid;

	if (fd < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "memfd");
	/* In a child, so that the profile's and the compiler's memory goes with it. */
	pid = abx__child_fork();
	if (pid == 0) {
		json_object *profile = abx__fs_read_json(AT_FDCWD, profile_path);

		_exit(profile && compile(profile, fd) == ABX_OK ? 0 : 1);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status != 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "seccomp profile %s cannot be used (package "
				      "golang-github-containers-common)",
				      profile_path);
	path = abx__strf("/proc/self/fd/%d", fd); /* opened anew: from the start */
	data = path ? abx__fs_read(AT_FDCWD, path, (size_t)1 << 20, &len) : NULL;
	abx__free(path);
	if (!data || len == 0) {
		abx__free(data);
		return abx__error_set(reterr, ABX_EFAIL,
				      "seccomp profile %s compiled to nothing",
				      profile_path);
	}
	*ret_base64 = abx__base64_encode(data, len);
	abx__free(data);
	return *ret_base64 ? ABX_OK : abx__error_nomem(reterr);
}
