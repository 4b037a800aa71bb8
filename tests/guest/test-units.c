/*
 * test-units.c - the daemon's small pure parts: options, users, paths, Basic, content
 * headers, ca, login profile.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "envd/auth.h"
#include "envd/ca.h"
#include "envd/content.h"
#include "envd/env-vars.h"
#include "envd/options.h"
#include "envd/path.h"
#include "envd/users.h"

static char dir[64];

static void make_dir(void)
{
	snprintf(dir, sizeof(dir), "/tmp/abx-guest-test-XXXXXX");
	cr_assert(mkdtemp(dir));
}

static void remove_dir(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", dir, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

TestSuite(guest_units, .init = make_dir, .fini = remove_dir);

static char *in_dir(const char *name)
{
	return abx__strf("%s/%s", dir, name);
}

static void put_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void expect_file(const char *path, const char *want)
{
	char text[65536] = "";
	FILE *f = fopen(path, "r");

	cr_assert(f, "%s", path);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	cr_assert_str_eq(text, want, "%s: %s", path, text);
}

/* ---- options ---- */

Test(guest_units, options_are_read_like_gos_flags)
{
	char *argv[] = { "envd",           "-port",  "1", "--isnotfc", "-await-init=true",
			 "-verbose=false", "-port=2" };
	enum abx__envd_action action;
	abx__envd_options opts;

	cr_assert(abx__envd_options_read(7, argv, &opts, &action, NULL) == ABX_OK);
	cr_assert(opts.port == 2 && opts.is_not_fc && opts.await_init && !opts.verbose);
	cr_assert(action == ABX__ENVD_RUN);
	cr_assert(abx__envd_options_read(1, argv, &opts, &action, NULL) == ABX_OK);
	cr_assert(opts.port == 49983 && !opts.is_not_fc && !opts.await_init);
	argv[1] = "--version";
	cr_assert(abx__envd_options_read(2, argv, &opts, &action, NULL) == ABX_OK);
	cr_assert(action == ABX__ENVD_PRINT_VERSION);
}

