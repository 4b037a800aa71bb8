/*
 * http2.c - see http2.h: nghttp2's session between a link and its streams.
 */
#include <string.h>

#include "base/alloc.h"
#include "io/http2-priv.h"

/* ---- due streams ---- */

void h2_due(struct h2_stream *stream)
{
	struct h2_session *session = stream->session;

	if (stream->is_due)
		return;
	stream->is_due = true;
	stream->due_next = NULL;
	*session->due_tail = stream;
	session->due_tail = &stream->due_next;
}

void h2_kick(struct h2_stream *stream)
{
	h2_due(stream);
	abx__http_link_kick(stream->session->link);
}

void h2_spend(struct h2_session *session, struct h2_piece *piece)
{
	piece->next = session->spent;
	session->spent = piece;
}

static void free_spent(struct h2_session *session)
{
	struct h2_piece *piece;

	while ((piece = session->spent)) {
		session->spent = piece->next;
		if (piece->done)
			piece->done(piece->userdata);
		abx__free(piece);
	}
}

/* What becomes due meanwhile waits for the next round. */
static void run_due(struct h2_session *session)
{
	struct h2_stream *stream = session->due, *next;

	session->due = NULL;
	session->due_tail = &session->due;
	for (; stream; stream = next) {
		next = stream->due_next;
		stream->is_due = false;
		if (session->link->state == LINK_OTHER) /* else h2_free() does it */
			h2_stream_run(stream);
	}
}

/* ---- nghttp2's callbacks: nothing but taking down ---- */

static struct h2_stream *stream_of(nghttp2_session *ng, int32_t id)
{
	return nghttp2_session_get_stream_user_data(ng, id);
}

static int on_begin_headers(nghttp2_session *ng, const nghttp2_frame *frame,
			    void *userdata)
{
	struct h2_stream *stream;

	if (frame->hd.type != NGHTTP2_HEADERS ||
	    frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	stream = h2_stream_new(userdata, frame->hd.stream_id);
	if (!stream)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	nghttp2_session_set_stream_user_data(ng, frame->hd.stream_id, stream);
	return 0;
}

static int on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len,
		     uint8_t flags, void *userdata)
{
	struct h2_stream *stream = stream_of(ng, frame->hd.stream_id);
	int r;

	(void)flags;
	(void)userdata;
	if (!stream)
		return 0;
	if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		r = h2_stream_field(stream, (const char *)name, name_len,
				    (const char *)value, value_len);
	else
		r = abx__http_trailers_add(&stream->req.trailers, (const char *)name,
					   name_len, (const char *)value, value_len) < 0
			    ? ABX_EFAIL
			    : ABX_OK;
	if (r == ABX_EPROTO)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	return r < 0 ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : 0;
}

