#include "fake-runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static void arm(abx__runtime *base, const char *ns, const char *pod, uint16_t port,
		const char *body, size_t body_len, uint64_t deadline_ms,
		void (*done)(void *userdata, int r, const abx_error *err), void *userdata)
{
	fake_runtime *rt = (fake_runtime *)base;
	fake_arming *a = calloc(1, sizeof(*a));

	(void)ns, (void)deadline_ms;
	a->done = done;
	a->userdata = userdata;
	snprintf(a->pod, sizeof(a->pod), "%s", pod);
	snprintf(rt->last_body, sizeof(rt->last_body), "%.*s", (int)body_len, body);
	snprintf(rt->last_pod, sizeof(rt->last_pod), "%s", pod);
	rt->last_port = port;
	*rt->tail = a;
	rt->tail = &a->next;
}

static void forget(abx__runtime *base, const char *ns, const char *pod)
{
	(void)ns, (void)pod;
	((fake_runtime *)base)->forgotten++;
}

static const abx__runtime_ops ops = { .arm = arm, .forget = forget };

void fake_runtime_init(fake_runtime *rt)
{
	memset(rt, 0, sizeof(*rt));
	rt->base.ops = &ops;
	rt->tail = &rt->armings;
}

bool fake_runtime_step(fake_runtime *rt)
{
	fake_arming *a = rt->armings;
	abx_error *err = NULL;
	int r = ABX_OK;

	if (!a || rt->hold)
		return false;
	rt->armings = a->next;
	if (!rt->armings)
		rt->tail = &rt->armings;
	if (rt->fail_count) {
		rt->fail_count--;
		r = abx__error_set(&err, rt->fail_code, "pod %s: envd does not answer",
				   a->pod);
	} else {
		rt->armed++;
	}
	a->done(a->userdata, r, err);
	abx_error_free(err);
	free(a);
	return true;
}

void fake_runtime_detach(fake_runtime *rt)
{
	while (rt->armings) {
		fake_arming *a = rt->armings;

		rt->armings = a->next;
		free(a);
	}
	rt->tail = &rt->armings;
}
