/*
 * h2-wire.h - for tests: a client of HTTP/2 over wire.h's descriptor, nghttp2 underneath.
 * It turns the loop under test as wire.h does.
 */
#ifndef TESTS_LIB_H2_WIRE_H
#define TESTS_LIB_H2_WIRE_H

#include <nghttp2/nghttp2.h>
#include <stdlib.h>

#include "wire.h"

#define H2_WIRE_STREAMS 4096

struct h2_answer {
	int32_t id;
	int status;
	abx__buf head; /* "name: value\n"... of the answer */
	abx__buf trailers;
	abx__buf body;
	int interims;
	bool ended, closed;
	uint32_t code; /* when closed */
	/* what is sent */
	const char *data;
	size_t left;
	bool holds; /* more will come */
};

struct h2_wire {
	struct wire wire;
	nghttp2_session *ng;
	struct h2_answer *answers; /* by (id - 1) / 2 */
	bool goaway;
	uint32_t goaway_code;
	bool no_window; /* takes no more of a body than the first window */
	int refused;
};

static inline struct h2_answer *h2_answer(struct h2_wire *w, int32_t id)
{
	cr_assert(id > 0 && (id - 1) / 2 < H2_WIRE_STREAMS);
	return &w->answers[(id - 1) / 2];
}

static inline int h2w_header(nghttp2_session *ng, const nghttp2_frame *frame,
			     const uint8_t *name, size_t name_len, const uint8_t *value,
			     size_t value_len, uint8_t flags, void *userdata)
{
	struct h2_answer *a = h2_answer(userdata, frame->hd.stream_id);
	abx__buf *to = a->status >= 200 && frame->headers.cat == NGHTTP2_HCAT_HEADERS
			       ? &a->trailers
			       : &a->head;

	(void)ng;
	(void)flags;
	if (name_len == 7 && memcmp(name, ":status", 7) == 0) {
		a->status = atoi((const char *)value);
		a->interims += a->status < 200;
		return 0;
	}
	abx__buf_addf(to, "%.*s: %.*s\n", (int)name_len, name, (int)value_len, value);
	return 0;
}

static inline int h2w_data(nghttp2_session *ng, uint8_t flags, int32_t id,
			   const uint8_t *data, size_t len, void *userdata)
{
	struct h2_wire *w = userdata;

	(void)flags;
	abx__buf_add(&h2_answer(w, id)->body, data, len);
	if (!w->no_window)
		nghttp2_session_consume(ng, id, len);
	return 0;
}

