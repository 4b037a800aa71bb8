/*
 * tls-relay.c - see tls-relay.h. Each direction holds one piece at a time: a side is read
 * only when the piece before it is gone, so a slow side holds the other back.
 */
#include "io/tls-relay.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"

#define PIECE 16384
#define ROUNDS_MAX 64         /* then the loop turns once for the others */
#define HALF_CLOSED_MS 640000 /* the plain end writes no more, the peer says nothing */

typedef struct piece {
	size_t at, len;
	char data[PIECE];
} piece;

typedef struct relay {
	abx__tls_relays *relays;
	struct relay *prev, *next;
	uv_poll_t plain, wire;
	uv_timer_t timer;
	int plain_fd, wire_fd;
	SSL *ssl;
	piece to_plain, to_wire;
	bool plain_ended, wire_ended; /* will say nothing more */
	bool plain_told, wire_told;   /* of the other's end */
	bool wants_write;             /* TLS itself has something to send */
	bool again;                   /* stopped though there was more to do */
	unsigned closing;
} relay;

struct abx__tls_relays {
	uv_loop_t *loop;
	SSL_CTX *ctx;
	relay *open;
	unsigned count; /* until their handles are closed */
	bool closing;
	void (*done)(void *userdata);
	void *userdata;
	uv_timer_t waiter;
};

/* ---- ending ---- */

static void freed(uv_handle_t *handle)
{
	relay *r = handle->data;

	if (--r->closing > 0)
		return;
	close(r->plain_fd);
	close(r->wire_fd);
	r->relays->count--;
	SSL_free(r->ssl);
	abx__free(r);
}

static void end(relay *r)
{
	if (r->closing)
		return;
	if (r->prev)
		r->prev->next = r->next;
	else
		r->relays->open = r->next;
	if (r->next)
		r->next->prev = r->prev;
	r->closing = 3;
	uv_close((uv_handle_t *)&r->plain, freed);
	uv_close((uv_handle_t *)&r->wire, freed);
	uv_close((uv_handle_t *)&r->timer, freed);
}

/* ---- the pump: each step gives 1 when something moved, 0 when not, -1 when it is over
 */

static int wire_result(relay *r, int ok)
{
	int error = SSL_get_error(r->ssl, ok);

	ERR_clear_error();
	if (error == SSL_ERROR_WANT_READ)
		return 0;
	if (error == SSL_ERROR_WANT_WRITE) {
		r->wants_write = true;
		return 0;
	}
	if (error == SSL_ERROR_ZERO_RETURN) {
		r->wire_ended = true;
		return 1;
	}
	return -1;
}

static int read_wire(relay *r)
{
	size_t n;
	int ok;

	if (r->to_plain.len > 0 || r->wire_ended)
		return 0;
	ERR_clear_error();
	ok = SSL_read_ex(r->ssl, r->to_plain.data, PIECE, &n);
	if (!ok)
		return wire_result(r, ok);
	r->to_plain.at = 0;
	r->to_plain.len = n;
	return 1;
}

static int write_wire(relay *r)
{
	size_t n;
	int ok;

	if (r->to_wire.len > 0) {
		ERR_clear_error();
		ok = SSL_write_ex(r->ssl, r->to_wire.data + r->to_wire.at, r->to_wire.len,
				  &n);
		if (!ok)
			return wire_result(r, ok);
		r->to_wire.at += n;
		r->to_wire.len -= n;
		return 1;
	}
	if (!r->plain_ended || r->wire_told)
		return 0;
	r->wire_told = true;
	SSL_shutdown(r->ssl);
	ERR_clear_error();
	return 1;
}

