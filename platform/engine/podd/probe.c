/*
 * probe.c - is a Pod's main container ready? GET on the probe's port, from inside the
 * Pod's network namespace.
 *
 * A claim may wait for the answer, so where the probe does not say how often, the first
 * tries follow each other by half a millisecond and then slow down, and nobody asks again
 * once the Pod is ready. A probe with a period or a failure threshold is asked as long as
 * the container runs. What answers is hostile: sixteen bytes are read, and a status of
 * 200 to 399 counts.
 */
#include "engine/podd/podd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

#define FAST_US 500
#define FAST_TRIES 60
#define SLOW_US 200000
/* Where the probe does not say, as in Kubernetes. */
#define ANSWER_S 1
#define PERIOD_S 10
#define SUCCESSES 1
#define FAILURES 3

/* One request under way. */
struct attempt {
	uv_poll_t poll;
	int fd;
	struct probe *probe; /* NULL once nobody waits */
	char text[16];
	size_t len;
};

struct probe {
	struct pod *pod;
	struct attempt *attempt;
	int64_t asked_us, next_us, deadline_us;
	int64_t interval_us; /* of the quick tries */
	unsigned tries;
	uint32_t successes, failures; /* in a row */
	struct probe *next;
};

struct probes {
	int timer_fd;
	uv_poll_t poll;
	struct probe *list;
};

static void arm(struct podd *podd)
{
	struct itimerspec at = { 0 };
	int64_t next = INT64_MAX, now = abx__mono_us();

	for (struct probe *p = podd->probes->list; p; p = p->next) {
		int64_t due = p->attempt ? p->deadline_us : p->next_us;

		if (due < next)
			next = due;
	}
	if (next != INT64_MAX) {
		int64_t in = next > now ? next - now : 1;

		at.it_value.tv_sec = in / 1000000;
		at.it_value.tv_nsec = in % 1000000 * 1000;
	}
	timerfd_settime(podd->probes->timer_fd, 0, &at, NULL);
}

static void on_attempt_closed(uv_handle_t *handle)
{
	struct attempt *a = handle->data;

	close(a->fd);
	abx__free(a);
}

static void drop_attempt(struct probe *p)
{
	struct attempt *a = p->attempt;

	if (!a)
		return;
	p->attempt = NULL;
	a->probe = NULL;
	uv_close((uv_handle_t *)&a->poll, on_attempt_closed);
}

static const abx__readiness *question(const struct probe *p)
{
	return &p->pod->readiness;
}

static uint32_t given(uint32_t n, uint32_t otherwise)
{
	return n ? n : otherwise;
}

/* When the next question is due: by its period, or quickly while somebody may wait. */
static void plan_next(struct probe *p)
{
	uint32_t period_s = question(p)->period_s;

	if (!period_s && p->pod->ready)
		period_s = PERIOD_S;
	if (period_s) {
		p->next_us = p->asked_us + period_s * INT64_C(1000000);
		return;
	}
	if (++p->tries > FAST_TRIES && p->interval_us < SLOW_US)
		p->interval_us += p->interval_us / 2;
	p->next_us = abx__mono_us() + p->interval_us;
}

static void set_ready(struct pod *pod, bool ready)
{
	pod->ready = ready;
	abx__server_pod(pod->podd, pod);
}

static void failed(struct probe *p)
{
	struct pod *pod = p->pod;

	drop_attempt(p);
	p->successes = 0;
	p->failures++;
	if (pod->ready && p->failures >= given(question(p)->failure_threshold, FAILURES))
		set_ready(pod, false);
	plan_next(p);
}

static void passed(struct probe *p)
{
	struct pod *pod = p->pod;

	drop_attempt(p);
	p->failures = 0;
	p->successes++;
	if (pod->ready ||
	    p->successes < given(question(p)->success_threshold, SUCCESSES)) {
		plan_next(p);
		return;
	}
	set_ready(pod, true);
	if (abx__readiness_goes_on(&pod->readiness))
		plan_next(p);
	else
		abx__probe_stop(pod);
}

/* "HTTP/1.1 204": 1 ready, 0 more bytes needed, -1 not ready. */
static int judge(const char *text, size_t len)
{
	if (len < 12)
		return 0;
	if (memcmp(text, "HTTP/1.", 7) != 0 || text[8] != ' ')
		return -1;
	return text[9] == '2' || text[9] == '3' ? 1 : -1;
}

