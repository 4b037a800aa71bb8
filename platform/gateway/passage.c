/*
 * passage.c - one request on its way to a sandbox's port, and the answer on its way back.
 *
 * A passage lives exactly as long as its exchange with the client: it ends in the
 * request's `closed`, which breaks off whatever is still open to the sandbox. Pieces go
 * from one side's read buffer straight into the other side's socket; what that does not
 * take is queued, and above a mark the reading side pauses until the queue has drained.
 * Long bodies of known length go through a tube, which counts as such a queue.
 * * Headers: passage-head.c. Expect is answered by our server.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "gateway/passage-priv.h"

#define TRIES 5

static void connect_up(passage *p);

static void note_move(passage *p)
{
	p->moved = uv_now(p->gateway->opts.loop);
}

static void drop_up(passage *p, bool keep)
{
	abx__upstream *up = p->up;

	p->up = NULL;
	if (up)
		abx__upstream_release(up, keep);
}

static void drop_ticket(passage *p)
{
	abx__upstream_ticket *ticket = p->ticket;

	p->ticket = NULL;
	if (ticket)
		abx__upstream_cancel(ticket);
}

/* The sandbox's side has failed: say so if the answer has not begun, else break it off.
 */
static void give_up(passage *p, int status, uint16_t port, const char *message)
{
	drop_up(p, false);
	drop_ticket(p);
	if (abx__http_res_begun(p->req))
		abx__http_res_abort(p->req);
	else
		abx__gateway_refuse(p->req, p->form, status, p->id, port, message);
}

/* ---- from the sandbox ---- */

static void on_interim(void *userdata, const abx__http_head *head)
{
	passage *p = userdata;

	note_move(p);
	/* Our server has asked for the body itself. */
	if (head->status == 100 || abx__http_res_begun(p->req))
		return;
	/* A hint, and there may be any number of them: none is queued for a client that
	 * does not read. */
	if (abx__http_res_queued(p->req) > p->gateway->opts.piece_bytes)
		return;
	if (abx__passage_answer_fields(p, head) < 0 ||
	    abx__http_res_interim(p->req, head->status) < 0)
		abx__http_res_abort(p->req);
}

static void on_client_body(abx__http_req *req, const char *data, size_t len, int r,
			   void *userdata);

/* The sandbox takes the upgrade: from here both sides are raw. */
static void switch_raw(passage *p, const abx__http_head *head)
{
	ABX_CLEANUP_BUF abx__buf text = ABX__BUF_INIT;
	int r;

	if (!p->upgrade) {
		give_up(p, 502, p->port,
			"The sandbox switched protocols without being asked");
		return;
	}
	r = abx__passage_switching_head(p, head, &text);
	if (r == ABX_OK)
		r = abx__http_req_hijack(p->req);
	if (r == ABX_OK)
		r = abx__http_res_write(p->req, text.data, text.len);
	if (r < 0) {
		abx__http_res_abort(p->req);
		return;
	}
	p->raw = true;
	abx__http_req_read(p->req, on_client_body, p);
}

static void on_head(void *userdata, const abx__http_head *head)
{
	passage *p = userdata;
	int r;

	note_move(p);
	if (head->status == 101) {
		switch_raw(p, head);
		return;
	}
	r = abx__passage_answer_fields(p, head);
	if (r == ABX_OK)
		r = abx__http_res_begin(p->req, head->status, head->content_length);
	if (r < 0) {
		abx__http_res_abort(p->req);
		return;
	}
	if (head->content_length >= ABX__TUBE_WORTH && !p->back &&
	    abx__http_req_takes_tube(p->req))
		p->back = abx__tube_new();
	abx__http_conn_use_tube(p->up->conn, p->back);
}

/* Holds the sandbox back while its client does not take what has come. */
static void after_answer_piece(passage *p)
{
	if (abx__http_res_queued(p->req) > p->gateway->opts.piece_bytes)
		abx__http_conn_pause(p->up->conn);
}

static void copy_trailers(passage *p)
{
	const char *name, *value;

	for (size_t i = 0; abx__http_conn_trailer_at(p->up->conn, i, &name, &value); i++)
		abx__http_res_trailer(p->req, name, value);
}

