/*
 * fs-rpc.h - the methods of filesystem.Filesystem.
 */
#ifndef ABX_ENVD_FS_RPC_H
#define ABX_ENVD_FS_RPC_H

#include "envd/rpc.h"

/* Ends with a row whose path is NULL. */
extern const abx__rpc_method abx__fs_methods[];

#endif
