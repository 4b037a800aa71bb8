/*
 * arm.c - fills control/port-runtime.h: POST /init to the envd of a Pod, over the
 * gateway's connections.
 *
 * A runtime that is not listening yet is tried again until the deadline; a kept
 * connection that turns out closed is replaced once. The body may hold a token: it is
 * wiped when the arming ends, and never logged.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/secret.h"
#include "gateway/gateway-priv.h"

#define TEXT_MOST 1024 /* of envd's own words in an error */
#define FIRST_WAIT_MS 1
#define TRIES_MOST 1000

struct arming {
	uv_timer_t timer; /* first; the deadline */
	abx__gateway *gateway;
	arming *prev, *next;
	abx__upstream *up;
	abx__upstream_ticket *ticket;
	uint64_t until;
	bool retried;
	int status;
	abx__buf text; /* of an answer that is not 204 */
	void (*done)(void *userdata, int r, const abx_error *err);
	void *userdata;
	uint16_t port;
	const char *namespace_, *pod;
	char *body;
	size_t body_len;
	char data[];
};

static abx__gateway *gateway_of(abx__runtime *runtime)
{
	return (abx__gateway *)(void *)((char *)runtime -
					offsetof(abx__gateway, runtime));
}

static void freed(uv_handle_t *handle)
{
	arming *a = (arming *)handle;
	abx__gateway *gateway = a->gateway;

	abx__free(a);
	abx__gateway_unhold(gateway);
}

/* Ends it: everything is given back, then `done` runs. */
static void finish(arming *a, bool keep, int r, const abx_error *err)
{
	if (a->ticket)
		abx__upstream_cancel(a->ticket);
	if (a->up)
		abx__upstream_release(a->up, keep);
	a->ticket = NULL;
	a->up = NULL;
	if (a->prev)
		a->prev->next = a->next;
	else
		a->gateway->armings = a->next;
	if (a->next)
		a->next->prev = a->prev;
	abx__wipe(a->body, a->body_len);
	abx__buf_done(&a->text);
	uv_close((uv_handle_t *)&a->timer, freed);
	a->done(a->userdata, r, err);
}

static void fail(arming *a, int r, const char *why)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	abx__error_set(&err, r, "arm Pod %s/%s: %s", a->namespace_, a->pod, why);
	finish(a, false, r, err);
}

/* ---- the answer ---- */

static void on_head(void *userdata, const abx__http_head *head)
{
	arming *a = userdata;

	a->status = head->status;
}

static void answered(arming *a)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	if (a->status == 204) {
		finish(a, true, ABX_OK, NULL);
		return;
	}
	abx__error_http(&err, ABX_EPROTO, a->status,
			"arm Pod %s/%s: envd answered %d: %s", a->namespace_, a->pod,
			a->status, abx__buf_str(&a->text));
	finish(a, true, ABX_EPROTO, err);
}

static void on_body(void *userdata, const char *data, size_t len)
{
	arming *a = userdata;

	if (!data) {
		answered(a);
		return;
	}
	if (len > TEXT_MOST - a->text.len)
		len = TEXT_MOST - a->text.len;
	abx__buf_add(&a->text, data, len);
}

static void connect_up(arming *a);

static void on_fail(void *userdata, int r, const char *why)
{
	arming *a = userdata;

	if (r == ABX_EIO && a->up->was_kept && !abx__http_conn_has_answer(a->up->conn) &&
	    !a->retried) {
		a->retried = true;
		abx__upstream_release(a->up, false);
		a->up = NULL;
		connect_up(a);
		return;
	}
	fail(a, r == ABX_EIO ? ABX_EUNAVAILABLE : r, why);
}

static const abx__http_conn_events events = {
	.head = on_head,
	.body = on_body,
	.fail = on_fail,
};

/* ---- the request ---- */

static void send_init(arming *a)
{
	char head[160];
	int n, r;

	n = snprintf(head, sizeof(head),
		     "POST /init HTTP/1.1\r\nHost: localhost:%u\r\n"
		     "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
		     a->port, a->body_len);
	r = abx__http_conn_request(a->up->conn, head, (size_t)n,
				   a->body_len > 0 ? ABX__HTTP_LENGTH : ABX__HTTP_NO_BODY,
				   a->body_len, false, &events, a);
	if (r == ABX_OK && a->body_len > 0)
		r = abx__http_conn_write(a->up->conn, a->body, a->body_len);
	if (r == ABX_OK && a->body_len > 0)
		r = abx__http_conn_end(a->up->conn);
	if (r < 0)
		fail(a, r, "the request could not be sent");
}

