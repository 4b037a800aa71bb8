#include "world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "control/fields.h"
#include "model/keys.h"

static const uint8_t key[ABX__CONTROL_TOKEN_KEY_LEN] = { 1, 2, 3, 4, 5, 6, 7, 8 };

static void wake(void *userdata)
{
	((world *)userdata)->wakes++;
}

/* ABX_TEST_LOG=1 shows what control says, with the turned clock's time. */
static void log_write(void *userdata, int level, const char *text, const char *fields)
{
	const world *w = userdata;

	fprintf(stderr, "%8lld %d %s %s\n", (long long)w->clock.now_ms, level, text,
		fields);
}

void world_init(world *w)
{
	abx__fake_engine_options options = { .clock = &w->clock.clock,
					     .write_ms = 1,
					     .start_ms = 20,
					     .swap_ms = 10,
					     .delete_ms = 5 };

	memset(w, 0, sizeof(*w));
	turned_clock_init(&w->clock);
	w->store = fake_store_new();
	fake_runtime_init(&w->runtime);
	cr_assert_eq(abx__fake_engine_new(&options, &w->engine, NULL), ABX_OK);
	world_boot(w);
}

void world_boot(world *w)
{
	abx__control_config config = {
		.cluster_id = "local",
		.token_key = key,
		.store = w->store,
		.engine = w->engine,
		.runtime = &w->runtime.base,
		.clock = &w->clock.clock,
		.history_most = w->history_most,
		.capacity = w->capacity,
		.wake = wake,
		.wake_userdata = w,
	};
	abx_error *err = NULL;
	answer a = { 0 };

	w->log = (abx__log){ .write = log_write, .userdata = w };
	if (getenv("ABX_TEST_LOG"))
		config.log = &w->log;
	cr_assert_eq(abx__control_new(&config, &w->control, &err), ABX_OK, "%s",
		     abx_error_message(err));
	cr_assert_eq(abx__control_start(w->control, on_done, &a, &err), ABX_OK);
	world_settle(w);
	cr_assert_eq(a.calls, 1);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
}

void world_crash(world *w)
{
	abx__fake_engine_detach(w->engine);
	fake_store_detach(w->store);
	fake_runtime_detach(&w->runtime);
	abx__control_free(w->control);
	w->control = NULL;
}

static void on_closed(void *userdata)
{
	*(bool *)userdata = true;
}

void world_done(world *w)
{
	bool closed = false;

	abx__control_close(w->control, on_closed, &closed);
	world_pass(w, 100);
	cr_assert(closed, "control did not close");
	world_crash(w);
	abx__fake_engine_free(w->engine);
	fake_store_free(w->store);
}

bool world_step(world *w)
{
	if (abx__fake_engine_step(w->engine) || fake_store_step(w->store) ||
	    fake_runtime_step(&w->runtime))
		return true;
	if (w->control && abx__control_next_deadline_ms(w->control) <= w->clock.now_ms) {
		abx__control_tick(w->control);
		return true;
	}
	return false;
}

void world_settle(world *w)
{
	int i = 0;

	while (world_step(w))
		cr_assert_lt(++i, 1000000, "it never settles");
}

void world_pass(world *w, int64_t ms)
{
	int64_t end = w->clock.now_ms + ms;

	for (;;) {
		int64_t next = abx__fake_engine_next_ms(w->engine);
		int64_t deadline;

		world_settle(w);
		next = abx__fake_engine_next_ms(w->engine);
		deadline = abx__control_next_deadline_ms(w->control);
		if (deadline < next)
			next = deadline;
		if (next > end)
			break;
		if (next > w->clock.now_ms)
			w->clock.now_ms = next;
	}
	w->clock.now_ms = end;
	world_settle(w);
}

/* --- answers --- */

void answer_done(answer *a)
{
	json_object_put(a->object);
	a->object = NULL;
}

void on_done(void *userdata, int r, const abx_error *err)
{
	answer *a = userdata;

	a->calls++;
	a->r = r;
	snprintf(a->message, sizeof(a->message), "%s", abx_error_message(err));
	snprintf(a->hint, sizeof(a->hint), "%s",
		 abx_error_hint(err) ? abx_error_hint(err) : "");
	cr_assert((r < 0) == (err != NULL), "an error exactly on failure");
}

void on_object(void *userdata, int r, json_object *object, const abx_error *err)
{
	answer *a = userdata;

	on_done(userdata, r, err);
	a->object = json_object_get(object);
}

void on_claim(void *userdata, int r, const abx__sandbox_rec *sandbox,
	      const abx_error *err)
{
	answer *a = userdata;

	on_done(userdata, r, err);
	cr_assert((r == ABX_OK) == (sandbox != NULL));
	if (!sandbox)
		return;
	snprintf(a->id, sizeof(a->id), "%s", sandbox->id);
	snprintf(a->pod, sizeof(a->pod), "%s", sandbox->pod);
	snprintf(a->image, sizeof(a->image), "%s", sandbox->image);
	a->state = sandbox->state;
}

/* --- documents --- */

static json_object *parse(const char *text)
{
	json_object *doc = json_tokener_parse(text);

	cr_assert(doc, "bad JSON in the test: %s", text);
	return doc;
}

