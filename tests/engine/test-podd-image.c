/*
 * test-podd-image.c - where images come from, and what a bad one can do. Real Pods.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <agentbox/error.h>

#include "podd-case.h"
#include "podd-tools.h"

#define PODD_TEST(name) PODD_CASE(podd_image, name)

PODD_TEST(the_host_image_is_a_machine_for_user)
{
	const char *out;

	if (access("/usr/bin/sudo", X_OK) < 0 || access("/usr/bin/python3", X_OK) < 0 ||
	    access("/usr/bin/git", X_OK) < 0 || access("/usr/bin/curl", X_OK) < 0)
		cr_skip_test("the host lacks sudo, python3, git or curl");
	out = podd_peer_run(&p, "a", "host:",
			    "su user -c 'cd; id -un; sudo -n id -u; python3 -c \"import "
			    "json, ssl; print(6*7)\"; python -V; "
			    "git --version; curl --version | head -1; touch x && stat -c "
			    "%U x; cat /etc/shadow'\n"
			    "touch /usr/local/x && echo usr writable\n"
			    "ls -ld /usr/bin/sudo\n",
			    "");
	cr_assert(strstr(out, "user\n0\n42\n"), "%s", out);
	cr_assert(strstr(out, "git version"), "%s", out);
	cr_assert(strstr(out, "curl "), "%s", out);
	cr_assert(strstr(out, "Permission denied"), "shadow is not for user: %s", out);
	cr_assert(strstr(out, "usr writable"), "%s", out);
	cr_assert(access("/usr/local/x", F_OK) < 0, "the host's /usr was written to");
}

PODD_TEST(a_busybox_only_image_runs)
{
	build_busybox(&p);
	cr_assert(
		strstr(podd_peer_run(&p, "a", "oci:busybox", "id -u; ls /", ""), "0\n"));
}

PODD_TEST(an_image_without_a_shell_says_what_is_missing)
{
	mkdir(in_dir("images"), 0755);
	mkdir(in_dir("empty"), 0755);
	write_text(in_dir("empty/hello"), "hello");
	run("deploy/images/oci-layout",
	    (const char *const[]){ in_dir("images/empty"), in_dir("empty"), NULL });
	podd_peer_create(
		&p, "a", "oci:empty",
		"\"command\":[\"/mnt/agentbox/tini\",\"-g\",\"--\",\"/bin/sh\",\"x\"]",
		"");
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "failed");
	cr_assert_str_eq(podd_peer_get(&p, "a", "reason"), "StartError");
	cr_assert(strstr(podd_peer_get(&p, "a", "message"), "/bin/sh") &&
			  strstr(podd_peer_get(&p, "a", "message"), "oci:empty"),
		  "%s", podd_peer_get(&p, "a", "message"));
	/* And again with a program that is found on PATH or not at all. */
	podd_peer_create(&p, "b", "oci:empty", "\"command\":[\"nosuch\"]", "");
	cr_assert_str_eq(podd_peer_settle(&p, "b", 1), "failed");
	cr_assert(strstr(podd_peer_get(&p, "b", "message"), "nosuch"), "%s",
		  podd_peer_get(&p, "b", "message"));
	podd_peer_create(&p, "c", "oci:empty", "", "");
	cr_assert_str_eq(podd_peer_settle(&p, "c", 1), "failed");
	cr_assert(strstr(podd_peer_get(&p, "c", "message"), "Entrypoint"), "%s",
		  podd_peer_get(&p, "c", "message"));
}

/* A layer of busybox and accounts. */
static const char *accounts_layer(void)
{
	char command[600];

	mkdir(in_dir("images"), 0755);
	snprintf(command, sizeof(command),
		 "cd %s && mkdir -p acc/bin acc/etc && cp /bin/busybox acc/bin/ && "
		 "for i in sh mv sleep; do ln -s busybox acc/bin/$i; done",
		 p.podd.dir);
	cr_assert_eq(system(command), 0);
	write_text(in_dir("acc/etc/passwd"), "root:x:0:0::/top:/bin/sh\n"
					     "app:x:500:600::/srv/app:/bin/sh\n");
	return in_dir("acc");
}

#define WHO "/bin/busybox id -u; /bin/busybox id -g; echo $HOME"

