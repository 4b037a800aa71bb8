/*
 * http2-answer.c - the answer of a stream of HTTP/2: its head as a list of fields, its
 * body in pieces that wait for the window, its trailers. See http2-priv.h.
 */
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "io/http2-priv.h"

#define PIECE_BYTES ((size_t)16 << 10)

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
	s->moved = h2_now(s);
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
		s->moved = h2_now(s);
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
