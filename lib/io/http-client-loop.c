/*
 * http-client-loop.c - curl's sockets and timers on the libuv loop, and a guard over
 * both.
 *
 * The guard is no part of the machinery but a net below it: should an event be lost (a
 * socket that nobody watches any more, a timer that is not set), a call would wait for
 * ever. It looks at all calls every other second: one whose deadline has passed is ended,
 * and one whose socket was readable twice in a row gets curl to read.
 */
#include <poll.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "io/http-client-priv.h"

#define DEFAULT_GUARD_MS 2000
#define GUARD_GRACE_MS 1000 /* curl's own deadline comes first */

/* One socket of curl's. */
struct watch {
	uv_poll_t poll;
	abx__http_client *client;
	abx__http_call *call; /* whose it is; NULL: nobody's */
	curl_socket_t fd;
};

/* CURLINFO_ACTIVESOCKET does not say: it has none where the peer has closed. */
static curl_socket_t socket_of(const abx__http_call *call)
{
	return call->watch ? call->watch->fd : CURL_SOCKET_BAD;
}

static void link_watch(struct watch *watch, abx__http_call *call)
{
	if (watch->call)
		watch->call->watch = NULL;
	watch->call = call;
	if (!call)
		return;
	if (call->watch)
		call->watch->call = NULL;
	call->watch = watch;
}

void abx__http_call_unwatch(abx__http_call *call)
{
	if (call->watch)
		link_watch(call->watch, NULL);
}

static abx__http_call *call_of(CURL *easy)
{
	abx__http_call *call = NULL;

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&call);
	return call;
}

static void reap(abx__http_client *client)
{
	CURLMsg *msg;
	int left;

	while ((msg = curl_multi_info_read(client->multi, &left))) {
		if (msg->msg != CURLMSG_DONE)
			continue;
		abx__http_call_finish(call_of(msg->easy_handle), msg->data.result);
		if (client->freed)
			return;
	}
}

static void on_timer(uv_timer_t *timer)
{
	abx__http_client *client = timer->data;
	int running;

	curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	reap(client);
}

static int set_timer(CURLM *multi, long timeout_ms, void *userdata)
{
	abx__http_client *client = userdata;

	(void)multi;
	if (timeout_ms < 0)
		uv_timer_stop(&client->timer);
	else
		uv_timer_start(&client->timer, on_timer, (uint64_t)timeout_ms, 0);
	return 0;
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
	struct watch *watch = poll->data;
	abx__http_client *client = watch->client;
	int flags = 0;
	int running;

	if (status < 0)
		flags = CURL_CSELECT_ERR;
	if (events & UV_READABLE)
		flags |= CURL_CSELECT_IN;
	if (events & UV_WRITABLE)
		flags |= CURL_CSELECT_OUT;
	curl_multi_socket_action(client->multi, watch->fd, flags, &running);
	reap(client);
}

static void free_watch(uv_handle_t *handle)
{
	abx__free(handle->data);
}

static struct watch *new_watch(abx__http_client *client, curl_socket_t fd)
{
	struct watch *watch = abx__calloc(1, sizeof(*watch));

	if (!watch)
		return NULL;
	if (uv_poll_init_socket(client->loop, &watch->poll, fd) < 0) {
		abx__free(watch);
		return NULL;
	}
	watch->poll.data = watch;
	watch->client = client;
	watch->fd = fd;
	curl_multi_assign(client->multi, fd, watch);
	return watch;
}

static int set_socket(CURL *easy, curl_socket_t fd, int what, void *userdata,
		      void *socketp)
{
	abx__http_client *client = userdata;
	struct watch *watch = socketp;
	int events = 0;

	if (what == CURL_POLL_REMOVE) {
		if (!watch)
			return 0;
		link_watch(watch, NULL);
		curl_multi_assign(client->multi, fd, NULL);
		uv_poll_stop(&watch->poll);
		uv_close((uv_handle_t *)&watch->poll, free_watch);
		return 0;
	}
	if (!watch)
		watch = new_watch(client, fd);
	if (what & CURL_POLL_IN)
		events |= UV_READABLE;
	if (what & CURL_POLL_OUT)
		events |= UV_WRITABLE;
	if (watch)
		link_watch(watch, call_of(easy));
	/* A negative answer would end every call of the client, so only the one that
	 * suffers ends. */
	if (!watch || uv_poll_start(&watch->poll, events, on_socket) < 0)
		abx__http_call_cancel(call_of(easy), ABX_ENOMEM);
	return 0;
}

