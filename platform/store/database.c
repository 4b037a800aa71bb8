/*
 * database.c - documents in SQLite.
 *
 * Invariants: the counter's version is above that of every document and never goes back,
 * also across removals and restarts; every write runs in a transaction its caller opened;
 * SQLite's codes are translated here and nowhere else.
 */
#include "store/database.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/id.h"
#include "base/str.h"
#include "store/wal.h"

enum stmt {
	STMT_BEGIN,
	STMT_COMMIT,
	STMT_ROLLBACK,
	STMT_GET,
	STMT_LIST,
	STMT_LIST_NAMESPACE,
	STMT_INSERT,
	STMT_UPDATE,
	STMT_DELETE,
	STMT_READ_COUNTER,
	STMT_WRITE_COUNTER,
	STMT_COUNT
};

#define COLUMNS "kind, namespace, name, uid, version, created_ms, body"

static const char *const stmt_sql[STMT_COUNT] = {
	[STMT_BEGIN] = "BEGIN IMMEDIATE",
	[STMT_COMMIT] = "COMMIT",
	[STMT_ROLLBACK] = "ROLLBACK",
	[STMT_GET] = "SELECT " COLUMNS
		     " FROM document WHERE kind = ? AND namespace = ? AND name = ?",
	[STMT_LIST] = "SELECT " COLUMNS
		      " FROM document WHERE kind = ? ORDER BY name, namespace",
	[STMT_LIST_NAMESPACE] =
		"SELECT " COLUMNS
		" FROM document WHERE kind = ? AND namespace = ? ORDER BY name",
	[STMT_INSERT] = "INSERT INTO document (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?)",
	[STMT_UPDATE] = ("UPDATE document SET version = ?4, body = ?5"
			 " WHERE kind = ?1 AND namespace = ?2 AND name = ?3"),
	[STMT_DELETE] =
		"DELETE FROM document WHERE kind = ? AND namespace = ? AND name = ?",
	[STMT_READ_COUNTER] = "SELECT version FROM counter",
	[STMT_WRITE_COUNTER] = "UPDATE counter SET version = ?",
};

/* migrations[n] takes user_version n to n + 1. Never changed once released, only added
 * to. */
static const char *const migrations[] = {
	"CREATE TABLE document ("
	" kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,"
	" uid TEXT NOT NULL, version INTEGER NOT NULL, created_ms INTEGER NOT NULL,"
	" body TEXT NOT NULL,"
	" PRIMARY KEY (kind, namespace, name)) STRICT, WITHOUT ROWID;"
	"CREATE TABLE counter ("
	" id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL) STRICT;"
	"INSERT INTO counter (id, version) VALUES (1, 0);",
};
#define MIGRATION_COUNT ((int)(sizeof(migrations) / sizeof(migrations[0])))
#define APPLICATION_ID 0x41425831 /* "ABX1" */
#define PAGE_SIZE 4096

struct abx__database {
	sqlite3 *sqlite;
	sqlite3_stmt *stmts[STMT_COUNT];
	char *path;
	uint64_t version;           /* of the last write, open transaction included */
	uint64_t committed_version; /* where a rollback goes back to */
	bool in_transaction;
	bool unsynced; /* synchronous is NORMAL now, not FULL */
};

static int translate(abx__database *db, int rc, const char *what, abx_error **reterr)
{
	const char *text = sqlite3_errmsg(db->sqlite);

	switch (rc & 0xff) {
	case SQLITE_NOMEM:
		return abx__error_nomem(reterr);
	case SQLITE_FULL:
		abx__error_set(reterr, ABX_EEXHAUSTED, "store %s: %s: full", db->path,
			       what);
		abx__error_hint(reterr,
				"free disk space below the state directory, or delete "
				"objects that are no longer needed");
		return ABX_EEXHAUSTED;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		abx__error_set(reterr, ABX_EUNAVAILABLE,
			       "store %s: %s: locked by another process", db->path, what);
		abx__error_hint(reterr,
				"close the program that holds a transaction on it open");
		return ABX_EUNAVAILABLE;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		abx__error_set(reterr, ABX_EIO, "store %s: %s: damaged: %s", db->path,
			       what, text);
		abx__error_hint(reterr,
				"move the file away or put a backup in its place");
		return ABX_EIO;
	default:
		return abx__error_set(reterr, ABX_EIO, "store %s: %s: %s", db->path, what,
				      text);
	}
}

