/*
 * http-res.c - the answer side of the server: what handlers may call when, and
 * HTTP/1.1's heads and framing. How bytes reach the kernel is outq.c's.
 */
#include <http_parser.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "io/http-server-priv.h"

size_t abx__http_link_queued(const abx__http_link *link)
{
	return abx__outq_queued(&link->out);
}

static bool is_dead(const abx__http_link *link)
{
	return link->out.broken || link->state == LINK_CLOSING;
}

/* What a write leaves to do: watch a peer that does not take it, call `drain` later, meet
 * an error. */
static void after_write(abx__http_link *link)
{
	if (uv_stream_get_write_queue_size(&link->io.stream) > 0)
		abx__http_link_write_queued(link);
	abx__http_res_note_queue(&link->req);
	abx__http_link_kick(link);
}

void abx__http_res_note_queue(abx__http_req *req)
{
	if (req->drain && req->ops->queued(req) > req->drain_low)
		req->drain_due = true;
}

void abx__http_link_flush(abx__http_link *link)
{
	if (link->out.pending.len == 0 || is_dead(link))
		return;
	abx__outq_flush(&link->out);
	after_write(link);
}

static void shutdown_cb(uv_shutdown_t *req, int status)
{
	abx__http_link *link = req->data;

	if (link->state == LINK_CLOSING)
		return;
	link->shut_done = true;
	if (status < 0)
		link->out.broken = true;
	abx__http_link_run(link);
}

void abx__http_link_shut(abx__http_link *link)
{
	if (link->shut || is_dead(link))
		return;
	link->shut = true;
	abx__outq_end(&link->out);
	link->shutdown.data = link;
	if (uv_shutdown(&link->shutdown, &link->io.stream, shutdown_cb) < 0) {
		link->out.broken = true;
		abx__http_link_kick(link);
	}
}

/* ---- heads ---- */

static const char *reason_of(int status)
{
	const char *reason = http_status_str((enum http_status)status);

	return reason[0] == '<' ? "" : reason;
}

void abx__http_link_refuse(abx__http_link *link, int status, const char *why)
{
	int r;

	r = abx__outq_put(&link->out,
			  "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: text/plain\r\n"
			  "Content-Length: %zu\r\nConnection: close\r\n\r\n%s\n",
			  status, reason_of(status), abx__http_server_date(link->server),
			  strlen(why) + 1, why);
	abx__http_req_done(&link->req);
	if (r < 0) {
		abx__http_link_abort(link);
		return;
	}
	abx__http_link_flush(link);
	link->state = LINK_LINGER;
	abx__http_link_shut(link);
	abx__http_link_set_deadline(link, LINGER_MS);
}

int abx__http_res_header(abx__http_req *req, const char *name, const char *value)
{
	if (req->ops->is_dead(req))
		return ABX_EIO;
	if (req->res != RES_NONE)
		return ABX_ESTATE;
	if (!abx__http_name_is_valid(name) || !abx__http_value_is_valid(value))
		return ABX_EINVAL;
	/* The framing is ours: a second one would let an answer be read in two ways. */
	if (strcasecmp(name, "content-length") == 0 ||
	    strcasecmp(name, "transfer-encoding") == 0)
		return ABX_EINVAL;
	if (strcasecmp(name, "connection") == 0) {
		if (abx__http_list_has(value, "close"))
			req->close = true;
		return ABX_OK;
	}
	if (strcasecmp(name, "date") == 0)
		req->has_date = true;
	return abx__buf_addf(&req->fields, "%s: %s\r\n", name, value);
}

int abx__http_res_interim(abx__http_req *req, int status)
{
	int r;

	if (req->ops->is_dead(req))
		return ABX_EIO;
	if (req->res != RES_NONE || status < 100 || status > 199 || status == 101)
		return req->res != RES_NONE ? ABX_ESTATE : ABX_EINVAL;
	/* RFC 9110 section 15.2: never to an HTTP/1.0 client */
	r = req->head.minor > 0 ? req->ops->interim(req, status) : ABX_OK;
	if (r < 0)
		return r;
	abx__buf_clear(&req->fields);
	req->has_date = false;
	return ABX_OK;
}

