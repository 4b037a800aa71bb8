/*
 * Packets to podd's socket: whatever agentboxd's account sends, each request is answered
 * or its sender dropped. The Pods behind are stand-ins; the server is the real one.
 *
 * Input: packets, each behind two bytes of length.
 */
#include "engine/podd/server-requests.c"
#include "engine/podd/server.c"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pod one = { .ns = (char *)"t",
			  .name = (char *)"a",
			  .image = (char *)"runtime:" };
static abx__log quiet = { .level = ABX__LOG_ERROR };

struct pod *abx__pod_find(struct podd *podd, const char *ns, const char *name)
{
	(void)podd;
	return strcmp(ns, "t") == 0 && strcmp(name, "a") == 0 ? &one : NULL;
}

json_object *abx__pod_view(const struct pod *pod)
{
	json_object *o = json_object_new_object();

	json_object_object_add(o, "name", json_object_new_string(pod->name));
	return o;
}

int abx__pod_create(struct podd *podd, json_object *request, abx_error **reterr)
{
	json_object *t = NULL;
	abx__spec *spec = NULL;
	int r;

	(void)podd;
	json_object_object_get_ex(request, "template", &t);
	r = abx__spec_parse(t, &spec, reterr);
	abx__spec_free(spec);
	return r;
}

int abx__pod_swap(struct podd *podd, struct pod *pod, json_object *request,
		  abx_error **reterr)
{
	(void)request;
	abx__server_pod(podd, pod);
	return abx__error_set(reterr, ABX_ECONFLICT, "no");
}

void abx__pod_delete(struct pod *pod)
{
	abx__server_gone(pod->podd, pod->ns, pod->name);
}

int abx__pod_set_activity(struct pod *pod, const char *name, abx_error **reterr)
{
	if (strcmp(name, "freeze") == 0) {
		abx__server_pod(pod->podd, pod);
		return ABX_OK;
	}
	return abx__error_set(reterr, ABX_EINVAL, "activity is freeze");
}

bool abx__snapshot_id_is_valid(const char *id)
{
	return *id != '\0';
}

int abx__pod_snapshot(struct pod *pod, const char *id, abx_error **reterr)
{
	abx__server_snapshot(pod->podd, id, ABX_OK, 1, "");
	return *id ? ABX_OK : abx__error_set(reterr, ABX_EINVAL, "no id");
}

int abx__snapshot_delete(struct podd *podd, const char *id)
{
	(void)podd;
	return *id == 'x' ? ABX_EIO : ABX_OK;
}

json_object *abx__pod_stats_json(struct pod *pod)
{
	(void)pod;
	return json_object_new_object();
}

int abx__pod_open_log(struct pod *pod, abx_error **reterr)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)pod;
	return fd >= 0 ? fd : abx__error_set(reterr, ABX_ENOTFOUND, "nothing yet");
}

/* Both ways of a connection: at once, and one that is waited for. */
int abx__pod_connect(struct pod *pod, uint16_t port, int *ret_fd, bool *ret_pending,
		     abx_error **reterr)
{
	int fds[2];

	(void)pod;
	if (port % 3 == 0)
		return abx__error_set(reterr, ABX_EUNAVAILABLE, "closed");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		abort();
	close(fds[1]);
	*ret_fd = fds[0];
	*ret_pending = port % 3 == 1;
	return ABX_OK;
}

/* What comes back is well formed; descriptors are closed. */
static void drain(int fd)
{
	static char buf[sizeof(struct abx__podd_header) + ABX__PODD_MESSAGE_MAX];
	char control[CMSG_SPACE(sizeof(int))];

	for (;;) {
		struct iovec iov = { buf, sizeof(buf) };
		struct msghdr msg = { .msg_iov = &iov,
				      .msg_iovlen = 1,
				      .msg_control = control,
				      .msg_controllen = sizeof(control) };
		ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		struct abx__podd_header h;
		struct cmsghdr *c;

		if (n <= 0)
			return;
		memcpy(&h, buf, sizeof(h));
		if ((size_t)n < sizeof(h) + 2 || h.version != ABX__PODD_VERSION ||
		    h.type < ABX__PODD_RE || h.type > ABX__PODD_EVENT_LAST)
			abort();
		c = CMSG_FIRSTHDR(&msg);
		if (c) {
			int passed;

			memcpy(&passed, CMSG_DATA(c), sizeof(passed));
			close(passed);
		}
	}
}

static struct client *join(struct server *s, int fd)
{
	struct client *c = abx__calloc(1, sizeof(*c));

	if (!c || uv_poll_init(&s->podd->loop, &c->poll, fd) < 0)
		abort();
	c->server = s;
	c->fd = fd;
	c->tail = &c->head;
	c->poll.data = c;
	s->clients = c;
	s->client_count = 1;
	uv_poll_start(&c->poll, UV_READABLE, on_client);
	return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct podd podd = { .log = &quiet };
	struct server server = { .podd = &podd, .fd = -1 };
	int fds[2];

	if (uv_loop_init(&podd.loop) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) <
		    0)
		abort();
	podd.server = &server;
	memcpy(podd.tag, "abcd", 5);
	one.podd = &podd;
	memcpy(one.key, "t_a", 4);
	HASH_ADD_STR(podd.pods, key, &one);
	join(&server, fds[0]);
	for (size_t at = 0; at + 2 <= size;) {
		size_t len = data[at] | (size_t)data[at + 1] << 8;

		at += 2;
		if (len > size - at)
			len = size - at;
		if (send(fds[1], data + at, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			break;
		at += len;
		uv_run(&podd.loop, UV_RUN_NOWAIT);
		drain(fds[1]);
	}
	uv_run(&podd.loop, UV_RUN_NOWAIT);
	drain(fds[1]);
	while (server.clients)
		client_drop(server.clients);
	uv_run(&podd.loop, UV_RUN_DEFAULT);
	if (uv_loop_close(&podd.loop) < 0 || server.waiting || server.client_count)
		abort();
	close(fds[1]);
	HASH_CLEAR(hh, podd.pods);
	return 0;
}
