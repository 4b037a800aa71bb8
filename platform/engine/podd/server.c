/*
 * server.c - the Unix socket: one packet a request, one a reply, events in between
 * (proto.h).
 *
 * Only the account podd was started for (and root) may connect; the kernel says who it
 * is. Requests: server-requests.c.
 * A client that does not read is dropped and syncs anew.
 */
#include "engine/podd/server-priv.h"

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

void abx__client_send(struct client *c, uint16_t type, int32_t r, uint64_t seq,
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

void abx__client_reply(struct client *c, uint64_t seq, int r, const abx_error *err)
{
	json_object *o = NULL;

	if (r < 0) {
		o = json_object_new_object();
		json_object_object_add(o, "message",
				       json_object_new_string(abx_error_message(err)));
	}
	abx__client_send(c, ABX__PODD_RE, r, seq, o, -1);
	json_object_put(o);
}

static void tell_all(struct podd *podd, uint16_t type, json_object *o)
{
	struct client *c, *next;

	for (c = podd->server ? podd->server->clients : NULL; c; c = next) {
		next = c->next;
		if (c->synced)
			abx__client_send(c, type, ABX_OK, 0, o, -1);
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
		abx__client_serve(c, &h, buffer + sizeof(h), (size_t)n - sizeof(h));
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
			abx__client_waiting_end(w);
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
