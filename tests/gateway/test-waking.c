/*
 * Requests for sandboxes that are paused: held until one runs, refused where traffic may
 * not wake.
 */
#include "fixture.h"

/* Who resumes, in the place of control. */
static struct {
	int asked;
	int refuse; /* a code, or 0 */
	void (*done)(void *userdata, int r, const abx_error *err);
	void *userdata;
} resumer;

static int resume(void *userdata, const char *id,
		  void (*done)(void *done_userdata, int r, const abx_error *err),
		  void *done_userdata)
{
	(void)userdata;
	cr_assert_str_eq(id, "asleep");
	resumer.asked++;
	if (resumer.refuse)
		return resumer.refuse;
	resumer.done = done;
	resumer.userdata = done_userdata;
	return ABX_OK;
}

static void start(struct fixture *f, bool with_resumer)
{
	memset(&resumer, 0, sizeof(resumer));
	f->opts.resume = with_resumer ? resume : NULL;
	fixture_start(f);
	stub_sandboxes_add(&f->table, "asleep", ABX__SANDBOX_PAUSED);
}

static void finish(int r)
{
	resumer.done(resumer.userdata, r, NULL);
}

#define ASLEEP "Host: x\r\nE2b-Sandbox-Id: asleep\r\nE2b-Sandbox-Port: 8000\r\n"

Test(gateway_waking, the_request_waits_until_the_sandbox_runs)
{
	struct fixture f = { 0 };

	start(&f, true);
	wire_say(&f.w, "POST /a HTTP/1.1\r\n" ASLEEP "Content-Length: 5\r\n\r\nbytes");
	WIRE_UNTIL(&f.w, resumer.asked == 1);
	for (int i = 0; i < 20; i++)
		wire_turn(&f.w);
	cr_assert_eq(f.engine.connects, 0);
	cr_assert_eq(f.w.got.len, 0);
	finish(ABX_OK);
	WIRE_UNTIL(&f.w, wire_got(&f.w, "bytes"));
	cr_assert(strstr(f.head, "POST /a\n"), "%s", f.head);
	fixture_stop(&f);
}

Test(gateway_waking, where_traffic_may_not_it_is_502)
{
	static const char body[] = "{\"sandboxId\":\"asleep\",\"message\":\"The sandbox "
				   "is paused\",\"code\":502}";

	for (int i = 0; i < 2; i++) {
		struct fixture f = { 0 };

		start(&f, i == 0);
		resumer.refuse = ABX_EDENIED;
		wire_say(&f.w, "GET /health HTTP/1.1\r\n" ASLEEP "\r\n");
		WIRE_UNTIL(&f.w, wire_got(&f.w, body));
		cr_assert(wire_got(&f.w, "HTTP/1.1 502 "));
		cr_assert_eq(f.engine.connects, 0);
		fixture_stop(&f);
	}
}

#define ENVD_OF(id) "Host: x\r\nE2b-Sandbox-Id: " id "\r\nE2b-Sandbox-Port: 49983\r\n"

Test(gateway_waking, envd_of_a_secure_one_wakes_for_its_token_or_a_signature_alone)
{
	static const struct {
		const char *target, *header;
		bool wakes;
	} rows[] = {
		{ "/health", "", false },
		{ "/health", "X-Access-Token: \r\n", false },
		{ "/health", "X-Access-Token: another\r\n", false },
		{ "/files?path=a", "", false },
		{ "/health", "X-Access-Token: envd-token\r\n", true },
		{ "/files?path=a&signature=v1_x", "", true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture f = { 0 };
		char request[256];

		start(&f, true);
		f.table.recs[f.table.count - 1].access_token =
			abx__secret_new("envd-token", 10);
		snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\n%s%s\r\n",
			 rows[i].target, ENVD_OF("asleep"), rows[i].header);
		wire_say(&f.w, request);
		if (rows[i].wakes) {
			WIRE_UNTIL(&f.w, resumer.asked == 1);
			finish(ABX_ENOTFOUND);
		} else {
			WIRE_UNTIL(&f.w, wire_got(&f.w, "X-Access-Token"));
			cr_assert(wire_got(&f.w, "HTTP/1.1 403 "));
			cr_assert_eq(resumer.asked, 0);
		}
		fixture_stop(&f);
	}
}

Test(gateway_waking, one_that_does_not_wake_up_is_said_so)
{
	static const struct {
		int code;
		const char *status, *message;
	} rows[] = {
		{ ABX_ETIMEDOUT, "HTTP/1.1 504 ", "The sandbox did not wake up in time" },
		{ ABX_ENOTFOUND, "HTTP/1.1 502 ", "The sandbox was not found" },
		{ ABX_EUNAVAILABLE, "HTTP/1.1 502 ", "The sandbox is paused" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture f = { 0 };

		start(&f, true);
		wire_say(&f.w, "GET / HTTP/1.1\r\n" ASLEEP "\r\n");
		WIRE_UNTIL(&f.w, resumer.asked == 1);
		finish(rows[i].code);
		WIRE_UNTIL(&f.w, wire_got(&f.w, rows[i].message));
		cr_assert(wire_got(&f.w, rows[i].status));
		fixture_stop(&f);
	}
}

Test(gateway_waking, a_client_that_goes_meanwhile_leaves_nothing)
{
	struct fixture f = { 0 };

	start(&f, true);
	wire_say(&f.w, "GET / HTTP/1.1\r\n" ASLEEP "\r\n");
	WIRE_UNTIL(&f.w, resumer.asked == 1);
	wire_close(&f.w);
	for (int i = 0; i < 50; i++)
		uv_run(&f.loop, UV_RUN_NOWAIT);
	finish(ABX_OK);
	for (int i = 0; i < 50; i++)
		uv_run(&f.loop, UV_RUN_NOWAIT);
	cr_assert_eq(f.engine.connects, 0);
	cr_assert_eq(f.table.begins, f.table.ends);
	fixture_stop(&f);
}