static void on_body(void *userdata, const char *data, size_t len)
{
	passage *p = userdata;

	note_move(p);
	if (data) {
		abx__http_res_write(p->req, data, len);
		after_answer_piece(p);
		return;
	}
	/* What is ended or broken off shows in `closed`. */
	if (!p->raw) {
		copy_trailers(p);
		drop_up(p, p->keeps);
	}
	abx__http_res_end(p->req);
}

static void on_tube(void *userdata, size_t len)
{
	passage *p = userdata;

	note_move(p);
	if (abx__http_res_pour(p->req, p->back, len) < 0)
		abx__tube_drop(p->back); /* `closed` follows */
	after_answer_piece(p);
}

/* The client has taken what was queued. */
static void on_client_drain(abx__http_req *req, void *userdata)
{
	passage *p = userdata;

	(void)req;
	note_move(p);
	if (p->up)
		abx__http_conn_resume(p->up->conn);
}

/* The sandbox has taken what was queued. */
static void on_drain(void *userdata)
{
	passage *p = userdata;

	note_move(p);
	if (p->req_paused) {
		p->req_paused = false;
		abx__http_req_resume(p->req);
	}
}

static void on_fail(void *userdata, int r, const char *why)
{
	passage *p = userdata;
	ABX_CLEANUP(abx__freep) char *text = NULL;

	abx__log_debug(p->gateway->opts.log, "the sandbox's side failed",
		       "sandbox=%s port=%u why=%s", p->id, p->port, why);
	/* A kept connection that the sandbox had closed meanwhile: the request never got
	 * there. */
	if (r == ABX_EIO && p->up->was_kept && !abx__http_conn_has_answer(p->up->conn) &&
	    !p->body_taken && !p->retried) {
		p->retried = true;
		drop_up(p, false);
		connect_up(p);
		return;
	}
	text = abx__strf("The sandbox's answer on the port is broken: %s", why);
	give_up(p, 502, p->port,
		text ? text : "The sandbox's answer on the port is broken");
}

static const abx__http_conn_events up_events = {
	.interim = on_interim,
	.head = on_head,
	.body = on_body,
	.tube = on_tube,
	.drain = on_drain,
	.fail = on_fail,
};

/* ---- from the client ---- */

/* Holds the client back while the sandbox does not take what has come. */
static void after_request_piece(passage *p, int r)
{
	if (r < 0) {
		give_up(p, 502, p->port, "The request could not be passed on");
		return;
	}
	if (abx__http_conn_queued(p->up->conn) > p->gateway->opts.piece_bytes) {
		p->req_paused = true;
		abx__http_req_pause(p->req);
	}
}

static void end_request(passage *p, abx__http_conn *conn)
{
	const char *name, *value;

	for (size_t i = 0; abx__http_req_trailer_at(p->req, i, &name, &value); i++)
		abx__http_conn_trailer(conn, name, value);
	abx__http_conn_end(conn);
}

static void on_client_body(abx__http_req *req, const char *data, size_t len, int r,
			   void *userdata)
{
	passage *p = userdata;
	abx__http_conn *conn = p->up ? p->up->conn : NULL;

	note_move(p);
	p->body_taken = true;
	if (r == ABX_EPROTO) {
		drop_up(p, false);
		if (abx__http_res_begun(req))
			abx__http_res_abort(req);
		else
			abx__gateway_refuse(req, p->form, 400, p->id, 0,
					    "The request's body is broken");
		return;
	}
	if (!conn || r < 0)
		return; /* answered already, or `closed` follows */
	if (data)
		after_request_piece(p, abx__http_conn_write(conn, data, len));
	else
		end_request(p, conn);
}

static void on_client_tube(abx__http_req *req, size_t len, void *userdata)
{
	passage *p = userdata;

	(void)req;
	note_move(p);
	p->body_taken = true;
	if (p->up)
		after_request_piece(p, abx__http_conn_pour(p->up->conn, p->there, len));
	else
		abx__tube_drop(p->there); /* answered already */
}

static void on_closed(abx__http_req *req, bool answered, void *userdata)
{
	passage *p = userdata;
	abx__gateway *gateway = p->gateway;

	(void)req;
	(void)answered;
	if (p->waking)
		p->waking->passage = NULL;
	drop_ticket(p);
	drop_up(p, false);
	abx__tube_free(p->there);
	abx__tube_free(p->back);
	abx__sandboxes_stream_end(gateway->opts.sandboxes, p->id);
	if (p->prev)
		p->prev->next = p->next;
	else
		gateway->passages = p->next;
	if (p->next)
		p->next->prev = p->prev;
	abx__free(p->host);
	abx__free(p);
	abx__gateway_unhold(gateway);
}

