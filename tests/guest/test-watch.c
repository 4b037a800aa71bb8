/*
 * test-watch.c - filesystem.Filesystem's watchers in the real daemon: contract/envd.md,
 * section 8.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/fuse.h>

#include "base/alloc.h"
#include "base/str.h"
#include "envd-child.h"
#include "envd-expect.h"

#define WATCH_DIR "/filesystem.Filesystem/WatchDir"
#define CREATE "/filesystem.Filesystem/CreateWatcher"
#define GET "/filesystem.Filesystem/GetWatcherEvents"
#define REMOVE "/filesystem.Filesystem/RemoveWatcher"

/* A sanitizer keeps what was freed for a while. */
#ifdef __SANITIZE_ADDRESS__
#define RSS_LIMIT_KIB 600000
#else
#define RSS_LIMIT_KIB 40000
#endif

static envd_child child;

static void start(void)
{
	envd_child_start(&child, (const char *const[]){ "-isnotfc", NULL });
}

static void stop(void)
{
	envd_child_stop(&child);
}

TestSuite(envd_watch, .init = start, .fini = stop, .timeout = 120);

/* A shell script; each @ is the scratch directory. */
static void run(const char *script)
{
	ABX_CLEANUP(abx__freep) char *text = envd_expand(&child, script);
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", text, (char *)NULL);
		_exit(127);
	}
	cr_assert(waitpid(pid, &status, 0) == pid && status == 0, "%s", text);
}

/* `more` are members of the request, with a comma before them. */
static char *request_json(const char *path, const char *more)
{
	ABX_CLEANUP(abx__freep) char *full = envd_expand(&child, path);

	return abx__strf("{\"path\":\"%s\"%s}", full, more);
}

static char *create(const char *path, const char *more)
{
	ABX_CLEANUP(abx__freep) char *json = request_json(path, more);
	envd_answer answer = envd_child_call(&child, CREATE, json);
	char *id = strstr(abx__buf_str(&answer.body), "\"watcherId\":\"");

	cr_assert(answer.status == 200 && id, "%d %s", answer.status,
		  abx__buf_str(&answer.body));
	cr_assert(strlen(id) == 13 + 21 + 2 && id[13] == 'w', "%s", id);
	id = abx__strf("{\"watcherId\":\"%.21s\"}", id + 13);
	envd_answer_done(&answer);
	return id;
}

/* The events of a polling watcher as "CREATE a;WRITE a;". */
static char *get(const char *id)
{
	envd_answer answer = envd_child_call(&child, GET, id);
	ABX_CLEANUP_BUF abx__buf text = ABX__BUF_INIT;
	const char *p = abx__buf_str(&answer.body);

	cr_assert(answer.status == 200, "%s", p);
	while ((p = strstr(p, "{\"name\":\""))) {
		const char *name = p + 9, *end = strchr(name, '"');
		const char *type = strstr(end, "\"EVENT_TYPE_");

		/* An entry has a name, too, but no type of event behind it. */
		if (type == end + 9)
			abx__buf_addf(&text, "%.*s %.*s;", (int)strcspn(type + 12, "\""),
				      type + 12, (int)(end - name), name);
		p = end;
	}
	envd_answer_done(&answer);
	return abx__strdup(abx__buf_str(&text));
}

static void expect_events(const char *id, const char *want)
{
	ABX_CLEANUP(abx__freep) char *events = get(id);

	cr_assert_str_eq(events, want, "%s instead of %s", events, want);
}

static void expect_call(const char *method, const char *json, int status,
			const char *text)
{
	envd_answer answer = envd_child_call(&child, method, json);

	cr_assert(answer.status == status && strstr(abx__buf_str(&answer.body), text),
		  "%s %s: %d %s", method, json, answer.status,
		  abx__buf_str(&answer.body));
	envd_answer_done(&answer);
}

/* ---- what is told ---- */

Test(envd_watch, every_change_has_its_event)
{
	ABX_CLEANUP(abx__freep) char *id = NULL;

	run("mkdir @/w; echo old >@/w/old");
	id = create("@/w", "");
	expect_events(id, "");
	run("echo a >>@/w/old");
	expect_events(id, "WRITE old;");
	run("chmod 600 @/w/old");
	expect_events(id, "CHMOD old;");
	run("mv @/w/old @/w/new");
	expect_events(id, "RENAME old;CREATE new;");
	run("rm @/w/new");
	expect_events(id, "REMOVE new;");
	run("ln -s nowhere @/w/link; mkfifo @/w/pipe");
	expect_events(id, "CREATE link;CREATE pipe;");
	run("mkdir @/w/sub; echo x >@/w/sub/x");
	expect_events(id, "CREATE sub;");
	run("mv @/w/pipe @/pipe");
	expect_events(id, "RENAME pipe;");
	run("chmod 711 @/w");
	expect_events(id, "CHMOD .;");
	expect_call(REMOVE, id, 200, "{}");
	expect_call(GET, id, 404, "not found");
	expect_call(REMOVE, id, 404, "not found");
}

