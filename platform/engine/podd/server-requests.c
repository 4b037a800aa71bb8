/*
 * server-requests.c - what may be asked for. Each request is looked up in a table that
 * says what it needs; nothing else exists.
 */
#include "engine/podd/server-priv.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"

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
	abx__client_send(c, ABX__PODD_RE, ABX_OK, seq, o, -1);
	json_object_put(o);
	for (struct pod *p = podd->pods; p && !c->dead; p = p->hh.next) {
		o = abx__pod_view(p);
		abx__client_send(c, ABX__PODD_POD, ABX_OK, 0, o, -1);
		json_object_put(o);
	}
	abx__client_send(c, ABX__PODD_SYNCED, ABX_OK, 0, NULL, -1);
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
	abx__client_reply(c, seq, ABX_OK, NULL);
	abx__pod_delete(pod);
	return 1;
}

static void on_waiting_closed(uv_handle_t *handle)
{
	struct waiting *w = handle->data;

	if (--w->closing == 0)
		abx__free(w);
}

void abx__client_waiting_end(struct waiting *w)
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
	abx__client_waiting_end(w);
	if (fd >= 0) {
		abx__client_send(c, ABX__PODD_RE, ABX_OK, seq, NULL, fd);
		return;
	}
	abx__error_errno(&err, ABX_EUNAVAILABLE, error, "the port did not answer");
	abx__client_reply(c, seq, ABX_EUNAVAILABLE, err);
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
	abx__client_send(c, ABX__PODD_RE, ABX_OK, seq, NULL, fd);
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
	abx__client_send(c, ABX__PODD_RE, ABX_OK, seq, o, -1);
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
	abx__client_send(c, ABX__PODD_RE, ABX_OK, seq, NULL, fd);
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

void abx__client_serve(struct client *c, const struct abx__podd_header *h,
		       const char *text, size_t len)
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
		abx__client_reply(c, h->seq, r, err);
	abx_error_free(err);
	json_object_put(body);
	if (tok)
		json_tokener_free(tok);
}
