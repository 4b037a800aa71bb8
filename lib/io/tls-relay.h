/*
 * tls-relay.h - TLS as a client, for one who speaks plain: what is written to the
 * descriptor handed out goes encrypted to the peer, and back. A pair of local sockets
 * with a pump between; whoever has the plain end need not know.
 *
 * The peer's certificate is not looked at and no name is sent: the peer is a port of a
 * sandbox, reached by a way that leads nowhere else. TLS 1.2 and 1.3, HTTP/1.1 by ALPN.
 */
#ifndef ABX_IO_TLS_RELAY_H
#define ABX_IO_TLS_RELAY_H

#include <agentbox/error.h>
#include <uv.h>

typedef struct abx__tls_relays abx__tls_relays;

int abx__tls_relays_new(uv_loop_t *loop, abx__tls_relays **ret, abx_error **reterr);
/* Takes over `fd`, a connected non-blocking stream socket to the peer, when it succeeds;
 *ret_fd is the plain end, the caller's. ABX_ENOMEM, ABX_EIO. */
int abx__tls_relay(abx__tls_relays *relays, int fd, int *ret_fd);
/* Breaks off what is under way; `done` runs from the loop, and `relays` is gone. */
void abx__tls_relays_close(abx__tls_relays *relays, void (*done)(void *userdata),
			   void *userdata);

#endif