PODD_TEST(the_user_is_the_images_or_wholly_the_templates)
{
	run("deploy/images/oci-layout",
	    (const char *const[]){ in_dir("images/app"), "--user", "app",
				   accounts_layer(), NULL });
	run("deploy/images/oci-layout",
	    (const char *const[]){ in_dir("images/lost"), "--user", "nosuch",
				   in_dir("acc"), NULL });
	podd_peer_create(&p, "a", "oci:lost", SLEEP, "");
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "failed");
	cr_assert(strstr(podd_peer_get(&p, "a", "message"), "nosuch"), "%s",
		  podd_peer_get(&p, "a", "message"));
	/* The script's volume is root's: written to by root alone. */
	cr_assert_str_eq(podd_peer_run(&p, "b", "oci:app", WHO,
				       "\"securityContext\":{\"runAsUser\":0}"),
			 "0\n0\n/top\n");
	cr_assert_str_eq(podd_peer_run(&p, "c", "oci:lost", WHO,
				       "\"securityContext\":{\"runAsUser\":0}"),
			 "0\n0\n/top\n");
}

/* $(NAME) is Kubernetes', for what a template says. */
PODD_TEST(what_an_image_runs_is_taken_as_it_is)
{
	char text[32] = "";
	int fd = -1;

	run("deploy/images/oci-layout",
	    (const char *const[]){
		    in_dir("images/raw"), "--entrypoint", "/bin/sh", "--cmd=-c", "--cmd",
		    "echo '$(HOME)' >/out/new; mv /out/new /out/said; exec sleep 1000",
		    accounts_layer(), NULL });
	cr_assert_eq(
		podd_peer_create(
			&p, "a", "oci:raw",
			"\"volumeMounts\":[{\"name\":\"out\",\"mountPath\":\"/out\"}]",
			"\"volumes\":[{\"name\":\"out\",\"emptyDir\":{}}]"),
		0, "%s", podd_peer_message(&p));
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running", "%s",
			 podd_peer_get(&p, "a", "message"));
	for (int i = 0;
	     i < 4000 && (fd = open(in_dir("podd/pods/t_a/vol/out/said"), O_RDONLY)) < 0;
	     i++)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	cr_assert_geq(fd, 0);
	cr_assert_gt(read(fd, text, sizeof(text) - 1), 0);
	close(fd);
	cr_assert_str_eq(text, "$(HOME)\n");
}

PODD_TEST(an_image_that_does_not_exist_is_named)
{
	podd_peer_create(&p, "a", "oci:nosuch", SLEEP, "");
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "failed");
	cr_assert_str_eq(podd_peer_get(&p, "a", "reason"), "ErrImagePull");
	cr_assert(strstr(podd_peer_get(&p, "a", "message"), "oci:nosuch"), "%s",
		  podd_peer_get(&p, "a", "message"));
	/* A registry nobody listens at. */
	if (access("/usr/bin/skopeo", X_OK) < 0)
		return;
	podd_peer_create(&p, "b", "127.0.0.1:1/no/such:1", SLEEP, "");
	cr_assert_str_eq(podd_peer_settle(&p, "b", 1), "failed");
	cr_assert_str_eq(podd_peer_get(&p, "b", "reason"), "ErrImagePull");
	cr_assert(strstr(podd_peer_get(&p, "b", "message"), "127.0.0.1:1/no/such:1"),
		  "%s", podd_peer_get(&p, "b", "message"));
}

PODD_TEST(a_policy_of_never_asks_nobody)
{
	podd_peer_create(&p, "a", "127.0.0.1:1/no/such:1",
			 SLEEP ",\"imagePullPolicy\":\"Never\"", "");
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "failed");
	cr_assert_str_eq(podd_peer_get(&p, "a", "reason"), "ErrImageNeverPull");
	cr_assert(strstr(podd_peer_get(&p, "a", "message"), "imagePullPolicy is Never"),
		  "%s", podd_peer_get(&p, "a", "message"));
}

/* Debian's registry on a free port, ended with the test. */
static pid_t start_registry(uint16_t port)
{
	char text[512];
	pid_t pid;

	snprintf(text, sizeof(text),
		 "version: 0.1\nlog: {level: error}\n"
		 "storage: {filesystem: {rootdirectory: %s/registry}}\n"
		 "http: {addr: '127.0.0.1:%u'}\n",
		 p.podd.dir, port);
	write_text(in_dir("registry.yml"), text);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(null, 1);
		dup2(null, 2);
		execl("/usr/bin/docker-registry", "docker-registry", "serve",
		      in_dir("registry.yml"), (char *)NULL);
		_exit(127);
	}
	return pid;
}

