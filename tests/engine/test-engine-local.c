/*
 * test-engine-local.c - the local engine passes the port's suite, with a real podd and a
 * real store.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/local/local.h"
#include "podd-fixture.h"
#include "store/sqlite.h"
#include "suite-engine.h"

typedef struct subject {
	suite_engine s;
	podd_fixture podd;
	uv_loop_t loop;
	uv_timer_t timer;
	abx__store *store;
	bool closed;
} subject;

static void on_tick(uv_timer_t *timer)
{
	(void)timer;
}

static void turn(suite_engine *s)
{
	subject *sub = s->userdata;

	uv_timer_start(&sub->timer, on_tick, 5, 0);
	uv_run(&sub->loop, UV_RUN_ONCE);
}

static void on_closed(void *userdata)
{
	*(bool *)userdata = true;
}

static void open_engine(subject *sub)
{
	abx_error *err = NULL;

	cr_assert_eq(abx__engine_local_new(&sub->loop, sub->store, sub->podd.socket, NULL,
					   &sub->s.engine, &err),
		     ABX_OK, "%s", abx_error_message(err));
}

static void close_engine(subject *sub)
{
	sub->closed = false;
	sub->s.engine->ops->close(sub->s.engine, on_closed, &sub->closed);
	while (!sub->closed)
		turn(&sub->s);
	sub->s.engine = NULL;
}

static void reopen(suite_engine *s)
{
	close_engine(s->userdata);
	open_engine(s->userdata);
}

static json_object *pod_template(suite_engine *s, const char *image)
{
	char text[512];

	(void)s;
	snprintf(text, sizeof(text),
		 "{\"spec\":{\"containers\":[{\"name\":\"sandbox\",\"image\":\"%s\","
		 "\"command\":[\"/bin/sh\",\"-c\",\"exec sleep 1000\"]}]}}",
		 image);
	return json_tokener_parse(text);
}

static void open_store(subject *sub)
{
	abx__store_sqlite_options options = { .dir = sub->podd.dir };
	abx_error *err = NULL;

	cr_assert_eq(abx__store_sqlite_open(&sub->loop, &options, &sub->store, &err),
		     ABX_OK, "%s", abx_error_message(err));
}

static void close_store(subject *sub)
{
	sub->closed = false;
	sub->store->ops->close(sub->store, on_closed, &sub->closed);
	while (!sub->closed)
		turn(&sub->s);
}

static void setup(subject *sub)
{
	const char *missing = podd_fixture_missing();

	if (missing)
		cr_skip_test("%s", missing);
	memset(sub, 0, sizeof(*sub));
	podd_fixture_open(&sub->podd);
	uv_loop_init(&sub->loop);
	uv_timer_init(&sub->loop, &sub->timer);
	sub->s = (suite_engine){ .turn = turn,
				 .max_turns = 4000,
				 .reopen = reopen,
				 .image_a = "runtime:",
				 .image_b = "idle:",
				 .image_bad = "oci:nosuch",
				 .pod_template = pod_template,
				 .userdata = sub };
	open_store(sub);
	open_engine(sub);
}

static void teardown(subject *sub)
{
	close_engine(sub);
	close_store(sub);
	uv_close((uv_handle_t *)&sub->timer, NULL);
	uv_run(&sub->loop, UV_RUN_DEFAULT);
	cr_assert_eq(uv_loop_close(&sub->loop), 0, "handles are left open");
	podd_fixture_close(&sub->podd);
}

#define PORT_TEST(name)                               \
	Test(engine_local_port, name, .timeout = 120) \
	{                                             \
		static subject sub;                   \
		setup(&sub);                          \
		suite_engine_##name(&sub.s);          \
		teardown(&sub);                       \
	}
ABX__SUITE_ENGINE_CASES(PORT_TEST)

/* ---- podd and agentboxd dying ---- */

static struct seen {
	bool synced, ready, gone;
	uint64_t generation, running_generation;
	char message[512];
} seen;

static void on_pod(void *userdata, const abx__pod *pod)
{
	(void)userdata;
	seen.ready = pod->ready;
	seen.gone = pod->phase == ABX__POD_GONE;
	seen.generation = pod->generation;
	seen.running_generation = pod->running_generation;
	snprintf(seen.message, sizeof(seen.message), "%s", pod->message);
}

static void on_synced(void *userdata, int r, const abx_error *err)
{
	(void)userdata;
	cr_assert_eq(r, ABX_OK, "%s", abx_error_message(err));
	seen.synced = true;
}

static int answered;
static int answer_r;
static int answer_fd = -1;

static void on_pod_done(void *userdata, int r, const abx__pod *pod, const abx_error *err)
{
	(void)userdata, (void)pod, (void)err;
	answered++;
	answer_r = r;
}

