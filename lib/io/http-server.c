/*
 * http-server.c - accepting, deadlines, closing. Listening is in http-listen.c; what
 * happens on an accepted connection in http-req.c and http-res.c.
 *
 * One timer serves all deadlines: it is set to the earliest one and looks at every
 * connection when it fires.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "io/http-server-priv.h"

#define KEEPALIVE_S 60
#define ACCEPT_AGAIN_MS 50 /* after a lack of memory */

void abx__http_server_unhold(abx__http_server *server)
{
	void (*closed)(void *) = server->closed;
	void *userdata = server->closed_userdata;

	if (--server->handles > 0 || !server->closing)
		return;
	abx__free(server->read_small);
	abx__free(server->read_large);
	abx__free(server->plain);
	abx__free(server);
	if (closed)
		closed(userdata);
}

static void own_handle_closed(uv_handle_t *handle)
{
	abx__http_server_unhold(handle->data);
}

/* ---- kicks ---- */

static void idle_cb(uv_idle_t *idle)
{
	abx__http_server *server = idle->data;
	abx__http_link *link = server->kicks;

	/* What is kicked meanwhile waits for the next turn, so that no exchange starves
	 * the loop. */
	server->kicks = NULL;
	server->kicks_tail = &server->kicks;
	while (link) {
		abx__http_link *next = link->kick_next;

		link->kicked = false;
		abx__http_link_run(link);
		link = next;
	}
	if (!server->kicks)
		uv_idle_stop(&server->idle);
}

void abx__http_link_kick(abx__http_link *link)
{
	abx__http_server *server = link->server;

	if (link->kicked || link->depth > 0 || link->state == LINK_CLOSING)
		return;
	link->kicked = true;
	link->kick_next = NULL;
	if (!server->kicks)
		uv_idle_start(&server->idle, idle_cb);
	*server->kicks_tail = link;
	server->kicks_tail = &link->kick_next;
}

static void forget_kick(abx__http_link *link)
{
	abx__http_server *server = link->server;
	abx__http_link **at = &server->kicks;

	while (*at && *at != link)
		at = &(*at)->kick_next;
	if (!*at)
		return;
	*at = link->kick_next;
	if (!*at)
		server->kicks_tail = at;
}

/* ---- deadlines ---- */

static void sweep_cb(uv_timer_t *timer);

static void wake_sweep(abx__http_server *server, uint64_t at)
{
	uint64_t now = uv_now(server->opts.loop);

	if (server->closing || (server->sweep_at != 0 && server->sweep_at <= at))
		return;
	server->sweep_at = at;
	uv_timer_start(&server->sweep, sweep_cb, at > now ? at - now : 1, 0);
}

void abx__http_link_set_deadline(abx__http_link *link, uint64_t after_ms)
{
	link->deadline = after_ms ? uv_now(link->server->opts.loop) + after_ms : 0;
	if (link->deadline)
		wake_sweep(link->server, link->deadline);
}

void abx__http_link_watch(abx__http_link *link, uint64_t after_ms)
{
	wake_sweep(link->server, uv_now(link->server->opts.loop) + after_ms);
}

void abx__http_link_write_queued(abx__http_link *link)
{
	uint64_t now = uv_now(link->server->opts.loop);

	if (link->write_since == 0) {
		link->write_since = now;
		wake_sweep(link->server, now + link->server->opts.idle_timeout_ms);
	}
}

