/*
 * http-req.c - the request side of an HTTP/1.1 link: bytes become heads, bodies and raw
 * streams, one exchange after the other. step() is the whole state machine; see
 * http-server-priv.h for the rules.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "io/http-server-priv.h"

static void advance(struct cursor *in, size_t n)
{
	in->data += n;
	in->len -= n;
}

/* ---- the exchange's begin and end ---- */

static void start_exchange(abx__http_link *link, size_t ahead)
{
	abx__http_req *req = &link->req;

	abx__http_req_frame(req);
	req->live = true;
	link->is_used = true;
	link->state = LINK_EXCHANGE;
	link->deadline = 0;
	link->ahead = ahead;
	link->server->opts.on_request(req, link->server->opts.userdata);
	link->ahead = 0;
}

static void give_back_memory(abx__http_link *link, const struct cursor *in)
{
	abx__http_server *server = link->server;

	if (in->len == 0) {
		abx__buf_done(&link->in);
		abx__buf_done(&link->out.pending);
	}
	/* Not the read buffer itself: the frame may still be taking from it. */
	if (link->is_bulk) {
		link->is_bulk = false;
		server->bulk--;
	}
}

/* The answer is out. */
static void finish_exchange(abx__http_link *link, struct cursor *in)
{
	abx__http_req *req = &link->req;
	bool keep = req->head.keep_alive && !req->close && req->kind != RES_UNTIL_CLOSE &&
		    !link->eof && !link->server->closing;
	bool unread = !req->body.done;
	bool skip = unread && !req->expect_pending &&
		    req->body.framing == ABX__HTTP_LENGTH &&
		    req->body.left <= DISCARD_MOST;
	abx__http_body body = req->body; /* to skip; it has no trailers */

	req->live = false;
	if (req->closed)
		req->closed(req, true, req->closed_userdata);
	abx__http_req_done(req);
	give_back_memory(link, in);
	if (link->state == LINK_CLOSING)
		return;
	if (!keep || (unread && !skip)) {
		if (unread || in->len > 0)
			abx__http_link_linger(link);
		else
			abx__http_link_abort(link);
		return;
	}
	req->body = body;
	link->state = skip ? LINK_DISCARD : LINK_HEAD;
	link->scanned = 0;
	abx__http_link_set_deadline(link, skip ? link->server->opts.head_timeout_ms
					       : link->server->opts.idle_timeout_ms);
}

/* ---- steps: true means "again" ---- */

void abx__http_link_switch(abx__http_link *link)
{
	link->protocol = link->server->opts.http2;
	link->state = LINK_OTHER;
	link->deadline = 0;
	if (link->protocol->start(link) < 0)
		abx__http_link_abort(link);
}

/* What a client of HTTP/2 says first, up to its blank line (RFC 9113 section 3.4). */
static bool is_preface(const abx__http_link *link, const char *data, size_t len)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\n";

	return link->server->opts.http2 && !link->is_used && len == sizeof(preface) - 1 &&
	       memcmp(data, preface, len) == 0;
}

/* NULL: a method may begin with `c`. Else a blank line may never come: said at once. */
static const char *refuse_first_byte(unsigned char c)
{
	if (c == 0x16) /* a record of a TLS handshake */
		return "this port speaks plain HTTP, not TLS: use http://";
	return c <= ' ' || c >= 0x7f ? "the request does not begin with a method" : NULL;
}

