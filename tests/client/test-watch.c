/*
 * test-watch.c - watched directories: what is asked, events as they come, every kind of
 * end.
 */
#include "fixture.h"

TestSuite(client_watch, .timeout = 30);

static const char *const events[] = {
	"{\"start\":{}}",
	"{\"keepalive\":{}}",
	"{\"filesystem\":{\"name\":\"a\",\"type\":\"EVENT_TYPE_CREATE\",\"entry\":{"
	"\"name\":\"a\",\"path\":\"/d/a\",\"type\":\"FILE_TYPE_FILE\",\"size\":\"5\"}}}",
	"{\"filesystem\":{\"name\":\"a\",\"type\":\"EVENT_TYPE_WRITE\"}}",
	"{\"filesystem\":{\"name\":\"s/b\",\"type\":\"EVENT_TYPE_CHMOD\"}}",
	"{\"filesystem\":{\"name\":\"a\",\"type\":\"EVENT_TYPE_RENAME\"}}",
	"{\"filesystem\":{\"name\":\"c\",\"type\":\"EVENT_TYPE_REMOVE\"}}",
	"{\"somethingNew\":{}}",
	"{\"filesystem\":{\"name\":\"d\",\"type\":\"EVENT_TYPE_NEW\"}}",
	NULL,
};

struct seen {
	char text[256];
	unsigned count;
	int answer;
	abx_watch *free_it; /* in the callback */
};

static int note(void *userdata, const abx_watch_event *event)
{
	struct seen *seen = userdata;
	size_t used = strlen(seen->text);

	cr_expect(event->size == sizeof(*event));
	snprintf(seen->text + used, sizeof(seen->text) - used, "%d %s%s%s\n", event->type,
		 event->name, event->entry ? " " : "",
		 event->entry ? event->entry->path : "");
	seen->count++;
	if (seen->free_it)
		abx_watch_free(seen->free_it);
	seen->free_it = NULL;
	return seen->answer;
}

static abx_watch_options options(struct seen *seen)
{
	abx_watch_options o = ABX_WATCH_OPTIONS_INIT;

	o.on_event = note;
	o.userdata = seen;
	return o;
}

static void turn_until(fixture *f, const struct seen *seen, unsigned count)
{
	for (unsigned i = 0; i < 100 && seen->count < count; i++)
		abx_client_wait(f->client, 50, NULL);
	cr_assert(seen->count == count, "%u events, not %u", seen->count, count);
}

Test(client_watch, events_are_given_in_order_with_their_kind)
{
	fake_answer answers[2] = { { .method = "POST",
				     .path = "/filesystem.Filesystem/WatchDir",
				     .status = 200,
				     .type = STREAM,
				     .ending = FAKE_STALL } };
	struct seen seen = { .answer = ABX_OK };
	abx_watch_options o = options(&seen);
	abx_watch *watch = NULL;
	char *body = frames(events, &answers[0].len);
	fixture f;

	answers[0].body = body;
	answers[0].split = 13;
	fixture_up(&f, answers);
	o.recursive = 1;
	o.include_entry = 1;
	o.user = "root";
	o.timeout_ms = 7000;
	cr_assert(abx_watch_start(f.sandbox, "/d", &o, &watch, &f.err) == ABX_OK, "%s",
		  abx_error_message(f.err));
	turn_until(&f, &seen, 6);
	cr_expect_str_eq(seen.text, "1 a /d/a\n2 a\n5 s/b\n4 a\n3 c\n0 d\n");
	abx_watch_free(watch);
	expect_seen(&f, 0, "\"path\":\"/d\"");
	expect_seen(&f, 0, "\"recursive\":true");
	expect_seen(&f, 0, "\"includeEntry\":true");
	expect_seen(&f, 0, "\"allowNetworkMounts\":false");
	expect_seen(&f, 0, "authorization: Basic cm9vdDo=\n");
	expect_seen(&f, 0, "connect-timeout-ms: 7000\n");
	expect_seen(&f, 0, "keepalive-ping-interval: 50\n");
	for (unsigned i = 0; i < 100 && !fake_server_aborted(f.server); i++)
		abx_client_wait(f.client, 50, NULL);
	cr_expect(fake_server_aborted(f.server) == 1);
	fixture_down(&f);
	abx_free(body);
}

/* A watch of the events, whose stream stays open. The body is freed behind the fixture.
 */
static char *start_watch(fixture *f, struct seen *seen, abx_watch **ret)
{
	/* The server reads them as long as it runs. */
	static fake_answer answers[2] = {
		{ .status = 200, .type = STREAM, .ending = FAKE_STALL }
	};
	abx_watch_options o = options(seen);
	char *body = frames(events, &answers[0].len);

	*ret = NULL;
	answers[0].body = body;
	fixture_up(f, answers);
	cr_assert(abx_watch_start(f->sandbox, "/d", &o, ret, &f->err) == ABX_OK);
	return body;
}

Test(client_watch, it_may_be_freed_in_its_callback)
{
	struct seen seen = { .answer = ABX_OK };
	abx_watch *watch;
	fixture f;
	char *body = start_watch(&f, &seen, &watch);

	seen.free_it = watch;
	for (unsigned i = 0; i < 100 && !fake_server_aborted(f.server); i++)
		abx_client_wait(f.client, 50, NULL);
	cr_expect(seen.count <= 6);
	fixture_down(&f);
	abx_free(body);
}