static void expire(abx__http_link *link)
{
	if (link->state == LINK_HEAD && link->in.len > 0)
		abx__http_link_refuse(link, 408, "the request head took too long");
	else if (link->state == LINK_EXCHANGE)
		abx__http_link_peer_failed(link);
	else
		abx__http_link_abort(link);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

/* When this link next needs a look; 0: never. */
static uint64_t look_at(abx__http_link *link, uint64_t now)
{
	uint64_t own = 0;
	uint64_t stall_ms = link->server->opts.idle_timeout_ms;
	size_t left = uv_stream_get_write_queue_size(&link->io.stream);

	if (link->deadline && link->deadline <= now) {
		link->deadline = 0;
		expire(link);
	}
	if (link->state == LINK_CLOSING)
		return 0;
	if (link->state == LINK_OTHER)
		own = link->protocol->look(link, now);
	if (link->state == LINK_CLOSING)
		return 0;
	if (link->write_since && left != link->write_left) {
		link->write_left = left;
		link->write_since = now;
	}
	if (link->write_since && now - link->write_since >= stall_ms) {
		abx__http_link_peer_failed(link);
		return 0;
	}
	if (link->write_since)
		own = earlier(own, link->write_since + stall_ms);
	return earlier(own, link->deadline);
}

static void sweep_cb(uv_timer_t *timer)
{
	abx__http_server *server = timer->data;
	uint64_t now = uv_now(server->opts.loop), next = 0;
	abx__http_link *link, *following;

	server->sweep_at = 0;
	for (struct listener *l = server->listeners; l; l = l->next) {
		if (l->blocked) {
			l->blocked = false;
			abx__http_server_connection(&l->io.stream, 0);
		}
	}
	for (link = server->links; link; link = following) {
		uint64_t at;

		following = link->next;
		at = look_at(link, now);
		next = earlier(next, at);
	}
	if (next)
		wake_sweep(server, next);
}

/* ---- connections ---- */

static void link_closed(uv_handle_t *handle)
{
	abx__http_link *link = (abx__http_link *)handle;
	abx__http_server *server = link->server;
	abx__http_req *req = &link->req;

	if (link->protocol)
		link->protocol->free(link);
	if (req->live && req->closed)
		req->closed(req, false, req->closed_userdata);
	abx__http_req_done(req);
	abx__http_link_unsecure(link);
	if (link->kicked)
		forget_kick(link);
	if (link->is_bulk)
		server->bulk--;
	if (server->bulk == 0) {
		abx__free(server->read_large);
		server->read_large = NULL;
	}
	if (link->prev)
		link->prev->next = link->next;
	else
		server->links = link->next;
	if (link->next)
		link->next->prev = link->prev;
	if (--server->link_count == 0) {
		abx__free(server->read_small);
		abx__free(server->plain);
		server->read_small = server->plain = NULL;
	}
	abx__buf_done(&link->in);
	abx__outq_done(&link->out);
	abx__free(link);
	abx__http_server_unhold(server);
}

/* A peer that would take the end of the stream for the end of the answer gets a reset
 * instead. */
static bool wants_reset(const abx__http_link *link)
{
	const abx__http_req *req = &link->req;

	return !link->is_unix && !link->shut && req->live && req->res == RES_BEGUN &&
	       (req->kind == RES_UNTIL_CLOSE || req->kind == RES_RAW);
}

/* Under TLS a peer learns that nothing was cut off. */
static void say_goodbye(abx__http_link *link)
{
	const abx__http_req *req = &link->req;

	if (link->state == LINK_OTHER)
		link->protocol->leave(link);
	else if (link->state == LINK_HANDSHAKE || (req->live && req->res == RES_BEGUN))
		return;
	if (!link->shut)
		abx__outq_end(&link->out);
}

void abx__http_link_abort(abx__http_link *link)
{
	bool reset = wants_reset(link);

	if (link->state == LINK_CLOSING)
		return;
	if (link->tls || link->protocol)
		say_goodbye(link);
	link->state = LINK_CLOSING;
	if (reset && uv_tcp_close_reset(&link->io.tcp, link_closed) == 0)
		return;
	uv_close(&link->io.handle, link_closed);
}

/* A queued write has ended. */
static void write_moved(void *userdata)
{
	abx__http_link *link = userdata;
	bool more = uv_stream_get_write_queue_size(&link->io.stream) > 0;

	link->write_since = more ? uv_now(link->server->opts.loop) : 0;
	abx__http_link_run(link);
}

static void dropped(uv_handle_t *handle)
{
	abx__http_link *link = (abx__http_link *)handle;
	abx__http_server *server = link->server;

	abx__free(link);
	abx__http_server_unhold(server);
}

/* A link with an open handle, or NULL when out of memory. */
static abx__http_link *new_link(abx__http_server *server, bool is_unix)
{
	abx__http_link *link = abx__calloc(1, sizeof(*link));
	int r;

	if (!link)
		return NULL;
	link->server = server;
	link->is_unix = is_unix;
	link->req.link = link;
	link->req.ops = &abx__http1_ops;
	link->state = LINK_HEAD;
	abx__outq_init(&link->out, &link->io.stream, write_moved, link);
	link->in.cap = ABX__HTTP_HEAD_MAX + PIPELINE_MOST +
		       2 * server->opts.read_chunk_bytes + READ_SMALL;
	if (is_unix)
		r = uv_pipe_init(server->opts.loop, &link->io.pipe, 0);
	else
		r = uv_tcp_init(server->opts.loop, &link->io.tcp);
	if (r < 0) {
		abx__free(link);
		return NULL;
	}
	server->handles++;
	return link;
}

/* ABX_ENOMEM: the link is not the server's yet. */
static int start_link(abx__http_link *link)
{
	abx__http_server *server = link->server;

	if (server->opts.tls && !link->is_unix && abx__http_link_secure(link) < 0)
		return ABX_ENOMEM;
	if (!link->is_unix) {
		uv_tcp_nodelay(&link->io.tcp, 1);
		uv_tcp_keepalive(&link->io.tcp, 1, KEEPALIVE_S);
	}
	link->next = server->links;
	if (link->next)
		link->next->prev = link;
	server->links = link;
	server->link_count++;
	abx__http_link_set_deadline(link, link->tls ? server->opts.handshake_timeout_ms
						    : server->opts.idle_timeout_ms);
	abx__http_link_run(link);
	return ABX_OK;
}

static bool is_full(const abx__http_server *server)
{
	return server->link_count >= server->opts.max_connections ||
	       server->handshakes >= server->opts.max_handshakes;
}

void abx__http_server_connection(uv_stream_t *stream, int status)
{
	struct listener *listener = (struct listener *)stream;
	abx__http_server *server = listener->server;
	abx__http_link *link;

	if (status < 0 || server->closing)
		return;
	link = new_link(server, listener->is_unix);
	if (!link) {
		/* libuv holds the connection, and listens no more until it is taken. */
		listener->blocked = true;
		wake_sweep(server, uv_now(server->opts.loop) + ACCEPT_AGAIN_MS);
		return;
	}
	if (uv_accept(stream, &link->io.stream) < 0 || is_full(server) ||
	    start_link(link) < 0)
		uv_close(&link->io.handle, dropped);
}

int abx__http_server_adopt_fd(abx__http_server *server, int fd, abx_error **reterr)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	abx__http_link *link;
	int r;

	if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
		return abx__error_errno(reterr, ABX_EINVAL, errno, "adopt descriptor %d",
					fd);
	link = new_link(server, addr.ss_family == AF_UNIX);
	if (!link)
		return abx__error_nomem(reterr);
	r = link->is_unix ? uv_pipe_open(&link->io.pipe, fd)
			  : uv_tcp_open(&link->io.tcp, fd);
	if (r < 0) {
		uv_close(&link->io.handle, dropped);
		return abx__error_errno(reterr, ABX_EIO, -r, "adopt descriptor %d", fd);
	}
	r = start_link(link);
	if (r < 0) {
		uv_close(&link->io.handle, dropped);
		return abx__error_nomem(reterr);
	}
	return ABX_OK;
}