static int on_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *userdata)
{
	struct h2_session *session = userdata;
	struct h2_stream *stream = stream_of(ng, frame->hd.stream_id);

	if (frame->hd.type == NGHTTP2_SETTINGS)
		session->heard = true;
	if (!stream ||
	    (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS)
		stream->is_whole = true;
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		stream->in_ended = true;
	stream->moved = uv_now(session->link->server->opts.loop);
	h2_due(stream);
	return 0;
}

static int on_data(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *data,
		   size_t len, void *userdata)
{
	struct h2_session *session = userdata;
	struct h2_stream *stream = stream_of(ng, id);

	(void)flags;
	/* The window of all is for what is on its way; what lies here counts in its
	 * stream's, so no stream holds up another. */
	nghttp2_session_consume_connection(ng, len);
	if (!stream || stream->is_over || stream->is_broken) {
		nghttp2_session_consume_stream(ng, id, len);
		return 0;
	}
	if (abx__buf_add(&stream->in, data, len) < 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	stream->moved = uv_now(session->link->server->opts.loop);
	h2_due(stream);
	return 0;
}

static int on_stream_close(nghttp2_session *ng, int32_t id, uint32_t code, void *userdata)
{
	struct h2_stream *stream = stream_of(ng, id);
	struct h2_session *session = userdata;

	if (!stream)
		return 0;
	if (code != NGHTTP2_NO_ERROR && !stream->is_over && !stream->is_broken)
		session->cancelled++;
	stream->is_closed = true;
	h2_due(stream);
	return 0;
}

static int on_sent(nghttp2_session *ng, const nghttp2_frame *frame, void *userdata)
{
	struct h2_stream *stream = stream_of(ng, frame->hd.stream_id);

	(void)userdata;
	if (stream && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
	    (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA)) {
		stream->out_ended = true;
		h2_due(stream);
	}
	return 0;
}

static int new_callbacks(nghttp2_session_callbacks **ret)
{
	nghttp2_session_callbacks *c;

	if (nghttp2_session_callbacks_new(&c) != 0)
		return ABX_ENOMEM;
	nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(c, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
	nghttp2_session_callbacks_set_on_frame_send_callback(c, on_sent);
	nghttp2_session_callbacks_set_send_data_callback(c, h2_stream_send);
	*ret = c;
	return ABX_OK;
}

/* ---- what leaves ---- */

static void pump(struct h2_session *session)
{
	abx__http_link *link = session->link;
	const uint8_t *data;
	ssize_t n;

	while (!session->is_dead && abx__outq_queued(&link->out) < H2_QUEUE_MOST) {
		n = nghttp2_session_mem_send(session->ng, &data);
		if (n == 0)
			break;
		if (n < 0 || abx__outq_gather(&link->out, data, (size_t)n) < 0)
			session->is_dead = true;
	}
	abx__http_link_flush(link);
	if (uv_stream_get_write_queue_size(&link->io.stream) > 0)
		abx__http_link_write_queued(link);
	free_spent(session);
}

/* ---- the link's side ---- */

static int start_session(struct h2_session *session, nghttp2_option *option)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, H2_STREAMS_MAX },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, ABX__HTTP_HEAD_MAX },
	};
	nghttp2_session_callbacks *callbacks;
	int r = new_callbacks(&callbacks);

	if (r < 0)
		return r;
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_option_set_no_closed_streams(option, 1);
	nghttp2_option_set_max_outbound_ack(option, 100);
	nghttp2_option_set_max_continuations(option, 8);
	nghttp2_option_set_stream_reset_rate_limit(option, 1000, 33);
	r = nghttp2_session_server_new2(&session->ng, callbacks, session, option);
	nghttp2_session_callbacks_del(callbacks);
	if (r == 0)
		r = nghttp2_submit_settings(session->ng, NGHTTP2_FLAG_NONE, settings,
					    sizeof(settings) / sizeof(settings[0]));
	if (r == 0)
		r = nghttp2_session_set_local_window_size(session->ng, NGHTTP2_FLAG_NONE,
							  0, H2_WINDOW_LINK);
	return r == 0 ? ABX_OK : ABX_ENOMEM;
}

static int h2_start(abx__http_link *link)
{
	struct h2_session *session = abx__calloc(1, sizeof(*session));
	nghttp2_option *option = NULL;
	int r;

	if (!session)
		return ABX_ENOMEM;
	session->link = link;
	session->began = uv_now(link->server->opts.loop);
	session->due_tail = &session->due;
	link->session = session;
	if (nghttp2_option_new(&option) != 0)
		return ABX_ENOMEM;
	r = start_session(session, option);
	nghttp2_option_del(option);
	/* A peer that says nothing more does not stay. */
	abx__http_link_set_deadline(link, link->server->opts.head_timeout_ms);
	return r;
}

/* Requests are cheap to send and dear to begin: a peer that makes us give up more of them
 * than a person would is sent away, whether it resets them (nghttp2 counts these too) or
 * breaks the protocol so that we must. */
static bool cancels_too_many(const struct h2_session *session)
{
	uint64_t now = uv_now(session->link->server->opts.loop);

	return session->cancelled >
	       H2_CANCELS_MOST + (now - session->began) / 1000 * H2_CANCELS_PER_S;
}

static void take(struct h2_session *session, struct cursor *in)
{
	ssize_t n =
		nghttp2_session_mem_recv(session->ng, (const uint8_t *)in->data, in->len);

	in->data += in->len;
	in->len = 0;
	if (n < 0)
		session->is_dead = true;
	else if (cancels_too_many(session))
		nghttp2_session_terminate_session(session->ng, NGHTTP2_ENHANCE_YOUR_CALM);
}

