/*
 * spare.c - what a container's folder holds before the container: an upper layer with the
 * Pod's own files in /etc; and such a folder made ahead.
 *
 * A claim waits for a container, so the folder of a Pod's next one is made while nobody
 * waits, by the child that empties the trash. It is used under its own number only: a
 * Pod that came back under the same name has another.
 */
#include "engine/podd/podd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"

static int add_file(int dir_fd, const char *path, const char *text, size_t len,
		    uid_t owner)
{
	if (abx__fs_write(dir_fd, path, text, len, 0644) < 0)
		return ABX_EIO;
	return owner && fchownat(dir_fd, path, owner, owner, AT_SYMLINK_NOFOLLOW) < 0
		       ? ABX_EIO
		       : ABX_OK;
}

static int add_hosts(int dir_fd, const struct upper *u)
{
	ABX_CLEANUP_BUF abx__buf hosts = ABX__BUF_INIT;
	uint32_t a = u->address;
	int r = abx__buf_addf(
		&hosts,
		"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n");

	if (r == ABX_OK)
		r = a ? abx__buf_addf(&hosts, "%u.%u.%u.%u\t%s\n", a >> 24, a >> 16 & 255,
				      a >> 8 & 255, a & 255, u->hostname)
		      : abx__buf_addf(&hosts, "127.0.1.1\t%s\n", u->hostname);
	return r < 0 ? r
		     : add_file(dir_fd, "up/etc/hosts", hosts.data, hosts.len,
				u->id_base);
}

int abx__upper_make(int dir_fd, const struct upper *u)
{
	/* The last three are mounted over in every container. */
	static const char *const folders[] = { "up", "up/etc", "up/proc", "up/sys",
					       "up/dev" };
	char hostname[80];
	int len = snprintf(hostname, sizeof(hostname), "%s\n", u->hostname);

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (abx__fs_mkdir(dir_fd, folders[i], 0755, u->id_base) < 0)
			return ABX_EIO;
	if (abx__fs_mkdir(dir_fd, "wk", 0700, u->id_base) < 0 ||
	    add_hosts(dir_fd, u) < 0 ||
	    add_file(dir_fd, "up/etc/hostname", hostname, (size_t)len, u->id_base) < 0)
		return ABX_EIO;
	return add_file(dir_fd, "up/etc/resolv.conf", u->resolv,
			u->address ? strlen(u->resolv) : 0, u->id_base);
}

struct upper abx__upper_of(const struct pod *pod)
{
	const struct podd *podd = pod->podd;

	return (struct upper){
		.hostname = pod->spec->hostname ? pod->spec->hostname : pod->name,
		.id_base = pod->userns_fd >= 0 ? abx__net_id_base(podd, pod->n) : 0,
		.address = podd->net.enabled ? podd->net.base + pod->n * 2 + 1 : 0,
		.resolv = podd->net.resolv,
	};
}

/* ---- the spare ---- */

static void spare_path(const struct pod *pod, char *out, size_t size, const char *suffix)
{
	snprintf(out, size, "pods/%s/spare-%llu%s", pod->key,
		 (unsigned long long)pod->seq, suffix);
}

bool abx__spare_take(struct pod *pod, const char *path)
{
	char spare[256];

	spare_path(pod, spare, sizeof(spare), "");
	return renameat2(pod->podd->dir_fd, spare, pod->podd->dir_fd, path,
			 RENAME_NOREPLACE) == 0;
}

/* In the child: what is not whole has a name nobody looks for. True when it took time. */
static bool make_one(const struct pod *pod)
{
	int root = pod->podd->dir_fd;
	char path[256], half[256];
	const struct upper upper = abx__upper_of(pod);
	ABX_CLEANUP(abx__closep) int fd = -1;

	spare_path(pod, path, sizeof(path), "");
	spare_path(pod, half, sizeof(half), ".new");
	if (faccessat(root, path, F_OK, 0) == 0 ||
	    (mkdirat(root, half, 0700) < 0 && errno != EEXIST))
		return false;
	fd = openat(root, half, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && abx__upper_make(fd, &upper) == ABX_OK &&
	       renameat2(root, half, root, path, RENAME_NOREPLACE) == 0;
}

void abx__spares_make(struct podd *podd)
{
	/* A breath between two: claims of the Pods that have just come go first. */
	const struct timespec breath = { .tv_nsec = 2000000 };

	for (struct pod *pod = podd->pods; pod; pod = pod->hh.next)
		if (pod->has_net && !pod->deleting && pod->running_generation &&
		    make_one(pod))
			nanosleep(&breath, NULL);
}