json_object *template_doc(const char *name, const char *idle_image)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"version\":\"1.0\",%s%s%s"
		 "\"runtimes\":[{\"name\":\"envd\",\"port\":49983,"
		 "\"readinessProbe\":{\"httpGet\":{\"port\":49983,"
		 "\"path\":\"/health\"}}}],"
		 "\"template\":{\"metadata\":{\"labels\":{\"app\":\"x\"}},\"spec\":{"
		 "\"containers\":"
		 "[{\"name\":\"sandbox\",\"image\":\"" OWN_IMAGE "\"}]}}}}",
		 name, idle_image ? "\"idleImage\":\"" : "", idle_image ? idle_image : "",
		 idle_image ? "\"," : "");
	return parse(text);
}

json_object *env_doc(const char *name, int replicas, const char *overrides,
		     const char *group)
{
	char text[4096];

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\"},\"spec\":{"
		 "\"templateRef\":{\"name\":\"tmpl\"},\"mode\":\"WarmPool\","
		 "\"overrides\":%s,"
		 "%s%s%s\"clusters\":[{\"clusterID\":\"local\",\"members\":[{\"config\":{"
		 "\"inlineResources\":{\"requests\":{\"cpu\":\"1\",\"memory\":\"2Gi\"}}},"
		 "\"spec\":{\"replicas\":%d}}]}]}}",
		 name, overrides ? overrides : "{}",
		 group ? "\"autoscaling\":{\"groups\":[" : "", group ? group : "",
		 group ? "]}," : "", replicas);
	return parse(text);
}

answer world_apply(world *w, json_object *doc, bool create)
{
	abx_error *err = NULL;
	answer a = { 0 };
	int r = create ? abx__control_env_create(w->control, doc, on_object, &a, &err)
		       : abx__control_env_update(w->control, doc, on_object, &a, &err);

	json_object_put(doc);
	if (r < 0) {
		on_done(&a, r, err);
		abx_error_free(err);
		return a;
	}
	cr_assert_eq(a.calls, 0, "completed inside the call");
	world_settle(w);
	cr_assert_eq(a.calls, 1);
	return a;
}

void world_template(world *w, const char *name)
{
	json_object *doc = template_doc(name, IDLE_IMAGE);
	answer a = { 0 };

	cr_assert_eq(
		abx__control_template_put(w->control, doc, true, on_object, &a, NULL),
		ABX_OK);
	json_object_put(doc);
	world_settle(w);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
}

void world_env(world *w, const char *name, int replicas, const char *overrides,
	       const char *group)
{
	json_object *known = NULL;
	answer a;

	if (abx__control_template_get(w->control, "tmpl", &known, NULL) < 0)
		world_template(w, "tmpl");
	json_object_put(known);
	a = world_apply(w, env_doc(name, replicas, overrides, group), true);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
	world_pass(w, 1000);
}

int claim_with(world *w, const abx__claim_request *request, answer *a, abx__claim **ret,
	       abx_error **reterr)
{
	int r = abx__control_claim(w->control, request, on_claim, a, ret, reterr);

	cr_assert_eq(a->calls, 0, "completed inside the call");
	return r;
}

int claim_start(world *w, const char *env, answer *a, abx__claim **ret,
		abx_error **reterr)
{
	abx__claim_request request = { .namespace_ = "default", .name = env };

	return claim_with(w, &request, a, ret, reterr);
}

answer world_claim(world *w, const char *env)
{
	abx_error *err = NULL;
	answer a = { 0 };
	int r = claim_start(w, env, &a, NULL, &err);

	if (r < 0) {
		on_done(&a, r, err);
		abx_error_free(err);
		return a;
	}
	for (int i = 0; i < 1000 && !a.calls; i++)
		world_pass(w, 1);
	cr_assert_eq(a.calls, 1);
	return a;
}

answer world_kill(world *w, const char *id)
{
	abx_error *err = NULL;
	answer a = { 0 };
	int r = abx__control_kill(w->control, id, "Completed", on_done, &a, &err);

	if (r < 0) {
		on_done(&a, r, err);
		abx_error_free(err);
		return a;
	}
	cr_assert_eq(a.calls, 0, "completed inside the call");
	for (int i = 0; i < 1000 && !a.calls; i++)
		world_pass(w, 1);
	cr_assert_eq(a.calls, 1);
	return a;
}

abx__pool_counts world_counts(world *w, const char *env)
{
	abx__pool_counts counts = { 0 };

	cr_assert_eq(abx__control_counts(w->control, "default", env, NULL, &counts, NULL),
		     ABX_OK);
	return counts;
}

static bool pod_find(world *w, const char *name, abx__pod *ret)
{
	for (size_t i = 0; abx__fake_engine_at(w->engine, i, ret); i++)
		if (strcmp(ret->name, name) == 0)
			return true;
	return false;
}

const char *pod_label(world *w, const char *pod, const char *label)
{
	abx__pod view;

	return pod_find(w, pod, &view) ? abx__map_get(&view.labels, label) : NULL;
}

const char *pod_annotation(world *w, const char *pod, const char *annotation)
{
	abx__pod view;

	return pod_find(w, pod, &view) ? abx__map_get(&view.annotations, annotation)
				       : NULL;
}

json_object *condition_of(json_object *doc, const char *type)
{
	json_object *list =
		abx__field_array(abx__field_object(doc, "status"), "conditions");

	for (size_t i = 0; i < abx__array_count(list); i++) {
		json_object *c = json_object_array_get_idx(list, i);

		if (strcmp(abx__field_str(c, "type"), type) == 0)
			return c;
	}
	return NULL;
}