void abx__docs_free(abx__doc *docs, size_t count)
{
	if (!docs)
		return;
	for (size_t i = 0; i < count; i++) {
		abx__free((char *)docs[i].kind);
		abx__free((char *)docs[i].namespace_);
		abx__free((char *)docs[i].name);
		abx__free((char *)docs[i].uid);
		abx__free((char *)docs[i].body);
	}
	abx__free(docs);
}

int abx__doc_copy(const abx__doc *src, abx__doc *dst)
{
	*dst = *src;
	dst->kind = abx__strdup(src->kind);
	dst->namespace_ = abx__strdup(src->namespace_);
	dst->name = abx__strdup(src->name);
	dst->uid = abx__strdup(src->uid);
	dst->body = abx__malloc(src->body_len + 1);
	if (dst->body) {
		memcpy((char *)dst->body, src->body, src->body_len);
		((char *)dst->body)[src->body_len] = '\0';
	}
	return dst->kind && dst->namespace_ && dst->name && dst->uid && dst->body
		       ? ABX_OK
		       : ABX_ENOMEM;
}

static int exec(abx__database *db, const char *sql, const char *what, abx_error **reterr)
{
	int rc = sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? ABX_OK : translate(db, rc, what, reterr);
}

static int read_pragma(abx__database *db, const char *sql, int *ret, abx_error **reterr)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(db->sqlite, sql, -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		*ret = sqlite3_column_int(stmt, 0);
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW ? ABX_OK : translate(db, rc, sql, reterr);
}

static int migrate_step(abx__database *db, int from, abx_error **reterr)
{
	char done[64];
	int r;

	snprintf(done, sizeof(done), "PRAGMA user_version = %d; COMMIT", from + 1);
	r = exec(db, "BEGIN IMMEDIATE", "migrate", reterr);
	if (r < 0)
		return r;
	r = exec(db, migrations[from], "migrate", reterr);
	if (r == ABX_OK)
		r = exec(db, done, "migrate", reterr);
	if (r < 0)
		sqlite3_exec(db->sqlite, "ROLLBACK", NULL, NULL, NULL);
	return r;
}

static int migrate(abx__database *db, abx_error **reterr)
{
	int version = 0;
	int r = read_pragma(db, "PRAGMA user_version", &version, reterr);

	if (r < 0)
		return r;
	if (version > MIGRATION_COUNT) {
		abx__error_set(reterr, ABX_EUNSUPPORTED,
			       "store %s has format %d; this program knows up to %d",
			       db->path, version, MIGRATION_COUNT);
		abx__error_hint(reterr, "start the newer agentboxd that wrote it");
		return ABX_EUNSUPPORTED;
	}
	for (; version < MIGRATION_COUNT; version++) {
		r = migrate_step(db, version, reterr);
		if (r < 0)
			return r;
	}
	return ABX_OK;
}

static int configure(abx__database *db, uint64_t max_bytes, abx_error **reterr)
{
	char sql[320];
	int mode = 0;
	int r;

	sqlite3_busy_timeout(db->sqlite, 1500);
	sqlite3_extended_result_codes(db->sqlite, 1);
	/* Exclusive before the first access: the log's index is memory then, and no file
	 * that a full disk refuses. */
	snprintf(sql, sizeof(sql),
		 "PRAGMA locking_mode = EXCLUSIVE; PRAGMA page_size = %d; PRAGMA "
		 "journal_mode = WAL; PRAGMA synchronous = "
		 "FULL;"
		 "PRAGMA application_id = %d; PRAGMA max_page_count = %" PRIu64 ";"
		 "PRAGMA journal_size_limit = 16777216; PRAGMA trusted_schema = OFF",
		 PAGE_SIZE, APPLICATION_ID, max_bytes / PAGE_SIZE);
	r = exec(db, sql, "open", reterr);
	if (r < 0)
		return r;
	r = read_pragma(db, "PRAGMA synchronous", &mode, reterr);
	if (r < 0)
		return r;
	if (mode != 2)
		return abx__error_set(reterr, ABX_EIO,
				      "store %s: SQLite refuses synchronous=FULL",
				      db->path);
	return ABX_OK;
}

