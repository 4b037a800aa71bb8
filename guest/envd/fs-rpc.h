/*
 * fs-rpc.h - the methods of filesystem.Filesystem.
 */
#ifndef ABX_ENVD_FS_RPC_H
#define ABX_ENVD_FS_RPC_H

#include "envd/rpc.h"

/* The path of a request, resolved, without slashes at its end; NULL when the call was
 * failed. */
char *abx__fs_rpc_resolve(abx__rpc *rpc, const char *path);
/* Ends with a row whose path is NULL. */
extern const abx__rpc_method abx__fs_methods[];

#endif
