/*
 * http2-stream.c - one stream of HTTP/2 as an exchange: its head put together, its body
 * handed over, its answer cut into frames. See http2-priv.h.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "io/http2-priv.h"

#define PIECE_BYTES ((size_t)16 << 10)

static uint64_t now_of(const struct h2_stream *stream)
{
	return uv_now(stream->session->link->server->opts.loop);
}

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
	stream->moved = now_of(stream);
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

/* ---- the answer ---- */

static struct h2_stream *stream_of(const abx__http_req *req)
{
	return (struct h2_stream *)req;
}

static bool h2_is_dead(const abx__http_req *req)
{
	const struct h2_stream *s = stream_of(req);

	return s->is_closed || s->is_broken || s->is_over ||
	       s->session->link->state != LINK_OTHER || s->session->link->out.broken;
}

static void h2_req_kick(abx__http_req *req)
{
	h2_kick(stream_of(req));
}

static size_t h2_queued(const abx__http_req *req)
{
	return stream_of(req)->out_len;
}

static bool h2_is_buffered(const abx__http_req *req)
{
	return stream_of(req)->in.len > 0;
}

struct fields {
	nghttp2_nv *list;
	size_t count;
	char *text; /* what the list points into */
};

static void add_field(struct fields *f, char *name, char *value)
{
	for (char *c = name; *c; c++) {
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	}
	f->list[f->count++] = (nghttp2_nv){
		.name = (uint8_t *)name,
		.value = (uint8_t *)value,
		.namelen = strlen(name),
		.valuelen = strlen(value),
	};
}

/* RFC 9113 section 8.2.2: what only a connection of HTTP/1.1 has. */
static bool is_of_http1(const char *name)
{
	return strcasecmp(name, "keep-alive") == 0 ||
	       strcasecmp(name, "proxy-connection") == 0 ||
	       strcasecmp(name, "upgrade") == 0;
}

/* "Name: value\r\n"... becomes a list; `text` is a copy of it. */
static void split_fields(struct fields *f, char *text)
{
	while (*text) {
		char *end = strstr(text, "\r\n"), *colon = strstr(text, ": ");

		if (!end || !colon || colon > end)
			return;
		*colon = *end = '\0';
		if (!is_of_http1(text))
			add_field(f, text, colon + 2);
		text = end + 2;
	}
}

static int make_fields(struct fields *f, const abx__buf *text)
{
	size_t lines = 0;

	for (size_t i = 0; i < text->len; i++)
		lines += text->data[i] == '\n';
	f->count = 0;
	f->text = abx__strndup(abx__buf_str(text), text->len);
	f->list = f->text ? abx__calloc(lines + 1, sizeof(*f->list)) : NULL;
	if (!f->list) {
		abx__free(f->text);
		return ABX_ENOMEM;
	}
	split_fields(f, f->text);
	return ABX_OK;
}

static void free_fields(struct fields *f)
{
	abx__free(f->list);
	abx__free(f->text);
}

static int h2_interim(abx__http_req *req, int status)
{
	struct h2_stream *s = stream_of(req);
	ABX_CLEANUP_BUF abx__buf text = ABX__BUF_INIT;
	struct fields f;
	int r = abx__buf_addf(&text, ":status: %d\r\n%s", status,
			      abx__buf_str(&req->fields));

	if (r == ABX_OK)
		r = make_fields(&f, &text);
	if (r < 0)
		return r;
	r = nghttp2_submit_headers(s->session->ng, NGHTTP2_FLAG_NONE, s->id, NULL, f.list,
				   f.count, NULL);
	free_fields(&f);
	h2_kick(s);
	return r == 0 ? ABX_OK : ABX_EIO;
}

static int submit_trailers(struct h2_stream *s)
{
	struct fields f;
	int r = make_fields(&f, &s->req.fields);

	if (r < 0)
		return r;
	r = nghttp2_submit_trailer(s->session->ng, s->id, f.list, f.count);
	free_fields(&f);
	return r == 0 ? ABX_OK : ABX_EIO;
}

