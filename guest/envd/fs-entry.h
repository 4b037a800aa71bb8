/*
 * fs-entry.h - what a file looks like in answers: filesystem.EntryInfo.
 *
 * Safe on a worker: it uses nothing but its arguments. A name that is not UTF-8 is shown
 * with U+FFFD for what is not.
 */
#ifndef ABX_ENVD_FS_ENTRY_H
#define ABX_ENVD_FS_ENTRY_H

#include <sys/stat.h>

#include <envd/filesystem.pb-c.h>

#include "envd/users.h"

/* The entry at `path`, from lstat(2). A new message, for abx__proto_free(); a negative
 * errno on failure. */
int abx__fs_entry_at(const char *path, abx__users *users, Filesystem__EntryInfo **ret);
/* The same for a child of an open directory; `path` is what is shown. */
int abx__fs_entry_in(int dirfd, const char *name, const char *path, abx__users *users,
		     Filesystem__EntryInfo **ret, struct stat *ret_st);
/* A copy of a name that is valid UTF-8; NULL when out of memory. */
char *abx__fs_text(const char *s);
/* Go's text of a mode: "drwxr-xr-x", "Lrwxrwxrwx"; out holds 16 bytes at least. */
void abx__fs_mode_text(mode_t mode, char out[16]);

#endif
