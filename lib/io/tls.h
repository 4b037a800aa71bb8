/*
 * tls.h - TLS below a server's connections: bytes of the wire in, plain ones out, and the
 * other way round. It owns no socket; http-secure.c and outq.c move the bytes.
 *
 * The server reaches it through the tables below alone, so that a program without TLS
 * links none (libabx-io-tls.la has what fills them).
 *
 * TLS 1.2 and 1.3, AEAD ciphers with forward secrecy; no renegotiation, no compression;
 * session tickets under keys that live as long as the process. ALPN offers h2 (when asked
 * to) and http/1.1; a client that names only others is refused, one that names none gets
 * HTTP/1.1. The name the client asks for (SNI) is not looked at: one certificate serves
 * all.
 */
#ifndef ABX_IO_TLS_H
#define ABX_IO_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <agentbox/error.h>

#include "base/buf.h"

typedef struct abx__tls abx__tls;
typedef struct abx__tls_context abx__tls_context;

typedef struct abx__tls_ops {
	abx__tls *(*accept)(abx__tls_context *context); /* NULL: out of memory */
	void (*free)(abx__tls *tls);
	/* Bytes that came; they stay the caller's, and live until read() has given 0. */
	void (*feed)(abx__tls *tls, const char *data, size_t len);
	/* The next plain bytes of them: their count; 0: there are no more; ABX_EPROTO:
	   this is not the TLS we speak, `why` tells. What the peer must be told goes
	   behind `out`. */
	ssize_t (*read)(abx__tls *tls, char *data, size_t size, abx__buf *out,
			const char **why);
	int (*write)(abx__tls *tls, const void *data, size_t len, abx__buf *out);
	int (*end)(abx__tls *tls, abx__buf *out); /* nothing more will be written */
	bool (*is_ready)(const abx__tls *tls);    /* the handshake is over */
	bool (*is_h2)(const abx__tls *tls);       /* ALPN chose it */
	bool (*has_ended)(const abx__tls *tls);   /* the peer will write nothing more */
} abx__tls_ops;

struct abx__tls {
	const abx__tls_ops *ops; /* first; the rest is tls.c's */
};

struct abx__tls_context {
	const abx__tls_ops *ops; /* first; the rest is tls.c's */
};

/* From PEM files: the certificate with what leads to its issuer, and its key. ABX_EIO: a
   file cannot be read; ABX_EINVAL: it is not what it should be, or the two do not belong
   together. */
int abx__tls_context_new(const char *cert_file, const char *key_file, bool h2,
			 abx__tls_context **ret, abx_error **reterr);
/* Reads the files again: connections from now on get what they say. When that fails all
 * stays as it was. */
int abx__tls_context_reload(abx__tls_context *context, abx_error **reterr);
/* After the servers that use it. */
void abx__tls_context_free(abx__tls_context *context);

#endif
