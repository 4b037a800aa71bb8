/*
 * wal.c - room for the log of a database that a full disk cannot take away.
 *
 * A sandbox that fills the disk must still be killed, and that is a write. Writes go to
 * SQLite's log, so it keeps blocks beyond its end: allocated once, overwritten ever
 * after, and kept when the database is closed. What a checkpoint cannot write then to the
 * database itself stays in the log and is tried again by the next.
 */
#include "store/wal.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"

/* Twice what lies between two checkpoints (1000 pages); hundreds of kills. */
#define RESERVE_BYTES (8 << 20)

void abx__wal_reserve(sqlite3 *sqlite, const char *path)
{
	ABX_CLEANUP(abx__freep) char *log = abx__strf("%s-wal", path);
	ABX_CLEANUP(abx__closep) int fd = -1;
	int keep = 1;

	sqlite3_file_control(sqlite, NULL, SQLITE_FCNTL_PERSIST_WAL, &keep);
	if (log)
		fd = open(log, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	/* Not every file system can, and the disk may be full already: then it is a
	 * database like any other. The size stays, as it is SQLite's to set. */
	if (fd >= 0 && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, RESERVE_BYTES) < 0)
		return;
}

void abx__wal_close(sqlite3 *sqlite)
{
	/* With a limit SQLite would cut a log it keeps to nothing. */
	sqlite3_exec(sqlite, "PRAGMA journal_size_limit = -1", NULL, NULL, NULL);
	sqlite3_close(sqlite);
}