Test(envd_watch, an_upload_is_created_given_away_and_written)
{
	ABX_CLEANUP(abx__freep) char *id = NULL;
	ABX_CLEANUP(abx__freep) char *big = abx__calloc(1, 9000000);

	run("mkdir @/w");
	id = create("@/w", "");
	envd_expect(&child, "POST", "/files?path=@/w/f", OCTETS, "one", 200, NULL);
	expect_events(id, "CREATE f;CHMOD f;WRITE f;");
	envd_expect(&child, "POST", "/files?path=@/w/f", OCTETS, "two", 200, NULL);
	{
		ABX_CLEANUP(abx__freep) char *events = get(id);

		cr_assert(strstr(events, "WRITE f;"), "%s", events);
		cr_assert_not(strstr(events, "CREATE"), "%s", events);
	}
	/* Big enough to take the file's place; the name it had meanwhile is not told. */
	memset(big, 'x', 8999999);
	envd_expect(&child, "POST", "/files?path=@/w/f", OCTETS, big, 200, NULL);
	{
		ABX_CLEANUP(abx__freep) char *events = get(id);

		cr_assert(strstr(events, "WRITE f;"), "%s", events);
		cr_assert_not(strstr(events, "agentbox"), "%s", events);
		cr_assert_not(strchr(events, '#'), "%s", events);
	}
}

Test(envd_watch, a_name_that_looks_like_a_nameless_file_is_told_all_the_same)
{
	ABX_CLEANUP(abx__freep) char *id = NULL;

	run("mkdir @/w; : >'@/w/#12'");
	id = create("@/w", "");
	run("echo a >>'@/w/#12'");
	expect_events(id, "WRITE #12;");
}

Test(envd_watch, entries_come_when_asked_for_and_still_there)
{
	ABX_CLEANUP(abx__freep) char *json = NULL;
	ABX_CLEANUP(abx__freep) char *want = NULL;
	envd_stream stream;

	run("mkdir @/w");
	json = request_json("@/w", ",\"includeEntry\":true");
	envd_stream_open(&stream, &child, WATCH_DIR, NULL, json);
	envd_stream_until(&stream, "{\"start\":{}}\n");
	run("echo abc >@/w/f");
	want = envd_expand(&child, "\"path\":\"@/w/f\",\"size\":\"4\"");
	envd_stream_until(&stream, want);
	envd_stream_until(&stream, "FILE_TYPE_FILE");
	run("rm @/w/f");
	envd_stream_until(&stream, "{\"filesystem\":{\"name\":\"f\",\"type\":"
				   "\"EVENT_TYPE_REMOVE\"}}");
	envd_stream_close(&stream);
}

Test(envd_watch, names_that_are_not_utf8_are_shown_as_well_as_they_can)
{
	ABX_CLEANUP(abx__freep) char *id = NULL;

	run("mkdir @/w");
	id = create("@/w", ",\"includeEntry\":true");
	run(": >\"@/w/$(printf 'a\\377b')\"");
	expect_events(id, "CREATE a\xEF\xBF\xBD"
			  "b;");
}

/* ---- recursion ---- */

Test(envd_watch, recursion_covers_what_is_there_and_what_comes)
{
	ABX_CLEANUP(abx__freep) char *id = NULL;

	run("mkdir -p @/w/a/b @/out/in; ln -s ../out @/w/link; : >@/out/in/f");
	id = create("@/w", ",\"recursive\":true");
	run("echo x >@/w/a/b/f");
	expect_events(id, "CREATE a/b/f;WRITE a/b/f;");
	run("echo x >@/out/x"); /* links are not followed */
	expect_events(id, "");
	run("mkdir @/w/c");
	expect_events(id, "CREATE c;");
	run("echo x >@/w/c/f; chmod 700 @/w/c");
	expect_events(id, "CREATE c/f;WRITE c/f;CHMOD c;");
	run("mv @/w/a @/w/d");
	expect_events(id, "RENAME a;CREATE d;CREATE d/b;CREATE d/b/f;");
	run("echo y >@/w/d/b/f");
	expect_events(id, "WRITE d/b/f;");
	run("mv @/w/d @/gone; echo z >@/gone/b/f");
	expect_events(id, "RENAME d;");
	run("rm @/out/x; mv @/out @/w/o");
	expect_events(id, "CREATE o;CREATE o/in;CREATE o/in/f;");
	run("rm -r @/w/c; mkdir @/w/c; : >@/w/c/g");
	expect_events(id, "REMOVE c/f;REMOVE c;CREATE c;CREATE c/g;");
}

