/*
 * watch-rpc.h - WatchDir, CreateWatcher, GetWatcherEvents, RemoveWatcher of
 * filesystem.Filesystem.
 */
#ifndef ABX_ENVD_WATCH_RPC_H
#define ABX_ENVD_WATCH_RPC_H

#include "envd/rpc.h"

/* Ends with a row whose path is NULL. */
extern const abx__rpc_method abx__watch_methods[];

#endif