static inline int h2w_frame(nghttp2_session *ng, const nghttp2_frame *frame,
			    void *userdata)
{
	struct h2_wire *w = userdata;
	struct h2_answer *a =
		frame->hd.stream_id > 0 ? h2_answer(w, frame->hd.stream_id) : NULL;

	(void)ng;
	if (frame->hd.type == NGHTTP2_GOAWAY) {
		w->goaway = true;
		w->goaway_code = frame->goaway.error_code;
	}
	if (a && (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
	    (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		a->ended = true;
	return 0;
}

static inline int h2w_close(nghttp2_session *ng, int32_t id, uint32_t code,
			    void *userdata)
{
	struct h2_wire *w = userdata;

	(void)ng;
	h2_answer(w, id)->closed = true;
	h2_answer(w, id)->code = code;
	w->refused += code == NGHTTP2_REFUSED_STREAM;
	return 0;
}

static inline ssize_t h2w_read(nghttp2_session *ng, int32_t id, uint8_t *buf, size_t size,
			       uint32_t *flags, nghttp2_data_source *source,
			       void *userdata)
{
	struct h2_answer *a = source->ptr;
	size_t n = a->left < size ? a->left : size;

	(void)ng;
	(void)id;
	(void)userdata;
	memcpy(buf, a->data, n);
	a->data += n;
	a->left -= n;
	if (a->left == 0 && a->holds && n == 0)
		return NGHTTP2_ERR_DEFERRED;
	if (a->left == 0 && !a->holds)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

static inline void h2_wire_start(struct h2_wire *w)
{
	nghttp2_session_callbacks *c;
	nghttp2_option *option;

	w->answers = calloc(H2_WIRE_STREAMS, sizeof(*w->answers));
	nghttp2_session_callbacks_new(&c);
	nghttp2_session_callbacks_set_on_header_callback(c, h2w_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, h2w_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(c, h2w_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(c, h2w_close);
	nghttp2_option_new(&option);
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_session_client_new2(&w->ng, c, w, option);
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(c);
	nghttp2_submit_settings(w->ng, NGHTTP2_FLAG_NONE, NULL, 0);
}

static inline void h2_wire_open(struct h2_wire *w, uv_loop_t *loop, uint16_t port)
{
	memset(w, 0, sizeof(*w));
	wire_open(&w->wire, loop, port);
	h2_wire_start(w);
}

static inline void h2_wire_turn(struct h2_wire *w)
{
	const uint8_t *data;
	ssize_t n;

	while ((n = nghttp2_session_mem_send(w->ng, &data)) > 0) {
		for (ssize_t at = 0; at < n && w->wire.fd >= 0;) {
			ssize_t sent = send(w->wire.fd, data + at, (size_t)(n - at),
					    MSG_NOSIGNAL);

			if (sent > 0)
				at += sent;
			else if (errno == EAGAIN)
				wire_turn(&w->wire);
			else
				break;
		}
	}
	wire_turn(&w->wire);
	if (w->wire.got.len > 0) {
		nghttp2_session_mem_recv(w->ng, (const uint8_t *)w->wire.got.data,
					 w->wire.got.len);
		abx__buf_clear(&w->wire.got);
	}
}

#define H2_UNTIL(w, cond)                                     \
	do {                                                  \
		int64_t end__ = abx__mono_ms() + 5000;        \
		while (!(cond) && abx__mono_ms() < end__)     \
			h2_wire_turn(w);                      \
		cr_assert(cond, "not within 5 s: %s", #cond); \
	} while (0)

#define H2_FIELD(n, v)                          \
	((nghttp2_nv){ .name = (uint8_t *)(n),  \
		       .value = (uint8_t *)(v), \
		       .namelen = strlen(n),    \
		       .valuelen = strlen(v) })

/* A request; `data` NULL: without a body. `more` is "name", "value", ..., NULL. */
static inline struct h2_answer *h2_ask_with(struct h2_wire *w, const char *method,
					    const char *path, const char *data,
					    size_t len, bool holds,
					    const char *const *more)
{
	nghttp2_nv nv[128] = { H2_FIELD(":method", method), H2_FIELD(":scheme", "http"),
			       H2_FIELD(":path", path), H2_FIELD(":authority", "test") };
	nghttp2_data_provider provider = { .read_callback = h2w_read };
	int32_t id = (int32_t)nghttp2_session_get_next_stream_id(w->ng);
	struct h2_answer *a = h2_answer(w, id);
	size_t n = 4;

	for (; more && more[0] && n < 128; more += 2)
		nv[n++] = H2_FIELD(more[0], more[1]);
	a->id = id;
	a->data = data;
	a->left = len;
	a->holds = holds;
	provider.source.ptr = a;
	cr_assert_eq(
		nghttp2_submit_request(w->ng, NULL, nv, n, data ? &provider : NULL, NULL),
		id);
	return a;
}

static inline struct h2_answer *h2_ask(struct h2_wire *w, const char *method,
				       const char *path, const char *data)
{
	return h2_ask_with(w, method, path, data, data ? strlen(data) : 0, false, NULL);
}

static inline void h2_wire_done(struct h2_wire *w)
{
	wire_done(&w->wire);
	nghttp2_session_del(w->ng);
	for (int i = 0; i < H2_WIRE_STREAMS; i++) {
		abx__buf_done(&w->answers[i].head);
		abx__buf_done(&w->answers[i].trailers);
		abx__buf_done(&w->answers[i].body);
	}
	free(w->answers);
}

#endif