static bool step_head(abx__http_link *link, struct cursor *in)
{
	const abx__http_server_options *opts = &link->server->opts;
	const char *why = NULL;
	int status = 0, r;
	size_t n;

	while (link->scanned == 0 && in->len > 0 &&
	       (*in->data == '\r' || *in->data == '\n'))
		advance(in, 1);
	if (in->len == 0)
		return false;
	why = refuse_first_byte((unsigned char)*in->data);
	if (why) {
		abx__http_link_refuse(link, 400, why);
		return true;
	}
	n = abx__http_head_find(in->data, in->len, link->scanned);
	if (n > ABX__HTTP_HEAD_MAX || (n == 0 && in->len >= ABX__HTTP_HEAD_MAX)) {
		abx__http_link_refuse(link, 431, "the request head is too large");
		return true;
	}
	if (n == 0) {
		if (link->scanned == 0)
			abx__http_link_set_deadline(link, opts->head_timeout_ms);
		link->scanned = in->len;
		return false;
	}
	link->scanned = 0;
	if (is_preface(link, in->data, n)) {
		abx__http_link_switch(link);
		return true;
	}
	r = abx__http_head_parse_request(&link->req.head, in->data, n, &status, &why);
	advance(in, n);
	if (r == ABX_EPROTO)
		abx__http_link_refuse(link, status, why);
	else if (r < 0)
		abx__http_link_abort(link);
	else
		start_exchange(link, in->len);
	return true;
}

static void tell_body(abx__http_req *req, const char *data, size_t len, int r)
{
	req->link->deadline = 0; /* the wait starts over as the frame ends */
	abx__http_req_tell(req, data, len, r);
}

static bool step_body(abx__http_link *link, struct cursor *in)
{
	abx__http_req *req = &link->req;
	const char *piece;
	size_t len = in->len;
	ssize_t n;

	if (!abx__http_req_wants_body(req))
		return false;
	if (req->all.r < 0 || req->body.done) {
		if (req->all.r == ABX_OK)
			req->all.r = abx__http_trailers_split(&req->trailers);
		tell_body(req, NULL, 0, req->all.r);
		return true;
	}
	if (len == 0)
		return false;
	if (len > link->server->opts.read_chunk_bytes)
		len = link->server->opts.read_chunk_bytes;
	n = abx__http_body_next(&req->body, in->data, len, &piece, &len);
	if (n < 0) {
		advance(in, in->len);
		tell_body(req, NULL, 0, ABX_EPROTO);
		return true;
	}
	req->expect_pending = false;
	advance(in, (size_t)n);
	if (len > 0)
		tell_body(req, piece, len, ABX_OK);
	return true;
}

static bool step_exchange(abx__http_link *link, struct cursor *in)
{
	abx__http_req *req = &link->req;

	if (link->out.broken) {
		abx__http_link_abort(link);
		return false;
	}
	if (req->res == RES_ENDED) {
		abx__http_link_flush(link);
		if (link->out.broken || abx__http_link_queued(link) > 0)
			return link->out.broken;
		finish_exchange(link, in);
		return true;
	}
	return abx__http_req_drain(req) || step_body(link, in);
}

static bool raw_is_over(const abx__http_link *link)
{
	const abx__http_req *req = &link->req;

	return req->res == RES_ENDED && link->shut_done && link->eof &&
	       (req->body_told || !req->on_body);
}

static bool step_raw(abx__http_link *link, struct cursor *in)
{
	abx__http_req *req = &link->req;
	size_t len = in->len;
	const char *piece = in->data;

	if (link->out.broken) {
		abx__http_link_abort(link);
		return false;
	}
	if (req->res == RES_ENDED && !link->shut) {
		abx__http_link_flush(link);
		abx__http_link_shut(link);
	}
	if (raw_is_over(link)) {
		req->live = false;
		if (req->closed)
			req->closed(req, true, req->closed_userdata);
		abx__http_link_abort(link);
		return false;
	}
	if (abx__http_req_drain(req))
		return true;
	if (!req->on_body && req->res == RES_ENDED)
		advance(in, in->len); /* nobody will ever read it */
	if (!abx__http_req_wants_body(req))
		return false;
	if (len == 0 && !link->eof)
		return false;
	advance(in, len);
	tell_body(req, len > 0 ? piece : NULL, len, ABX_OK);
	return true;
}

static bool step_discard(abx__http_link *link, struct cursor *in)
{
	const char *piece;
	size_t len;
	ssize_t n;

	n = abx__http_body_next(&link->req.body, in->data, in->len, &piece, &len);
	advance(in, n > 0 ? (size_t)n : 0);
	if (!link->req.body.done)
		return false;
	link->state = LINK_HEAD;
	abx__http_link_set_deadline(link, link->server->opts.idle_timeout_ms);
	return true;
}

