/*
 * upstream.c - see upstream.h.
 */
#include "gateway/upstream.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"

#define HASH_NONFATAL_OOM 1
#define uthash_malloc(size) abx__malloc(size)
#define uthash_free(p, size) abx__free(p)
#include <uthash.h>

#define KEY_MAX 400

/* The kept connections of one Pod. */
struct upstream_host {
	UT_hash_handle hh;
	abx__upstream *kept; /* the latest first */
	unsigned count;
	char key[];
};

struct abx__upstreams {
	abx__upstreams_options opts;
	abx__http_scratch scratch;
	struct upstream_host *hosts;
	abx__upstream *used;
	size_t kept_count;
	unsigned tickets; /* not yet freed */
	bool closing;
	void (*closed)(void *userdata);
	void *closed_userdata;
	uv_timer_t waiter; /* closing: looks until the last connection is gone */
};

struct abx__upstream_ticket {
	uv_timer_t timer; /* first: the try's deadline, or the wait for the next */
	abx__upstreams *pool;
	bool connecting;
	bool timer_closed;
	unsigned tried;
	abx__upstream_tries tries;
	uint16_t port;
	void (*done)(void *userdata, int r, abx__upstream *up, const abx_error *err);
	void *userdata;
	const char *namespace_, *pod;
	char text[];
};

/* ---- keeping ---- */

static bool make_key(char key[KEY_MAX], const char *namespace_, const char *pod)
{
	return (size_t)snprintf(key, KEY_MAX, "%s/%s", namespace_, pod) < KEY_MAX;
}

static void unlink_from(abx__upstream **list, abx__upstream *up)
{
	if (up->prev)
		up->prev->next = up->next;
	else
		*list = up->next;
	if (up->next)
		up->next->prev = up->prev;
	up->prev = up->next = NULL;
}

static void push_to(abx__upstream **list, abx__upstream *up)
{
	up->prev = NULL;
	up->next = *list;
	if (up->next)
		up->next->prev = up;
	*list = up;
}

static void unkeep(abx__upstream *up)
{
	struct upstream_host *host = up->host;
	abx__upstreams *pool = up->pool;

	unlink_from(&host->kept, up);
	up->host = NULL;
	pool->kept_count--;
	if (--host->count == 0) {
		HASH_DEL(pool->hosts, host);
		abx__free(host);
	}
}

static void destroy(abx__upstream *up)
{
	abx__http_conn_close(up->conn);
	abx__free(up);
}

static void lost(void *userdata)
{
	abx__upstream *up = userdata;

	unkeep(up);
	destroy(up);
}

static struct upstream_host *get_host(abx__upstreams *pool, const char *namespace_,
				      const char *pod)
{
	struct upstream_host *host = NULL, *added = NULL;
	char key[KEY_MAX];

	if (!make_key(key, namespace_, pod))
		return NULL;
	HASH_FIND_STR(pool->hosts, key, host);
	if (host)
		return host;
	host = abx__calloc(1, sizeof(*host) + strlen(key) + 1);
	if (!host)
		return NULL;
	memcpy(host->key, key, strlen(key) + 1);
	HASH_ADD_STR(pool->hosts, key, host);
	HASH_FIND_STR(pool->hosts, key, added);
	if (!added)
		abx__free(host);
	return added;
}

void abx__upstream_release(abx__upstream *up, bool keep)
{
	abx__upstreams *pool = up->pool;
	struct upstream_host *host = NULL;

	unlink_from(&pool->used, up);
	if (keep && !up->forgotten && !pool->closing &&
	    abx__http_conn_is_reusable(up->conn))
		host = get_host(pool, up->namespace_, up->pod);
	if (!host) {
		destroy(up);
		return;
	}
	up->host = host;
	up->kept_at = uv_now(pool->opts.loop);
	up->was_kept = true;
	push_to(&host->kept, up);
	host->count++;
	pool->kept_count++;
	abx__http_conn_park(up->conn, lost, up);
	if (host->count > pool->opts.kept_most) {
		abx__upstream *oldest = host->kept;

		while (oldest->next)
			oldest = oldest->next;
		lost(oldest);
	}
}

