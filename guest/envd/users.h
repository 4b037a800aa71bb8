/*
 * users.h - accounts and groups, read from passwd and group files directly.
 *
 * Not through NSS: a static program must not load the image's libraries. Without a passwd
 * file, or without the entry, root is still root. The files are read again when they
 * changed.
 */
#ifndef ABX_ENVD_USERS_H
#define ABX_ENVD_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

/* One of the two files as last read. */
typedef struct abx__users_file {
	const char *path;
	abx__buf text;
	int64_t stamp[4]; /* device, inode, size, mtime: what tells a change */
	bool is_held;     /* not looked at again */
	bool has_last;    /* the name that was asked for last: */
	uint32_t last_id;
	size_t last_at, last_len; /* in text */
} abx__users_file;

typedef struct abx__users {
	abx__users_file passwd;
	abx__users_file group;
} abx__users;

typedef struct abx__user {
	char *name;
	char *home;
	uid_t uid;
	gid_t gid;
} abx__user;

/* NULL paths: /etc/passwd and /etc/group. Both strings are borrowed. */
void abx__users_init(abx__users *users, const char *passwd, const char *group);
void abx__users_done(abx__users *users);

/* Until the release the files are taken for what they are now: a listing asks for the
 * names of many entries at one moment. */
void abx__users_hold(abx__users *users);
void abx__users_release(abx__users *users);

/* ABX_ENOTFOUND names the user. */
int abx__users_find(abx__users *users, const char *name, abx__user *ret,
		    abx_error **reterr);
/* Supplementary groups, the primary one first; a new array. */
int abx__users_groups(abx__users *users, const abx__user *user, gid_t **ret,
		      size_t *ret_count);
/* Names for a listing; the number as text when there is none. New strings, NULL when out
 * of memory. */
char *abx__users_name_of_uid(abx__users *users, uid_t uid);
char *abx__users_name_of_gid(abx__users *users, gid_t gid);

void abx__user_done(abx__user *user);
int abx__user_copy(abx__user *dst, const abx__user *src);

#endif