/* A directory, and a file in it before anybody can have watched it: told once each,
 * whoever was faster. */
Test(envd_watch, new_folders_are_watched_without_a_gap)
{
	ABX_CLEANUP_BUF abx__buf script = ABX__BUF_INIT;
	ABX_CLEANUP(abx__freep) char *json = NULL;
	envd_stream stream;

	run("mkdir @/w");
	json = request_json("@/w", ",\"recursive\":true");
	envd_stream_open(&stream, &child, WATCH_DIR, NULL, json);
	envd_stream_until(&stream, "start");
	run("cd @/w && for i in 0 1 2 3 4 5 6 7 8 9; do for j in 0 1 2 3 4 5 6 7 8 9; "
	    "do mkdir -p $i/$j/x/y && : >$i/$j/f && : >$i/$j/x/g && : >$i/$j/x/y/h; "
	    "done; done; : >end");
	envd_stream_until(&stream, "\"name\":\"end\"");
	for (int i = 0; i < 100; i++) {
		static const char *const names[] = { "",     "/f",   "/x",
						     "/x/g", "/x/y", "/x/y/h" };

		for (int n = 0; n < 6; n++) {
			ABX_CLEANUP(abx__freep)
			char *event = abx__strf(
				"{\"filesystem\":{\"name\":\"%d/%d%s\",\"type\":"
				"\"EVENT_TYPE_CREATE\"}}",
				i / 10, i % 10, names[n]);
			char *at = strstr(stream.text.data, event);

			cr_assert(at, "%s is missing", event);
			cr_assert_not(strstr(at + 1, event), "%s came twice", event);
		}
	}
	envd_stream_close(&stream);
}

/* All of it before the daemon looks: the write is told as well, once. */
Test(envd_watch, what_a_new_folder_holds_already_was_written)
{
	ABX_CLEANUP(abx__freep) char *id = NULL;

	run("mkdir @/w @/old; echo x >@/old/f");
	id = create("@/w", ",\"recursive\":true");
	cr_assert(kill(child.pid, SIGSTOP) == 0);
	run("mkdir -p @/w/n/m; echo x >@/w/n/m/f; mkdir @/w/e; : >@/w/e/f; mv @/old "
	    "@/w/o");
	cr_assert(kill(child.pid, SIGCONT) == 0);
	expect_events(id, "CREATE n;CREATE n/m;CREATE n/m/f;WRITE n/m/f;CREATE e;"
			  "CREATE e/f;CREATE o;CREATE o/f;");
	run("echo y >>@/w/n/m/f");
	expect_events(id, "WRITE n/m/f;");
}

Test(envd_watch, several_watchers_see_one_directory_each_its_way)
{
	ABX_CLEANUP(abx__freep) char *outer = NULL;
	ABX_CLEANUP(abx__freep) char *inner = NULL;
	ABX_CLEANUP(abx__freep) char *flat = NULL;

	run("mkdir -p @/w/a; ln -s w/a @/short");
	outer = create("@/w", ",\"recursive\":true");
	inner = create("@/short", "");
	flat = create("@/w", "");
	run(": >@/w/a/f");
	expect_events(outer, "CREATE a/f;");
	expect_events(inner, "CREATE f;");
	expect_events(flat, "");
	expect_call(REMOVE, outer, 200, "{}");
	run(": >@/w/a/g");
	expect_events(inner, "CREATE g;");
	run("rm -r @/w/a");
	expect_events(inner, "REMOVE f;REMOVE g;REMOVE .;");
	expect_events(flat, "REMOVE a;");
}

Test(envd_watch, events_are_whole_while_another_watcher_still_starts)
{
	ABX_CLEANUP(abx__freep) char *json = NULL;
	ABX_CLEANUP(abx__freep) char *id = NULL;

	run("mkdir @/w @/big; cd @/big && for i in 1 2 3 4 5 6 7 8 9; do seq -f "
	    "\"$i/%g/x\" "
	    "300 | xargs mkdir -p; done");
	id = create("@/w", "");
	json = request_json("@/big", ",\"recursive\":true");
	for (int i = 0; i < 5; i++) {
		ABX_CLEANUP(abx__freep) char *touch = abx__strf(": >@/w/%d", i);
		ABX_CLEANUP(abx__freep) char *want = abx__strf("CREATE %d;", i);
		int fd = envd_child_open_stream(&child, WATCH_DIR, NULL, json);

		run(touch);
		expect_events(id, want);
		close(fd);
	}
}

