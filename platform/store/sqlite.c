/*
 * sqlite.c - the store port over database.c: a queue, one worker thread, and a way back
 * to the loop.
 *
 * Invariants: only the worker touches the database after open; only the loop's thread
 * runs callbacks, and never from inside the call that started the operation; operations
 * complete in the order they came, and none is reported done before its transaction is
 * durable. What queued up while the worker was busy shares the next transaction; when
 * that transaction breaks, its operations run again one by one, so that one of them
 * cannot fail the others.
 */
#include "store/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "store/database.h"

#define DEFAULT_MAX_BYTES ((uint64_t)1 << 30)
#define DEFAULT_QUEUE_CAP 65536
#define BATCH_CAP 512
#define HISTORY_CAP 256 /* past writes a new watch can still be given */
#define SPARE_OPS 64    /* completions that can be reported when memory has run out */

enum op_type { OP_GET, OP_LIST, OP_CREATE, OP_UPDATE, OP_REMOVE, OP_REFUSED };

typedef struct op {
	struct op *next;
	enum op_type type;
	bool spare; /* of the preallocated ones */
	char *kind, *namespace_, *name, *body;
	size_t body_len;
	uint64_t version;
	abx__doc_done done;
	abx__docs_done docs_done;
	void *userdata;
	/* the outcome */
	int r;
	abx_error *err;
	abx__doc *docs;
	size_t count;
} op;

typedef struct queue {
	op *head, **tail;
	size_t count;
} queue;

typedef struct event {
	enum abx__doc_event type;
	abx__doc *doc; /* one, owned */
} event;

struct abx__store_watch {
	struct abx__store_watch *next;
	char *kind;
	uint64_t from; /* events up to here were given, or not wanted */
	abx__doc_watch_fn on_event;
	void *userdata;
	bool stopped; /* freed when no notification runs */
};

typedef struct sqlite_store {
	abx__store base;
	const char *const *light_kinds; /* or NULL */
	uv_async_t async;
	uv_loop_t *loop;
	int lock_fd;
	size_t queue_cap;
	pthread_t thread;
	pthread_mutex_t mutex; /* guards the next four */
	pthread_cond_t cond;
	queue todo;
	queue done;
	bool closing;
	bool worker_ended;
	abx__database *db; /* the worker's */
	/* the loop thread's */
	size_t in_flight;
	op spares[SPARE_OPS];
	abx__store_watch *watches;
	event history[HISTORY_CAP];
	size_t history_first, history_count;
	uint64_t history_floor; /* every write after this version is in the history */
	bool notifying;
	void (*close_done)(void *userdata);
	void *close_userdata;
} sqlite_store;

static void queue_init(queue *q)
{
	q->head = NULL;
	q->tail = &q->head;
	q->count = 0;
}

static void queue_push(queue *q, op *o)
{
	o->next = NULL;
	*q->tail = o;
	q->tail = &o->next;
	q->count++;
}

static op *queue_pop(queue *q)
{
	op *o = q->head;

	if (!o)
		return NULL;
	q->head = o->next;
	if (!q->head)
		q->tail = &q->head;
	q->count--;
	return o;
}

static void queue_append(queue *q, queue *more)
{
	if (!more->head)
		return;
	*q->tail = more->head;
	q->tail = more->tail;
	q->count += more->count;
	queue_init(more);
}

static void op_clear_outcome(op *o)
{
	abx_error_free(o->err);
	o->err = NULL;
	abx__docs_free(o->docs, o->count);
	o->docs = NULL;
	o->count = 0;
}

static void op_free(op *o)
{
	op_clear_outcome(o);
	abx__free(o->kind);
	abx__free(o->namespace_);
	abx__free(o->name);
	abx__free(o->body);
	if (o->spare)
		*o = (op){ 0 };
	else
		abx__free(o);
}

/* --- worker --- */

