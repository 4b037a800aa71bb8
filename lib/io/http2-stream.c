/*
 * http2-stream.c - one stream of HTTP/2 as an exchange: its life, its head put together,
 * its body handed over. See http2-priv.h.
 */
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "io/http2-priv.h"

/* ---- life ---- */

struct h2_stream *h2_stream_new(struct h2_session *session, int32_t id)
{
	struct h2_stream *stream = abx__calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->req.link = session->link;
	stream->req.ops = &h2_req_ops;
	stream->session = session;
	stream->id = id;
	stream->moved = h2_now(stream);
	stream->next = session->streams;
	if (stream->next)
		stream->next->prev = stream;
	session->streams = stream;
	return stream;
}

static void drop_out(struct h2_stream *stream)
{
	struct h2_piece *piece;

	while ((piece = stream->out)) {
		stream->out = piece->next;
		h2_spend(stream->session, piece);
	}
	stream->out_last = NULL;
	stream->out_len = 0;
}

static void drop_head(struct h2_stream *stream)
{
	abx__buf_done(&stream->text);
	abx__buf_done(&stream->cookie);
	abx__free(stream->method);
	abx__free(stream->target);
	abx__free(stream->authority);
	stream->method = stream->target = stream->authority = NULL;
}

static void forget_due(struct h2_stream *stream)
{
	struct h2_stream **at = &stream->session->due;

	while (*at && *at != stream)
		at = &(*at)->due_next;
	if (!*at)
		return;
	*at = stream->due_next;
	if (!*at)
		stream->session->due_tail = at;
}

void h2_stream_free(struct h2_stream *stream)
{
	struct h2_session *session = stream->session;

	if (stream->is_due)
		forget_due(stream);
	if (stream->prev)
		stream->prev->next = stream->next;
	else
		session->streams = stream->next;
	if (stream->next)
		stream->next->prev = stream->prev;
	drop_out(stream);
	drop_head(stream);
	abx__buf_done(&stream->in);
	abx__http_req_done(&stream->req);
	abx__free(stream);
}

void h2_stream_finish(struct h2_stream *stream, bool answered)
{
	abx__http_req *req = &stream->req;

	if (stream->is_over)
		return;
	stream->is_over = true;
	abx__buf_done(&stream->in);
	if (req->live) {
		req->live = false;
		if (req->closed)
			req->closed(req, answered, req->closed_userdata);
	}
	/* RFC 9113 section 8.1: the rest of a body nobody wants is told not to come. */
	if (!stream->is_closed && !stream->in_ended && answered)
		nghttp2_submit_rst_stream(stream->session->ng, NGHTTP2_FLAG_NONE,
					  stream->id, NGHTTP2_NO_ERROR);
	drop_out(stream);
}

/* ---- the head ---- */

static int put_pair(abx__buf *text, const char *name, size_t name_len, const char *value,
		    size_t value_len)
{
	int r = abx__buf_add(text, name, name_len);

	if (r == ABX_OK)
		r = abx__buf_addc(text, '\0');
	if (r == ABX_OK)
		r = abx__buf_add(text, value, value_len);
	return r == ABX_OK ? abx__buf_addc(text, '\0') : r;
}

static bool is_named(const char *name, size_t len, const char *wanted)
{
	return len == strlen(wanted) && memcmp(name, wanted, len) == 0;
}

/* nghttp2 has seen to it that each comes once, before the fields. */
static int take_pseudo(struct h2_stream *s, const char *name, size_t len,
		       const char *value, size_t value_len)
{
	char **at = is_named(name, len, ":method")      ? &s->method
		    : is_named(name, len, ":path")      ? &s->target
		    : is_named(name, len, ":authority") ? &s->authority
							: NULL;

	if (!at)
		return ABX_OK;
	abx__free(*at);
	*at = abx__strndup(value, value_len);
	return *at ? ABX_OK : ABX_ENOMEM;
}

int h2_stream_field(struct h2_stream *s, const char *name, size_t name_len,
		    const char *value, size_t value_len)
{
	int r;

	s->junk += name_len + value_len + 32;
	if (s->junk > ABX__HTTP_HEAD_MAX || s->fields == ABX__HTTP_FIELDS_MAX)
		s->refuse = 431;
	if (s->refuse)
		return s->junk > H2_JUNK_MOST ? ABX_EPROTO : ABX_OK;
	if (memchr(value, '\0', value_len))
		s->refuse = 400;
	if (name_len > 0 && name[0] == ':')
		return take_pseudo(s, name, name_len, value, value_len);
	if (is_named(name, name_len, "cookie")) { /* RFC 9113 section 8.2.3 */
		r = s->cookie.len > 0 ? abx__buf_add(&s->cookie, "; ", 2) : ABX_OK;
		return r == ABX_OK ? abx__buf_add(&s->cookie, value, value_len) : r;
	}
	s->fields++;
	return put_pair(&s->text, name, name_len, value, value_len);
}