static void on_answer(uv_poll_t *poll, int status, int events)
{
	struct attempt *a = poll->data;
	struct probe *p = a->probe;
	struct podd *podd;
	ssize_t n;
	int verdict;

	(void)events;
	if (!p)
		return;
	n = status < 0 ? -1
		       : recv(a->fd, a->text + a->len, sizeof(a->text) - a->len,
			      MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR) && status == 0)
		return;
	a->len += n > 0 ? (size_t)n : 0;
	verdict = judge(a->text, a->len);
	if (verdict == 0 && n > 0)
		return;
	podd = p->pod->podd;
	if (verdict == 1)
		passed(p);
	else
		failed(p);
	arm(podd);
}

static void try_once(struct probe *p)
{
	struct pod *pod = p->pod;
	char request[512];
	bool pending = false;
	struct attempt *a;
	int fd, len;

	p->asked_us = abx__mono_us();
	if (abx__pod_connect(pod, pod->readiness.port, &fd, &pending, NULL) < 0) {
		failed(p);
		return;
	}
	len = snprintf(
		request, sizeof(request),
		"GET %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: agentbox-podd\r\n"
		"Connection: close\r\n\r\n",
		pod->readiness.path);
	a = pending || len >= (int)sizeof(request) ? NULL : abx__calloc(1, sizeof(*a));
	if (!a || send(fd, request, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) != len ||
	    uv_poll_init(&pod->podd->loop, &a->poll, fd) < 0) {
		close(fd);
		abx__free(a);
		failed(p);
		return;
	}
	a->fd = fd;
	a->probe = p;
	a->poll.data = a;
	p->attempt = a;
	p->deadline_us =
		p->asked_us + given(question(p)->timeout_s, ANSWER_S) * INT64_C(1000000);
	uv_poll_start(&a->poll, UV_READABLE, on_answer);
}

static void on_tick(uv_poll_t *poll, int status, int events)
{
	struct podd *podd = poll->data;
	int64_t now = abx__mono_us();
	struct probe *p, *next;
	uint64_t count;

	(void)status;
	(void)events;
	if (read(podd->probes->timer_fd, &count, sizeof(count)) < 0)
		return;
	for (p = podd->probes->list; p; p = next) {
		next = p->next;
		if (p->attempt && now >= p->deadline_us)
			failed(p);
		if (!p->attempt && now >= p->next_us)
			try_once(p);
	}
	arm(podd);
}

/* Of the delay since the container's start, what is left. Its start is known in ticks of
 * the clock that goes on while the machine sleeps, also to a podd that adopted it. */
static int64_t delay_left_us(const struct pod *pod)
{
	int64_t delay_us = pod->readiness.initial_delay_s * INT64_C(1000000);
	int64_t ticks = sysconf(_SC_CLK_TCK), started_us;
	struct timespec now;

	if (!delay_us || ticks < 1 || clock_gettime(CLOCK_BOOTTIME, &now) < 0)
		return delay_us;
	started_us = (int64_t)pod->container->start_time * 1000000 / ticks;
	return started_us + delay_us -
	       (now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000);
}

bool abx__probe_is_due(const struct pod *pod)
{
	return pod->readiness.port && pod->container && !pod->container->is_idle;
}

void abx__probe_start(struct pod *pod)
{
	int64_t delay_us = delay_left_us(pod);
	struct probe *p;

	abx__probe_stop(pod);
	p = abx__calloc(1, sizeof(*p));
	if (!p) {
		abx__pod_fail(pod, "StartError", "out of memory");
		return;
	}
	p->pod = pod;
	p->interval_us = FAST_US;
	p->next = pod->podd->probes->list;
	pod->podd->probes->list = p;
	pod->probe = p;
	p->next_us = abx__mono_us() + delay_us;
	if (delay_us <= 0)
		try_once(p);
	arm(pod->podd);
}

void abx__probe_stop(struct pod *pod)
{
	struct probe **at = &pod->podd->probes->list;

	if (!pod->probe)
		return;
	while (*at != pod->probe)
		at = &(*at)->next;
	*at = pod->probe->next;
	drop_attempt(pod->probe);
	abx__free(abx_take(pod->probe));
}

int abx__probes_open(struct podd *podd)
{
	struct probes *t = abx__calloc(1, sizeof(*t));

	if (!t)
		return ABX_ENOMEM;
	t->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (t->timer_fd < 0 || uv_poll_init(&podd->loop, &t->poll, t->timer_fd) < 0) {
		abx__free(t);
		return ABX_EIO;
	}
	t->poll.data = podd;
	podd->probes = t;
	uv_poll_start(&t->poll, UV_READABLE, on_tick);
	return ABX_OK;
}

static void on_probes_closed(uv_handle_t *handle)
{
	struct podd *podd = handle->data;

	close(podd->probes->timer_fd);
	abx__free(abx_take(podd->probes));
}

void abx__probes_close(struct podd *podd)
{
	if (podd->probes)
		uv_close((uv_handle_t *)&podd->probes->poll, on_probes_closed);
}
