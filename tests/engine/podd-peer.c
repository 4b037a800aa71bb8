/*
 * podd-peer.c - see podd-peer.h.
 */
#include "podd-peer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <agentbox/error.h>

#include "engine/podd/proto.h"

#define WAIT_MS 60000

static void take_event(podd_peer *p, uint16_t type, json_object *body)
{
	json_object *name;

	if (type == ABX__PODD_SYNCED)
		p->synced = true;
	if (type == ABX__PODD_SNAPSHOT_DONE &&
	    json_object_object_get_ex(body, "id", &name))
		json_object_object_add(p->snapshots, json_object_get_string(name),
				       json_object_get(body));
	if (!json_object_object_get_ex(body, "name", &name))
		return;
	if (type == ABX__PODD_POD)
		json_object_object_add(p->pods, json_object_get_string(name),
				       json_object_get(body));
	else if (type == ABX__PODD_GONE)
		json_object_object_del(p->pods, json_object_get_string(name));
}

/* One packet. 1 it was the reply to `seq`; -1 podd hung up, where that is allowed. */
static int receive(podd_peer *p, uint64_t seq, int *ret_r)
{
	static char data[ABX__PODD_MESSAGE_MAX + 64];
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { .iov_base = data, .iov_len = sizeof(data) - 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct pollfd pfd = { .fd = p->fd, .events = POLLIN };
	struct abx__podd_header h;
	struct cmsghdr *c;
	json_object *body;
	ssize_t n;

	cr_assert_eq(poll(&pfd, 1, WAIT_MS), 1, "podd said nothing for a minute; see %s",
		     p->podd.log);
	n = recvmsg(p->fd, &msg, MSG_CMSG_CLOEXEC);
	if (n <= 0 && p->may_hang_up)
		return -1;
	cr_assert_geq(n, (ssize_t)sizeof(h), "podd closed the connection; see %s",
		      p->podd.log);
	memcpy(&h, data, sizeof(h));
	data[n] = '\0';
	body = json_tokener_parse(data + sizeof(h));
	cr_assert(body);
	if (h.type != ABX__PODD_RE) {
		take_event(p, h.type, body);
		json_object_put(body);
		return 0;
	}
	cr_assert_eq(h.seq, seq);
	json_object_put(p->reply);
	p->reply = body;
	p->reply_fd = -1;
	c = CMSG_FIRSTHDR(&msg);
	if (c)
		memcpy(&p->reply_fd, CMSG_DATA(c), sizeof(int));
	*ret_r = h.r;
	return 1;
}

int podd_peer_call(podd_peer *p, uint16_t type, json_object *body)
{
	struct abx__podd_header h = { .version = ABX__PODD_VERSION,
				      .type = type,
				      .seq = ++p->seq };
	size_t len;
	const char *text =
		json_object_to_json_string_length(body, JSON_C_TO_STRING_PLAIN, &len);
	struct iovec iov[2] = { { &h, sizeof(h) }, { (void *)text, len } };
	int r = 0, got = 0;
	ssize_t n = writev(p->fd, iov, 2);

	json_object_put(body);
	if (n < 0 && p->may_hang_up)
		return ABX_EUNAVAILABLE;
	cr_assert_eq(n, (ssize_t)(sizeof(h) + len));
	while (got == 0)
		got = receive(p, p->seq, &r);
	return got < 0 ? ABX_EUNAVAILABLE : r;
}

const char *podd_peer_message(podd_peer *p)
{
	json_object *m;

	return json_object_object_get_ex(p->reply, "message", &m)
		       ? json_object_get_string(m)
		       : "";
}

json_object *podd_peer_body(const char *fmt, ...)
{
	static char text[65536];
	json_object *o;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	o = json_tokener_parse(text);
	cr_assert(o, "no JSON: %s", text);
	return o;
}

void podd_peer_connect(podd_peer *p)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int r;

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", p->podd.socket);
	p->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	for (int i = 0;
	     i < 1000 && (r = connect(p->fd, (struct sockaddr *)&a, sizeof(a))) < 0; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	cr_assert_eq(r, 0, "connect: %s", strerror(errno));
	json_object_put(p->pods);
	p->pods = json_object_new_object();
	json_object_put(p->snapshots);
	p->snapshots = json_object_new_object();
	p->synced = false;
	cr_assert_eq(podd_peer_call(p, ABX__PODD_HELLO, podd_peer_body("{}")), 0);
	while (!p->synced)
		receive(p, 0, &r);
}

void podd_peer_disconnect(podd_peer *p)
{
	close(p->fd);
	p->fd = -1;
}

void podd_peer_open(podd_peer *p)
{
	const char *missing = podd_fixture_missing();

	if (missing)
		cr_skip_test("%s", missing);
	memset(p, 0, sizeof(*p));
	p->reply_fd = -1;
	podd_fixture_open(&p->podd);
	podd_peer_connect(p);
}

void podd_peer_close(podd_peer *p)
{
	podd_peer_disconnect(p);
	podd_fixture_close(&p->podd);
	json_object_put(p->pods);
	json_object_put(p->snapshots);
	json_object_put(p->reply);
}

int podd_peer_create(podd_peer *p, const char *name, const char *image,
		     const char *container, const char *more)
{
	return podd_peer_call(
		p, ABX__PODD_CREATE,
		podd_peer_body(
			"{\"ns\":\"t\",\"name\":\"%s\",\"image\":\"%s\",\"generation\":1,"
			"\"template\":{\"spec\":{\"containers\":[{\"name\":\"sandbox\","
			"\"image\":\"%s\"%s%s}]%s%s}}}",
			name, image, image, *container ? "," : "", container,
			*more ? "," : "", more));
}

int podd_peer_swap(podd_peer *p, const char *name, const char *image, uint64_t generation,
		   bool restart)
{
	return podd_peer_call(
		p, ABX__PODD_SWAP,
		podd_peer_body("{\"ns\":\"t\",\"name\":\"%s\",\"image\":\"%s\","
			       "\"generation\":%llu,\"restart\":%s}",
			       name, image, (unsigned long long)generation,
			       restart ? "true" : "false"));
}

bool podd_peer_has(podd_peer *p, const char *name)
{
	return json_object_object_get_ex(p->pods, name, NULL);
}

bool podd_peer_try_delete(podd_peer *p, const char *name)
{
	int r = podd_peer_call(p, ABX__PODD_DELETE,
			       podd_peer_body("{\"ns\":\"t\",\"name\":\"%s\"}", name));

	while (r == 0 && podd_peer_has(p, name))
		if (receive(p, 0, &r) < 0)
			return false;
	return r == 0;
}

static json_object *pod_of(podd_peer *p, const char *name)
{
	json_object *pod = NULL;

	json_object_object_get_ex(p->pods, name, &pod);
	return pod;
}

const char *podd_peer_get(podd_peer *p, const char *name, const char *key)
{
	json_object *v;

	return json_object_object_get_ex(pod_of(p, name), key, &v)
		       ? json_object_get_string(v)
		       : "";
}

int podd_peer_get_int(podd_peer *p, const char *name, const char *key)
{
	json_object *v;

	return json_object_object_get_ex(pod_of(p, name), key, &v)
		       ? json_object_get_int(v)
		       : 0;
}

void podd_peer_delete(podd_peer *p, const char *name)
{
	int r = podd_peer_call(p, ABX__PODD_DELETE,
			       podd_peer_body("{\"ns\":\"t\",\"name\":\"%s\"}", name));

	cr_assert_eq(r, 0, "%s", podd_peer_message(p));
	while (pod_of(p, name))
		receive(p, 0, &r);
}

const char *podd_peer_settle(podd_peer *p, const char *name, uint64_t generation)
{
	int r;

	for (;;) {
		const char *phase = podd_peer_get(p, name, "phase");

		if (pod_of(p, name) &&
		    podd_peer_get_int(p, name, "generation") >= (int)generation) {
			if (strcmp(phase, "failed") == 0)
				return phase;
			if (podd_peer_get_int(p, name, "ready") &&
			    podd_peer_get_int(p, name, "running_generation") >=
				    (int)generation)
				return phase;
		}
		if (receive(p, 0, &r) < 0)
			return NULL;
	}
}

/* JSON text of a string. */
static const char *quoted(const char *s)
{
	static char out[32768];
	json_object *o = json_object_new_string(s);

	snprintf(out, sizeof(out), "%s",
		 json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
	return out;
}

const char *podd_peer_run(podd_peer *p, const char *name, const char *image,
			  const char *script, const char *more)
{
	static char text[65536];
	char whole[16384], container[40000], path[256];
	int fd = -1;
	ssize_t n;

	snprintf(whole, sizeof(whole),
		 "{ %s\n} >/out/new 2>&1; mv /out/new /out/result; exec sleep 1000",
		 script);
	snprintf(container, sizeof(container),
		 "\"command\":[\"/bin/"
		 "sh\",\"-c\",%s],\"volumeMounts\":[{\"name\":\"out\",\"mountPath\":\"/"
		 "out\"}]%s%s",
		 quoted(whole), *more ? "," : "", more);
	cr_assert_eq(podd_peer_create(p, name, image, container,
				      "\"volumes\":[{\"name\":\"out\",\"emptyDir\":{}}]"),
		     0, "%s", podd_peer_message(p));
	cr_assert_str_eq(podd_peer_settle(p, name, 1), "running", "%s",
			 podd_peer_get(p, name, "message"));
	snprintf(path, sizeof(path), "%s/podd/pods/t_%s/vol/out/result", p->podd.dir,
		 name);
	for (int i = 0; i < 4000 && (fd = open(path, O_RDONLY)) < 0; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	cr_assert_geq(fd, 0, "the script did not end");
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

const char *podd_peer_path(podd_peer *p, const char *fmt, ...)
{
	static char paths[8][320];
	static unsigned next;
	char *path = paths[next++ % 8];
	size_t n = (size_t)snprintf(path, sizeof(paths[0]), "%s/", p->podd.dir);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path + n, sizeof(paths[0]) - n, fmt, ap);
	va_end(ap);
	return path;
}

int podd_peer_init_pid(podd_peer *p, const char *name)
{
	char path[256];
	json_object *o, *pid;
	int n;

	snprintf(path, sizeof(path), "%s/podd/pods/t_%s/run.json", p->podd.dir, name);
	o = json_object_from_file(path);
	cr_assert(o && json_object_object_get_ex(o, "pid", &pid));
	n = json_object_get_int(pid);
	json_object_put(o);
	return n;
}

void podd_peer_wait_clean(podd_peer *p)
{
	char what[256];

	for (int i = 0; i < 8000 && !podd_fixture_is_clean(&p->podd, what, sizeof(what));
	     i++)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	cr_assert(podd_fixture_is_clean(&p->podd, what, sizeof(what)), "left behind: %s",
		  what);
}