Test(client_watch, a_paused_watch_goes_on_where_it_stopped)
{
	struct seen seen = { .answer = ABX_PAUSE };
	abx_watch *watch;
	fixture f;
	char *body = start_watch(&f, &seen, &watch);

	turn_until(&f, &seen, 1);
	for (unsigned i = 0; i < 5; i++)
		abx_client_wait(f.client, 5, NULL);
	cr_expect(seen.count == 1);
	seen.answer = ABX_OK;
	abx_watch_resume(watch);
	turn_until(&f, &seen, 6);
	abx_watch_free(watch);
	fixture_down(&f);
	abx_free(body);
}

static void expect_end(const char *const *messages, enum fake_ending ending, int answer,
		       int code, const char *text)
{
	fake_answer answers[2] = { { .status = 200, .type = STREAM, .ending = ending } };
	struct seen seen = { .answer = answer };
	abx_watch_options o = options(&seen);
	abx_watch *watch = NULL;
	char *body = frames(messages, &answers[0].len);
	fixture f;

	answers[0].body = body;
	fixture_up(&f, answers);
	o.timeout_ms = 2500;
	cr_assert(abx_watch_start(f.sandbox, "/d", &o, &watch, &f.err) == ABX_OK, "%s",
		  abx_error_message(f.err));
	expect_error(&f, abx_watch_wait(watch, &f.err), code, text);
	expect_error(&f, abx_watch_wait(watch, &f.err), ABX_ESTATE, "waited for before");
	abx_watch_free(watch);
	fixture_down(&f);
	abx_free(body);
}

Test(client_watch, wait_tells_how_it_ended)
{
	const char *const lost[] = {
		"{\"start\":{}}",
		"!{\"error\":{\"code\":\"data_loss\",\"message\":\"events were lost\"}}",
		NULL
	};
	const char *const late[] = {
		"{\"start\":{}}",
		"!{\"error\":{\"code\":\"deadline_exceeded\",\"message\":\"x\"}}", NULL
	};
	const char *const cut[] = { "{\"start\":{}}", NULL };
	const char *const broken[] = { "{\"start\":{}}", "{\"filesystem\":{}}", NULL };
	const char *const one[] = { "{\"start\":{}}", "{\"filesystem\":{\"name\":\"x\"}}",
				    NULL };

	expect_end(lost, FAKE_WHOLE, ABX_OK, ABX_EIO, "events were lost");
	expect_end(late, FAKE_WHOLE, ABX_OK, ABX_ETIMEDOUT, "2500 ms");
	expect_end(cut, FAKE_WHOLE, ABX_OK, ABX_EUNAVAILABLE, "the watch of /d");
	expect_end(broken, FAKE_STALL, ABX_OK, ABX_EPROTO, "cannot be read");
	expect_end(one, FAKE_STALL, ABX_EDENIED, ABX_EDENIED, "callback");
}

static void on_over(void *userdata, int r, const abx_error *err)
{
	cr_expect(strstr(abx_error_message(err), "the watch of /d") != NULL);
	*(int *)userdata = r;
}

Test(client_watch, freeing_it_ends_a_wait)
{
	fake_answer answers[2] = {
		{ .status = 200, .type = STREAM, .ending = FAKE_STALL }
	};
	struct seen seen = { .answer = ABX_OK };
	abx_watch_options o = options(&seen);
	abx_watch *watch = NULL;
	char *body = frames(events, &answers[0].len);
	int over = 1;
	fixture f;

	answers[0].body = body;
	fixture_up(&f, answers);
	cr_assert(abx_watch_start(f.sandbox, "/d", &o, &watch, &f.err) == ABX_OK);
	cr_assert(abx_watch_wait_async(watch, on_over, &over, NULL, NULL, &f.err) ==
		  ABX_OK);
	abx_watch_free(watch);
	while (abx_client_wait(f.client, 1000, NULL) > 0)
		;
	cr_expect(over == ABX_ECANCELED);
	fixture_down(&f);
	abx_free(body);
}

Test(client_watch, a_start_that_fails_says_why)
{
	fake_answer answers[2] = { { .status = 200, .type = STREAM } };
	const char *const none[] = {
		"!{\"error\":{\"code\":\"not_found\",\"message\":\"path /d not found\"}}",
		NULL
	};
	struct seen seen = { .answer = ABX_OK };
	abx_watch_options o = options(&seen);
	abx_watch *watch = NULL;
	char *body = frames(none, &answers[0].len);
	fixture f;

	answers[0].body = body;
	fixture_up(&f, answers);
	expect_error(&f, abx_watch_start(f.sandbox, "/d", &o, &watch, &f.err),
		     ABX_ENOTFOUND, "watch /d in sandbox sb1: path /d not found");
	cr_expect(watch == NULL);
	expect_error(&f, abx_watch_start(f.sandbox, "", &o, &watch, &f.err), ABX_EINVAL,
		     "empty");
	expect_error(&f, abx_watch_start(NULL, "/d", &o, &watch, &f.err), ABX_EINVAL,
		     "NULL");
	expect_error(&f, abx_watch_start(f.sandbox, "/d", &o, NULL, &f.err), ABX_EINVAL,
		     "ret");
	o.on_event = NULL;
	expect_error(&f, abx_watch_start(f.sandbox, "/d", &o, &watch, &f.err), ABX_EINVAL,
		     "on_event");
	cr_expect(fake_server_count(f.server) == 1);
	fixture_down(&f);
	abx_free(body);
}
