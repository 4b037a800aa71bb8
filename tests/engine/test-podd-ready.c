/*
 * test-podd-ready.c - when a real Pod is ready: each number of its readiness probe; and
 * what it may still do when it is ended.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <agentbox/error.h>

#include "engine/podd/proto.h"
#include "podd-case.h"

#define READY_TEST(name) PODD_CASE(podd_ready, name)

/* Answers port 80: 200 while /v/ok is there, else 503. Writes to /v/asked, a line a
 * question, when it begins to wait for it. */
#define SERVER                                                                       \
	"\"command\":[\"/bin/sh\",\"-c\",\""                                         \
	"while :; do echo x >>/v/asked; "                                            \
	"{ [ -e /v/ok ] && echo 'HTTP/1.1 200 OK' || echo 'HTTP/1.1 503 No'; echo; " \
	"} | nc -l -p 80; "                                                          \
	"cut -d' ' -f1 /proc/uptime >>/v/answered; done\"],"                         \
	"\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/v\"}]"

static void create(const char *container, const char *spec, const char *readiness)
{
	int r = podd_peer_call(
		&p, ABX__PODD_CREATE,
		podd_peer_body("{\"ns\":\"t\",\"name\":\"a\",\"image\":\"runtime:\","
			       "\"generation\":1,\"template\":{\"spec\":{\"containers\":["
			       "{\"name\":\"m\",\"image\":\"runtime:\",%s}],\"volumes\":["
			       "{\"name\":\"v\",\"emptyDir\":{}}]%s}}%s}",
			       container, spec, readiness));

	cr_assert_eq(r, 0, "%s", podd_peer_message(&p));
}

#define in_volume(name) in_dir("podd/pods/t_a/vol/v/%s", name)

