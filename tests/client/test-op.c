/*
 * test-op.c - operations and the loop: completions, cancelling, embedding, callbacks,
 * freeing, faults of memory.
 */
#include <poll.h>
#include <pthread.h>

#include "base/alloc.h"
#include "fixture.h"

TestSuite(client_op, .timeout = 60);

static const char sandbox_json[] =
	"{\"sandboxID\":\"abc123\",\"templateID\":\"base\",\"clientID\":\"c\","
	"\"envdVersion\":\"0.6.2\",\"envdAccessToken\":\"tok\"}";

static const fake_answer answers_ok[] = {
	{ .method = "POST",
	  .path = "/e2b/v2/sandboxes",
	  .status = 201,
	  .body = sandbox_json },
	{ .method = "DELETE", .status = 204 },
	{ .path = "/health", .status = 204 },
	{ 0 },
};
static const fake_answer answers_hang[] = { { .status = 200, .ending = FAKE_HANG },
					    { 0 } };

struct outcome {
	unsigned completions, frees;
	int r;
	int code;
	abx_client *client;
	abx_sandbox *sandbox;
	int nested;
};

static void note_free(void *userdata)
{
	struct outcome *outcome = userdata;

	outcome->frees++;
}

static void note(void *userdata, int r, const abx_error *err)
{
	struct outcome *outcome = userdata;

	cr_expect(outcome->frees == 0, "freed before its completion");
	outcome->completions++;
	outcome->r = r;
	outcome->code = abx_error_code(err);
}

static void note_sandbox(void *userdata, int r, abx_sandbox *sandbox,
			 const abx_error *err)
{
	note(userdata, r, err);
	((struct outcome *)userdata)->sandbox = sandbox;
}

static void finish_all(fixture *f)
{
	while (abx_client_wait(f->client, 5000, NULL) > 0)
		;
}

Test(client_op, a_completion_runs_once_and_never_inside_the_start)
{
	struct outcome outcome = { 0 };
	fixture f;

	fixture_up(&f, answers_ok);
	cr_assert(abx_sandbox_kill_async(f.sandbox, note, &outcome, note_free, NULL,
					 &f.err) == ABX_OK);
	cr_expect(outcome.completions == 0);
	cr_expect(abx_client_process(f.client, NULL) == 1);
	finish_all(&f);
	cr_expect(outcome.completions == 1 && outcome.frees == 1 && outcome.r == 1 &&
		  outcome.code == 0);
	fixture_down(&f);
}

Test(client_op, a_failed_start_frees_the_userdata_and_completes_nothing)
{
	struct outcome outcome = { 0 };
	fixture f;
	int r;

	fixture_up(&f, answers_ok);
	r = abx_sandbox_connect_async(f.client, "../x", NULL, note_sandbox, &outcome,
				      note_free, NULL, &f.err);
	expect_error(&f, r, ABX_EINVAL, "not a sandbox id");
	cr_expect(outcome.completions == 0 && outcome.frees == 1);
	cr_expect(abx_client_process(f.client, NULL) == 0);
	fixture_down(&f);
}

Test(client_op, cancelling_completes_with_ecanceled)
{
	struct outcome outcome = { 0 };
	abx_op *op = NULL;
	fixture f;

	fixture_up(&f, answers_hang);
	for (int late = 0; late < 2; late++) {
		outcome = (struct outcome){ 0 };
		cr_assert(abx_sandbox_kill_async(f.sandbox, note, &outcome, note_free,
						 &op, &f.err) == ABX_OK);
		if (late)
			abx_client_wait(f.client, 50, NULL);
		abx_op_cancel(op);
		abx_op_cancel(op);
		cr_expect(outcome.completions == 0, "completed inside the cancel");
		finish_all(&f);
		cr_expect(outcome.completions == 1 && outcome.frees == 1 &&
			  outcome.r == ABX_ECANCELED);
		abx_op_cancel(op); /* over: nothing happens */
		abx_op_resume(op);
		abx_op_free(op);
	}
	fixture_down(&f);
}

Test(client_op, a_cancelled_create_kills_what_it_yields)
{
	static const fake_answer answers[] = {
		{ .method = "POST",
		  .path = "/e2b/v2/sandboxes",
		  .status = 201,
		  .body = sandbox_json,
		  .split = 2 },
		{ .method = "DELETE", .path = "/e2b/sandboxes/abc123", .status = 204 },
		{ 0 },
	};
	struct outcome outcome = { 0 };
	abx_op *op = NULL;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_sandbox_create_async(f.client, NULL, note_sandbox, &outcome,
					   note_free, &op, &f.err) == ABX_OK);
	abx_op_cancel(op);
	abx_op_free(op);
	finish_all(&f);
	cr_expect(outcome.completions == 1 && outcome.frees == 1 &&
		  outcome.r == ABX_ECANCELED);
	cr_expect_null(outcome.sandbox);
	cr_expect(fake_server_count(f.server) == 2);
	expect_seen(&f, 1, "DELETE /e2b/sandboxes/abc123\n");
	fixture_down(&f);
}

