/*
 * Arming: POST /init over the gateway's connections.
 */
#include <stdio.h>

#include "fixture.h"

static void armed(void *userdata, int r, const abx_error *err)
{
	struct fixture *f = userdata;

	f->armed++;
	f->armed_r = r;
	snprintf(f->armed_text, sizeof(f->armed_text), "%s",
		 err ? abx_error_message(err) : "");
}

static void arm(struct fixture *f, uint64_t deadline_ms)
{
	abx__runtime *runtime = abx__gateway_runtime(f->gateway);

	runtime->ops->arm(runtime, "ns", "abc", 49983, "{\"a\":1}", 7, deadline_ms, armed,
			  f);
}

Test(gateway_arm, init_is_posted_and_204_is_success_over_a_kept_connection)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	fixture_go_raw(&f);
	for (int i = 1; i <= 2; i++) {
		arm(&f, 2000);
		WIRE_UNTIL(&f.w, peer_has(&f, "{\"a\":1}"));
		cr_assert(peer_has(&f, "POST /init HTTP/1.1\r\n"));
		cr_assert(peer_has(
			&f,
			"Content-Type: application/json\r\nContent-Length: 7\r\n\r\n"));
		abx__buf_clear(&f.peer_got);
		peer_say(&f, "HTTP/1.1 204 No Content\r\n\r\n");
		WIRE_UNTIL(&f.w, f.armed == i);
		cr_assert_eq(f.armed_r, ABX_OK);
	}
	cr_assert_eq(f.engine.connects, 1);
	fixture_stop(&f);
}

Test(gateway_arm, a_refusal_carries_envds_words)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	fixture_go_raw(&f);
	arm(&f, 2000);
	WIRE_UNTIL(&f.w, peer_has(&f, "{\"a\":1}"));
	peer_say(&f, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 9\r\n\r\nno access");
	WIRE_UNTIL(&f.w, f.armed == 1);
	cr_assert_eq(f.armed_r, ABX_EPROTO);
	cr_assert_str_eq(f.armed_text, "arm Pod ns/abc: envd answered 401: no access");
	fixture_stop(&f);
}

Test(gateway_arm, a_runtime_that_is_not_up_yet_is_waited_for)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	fixture_go_raw(&f);
	f.engine.fail_first = 4;
	arm(&f, 2000);
	WIRE_UNTIL(&f.w, peer_has(&f, "{\"a\":1}"));
	peer_say(&f, "HTTP/1.1 204 No Content\r\n\r\n");
	WIRE_UNTIL(&f.w, f.armed == 1);
	cr_assert_eq(f.armed_r, ABX_OK);
	fixture_stop(&f);
}

Test(gateway_arm, deadlines_and_lost_connections_have_their_codes)
{
	struct fixture f = { 0 };

	fixture_start(&f);
	fixture_go_raw(&f);
	arm(&f, 50); /* nobody answers */
	WIRE_UNTIL(&f.w, f.armed == 1);
	cr_assert_eq(f.armed_r, ABX_ETIMEDOUT);
	f.engine.fail_code = ABX_EUNAVAILABLE;
	arm(&f, 50); /* nobody listens */
	WIRE_UNTIL(&f.w, f.armed == 2);
	cr_assert(f.armed_r == ABX_EUNAVAILABLE || f.armed_r == ABX_ETIMEDOUT);
	f.engine.fail_code = 0;
	f.peer = -1;
	close(accept(f.listener, NULL, NULL));
	arm(&f, 2000);
	WIRE_UNTIL(&f.w, peer_has(&f, "{\"a\":1}"));
	peer_close(&f);
	WIRE_UNTIL(&f.w, f.armed == 3);
	cr_assert_eq(f.armed_r, ABX_EUNAVAILABLE);
	arm(&f, 2000);
	abx__gateway_runtime(f.gateway)->ops->forget(abx__gateway_runtime(f.gateway),
						     "ns", "abc");
	fixture_stop(&f);
	cr_assert_eq(f.armed, 4);
	cr_assert_eq(f.armed_r, ABX_ECANCELED);
}