void abx__http_call_unmark(abx__http_call *call)
{
	abx__http_call **at = &call->client->marked;

	if (!call->is_marked)
		return;
	while (*at != call)
		at = &(*at)->next_marked;
	*at = call->next_marked;
	call->is_marked = false;
}

static void apply_resume(abx__http_call *call)
{
	call->resume_wanted = false;
	call->rx_paused = false;
	call->rx_held = false;
	call->tx_paused = false;
	curl_easy_pause(call->easy, CURLPAUSE_CONT);
}

/* The sink said so; curl is told from the loop, so that its own clocks stop too. */
static void apply_pause(abx__http_call *call)
{
	call->rx_held = true;
	curl_easy_pause(call->easy,
			CURLPAUSE_RECV | (call->tx_paused ? CURLPAUSE_SEND : 0));
}

/* As if the loop had said that its socket is readable. */
static void apply_poke(abx__http_call *call)
{
	curl_socket_t fd = socket_of(call);
	int running;

	call->poke_wanted = false;
	if (fd != CURL_SOCKET_BAD)
		curl_multi_socket_action(call->client->multi, fd, CURL_CSELECT_IN,
					 &running);
}

static void on_idle(uv_idle_t *idle)
{
	abx__http_client *client = idle->data;
	int running;

	uv_idle_stop(idle);
	while (client->marked) {
		abx__http_call *call = client->marked;

		abx__http_call_unmark(call);
		if (call->end_code < 0)
			abx__http_call_finish(call, CURLE_ABORTED_BY_CALLBACK);
		else if (call->poke_wanted)
			apply_poke(call);
		else if (call->resume_wanted)
			apply_resume(call);
		else if (call->rx_paused && !call->rx_held)
			apply_pause(call);
		if (client->freed)
			return;
	}
	curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	reap(client);
}

void abx__http_call_mark(abx__http_call *call)
{
	if (call->is_marked)
		return;
	call->is_marked = true;
	call->next_marked = call->client->marked;
	call->client->marked = call;
	uv_idle_start(&call->client->idle, on_idle);
}

/* ---- the guard ---- */

static bool is_readable(const abx__http_call *call)
{
	struct pollfd p = { .fd = socket_of(call), .events = POLLIN };

	return p.fd != CURL_SOCKET_BAD && poll(&p, 1, 0) > 0;
}

static void look_at(abx__http_call *call, int64_t now)
{
	if (call->deadline && now >= call->deadline + GUARD_GRACE_MS) {
		abx__http_call_cancel(call, ABX_ETIMEDOUT);
		return;
	}
	if (call->rx_paused || call->rx_held || !is_readable(call)) {
		call->stuck = 0;
		return;
	}
	if (++call->stuck < 2)
		return;
	call->poke_wanted = true;
	abx__http_call_mark(call);
}

static void on_guard(uv_timer_t *guard)
{
	abx__http_client *client = guard->data;
	int64_t now = abx__mono_ms();

	for (abx__http_call *call = client->calls; call; call = call->next)
		look_at(call, now);
}

void abx__http_client_guard(abx__http_client *client)
{
	uint64_t ms = client->guard_ms;

	if (!client->calls)
		uv_timer_stop(&client->guard);
	else if (!uv_is_active((uv_handle_t *)&client->guard))
		uv_timer_start(&client->guard, on_guard, ms, ms);
}

/* ---- life ---- */

int abx__http_client_join(abx__http_client *client, unsigned max_idle)
{
	client->multi = curl_multi_init();
	if (!client->multi)
		return ABX_ENOMEM;
	curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, set_socket);
	curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
	curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
	curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)max_idle);
	curl_multi_setopt(client->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
	uv_timer_init(client->loop, &client->timer);
	uv_timer_init(client->loop, &client->guard);
	uv_idle_init(client->loop, &client->idle);
	client->timer.data = client->guard.data = client->idle.data = client;
	client->open_handles = 3;
	if (!client->guard_ms)
		client->guard_ms = DEFAULT_GUARD_MS;
	return ABX_OK;
}

void abx__http_client_leave(abx__http_client *client, uv_close_cb closed)
{
	curl_multi_cleanup(client->multi);
	uv_close((uv_handle_t *)&client->timer, closed);
	uv_close((uv_handle_t *)&client->guard, closed);
	uv_close((uv_handle_t *)&client->idle, closed);
}