Test(client_op, deadlines_end_what_does_not_answer)
{
	struct outcome outcome = { 0 };
	fixture f;

	fixture_up_with(&f, answers_hang, 200);
	expect_error(&f, abx_sandbox_kill(f.sandbox, &f.err), ABX_ETIMEDOUT,
		     "kill sandbox sb1");
	cr_assert(abx_sandbox_kill_async(f.sandbox, note, &outcome, note_free, NULL,
					 &f.err) == ABX_OK);
	finish_all(&f);
	cr_expect(outcome.r == ABX_ETIMEDOUT);
	fixture_down(&f);
}

Test(client_op, nobody_listening_is_unavailable_with_a_hint)
{
	abx_client_options o = ABX_CLIENT_OPTIONS_INIT;
	abx_client *client = NULL;
	char *text = NULL;
	fixture f = { 0 };
	int r;

	o.flags = ABX_CLIENT_NO_ENVIRONMENT | ABX_CLIENT_NO_CONTEXT;
	o.cluster_api = "http://127.0.0.1:1";
	cr_assert(abx_client_new(&o, &client, &f.err) == ABX_OK);
	r = abx_platform_get(client, "/envs", &text, &f.err);
	cr_expect(abx_error_hint(f.err) != NULL);
	expect_error(&f, r, ABX_EUNAVAILABLE, "http://127.0.0.1:1: cannot connect");
	abx_client_free(client);
	o.cluster_api = NULL;
	o.socket_path = "/nonexistent/s";
	cr_assert(abx_client_new(&o, &client, &f.err) == ABX_OK);
	r = abx_platform_get(client, "/envs", &text, &f.err);
	expect_error(&f, r, ABX_EUNAVAILABLE, "unix:/nonexistent/s: cannot connect");
	abx_client_free(client);
}

Test(client_op, a_loop_of_the_callers_drives_it)
{
	struct outcome outcome = { 0 };
	struct pollfd p = { .events = POLLIN };
	unsigned turns = 0;
	fixture f;

	fixture_up(&f, answers_ok);
	p.fd = abx_client_fd(f.client);
	cr_expect(p.fd >= 0);
	for (int i = 0; i < 20; i++) {
		outcome = (struct outcome){ 0 };
		cr_assert(abx_sandbox_kill_async(f.sandbox, note, &outcome, note_free,
						 NULL, NULL) == ABX_OK);
		while (abx_client_process(f.client, NULL) > 0) {
			cr_assert(++turns < 2000, "it spins");
			cr_assert(poll(&p, 1, abx_client_timeout_ms(f.client)) >= 0);
		}
		cr_expect(outcome.r == 1);
	}
	/* Idle: nothing to wake for. */
	cr_expect(poll(&p, 1, 0) == 0);
	fixture_down(&f);
}

static void *wake_soon(void *userdata)
{
	usleep(50000);
	abx_client_wakeup(userdata);
	return NULL;
}

Test(client_op, another_thread_can_wake_it)
{
	struct pollfd p = { .events = POLLIN };
	pthread_t thread;
	fixture f;

	fixture_up(&f, answers_ok);
	pthread_create(&thread, NULL, wake_soon, f.client);
	cr_expect(abx_client_wait(f.client, 10000, &f.err) == 0);
	pthread_join(thread, NULL);
	p.fd = abx_client_fd(f.client);
	abx_client_wakeup(f.client);
	cr_expect(poll(&p, 1, 1000) == 1);
	cr_expect(abx_client_process(f.client, NULL) == 0);
	cr_expect(poll(&p, 1, 0) == 0, "process takes the wakeup");
	fixture_down(&f);
}

static void try_blocking(void *userdata, int r, const abx_error *err)
{
	struct outcome *outcome = userdata;

	note(userdata, r, err);
	outcome->nested = abx_sandbox_kill(outcome->sandbox, NULL);
	cr_expect(abx_client_process(outcome->client, NULL) == ABX_ESTATE);
	cr_expect(abx_client_wait(outcome->client, 1, NULL) == ABX_ESTATE);
}

Test(client_op, blocking_calls_inside_callbacks_are_refused)
{
	struct outcome outcome = { 0 };
	fixture f;

	fixture_up(&f, answers_ok);
	outcome.client = f.client;
	outcome.sandbox = f.sandbox;
	cr_assert(abx_sandbox_kill_async(f.sandbox, try_blocking, &outcome, note_free,
					 NULL, NULL) == ABX_OK);
	finish_all(&f);
	cr_expect(outcome.completions == 1 && outcome.nested == ABX_ESTATE);
	fixture_down(&f);
}

static void free_client_inside(void *userdata, int r, const abx_error *err)
{
	struct outcome *outcome = userdata;

	note(userdata, r, err);
	abx_client_free(outcome->client);
}

