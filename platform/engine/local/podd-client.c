/*
 * podd-client.c - the socket, its calls and its reconnecting.
 */
#include "engine/local/podd-client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"

#define CALL_DEADLINE_MS 15000
#define RETRY_FIRST_MS 5
#define RETRY_MOST_MS 500
#define CALLS_MAX 65536u

struct call {
	uint64_t seq;
	uint16_t type;
	char *text; /* until it is sent */
	size_t len;
	bool sent;
	int64_t deadline_ms;
	abx__podd_reply done;
	void *userdata;
	struct call *next;
};

/* The poll handle is memory of its own: a new connection may come before the old handle
 * is closed. */
struct poll_box {
	uv_poll_t poll;
};

struct abx__podd_client {
	uv_loop_t *loop;
	const abx__log *log;
	const abx__podd_client_events *events;
	void *userdata;
	char *path;
	int fd;
	bool up;              /* HELLO was answered */
	struct poll_box *box; /* of the connection */
	uv_timer_t timer;
	unsigned retry_ms;
	int64_t next_try_ms;
	bool was_refused;
	uint64_t seq;
	struct call *calls, **tail;
	unsigned count;
	struct failed *failed; /* completions for the next turn */
	bool closing;
	void (*on_closed)(void *userdata);
	void *closed_userdata;
	char *buffer;
};

/* A call that ended before it could be sent; told on the next turn. */
struct failed {
	struct call *call;
	int r;
	struct failed *next;
};

static void on_timer(uv_timer_t *timer);
static void on_poll(uv_poll_t *poll, int status, int events);

static void call_end(struct call *c, int r, json_object *body, int fd,
		     const abx_error *err)
{
	if (c->done)
		c->done(c->userdata, r, body, fd, err);
	else if (fd >= 0)
		close(fd);
	abx__free(c->text);
	abx__free(c);
}

static void call_fail(struct call *c, int code, const char *why)
{
	abx_error *err = NULL;

	abx__error_set(&err, code, "%s", why);
	call_end(c, code, NULL, -1, err);
	abx_error_free(err);
}

static struct call *take_call(abx__podd_client *client, uint64_t seq)
{
	for (struct call **at = &client->calls; *at; at = &(*at)->next)
		if ((*at)->seq == seq) {
			struct call *c = *at;

			*at = c->next;
			if (client->tail == &c->next)
				client->tail = at;
			client->count--;
			return c;
		}
	return NULL;
}

static void arm_timer(abx__podd_client *client)
{
	int64_t now = abx__mono_ms(), next = now + 1000;

	if (client->closing)
		return;
	if (client->fd < 0 && client->next_try_ms < next)
		next = client->next_try_ms;
	uv_timer_start(&client->timer, on_timer, next > now ? (uint64_t)(next - now) : 0,
		       0);
}

/* ---- going down ---- */

static void on_poll_closed(uv_handle_t *handle)
{
	abx__free(handle);
}

static void go_down(abx__podd_client *client)
{
	bool was_up = client->up;
	struct call *lost = NULL, **at = &client->calls;

	if (client->fd < 0)
		return;
	uv_close((uv_handle_t *)&client->box->poll, on_poll_closed);
	close(client->fd);
	client->fd = -1;
	client->up = false;
	client->next_try_ms = abx__mono_ms() + client->retry_ms;
	/* What was sent has no answer any more; what waits goes on waiting. */
	client->tail = &client->calls;
	while (*at) {
		struct call *c = *at;

		if (!c->sent) {
			client->tail = &c->next;
			at = &c->next;
			continue;
		}
		*at = c->next;
		c->next = lost;
		lost = c;
		client->count--;
	}
	while (lost) {
		struct call *c = lost;

		lost = c->next;
		call_fail(c, ABX_EUNAVAILABLE, "agentbox-podd went away during the call");
	}
	if (was_up)
		client->events->on_down(client->userdata);
	arm_timer(client);
}

/* ---- sending ---- */