static int prepare(abx__database *db, abx_error **reterr)
{
	for (int i = 0; i < STMT_COUNT; i++) {
		int rc = sqlite3_prepare_v3(db->sqlite, stmt_sql[i], -1,
					    SQLITE_PREPARE_PERSISTENT, &db->stmts[i],
					    NULL);
		if (rc != SQLITE_OK)
			return translate(db, rc, stmt_sql[i], reterr);
	}
	return ABX_OK;
}

static int read_counter(abx__database *db, abx_error **reterr)
{
	sqlite3_stmt *stmt = db->stmts[STMT_READ_COUNTER];
	int rc = sqlite3_step(stmt);

	if (rc == SQLITE_ROW)
		db->version = db->committed_version =
			(uint64_t)sqlite3_column_int64(stmt, 0);
	sqlite3_reset(stmt);
	return rc == SQLITE_ROW ? ABX_OK : translate(db, rc, "read the version", reterr);
}

/* SQLite would make the file with the umask's mode; documents are nobody else's business.
 */
static int make_private(const char *path, abx_error **reterr)
{
	ABX_CLEANUP(abx__closep)
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "open store %s", path);
	return ABX_OK;
}

ABX_DEFINE_FREEP(database_freep, abx__database, abx__database_close)

int abx__database_open(const char *path, uint64_t max_bytes, abx__database **ret,
		       abx_error **reterr)
{
	ABX_CLEANUP(database_freep) abx__database *db = abx__calloc(1, sizeof(*db));
	int r, rc;

	if (!db)
		return abx__error_nomem(reterr);
	db->path = abx__strdup(path);
	if (!db->path)
		return abx__error_nomem(reterr);
	r = make_private(path, reterr);
	if (r < 0)
		return r;
	rc = sqlite3_open_v2(path, &db->sqlite,
			     SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
				     SQLITE_OPEN_EXRESCODE,
			     NULL);
	if (rc != SQLITE_OK)
		return translate(db, rc, "open", reterr);
	r = configure(db, max_bytes, reterr);
	if (r < 0)
		return r;
	r = migrate(db, reterr);
	if (r < 0)
		return r;
	r = prepare(db, reterr);
	if (r < 0)
		return r;
	r = read_counter(db, reterr);
	if (r < 0)
		return r;
	abx__wal_reserve(db->sqlite, path);
	*ret = abx_take(db);
	return ABX_OK;
}

void abx__database_close(abx__database *db)
{
	if (!db)
		return;
	for (int i = 0; i < STMT_COUNT; i++)
		sqlite3_finalize(db->stmts[i]);
	abx__wal_close(db->sqlite);
	abx__free(db->path);
	abx__free(db);
}

/* Runs a statement that gives no rows. */
static int run(abx__database *db, enum stmt which, const char *what, abx_error **reterr)
{
	sqlite3_stmt *stmt = db->stmts[which];
	int rc = sqlite3_step(stmt);
	int r = rc == SQLITE_DONE ? ABX_OK : translate(db, rc, what, reterr);

	sqlite3_reset(stmt);
	return r;
}

int abx__database_begin(abx__database *db, bool synced, abx_error **reterr)
{
	int r;

	if (db->unsynced == synced) {
		r = exec(db,
			 synced ? "PRAGMA synchronous = FULL"
				: "PRAGMA synchronous = NORMAL",
			 "begin", reterr);
		if (r < 0)
			return r;
		db->unsynced = !synced;
	}
	r = run(db, STMT_BEGIN, "begin", reterr);
	db->in_transaction = r == ABX_OK;
	return r;
}

int abx__database_commit(abx__database *db, abx_error **reterr)
{
	int r = ABX_OK;

	if (db->version != db->committed_version) {
		sqlite3_bind_int64(db->stmts[STMT_WRITE_COUNTER], 1,
				   (sqlite3_int64)db->version);
		r = run(db, STMT_WRITE_COUNTER, "count", reterr);
	}
	if (r == ABX_OK)
		r = run(db, STMT_COMMIT, "commit", reterr);
	if (r == ABX_OK) {
		db->committed_version = db->version;
		db->in_transaction = false;
	}
	return r;
}

