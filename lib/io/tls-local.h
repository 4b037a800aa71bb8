/*
 * tls-local.h - a certificate authority of one's own, for TLS without anybody else's: a
 * CA, and a server certificate it signed, in one directory.
 *
 *   ca.crt      what clients are told to trust (mode 0644)
 *   ca.key      0600
 *   server.crt  the certificate and behind it the CA's
 *   server.key  0600
 *
 * Keys are P-256. The CA lives ten years and signs nothing but server certificates; the
 * server's lives 397 days, the most that browsers take.
 */
#ifndef ABX_IO_TLS_LOCAL_H
#define ABX_IO_TLS_LOCAL_H

#include <stdbool.h>
#include <stddef.h>

#include <agentbox/error.h>

/* Makes what is missing: the directory, the CA when there is none or it ends within 30
   days (clients must then be told of the new one), the server certificate when the CA is
   another one, it ends within 30 days or is not for exactly these names. A name is an IP
   address or a host name, which may begin with "*.". *ret_changed: something was made;
   may be NULL. ABX_EINVAL: a name that is neither; ABX_EIO: the file system; files are
   replaced whole. */
int abx__tls_local_make(const char *dir, const char *const *names, size_t count,
			bool *ret_changed, abx_error **reterr);

#endif