/* ---- refusals and caps ---- */

static void expect_stream_error(const char *path, const char *more, const char *code,
				const char *text)
{
	ABX_CLEANUP(abx__freep) char *json = request_json(path, more);
	envd_stream stream;

	envd_stream_open(&stream, &child, WATCH_DIR, NULL, json);
	envd_stream_to_end(&stream);
	cr_assert_str_eq(stream.run.error_code, code);
	cr_assert(strstr(stream.run.error_message, text), "%s", stream.run.error_message);
	envd_stream_close(&stream);
}

Test(envd_watch, only_directories_that_exist_are_watched)
{
	ABX_CLEANUP(abx__freep) char *json = request_json("@/none", "");

	run(": >@/file");
	expect_stream_error("@/none", "", "not_found", "not found");
	expect_stream_error("@/file", "", "invalid_argument", "is not a directory");
	expect_stream_error("@/file/x", "", "not_found", "not found");
	expect_stream_error("~other", "", "invalid_argument", "home dir");
	expect_call(CREATE, json, 404, "\"not_found\"");
	expect_call(GET, "{\"watcherId\":\"wnone\"}", 404,
		    "watcher with id wnone not found");
}

/* Answers what mounting, stat(2) and statfs(2) ask of a FUSE file system, and nothing
 * else. */
static void serve_fuse(int fd)
{
	static char request[135168];

	while (read(fd, request, sizeof(request)) > 0) {
		const struct fuse_in_header *in = (const void *)request;
		struct {
			struct fuse_out_header head;
			union {
				struct fuse_init_out init;
				struct fuse_attr_out attr;
				struct fuse_statfs_out fs;
			};
		} out = { .head = { .unique = in->unique } };
		size_t len = sizeof(out.head);

		if (in->opcode == FUSE_INIT) {
			out.init.major = FUSE_KERNEL_VERSION;
			out.init.minor = 31;
			len += sizeof(out.init);
		} else if (in->opcode == FUSE_GETATTR) {
			out.attr.attr = (struct fuse_attr){ .ino = 1,
							    .mode = S_IFDIR | 0755,
							    .nlink = 2 };
			len += sizeof(out.attr);
		} else if (in->opcode == FUSE_STATFS) {
			len += sizeof(out.fs);
		} else {
			out.head.error = -ENOSYS;
		}
		out.head.len = (uint32_t)len;
		if (write(fd, &out, len) < 0)
			break;
	}
	_exit(0);
}