static void set_ok(bool ok)
{
	int fd;

	if (!ok) {
		unlink(in_volume("ok"));
		return;
	}
	fd = open(in_volume("ok"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	cr_assert_geq(fd, 0);
	close(fd);
}

static unsigned asked(void)
{
	FILE *f = fopen(in_volume("asked"), "r");
	unsigned lines = 0;

	for (int c; f && (c = fgetc(f)) != EOF;)
		lines += c == '\n';
	if (f)
		fclose(f);
	return lines;
}

/* Of a file that is written when the answer is out, which is when the Pod is ready. */
static double first_number(const char *name)
{
	char line[64] = "";

	for (int i = 0; i < 4000 && !strchr(line, '\n'); i++) {
		FILE *f = fopen(in_volume(name), "r");

		if (f && !fgets(line, sizeof(line), f))
			line[0] = '\0';
		if (f)
			fclose(f);
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
	cr_assert(strchr(line, '\n'), "nothing in %s", name);
	return strtod(line, NULL);
}

static void wait_ready(bool ready)
{
	for (int i = 0; i < 8000 && !!podd_peer_get_int(&p, "a", "ready") != ready; i++) {
		/* Any call takes the events that came before its answer. */
		podd_peer_call(&p, ABX__PODD_SWAP, podd_peer_body("{\"ns\":\"t\"}"));
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
	cr_assert_eq(!!podd_peer_get_int(&p, "a", "ready"), ready);
}

/* On the clock of /proc/uptime. */
static double start_of_container(void)
{
	char path[64], text[1024] = "";
	const char *field;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", podd_peer_init_pid(&p, "a"));
	f = fopen(path, "r");
	cr_assert(f && fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	field = strrchr(text, ')');
	for (int n = 2; field && n < 22; n++)
		field = strchr(field + 1, ' ');
	cr_assert(field);
	return strtod(field, NULL) / (double)sysconf(_SC_CLK_TCK);
}

READY_TEST(it_is_not_asked_before_its_initial_delay)
{
	create(SERVER, "",
	       ",\"readiness\":{\"port\":80,\"path\":\"/\",\"initialDelaySeconds\":2}");
	set_ok(true);
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	/* The start is known to a hundredth. */
	cr_assert_geq(first_number("answered") - start_of_container(), 1.98);
}

READY_TEST(so_many_answers_in_a_row_make_it_ready)
{
	create(SERVER, "",
	       ",\"readiness\":{\"port\":80,\"path\":\"/\",\"successThreshold\":4}");
	set_ok(true);
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	cr_assert_geq(asked(), 4);
}

READY_TEST(so_many_failures_in_a_row_end_it_and_success_brings_it_back)
{
	create(SERVER, "",
	       ",\"readiness\":{\"port\":80,\"path\":\"/\",\"periodSeconds\":1,"
	       "\"failureThreshold\":2}");
	set_ok(true);
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	set_ok(false);
	wait_ready(false);
	cr_assert_str_eq(podd_peer_get(&p, "a", "phase"), "running");
	set_ok(true);
	wait_ready(true);
	/* The next podd goes on with the same question. */
	podd_peer_disconnect(&p);
	podd_fixture_kill(&p.podd, SIGKILL);
	podd_fixture_start(&p.podd);
	podd_peer_connect(&p);
	wait_ready(true);
	set_ok(false);
	wait_ready(false);
}

READY_TEST(without_a_period_it_is_not_asked_again_once_it_is_ready)
{
	unsigned before;

	create(SERVER, "", ",\"readiness\":{\"port\":80,\"path\":\"/\"}");
	set_ok(true);
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	first_number("answered");
	set_ok(false);
	/* Another Pod is made and asked meanwhile: time passes. */
	before = asked();
	podd_peer_create(&p, "b", "runtime:", "\"command\":[\"/bin/sleep\",\"1000\"]",
			 "");
	cr_assert_str_eq(podd_peer_settle(&p, "b", 1), "running");
	/* One more may have begun to wait. */
	cr_assert_leq(asked(), before + 1);
	cr_assert(podd_peer_get_int(&p, "a", "ready"));
}

READY_TEST(a_probe_of_unknown_fields_is_refused)
{
	cr_assert_eq(podd_peer_call(
			     &p, ABX__PODD_CREATE,
			     podd_peer_body("{\"ns\":\"t\",\"name\":\"a\",\"image\":"
					    "\"runtime:\",\"generation\":1,\"template\":{"
					    "\"spec\":{\"containers\":[{\"name\":\"m\","
					    "\"image\":\"runtime:\"}]}},\"readiness\":{"
					    "\"port\":80,\"path\":\"/\",\"exec\":{}}}")),
		     ABX_EUNSUPPORTED);
	cr_assert(strstr(podd_peer_message(&p), "readiness.exec"), "%s",
		  podd_peer_message(&p));
}

/* ---- terminationGracePeriodSeconds ---- */

#define POLITE                                                                      \
	"\"command\":[\"/bin/sh\",\"-c\",\"trap 'echo bye >/v/said; exit 0' TERM; " \
	"echo x >/v/begun; while :; do sleep 1000 & wait $!; done\"],"              \
	"\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/v\"}]"

static void swap_when_begun(void)
{
	for (int i = 0; i < 4000 && access(in_volume("begun"), F_OK) < 0; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	cr_assert_eq(podd_peer_swap(&p, "a", "host:", 2, false), 0, "%s",
		     podd_peer_message(&p));
	cr_assert_str_eq(podd_peer_settle(&p, "a", 2), "running");
}

READY_TEST(with_a_grace_period_it_is_told_first)
{
	create(POLITE, ",\"terminationGracePeriodSeconds\":60", "");
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	swap_when_begun();
	cr_assert_eq(access(in_volume("said"), F_OK), 0, "it was not told");
}

READY_TEST(without_one_it_is_killed)
{
	create(POLITE, "", "");
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	swap_when_begun();
	cr_assert_lt(access(in_volume("said"), F_OK), 0, "it was told");
}

READY_TEST(what_does_not_listen_is_killed_when_its_grace_is_over)
{
	create("\"command\":[\"/bin/sleep\",\"1000\"]",
	       ",\"terminationGracePeriodSeconds\":1", "");
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running");
	podd_peer_delete(&p, "a");
	podd_peer_wait_clean(&p);
}