static void on_connected(void *userdata, int r, abx__upstream *up, const abx_error *err)
{
	arming *a = userdata;

	a->ticket = NULL;
	if (r == ABX_OK) {
		a->up = up;
		send_init(a);
		return;
	}
	fail(a, r == ABX_ENOMEM ? ABX_ENOMEM : ABX_EUNAVAILABLE,
	     err ? abx_error_message(err) : "its port cannot be reached");
}

static void connect_up(arming *a)
{
	const abx__upstream_tries tries = {
		.count = TRIES_MOST,
		.first_wait_ms = FIRST_WAIT_MS,
		.until = a->until,
	};

	a->ticket = abx__upstream_connect(a->gateway->pool, a->namespace_, a->pod,
					  a->port, &tries, on_connected, a);
	if (!a->ticket)
		fail(a, ABX_ENOMEM, "out of memory");
}

/* The deadline, or the first turn of the loop: `done` must not run inside arm(). */
static void on_timer(uv_timer_t *timer)
{
	arming *a = (arming *)timer;
	uint64_t now = uv_now(a->gateway->opts.loop);

	if (now >= a->until) {
		fail(a, ABX_ETIMEDOUT, "envd did not answer in time");
		return;
	}
	uv_timer_start(timer, on_timer, a->until - now, 0);
	connect_up(a);
}

static arming *new_arming(const char *namespace_, const char *pod, const char *body,
			  size_t body_len)
{
	size_t ns_len = strlen(namespace_) + 1, pod_len = strlen(pod) + 1;
	arming *a = abx__calloc(1, sizeof(*a) + ns_len + pod_len + body_len + 1);

	if (!a)
		return NULL;
	memcpy(a->data, namespace_, ns_len);
	memcpy(a->data + ns_len, pod, pod_len);
	if (body_len > 0)
		memcpy(a->data + ns_len + pod_len, body, body_len);
	a->namespace_ = a->data;
	a->pod = a->data + ns_len;
	a->body = a->data + ns_len + pod_len;
	a->body_len = body_len;
	return a;
}

static void arm(abx__runtime *runtime, const char *namespace_, const char *pod,
		uint16_t port, const char *body, size_t body_len, uint64_t deadline_ms,
		void (*done)(void *userdata, int r, const abx_error *err), void *userdata)
{
	abx__gateway *gateway = gateway_of(runtime);
	arming *a = new_arming(namespace_, pod, body, body_len);

	if (!a || gateway->closing) {
		ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
		int r = a ? ABX_ECANCELED : ABX_ENOMEM;

		/* The one case that cannot wait for the loop. */
		abx__error_set(&err, r, "arm Pod %s/%s: not possible now", namespace_,
			       pod);
		abx__free(a);
		done(userdata, r, err);
		return;
	}
	a->gateway = gateway;
	a->port = port;
	a->done = done;
	a->userdata = userdata;
	a->until = uv_now(gateway->opts.loop) + deadline_ms;
	a->next = gateway->armings;
	if (a->next)
		a->next->prev = a;
	gateway->armings = a;
	gateway->pending++;
	abx__gateway_wake(gateway);
	uv_timer_init(gateway->opts.loop, &a->timer);
	a->up = abx__upstream_take(gateway->pool, namespace_, pod, port);
	uv_timer_start(&a->timer, on_timer, a->up ? deadline_ms : 0, 0);
	if (a->up)
		send_init(a);
}

static void forget(abx__runtime *runtime, const char *namespace_, const char *pod)
{
	abx__upstreams_forget(gateway_of(runtime)->pool, namespace_, pod);
}

const abx__runtime_ops abx__gateway_runtime_ops = {
	.arm = arm,
	.forget = forget,
};

void abx__armings_abort(abx__gateway *gateway)
{
	while (gateway->armings)
		fail(gateway->armings, ABX_ECANCELED, "the gateway is closing");
}
