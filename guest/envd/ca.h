/*
 * ca.h - certificates the platform adds to the image's trust store.
 */
#ifndef ABX_ENVD_CA_H
#define ABX_ENVD_CA_H

#include "base/error.h"

/* Appends `pem` to ROOT/etc/ssl/certs/ca-certificates.crt and keeps it in
   ROOT/usr/local/share/ca-certificates/e2b-ca.crt; one installed before is taken out.
   `root` is "" outside tests. ABX_EINVAL when `pem` holds no certificate, ABX_EIO.
   Installing the same again changes nothing. */
int abx__ca_install(const char *root, const char *pem, abx_error **reterr);

#endif