static ssize_t on_read(nghttp2_session *ng, int32_t id, uint8_t *buf, size_t size,
		       uint32_t *flags, nghttp2_data_source *source, void *userdata)
{
	struct h2_stream *s = source->ptr;
	size_t len = s->out_len < size ? s->out_len : size;
	bool ends = s->req.res == RES_ENDED && len == s->out_len;

	(void)ng;
	(void)id;
	(void)buf;
	(void)userdata;
	if (len == 0 && !ends) {
		s->sleeps = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	if (ends)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (ends && s->req.fields.len > 0) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		if (submit_trailers(s) < 0)
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	return (ssize_t)len;
}

int h2_stream_send(nghttp2_session *ng, nghttp2_frame *frame, const uint8_t *head,
		   size_t len, nghttp2_data_source *source, void *userdata)
{
	struct h2_stream *s = source->ptr;
	abx__outq *out = &s->session->link->out;
	int r = abx__outq_gather(out, head, 9); /* no padding is asked for */

	(void)ng;
	(void)frame;
	(void)userdata;
	while (len > 0 && r == ABX_OK) {
		struct h2_piece *piece = s->out;
		size_t n = piece->len < len ? piece->len : len;

		r = abx__outq_gather(out, piece->data, n);
		piece->data += n;
		piece->len -= n;
		len -= n;
		s->out_len -= n;
		if (piece->len > 0)
			continue;
		s->out = piece->next;
		if (!s->out)
			s->out_last = NULL;
		h2_spend(s->session, piece);
	}
	s->moved = now_of(s);
	if (s->req.drain_due)
		h2_due(s);
	return r == ABX_OK ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int put_answer_head(const abx__http_req *req, abx__buf *text, int status,
			   int64_t length, const char *content_type)
{
	int r = abx__buf_addf(text, ":status: %d\r\n", status);

	if (r == ABX_OK && !req->has_date)
		r = abx__buf_addf(text, "date: %s\r\n",
				  abx__http_server_date(req->link->server));
	if (r == ABX_OK && content_type)
		r = abx__buf_addf(text, "content-type: %s\r\n", content_type);
	if (r == ABX_OK)
		r = abx__buf_add(text, abx__buf_str(&req->fields), req->fields.len);
	if (r == ABX_OK && length >= 0 && status != 204)
		r = abx__buf_addf(text, "content-length: %lld\r\n", (long long)length);
	return r;
}

static int h2_begin(abx__http_req *req, int status, int64_t length,
		    const char *content_type)
{
	struct h2_stream *s = stream_of(req);
	nghttp2_data_provider body = { .source.ptr = s, .read_callback = on_read };
	bool has_body = req->kind == RES_CHUNKED || (req->kind == RES_LENGTH && length);
	ABX_CLEANUP_BUF abx__buf text = ABX__BUF_INIT;
	struct fields f;
	int r = put_answer_head(req, &text, status, length, content_type);

	if (r == ABX_OK)
		r = make_fields(&f, &text);
	if (r < 0)
		return r;
	r = nghttp2_submit_response(s->session->ng, s->id, f.list, f.count,
				    has_body ? &body : NULL);
	free_fields(&f);
	return r == 0 ? ABX_OK : ABX_EIO;
}

static void added(struct h2_stream *s, size_t len)
{
	s->out_len += len;
	if (s->sleeps) {
		s->sleeps = false;
		s->moved = now_of(s);
		nghttp2_session_resume_data(s->session->ng, s->id);
	}
	abx__http_res_note_queue(&s->req);
	h2_kick(s);
}

static void append(struct h2_stream *s, struct h2_piece *piece)
{
	if (s->out_last)
		s->out_last->next = piece;
	else
		s->out = piece;
	s->out_last = piece;
}

static int h2_write(abx__http_req *req, const void *data, size_t len)
{
	struct h2_stream *s = stream_of(req);
	struct h2_piece *last = s->out_last;
	size_t size = len < PIECE_BYTES ? PIECE_BYTES : len;

	/* Small pieces gather; what `data` has moved by is room no more. */
	if (last && !last->done && last->size > 0) {
		size_t used = (size_t)(last->data - last->own) + last->len;

		if (last->size - used >= len) {
			memcpy(last->own + used, data, len);
			last->len += len;
			added(s, len);
			return ABX_OK;
		}
	}
	if (!last && len < PIECE_BYTES / 4)
		size = len; /* the most common answer is one short piece */
	last = abx__malloc(sizeof(*last) + size);
	if (!last)
		return ABX_ENOMEM;
	memset(last, 0, sizeof(*last));
	last->data = last->own;
	last->len = len;
	last->size = size;
	memcpy(last->own, data, len);
	append(s, last);
	added(s, len);
	return ABX_OK;
}

static int h2_write_ref(abx__http_req *req, const void *data, size_t len,
			void (*done)(void *userdata), void *userdata)
{
	struct h2_stream *s = stream_of(req);
	struct h2_piece *piece = abx__calloc(1, sizeof(*piece));

	if (!piece)
		return ABX_ENOMEM;
	piece->data = data;
	piece->len = len;
	piece->done = done;
	piece->userdata = userdata;
	if (len > 0) {
		append(s, piece);
		added(s, len);
	} else { /* nothing of it is sent */
		h2_spend(s->session, piece);
		h2_kick(s);
	}
	return ABX_OK;
}

static int h2_end(abx__http_req *req)
{
	(void)req;
	return ABX_OK;
}

static void h2_ended(abx__http_req *req)
{
	added(stream_of(req), 0);
}

static int h2_hijack(abx__http_req *req)
{
	(void)req;
	return ABX_EUNSUPPORTED;
}

static void h2_abort(abx__http_req *req)
{
	struct h2_stream *s = stream_of(req);

	if (h2_is_dead(req))
		return;
	s->is_broken = true;
	nghttp2_submit_rst_stream(s->session->ng, NGHTTP2_FLAG_NONE, s->id,
				  NGHTTP2_INTERNAL_ERROR);
	h2_kick(s);
}

const abx__http_req_ops h2_req_ops = {
	.is_dead = h2_is_dead,
	.kick = h2_req_kick,
	.queued = h2_queued,
	.is_buffered = h2_is_buffered,
	.interim = h2_interim,
	.begin = h2_begin,
	.write = h2_write,
	.write_ref = h2_write_ref,
	.end = h2_end,
	.ended = h2_ended,
	.hijack = h2_hijack,
	.abort = h2_abort,
};