static int op_run(sqlite_store *store, op *o, bool *ret_broken)
{
	abx__database *db = store->db;

	o->count = 1;
	switch (o->type) {
	case OP_GET:
		return abx__database_get(db, o->kind, o->namespace_, o->name, &o->docs,
					 ret_broken, &o->err);
	case OP_LIST:
		return abx__database_list(db, o->kind, o->namespace_, &o->docs, &o->count,
					  ret_broken, &o->err);
	case OP_CREATE:
		return abx__database_create(db, o->kind, o->namespace_, o->name,
					    abx__wall_ms(), o->body, o->body_len,
					    &o->docs, ret_broken, &o->err);
	case OP_UPDATE:
		return abx__database_update(db, o->kind, o->namespace_, o->name,
					    o->version, o->body, o->body_len, &o->docs,
					    ret_broken, &o->err);
	case OP_REMOVE:
		return abx__database_remove(db, o->kind, o->namespace_, o->name,
					    o->version, &o->docs, ret_broken, &o->err);
	case OP_REFUSED:
		break;
	}
	return o->r;
}

static bool is_light(const sqlite_store *store, const char *kind)
{
	for (const char *const *k = store->light_kinds; k && *k; k++)
		if (strcmp(*k, kind) == 0)
			return true;
	return false;
}

/* A transaction is synced for its most demanding write. */
static bool needs_sync(const sqlite_store *store, const op *first, const op *end)
{
	for (const op *o = first; o != end; o = o->next)
		if ((o->type == OP_CREATE || o->type == OP_UPDATE ||
		     o->type == OP_REMOVE) &&
		    !is_light(store, o->kind))
			return true;
	return false;
}

/* One transaction over `first` up to (not including) `end`: ABX_OK when all of it is
 * durable. */
static int run_batch(sqlite_store *store, op *first, op *end, abx_error **reterr)
{
	bool broken = false;
	int r = abx__database_begin(store->db, needs_sync(store, first, end), reterr);

	if (r < 0)
		return r;
	for (op *o = first; o != end && !broken; o = o->next) {
		o->r = op_run(store, o, &broken);
		if (!o->docs)
			o->count = 0;
		if (broken) {
			r = o->r;
			if (reterr)
				*reterr = abx__error_copy(o->err);
		}
	}
	if (!broken)
		r = abx__database_commit(store->db, reterr);
	if (r < 0)
		abx__database_rollback(store->db);
	return r;
}

static void run_single(sqlite_store *store, op *o)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int r;

	if (o->type == OP_REFUSED)
		return;
	op_clear_outcome(o);
	r = run_batch(store, o, o->next, &err);
	if (r < 0) {
		op_clear_outcome(o);
		o->r = r;
		o->err = abx_take(err);
	}
}

static void run_queue(sqlite_store *store, queue *q)
{
	op *o = q->head;

	while (o) {
		op *end = o;

		for (size_t n = 0; end && n < BATCH_CAP; n++)
			end = end->next;
		if (run_batch(store, o, end, NULL) < 0)
			for (op *one = o; one != end; one = one->next)
				run_single(store, one);
		o = end;
	}
}

static void *worker(void *userdata)
{
	sqlite_store *store = userdata;
	queue batch;

	queue_init(&batch);
	pthread_mutex_lock(&store->mutex);
	for (;;) {
		while (!store->todo.head && !store->closing)
			pthread_cond_wait(&store->cond, &store->mutex);
		if (!store->todo.head)
			break;
		queue_append(&batch, &store->todo);
		pthread_mutex_unlock(&store->mutex);
		run_queue(store, &batch);
		pthread_mutex_lock(&store->mutex);
		queue_append(&store->done, &batch);
		uv_async_send(&store->async);
	}
	store->worker_ended = true;
	uv_async_send(&store->async);
	pthread_mutex_unlock(&store->mutex);
	return NULL;
}

/* --- watches --- */

static void history_add(sqlite_store *store, enum abx__doc_event type,
			const abx__doc *doc)
{
	abx__doc *copy = abx__calloc(1, sizeof(*copy));
	event *slot;

	if (!copy || abx__doc_copy(doc, copy) < 0) {
		/* A gap: no watch may start before it. */
		abx__docs_free(copy, copy ? 1 : 0);
		store->history_floor = doc->version;
		return;
	}
	slot = &store->history[(store->history_first + store->history_count) %
			       HISTORY_CAP];
	if (store->history_count == HISTORY_CAP) {
		store->history_floor = slot->doc->version;
		abx__docs_free(slot->doc, 1);
		store->history_first = (store->history_first + 1) % HISTORY_CAP;
	} else {
		store->history_count++;
	}
	*slot = (event){ .type = type, .doc = copy };
}