static struct upstream_host *find_host(abx__upstreams *pool, const char *namespace_,
				       const char *pod)
{
	struct upstream_host *host = NULL;
	char key[KEY_MAX];

	if (pool->hosts && make_key(key, namespace_, pod))
		HASH_FIND_STR(pool->hosts, key, host);
	return host;
}

abx__upstream *abx__upstream_take(abx__upstreams *pool, const char *namespace_,
				  const char *pod, uint16_t port)
{
	struct upstream_host *host = find_host(pool, namespace_, pod);
	abx__upstream *up = host ? host->kept : NULL;

	while (up && up->port != port)
		up = up->next;
	if (!up)
		return NULL;
	unkeep(up);
	push_to(&pool->used, up);
	return up;
}

void abx__upstreams_forget(abx__upstreams *pool, const char *namespace_, const char *pod)
{
	struct upstream_host *host;

	while ((host = find_host(pool, namespace_, pod)))
		lost(host->kept);
	for (abx__upstream *up = pool->used; up; up = up->next) {
		if (strcmp(up->namespace_, namespace_) == 0 && strcmp(up->pod, pod) == 0)
			up->forgotten = true;
	}
}

void abx__upstreams_sweep(abx__upstreams *pool)
{
	uint64_t now = uv_now(pool->opts.loop);
	struct upstream_host *host, *tmp;

	HASH_ITER(hh, pool->hosts, host, tmp)
	{
		abx__upstream *up = host->kept;

		while (up) {
			abx__upstream *next = up->next;

			if (pool->closing || now - up->kept_at >= pool->opts.kept_ms)
				lost(up);
			up = next;
		}
	}
}

size_t abx__upstreams_kept(const abx__upstreams *pool)
{
	return pool->kept_count;
}

/* ---- connecting ---- */

static abx__upstream *new_upstream(abx__upstreams *pool, const char *namespace_,
				   const char *pod, uint16_t port, int fd)
{
	size_t ns_len = strlen(namespace_) + 1, pod_len = strlen(pod) + 1;
	abx__upstream *up = abx__calloc(1, sizeof(*up) + ns_len + pod_len);

	if (!up)
		return NULL;
	if (abx__http_conn_new(pool->opts.loop, fd, &pool->scratch, &up->conn, NULL) <
	    0) {
		abx__free(up);
		return NULL;
	}
	up->pool = pool;
	up->port = port;
	up->namespace_ = (char *)(up + 1);
	up->pod = up->namespace_ + ns_len;
	memcpy(up->namespace_, namespace_, ns_len);
	memcpy(up->pod, pod, pod_len);
	push_to(&pool->used, up);
	return up;
}

static void ticket_freed(uv_handle_t *handle)
{
	abx__upstream_ticket *t = (abx__upstream_ticket *)handle;
	abx__upstreams *pool = t->pool;

	t->timer_closed = true;
	if (t->connecting)
		return; /* the engine still holds it */
	pool->tickets--;
	abx__free(t);
}

/* Ends a ticket; it is freed once its timer and the engine have let go of it. */
static void finish(abx__upstream_ticket *t, int r, abx__upstream *up,
		   const abx_error *err)
{
	void (*done)(void *, int, abx__upstream *, const abx_error *) = t->done;

	t->done = NULL;
	if (!uv_is_closing((uv_handle_t *)&t->timer))
		uv_close((uv_handle_t *)&t->timer, ticket_freed);
	if (done)
		done(t->userdata, r, up, err);
}

static void try_once(abx__upstream_ticket *t);

static void on_timer(uv_timer_t *timer)
{
	abx__upstream_ticket *t = (abx__upstream_ticket *)timer;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	if (!t->connecting) {
		try_once(t);
		return;
	}
	abx__error_set(&err, ABX_ETIMEDOUT,
		       "connect to port %u of Pod %s/%s: no answer in %llu ms", t->port,
		       t->namespace_, t->pod,
		       (unsigned long long)t->pool->opts.connect_ms);
	finish(t, ABX_ETIMEDOUT, NULL, err);
}

static bool may_try_again(const abx__upstream_ticket *t, int r, uint64_t wait_ms)
{
	return r == ABX_EUNAVAILABLE && t->tried < t->tries.count && !t->pool->closing &&
	       (!t->tries.until || uv_now(t->pool->opts.loop) + wait_ms < t->tries.until);
}