Test(guest_units, unknown_and_unhonoured_options_are_refused)
{
	static char *const rows[][2] = {
		{ "-resume-handover", "-resume-handover" },
		{ "port", "port" },
		{ "-port", "a value is missing" },
		{ "-port=70000", "not a port" },
		{ "-isnotfc=maybe", "true or false" },
		{ "-cgroup-root=/x", "-no-cgroups" },
		{ "-", "unknown option" },
		{ "---port=1", "unknown option" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
		char *argv[] = { "envd", rows[i][0] };
		enum abx__envd_action action;
		abx__envd_options opts;

		cr_assert(abx__envd_options_read(2, argv, &opts, &action, &err) ==
				  ABX_EINVAL,
			  "%s", rows[i][0]);
		cr_assert(strstr(abx_error_message(err), rows[i][1]), "%s",
			  abx_error_message(err));
	}
}

/* ---- users ---- */

Test(guest_units, users_come_from_the_files_alone)
{
	ABX_CLEANUP(abx__freep) char *passwd = in_dir("passwd");
	ABX_CLEANUP(abx__freep) char *group = in_dir("group");
	abx__users users;
	abx__user user = { 0 };
	ABX_CLEANUP(abx__freep) gid_t *groups = NULL;
	ABX_CLEANUP(abx__freep) char *name = NULL;
	ABX_CLEANUP(abx__freep) char *number = NULL;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	size_t count = 0;

	put_file(passwd, "root:x:0:0:root:/root:/bin/sh\nbroken\nbad:x:y:1::/:/\n"
			 "al:x:1001:1002:Al, the user:/home/al:/bin/sh");
	put_file(group, "root:x:0:\nwheel:x:10:bob,al\nal:x:1002:\nnear:x:11:alf,"
			"bal\nadm:x:4:al");
	abx__users_init(&users, passwd, group);
	cr_assert(abx__users_find(&users, "al", &user, NULL) == ABX_OK);
	cr_assert(user.uid == 1001 && user.gid == 1002);
	cr_assert_str_eq(user.home, "/home/al");
	cr_assert(abx__users_groups(&users, &user, &groups, &count) == ABX_OK);
	cr_assert(count == 3 && groups[0] == 1002 && groups[1] == 10 && groups[2] == 4);
	abx__user_done(&user);
	cr_assert(abx__users_find(&users, "bad", &user, NULL) == ABX_ENOTFOUND);
	cr_assert(abx__users_find(&users, "", &user, NULL) == ABX_ENOTFOUND);
	cr_assert(abx__users_find(&users, "a", &user, &err) == ABX_ENOTFOUND);
	cr_assert_str_eq(abx_error_message(err), "unknown user a");
	name = abx__users_name_of_uid(&users, 1001);
	number = abx__users_name_of_gid(&users, 77);
	cr_assert_str_eq(name, "al");
	cr_assert_str_eq(number, "77");
	/* A changed file is read again. */
	put_file(passwd, "new:x:5:6::/n:/bin/sh\n");
	cr_assert(abx__users_find(&users, "new", &user, NULL) == ABX_OK && user.uid == 5);
	abx__user_done(&user);
	abx__users_done(&users);
}

Test(guest_units, held_users_are_those_of_the_moment)
{
	ABX_CLEANUP(abx__freep) char *passwd = in_dir("passwd");
	static const struct {
		bool is_held;
		uid_t uid;
		const char *want;
	} rows[] = {
		{ true, 7, "old" },  { true, 7, "old" },   { true, 8, "8" },
		{ false, 7, "new" }, { false, 7, "new" },  { false, 8, "more" },
		{ false, 9, "9" },   { false, 8, "more" },
	};
	abx__users users;

	put_file(passwd, "old:x:7:7::/:/bin/sh\n");
	abx__users_init(&users, passwd, "/no/group");
	abx__users_hold(&users);
	put_file(passwd, "new:x:7:7::/:/bin/sh\nmore:x:8:8::/:/bin/sh\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ABX_CLEANUP(abx__freep) char *name = NULL;

		if (!rows[i].is_held)
			abx__users_release(&users);
		name = abx__users_name_of_uid(&users, rows[i].uid);
		cr_expect_str_eq(name, rows[i].want, "row %zu: %s", i, name);
	}
	abx__users_done(&users);
}

Test(guest_units, root_is_root_without_any_file)
{
	abx__users users;
	abx__user user = { 0 };
	ABX_CLEANUP(abx__freep) gid_t *groups = NULL;
	ABX_CLEANUP(abx__freep) char *name = NULL;
	size_t count = 0;

	abx__users_init(&users, "/no/passwd", "/no/group");
	cr_assert(abx__users_find(&users, "root", &user, NULL) == ABX_OK);
	cr_assert(user.uid == 0 && user.gid == 0);
	cr_assert_str_eq(user.home, "/root");
	cr_assert(abx__users_groups(&users, &user, &groups, &count) == ABX_OK &&
		  count == 1);
	name = abx__users_name_of_uid(&users, 0);
	cr_assert_str_eq(name, "root");
	abx__user_done(&user);
	abx__users_done(&users);
}

Test(guest_units, a_fifo_in_the_place_of_passwd_is_not_waited_for, .timeout = 20)
{
	ABX_CLEANUP(abx__freep) char *fifo = in_dir("passwd");
	abx__users users;
	abx__user user = { 0 };

	cr_assert_eq(mkfifo(fifo, 0600), 0);
	abx__users_init(&users, fifo, fifo);
	cr_assert(abx__users_find(&users, "al", &user, NULL) == ABX_ENOTFOUND);
	cr_assert(abx__users_find(&users, "root", &user, NULL) == ABX_OK);
	abx__user_done(&user);
	abx__users_done(&users);
}

/* ---- paths ---- */

Test(guest_units, paths_resolve_as_documented)
{
	static const struct {
		const char *path, *workdir, *want;
	} rows[] = {
		{ "", NULL, "/home/u" },
		{ "", "/work", "/work" },
		{ "", "w", "/home/u/w" },
		{ "~", "/work", "/home/u" },
		{ "~/x/../y", NULL, "/home/u/y" },
		{ "/a/../b//", NULL, "/a/../b//" },
		{ "a/./b", "/work", "/home/u/a/b" },
		{ "../../../etc", NULL, "/etc" },
	};
	abx__user user = { .name = "u", .home = "/home/u" };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ABX_CLEANUP(abx__freep) char *got = NULL;

		cr_assert(abx__path_resolve(rows[i].path, &user, rows[i].workdir, &got,
					    NULL) == ABX_OK);
		cr_assert_str_eq(got, rows[i].want, "%s: %s", rows[i].path, got);
	}
	cr_assert(abx__path_resolve("~bob", &user, NULL, &user.name, NULL) == ABX_EINVAL);
}

