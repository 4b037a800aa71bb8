/*
 * process-rpc.h - the methods of process.Process.
 */
#ifndef ABX_ENVD_PROCESS_RPC_H
#define ABX_ENVD_PROCESS_RPC_H

#include "envd/rpc.h"

/* Ends with a row whose path is NULL. */
extern const abx__rpc_method abx__process_methods[];

#endif