void abx__database_rollback(abx__database *db)
{
	/* Some failures have rolled back by themselves. */
	if (db->in_transaction && !sqlite3_get_autocommit(db->sqlite))
		run(db, STMT_ROLLBACK, "rollback", NULL);
	db->version = db->committed_version;
	db->in_transaction = false;
}

uint64_t abx__database_version(const abx__database *db)
{
	return db->in_transaction ? db->version : db->committed_version;
}

static void bind_key(sqlite3_stmt *stmt, const char *kind, const char *namespace_,
		     const char *name)
{
	sqlite3_bind_text(stmt, 1, kind, -1, SQLITE_STATIC);
	if (namespace_)
		sqlite3_bind_text(stmt, 2, namespace_, -1, SQLITE_STATIC);
	if (name)
		sqlite3_bind_text(stmt, 3, name, -1, SQLITE_STATIC);
}

static int copy_row(sqlite3_stmt *stmt, abx__doc *doc)
{
	abx__doc row = {
		.kind = (const char *)sqlite3_column_text(stmt, 0),
		.namespace_ = (const char *)sqlite3_column_text(stmt, 1),
		.name = (const char *)sqlite3_column_text(stmt, 2),
		.uid = (const char *)sqlite3_column_text(stmt, 3),
		.version = (uint64_t)sqlite3_column_int64(stmt, 4),
		.created_ms = sqlite3_column_int64(stmt, 5),
		.body = (const char *)sqlite3_column_text(stmt, 6),
		.body_len = (size_t)sqlite3_column_bytes(stmt, 6),
	};

	return abx__doc_copy(&row, doc);
}

static int collect(sqlite3_stmt *stmt, abx__doc **docs, size_t *count)
{
	size_t size = 0;
	int rc;

	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		if (*count == size) {
			abx__doc *more;

			size = size ? 2 * size : 1;
			more = abx__reallocarray(*docs, size, sizeof(**docs));
			if (!more)
				return SQLITE_NOMEM;
			*docs = more;
		}
		memset(&(*docs)[*count], 0, sizeof(**docs));
		if (copy_row(stmt, &(*docs)[(*count)++]) < 0)
			return SQLITE_NOMEM;
	}
	return rc;
}

static int query(abx__database *db, enum stmt which, const char *kind,
		 const char *namespace_, const char *name, abx__doc **ret,
		 size_t *ret_count, bool *ret_broken, abx_error **reterr)
{
	sqlite3_stmt *stmt = db->stmts[which];
	abx__doc *docs = NULL;
	size_t count = 0;
	int rc, r = ABX_OK;

	bind_key(stmt, kind, namespace_, name);
	rc = collect(stmt, &docs, &count);
	if (rc != SQLITE_DONE) {
		r = translate(db, rc, "read", reterr);
		*ret_broken = true;
		abx__docs_free(docs, count);
	} else {
		*ret = docs;
		*ret_count = count;
	}
	sqlite3_reset(stmt);
	sqlite3_clear_bindings(stmt);
	return r;
}

static int not_found(const char *kind, const char *namespace_, const char *name,
		     abx_error **reterr)
{
	return abx__error_set(reterr, ABX_ENOTFOUND, "%s %s%s%s does not exist", kind,
			      namespace_, *namespace_ ? "/" : "", name);
}

int abx__database_get(abx__database *db, const char *kind, const char *namespace_,
		      const char *name, abx__doc **ret, bool *ret_broken,
		      abx_error **reterr)
{
	abx__doc *docs = NULL;
	size_t count = 0;
	int r = query(db, STMT_GET, kind, namespace_, name, &docs, &count, ret_broken,
		      reterr);

	if (r < 0)
		return r;
	if (count == 0)
		return not_found(kind, namespace_, name, reterr);
	*ret = docs;
	return ABX_OK;
}

int abx__database_list(abx__database *db, const char *kind, const char *namespace_,
		       abx__doc **ret, size_t *ret_count, bool *ret_broken,
		       abx_error **reterr)
{
	return query(db, namespace_ ? STMT_LIST_NAMESPACE : STMT_LIST, kind, namespace_,
		     NULL, ret, ret_count, ret_broken, reterr);
}