static uint64_t look_every(const abx__http_link *link)
{
	const abx__http_server_options *opts = &link->server->opts;

	return (opts->idle_timeout_ms < opts->head_timeout_ms ? opts->idle_timeout_ms
							      : opts->head_timeout_ms) /
		       2 +
	       1;
}

/* The link's own deadline holds while there is no stream. */
static void set_deadline(struct h2_session *session)
{
	abx__http_link *link = session->link;
	const abx__http_server_options *opts = &link->server->opts;

	if (session->streams) {
		link->deadline = 0;
		abx__http_link_watch(link, look_every(link));
	} else if (link->deadline == 0) {
		abx__http_link_set_deadline(link, session->heard ? opts->idle_timeout_ms
								 : opts->head_timeout_ms);
	}
}

static bool is_over(const struct h2_session *session)
{
	return session->is_dead || (!nghttp2_session_want_read(session->ng) &&
				    !nghttp2_session_want_write(session->ng));
}

static bool h2_step(abx__http_link *link, struct cursor *in)
{
	struct h2_session *session = link->session;
	bool heard = session->heard;

	if (link->out.broken) {
		abx__http_link_abort(link);
		return false;
	}
	if (in->len > 0)
		take(session, in);
	if (session->heard && !heard)
		link->deadline = 0; /* from here on it is the idle one */
	run_due(session);
	if (link->state != LINK_OTHER)
		return false;
	pump(session);
	set_deadline(session);
	if (is_over(session) && link->state == LINK_OTHER) {
		abx__http_link_linger(link);
		return false;
	}
	return session->due != NULL;
}

static bool h2_wants_read(const abx__http_link *link)
{
	const struct h2_session *session = link->session;

	return !session->is_dead;
}

static void h2_gone(abx__http_link *link)
{
	struct h2_session *session = link->session;

	for (struct h2_stream *s = session->streams; s; s = s->next) {
		if (s->req.live && abx__http_req_wants_body(&s->req))
			abx__http_req_tell(&s->req, NULL, 0, ABX_EIO);
	}
}

/* A peer that owes a body nobody can go on without, or takes nothing of an answer. */
static bool is_stalled(const struct h2_stream *s, uint64_t since)
{
	bool owes = !s->in_ended && s->req.res == RES_NONE && s->in.len == 0 &&
		    abx__http_req_wants_body(&s->req);

	return s->moved <= since && (owes || s->out_len > 0);
}

static uint64_t h2_look(abx__http_link *link, uint64_t now)
{
	struct h2_session *session = link->session;
	const abx__http_server_options *opts = &link->server->opts;

	for (struct h2_stream *s = session->streams; s; s = s->next) {
		if (!s->is_whole && now >= s->moved + opts->head_timeout_ms) {
			abx__http_link_abort(link);
			return 0;
		}
		if (now > opts->idle_timeout_ms &&
		    is_stalled(s, now - opts->idle_timeout_ms)) {
			nghttp2_submit_rst_stream(session->ng, NGHTTP2_FLAG_NONE, s->id,
						  NGHTTP2_CANCEL);
			abx__http_link_kick(link);
		}
	}
	return session->streams ? now + look_every(link) : 0;
}

static void h2_leave(abx__http_link *link)
{
	struct h2_session *session = link->session;

	if (!session || !session->ng || session->is_dead)
		return;
	nghttp2_submit_goaway(session->ng, NGHTTP2_FLAG_NONE,
			      nghttp2_session_get_last_proc_stream_id(session->ng),
			      NGHTTP2_NO_ERROR, NULL, 0);
	if (link->depth == 0)
		pump(session);
}

static void h2_free(abx__http_link *link)
{
	struct h2_session *session = link->session;

	if (!session)
		return;
	while (session->streams) {
		struct h2_stream *stream = session->streams;

		h2_stream_finish(stream, false);
		h2_stream_free(stream);
	}
	free_spent(session);
	nghttp2_session_del(session->ng);
	abx__free(session);
	link->session = NULL;
}

const abx__http_protocol abx__http2 = {
	.start = h2_start,
	.step = h2_step,
	.wants_read = h2_wants_read,
	.gone = h2_gone,
	.look = h2_look,
	.leave = h2_leave,
	.free = h2_free,
};