/* ---- the server ---- */

int abx__http_server_new(const abx__http_server_options *opts, abx__http_server **ret,
			 abx_error **reterr)
{
	abx__http_server *server;

	if (!opts || !opts->loop || !opts->on_request)
		return abx__error_set(reterr, ABX_EINVAL,
				      "a server needs a loop and a handler");
	server = abx__calloc(1, sizeof(*server));
	if (!server)
		return abx__error_nomem(reterr);
	server->opts = *opts;
	if (!server->opts.idle_timeout_ms)
		server->opts.idle_timeout_ms = 640 * 1000;
	if (!server->opts.head_timeout_ms)
		server->opts.head_timeout_ms = 30 * 1000;
	if (!server->opts.handshake_timeout_ms)
		server->opts.handshake_timeout_ms = 10 * 1000;
	if (!server->opts.max_handshakes)
		server->opts.max_handshakes = 512;
	if (!server->opts.max_connections)
		server->opts.max_connections = 10000;
	if (!server->opts.read_chunk_bytes)
		server->opts.read_chunk_bytes = (size_t)64 << 10;
	server->kicks_tail = &server->kicks;
	uv_idle_init(opts->loop, &server->idle); /* neither can fail */
	uv_timer_init(opts->loop, &server->sweep);
	server->idle.data = server->sweep.data = server;
	server->handles = 2;
	*ret = server;
	return ABX_OK;
}

void abx__http_server_close(abx__http_server *server, void (*done)(void *userdata),
			    void *userdata)
{
	struct listener *listener = server->listeners;

	server->closing = true;
	server->closed = done;
	server->closed_userdata = userdata;
	while (listener) {
		struct listener *next = listener->next;

		abx__http_listener_close(listener);
		listener = next;
	}
	server->listeners = NULL;
	for (abx__http_link *link = server->links; link; link = link->next)
		abx__http_link_abort(link);
	uv_close((uv_handle_t *)&server->idle, own_handle_closed);
	uv_close((uv_handle_t *)&server->sweep, own_handle_closed);
}

const char *abx__http_server_date(abx__http_server *server)
{
	time_t now = (time_t)(abx__wall_ms() / 1000);
	struct tm tm;

	if (now != server->date_at) {
		server->date_at = now;
		gmtime_r(&now, &tm);
		/* The C locale's names, as a program that calls setlocale() must not
		 * change them. */
		static const char days[] = "SunMonTueWedThuFriSat";
		static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

		snprintf(server->date, sizeof(server->date),
			 "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT", days + tm.tm_wday * 3,
			 tm.tm_mday % 100, months + tm.tm_mon * 3,
			 (tm.tm_year + 1900) % 10000, tm.tm_hour % 100, tm.tm_min % 100,
			 tm.tm_sec % 100);
	}
	return server->date;
}