/* ---- the way there ---- */

static void send_request(passage *p)
{
	ABX_CLEANUP_BUF abx__buf head = ABX__BUF_INIT;
	int64_t length = abx__http_req_content_length(p->req);
	bool has_body = abx__http_req_has_body(p->req);
	enum abx__http_framing framing = !has_body    ? ABX__HTTP_NO_BODY
					 : length < 0 ? ABX__HTTP_CHUNKED
						      : ABX__HTTP_LENGTH;
	abx__http_conn *conn = p->up->conn;
	int r;

	r = abx__passage_request_head(p, &head);
	if (r == ABX_OK)
		r = abx__http_conn_request(
			conn, head.data, head.len, framing,
			length > 0 ? (uint64_t)length : 0,
			strcmp(abx__http_req_method(p->req), "HEAD") == 0, &up_events, p);
	if (r < 0) {
		give_up(p, 502, p->port, "The request could not be passed on");
		return;
	}
	abx__http_conn_set_low(conn, p->gateway->opts.piece_bytes / 4);
	if (!has_body)
		return;
	if (framing == ABX__HTTP_LENGTH && length >= ABX__TUBE_WORTH && !p->there &&
	    abx__http_req_takes_tube(p->req))
		p->there = abx__tube_new();
	abx__http_req_use_tube(p->req, p->there, on_client_tube);
	abx__http_req_read(p->req, on_client_body, p);
	if (!abx__http_req_is_buffered(p->req))
		abx__http_conn_flush(conn);
}

/* The SDKs take the usual 502 for a sandbox that is gone; of a 404 they show the text. */
static bool is_for_interpreter(const passage *p)
{
	static const char *const paths[] = { "/execute", "/contexts" };

	for (size_t i = 0; p->port == 49999 && i < sizeof(paths) / sizeof(paths[0]);
	     i++) {
		size_t len = strlen(paths[i]);

		if (strncmp(p->target, paths[i], len) == 0 &&
		    strchr("/?", p->target[len]))
			return true;
	}
	return false;
}

static void on_connected(void *userdata, int r, abx__upstream *up, const abx_error *err)
{
	passage *p = userdata;

	p->ticket = NULL;
	note_move(p);
	if (r == ABX_OK) {
		p->up = up;
		send_request(p);
		return;
	}
	if (r == ABX_EUNAVAILABLE && is_for_interpreter(p)) {
		give_up(p, 404, p->port, ABX__GATEWAY_NO_INTERPRETER);
		return;
	}
	if (r == ABX_EUNAVAILABLE) {
		give_up(p, 502, p->port, ABX__GATEWAY_PORT_CLOSED);
		return;
	}
	abx__log_warn(p->gateway->opts.log, "cannot reach a sandbox's port",
		      "sandbox=%s port=%u error=%s", p->id, p->port,
		      err ? abx_error_message(err) : abx_error_name(r));
	if (r == ABX_ENOTFOUND)
		give_up(p, 502, 0, ABX__GATEWAY_NOT_FOUND);
	else if (r == ABX_ETIMEDOUT)
		give_up(p, 504, p->port,
			"The sandbox did not accept the connection in time");
	else
		give_up(p, 502, p->port, "The sandbox could not be reached");
}

static void connect_up(passage *p)
{
	const abx__upstream_tries tries = {
		.count = TRIES,
		.first_wait_ms = p->gateway->opts.retry_ms,
		.tls = p->tls,
	};

	p->ticket = abx__upstream_connect(p->gateway->pool, p->namespace_, p->pod,
					  p->port, &tries, on_connected, p);
	if (!p->ticket)
		give_up(p, 503, 0, "out of memory");
}

static char *put_text(char **at, const char *text)
{
	size_t size = strlen(text) + 1;
	char *here = memcpy(*at, text, size);

	*at += size;
	return here;
}

