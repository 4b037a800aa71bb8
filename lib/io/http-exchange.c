/*
 * http-exchange.c - the request as handlers see it, whatever carries it: what is known of
 * it, its body, its life. See http-server-priv.h.
 */
#include <string.h>

#include "base/alloc.h"
#include "io/http-server-priv.h"

/* ---- the exchange ---- */

void abx__http_req_done(abx__http_req *req)
{
	abx__http_link *link = req->link;
	const abx__http_req_ops *ops = req->ops;

	abx__http_head_done(&req->head);
	abx__buf_done(&req->fields);
	abx__buf_done(&req->trailers);
	abx__buf_done(&req->all.buf);
	memset(req, 0, sizeof(*req));
	req->link = link;
	req->ops = ops;
}

void abx__http_req_frame(abx__http_req *req)
{
	if (req->head.chunked)
		abx__http_body_init(&req->body, ABX__HTTP_CHUNKED, 0);
	else if (req->head.content_length > 0)
		abx__http_body_init(&req->body, ABX__HTTP_LENGTH,
				    (uint64_t)req->head.content_length);
	else
		abx__http_body_init(&req->body, ABX__HTTP_NO_BODY, 0);
	req->body.trailers = &req->trailers;
	req->expect_pending = req->head.expect_continue && !req->body.done;
}

bool abx__http_req_wants_body(const abx__http_req *req)
{
	return req->on_body && !req->paused && !req->body_told;
}

void abx__http_req_tell(abx__http_req *req, const char *data, size_t len, int r)
{
	if (!data) {
		req->body_told = true;
		if (r < 0)
			req->close = true;
	}
	req->on_body(req, data, len, r, req->body_userdata);
}

bool abx__http_req_drain(abx__http_req *req)
{
	if (!req->drain_due || !req->drain || req->ops->queued(req) > req->drain_low)
		return false;
	req->drain_due = false;
	req->drain(req, req->drain_userdata);
	return true;
}

/* ---- what handlers call ---- */

const char *abx__http_req_method(const abx__http_req *req)
{
	return req->head.method;
}

const char *abx__http_req_target(const abx__http_req *req)
{
	return req->head.target;
}

const char *abx__http_req_path(const abx__http_req *req)
{
	return req->head.path;
}

const char *abx__http_req_query(const abx__http_req *req)
{
	return req->head.query;
}

const char *abx__http_req_header(const abx__http_req *req, const char *name)
{
	return abx__http_head_get(&req->head, name);
}

bool abx__http_req_header_at(const abx__http_req *req, size_t index,
			     const char **ret_name, const char **ret_value)
{
	if (index >= req->head.count)
		return false;
	*ret_name = req->head.fields[index].name;
	*ret_value = req->head.fields[index].value;
	return true;
}

bool abx__http_req_header_has(const abx__http_req *req, const char *name,
			      const char *token)
{
	return abx__http_head_has_token(&req->head, name, token);
}

bool abx__http_req_has_body(const abx__http_req *req)
{
	return req->body.framing != ABX__HTTP_NO_BODY;
}

int64_t abx__http_req_content_length(const abx__http_req *req)
{
	if (req->head.chunked)
		return -1;
	return req->head.content_length > 0 ? req->head.content_length : 0;
}

bool abx__http_req_is_buffered(const abx__http_req *req)
{
	return req->ops->is_buffered(req);
}

bool abx__http_req_is_upgrade(const abx__http_req *req)
{
	return req->head.upgrade;
}

bool abx__http_req_is_unix(const abx__http_req *req)
{
	return req->link->is_unix;
}

bool abx__http_req_is_tls(const abx__http_req *req)
{
	return req->link->tls != NULL;
}

uv_loop_t *abx__http_req_loop(const abx__http_req *req)
{
	return req->link->server->opts.loop;
}

void abx__http_req_on_closed(abx__http_req *req,
			     void (*closed)(abx__http_req *req, bool answered,
					    void *userdata),
			     void *userdata)
{
	req->closed = closed;
	req->closed_userdata = userdata;
}

void abx__http_req_read(abx__http_req *req, abx__http_body_fn on_body, void *userdata)
{
	req->on_body = on_body;
	req->body_userdata = userdata;
	if (req->expect_pending) {
		req->expect_pending = false;
		if (req->res == RES_NONE && !req->ops->is_dead(req))
			req->ops->interim(req, 100);
	}
	req->ops->kick(req);
}

bool abx__http_req_takes_tube(const abx__http_req *req)
{
	return req->ops == &abx__http1_ops && !req->link->tls;
}

void abx__http_req_use_tube(abx__http_req *req, abx__tube *tube,
			    abx__http_tube_fn on_tube)
{
	req->tube = abx__http_req_takes_tube(req) ? tube : NULL;
	req->tube_stuck = false;
	req->on_tube = on_tube;
}

void abx__http_req_pause(abx__http_req *req)
{
	if (req->paused)
		return;
	req->paused = true;
	req->ops->kick(req);
}

void abx__http_req_resume(abx__http_req *req)
{
	if (!req->paused)
		return;
	req->paused = false;
	req->ops->kick(req);
}

bool abx__http_req_trailer_at(const abx__http_req *req, size_t index,
			      const char **ret_name, const char **ret_value)
{
	return req->body_told &&
	       abx__http_trailers_at(&req->trailers, index, ret_name, ret_value);
}

static void collect(abx__http_req *req, const char *data, size_t len, int r,
		    void *userdata)
{
	(void)userdata;
	if (!data) {
		req->all.done(req, r, r < 0 ? NULL : abx__buf_str(&req->all.buf),
			      r < 0 ? 0 : req->all.buf.len, req->all.userdata);
		abx__buf_done(&req->all.buf);
		return;
	}
	if (len > req->all.max - req->all.buf.len)
		req->all.r = ABX_ETOOBIG;
	else
		req->all.r = abx__buf_add(&req->all.buf, data, len);
}

void abx__http_req_read_all(abx__http_req *req, size_t max,
			    void (*done)(abx__http_req *req, int r, const char *data,
					 size_t len, void *userdata),
			    void *userdata)
{
	int64_t length = abx__http_req_content_length(req);

	req->all.max = max;
	req->all.done = done;
	req->all.userdata = userdata;
	req->all.buf.cap = max + 1;
	if (length >= 0 && (uint64_t)length > max) {
		/* Refused before a byte is asked for: no 100 (Continue), the connection
		 * ends with the answer. */
		req->all.r = ABX_ETOOBIG;
		req->on_body = collect;
		req->body_userdata = NULL;
		req->ops->kick(req);
		return;
	}
	if (length > 0 && length <= (int64_t)DISCARD_MOST)
		req->all.r = abx__buf_reserve(&req->all.buf, (size_t)length);
	abx__http_req_read(req, collect, NULL);
}
