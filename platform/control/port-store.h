/*
 * port-store.h - what control/ and serve/ need of something that keeps objects. Owned by
 * control/; filled by platform/store/{sqlite,kubernetes}. Its suite,
 * tests/store/suite-store.c, is written against this header alone.
 *
 * An object is a JSON document under (kind, namespace, name); namespace "" for
 * cluster-scoped kinds. The store gives it a uid at creation and a version that grows
 * with every write of any object. Writes are durable when their `done` runs. Calls never
 * block the loop: each completes once, later, on the loop's thread, in order per store.
 * Writes queued together may share one transaction.
 */
#ifndef ABX_CONTROL_PORT_STORE_H
#define ABX_CONTROL_PORT_STORE_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>

typedef struct abx__doc {
	const char *kind;       /* "SandboxEnv", "Pod", "ApiKey", ... */
	const char *namespace_; /* "" for cluster-scoped kinds */
	const char *name;
	const char *uid;
	uint64_t version;   /* resourceVersion */
	int64_t created_ms; /* wall clock */
	const char *body;   /* JSON text; the caller's own shape */
	size_t body_len;
} abx__doc;

enum abx__doc_event { ABX__DOC_ADDED, ABX__DOC_CHANGED, ABX__DOC_REMOVED };

typedef void (*abx__doc_done)(void *userdata, int r, const abx__doc *doc,
			      const abx_error *err);
/* `docs` and its strings live until the callback returns. */
typedef void (*abx__docs_done)(void *userdata, int r, const abx__doc *docs, size_t count,
			       const abx_error *err);
typedef void (*abx__doc_watch_fn)(void *userdata, enum abx__doc_event event,
				  const abx__doc *doc);

typedef struct abx__store abx__store;
typedef struct abx__store_watch abx__store_watch;
typedef struct abx__store_ops {
	const char *name; /* "sqlite", "kubernetes" */

	void (*get)(abx__store *store, const char *kind, const char *namespace_,
		    const char *name, abx__doc_done done, void *userdata);
	/* All of a kind (namespace NULL: of every namespace), by name. */
	void (*list)(abx__store *store, const char *kind, const char *namespace_,
		     abx__docs_done done, void *userdata);
	/* ABX_EEXISTS when it is there. */
	void (*create)(abx__store *store, const char *kind, const char *namespace_,
		       const char *name, const char *body, size_t body_len,
		       abx__doc_done done, void *userdata);
	/* Replaces the body. version 0: whatever is there; else ABX_ECONFLICT when it
	 * moved on. ABX_ENOTFOUND. */
	void (*update)(abx__store *store, const char *kind, const char *namespace_,
		       const char *name, uint64_t version, const char *body,
		       size_t body_len, abx__doc_done done, void *userdata);
	void (*remove)(abx__store *store, const char *kind, const char *namespace_,
		       const char *name, uint64_t version, abx__doc_done done,
		       void *userdata);
	/* Every write of the kind after `from_version`, in order, until stopped. */
	int (*watch)(abx__store *store, const char *kind, uint64_t from_version,
		     abx__doc_watch_fn on_event, void *userdata, abx__store_watch **ret,
		     abx_error **reterr);
	void (*watch_stop)(abx__store *store, abx__store_watch *watch);
	/* Finishes what is queued, then closes; `done` last. */
	void (*close)(abx__store *store, void (*done)(void *userdata), void *userdata);
} abx__store_ops;

struct abx__store {
	const abx__store_ops *ops;
};

#endif