static bool send_call(abx__podd_client *client, struct call *c)
{
	struct abx__podd_header h = { .version = ABX__PODD_VERSION,
				      .type = c->type,
				      .seq = c->seq };
	struct iovec iov[2] = { { &h, sizeof(h) }, { c->text, c->len } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	if (sendmsg(client->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return false;
	c->sent = true;
	abx__free(abx_take(c->text));
	return true;
}

/* In order; HELLO alone goes before the connection counts as up. */
static void send_waiting(abx__podd_client *client)
{
	bool blocked = false;

	for (struct call *c = client->calls; c && client->fd >= 0; c = c->next) {
		if (c->sent || (!client->up && c->type != ABX__PODD_HELLO))
			continue;
		if (send_call(client, c))
			continue;
		if (errno != EAGAIN && errno != EINTR) {
			go_down(client);
			return;
		}
		blocked = true;
		break;
	}
	if (client->fd >= 0)
		uv_poll_start(&client->box->poll,
			      UV_READABLE | (blocked ? UV_WRITABLE : 0), on_poll);
}

static struct call *add_call(abx__podd_client *client, uint16_t type, json_object *body,
			     abx__podd_reply done, void *userdata)
{
	struct call *c = abx__calloc(1, sizeof(*c));
	const char *text = "{}";

	if (!c)
		return NULL;
	c->len = 2;
	if (body)
		text = json_object_to_json_string_length(body, JSON_C_TO_STRING_PLAIN,
							 &c->len);
	c->text = text ? abx__memdup(text, c->len) : NULL;
	if (!c->text) {
		abx__free(c);
		return NULL;
	}
	c->type = type;
	c->seq = ++client->seq;
	c->deadline_ms = abx__mono_ms() + CALL_DEADLINE_MS;
	c->done = done;
	c->userdata = userdata;
	*client->tail = c;
	client->tail = &c->next;
	client->count++;
	return c;
}

static void fail_later(abx__podd_client *client, struct call *c, int r)
{
	struct failed *f = abx__calloc(1, sizeof(*f));

	/* With no memory even for that, now is better than never. */
	if (!f) {
		call_fail(c, ABX_ENOMEM, "out of memory");
		return;
	}
	f->call = c;
	f->r = r;
	f->next = client->failed;
	client->failed = f;
	uv_timer_start(&client->timer, on_timer, 0, 0);
}

void abx__podd_client_call(abx__podd_client *client, uint16_t type, json_object *body,
			   bool hold, abx__podd_reply done, void *userdata)
{
	struct call *c;

	if (client->closing || client->count >= CALLS_MAX) {
		abx_error *err = NULL;
		int r = client->closing ? ABX_ECANCELED : ABX_EEXHAUSTED;

		abx__error_set(&err, r, "agentbox-podd cannot be asked now");
		done(userdata, r, NULL, -1, err);
		abx_error_free(err);
		return;
	}
	c = add_call(client, type, body, done, userdata);
	if (!c) {
		abx_error *err = NULL;

		abx__error_nomem(&err);
		done(userdata, ABX_ENOMEM, NULL, -1, err);
		abx_error_free(err);
		return;
	}
	if (c->len > ABX__PODD_MESSAGE_MAX) {
		take_call(client, c->seq);
		fail_later(client, c, ABX_ETOOBIG);
	} else if (client->up) {
		send_waiting(client);
	} else if (!hold) {
		take_call(client, c->seq);
		fail_later(client, c, ABX_EUNAVAILABLE);
	}
}

/* ---- receiving ---- */

static void on_hello(void *userdata, int r, json_object *body, int fd,
		     const abx_error *err)
{
	abx__podd_client *client = userdata;

	(void)fd;
	(void)err;
	if (r < 0)
		return; /* the connection is down already */
	client->up = true;
	client->retry_ms = RETRY_FIRST_MS;
	client->was_refused = false;
	client->events->on_hello(client->userdata, body);
	send_waiting(client);
}

static void take_reply(abx__podd_client *client, const struct abx__podd_header *h,
		       json_object *body, int fd)
{
	struct call *c = take_call(client, h->seq);
	abx_error *err = NULL;

	if (!c) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (h->r < 0) {
		json_object *m = NULL;

		json_object_object_get_ex(body, "message", &m);
		abx__error_set(&err, h->r, "%s",
			       m ? json_object_get_string(m) : abx_error_name(h->r));
	}
	call_end(c, h->r, body, fd, err);
	abx_error_free(err);
}

static void take_message(abx__podd_client *client, const char *data, size_t len, int fd)
{
	struct abx__podd_header h;
	json_tokener *tok = json_tokener_new_ex(32);
	json_object *body = NULL;

	memcpy(&h, data, sizeof(h));
	if (tok)
		body = json_tokener_parse_ex(tok, data + sizeof(h),
					     (int)(len - sizeof(h)));
	if (h.version != ABX__PODD_VERSION ||
	    !json_object_is_type(body, json_type_object)) {
		abx__log_error(client->log, "agentbox-podd is of another release",
			       "version=%u", h.version);
		go_down(client);
		if (fd >= 0)
			close(fd);
	} else if (h.type == ABX__PODD_RE) {
		take_reply(client, &h, body, fd);
	} else {
		if (fd >= 0)
			close(fd);
		client->events->on_event(client->userdata, h.type, body);
	}
	json_object_put(body);
	if (tok)
		json_tokener_free(tok);
}

/* 1 a message was taken, 0 nothing there, -1 the connection is gone. */
static int receive(abx__podd_client *client)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { .iov_base = client->buffer,
			     .iov_len = ABX__PODD_MESSAGE_MAX + 64 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(client->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *h;
	int fd = -1;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < (ssize_t)sizeof(struct abx__podd_header))
		return -1;
	h = CMSG_FIRSTHDR(&msg);
	if (h && h->cmsg_type == SCM_RIGHTS && h->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(h), sizeof(int));
	take_message(client, client->buffer, (size_t)n, fd);
	return 1;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	abx__podd_client *client = poll->data;

	/* A late event of a connection that is gone. */
	if (client->fd < 0 || &client->box->poll != poll)
		return;
	if (status < 0) {
		go_down(client);
		return;
	}
	for (int i = 0; i < 64 && (events & UV_READABLE) && client->fd >= 0 &&
			&client->box->poll == poll;
	     i++) {
		int r = receive(client);

		if (r == 0)
			break;
		if (r < 0) {
			go_down(client);
			return;
		}
	}
	if (client->fd >= 0 && &client->box->poll == poll && (events & UV_WRITABLE))
		send_waiting(client);
}

/* ---- connecting ---- */

static int open_socket(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	abx__str_copy(a.sun_path, sizeof(a.sun_path), path);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void try_connect(abx__podd_client *client)
{
	struct poll_box *box;
	int fd = open_socket(client->path);

	box = fd < 0 ? NULL : abx__calloc(1, sizeof(*box));
	if (!box || uv_poll_init(client->loop, &box->poll, fd) < 0) {
		if (!client->was_refused)
			abx__log_warn(client->log,
				      "agentbox-podd cannot be reached; trying again",
				      "socket=%s", client->path);
		client->was_refused = true;
		if (fd >= 0)
			close(fd);
		abx__free(box);
		client->retry_ms = client->retry_ms * 2 > RETRY_MOST_MS
					   ? RETRY_MOST_MS
					   : client->retry_ms * 2;
		client->next_try_ms = abx__mono_ms() + client->retry_ms;
		return;
	}
	box->poll.data = client;
	client->box = box;
	client->fd = fd;
	if (!add_call(client, ABX__PODD_HELLO, NULL, on_hello, client)) {
		go_down(client);
		return;
	}
	send_waiting(client);
}

static void expire(abx__podd_client *client)
{
	int64_t now = abx__mono_ms();
	struct call *c, *next;

	for (c = client->calls; c; c = next) {
		next = c->next;
		if (now < c->deadline_ms)
			continue;
		take_call(client, c->seq);
		call_fail(c, c->sent ? ABX_ETIMEDOUT : ABX_EUNAVAILABLE,
			  c->sent ? "agentbox-podd did not answer in time"
				  : "agentbox-podd is not running");
		next = client->calls; /* the callback may have changed the list */
	}
}

static void tell_failed(abx__podd_client *client)
{
	struct failed *list = client->failed;

	client->failed = NULL;
	while (list) {
		struct failed *f = list;

		list = f->next;
		call_fail(f->call, f->r,
			  f->r == ABX_ETOOBIG
				  ? "the request is larger than agentbox-podd takes"
				  : "agentbox-podd is not running");
		abx__free(f);
	}
}

static void on_timer(uv_timer_t *timer)
{
	abx__podd_client *client = timer->data;

	tell_failed(client);
	expire(client);
	if (client->fd < 0 && !client->closing && abx__mono_ms() >= client->next_try_ms)
		try_connect(client);
	arm_timer(client);
}

int abx__podd_client_new(uv_loop_t *loop, const char *path, const abx__log *log,
			 const abx__podd_client_events *events, void *userdata,
			 abx__podd_client **ret, abx_error **reterr)
{
	abx__podd_client *client;

	if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return abx__error_set(reterr, ABX_EINVAL,
				      "the path of podd's socket is too long: %s", path);
	client = abx__calloc(1, sizeof(*client));
	if (!client)
		return abx__error_nomem(reterr);
	client->path = abx__strdup(path);
	client->buffer = abx__malloc(ABX__PODD_MESSAGE_MAX + 64);
	if (!client->path || !client->buffer) {
		abx__free(client->path);
		abx__free(client->buffer);
		abx__free(client);
		return abx__error_nomem(reterr);
	}
	client->loop = loop;
	client->log = log;
	client->events = events;
	client->userdata = userdata;
	client->fd = -1;
	client->retry_ms = RETRY_FIRST_MS;
	client->tail = &client->calls;
	uv_timer_init(loop, &client->timer);
	client->timer.data = client;
	*ret = client;
	return ABX_OK;
}

void abx__podd_client_start(abx__podd_client *client)
{
	client->next_try_ms = 0;
	uv_timer_start(&client->timer, on_timer, 0, 0);
}

static void on_client_closed(uv_handle_t *handle)
{
	abx__podd_client *client = handle->data;
	void (*done)(void *) = client->on_closed;
	void *userdata = client->closed_userdata;

	abx__free(client->path);
	abx__free(client->buffer);
	abx__free(client);
	done(userdata);
}

void abx__podd_client_close(abx__podd_client *client, void (*done)(void *userdata),
			    void *userdata)
{
	client->closing = true;
	client->on_closed = done;
	client->closed_userdata = userdata;
	tell_failed(client);
	if (client->fd >= 0) {
		uv_close((uv_handle_t *)&client->box->poll, on_poll_closed);
		close(client->fd);
		client->fd = -1;
		client->up = false;
	}
	while (client->calls) {
		struct call *c = client->calls;

		client->calls = c->next;
		call_fail(c, ABX_ECANCELED, "closing");
	}
	uv_timer_stop(&client->timer);
	uv_close((uv_handle_t *)&client->timer, on_client_closed);
}