static void watch_give(abx__store_watch *w, enum abx__doc_event type, const abx__doc *doc)
{
	if (w->stopped || doc->version <= w->from || strcmp(w->kind, doc->kind) != 0)
		return;
	w->from = doc->version;
	w->on_event(w->userdata, type, doc);
}

/* What a watch that has just been made missed. */
static void watch_catch_up(sqlite_store *store, abx__store_watch *w)
{
	for (size_t i = 0; i < store->history_count && !w->stopped; i++) {
		const event *e =
			&store->history[(store->history_first + i) % HISTORY_CAP];

		watch_give(w, e->type, e->doc);
	}
}

static void watches_sweep(sqlite_store *store)
{
	for (abx__store_watch **p = &store->watches; *p;) {
		abx__store_watch *w = *p;

		if (!w->stopped) {
			p = &w->next;
			continue;
		}
		*p = w->next;
		abx__free(w->kind);
		abx__free(w);
	}
}

static void notify(sqlite_store *store, const op *o)
{
	static const enum abx__doc_event types[] = {
		[OP_CREATE] = ABX__DOC_ADDED,
		[OP_UPDATE] = ABX__DOC_CHANGED,
		[OP_REMOVE] = ABX__DOC_REMOVED,
	};

	if (o->r < 0 || o->type < OP_CREATE || o->type > OP_REMOVE)
		return;
	for (abx__store_watch *w = store->watches; w; w = w->next) {
		watch_catch_up(store, w);
		watch_give(w, types[o->type], o->docs);
	}
	history_add(store, types[o->type], o->docs);
}

/* --- loop thread --- */

static void complete(sqlite_store *store, op *o)
{
	notify(store, o);
	store->in_flight--;
	if (o->docs_done)
		o->docs_done(o->userdata, o->r, o->r < 0 ? NULL : o->docs,
			     o->r < 0 ? 0 : o->count, o->err);
	else
		o->done(o->userdata, o->r, o->r < 0 ? NULL : o->docs, o->err);
	op_free(o);
}

static void on_closed(uv_handle_t *handle)
{
	sqlite_store *store = handle->data;
	void (*done)(void *) = store->close_done;
	void *userdata = store->close_userdata;

	for (size_t i = 0; i < store->history_count; i++)
		abx__docs_free(
			store->history[(store->history_first + i) % HISTORY_CAP].doc, 1);
	for (abx__store_watch *w = store->watches; w; w = w->next)
		w->stopped = true;
	watches_sweep(store);
	pthread_cond_destroy(&store->cond);
	pthread_mutex_destroy(&store->mutex);
	close(store->lock_fd);
	abx__free(store);
	done(userdata);
}

static void on_async(uv_async_t *async)
{
	sqlite_store *store = async->data;
	queue batch;
	bool ended;
	op *o;

	queue_init(&batch);
	pthread_mutex_lock(&store->mutex);
	queue_append(&batch, &store->done);
	ended = store->worker_ended;
	pthread_mutex_unlock(&store->mutex);

	store->notifying = true;
	for (abx__store_watch *w = store->watches; w; w = w->next)
		watch_catch_up(store, w);
	while ((o = queue_pop(&batch)))
		complete(store, o);
	store->notifying = false;
	watches_sweep(store);
	if (ended && !uv_is_closing((uv_handle_t *)async)) {
		/* It has left its last locked section: joining does not wait. */
		pthread_join(store->thread, NULL);
		abx__database_close(store->db);
		uv_close((uv_handle_t *)async, on_closed);
	}
}

static op *op_spare(sqlite_store *store)
{
	for (size_t i = 0; i < SPARE_OPS; i++) {
		if (store->spares[i].spare)
			continue;
		store->spares[i].spare = true;
		return &store->spares[i];
	}
	return NULL;
}

static op *op_new(const char *kind, const char *namespace_, const char *name,
		  const char *body, size_t body_len)
{
	op *o = abx__calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->kind = abx__strdup(kind);
	o->namespace_ = abx__strdup(namespace_);
	o->name = abx__strdup(name);
	if (body)
		o->body = abx__memdup(body, body_len);
	o->body_len = body_len;
	if (o->kind && (o->namespace_ || !namespace_) && (o->name || !name) &&
	    (o->body || !body))
		return o;
	op_free(o);
	return NULL;
}