static int http1_interim(abx__http_req *req, int status)
{
	int r = abx__outq_put(&req->link->out, "HTTP/1.1 %d %s\r\n%s\r\n", status,
			      reason_of(status),
			      status == 100 ? "" : abx__buf_str(&req->fields));

	if (r == ABX_OK && status != 100)
		abx__http_link_flush(req->link);
	return r;
}

/* A body nobody asked for that is too long to skip costs the connection. */
static bool is_unread_dear(const abx__http_req *req)
{
	if (req->body.done || (req->on_body && req->all.r == ABX_OK))
		return false;
	return req->expect_pending || req->body.framing != ABX__HTTP_LENGTH ||
	       req->body.left > DISCARD_MOST;
}

static enum res_kind kind_for(const abx__http_req *req, int status, int64_t length)
{
	if (strcmp(req->head.method, "HEAD") == 0 || status == 204 || status == 304)
		return RES_NO_BODY;
	if (length >= 0)
		return RES_LENGTH;
	return req->head.minor > 0 ? RES_CHUNKED : RES_UNTIL_CLOSE;
}

static int put_head(abx__http_req *req, int status, int64_t length,
		    const char *content_type)
{
	abx__buf *out = &req->link->out.pending;
	bool keep;
	int r;

	if (req->kind == RES_UNTIL_CLOSE || req->link->server->closing ||
	    is_unread_dear(req))
		req->close = true;
	keep = req->head.keep_alive && !req->close;
	r = abx__buf_addf(out, "HTTP/1.1 %d %s\r\n", status, reason_of(status));
	if (r == ABX_OK && !req->has_date)
		r = abx__buf_addf(out, "Date: %s\r\n",
				  abx__http_server_date(req->link->server));
	if (r == ABX_OK && content_type)
		r = abx__buf_addf(out, "Content-Type: %s\r\n", content_type);
	if (r == ABX_OK)
		r = abx__buf_add(out, abx__buf_str(&req->fields), req->fields.len);
	if (r == ABX_OK && req->kind == RES_CHUNKED)
		r = abx__buf_adds(out, "Transfer-Encoding: chunked\r\n");
	else if (r == ABX_OK && length >= 0 && status != 204 &&
		 req->kind != RES_UNTIL_CLOSE)
		r = abx__buf_addf(out, "Content-Length: %lld\r\n", (long long)length);
	if (r == ABX_OK && !keep)
		r = abx__buf_adds(out, "Connection: close\r\n");
	else if (r == ABX_OK && req->head.minor == 0)
		r = abx__buf_adds(out, "Connection: keep-alive\r\n");
	return r == ABX_OK ? abx__buf_adds(out, "\r\n") : r;
}

static int http1_begin(abx__http_req *req, int status, int64_t length,
		       const char *content_type)
{
	abx__http_link *link = req->link;
	size_t before = link->out.pending.len;
	int r = put_head(req, status, length, content_type);

	if (r < 0)
		link->out.pending.len = before;
	return r;
}

static int begin(abx__http_req *req, int status, int64_t length, const char *content_type)
{
	int r;

	if (req->ops->is_dead(req))
		return ABX_EIO;
	if (req->res != RES_NONE)
		return ABX_ESTATE;
	if (status < 200 || status > 999)
		return ABX_EINVAL;
	if (content_type && !abx__http_value_is_valid(content_type))
		return ABX_EINVAL;
	req->kind = kind_for(req, status, length);
	req->left = length;
	r = req->ops->begin(req, status, length, content_type);
	if (r < 0)
		return r;
	abx__buf_done(&req->fields);
	req->res = RES_BEGUN;
	return ABX_OK;
}