/* The descriptor becomes one to speak plain to; closed when that cannot be had. */
static int secure(abx__upstreams *pool, int *fd)
{
	int plain = -1;
	int r = pool->opts.secure ? pool->opts.secure(pool->opts.userdata, *fd, &plain)
				  : ABX_EUNSUPPORTED;

	if (r < 0)
		close(*fd);
	*fd = plain;
	return r;
}

static void on_connected(void *userdata, int r, int fd, const abx_error *err)
{
	abx__upstream_ticket *t = userdata;
	uint64_t wait_ms = t->tries.first_wait_ms * t->tried;
	abx__upstream *up = NULL;

	t->connecting = false;
	if (!t->done) {
		if (r == ABX_OK)
			close(fd);
		if (t->timer_closed)
			ticket_freed((uv_handle_t *)&t->timer);
		return;
	}
	if (may_try_again(t, r, wait_ms)) {
		uv_timer_start(&t->timer, on_timer, wait_ms, 0);
		return;
	}
	if (r == ABX_OK && t->tries.tls)
		r = secure(t->pool, &fd);
	if (r == ABX_OK) {
		up = new_upstream(t->pool, t->namespace_, t->pod, t->port, fd);
		if (!up) {
			close(fd);
			r = ABX_ENOMEM;
		}
	}
	finish(t, r, up, err);
}

static void try_once(abx__upstream_ticket *t)
{
	abx__engine *engine = t->pool->opts.engine;

	t->tried++;
	t->connecting = true;
	uv_timer_start(&t->timer, on_timer, t->pool->opts.connect_ms, 0);
	engine->ops->connect_pod(engine, t->namespace_, t->pod, t->port, on_connected, t);
}

abx__upstream_ticket *abx__upstream_connect(
	abx__upstreams *pool, const char *namespace_, const char *pod, uint16_t port,
	const abx__upstream_tries *tries,
	void (*done)(void *userdata, int r, abx__upstream *up, const abx_error *err),
	void *userdata)
{
	size_t ns_len = strlen(namespace_) + 1, pod_len = strlen(pod) + 1;
	abx__upstream_ticket *t = abx__calloc(1, sizeof(*t) + ns_len + pod_len);

	if (!t)
		return NULL;
	t->pool = pool;
	t->tries = *tries;
	t->port = port;
	t->done = done;
	t->userdata = userdata;
	memcpy(t->text, namespace_, ns_len);
	memcpy(t->text + ns_len, pod, pod_len);
	t->namespace_ = t->text;
	t->pod = t->text + ns_len;
	uv_timer_init(pool->opts.loop, &t->timer);
	pool->tickets++;
	try_once(t);
	return t;
}

void abx__upstream_cancel(abx__upstream_ticket *ticket)
{
	if (ticket && ticket->done) {
		ticket->done = NULL;
		uv_close((uv_handle_t *)&ticket->timer, ticket_freed);
	}
}

/* ---- life ---- */

abx__upstreams *abx__upstreams_new(const abx__upstreams_options *opts)
{
	abx__upstreams *pool = abx__calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->opts = *opts;
	pool->scratch.size = opts->piece_bytes;
	return pool;
}

static void pool_freed(uv_handle_t *handle)
{
	abx__upstreams *pool = handle->data;
	void (*closed)(void *) = pool->closed;
	void *userdata = pool->closed_userdata;

	abx__free(pool);
	if (closed)
		closed(userdata);
}

static void look_for_end(uv_timer_t *timer)
{
	abx__upstreams *pool = timer->data;

	if (pool->tickets == 0 && pool->scratch.users == 0 && !pool->used)
		uv_close((uv_handle_t *)timer, pool_freed);
}

void abx__upstreams_close(abx__upstreams *pool, void (*done)(void *userdata),
			  void *userdata)
{
	pool->closing = true;
	pool->closed = done;
	pool->closed_userdata = userdata;
	abx__upstreams_sweep(pool);
	uv_timer_init(pool->opts.loop, &pool->waiter);
	pool->waiter.data = pool;
	uv_timer_start(&pool->waiter, look_for_end, 0, 5);
}