Test(guest_units, parents_and_last_parts)
{
	static const char *const rows[][3] = {
		{ "/a/b", "/a", "b" },      { "/a", "/", "a" },     { "/", "/", "/" },
		{ "/a/b/", "/a", "/a/b/" }, { "/a//b", "/a", "b" }, { "x", "/", "x" }
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ABX_CLEANUP(abx__freep) char *parent = abx__path_parent(rows[i][0]);

		cr_assert_str_eq(parent, rows[i][1], "%s: %s", rows[i][0], parent);
		cr_assert_str_eq(abx__path_base(rows[i][0]), rows[i][2]);
	}
}

/* ---- Basic ---- */

Test(guest_units, basic_users)
{
	static const struct {
		const char *header, *want;
	} rows[] = {
		{ "Basic cm9vdDo=", "root" }, { "basic cm9vdDpwYTpzcw==", "root" },
		{ "Basic Og==", "" },         { "Basic cm9vdA==", NULL }, /* no colon */
		{ "Bearer cm9vdDo=", NULL },  { "Basic !", NULL },
		{ "Basic cgBvOg==", NULL },   /* a NUL */ { NULL, NULL },
		{ "Basic ", NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ABX_CLEANUP(abx__freep) char *got = NULL;
		int r = abx__auth_basic_user(rows[i].header, &got);

		cr_assert(r == (rows[i].want != NULL), "row %zu: %d", i, r);
		if (rows[i].want)
			cr_assert_str_eq(got, rows[i].want);
	}
}

/* ---- content ---- */

Test(guest_units, dispositions_are_safe_for_every_name)
{
	static const char *const rows[][2] = {
		{ "a.txt", "inline; filename=a.txt" },
		{ "a b", "inline; filename=\"a b\"" },
		{ "q\"q\\", "inline; filename=\"q\\\"q\\\\\"" },
		{ "\xc3\xa9", "inline; filename*=utf-8''%C3%A9" },
		{ "a\r\nX: y", "inline; filename*=utf-8''a%0D%0AX%3A%20y" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ABX_CLEANUP(abx__freep) char *got = abx__content_disposition(rows[i][0]);

		cr_assert_str_eq(got, rows[i][1]);
	}
}

Test(guest_units, types_and_dates)
{
	char date[ABX__HTTP_DATE_SIZE];

	cr_assert_str_eq(abx__content_type("a.JSON", "", 0), "application/json");
	cr_assert_str_eq(abx__content_type("a", "text", 4), "text/plain; charset=utf-8");
	cr_assert_str_eq(abx__content_type("a", "\0\1", 2), "application/octet-stream");
	cr_assert_str_eq(abx__content_type("a", "\x89PNG\r\n\x1a\n..", 10), "image/png");
	abx__http_date(784111777, date);
	cr_assert_str_eq(date, "Sun, 06 Nov 1994 08:49:37 GMT");
}

/* ---- ca ---- */

#define PEM(x) "-----BEGIN CERTIFICATE-----\n" x "\n-----END CERTIFICATE-----\n"

Test(guest_units, certificates_are_added_replaced_and_not_repeated)
{
	ABX_CLEANUP(abx__freep)
	char *bundle = in_dir("etc/ssl/certs/ca-certificates.crt");
	ABX_CLEANUP(abx__freep)
	char *own = in_dir("usr/local/share/ca-certificates/e2b-ca.crt");
	ABX_CLEANUP(abx__freep) char *parent = in_dir("etc/ssl/certs");

	cr_assert(abx__path_make_dirs(parent, 0, 0, NULL) == ABX_OK);
	put_file(bundle, PEM("SYSTEM"));
	cr_assert(abx__ca_install(dir, "no certificate", NULL) == ABX_EINVAL);
	expect_file(bundle, PEM("SYSTEM"));
	cr_assert(abx__ca_install(dir, PEM("ONE"), NULL) == ABX_OK);
	expect_file(bundle, PEM("SYSTEM") PEM("ONE"));
	expect_file(own, PEM("ONE"));
	cr_assert(abx__ca_install(dir, PEM("ONE"), NULL) == ABX_OK);
	expect_file(bundle, PEM("SYSTEM") PEM("ONE"));
	cr_assert(abx__ca_install(dir, PEM("TWO"), NULL) == ABX_OK);
	expect_file(bundle, PEM("SYSTEM") PEM("TWO"));
	cr_assert(unlink(bundle) == 0);
	cr_assert(abx__ca_install(dir, PEM("TWO"), NULL) == ABX_OK);
	expect_file(bundle, PEM("TWO"));
}

/* ---- the image's environment ---- */

Test(guest_units, login_shells_get_the_images_environment)
{
	char *vars[] = { "PATH=/image/bin:/usr/bin:/bin",
			 "LANG=it's $HOME\n`x`",
			 "GIVEN=image",
			 "HOME=/other",
			 "AGENTBOX_DIR=/x",
			 "BAD-NAME=1",
			 "nothing",
			 NULL };
	ABX_CLEANUP(abx__freep) char *file = in_dir("profile.sh");
	ABX_CLEANUP(abx__freep)
	char *script = abx__strf(
		". %s/profile.sh; printf '%%s|' \"$PATH\" \"$LANG\" \"$GIVEN\" \"$HOME\" "
		"\"${AGENTBOX_DIR-none}\" >%s/out",
		dir, dir);
	ABX_CLEANUP(abx__freep) char *out = in_dir("out");
	pid_t pid;
	int status;

	cr_assert(abx__env_vars_write_profile(file, vars, NULL) == ABX_OK);
	pid = fork();
	if (pid == 0) {
		execle("/bin/sh", "sh", "-c", script, (char *)NULL,
		       (char *[]){ "PATH=/usr/bin:/bin", "GIVEN=request", "HOME=/h",
				   NULL });
		_exit(127);
	}
	waitpid(pid, &status, 0);
	cr_assert(status == 0);
	expect_file(out, "/image/bin:/usr/bin:/bin|it's $HOME\n`x`|request|/h|none|");
}

/* ---- the entrypoint ---- */

static void run_entrypoint(const char *const *extra)
{
	const char *top = getenv("top_srcdir");
	char root[128], agent[128], script[4096];
	const char *env[16] = { root, agent, "PATH=/usr/bin:/bin" };
	int status, n = 3;
	pid_t pid;

	snprintf(root, sizeof(root), "AGENTBOX_ROOT=%s", dir);
	snprintf(agent, sizeof(agent), "AGENTBOX_DIR=%s", dir);
	snprintf(script, sizeof(script), "%s/guest/envd/agentbox-entrypoint.sh",
		 top ? top : ".");
	while (extra && *extra)
		env[n++] = *extra++;
	pid = fork();
	if (pid == 0) {
		execle("/bin/sh", "sh", script, (char *)NULL,
		       (char *const *)(uintptr_t)env);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	cr_assert(status == 0, "wait status %d", status);
}

/* An envd that writes down its arguments. */
static void put_fake_envd(void)
{
	ABX_CLEANUP(abx__freep) char *envd = in_dir("envd");
	ABX_CLEANUP(abx__freep)
	char *text = abx__strf("#!/bin/sh\necho \"$@\" >%s/args\n", dir);

	put_file(envd, text);
	cr_assert(chmod(envd, 0755) == 0);
}

Test(guest_units, entrypoint_becomes_envd)
{
	ABX_CLEANUP(abx__freep) char *args = in_dir("args");
	ABX_CLEANUP(abx__freep)
	char *want = abx__strf("-isnotfc -no-cgroups -prepare-image %s -image-env "
			       "%s/etc/profile.d/zzz-agentbox-image-env.sh -await-init "
			       "-interpreter %s/agentbox-interpreter.pyz\n",
			       dir, dir, dir);

	put_fake_envd();
	run_entrypoint(NULL);
	expect_file(args, want);
}

Test(guest_units, entrypoint_passes_its_settings_on)
{
	ABX_CLEANUP(abx__freep) char *args = in_dir("args");
	ABX_CLEANUP(abx__freep)
	char *want = abx__strf("-isnotfc -no-cgroups -prepare-image %s -image-env "
			       "%s/etc/profile.d/zzz-agentbox-image-env.sh -verbose "
			       "-port 7\n",
			       dir, dir);
	ABX_CLEANUP(abx__freep)
	char *warm = abx__strf("-isnotfc -no-cgroups -prepare-image %s -image-env "
			       "%s/etc/profile.d/zzz-agentbox-image-env.sh -await-init "
			       "-interpreter %s/agentbox-interpreter.pyz "
			       "-interpreter-warm\n",
			       dir, dir, dir);

	put_fake_envd();
	run_entrypoint((const char *const[]){
		"AGENTBOX_AWAIT_INIT=false", "AGENTBOX_ENVD_VERBOSE=true",
		"AGENTBOX_CODE_INTERPRETER=off", "AGENTBOX_ENVD_FLAGS=-port 7", NULL });
	expect_file(args, want);
	run_entrypoint((const char *const[]){ "AGENTBOX_CODE_INTERPRETER=warm", NULL });
	expect_file(args, warm);
}
