/*
 * http2.h - HTTP/2 for http-server.h's servers: name `&abx__http2` in their options, and
 * who asks for it gets it, by ALPN under TLS or by prior knowledge without. Handlers see
 * the same requests; is_upgrade is false and hijacking is refused (RFC 8441 is not
 * offered, so WebSockets come over HTTP/1.1).
 *
 * Frames and header compression are nghttp2's. Caps: 128 streams at a time, a head as in
 * HTTP/1.1 (64 KiB, 100 fields; over it 431), 64 KiB of a body nobody reads and 1 MiB
 * of one that is read, 8 CONTINUATION frames, 1000 streams the peer resets or breaks at
 * once and 33 a second after that, 100 answers to PING and SETTINGS that it does not
 * take.
 */
#ifndef ABX_IO_HTTP2_H
#define ABX_IO_HTTP2_H

#include "io/http-server.h"

extern const abx__http_protocol abx__http2;

#endif