/* Steps a write whose parameters are bound; unbinds them. */
static int write_row(abx__database *db, enum stmt which, const char *what,
		     bool *ret_broken, abx_error **reterr)
{
	int r = run(db, which, what, reterr);

	sqlite3_clear_bindings(db->stmts[which]);
	if (r < 0)
		*ret_broken = true;
	else
		db->version++;
	return r;
}

int abx__database_create(abx__database *db, const char *kind, const char *namespace_,
			 const char *name, int64_t now_ms, const char *body,
			 size_t body_len, abx__doc **ret, bool *ret_broken,
			 abx_error **reterr)
{
	sqlite3_stmt *stmt = db->stmts[STMT_INSERT];
	char uid[ABX__UUID_LEN + 1];
	abx__doc *docs = NULL;
	size_t count = 0;
	int r = query(db, STMT_GET, kind, namespace_, name, &docs, &count, ret_broken,
		      reterr);

	if (r < 0)
		return r;
	abx__docs_free(docs, count);
	if (count > 0)
		return abx__error_set(reterr, ABX_EEXISTS, "%s %s%s%s exists already",
				      kind, namespace_, *namespace_ ? "/" : "", name);
	r = abx__id_uuid(uid);
	if (r < 0)
		return abx__error_set(reterr, r, "%s %s: no random bytes for a uid", kind,
				      name);
	bind_key(stmt, kind, namespace_, name);
	sqlite3_bind_text(stmt, 4, uid, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 5, (sqlite3_int64)(db->version + 1));
	sqlite3_bind_int64(stmt, 6, now_ms);
	sqlite3_bind_text64(stmt, 7, body, body_len, SQLITE_STATIC, SQLITE_UTF8);
	r = write_row(db, STMT_INSERT, "create", ret_broken, reterr);
	if (r < 0)
		return r;
	return abx__database_get(db, kind, namespace_, name, ret, ret_broken, reterr);
}

/* The present document, when it has the version expected. */
static int expect(abx__database *db, const char *kind, const char *namespace_,
		  const char *name, uint64_t version, abx__doc **ret, bool *ret_broken,
		  abx_error **reterr)
{
	abx__doc *doc = NULL;
	int r = abx__database_get(db, kind, namespace_, name, &doc, ret_broken, reterr);

	if (r < 0)
		return r;
	if (version != 0 && doc->version != version) {
		r = abx__error_set(reterr, ABX_ECONFLICT,
				   "%s %s%s%s is at version %" PRIu64 ", not %" PRIu64,
				   kind, namespace_, *namespace_ ? "/" : "", name,
				   doc->version, version);
		abx__docs_free(doc, 1);
		return r;
	}
	*ret = doc;
	return ABX_OK;
}

int abx__database_update(abx__database *db, const char *kind, const char *namespace_,
			 const char *name, uint64_t version, const char *body,
			 size_t body_len, abx__doc **ret, bool *ret_broken,
			 abx_error **reterr)
{
	sqlite3_stmt *stmt = db->stmts[STMT_UPDATE];
	abx__doc *doc = NULL;
	int r = expect(db, kind, namespace_, name, version, &doc, ret_broken, reterr);

	if (r < 0)
		return r;
	abx__docs_free(doc, 1);
	bind_key(stmt, kind, namespace_, name);
	sqlite3_bind_int64(stmt, 4, (sqlite3_int64)(db->version + 1));
	sqlite3_bind_text64(stmt, 5, body, body_len, SQLITE_STATIC, SQLITE_UTF8);
	r = write_row(db, STMT_UPDATE, "update", ret_broken, reterr);
	if (r < 0)
		return r;
	return abx__database_get(db, kind, namespace_, name, ret, ret_broken, reterr);
}

int abx__database_remove(abx__database *db, const char *kind, const char *namespace_,
			 const char *name, uint64_t version, abx__doc **ret,
			 bool *ret_broken, abx_error **reterr)
{
	abx__doc *doc = NULL;
	int r = expect(db, kind, namespace_, name, version, &doc, ret_broken, reterr);

	if (r < 0)
		return r;
	bind_key(db->stmts[STMT_DELETE], kind, namespace_, name);
	r = write_row(db, STMT_DELETE, "remove", ret_broken, reterr);
	if (r < 0) {
		abx__docs_free(doc, 1);
		return r;
	}
	doc->version = db->version;
	*ret = doc;
	return ABX_OK;
}