/* Why an operation is not even queued; ABX_OK when it is. */
static int check(sqlite_store *store, const char *kind, const char *name,
		 const char *body, size_t body_len, abx_error **reterr)
{
	if (store->in_flight >= store->queue_cap)
		return abx__error_set(reterr, ABX_EEXHAUSTED,
				      "store: %zu operations are waiting already",
				      store->in_flight);
	if (body_len > ABX__STORE_BODY_CAP)
		return abx__error_set(reterr, ABX_ETOOBIG,
				      "%s %s: document of %zu bytes; at most %zu", kind,
				      name, body_len, ABX__STORE_BODY_CAP);
	if (body && memchr(body, '\0', body_len))
		return abx__error_set(reterr, ABX_EINVAL,
				      "%s %s: NUL byte in the document", kind, name);
	return ABX_OK;
}

static void submit(sqlite_store *store, op template_, const char *kind,
		   const char *namespace_, const char *name, const char *body,
		   size_t body_len)
{
	abx_error *err = NULL;
	int r = check(store, kind, name ? name : "", body, body_len, &err);
	op *o = r < 0 ? op_new(kind, NULL, NULL, NULL, 0)
		      : op_new(kind, namespace_, name, body, body_len);

	if (!o) {
		r = r < 0 ? r : abx__error_nomem(&err);
		o = op_spare(store);
	}
	if (!o) {
		/* Even the spares are used up: better early than never. */
		if (template_.docs_done)
			template_.docs_done(template_.userdata, r, NULL, 0, err);
		else
			template_.done(template_.userdata, r, NULL, err);
		abx_error_free(err);
		return;
	}
	o->type = r < 0 ? OP_REFUSED : template_.type;
	o->version = template_.version;
	o->done = template_.done;
	o->docs_done = template_.docs_done;
	o->userdata = template_.userdata;
	o->r = r;
	o->err = err;
	store->in_flight++;
	pthread_mutex_lock(&store->mutex);
	queue_push(&store->todo, o);
	pthread_cond_signal(&store->cond);
	pthread_mutex_unlock(&store->mutex);
}

static void store_get(abx__store *base, const char *kind, const char *namespace_,
		      const char *name, abx__doc_done done, void *userdata)
{
	submit((sqlite_store *)base,
	       (op){ .type = OP_GET, .done = done, .userdata = userdata }, kind,
	       namespace_, name, NULL, 0);
}

static void store_list(abx__store *base, const char *kind, const char *namespace_,
		       abx__docs_done done, void *userdata)
{
	submit((sqlite_store *)base,
	       (op){ .type = OP_LIST, .docs_done = done, .userdata = userdata }, kind,
	       namespace_, NULL, NULL, 0);
}

static void store_create(abx__store *base, const char *kind, const char *namespace_,
			 const char *name, const char *body, size_t body_len,
			 abx__doc_done done, void *userdata)
{
	submit((sqlite_store *)base,
	       (op){ .type = OP_CREATE, .done = done, .userdata = userdata }, kind,
	       namespace_, name, body, body_len);
}

static void store_update(abx__store *base, const char *kind, const char *namespace_,
			 const char *name, uint64_t version, const char *body,
			 size_t body_len, abx__doc_done done, void *userdata)
{
	submit((sqlite_store *)base,
	       (op){ .type = OP_UPDATE,
		     .version = version,
		     .done = done,
		     .userdata = userdata },
	       kind, namespace_, name, body, body_len);
}

static void store_remove(abx__store *base, const char *kind, const char *namespace_,
			 const char *name, uint64_t version, abx__doc_done done,
			 void *userdata)
{
	submit((sqlite_store *)base,
	       (op){ .type = OP_REMOVE,
		     .version = version,
		     .done = done,
		     .userdata = userdata },
	       kind, namespace_, name, NULL, 0);
}

static int store_watch(abx__store *base, const char *kind, uint64_t from_version,
		       abx__doc_watch_fn on_event, void *userdata, abx__store_watch **ret,
		       abx_error **reterr)
{
	sqlite_store *store = (sqlite_store *)base;
	abx__store_watch *w;

	if (from_version < store->history_floor) {
		abx__error_set(reterr, ABX_ECONFLICT,
			       "watch of %s from version %" PRIu64
			       ": changes are kept from %" PRIu64 " on",
			       kind, from_version, store->history_floor);
		abx__error_hint(
			reterr,
			"list again and watch from the newest version of the list");
		return ABX_ECONFLICT;
	}
	w = abx__calloc(1, sizeof(*w));
	if (!w)
		return abx__error_nomem(reterr);
	w->kind = abx__strdup(kind);
	if (!w->kind) {
		abx__free(w);
		return abx__error_nomem(reterr);
	}
	w->from = from_version;
	w->on_event = on_event;
	w->userdata = userdata;
	w->next = store->watches;
	store->watches = w;
	uv_async_send(&store->async);
	*ret = w;
	return ABX_OK;
}

