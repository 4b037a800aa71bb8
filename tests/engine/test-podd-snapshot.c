/*
 * test-podd-snapshot.c - a container's files become an image: what is in it, who may use
 * it, when it goes. Real Pods.
 */
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <agentbox/error.h>

#include "engine/podd/proto.h"
#include "podd-case.h"

#define SNAPSHOT_TEST(name) PODD_CASE(podd_snapshot, name)

static void nap(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

#define in_podd(...) in_dir("podd/" __VA_ARGS__)

static bool there(const char *path)
{
	return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int ask(const char *name, const char *id)
{
	return podd_peer_call(&p, ABX__PODD_SNAPSHOT,
			      podd_peer_body("{\"ns\":\"t\",\"name\":\"%s\",\"id\":"
					     "\"%s\"}",
					     name, id));
}

static void take_in(void)
{
	nap(2);
	podd_peer_call(&p, 17, podd_peer_body("{}"));
}

/* Its last word: r, or 1 when none came. */
static int outcome(const char *id)
{
	json_object *o, *r;

	for (int i = 0; i < 4000; i++) {
		if (json_object_object_get_ex(p.snapshots, id, &o) &&
		    json_object_object_get_ex(o, "r", &r))
			return json_object_get_int(r);
		take_in();
	}
	return 1;
}

static void snapshot(const char *name, const char *id)
{
	cr_assert_eq(ask(name, id), ABX_OK, "%s", podd_peer_message(&p));
	cr_assert_eq(outcome(id), ABX_OK);
}

static void drop(const char *id)
{
	cr_assert_eq(podd_peer_call(&p, ABX__PODD_SNAPSHOT_DELETE,
				    podd_peer_body("{\"id\":\"%s\"}", id)),
		     ABX_OK);
}

static void wait_gone(const char *path)
{
	for (int i = 0; i < 4000 && there(path); i++)
		nap(5);
	cr_assert_not(there(path), "%s is left", path);
}

/* A Pod whose program made its files and waits. */
static void make(const char *name, const char *image, const char *script)
{
	char container[2048];
	char pattern[320];
	glob_t found;

	snprintf(container, sizeof(container),
		 "\"command\":[\"/bin/sh\",\"-c\",\"%s; echo done >/made; exec sleep "
		 "1000\"]",
		 script);
	cr_assert_eq(podd_peer_create(&p, name, image, container, ""), 0, "%s",
		     podd_peer_message(&p));
	cr_assert_str_eq(podd_peer_settle(&p, name, 1), "running", "%s",
			 podd_peer_get(&p, name, "message"));
	snprintf(pattern, sizeof(pattern), "%s/podd/pods/t_%s/c*/up/made", p.podd.dir,
		 name);
	for (int i = 0; i < 4000; i++) {
		int r = glob(pattern, 0, NULL, &found);

		globfree(&found);
		if (r == 0)
			return;
		nap(5);
	}
	cr_assert(0, "%s did not make its files", name);
}

static const char *run(const char *name, const char *id, const char *script)
{
	char image[64];

	snprintf(image, sizeof(image), "snapshot:%s", id);
	return podd_peer_run(&p, name, image, script, "");
}

SNAPSHOT_TEST(files_owners_links_and_deletions_are_in_it)
{
	struct stat st;

	make("a", "runtime:",
	     "mkdir -p /d/e; echo hello >/d/f; chown 1000:1000 /d/f; chmod 4711 /d/f; ln "
	     "/d/f /d/hard; ln -s f /d/soft; mkfifo /d/pipe; rm -rf /tmp; dd "
	     "if=/dev/zero of=/d/holes bs=1 count=1 seek=8388607 2>/dev/null");
	snapshot("a", "one");
	cr_assert_eq(lstat(in_podd("layers/snap-one/d/f"), &st), 0);
	cr_assert_eq(st.st_uid, 1000, "ids are as they are inside, not %u", st.st_uid);
	cr_assert_eq(st.st_mode & 07777, 04711);
	cr_assert_eq(st.st_nlink, 2);
	cr_assert_eq(lstat(in_podd("layers/snap-one/d/soft"), &st), 0);
	cr_assert(S_ISLNK(st.st_mode));
	cr_assert_eq(lstat(in_podd("layers/snap-one/d/pipe"), &st), 0);
	cr_assert(S_ISFIFO(st.st_mode));
	cr_assert_eq(lstat(in_podd("layers/snap-one/d/holes"), &st), 0);
	cr_assert_eq(st.st_size, 8388608);
	cr_assert_lt(st.st_blocks, 1024, "holes stay holes");
	cr_assert_eq(lstat(in_podd("layers/snap-one/tmp"), &st), 0);
	cr_assert(S_ISCHR(st.st_mode) && st.st_rdev == 0, "a whiteout");
	cr_assert_eq(lstat(in_podd("layers/snap-one"), &st), 0);
	cr_assert_eq(st.st_uid, 0);

	/* Another Pod has other ids, and sees the same. */
	cr_assert_str_eq(run("b", "one",
			     "cat /d/soft; stat -c %u:%g:%a:%h /d/f; [ -e /tmp ] || echo "
			     "no tmp; echo more >>/d/f"),
			 "hello\n1000:1000:4711:2\nno tmp\n");
	/* What it did is its own. */
	cr_assert_str_eq(run("c", "one", "cat /d/f"), "hello\n");
	podd_peer_delete(&p, "a");
	podd_peer_delete(&p, "b");
	podd_peer_delete(&p, "c");
	drop("one");
	wait_gone(in_podd("layers/snap-one"));
	cr_assert_not(there(in_podd("snapshots/one.json")));
	podd_peer_wait_clean(&p);
}

/* What a container of the Pod could have set, set from here: busybox has no tools for it.
 */
SNAPSHOT_TEST(attributes_are_what_they_mean_inside)
{
	/* Revision 3: the magic with "effective", net_raw, and the Pod's root. */
	unsigned char cap[24] = { 1, 0, 0, 3, 0, 0x20 };
	/* Version 2: the owner, user 1000, the group, a mask, others. */
	unsigned char acl[44] = {
		2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0
	};
	unsigned char got[64];
	struct stat st;
	glob_t found;
	uint32_t base, id;
	char file[400];

	make("a",
	     "runtime:", "echo x >/f; rm -rf /etc; mkdir /etc; echo only >/etc/mine");
	cr_assert_eq(glob(in_podd("pods/t_a/c*/up"), 0, NULL, &found), 0);
	cr_assert_eq(stat(found.gl_pathv[0], &st), 0);
	base = st.st_uid;
	snprintf(file, sizeof(file), "%s/f", found.gl_pathv[0]);
	globfree(&found);
	memcpy(cap + 20, &base, 4);
	id = base + 1000;
	memcpy(acl + 16, &id, 4);
	for (int i = 0; i < 3; i++) { /* group, mask, others */
		static const unsigned char tags[] = { 0x04, 0x10, 0x20 };

		acl[20 + 8 * i] = tags[i];
		acl[22 + 8 * i] = 4;
		memset(acl + 24 + 8 * i, 255, 4);
	}
	cr_assert_eq(setxattr(file, "user.note", "hello", 5, 0), 0);
	cr_assert_eq(setxattr(file, "security.capability", cap, sizeof(cap), 0), 0);
	cr_assert_eq(setxattr(file, "system.posix_acl_access", acl, sizeof(acl), 0), 0);
	snapshot("a", "attrs");

	snprintf(file, sizeof(file), "%s", in_podd("layers/snap-attrs/f"));
	cr_assert_eq(getxattr(file, "user.note", got, sizeof(got)), 5);
	cr_assert_eq(memcmp(got, "hello", 5), 0);
	cr_assert_eq(getxattr(file, "security.capability", got, sizeof(got)), 20,
		     "root inside is root of the layer");
	cr_assert_eq(got[3], 2);
	cr_assert_eq(got[5], 0x20);
	cr_assert_eq(getxattr(file, "system.posix_acl_access", got, sizeof(got)), 44);
	memcpy(&id, got + 16, 4);
	cr_assert_eq(id, 1000);
	cr_assert_lt(getxattr(in_podd("layers/snap-attrs/etc"), "trusted.overlay.origin",
			      got, sizeof(got)),
		     0, "where a file came from is not the layer's business");
	/* Another folder in the place of one that was removed hides what was in it. */
	cr_assert_str_eq(
		run("b", "attrs", "cat /etc/mine; [ -e /etc/passwd ] || echo gone"),
		"only\ngone\n");
}

/* Over the host's /usr there are two upper layers. */
SNAPSHOT_TEST(changes_below_the_hosts_usr_are_in_it)
{
	make("a", "host:", "echo new >/usr/share/mine; rm /usr/bin/env; mkdir /opt/x");
	snapshot("a", "usr");
	cr_assert_str_eq(run("b", "usr",
			     "cat /usr/share/mine; [ -e /usr/bin/env ] || echo gone; ls "
			     "-d /opt/x; rm /usr/share/mine"),
			 "new\ngone\n/opt/x\n");
	make("c", "snapshot:usr", "echo two >/usr/share/two");
	snapshot("c", "usr2");
	cr_assert_str_eq(run("d", "usr2", "cat /usr/share/mine /usr/share/two"),
			 "new\ntwo\n");
}

SNAPSHOT_TEST(the_pod_stands_still_and_goes_on)
{
	cr_assert_eq(
		podd_peer_create(&p, "a", "runtime:",
				 "\"command\":[\"/bin/sh\",\"-c\",\"i=0; while :; do "
				 "i=$((i+1)); echo $i >/t; mv /t /x; echo $i >/t; mv /t "
				 "/y; done\"]",
				 ""),
		0);
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	for (int i = 0; i < 5; i++) {
		char id[8];

		nap(50);
		snprintf(id, sizeof(id), "s%d", i);
		snapshot("a", id);
		/* y never lags by more than the one write in between. */
		cr_assert_str_eq(run("b", id,
				     "read x </x; read y </y; [ $((x-y)) -le 1 ] && "
				     "[ $((x-y)) -ge 0 ] && echo whole || echo $x $y"),
				 "whole\n");
		podd_peer_delete(&p, "b");
	}
	cr_assert_str_eq(podd_peer_get(&p, "a", "activity"), "run");
	cr_assert_str_eq(podd_peer_get(&p, "a", "phase"), "running");
}

SNAPSHOT_TEST(a_deleted_one_stays_as_long_as_something_runs_from_it)
{
	make("a", "runtime:", "echo 1 >/one");
	snapshot("a", "base");
	make("b", "snapshot:base", "echo 2 >/two");
	snapshot("b", "top");
	podd_peer_delete(&p, "a");
	drop("base");
	nap(100);
	cr_assert(there(in_podd("layers/snap-base")), "b runs from it");
	/* Over a restart of podd, too, which finds b again. */
	podd_peer_disconnect(&p);
	podd_fixture_kill(&p.podd, SIGKILL);
	podd_fixture_start(&p.podd);
	podd_peer_connect(&p);
	cr_assert(there(in_podd("layers/snap-base")));
	podd_peer_delete(&p, "b");
	drop("nosuch");
	nap(100);
	cr_assert(there(in_podd("layers/snap-base")), "top stands on it");
	cr_assert_str_eq(run("c", "top", "cat /one /two"), "1\n2\n");
	podd_peer_delete(&p, "c");
	drop("top");
	wait_gone(in_podd("layers/snap-top"));
	wait_gone(in_podd("layers/snap-base"));
	podd_peer_wait_clean(&p);
}

/* Found again by a new podd, a Pod still knows what it stands on. */
SNAPSHOT_TEST(an_adopted_pod_can_be_snapshotted)
{
	make("a", "runtime:", "echo 1 >/one");
	podd_peer_disconnect(&p);
	podd_fixture_kill(&p.podd, SIGKILL);
	podd_fixture_start(&p.podd);
	podd_peer_connect(&p);
	snapshot("a", "later");
	cr_assert_str_eq(run("b", "later", "cat /one"), "1\n");
}

SNAPSHOT_TEST(what_a_killed_podd_left_half_done_is_collected)
{
	make("a", "runtime:", "dd if=/dev/urandom of=/big bs=1M count=64 2>/dev/null");
	cr_assert_eq(ask("a", "half"), ABX_OK);
	podd_peer_disconnect(&p);
	podd_fixture_kill(&p.podd, SIGKILL);
	podd_fixture_start(&p.podd);
	podd_peer_connect(&p);
	drop("half");
	wait_gone(in_podd("layers/snap-half"));
	wait_gone(in_podd("tmp/snap-half"));
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	/* It is not left standing still. */
	snapshot("a", "whole");
	podd_peer_delete(&p, "a");
	podd_peer_wait_clean(&p);
}

SNAPSHOT_TEST(a_pod_that_goes_meanwhile_is_said_so)
{
	make("a", "runtime:", "dd if=/dev/urandom of=/big bs=1M count=64 2>/dev/null");
	cr_assert_eq(ask("a", "cut"), ABX_OK);
	podd_peer_delete(&p, "a");
	cr_assert_eq(outcome("cut"), ABX_ECONFLICT);
	wait_gone(in_podd("layers/snap-cut"));
	wait_gone(in_podd("tmp/snap-cut"));
	podd_peer_wait_clean(&p);
}

SNAPSHOT_TEST(a_volume_it_would_not_hold_is_named)
{
	static const char *const mounts[] = { "", ",\"readOnly\":true" };
	static const char name[2][2] = { "w", "r" };

	for (int i = 0; i < 2; i++) {
		char container[256];

		snprintf(container, sizeof(container),
			 "\"command\":[\"/bin/sleep\",\"1000\"],\"volumeMounts\":[{"
			 "\"name\":\"data\",\"mountPath\":\"/data\"%s}]",
			 mounts[i]);
		cr_assert_eq(podd_peer_create(
				     &p, name[i], "runtime:", container,
				     "\"volumes\":[{\"name\":\"data\",\"emptyDir\":{}}]"),
			     0, "%s", podd_peer_message(&p));
		cr_assert_str_eq(podd_peer_settle(&p, name[i], 1), "running");
	}
	cr_assert_eq(ask("w", "x"), ABX_EUNSUPPORTED);
	cr_assert(strstr(podd_peer_message(&p), "volume \"data\" at /data"), "%s",
		  podd_peer_message(&p));
	snapshot("r", "x");
}

SNAPSHOT_TEST(requests_that_make_no_sense_are_refused)
{
	cr_assert_eq(ask("nobody", "x"), ABX_ENOTFOUND);
	make("a", "runtime:", "true");
	cr_assert_eq(ask("a", ""), ABX_EINVAL);
	cr_assert_eq(ask("a", "../../x"), ABX_EINVAL);
	snapshot("a", "once");
	cr_assert_eq(ask("a", "once"), ABX_EEXISTS);
	cr_assert_eq(podd_peer_call(&p, ABX__PODD_SNAPSHOT_DELETE,
				    podd_peer_body("{\"id\":\"a/b\"}")),
		     ABX_EINVAL);
	podd_peer_create(&p, "b", "snapshot:nosuch", "\"command\":[\"/bin/sleep\",\"1\"]",
			 "");
	cr_assert_str_eq(podd_peer_settle(&p, "b", 1), "failed");
	cr_assert(strstr(podd_peer_get(&p, "b", "message"), "no such snapshot"), "%s",
		  podd_peer_get(&p, "b", "message"));
}