static bool step(abx__http_link *link, struct cursor *in)
{
	switch (link->state) {
	case LINK_HEAD:
		return step_head(link, in);
	case LINK_EXCHANGE:
		return step_exchange(link, in);
	case LINK_RAW:
		return step_raw(link, in);
	case LINK_OTHER:
		return link->protocol->step(link, in);
	case LINK_DISCARD:
		return step_discard(link, in);
	case LINK_LINGER:
		link->lingered += in->len;
		if (link->lingered > LINGER_MOST || link->out.broken)
			abx__http_link_abort(link);
		break;
	case LINK_HANDSHAKE:
	case LINK_CLOSING:
		break;
	}
	advance(in, in->len);
	return false;
}

/* ---- frames ---- */

static bool wants_read(const abx__http_link *link)
{
	const abx__http_req *req = &link->req;

	if (link->eof)
		return false;
	switch (link->state) {
	case LINK_OTHER:
		return link->protocol->wants_read(link);
	case LINK_HANDSHAKE:
	case LINK_HEAD:
	case LINK_DISCARD:
	case LINK_LINGER:
		return true;
	case LINK_EXCHANGE:
		/* With the body taken, reading on shows when the peer goes. */
		if (req->body.done)
			return link->in.len < PIPELINE_MOST;
		return abx__http_req_wants_body(req);
	case LINK_RAW:
		return abx__http_req_wants_body(req) ||
		       (!req->on_body && req->res == RES_ENDED);
	case LINK_CLOSING:
		break;
	}
	return false;
}

static bool takes_tube(const abx__http_link *link)
{
	const abx__http_req *req = &link->req;

	return req->tube && !req->tube_stuck && link->state == LINK_EXCHANGE &&
	       abx__http_req_wants_body(req) && req->body.framing == ABX__HTTP_LENGTH &&
	       !req->body.done && link->in.len == 0;
}

static void alloc_cb(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	abx__http_link *link = (abx__http_link *)handle;
	abx__http_server *server = link->server;
	bool bulk = link->state == LINK_RAW || link->state == LINK_OTHER ||
		    (link->state == LINK_EXCHANGE && !link->req.body.done &&
		     (link->req.body.framing == ABX__HTTP_CHUNKED ||
		      link->req.body.left > READ_SMALL));
	char **at = bulk ? &server->read_large : &server->read_small;
	size_t size = bulk ? server->opts.read_chunk_bytes : READ_SMALL;

	(void)suggested;
	/* Without a buffer libuv only tells us that there is something to read. */
	link->req.tube_asked = takes_tube(link);
	link->req.tube_stuck = false;
	if (link->req.tube_asked) {
		*buf = uv_buf_init(NULL, 0);
		return;
	}
	if (bulk && !link->is_bulk) {
		link->is_bulk = true;
		server->bulk++;
	}
	if (!*at)
		*at = abx__malloc(size);
	*buf = uv_buf_init(*at, *at ? (unsigned)size : 0);
}

static void tell_tube(abx__http_link *link, size_t len)
{
	abx__http_req *req = &link->req;

	abx__http_body_skip(&req->body, len);
	req->expect_pending = false;
	link->deadline = 0; /* the wait starts over as the frame ends */
	link->depth++;
	req->on_tube(req, len, req->body_userdata);
	link->depth--;
	abx__http_link_run(link);
}

/* Bytes moved into the tube and told; else what libuv would have said. */
static ssize_t read_tube(abx__http_link *link)
{
	abx__http_req *req = &link->req;
	uv_os_fd_t fd;
	ssize_t n;

	if (uv_fileno(&link->io.handle, &fd) < 0)
		return UV_EBADF;
	n = abx__tube_fill(req->tube, fd, req->body.left);
	if (n > 0) {
		tell_tube(link, (size_t)n);
		return 0;
	}
	if (n == 0)
		return UV_EOF;
	if (abx__tube_is_refused(n))
		req->tube = NULL;
	else if (n == -EAGAIN) /* if not empty, it may be full of small pieces */
		req->tube_stuck = req->tube->held > 0;
	else
		return n;
	return 0;
}