Test(client_op, a_client_may_be_freed_inside_a_callback)
{
	struct outcome outcome = { 0 }, other = { 0 };
	fixture f;

	fixture_up(&f, answers_ok);
	outcome.client = f.client;
	cr_assert(abx_sandbox_kill_async(f.sandbox, free_client_inside, &outcome,
					 note_free, NULL, NULL) == ABX_OK);
	while (abx_client_wait(f.client, 5000, NULL) > 0)
		;
	(void)other;
	f.client = NULL;
	cr_expect(outcome.completions == 1 && outcome.frees == 1);
	fixture_down(&f);
}

static void start_again(void *userdata, int r, const abx_error *err)
{
	struct outcome *outcome = userdata;

	(void)err;
	outcome->completions++;
	outcome->r = r;
	outcome->nested = abx_sandbox_kill_async(outcome->sandbox, start_again, outcome,
						 NULL, NULL, NULL);
}

Test(client_op, freeing_the_client_completes_everything_with_ecanceled)
{
	struct outcome outcome[3] = { 0 };
	abx_op *op = NULL;
	fixture f;

	fixture_up(&f, answers_hang);
	cr_assert(abx_sandbox_kill_async(f.sandbox, note, &outcome[0], note_free, &op,
					 NULL) == ABX_OK);
	cr_assert(abx_sandbox_create_async(f.client, NULL, note_sandbox, &outcome[1],
					   note_free, NULL, NULL) == ABX_OK);
	outcome[2].sandbox = f.sandbox;
	cr_assert(abx_sandbox_kill_async(f.sandbox, start_again, &outcome[2], NULL, NULL,
					 NULL) == ABX_OK);
	abx_client_wait(f.client, 50, NULL);
	abx_client_free(f.client);
	f.client = NULL;
	for (int i = 0; i < 3; i++)
		cr_expect(outcome[i].completions == 1 && outcome[i].r == ABX_ECANCELED,
			  "%d: %u, %d", i, outcome[i].completions, outcome[i].r);
	cr_expect(outcome[2].nested == ABX_ESTATE);
	abx_op_cancel(op);
	abx_op_free(op);
	fixture_down(&f);
}

#define MANY 300

Test(client_op, one_thread_holds_hundreds_of_operations)
{
	struct outcome outcome[MANY] = { 0 };
	fixture f;

	fixture_up(&f, answers_ok);
	for (int i = 0; i < MANY; i++)
		cr_assert(abx_sandbox_create_async(f.client, NULL, note_sandbox,
						   &outcome[i], note_free, NULL,
						   &f.err) == ABX_OK);
	cr_expect(abx_client_process(f.client, NULL) > 0);
	finish_all(&f);
	for (int i = 0; i < MANY; i++) {
		cr_expect(outcome[i].completions == 1 && outcome[i].r == ABX_OK);
		abx_sandbox_free(outcome[i].sandbox);
	}
	fixture_down(&f);
}

/* ---- faults of memory ---- */

static int create_and_kill(abx_client *client, abx_error **reterr)
{
	const char *const env_vars[] = { "A=1", NULL };
	abx_sandbox_options o = ABX_SANDBOX_OPTIONS_INIT;
	abx_sandbox *sandbox = NULL;
	int r;

	o.env_vars = env_vars;
	o.metadata = env_vars;
	r = abx_sandbox_create(client, &o, &sandbox, reterr);
	if (r < 0)
		return r;
	r = abx_sandbox_kill(sandbox, reterr);
	abx_sandbox_free(sandbox);
	return r;
}

Test(client_op, create_and_kill_survive_every_failed_allocation)
{
	fixture f;
	int r = ABX_ENOMEM;
	unsigned n;

	fixture_up(&f, answers_ok);
	for (n = 0; r != 1; n++) {
		abx__test_fail_alloc_after(n);
		r = create_and_kill(f.client, &f.err);
		abx__test_alloc_reset();
		cr_assert(r == 1 || r == ABX_ENOMEM, "allocation %u gave %d: %s", n, r,
			  abx_error_message(f.err));
		abx_error_free(f.err);
		f.err = NULL;
		cr_assert(n < 500);
	}
	cr_expect(n > 20, "only %u allocations were seen", n);
	cr_expect(create_and_kill(f.client, &f.err) == 1, "it works again afterwards");
	fixture_down(&f);
}

Test(client_op, making_a_client_survives_every_failed_allocation)
{
	abx_client_options o = ABX_CLIENT_OPTIONS_INIT;
	int r = ABX_ENOMEM;

	o.flags = ABX_CLIENT_NO_ENVIRONMENT | ABX_CLIENT_NO_CONTEXT;
	o.cluster_api = "http://127.0.0.1:1/";
	o.api_key = "k";
	for (unsigned n = 0; r != ABX_OK; n++) {
		abx_client *client = NULL;

		abx__test_fail_alloc_after(n);
		r = abx_client_new(&o, &client, NULL);
		abx__test_alloc_reset();
		cr_assert(r == ABX_OK || r == ABX_ENOMEM, "allocation %u gave %d", n, r);
		abx_client_free(client);
		cr_assert(n < 100);
	}
}
