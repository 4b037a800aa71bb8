/*
 * server.c - the Unix socket: one packet a request, one a reply, events in between
 * (proto.h).
 *
 * Only the account podd was started for (and root) may connect; the kernel says who it
 * is. Each request is looked up in a table that says what it needs; nothing else exists.
 * A client that does not read is dropped and syncs anew.
 */
#include "engine/podd/podd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

#define QUEUE_MAX 8192
#define CLIENTS_MAX 16

struct packet {
	struct packet *next;
	int fd;
	size_t len;
	char data[];
};

struct client {
	struct server *server;
	int fd;
	uv_poll_t poll;
	bool synced; /* gets events */
	bool dead;
	struct packet *head, **tail;
	unsigned queued;
	struct client *next;
};

/* A CONNECT whose answer takes longer than the call. */
struct waiting {
	uv_poll_t poll;
	uv_timer_t timer;
	unsigned closing;
	int fd;
	uint64_t seq;
	struct client *client;
	struct waiting *next;
};

struct server {
	struct podd *podd;
	int fd;
	uv_poll_t poll;
	struct client *clients;
	unsigned client_count;
	struct waiting *waiting;
};

/* ---- sending ---- */

static void client_drop(struct client *c);
static void on_client(uv_poll_t *poll, int status, int events);

static void packet_free(struct packet *p)
{
	if (p->fd >= 0)
		close(p->fd);
	abx__free(p);
}