static int push(const char *reference)
{
	char from[300], to[300];
	int status = -1;

	snprintf(from, sizeof(from), "oci:%s/images/busybox:latest", p.podd.dir);
	snprintf(to, sizeof(to), "docker://%s", reference);
	/* Until it listens. */
	for (int i = 0; i < 100 && status != 0; i++) {
		if (i)
			nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
		status = run_tool((const char *const[]){
			"/usr/bin/skopeo", "copy", "--quiet", "--insecure-policy",
			"--dest-tls-verify=false", from, to, NULL });
	}
	return status;
}

PODD_TEST(a_registry_is_pulled_from_once_and_an_absent_tag_is_named)
{
	char image[64], absent[64];
	uint16_t port;
	pid_t registry;

	if (access("/usr/bin/docker-registry", X_OK) < 0 ||
	    access("/usr/bin/skopeo", X_OK) < 0)
		cr_skip_test("needs docker-registry and skopeo");
	build_busybox(&p);
	close(listen_any(&port));
	registry = start_registry(port);
	snprintf(image, sizeof(image), "127.0.0.1:%u/team/busybox:1", port);
	snprintf(absent, sizeof(absent), "127.0.0.1:%u/team/busybox:nosuch", port);
	cr_assert_eq(push(image), 0, "the registry took no image");
	cr_assert_str_eq(podd_peer_run(&p, "a", image, "echo pulled", ""), "pulled\n");
	podd_peer_create(&p, "b", absent, SLEEP, "");
	cr_assert_str_eq(podd_peer_settle(&p, "b", 1), "failed");
	cr_assert_str_eq(podd_peer_get(&p, "b", "reason"), "ErrImagePull");
	cr_assert(strstr(podd_peer_get(&p, "b", "message"), absent), "%s",
		  podd_peer_get(&p, "b", "message"));
	kill(registry, SIGKILL);
	waitpid(registry, NULL, 0);
	/* What is unpacked needs no registry, also for the next podd. */
	podd_peer_disconnect(&p);
	podd_fixture_kill(&p.podd, SIGTERM);
	podd_fixture_start(&p.podd);
	podd_peer_connect(&p);
	cr_assert_str_eq(podd_peer_run(&p, "c", image, "echo kept", ""), "kept\n");
}

PODD_TEST(an_archive_of_a_layout_runs_and_an_absent_one_is_named)
{
	char from[300], to[300];

	if (access("/usr/bin/skopeo", X_OK) < 0)
		cr_skip_test("needs skopeo");
	build_busybox(&p);
	snprintf(from, sizeof(from), "oci:%s/images/busybox:latest", p.podd.dir);
	snprintf(to, sizeof(to), "oci-archive:%s/images/box.tar", p.podd.dir);
	cr_assert_eq(
		run_tool((const char *const[]){ "/usr/bin/skopeo", "copy", "--quiet",
						"--insecure-policy", from, to, NULL }),
		0);
	cr_assert_str_eq(
		podd_peer_run(&p, "a", "oci-archive:box.tar", "echo it runs", ""),
		"it runs\n");
	podd_peer_create(&p, "b", "oci-archive:nosuch.tar", SLEEP, "");
	cr_assert_str_eq(podd_peer_settle(&p, "b", 1), "failed");
	cr_assert_str_eq(podd_peer_get(&p, "b", "reason"), "ErrImagePull");
	cr_assert(strstr(podd_peer_get(&p, "b", "message"), "nosuch.tar"), "%s",
		  podd_peer_get(&p, "b", "message"));
}

