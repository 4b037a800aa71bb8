/*
 * agentboxd-rights.c - the account the daemon runs as, the directory it owns, and giving
 * up root.
 */
#include "agentboxd.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentboxd-tree.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

#define FALLBACK_ID 65534

static bool by_name(const char *name, agentboxd_account *ret)
{
	const struct passwd *pw = getpwnam(name);

	if (!pw)
		return false;
	ret->uid = pw->pw_uid;
	ret->gid = pw->pw_gid;
	return true;
}

/* UID or UID:GID. */
static bool by_number(const char *text, agentboxd_account *ret)
{
	const char *colon = strchr(text, ':');
	ABX_CLEANUP(abx__freep)
	char *first = abx__strndup(text, colon ? (size_t)(colon - text) : strlen(text));
	uint64_t uid, gid;

	if (!first || abx__parse_u64(first, 1, UINT32_MAX - 1, &uid) < 0)
		return false;
	gid = uid;
	if (colon && abx__parse_u64(colon + 1, 1, UINT32_MAX - 1, &gid) < 0)
		return false;
	ret->uid = (uid_t)uid;
	ret->gid = (gid_t)gid;
	return true;
}

int agentboxd_account_find(const char *name, agentboxd_account *ret, abx_error **reterr)
{
	if (geteuid() != 0) {
		ret->uid = geteuid();
		ret->gid = getegid();
		return ABX_OK;
	}
	if (name) {
		if (!by_number(name, ret) && !by_name(name, ret))
			return abx__error_set(reterr, ABX_EINVAL,
					      "no account \"%s\" on this machine", name);
	} else if (!by_name("agentbox", ret) && !by_name("nobody", ret)) {
		ret->uid = ret->gid = FALLBACK_ID;
	}
	if (ret->uid == 0 || ret->gid == 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "account \"%s\" is root's; name another",
				      name ? name : "");
	return ABX_OK;
}

/* The directories above it, as mkdir -p makes them. */
static int make_parents(const char *path, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *copy = abx__strdup(path);

	if (!copy)
		return abx__error_nomem(reterr);
	for (char *p = copy + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(copy, 0755) < 0 && errno != EEXIST)
			return abx__error_errno(reterr, ABX_EIO, errno, "directory %s",
						copy);
		*p = '/';
	}
	return ABX_OK;
}

int agentboxd_state_dir_make(const char *path, const agentboxd_account *account,
			     abx_error **reterr)
{
	ABX_CLEANUP(abx__closep) int fd = -1;
	bool made;
	struct stat st;
	int r = make_parents(path, reterr);

	if (r < 0)
		return r;
	made = mkdir(path, 0700) == 0;
	if (!made && errno != EEXIST)
		return abx__error_errno(reterr, ABX_EIO, errno, "state directory %s",
					path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "state directory %s",
					path);
	if (made && geteuid() == 0 && fchown(fd, account->uid, account->gid) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "state directory %s",
					path);
	if (!made && geteuid() == 0 && st.st_uid == 0 && !agentboxd_tree_is_ours(path))
		return abx__error_set(
			reterr, ABX_EDENIED,
			"%s is root's and holds other things; name an empty or "
			"a new state directory",
			path);
	/* An empty directory somebody made for us, as root: ours from now on. Any other
	 * owner is a mistake. */
	if (!made && geteuid() == 0 && st.st_uid == 0 &&
	    (fchown(fd, account->uid, account->gid) < 0 || fchmod(fd, 0700) < 0))
		return abx__error_errno(reterr, ABX_EIO, errno, "state directory %s",
					path);
	if (!made && st.st_uid != 0 && st.st_uid != account->uid)
		return abx__error_set(
			reterr, ABX_EDENIED,
			"state directory %s belongs to user %u, not %u; see --account",
			path, st.st_uid, account->uid);
	return ABX_OK;
}

int agentboxd_rights_drop(const agentboxd_account *account, abx_error **reterr)
{
	if (geteuid() == 0) {
		if (setgroups(0, NULL) < 0 ||
		    setresgid(account->gid, account->gid, account->gid) < 0 ||
		    setresuid(account->uid, account->uid, account->uid) < 0)
			return abx__error_errno(reterr, ABX_EIO, errno,
						"cannot become user %u", account->uid);
		if (setuid(0) == 0)
			return abx__error_set(reterr, ABX_EIO,
					      "root could be taken back");
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "no_new_privs");
	capng_clear(CAPNG_SELECT_ALL);
	/* Without root the bounding set cannot be changed, and nothing could be gained
	 * from it either. */
	if (capng_apply(CAPNG_SELECT_CAPS) < 0 || capng_apply(CAPNG_SELECT_AMBIENT) < 0)
		return abx__error_set(reterr, ABX_EIO, "cannot give up capabilities");
	return ABX_OK;
}