/* 1 sent, 0 would block, negative: the peer is gone. */
static int send_packet(int sock, const struct packet *p)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = (void *)p->data, .iov_len = p->len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (p->fd >= 0) {
		struct cmsghdr *h;

		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		h = CMSG_FIRSTHDR(&msg);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(h), &p->fd, sizeof(int));
	}
	if (sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
		return 1;
	return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

static void flush(struct client *c)
{
	while (c->head && !c->dead) {
		struct packet *p = c->head;
		int r = send_packet(c->fd, p);

		if (r == 0)
			break;
		if (r < 0) {
			client_drop(c);
			return;
		}
		c->head = p->next;
		if (!c->head)
			c->tail = &c->head;
		c->queued--;
		packet_free(p);
	}
	if (!c->dead)
		uv_poll_start(&c->poll, UV_READABLE | (c->head ? UV_WRITABLE : 0),
			      on_client);
}

/* Takes over fd. */
static void send_to(struct client *c, uint16_t type, int32_t r, uint64_t seq,
		    json_object *body, int fd)
{
	size_t len = 0;
	const char *text = body ? json_object_to_json_string_length(
					  body, JSON_C_TO_STRING_PLAIN, &len)
				: "{}";
	struct abx__podd_header header = {
		.version = ABX__PODD_VERSION, .type = type, .r = r, .seq = seq
	};
	struct packet *p;

	if (!body)
		len = 2;
	p = c->dead || len > ABX__PODD_MESSAGE_MAX
		    ? NULL
		    : abx__malloc(sizeof(*p) + sizeof(header) + len);
	if (!p) {
		if (fd >= 0)
			close(fd);
		if (!c->dead)
			client_drop(c);
		return;
	}
	p->next = NULL;
	p->fd = fd;
	p->len = sizeof(header) + len;
	memcpy(p->data, &header, sizeof(header));
	memcpy(p->data + sizeof(header), text, len);
	*c->tail = p;
	c->tail = &p->next;
	if (++c->queued > QUEUE_MAX) {
		client_drop(c);
		return;
	}
	flush(c);
}

static void reply(struct client *c, uint64_t seq, int r, const abx_error *err)
{
	json_object *o = NULL;

	if (r < 0) {
		o = json_object_new_object();
		json_object_object_add(o, "message",
				       json_object_new_string(abx_error_message(err)));
	}
	send_to(c, ABX__PODD_RE, r, seq, o, -1);
	json_object_put(o);
}

static void tell_all(struct podd *podd, uint16_t type, json_object *o)
{
	struct client *c, *next;

	for (c = podd->server ? podd->server->clients : NULL; c; c = next) {
		next = c->next;
		if (c->synced)
			send_to(c, type, ABX_OK, 0, o, -1);
	}
}

void abx__server_pod(struct podd *podd, const struct pod *pod)
{
	json_object *o;

	if (!podd->server || !podd->server->clients)
		return;
	o = abx__pod_view(pod);
	tell_all(podd, ABX__PODD_POD, o);
	json_object_put(o);
}

void abx__server_snapshot(struct podd *podd, const char *id, int r, uint64_t bytes,
			  const char *message)
{
	json_object *o = json_object_new_object();

	json_object_object_add(o, "id", json_object_new_string(id));
	json_object_object_add(o, "r", json_object_new_int(r));
	json_object_object_add(o, "bytes", json_object_new_int64((int64_t)bytes));
	json_object_object_add(o, "message", json_object_new_string(message));
	tell_all(podd, ABX__PODD_SNAPSHOT_DONE, o);
	json_object_put(o);
}

void abx__server_gone(struct podd *podd, const char *ns, const char *name)
{
	json_object *o = json_object_new_object();

	json_object_object_add(o, "ns", json_object_new_string(ns));
	json_object_object_add(o, "name", json_object_new_string(name));
	tell_all(podd, ABX__PODD_GONE, o);
	json_object_put(o);
}

/* ---- requests ---- */

typedef int (*request_fn)(struct client *c, uint64_t seq, json_object *body,
			  struct pod *pod, abx_error **reterr);

static int do_hello(struct client *c, uint64_t seq, json_object *body, struct pod *pod,
		    abx_error **reterr)
{
	struct podd *podd = c->server->podd;
	json_object *o = json_object_new_object(), *classes = json_object_new_array();

	(void)body;
	(void)pod;
	(void)reterr;
	json_object_object_add(o, "tag", json_object_new_string(podd->tag));
	json_object_object_add(o, "network", json_object_new_boolean(podd->net.enabled));
	json_object_object_add(o, "userns", json_object_new_boolean(podd->userns));
	for (size_t i = 0; i < podd->options.class_count; i++)
		json_object_array_add(
			classes, json_object_new_string(podd->options.classes[i].name));
	json_object_object_add(o, "classes", classes);
	send_to(c, ABX__PODD_RE, ABX_OK, seq, o, -1);
	json_object_put(o);
	for (struct pod *p = podd->pods; p && !c->dead; p = p->hh.next) {
		o = abx__pod_view(p);
		send_to(c, ABX__PODD_POD, ABX_OK, 0, o, -1);
		json_object_put(o);
	}
	send_to(c, ABX__PODD_SYNCED, ABX_OK, 0, NULL, -1);
	c->synced = true;
	return 1;
}

static int do_create(struct client *c, uint64_t seq, json_object *body, struct pod *pod,
		     abx_error **reterr)
{
	(void)seq;
	(void)pod;
	return abx__pod_create(c->server->podd, body, reterr);
}

static int do_swap(struct client *c, uint64_t seq, json_object *body, struct pod *pod,
		   abx_error **reterr)
{
	(void)seq;
	return abx__pod_swap(c->server->podd, pod, body, reterr);
}

static int do_delete(struct client *c, uint64_t seq, json_object *body, struct pod *pod,
		     abx_error **reterr)
{
	(void)body;
	(void)reterr;
	/* The answer goes first: a Pod that is quickly gone must not be reported before
	 * it was accepted. */
	reply(c, seq, ABX_OK, NULL);
	abx__pod_delete(pod);
	return 1;
}

static void on_waiting_closed(uv_handle_t *handle)
{
	struct waiting *w = handle->data;

	if (--w->closing == 0)
		abx__free(w);
}

static void waiting_end(struct waiting *w)
{
	struct waiting **at;

	for (at = &w->client->server->waiting; *at != w; at = &(*at)->next)
		;
	*at = w->next;
	w->closing = 2;
	uv_close((uv_handle_t *)&w->poll, on_waiting_closed);
	uv_close((uv_handle_t *)&w->timer, on_waiting_closed);
	if (w->fd >= 0)
		close(w->fd);
}

static void waiting_finish(struct waiting *w, int error)
{
	abx_error *err = NULL;
	struct client *c = w->client;
	uint64_t seq = w->seq;
	int fd = -1;

	if (!error) {
		fd = w->fd;
		w->fd = -1;
	}
	uv_poll_stop(&w->poll);
	waiting_end(w);
	if (fd >= 0) {
		send_to(c, ABX__PODD_RE, ABX_OK, seq, NULL, fd);
		return;
	}
	abx__error_errno(&err, ABX_EUNAVAILABLE, error, "the port did not answer");
	reply(c, seq, ABX_EUNAVAILABLE, err);
	abx_error_free(err);
}

static void on_waiting(uv_poll_t *poll, int status, int events)
{
	struct waiting *w = poll->data;
	int error = 0;
	socklen_t len = sizeof(error);

	(void)status;
	(void)events;
	if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	waiting_finish(w, error);
}

static void on_waiting_timeout(uv_timer_t *timer)
{
	waiting_finish(timer->data, ETIMEDOUT);
}

static int wait_for(struct client *c, uint64_t seq, int fd, abx_error **reterr)
{
	uv_loop_t *loop = &c->server->podd->loop;
	struct waiting *w = abx__calloc(1, sizeof(*w));

	if (!w || uv_poll_init(loop, &w->poll, fd) < 0) {
		close(fd);
		abx__free(w);
		return abx__error_nomem(reterr);
	}
	uv_timer_init(loop, &w->timer);
	w->poll.data = w->timer.data = w;
	w->fd = fd;
	w->seq = seq;
	w->client = c;
	w->next = c->server->waiting;
	c->server->waiting = w;
	uv_poll_start(&w->poll, UV_WRITABLE, on_waiting);
	uv_timer_start(&w->timer, on_waiting_timeout, 5000, 0);
	return 1;
}

static int do_connect(struct client *c, uint64_t seq, json_object *body, struct pod *pod,
		      abx_error **reterr)
{
	json_object *port;
	bool pending;
	int fd, r;

	if (!json_object_object_get_ex(body, "port", &port) ||
	    !json_object_is_type(port, json_type_int) || json_object_get_int(port) < 1 ||
	    json_object_get_int(port) > 65535)
		return abx__error_set(reterr, ABX_EINVAL, "port must be 1 to 65535");
	r = abx__pod_connect(pod, (uint16_t)json_object_get_int(port), &fd, &pending,
			     reterr);
	if (r < 0)
		return r;
	if (pending)
		return wait_for(c, seq, fd, reterr);
	send_to(c, ABX__PODD_RE, ABX_OK, seq, NULL, fd);
	return 1;
}

static int do_activity(struct client *c, uint64_t seq, json_object *body, struct pod *pod,
		       abx_error **reterr)
{
	json_object *name;

	(void)c;
	(void)seq;
	if (!json_object_object_get_ex(body, "activity", &name) ||
	    !json_object_is_type(name, json_type_string))
		return abx__error_set(reterr, ABX_EINVAL, "activity must be a string");
	return abx__pod_set_activity(pod, json_object_get_string(name), reterr);
}

static const char *id_of(json_object *body)
{
	json_object *id;

	return json_object_object_get_ex(body, "id", &id) &&
			       json_object_is_type(id, json_type_string)
		       ? json_object_get_string(id)
		       : "";
}

static int do_snapshot(struct client *c, uint64_t seq, json_object *body, struct pod *pod,
		       abx_error **reterr)
{
	(void)c;
	(void)seq;
	return abx__pod_snapshot(pod, id_of(body), reterr);
}

static int do_snapshot_delete(struct client *c, uint64_t seq, json_object *body,
			      struct pod *pod, abx_error **reterr)
{
	const char *id = id_of(body);

	(void)seq;
	(void)pod;
	if (!abx__snapshot_id_is_valid(id))
		return abx__error_set(reterr, ABX_EINVAL, "the request needs an id");
	if (abx__snapshot_delete(c->server->podd, id) < 0)
		return abx__error_set(reterr, ABX_EIO, "snapshot %s", id);
	return ABX_OK;
}

static int do_stats(struct client *c, uint64_t seq, json_object *body, struct pod *pod,
		    abx_error **reterr)
{
	json_object *o = abx__pod_stats_json(pod);

	(void)body;
	if (!o)
		return abx__error_nomem(reterr);
	send_to(c, ABX__PODD_RE, ABX_OK, seq, o, -1);
	json_object_put(o);
	return 1;
}

static int do_log(struct client *c, uint64_t seq, json_object *body, struct pod *pod,
		  abx_error **reterr)
{
	int fd = abx__pod_open_log(pod, reterr);

	(void)body;
	if (fd < 0)
		return fd;
	send_to(c, ABX__PODD_RE, ABX_OK, seq, NULL, fd);
	return 1;
}

/* What each request needs: a Pod that is there, and one that is not being deleted. `fn`
 * gives 1 when it replied. */
static const struct {
	request_fn fn;
	bool pod, alive;
} requests[] = {
	[ABX__PODD_HELLO] = { do_hello, false, false },
	[ABX__PODD_CREATE] = { do_create, false, false },
	[ABX__PODD_SWAP] = { do_swap, true, true },
	[ABX__PODD_DELETE] = { do_delete, true, false },
	[ABX__PODD_CONNECT] = { do_connect, true, true },
	[ABX__PODD_STATS] = { do_stats, true, true },
	[ABX__PODD_LOG] = { do_log, true, true },
	[ABX__PODD_ACTIVITY] = { do_activity, true, true },
	[ABX__PODD_SNAPSHOT] = { do_snapshot, true, true },
	[ABX__PODD_SNAPSHOT_DELETE] = { do_snapshot_delete, false, false },
};

static int find_pod(struct podd *podd, uint16_t type, json_object *body, struct pod **ret,
		    abx_error **reterr)
{
	json_object *ns, *name;

	if (!json_object_object_get_ex(body, "ns", &ns) ||
	    !json_object_is_type(ns, json_type_string) ||
	    !json_object_object_get_ex(body, "name", &name) ||
	    !json_object_is_type(name, json_type_string))
		return abx__error_set(reterr, ABX_EINVAL,
				      "the request needs ns and name");
	*ret = abx__pod_find(podd, json_object_get_string(ns),
			     json_object_get_string(name));
	if (!*ret)
		return abx__error_set(reterr, ABX_ENOTFOUND, "there is no Pod %s",
				      json_object_get_string(name));
	if (requests[type].alive && (*ret)->deleting)
		return abx__error_set(reterr, ABX_ENOTFOUND, "Pod %s is being deleted",
				      (*ret)->name);
	return ABX_OK;
}

static void serve(struct client *c, const struct abx__podd_header *h, const char *text,
		  size_t len)
{
	abx_error *err = NULL;
	json_tokener *tok = json_tokener_new_ex(32);
	json_object *body = tok ? json_tokener_parse_ex(tok, text, (int)len) : NULL;
	struct pod *pod = NULL;
	int r = ABX_OK;

	if (!body || json_tokener_get_error(tok) != json_tokener_success ||
	    !json_object_is_type(body, json_type_object))
		r = abx__error_set(&err, ABX_EINVAL, "the request is no JSON object");
	else if (h->type == 0 || h->type > ABX__PODD_REQUEST_LAST)
		r = abx__error_set(&err, ABX_EUNSUPPORTED, "there is no request %u",
				   h->type);
	else if (requests[h->type].pod)
		r = find_pod(c->server->podd, h->type, body, &pod, &err);
	if (r == ABX_OK)
		r = requests[h->type].fn(c, h->seq, body, pod, &err);
	if (r <= 0)
		reply(c, h->seq, r, err);
	abx_error_free(err);
	json_object_put(body);
	if (tok)
		json_tokener_free(tok);
}

static void read_client(struct client *c)
{
	static char buffer[sizeof(struct abx__podd_header) + ABX__PODD_MESSAGE_MAX + 1];
	struct abx__podd_header h;

	for (int i = 0; i < 64 && !c->dead; i++) {
		ssize_t n = recv(c->fd, buffer, sizeof(buffer), MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < (ssize_t)sizeof(h) || n == (ssize_t)sizeof(buffer)) {
			client_drop(c);
			return;
		}
		memcpy(&h, buffer, sizeof(h));
		if (h.version != ABX__PODD_VERSION) {
			client_drop(c);
			return;
		}
		serve(c, &h, buffer + sizeof(h), (size_t)n - sizeof(h));
	}
}

static void on_client(uv_poll_t *poll, int status, int events)
{
	struct client *c = poll->data;

	if (status < 0) {
		client_drop(c);
		return;
	}
	if (events & UV_WRITABLE)
		flush(c);
	if (!c->dead && (events & UV_READABLE))
		read_client(c);
}

/* ---- clients ---- */

static void on_client_closed(uv_handle_t *handle)
{
	struct client *c = handle->data;

	while (c->head) {
		struct packet *p = c->head;

		c->head = p->next;
		packet_free(p);
	}
	close(c->fd);
	abx__free(c);
}

static void client_drop(struct client *c)
{
	struct client **at;
	struct waiting *w, *next;

	if (c->dead)
		return;
	c->dead = true;
	for (w = c->server->waiting; w; w = next) {
		next = w->next;
		if (w->client == c)
			waiting_end(w);
	}
	for (at = &c->server->clients; *at != c; at = &(*at)->next)
		;
	*at = c->next;
	c->server->client_count--;
	uv_close((uv_handle_t *)&c->poll, on_client_closed);
}

static bool is_allowed(const struct podd *podd, int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
	       (who.uid == 0 || who.uid == podd->options.uid);
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
	struct server *s = poll->data;
	struct client *c;
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int size = 1 << 20;

	(void)status;
	(void)events;
	if (fd < 0)
		return;
	c = s->client_count < CLIENTS_MAX && is_allowed(s->podd, fd)
		    ? abx__calloc(1, sizeof(*c))
		    : NULL;
	if (!c || uv_poll_init(&s->podd->loop, &c->poll, fd) < 0) {
		abx__log_warn(s->podd->log, "connection refused", "clients=%u",
			      s->client_count);
		close(fd);
		abx__free(c);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	c->server = s;
	c->fd = fd;
	c->tail = &c->head;
	c->poll.data = c;
	c->next = s->clients;
	s->clients = c;
	s->client_count++;
	uv_poll_start(&c->poll, UV_READABLE, on_client);
}

/* ---- the listener ---- */

/* The folder is somebody else's, who may put another file in the place of the new socket:
 * what is given away is looked at first, by descriptor. */
static int give_away(const char *path, uid_t uid, gid_t gid)
{
	ABX_CLEANUP(abx__closep)
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return ABX_EIO;
	if (!S_ISSOCK(st.st_mode) || st.st_uid != 0 || st.st_nlink != 1) {
		errno = EPERM;
		return ABX_EDENIED;
	}
	return fchownat(fd, "", uid, gid, AT_EMPTY_PATH) < 0 ? ABX_EIO : ABX_OK;
}

static int listen_at(struct podd *podd, const char *path, abx_error **reterr)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	ABX_CLEANUP(abx__closep) int fd = -1;
	mode_t mask;
	int r;

	if (abx__str_copy(a.sun_path, sizeof(a.sun_path), path) < 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "the socket's path is too long: %s", path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "socket");
	unlink(path);
	mask = umask(0177);
	r = bind(fd, (struct sockaddr *)&a, sizeof(a));
	umask(mask);
	if (r < 0 || give_away(path, podd->options.uid, podd->options.gid) < 0 ||
	    listen(fd, 16) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "socket %s", path);
	return abx_take_fd(fd);
}

int abx__server_open(struct podd *podd, abx_error **reterr)
{
	struct server *s = abx__calloc(1, sizeof(*s));

	if (!s)
		return abx__error_nomem(reterr);
	s->podd = podd;
	s->fd = listen_at(podd, podd->options.socket_path, reterr);
	if (s->fd < 0) {
		int r = s->fd;

		abx__free(s);
		return r;
	}
	if (uv_poll_init(&podd->loop, &s->poll, s->fd) < 0) {
		close(s->fd);
		abx__free(s);
		return abx__error_set(reterr, ABX_EIO, "listener");
	}
	s->poll.data = s;
	uv_poll_start(&s->poll, UV_READABLE, on_connection);
	podd->server = s;
	return ABX_OK;
}

static void on_listener_closed(uv_handle_t *handle)
{
	struct server *s = handle->data;

	close(s->fd);
	abx__free(s);
}

void abx__server_close(struct podd *podd)
{
	struct server *s = podd->server;

	if (!s)
		return;
	while (s->clients)
		client_drop(s->clients);
	podd->server = NULL;
	unlink(podd->options.socket_path);
	uv_close((uv_handle_t *)&s->poll, on_listener_closed);
}