Test(envd_watch, network_file_systems_need_a_word)
{
	ABX_CLEANUP(abx__freep) char *dir = NULL;
	ABX_CLEANUP(abx__freep) char *options = NULL;
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	pid_t pid;

	run("mkdir @/net");
	dir = envd_expand(&child, "@/net");
	options = abx__strf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (fd < 0 || mount("none", dir, "fuse", 0, options) < 0) {
		if (fd >= 0)
			close(fd);
		cr_skip_test("needs root and /dev/fuse");
	}
	pid = fork();
	if (pid == 0)
		serve_fuse(fd);
	close(fd);
	expect_stream_error("@/net", "", "invalid_argument",
			    "cannot watch path on network filesystem: ");
	{
		ABX_CLEANUP(abx__freep)
		char *id = create("@/net", ",\"allowNetworkMounts\":true");

		expect_call(REMOVE, id, 200, "{}");
	}
	umount2(dir, MNT_DETACH);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

Test(envd_watch, a_queue_nobody_reads_ends_with_data_loss)
{
	ABX_CLEANUP(abx__freep) char *id = NULL;

	run("mkdir @/w");
	id = create("@/w", "");
	run("cd @/w && seq 9000 | xargs touch");
	expect_call(GET, id, 500, "\"data_loss\"");
	expect_call(GET, id, 500, "events were lost");
	expect_call(REMOVE, id, 200, "{}");
}

Test(envd_watch, what_the_kernel_loses_is_reported_to_all)
{
	ABX_CLEANUP(abx__freep) char *json = NULL;
	ABX_CLEANUP(abx__freep) char *id = NULL;
	envd_stream stream;

	run("mkdir -p @/w @/other; test $(cat /proc/sys/fs/inotify/max_queued_events) "
	    "-lt "
	    "30000");
	json = request_json("@/w", "");
	envd_stream_open(&stream, &child, WATCH_DIR, NULL, json);
	envd_stream_until(&stream, "start");
	id = create("@/other", "");
	kill(child.pid, SIGSTOP);
	run("cd @/w && seq 20000 | xargs touch");
	kill(child.pid, SIGCONT);
	envd_stream_to_end(&stream);
	cr_assert_str_eq(stream.run.error_code, "data_loss");
	envd_stream_close(&stream);
	expect_call(GET, id, 500, "more happened than the kernel keeps");
	expect_call(REMOVE, id, 200, "{}");
	abx__free(id);
	id = create("@/w", "");
	run(": >@/w/after");
	expect_events(id, "CREATE after;");
}

Test(envd_watch, watchers_have_a_limit_and_give_it_back)
{
	char *ids[256];
	ABX_CLEANUP(abx__freep) char *json = NULL;

	run("mkdir @/w");
	json = request_json("@/w", "");
	for (int i = 0; i < 256; i++)
		ids[i] = create("@/w", "");
	expect_call(CREATE, json, 429, "256 watchers exist already");
	expect_stream_error("@/w", "", "resource_exhausted", "256 watchers");
	for (int i = 0; i < 256; i++) {
		expect_call(REMOVE, ids[i], 200, "{}");
		abx__free(ids[i]);
	}
	ids[0] = create("@/w", "");
	run(": >@/w/f");
	expect_events(ids[0], "CREATE f;");
	abx__free(ids[0]);
}

static unsigned count_inotify(void)
{
	ABX_CLEANUP(abx__freep)
	char *script =
		abx__strf("exit $(ls -l /proc/%d/fd | grep -c inotify)", child.pid);
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", script, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return (unsigned)WEXITSTATUS(status);
}

Test(envd_watch, one_instance_serves_all_and_goes_with_the_last)
{
	ABX_CLEANUP(abx__freep) char *first = NULL;
	ABX_CLEANUP(abx__freep) char *second = NULL;
	ABX_CLEANUP(abx__freep) char *json = NULL;
	envd_stream stream;

	run("mkdir -p @/w/a/b");
	cr_assert(count_inotify() == 0);
	first = create("@/w", ",\"recursive\":true");
	second = create("@/w/a", "");
	json = request_json("@/w/a", ",\"recursive\":true");
	envd_stream_open(&stream, &child, WATCH_DIR, NULL, json);
	envd_stream_until(&stream, "start");
	cr_assert(count_inotify() == 1);
	expect_call(REMOVE, first, 200, "{}");
	expect_call(REMOVE, second, 200, "{}");
	cr_assert(count_inotify() == 1);
	envd_stream_close(&stream);
	for (int i = 0; i < 500 && count_inotify() > 0; i++)
		usleep(10000);
	cr_assert(count_inotify() == 0, "the stream's end did not end its watcher");
}

Test(envd_watch, streams_have_keepalives_and_deadlines)
{
	ABX_CLEANUP(abx__freep) char *json = NULL;
	envd_stream stream;

	run("mkdir @/w");
	json = request_json("@/w", "");
	envd_stream_open(&stream, &child, WATCH_DIR,
			 "Keepalive-Ping-Interval: 1\r\nConnect-Timeout-Ms: 2500\r\n",
			 json);
	envd_stream_until(&stream, "{\"keepalive\":{}}");
	envd_stream_to_end(&stream);
	cr_assert_str_eq(stream.run.error_code, "deadline_exceeded");
	envd_stream_close(&stream);
	cr_assert(count_inotify() == 0);
}

Test(envd_watch, a_stream_nobody_reads_grows_no_memory)
{
	ABX_CLEANUP(abx__freep) char *json = NULL;
	ABX_CLEANUP(abx__freep) char *script = NULL;
	int fd;

	run("mkdir @/w");
	json = request_json("@/w", ",\"recursive\":true,\"includeEntry\":true");
	fd = envd_child_open_stream(&child, WATCH_DIR, NULL, json);
	cr_assert(recv(fd, &(char){ 0 }, 1, MSG_PEEK) == 1);
	run("cd @/w && for i in 1 2 3 4 5 6 7 8 9; do seq 9000 | xargs touch; done");
	script = abx__strf("test $(sed -n 's/^VmRSS:[^0-9]*\\([0-9]*\\) kB/\\1/p' "
			   "/proc/%d/status) -lt %d",
			   child.pid, RSS_LIMIT_KIB);
	run(script);
	close(fd);
}