static void store_watch_stop(abx__store *base, abx__store_watch *w)
{
	sqlite_store *store = (sqlite_store *)base;

	w->stopped = true;
	if (!store->notifying)
		watches_sweep(store);
}

static void store_close(abx__store *base, void (*done)(void *userdata), void *userdata)
{
	sqlite_store *store = (sqlite_store *)base;

	store->close_done = done;
	store->close_userdata = userdata;
	pthread_mutex_lock(&store->mutex);
	store->closing = true;
	pthread_cond_signal(&store->cond);
	pthread_mutex_unlock(&store->mutex);
}

static const abx__store_ops sqlite_ops = {
	.name = "sqlite",
	.get = store_get,
	.list = store_list,
	.create = store_create,
	.update = store_update,
	.remove = store_remove,
	.watch = store_watch,
	.watch_stop = store_watch_stop,
	.close = store_close,
};

/* The lock is the kernel's and goes with the process: nothing to clean after a kill. */
static int lock_directory(const char *dir, int *ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *path = abx__strf("%s/store.lock", dir);
	ABX_CLEANUP(abx__closep) int fd = -1;

	if (!path)
		return abx__error_nomem(reterr);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "open %s", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return abx__error_errno(reterr, ABX_EIO, errno, "lock %s", path);
		abx__error_set(reterr, ABX_ESTATE,
			       "state directory %s is in use by another process", dir);
		abx__error_hint(
			reterr,
			"stop the agentboxd that runs on it, or name another state "
			"directory");
		return ABX_ESTATE;
	}
	*ret = abx_take_fd(fd);
	return ABX_OK;
}

static int start_worker(sqlite_store *store, abx_error **reterr)
{
	int r;

	pthread_mutex_init(&store->mutex, NULL);
	pthread_cond_init(&store->cond, NULL);
	r = uv_async_init(store->loop, &store->async, on_async);
	if (r < 0)
		return abx__error_set(reterr, ABX_EIO, "store: %s", uv_strerror(r));
	store->async.data = store;
	r = pthread_create(&store->thread, NULL, worker, store);
	if (r != 0) {
		/* The handle is the loop's now; it is freed with the store once the loop
		 * has let go. */
		return abx__error_errno(reterr, ABX_EIO, r, "store: start the worker");
	}
	return ABX_OK;
}

static void nothing(void *userdata)
{
	(void)userdata;
}

int abx__store_sqlite_open(uv_loop_t *loop, const abx__store_sqlite_options *options,
			   abx__store **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *path = abx__strf("%s/store.db", options->dir);
	sqlite_store *store = abx__calloc(1, sizeof(*store));
	int r;

	if (!path || !store) {
		abx__free(store);
		return abx__error_nomem(reterr);
	}
	store->base.ops = &sqlite_ops;
	store->loop = loop;
	store->lock_fd = -1;
	store->light_kinds = options->light_kinds;
	store->queue_cap = options->queue_cap ? options->queue_cap : DEFAULT_QUEUE_CAP;
	queue_init(&store->todo);
	queue_init(&store->done);
	r = lock_directory(options->dir, &store->lock_fd, reterr);
	if (r == ABX_OK)
		r = abx__database_open(
			path, options->max_bytes ? options->max_bytes : DEFAULT_MAX_BYTES,
			&store->db, reterr);
	if (r < 0) {
		abx__closep(&store->lock_fd);
		abx__free(store);
		return r;
	}
	store->history_floor = abx__database_version(store->db);
	r = start_worker(store, reterr);
	if (r < 0) {
		abx__database_close(store->db);
		store->close_done = nothing;
		if (store->async.data)
			uv_close((uv_handle_t *)&store->async, on_closed);
		else
			abx__free(store);
		return r;
	}
	*ret = &store->base;
	return ABX_OK;
}