static void on_done(void *userdata, int r, const abx_error *err)
{
	on_pod_done(userdata, r, NULL, err);
}

static void on_fd(void *userdata, int r, int fd, const abx_error *err)
{
	answer_fd = fd;
	on_pod_done(userdata, r, NULL, err);
}

#define WAIT_FOR(condition)                                                            \
	do {                                                                           \
		for (int i = 0; !(condition) && i < 4000; i++)                         \
			turn(&sub.s);                                                  \
		cr_assert(condition, "did not come: " #condition " %s", seen.message); \
	} while (0)

static void create(subject *sub, const char *name)
{
	json_object *t = json_tokener_parse(
		"{\"spec\":{\"containers\":[{\"name\":\"sandbox\",\"image\":\"runtime:\","
		"\"command\":[\"/bin/sh\",\"-c\","
		"\"while :; do echo -e 'HTTP/1.1 204 No\\\\r\\\\n' | nc -l -p 80; "
		"done\"]}]}}");
	abx__map annotations = ABX__MAP_INIT;

	abx__map_set(&annotations, ABX__POD_READINESS_ANNOTATION,
		     "{\"port\":80,\"path\":\"/health\"}");
	answered = 0;
	sub->s.engine->ops->create_pod(sub->s.engine, "default", name, NULL, &annotations,
				       t, on_pod_done, NULL);
	json_object_put(t);
	abx__map_done(&annotations);
	while (!answered)
		turn(&sub->s);
	cr_assert_eq(answer_r, ABX_OK);
}

Test(engine_local, a_readiness_probe_makes_a_pod_ready, .timeout = 60)
{
	static subject sub;

	setup(&sub);
	sub.s.engine->ops->start(sub.s.engine, on_pod, on_synced, NULL);
	WAIT_FOR(seen.synced);
	create(&sub, "a");
	WAIT_FOR(seen.ready);
	teardown(&sub);
}

Test(engine_local, a_pod_outlives_podd_and_is_adopted, .timeout = 60)
{
	static subject sub;
	uint64_t generation;

	setup(&sub);
	sub.s.engine->ops->start(sub.s.engine, on_pod, on_synced, NULL);
	WAIT_FOR(seen.synced);
	create(&sub, "a");
	WAIT_FOR(seen.ready);
	generation = seen.running_generation;
	podd_fixture_kill(&sub.podd, SIGKILL);
	/* Asked for while podd is away: answered when it is back. */
	answered = 0;
	sub.s.engine->ops->connect_pod(sub.s.engine, "default", "a", 80, on_fd, NULL);
	podd_fixture_start(&sub.podd);
	WAIT_FOR(answered);
	cr_assert(answer_r == ABX_OK || answer_r == ABX_EUNAVAILABLE, "%d", answer_r);
	if (answer_fd >= 0)
		close(answer_fd);
	WAIT_FOR(seen.ready);
	cr_assert_eq(seen.running_generation, generation, "the container went on");
	teardown(&sub);
}

Test(engine_local, a_change_made_while_podd_is_away_is_carried_out, .timeout = 60)
{
	static subject sub;

	setup(&sub);
	sub.s.engine->ops->start(sub.s.engine, on_pod, on_synced, NULL);
	WAIT_FOR(seen.synced);
	create(&sub, "a");
	WAIT_FOR(seen.ready);
	podd_fixture_kill(&sub.podd, SIGKILL);
	answered = 0;
	sub.s.engine->ops->change_pod(sub.s.engine, "default", "a",
				      &(abx__pod_change){ .image = "idle:" }, on_pod_done,
				      NULL);
	WAIT_FOR(answered);
	cr_assert_eq(answer_r, ABX_OK);
	podd_fixture_start(&sub.podd);
	WAIT_FOR(seen.ready && seen.running_generation == 2);
	teardown(&sub);
}

Test(engine_local, a_delete_made_while_podd_is_away_is_carried_out, .timeout = 60)
{
	static subject sub;
	char what[256];

	setup(&sub);
	sub.s.engine->ops->start(sub.s.engine, on_pod, on_synced, NULL);
	WAIT_FOR(seen.synced);
	create(&sub, "a");
	WAIT_FOR(seen.ready);
	podd_fixture_kill(&sub.podd, SIGKILL);
	answered = 0;
	sub.s.engine->ops->delete_pod(sub.s.engine, "default", "a", on_done, NULL);
	WAIT_FOR(answered);
	podd_fixture_start(&sub.podd);
	WAIT_FOR(seen.gone);
	WAIT_FOR(podd_fixture_is_clean(&sub.podd, what, sizeof(what)));
	teardown(&sub);
}