static int read_plain(relay *r)
{
	ssize_t n;

	if (r->to_wire.len > 0 || r->plain_ended)
		return 0;
	n = recv(r->plain_fd, r->to_wire.data, PIECE, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	r->to_wire.at = 0;
	r->to_wire.len = (size_t)n;
	r->plain_ended = n == 0;
	return 1;
}

static int write_plain(relay *r)
{
	ssize_t n;

	if (r->to_plain.len > 0) {
		n = send(r->plain_fd, r->to_plain.data + r->to_plain.at, r->to_plain.len,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -1;
		r->to_plain.at += (size_t)n;
		r->to_plain.len -= (size_t)n;
		return 1;
	}
	if (!r->wire_ended || r->plain_told)
		return 0;
	r->plain_told = true;
	shutdown(r->plain_fd, SHUT_WR);
	return 1;
}

static bool pump(relay *r)
{
	int (*const steps[])(relay *) = { write_plain, read_wire, write_plain, read_plain,
					  write_wire };

	r->again = true;
	for (int round = 0; round < ROUNDS_MAX && r->again; round++) {
		r->again = false;
		r->wants_write = false;
		for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
			int moved = steps[i](r);

			if (moved < 0)
				return false;
			r->again = r->again || moved > 0;
		}
	}
	return !r->plain_told; /* the peer has said all, and it was passed on */
}

/* ---- waiting ---- */

static void wait_for(relay *r);

static void on_event(uv_poll_t *poll, int status, int events)
{
	relay *r = poll->data;

	(void)events;
	if (status < 0 || !pump(r))
		end(r);
	else
		wait_for(r);
}

static void on_late(uv_timer_t *timer)
{
	relay *r = timer->data;

	if (!r->again) {
		end(r);
		return;
	}
	if (!pump(r))
		end(r);
	else
		wait_for(r);
}

static void wait_on(uv_poll_t *poll, int events)
{
	if (events)
		uv_poll_start(poll, events, on_event);
	else
		uv_poll_stop(poll);
}

static void wait_for(relay *r)
{
	bool full = r->to_plain.len > 0;

	wait_on(&r->plain, (r->to_wire.len == 0 && !r->plain_ended ? UV_READABLE : 0) |
				   (full ? UV_WRITABLE : 0));
	wait_on(&r->wire,
		(!full && !r->wire_ended ? UV_READABLE : 0) |
			(r->wants_write || r->to_wire.len > 0 ? UV_WRITABLE : 0));
	if (r->again)
		uv_timer_start(&r->timer, on_late, 0, 0);
	else if (r->plain_ended)
		uv_timer_start(&r->timer, on_late, HALF_CLOSED_MS, 0);
	else
		uv_timer_stop(&r->timer);
}

/* ---- beginning ---- */

static relay *new_relay(abx__tls_relays *relays, int plain_fd, int wire_fd)
{
	relay *r = abx__calloc(1, sizeof(*r));

	if (r)
		r->ssl = SSL_new(relays->ctx);
	if (!r || !r->ssl || SSL_set_fd(r->ssl, wire_fd) != 1) {
		if (r)
			SSL_free(r->ssl);
		abx__free(r);
		ERR_clear_error();
		return NULL;
	}
	SSL_set_connect_state(r->ssl);
	r->relays = relays;
	r->plain_fd = plain_fd;
	r->wire_fd = wire_fd;
	r->plain.data = r->wire.data = r->timer.data = r;
	return r;
}

int abx__tls_relay(abx__tls_relays *relays, int fd, int *ret_fd)
{
	relay *r;
	int pair[2];

	if (relays->closing)
		return ABX_EIO;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
		return ABX_EIO;
	r = new_relay(relays, pair[0], fd);
	if (!r || uv_poll_init(relays->loop, &r->plain, pair[0]) < 0) {
		if (r)
			SSL_free(r->ssl);
		abx__free(r);
		close(pair[0]);
		close(pair[1]);
		return ABX_ENOMEM;
	}
	r->next = relays->open;
	if (r->next)
		r->next->prev = r;
	relays->open = r;
	relays->count++;
	uv_timer_init(relays->loop, &r->timer);
	/* The descriptor is ours from here: whatever is wrong with it shows as an end. */
	if (uv_poll_init(relays->loop, &r->wire, fd) < 0) {
		r->closing = 2;
		uv_close((uv_handle_t *)&r->plain, freed);
		uv_close((uv_handle_t *)&r->timer, freed);
		relays->open = r->next;
		if (r->next)
			r->next->prev = NULL;
	} else if (!pump(r)) {
		end(r);
	} else {
		wait_for(r);
	}
	*ret_fd = pair[1];
	return ABX_OK;
}

int abx__tls_relays_new(uv_loop_t *loop, abx__tls_relays **ret, abx_error **reterr)
{
	static const unsigned char protocols[] = "\x08http/1.1";
	abx__tls_relays *relays = abx__calloc(1, sizeof(*relays));

	if (relays)
		relays->ctx = SSL_CTX_new(TLS_client_method());
	if (!relays || !relays->ctx) {
		abx__free(relays);
		ERR_clear_error();
		return abx__error_nomem(reterr);
	}
	relays->loop = loop;
	SSL_CTX_set_min_proto_version(relays->ctx, TLS1_2_VERSION);
	/* Many servers close without saying so. */
	SSL_CTX_set_options(relays->ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_verify(relays->ctx, SSL_VERIFY_NONE, NULL);
	SSL_CTX_set_mode(relays->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
					      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					      SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_alpn_protos(relays->ctx, protocols, sizeof(protocols) - 1);
	uv_timer_init(loop, &relays->waiter);
	uv_unref((uv_handle_t *)&relays->waiter);
	relays->waiter.data = relays;
	*ret = relays;
	return ABX_OK;
}

static void relays_freed(uv_handle_t *handle)
{
	abx__tls_relays *relays = handle->data;
	void (*done)(void *) = relays->done;
	void *userdata = relays->userdata;

	SSL_CTX_free(relays->ctx);
	abx__free(relays);
	if (done)
		done(userdata);
}

static void look_for_end(uv_timer_t *timer)
{
	abx__tls_relays *relays = timer->data;

	if (relays->count == 0)
		uv_close((uv_handle_t *)timer, relays_freed);
}

void abx__tls_relays_close(abx__tls_relays *relays, void (*done)(void *userdata),
			   void *userdata)
{
	relays->closing = true;
	relays->done = done;
	relays->userdata = userdata;
	while (relays->open)
		end(relays->open);
	uv_ref((uv_handle_t *)&relays->waiter);
	uv_timer_start(&relays->waiter, look_for_end, 0, 5);
}