/* RFC 9113 section 8.3.1: Host is what :authority says. */
static const char *add_implied(struct h2_stream *s, int *ret)
{
	bool has_host = false;

	for (const char *at = abx__buf_str(&s->text), *end = at + s->text.len;
	     at < end;) {
		const char *value = at + strlen(at) + 1;

		if (strcmp(at, "host") == 0) {
			if (has_host ||
			    (s->authority && strcasecmp(value, s->authority) != 0))
				return "Host differs from :authority, or is there twice";
			has_host = true;
		}
		at = value + strlen(value) + 1;
	}
	if (!has_host && !s->authority)
		return "neither :authority nor Host is there";
	if (!has_host)
		*ret = put_pair(&s->text, "host", 4, s->authority, strlen(s->authority));
	if (*ret == ABX_OK && s->cookie.len > 0)
		*ret = put_pair(&s->text, "cookie", 6, s->cookie.data, s->cookie.len);
	return NULL;
}

static int build_head(struct h2_stream *s, const char **why)
{
	int r = ABX_OK;

	if (s->refuse == 0) {
		*why = add_implied(s, &r);
		if (r < 0)
			return r;
		s->refuse = *why ? 400 : 0;
	} else {
		*why = s->refuse == 431 ? "the request head is too large"
					: "a NUL in the request head";
	}
	if (s->refuse == 0) {
		r = abx__http_head_make_request(&s->req.head, s->method ? s->method : "",
						s->target ? s->target : "",
						abx__buf_str(&s->text), s->text.len,
						&s->refuse, why);
		if (r != ABX_EPROTO && r < 0)
			return r;
	}
	if (s->refuse != 0) { /* enough of a head to be answered */
		r = abx__http_head_make_request(&s->req.head, "GET", "/", "", 0,
						&(int){ 0 }, &(const char *){ NULL });
	}
	return r;
}

static void refuse(struct h2_stream *s, const char *why)
{
	ABX_CLEANUP(abx__freep) char *text = abx__strf("%s\n", why);

	if (!text ||
	    abx__http_res_send(&s->req, s->refuse, "text/plain", text, strlen(text)) < 0)
		abx__http_res_abort(&s->req);
}

static void begin_exchange(struct h2_stream *s)
{
	abx__http_req *req = &s->req;
	const abx__http_server *server = s->session->link->server;
	const char *why = NULL;

	s->is_given = true;
	if (build_head(s, &why) < 0) {
		abx__http_res_abort(req);
		return;
	}
	drop_head(s);
	req->head.keep_alive = true;
	/* A body that is here already has a length, named or not. */
	if (s->in_ended && req->head.content_length < 0 && req->trailers.len == 0)
		req->head.content_length = (int64_t)s->in.len;
	req->head.chunked = req->head.content_length < 0;
	abx__http_req_frame(req);
	req->expect_pending = req->expect_pending && s->in.len == 0;
	req->live = true;
	if (s->refuse)
		refuse(s, why);
	else
		server->opts.on_request(req, server->opts.userdata);
}

/* ---- the body ---- */

static void widen(struct h2_stream *s)
{
	if (s->is_wide || s->in_ended)
		return;
	s->is_wide = true;
	nghttp2_session_set_local_window_size(s->session->ng, NGHTTP2_FLAG_NONE, s->id,
					      H2_WINDOW_READ);
}

/* True: something was delivered. */
static bool give_body(struct h2_stream *s)
{
	size_t most = s->session->link->server->opts.read_chunk_bytes, done = 0;
	abx__http_req *req = &s->req;

	if (!abx__http_req_wants_body(req))
		return false;
	widen(s);
	while (done < s->in.len && req->all.r == ABX_OK &&
	       abx__http_req_wants_body(req)) {
		size_t len = s->in.len - done < most ? s->in.len - done : most;

		req->expect_pending = false;
		abx__http_req_tell(req, s->in.data + done, len, ABX_OK);
		done += len;
	}
	if (done == s->in.len)
		abx__buf_done(&s->in);
	else
		abx__buf_consume(&s->in, done);
	if (done > 0 && !s->is_closed)
		nghttp2_session_consume_stream(s->session->ng, s->id, done);
	if (!abx__http_req_wants_body(req))
		return done > 0;
	if (req->all.r == ABX_OK && !(s->in_ended && s->in.len == 0))
		return done > 0;
	req->body.done = s->in_ended && s->in.len == 0;
	abx__http_req_tell(req, NULL, 0, req->all.r);
	return true;
}

bool h2_stream_run(struct h2_stream *s)
{
	abx__http_req *req = &s->req;

	if (s->is_whole && !s->is_given && !s->is_closed)
		begin_exchange(s);
	while (req->live && !s->is_closed && !s->is_broken &&
	       (abx__http_req_drain(req) || give_body(s)))
		;
	if (req->live && (s->is_closed || s->is_broken) &&
	    !(req->res == RES_ENDED && s->out_ended)) {
		if (abx__http_req_wants_body(req))
			abx__http_req_tell(req, NULL, 0, ABX_EIO);
		h2_stream_finish(s, false);
	}
	if (req->res == RES_ENDED && s->out_ended)
		h2_stream_finish(s, true);
	if (!s->is_closed)
		return true;
	h2_stream_finish(s, false);
	h2_stream_free(s);
	return false;
}
