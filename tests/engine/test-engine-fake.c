/*
 * test-engine-fake.c - the fake engine passes the port's suite, and fails as told.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "engine/fake.h"
#include "suite-engine.h"
#include "turned-clock.h"

typedef struct subject {
	suite_engine s;
	turned_clock clock;
} subject;

static void turn(suite_engine *s)
{
	subject *sub = s->userdata;
	int64_t next;

	if (abx__fake_engine_step(s->engine))
		return;
	next = abx__fake_engine_next_ms(s->engine);
	sub->clock.now_ms = next == INT64_MAX ? sub->clock.now_ms + 10 : next;
}

static void reopen(suite_engine *s)
{
	abx__fake_engine_detach(s->engine);
}

static json_object *pod_template(suite_engine *s, const char *image)
{
	char text[512];

	(void)s;
	snprintf(text, sizeof(text),
		 "{\"spec\":{\"containers\":[{\"name\":\"sandbox\",\"image\":\"%s\"}]}}",
		 image);
	return json_tokener_parse(text);
}

static void setup(subject *sub)
{
	abx__fake_engine_options options = { .clock = &sub->clock.clock,
					     .write_ms = 1,
					     .start_ms = 20,
					     .swap_ms = 10,
					     .delete_ms = 5 };

	turned_clock_init(&sub->clock);
	sub->s = (suite_engine){ .turn = turn,
				 .max_turns = 1000,
				 .reopen = reopen,
				 .image_a = "host:",
				 .image_b = "debian:12",
				 .image_bad = "nosuch:1",
				 .pod_template = pod_template,
				 .userdata = sub };
	cr_assert_eq(abx__fake_engine_new(&options, &sub->s.engine, NULL), ABX_OK);
	cr_assert_eq(
		abx__fake_engine_bad_image(sub->s.engine, "nosuch:1", "ErrImagePull"),
		ABX_OK);
}

#define PORT_TEST(name)                              \
	Test(engine_fake_port, name)                 \
	{                                            \
		subject sub;                         \
		setup(&sub);                         \
		suite_engine_##name(&sub.s);         \
		abx__fake_engine_free(sub.s.engine); \
	}
ABX__SUITE_ENGINE_CASES(PORT_TEST)

typedef struct answer {
	int calls;
	int r;
} answer;

static void on_pod_done(void *userdata, int r, const abx__pod *pod, const abx_error *err)
{
	answer *a = userdata;

	(void)pod, (void)err;
	a->calls++;
	a->r = r;
}

Test(engine_fake, fails_the_operations_it_is_told_to)
{
	json_object *t;
	answer a[3] = { 0 };
	subject sub;

	setup(&sub);
	t = pod_template(&sub.s, "host:");
	abx__fake_engine_fail(sub.s.engine, ABX__FAKE_CREATE, 1, 1, ABX_EIO);
	for (int i = 0; i < 3; i++) {
		char name[8];

		snprintf(name, sizeof(name), "p%d", i);
		sub.s.engine->ops->create_pod(sub.s.engine, "n", name, NULL, NULL, t,
					      on_pod_done, &a[i]);
	}
	for (int i = 0; i < 50; i++)
		turn(&sub.s);
	cr_assert_eq(a[0].r, ABX_OK);
	cr_assert_eq(a[1].r, ABX_EIO);
	cr_assert_eq(a[2].r, ABX_OK);
	cr_assert_eq(abx__fake_engine_count(sub.s.engine), 2,
		     "nothing of the failed one");
	cr_assert_eq(abx__fake_engine_calls(sub.s.engine, ABX__FAKE_CREATE), 3);
	json_object_put(t);
	abx__fake_engine_free(sub.s.engine);
}

Test(engine_fake, a_detached_controllers_unapplied_writes_are_lost)
{
	json_object *t;
	answer a = { 0 };
	subject sub;

	setup(&sub);
	t = pod_template(&sub.s, "host:");
	sub.s.engine->ops->create_pod(sub.s.engine, "n", "p", NULL, NULL, t, on_pod_done,
				      &a);
	abx__fake_engine_detach(sub.s.engine);
	for (int i = 0; i < 50; i++)
		turn(&sub.s);
	cr_assert_eq(a.calls, 0);
	cr_assert_eq(abx__fake_engine_count(sub.s.engine), 0);
	json_object_put(t);
	abx__fake_engine_free(sub.s.engine);
}