static void read_cb(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	abx__http_link *link = (abx__http_link *)stream;
	abx__http_server *server = link->server;

	if (n == UV_ENOBUFS && link->req.tube_asked)
		n = read_tube(link);
	if (n > 0 && link->tls)
		abx__http_link_feed_wire(link, buf->base, (size_t)n);
	else if (n > 0)
		abx__http_link_feed(link, buf->base, (size_t)n);
	else if (n == UV_EOF && link->tls)
		abx__http_link_wire_ended(link);
	else if (n == UV_EOF)
		abx__http_link_peer_ended(link);
	else if (n < 0)
		abx__http_link_peer_failed(link);
	if (server->bulk == 0) {
		abx__free(server->read_large);
		server->read_large = NULL;
	}
}

static void switch_reading(abx__http_link *link)
{
	bool wanted = wants_read(link);

	if (wanted == link->is_reading)
		return;
	link->is_reading = wanted;
	if (wanted && uv_read_start(&link->io.stream, alloc_cb, read_cb) < 0)
		abx__http_link_abort(link);
	else if (!wanted)
		uv_read_stop(&link->io.stream);
}

static void leave(abx__http_link *link)
{
	if (link->state == LINK_CLOSING)
		return;
	abx__http_link_flush(link);
	if (link->state == LINK_EXCHANGE) {
		/* With the answer begun both sides are streams, which may rest as long
		 * as they like. */
		if (!abx__http_req_wants_body(&link->req) || link->req.body.done ||
		    link->req.res != RES_NONE)
			link->deadline = 0;
		else if (link->deadline == 0)
			abx__http_link_set_deadline(link,
						    link->server->opts.idle_timeout_ms);
	}
	switch_reading(link);
}

static void run(abx__http_link *link, struct cursor *in)
{
	assert(link->depth == 0);
	link->depth++;
	while (step(link, in))
		;
	link->depth--;
}

void abx__http_link_run(abx__http_link *link)
{
	struct cursor in = { abx__buf_str(&link->in), link->in.len };
	size_t before = in.len;

	run(link, &in);
	if (before > in.len && link->in.len > 0)
		abx__buf_consume(&link->in, before - in.len);
	leave(link);
}

void abx__http_link_feed(abx__http_link *link, const char *data, size_t len)
{
	struct cursor in = { data, len };

	if (link->in.len > 0) {
		if (abx__buf_add(&link->in, data, len) < 0)
			abx__http_link_abort(link);
		abx__http_link_run(link);
		return;
	}
	run(link, &in);
	if (in.len > 0 && link->state != LINK_CLOSING &&
	    abx__buf_add(&link->in, in.data, in.len) < 0)
		abx__http_link_abort(link);
	leave(link);
}

static void tell_gone(abx__http_link *link)
{
	abx__http_req *req = &link->req;

	link->depth++;
	if (link->state == LINK_OTHER)
		link->protocol->gone(link);
	else if (req->live && abx__http_req_wants_body(req))
		tell_body(req, NULL, 0, ABX_EIO);
	link->depth--;
}

void abx__http_link_linger(abx__http_link *link)
{
	if (link->protocol) {
		tell_gone(link);
		link->protocol->free(link);
		link->protocol = NULL;
	}
	link->state = LINK_LINGER;
	abx__http_link_shut(link);
	abx__http_link_set_deadline(link, LINGER_MS);
}

void abx__http_link_peer_ended(abx__http_link *link)
{
	link->eof = true;
	if (link->state == LINK_RAW ||
	    (link->state == LINK_EXCHANGE && link->req.res == RES_ENDED)) {
		abx__http_link_run(link);
		return;
	}
	if (link->state == LINK_EXCHANGE || link->state == LINK_OTHER)
		tell_gone(link);
	abx__http_link_abort(link);
}

void abx__http_link_peer_failed(abx__http_link *link)
{
	tell_gone(link);
	abx__http_link_abort(link);
}