int abx__http_res_begin(abx__http_req *req, int status, int64_t length)
{
	int r;

	r = begin(req, status, length < 0 ? -1 : length, NULL);
	if (r == ABX_OK)
		req->ops->kick(req);
	return r;
}

static void http1_ended(abx__http_req *req)
{
	/* Outside a frame the bytes need not wait for the loop's turn; what follows from
	 * the end does. */
	if (req->link->depth == 0)
		abx__http_link_flush(req->link);
	abx__http_link_kick(req->link);
}

static int finish(abx__http_req *req)
{
	req->res = RES_ENDED;
	req->ops->ended(req);
	return ABX_OK;
}

int abx__http_res_send(abx__http_req *req, int status, const char *content_type,
		       const void *data, size_t len)
{
	int r;

	r = begin(req, status, (int64_t)len, content_type);
	if (r < 0)
		return r;
	if (req->kind == RES_LENGTH && len > 0) {
		req->left = 0;
		r = req->ops->write(req, data, len);
		if (r < 0) {
			abx__http_res_abort(req);
			return r;
		}
	}
	return finish(req);
}

/* Checks and counts a piece; 0: nothing of it is sent (HEAD and the like), 1: send it. */
static int admit(abx__http_req *req, size_t len)
{
	if (req->ops->is_dead(req))
		return ABX_EIO;
	if (req->res != RES_BEGUN)
		return ABX_ESTATE;
	if (req->kind == RES_NO_BODY || len == 0)
		return 0;
	if (req->kind == RES_LENGTH) {
		if ((uint64_t)req->left < len)
			return ABX_ETOOBIG;
		req->left -= (int64_t)len;
	}
	return 1;
}

/* The chunk's head, if there is one; *ret_tail is what goes behind the data. */
static int put_chunk_head(abx__http_req *req, size_t len, const char **ret_tail)
{
	*ret_tail = req->kind == RES_CHUNKED ? "\r\n" : "";
	return req->kind == RES_CHUNKED ? abx__outq_put(&req->link->out, "%zx\r\n", len)
					: ABX_OK;
}

static int http1_write(abx__http_req *req, const void *data, size_t len)
{
	const char *tail;
	int r = put_chunk_head(req, len, &tail);

	if (r == ABX_OK)
		r = abx__outq_write(&req->link->out, data, len, tail);
	if (r < 0)
		req->link->out.broken = true; /* the framing may be half out */
	after_write(req->link);
	return r;
}

int abx__http_res_write(abx__http_req *req, const void *data, size_t len)
{
	int r = admit(req, len);

	return r <= 0 ? r : req->ops->write(req, data, len);
}

/* For a connection the kernel cannot move bytes to. */
static int write_from_tube(abx__http_req *req, abx__tube *tube)
{
	ABX_CLEANUP(abx__freep) char *piece = abx__malloc(ABX__TUBE_PIECE);
	int r = piece ? ABX_OK : ABX_ENOMEM;

	while (r == ABX_OK && tube->held > 0) {
		size_t n = abx__tube_take(tube, piece, ABX__TUBE_PIECE);

		r = n > 0 ? req->ops->write(req, piece, n) : ABX_EIO;
	}
	return r;
}

int abx__http_res_pour(abx__http_req *req, abx__tube *tube, size_t len)
{
	int r;

	if (req->res == RES_BEGUN && req->kind != RES_LENGTH && req->kind != RES_NO_BODY)
		return ABX_ESTATE;
	r = admit(req, len);
	if (r < 0)
		return r;
	if (r == 0) {
		abx__tube_drop(tube);
		return ABX_OK;
	}
	if (!abx__http_req_takes_tube(req))
		return write_from_tube(req, tube);
	r = abx__outq_pour(&req->link->out, tube);
	if (r < 0)
		req->link->out.broken = true;
	after_write(req->link);
	return r;
}

