/*
 * http-secure.c - a link with TLS between the socket and its protocol: bytes of the wire
 * are opened and fed to the link, the handshake's end picks the protocol. What leaves is
 * sealed in outq.c.
 */
#include "base/alloc.h"
#include "io/http-server-priv.h"

/* A peer that makes us answer (key updates, alerts) and takes nothing. */
#define UNTAKEN_MOST ((size_t)256 << 10)

int abx__http_link_secure(abx__http_link *link)
{
	abx__tls_context *context = link->server->opts.tls;

	link->tls = context->ops->accept(context);
	if (!link->tls)
		return ABX_ENOMEM;
	link->out.tls = link->tls;
	link->state = LINK_HANDSHAKE;
	link->in_handshake = true;
	link->server->handshakes++;
	return ABX_OK;
}

static void leave_handshake(abx__http_link *link)
{
	if (link->in_handshake)
		link->server->handshakes--;
	link->in_handshake = false;
}

static void end_handshake(abx__http_link *link)
{
	link->state = LINK_HEAD;
	link->is_used = false;
	leave_handshake(link);
	abx__http_link_set_deadline(link, link->server->opts.idle_timeout_ms);
	if (link->server->opts.http2 && link->tls->ops->is_h2(link->tls))
		abx__http_link_switch(link);
}

void abx__http_link_unsecure(abx__http_link *link)
{
	if (!link->tls)
		return;
	leave_handshake(link);
	link->tls->ops->free(link->tls);
	link->tls = link->out.tls = NULL;
}

/* The next plain bytes; what TLS itself has to say leaves. */
static ssize_t open_some(abx__http_link *link, const char **why)
{
	abx__http_server *server = link->server;
	ssize_t n;

	if (!server->plain)
		server->plain = abx__malloc(ABX__HTTP_PLAIN_BYTES);
	if (!server->plain)
		return ABX_ENOMEM;
	n = link->tls->ops->read(link->tls, server->plain, ABX__HTTP_PLAIN_BYTES,
				 &link->out.sealed, why);
	if (link->out.sealed.len > 0 && abx__outq_queued(&link->out) > UNTAKEN_MOST)
		return ABX_EPROTO;
	abx__outq_flush_sealed(&link->out);
	if (link->state == LINK_HANDSHAKE && link->tls->ops->is_ready(link->tls))
		end_handshake(link);
	return n;
}

/* Plain HTTP on a port of TLS: whoever typed that address gets told. True: answered. */
static bool is_plain_http(abx__http_link *link, char first)
{
	static const char answer[] =
		"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n"
		"Content-Length: 41\r\nConnection: close\r\n\r\n"
		"this port speaks TLS; say https, not http";

	if (link->state != LINK_HANDSHAKE || link->is_used || first < 'A' || first > 'Z')
		return false;
	if (abx__buf_adds(&link->out.sealed, answer) == ABX_OK)
		abx__outq_flush_sealed(&link->out);
	abx__http_link_abort(link);
	return true;
}

void abx__http_link_feed_wire(abx__http_link *link, const char *data, size_t len)
{
	const char *why = NULL;
	ssize_t n = 0;

	if (is_plain_http(link, data[0]))
		return;
	if (link->state == LINK_HANDSHAKE)
		link->is_used = true; /* the first byte was no letter */
	link->tls->ops->feed(link->tls, data, len);
	while (link->state != LINK_CLOSING) {
		n = open_some(link, &why);
		if (n <= 0)
			break;
		abx__http_link_feed(link, link->server->plain, (size_t)n);
	}
	if (link->state == LINK_CLOSING)
		return;
	if (n < 0 || link->out.broken)
		abx__http_link_peer_failed(link);
	else if (link->tls->ops->has_ended(link->tls) && !link->eof)
		abx__http_link_peer_ended(link);
	else
		abx__http_link_run(link);
}

void abx__http_link_wire_ended(abx__http_link *link)
{
	/* Without the goodbye somebody may have cut the connection: no stream ends so. */
	if (link->state == LINK_RAW && !link->tls->ops->has_ended(link->tls))
		abx__http_link_peer_failed(link);
	else
		abx__http_link_peer_ended(link);
}