static passage *new_passage(const abx__route *route, const abx__sandbox_rec *rec)
{
	size_t size = strlen(rec->id) + strlen(rec->namespace_) + strlen(rec->pod) +
		      strlen(route->rest) + 5;
	passage *p = abx__calloc(1, sizeof(*p) + size);
	char *at;

	if (!p)
		return NULL;
	at = p->text;
	p->id = put_text(&at, rec->id);
	p->namespace_ = put_text(&at, rec->namespace_);
	p->pod = put_text(&at, rec->pod);
	p->target = at;
	if (route->add_slash)
		*at++ = '/';
	put_text(&at, route->rest);
	p->form = route->form;
	p->port = route->port;
	p->keeps = route->port == rec->runtime_port;
	p->tls = abx__gateway_speaks_tls(rec, route->port);
	return p;
}

static void go_there(passage *p)
{
	if (p->keeps)
		p->up = abx__upstream_take(p->gateway->pool, p->namespace_, p->pod,
					   p->port);
	if (p->up)
		send_request(p);
	else
		connect_up(p);
}

static void on_woken(void *userdata, int r, const abx_error *err)
{
	struct waking *w = userdata;
	abx__gateway *gateway = w->gateway;
	passage *p = w->passage;

	(void)err;
	abx__free(w);
	if (p) {
		p->waking = NULL;
		note_move(p);
		if (r == ABX_OK)
			go_there(p);
		else if (r == ABX_ENOTFOUND)
			give_up(p, 502, 0, ABX__GATEWAY_NOT_FOUND);
		else if (r == ABX_ETIMEDOUT)
			give_up(p, 504, 0, "The sandbox did not wake up in time");
		else
			give_up(p, 502, 0, ABX__GATEWAY_PAUSED);
	}
	abx__gateway_unhold(gateway);
}

static void wake(passage *p)
{
	const abx__gateway_options *opts = &p->gateway->opts;
	struct waking *w = opts->resume ? abx__calloc(1, sizeof(*w)) : NULL;

	if (!w) {
		give_up(p, 502, 0, ABX__GATEWAY_PAUSED);
		return;
	}
	w->gateway = p->gateway;
	w->passage = p;
	p->waking = w;
	p->gateway->pending++;
	if (opts->resume(opts->userdata, p->id, on_woken, w) == ABX_OK)
		return;
	p->waking = NULL;
	abx__free(w);
	abx__gateway_unhold(p->gateway);
	give_up(p, 502, 0, ABX__GATEWAY_PAUSED);
}

void abx__passage_start(abx__gateway *gateway, abx__http_req *req,
			const abx__route *route, const abx__sandbox_rec *rec)
{
	passage *p = new_passage(route, rec);

	if (!p || abx__gateway_host(rec, route->port, &p->host) < 0) {
		abx__free(p);
		abx__http_res_abort(req);
		return;
	}
	p->gateway = gateway;
	p->req = req;
	p->upgrade = abx__http_req_is_upgrade(req) && !abx__http_req_has_body(req) &&
		     abx__http_req_header(req, "upgrade");
	p->next = gateway->passages;
	if (p->next)
		p->next->prev = p;
	gateway->passages = p;
	gateway->pending++;
	note_move(p);
	abx__sandboxes_touch(gateway->opts.sandboxes, p->id);
	abx__sandboxes_stream_begin(gateway->opts.sandboxes, p->id);
	abx__http_req_on_closed(req, on_closed, p);
	abx__http_res_on_drain(req, gateway->opts.piece_bytes / 4, on_client_drain, p);
	abx__gateway_wake(gateway);
	if (rec->state == ABX__SANDBOX_RUNNING)
		go_there(p);
	else
		wake(p);
}

/* Once the answer has begun silence is the stream's right: events may be hours apart.
 * What may not rest is an answer that does not come, and a sandbox that takes nothing of
 * what waits for it. A client that takes nothing is the server's to find. */
static bool may_rest(const passage *p)
{
	return abx__http_res_begun(p->req) && !p->req_paused;
}

void abx__passages_expire(abx__gateway *gateway, uint64_t before)
{
	passage *p, *next;

	for (p = gateway->passages; p; p = next) {
		next = p->next;
		if (p->moved <= before && !may_rest(p))
			give_up(p, 504, p->port, "The sandbox did not answer in time");
	}
}

void abx__passages_abort(abx__gateway *gateway)
{
	for (passage *p = gateway->passages; p; p = p->next) {
		drop_ticket(p);
		drop_up(p, false);
		abx__http_res_abort(p->req);
	}
}