PODD_TEST(fifty_layers_with_whiteouts)
{
	const char *args[64], *out;
	static char names[50][256];
	char command[600], out_dir[256];
	size_t n = 0;

	build_busybox(&p);
	snprintf(out_dir, sizeof(out_dir), "%s/images/deep", p.podd.dir);
	args[n++] = out_dir;
	snprintf(names[0], 256, "%s/l0", p.podd.dir);
	mkdir(names[0], 0755);
	mkdir(in_dir("l0/bin"), 0755);
	mkdir(in_dir("l0/gone"), 0755);
	mkdir(in_dir("l0/opaque"), 0755);
	write_text(in_dir("l0/gone/file"), "x");
	write_text(in_dir("l0/opaque/old"), "x");
	write_text(in_dir("l0/removed"), "x");
	snprintf(command, sizeof(command),
		 "cd %s/bin && cp /bin/busybox . && for i in sh ls cat mv sleep; do ln "
		 "-s busybox $i; done",
		 names[0]);
	cr_assert_eq(system(command), 0);
	args[n++] = names[0];
	for (int i = 1; i < 50; i++) {
		char path[300];

		snprintf(names[i], 256, "%s/l%d", p.podd.dir, i);
		mkdir(names[i], 0755);
		snprintf(path, sizeof(path), "%s/f%d", names[i], i);
		write_text(path, "y");
		/* Each layer hides the file of the one before. */
		snprintf(path, sizeof(path), "%s/.wh.f%d", names[i], i - 1);
		write_text(path, "");
		args[n++] = names[i];
	}
	write_text(in_dir("l20/.wh.gone"), "");
	write_text(in_dir("l21/.wh.removed"), "");
	mkdir(in_dir("l22/opaque"), 0755);
	write_text(in_dir("l22/opaque/.wh..wh..opq"), "");
	write_text(in_dir("l22/opaque/new"), "x");
	args[n] = NULL;
	run("deploy/images/oci-layout", args);
	out = podd_peer_run(&p, "a", "oci:deep", "ls /; echo :; ls /opaque", "");
	cr_assert(strstr(out, "f49\n"), "%s", out);
	cr_assert_null(strstr(out, "f48\n"), "%s", out);
	cr_assert_null(strstr(out, "gone"), "%s", out);
	cr_assert_null(strstr(out, "removed"), "%s", out);
	cr_assert(strstr(out, ":\nnew\n"), "%s", out);
	cr_assert_null(strstr(out, "old"), "%s", out);
}

PODD_TEST(a_hostile_layer_writes_nothing_outside_and_brings_no_device)
{
	static const char script[] =
		"import tarfile, io, sys\n"
		"t = tarfile.open(sys.argv[1], 'w')\n"
		"def add(name, kind=tarfile.REGTYPE, link='', **k):\n"
		"    i = tarfile.TarInfo(name); i.type = kind; i.linkname = link\n"
		"    for a, v in k.items(): setattr(i, a, v)\n"
		"    data = b'' if kind != tarfile.REGTYPE else b'evil'\n"
		"    i.size = len(data); t.addfile(i, io.BytesIO(data))\n"
		"add('dev/sda', tarfile.BLKTYPE, devmajor=8, devminor=0)\n"
		"add('abs', tarfile.SYMTYPE, sys.argv[2])\n"
		"add(sys.argv[3])\n"
		"t.close()\n";
	static const char *const entries[] = { "../../escaped", "abs/escaped" };

	mkdir(in_dir("images"), 0755);
	write_text(in_dir("evil.py"), script);
	for (int i = 0; i < 2; i++) {
		char command[1024], image[32], layout[64];

		snprintf(command, sizeof(command), "python3 %s %s %s %s",
			 in_dir("evil.py"), in_dir("evil.tar"), p.podd.dir, entries[i]);
		cr_assert_eq(system(command), 0);
		snprintf(image, sizeof(image), "oci:evil%d", i);
		snprintf(layout, sizeof(layout), "images/evil%d", i);
		run("deploy/images/oci-layout",
		    (const char *const[]){ in_dir("%s", layout), in_dir("evil.tar"),
					   NULL });
		snprintf(command, sizeof(command), "e%d", i);
		podd_peer_create(&p, command, image, SLEEP, "");
		cr_assert_str_eq(podd_peer_settle(&p, command, 1), "failed");
		/* A link in the way is replaced by a folder of the layer's own, which is
		 * as good. */
		if (i == 0)
			cr_assert_str_eq(podd_peer_get(&p, command, "reason"),
					 "ErrImagePull");
		cr_assert_lt(access(in_dir("escaped"), F_OK), 0, "escaped");
	}
}

PODD_TEST(a_damaged_layer_is_refused)
{
	DIR *d;
	struct dirent *e;

	build_busybox(&p);
	d = opendir(in_dir("images/busybox/blobs/sha256"));
	while (d && (e = readdir(d))) {
		struct stat st;
		const char *path = in_dir("images/busybox/blobs/sha256/%s", e->d_name);

		if (e->d_name[0] != '.' && stat(path, &st) == 0 && st.st_size > 100000) {
			int fd = open(path, O_WRONLY | O_APPEND);

			cr_assert_eq(write(fd, "x", 1), 1);
			close(fd);
		}
	}
	closedir(d);
	podd_peer_create(&p, "a", "oci:busybox", SLEEP, "");
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "failed");
	cr_assert(strstr(podd_peer_get(&p, "a", "message"), "digest"), "%s",
		  podd_peer_get(&p, "a", "message"));
}