static int http1_write_ref(abx__http_req *req, const void *data, size_t len,
			   void (*done)(void *userdata), void *userdata)
{
	const char *tail = "";
	int r = len > 0 ? put_chunk_head(req, len, &tail) : ABX_OK;

	if (r == ABX_OK)
		r = abx__outq_write_ref(&req->link->out, data, len, tail, done, userdata);
	if (r < 0)
		req->link->out.broken = true;
	after_write(req->link);
	return r;
}

int abx__http_res_write_ref(abx__http_req *req, const void *data, size_t len,
			    void (*done)(void *userdata), void *userdata)
{
	int sends = admit(req, len);

	if (sends < 0)
		return sends;
	return req->ops->write_ref(req, data, sends ? len : 0, done, userdata);
}

int abx__http_res_trailer(abx__http_req *req, const char *name, const char *value)
{
	if (req->ops->is_dead(req))
		return ABX_EIO;
	if (req->res != RES_BEGUN)
		return ABX_ESTATE;
	if (!abx__http_name_is_valid(name) || !abx__http_value_is_valid(value))
		return ABX_EINVAL;
	return abx__buf_addf(&req->fields, "%s: %s\r\n", name, value);
}

static int http1_end(abx__http_req *req)
{
	if (req->kind != RES_CHUNKED)
		return ABX_OK;
	return abx__outq_put(&req->link->out, "0\r\n%s\r\n", abx__buf_str(&req->fields));
}

int abx__http_res_end(abx__http_req *req)
{
	int r;

	if (req->ops->is_dead(req))
		return ABX_EIO;
	if (req->res != RES_BEGUN)
		return ABX_ESTATE;
	if (req->kind == RES_LENGTH && req->left > 0) {
		abx__http_res_abort(req);
		return ABX_ESTATE;
	}
	r = req->ops->end(req);
	if (r < 0) {
		abx__http_res_abort(req);
		return r;
	}
	return finish(req);
}

void abx__http_res_abort(abx__http_req *req)
{
	req->ops->abort(req);
}

bool abx__http_res_begun(const abx__http_req *req)
{
	return req->res != RES_NONE;
}

size_t abx__http_res_queued(const abx__http_req *req)
{
	return req->ops->queued(req);
}

void abx__http_res_on_drain(abx__http_req *req, size_t low,
			    void (*drain)(abx__http_req *req, void *userdata),
			    void *userdata)
{
	req->drain = drain;
	req->drain_low = low;
	req->drain_userdata = userdata;
	req->drain_due = drain != NULL;
	req->ops->kick(req);
}

/* ---- upgrades ---- */

int abx__http_req_hijack(abx__http_req *req)
{
	return req->ops->hijack(req);
}

static int http1_hijack(abx__http_req *req)
{
	abx__http_link *link = req->link;

	if (link->state != LINK_EXCHANGE)
		return ABX_EIO;
	if (req->res != RES_NONE)
		return ABX_ESTATE;
	link->state = LINK_RAW;
	link->deadline = 0;
	req->res = RES_BEGUN;
	req->kind = RES_RAW;
	abx__http_link_kick(link);
	return ABX_OK;
}

/* ---- HTTP/1.1 ---- */

static bool http1_is_dead(const abx__http_req *req)
{
	return is_dead(req->link);
}

static void http1_kick(abx__http_req *req)
{
	abx__http_link_kick(req->link);
}

static size_t http1_queued(const abx__http_req *req)
{
	return abx__http_link_queued(req->link);
}

static bool http1_is_buffered(const abx__http_req *req)
{
	return req->link->ahead > 0 || req->link->in.len > 0;
}

static void http1_abort(abx__http_req *req)
{
	abx__http_link_abort(req->link);
}

const abx__http_req_ops abx__http1_ops = {
	.is_dead = http1_is_dead,
	.kick = http1_kick,
	.queued = http1_queued,
	.is_buffered = http1_is_buffered,
	.interim = http1_interim,
	.begin = http1_begin,
	.write = http1_write,
	.write_ref = http1_write_ref,
	.end = http1_end,
	.ended = http1_ended,
	.hijack = http1_hijack,
	.abort = http1_abort,
};
