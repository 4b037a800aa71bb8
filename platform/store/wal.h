/* wal.h - room for SQLite's log on a disk that is full. */
#ifndef ABX_STORE_WAL_H
#define ABX_STORE_WAL_H

#include <sqlite3.h>

/* After the log exists. Never fails: without it a full disk is just that. */
void abx__wal_reserve(sqlite3 *sqlite, const char *path);

/* sqlite3_close(), with the room kept for the next who opens it. NULL is fine. */
void abx__wal_close(sqlite3 *sqlite);

#endif
