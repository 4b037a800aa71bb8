/*
 * watch.c - the table of watchers, directories and what links them; starting, failing,
 * sweeping.
 */
#include "envd/watch.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <utlist.h>

#include "base/alloc.h"
#include "base/str.h"
#include "envd/envd.h"
#include "envd/watch-events.h"

/* ---- the kernel's end ---- */

static void on_poll_closed(uv_handle_t *handle)
{
	abx__free(handle);
}

static int open_inotify(abx__watches *table, abx_error **reterr)
{
	uv_poll_t *poll = abx__calloc(1, sizeof(*poll));
	int r;

	if (!poll)
		return abx__error_nomem(reterr);
	table->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (table->fd < 0) {
		abx__free(poll);
		return errno == EMFILE || errno == ENFILE
			       ? abx__error_set(reterr, ABX_EEXHAUSTED,
						"no more inotify instances (sysctl "
						"fs.inotify.max_user_instances)")
			       : abx__error_errno(reterr, ABX_EIO, errno, "inotify");
	}
	r = uv_poll_init(table->envd->loop, poll, table->fd);
	if (r < 0) {
		abx__free(poll);
		abx__closep(&table->fd);
		table->fd = -1;
		return abx__error_set(reterr, ABX_EIO, "watch for inotify's events: %s",
				      uv_strerror(r));
	}
	poll->data = table;
	table->poll = poll;
	return ABX_OK;
}

static void close_inotify(abx__watches *table)
{
	if (!table->poll)
		return;
	uv_close((uv_handle_t *)table->poll, on_poll_closed);
	table->poll = NULL;
	close(table->fd);
	table->fd = -1;
}

/* ---- names told before the kernel does ---- */

static int add_fresh(abx__watch_link *link, const char *name)
{
	size_t len = strlen(name);
	abx__watch_name *fresh;

	HASH_FIND(hh, link->fresh, name, len, fresh);
	if (fresh)
		return ABX_OK;
	fresh = abx__calloc(1, sizeof(*fresh) + len + 1);
	if (!fresh)
		return ABX_ENOMEM;
	memcpy(fresh->name, name, len);
	HASH_ADD_KEYPTR(hh, link->fresh, fresh->name, len, fresh);
	link->watcher->table->has_fresh = true;
	return ABX_OK;
}

bool abx__watch_take_fresh(abx__watch_link *link, const char *name)
{
	abx__watch_name *fresh;

	HASH_FIND(hh, link->fresh, name, strlen(name), fresh);
	if (!fresh)
		return false;
	HASH_DEL(link->fresh, fresh);
	abx__free(fresh);
	return true;
}

void abx__watch_clear_fresh(abx__watch_link *link)
{
	abx__watch_name *fresh, *next;

	HASH_ITER(hh, link->fresh, fresh, next)
	{
		HASH_DEL(link->fresh, fresh);
		abx__free(fresh);
	}
}

/* ---- directories and links ---- */

abx__watch_dir *abx__watch_find_dir(abx__watches *table, int wd)
{
	abx__watch_dir *dir;

	HASH_FIND_INT(table->dirs, &wd, dir);
	return dir;
}

static abx__watch_dir *get_dir(abx__watches *table, int wd)
{
	abx__watch_dir *dir = abx__watch_find_dir(table, wd);

	if (dir)
		return dir;
	dir = abx__calloc(1, sizeof(*dir));
	if (!dir)
		return NULL;
	dir->wd = wd;
	HASH_ADD_INT(table->dirs, wd, dir);
	return dir;
}

static abx__watch_link *find_link(abx__watch_dir *dir, const abx__watcher *watcher,
				  const char *rel)
{
	abx__watch_link *link;

	DL_FOREACH2(dir->links, link, dnext)
	{
		if (link->watcher == watcher && !link->is_dropped &&
		    strcmp(link->rel, rel) == 0)
			return link;
	}
	return NULL;
}

static abx__watch_link *get_link(abx__watcher *watcher, int wd, const char *rel)
{
	abx__watch_dir *dir = get_dir(watcher->table, wd);
	abx__watch_link *link = dir ? find_link(dir, watcher, rel) : NULL;

	if (!dir || link)
		return link;
	link = abx__calloc(1, sizeof(*link) + strlen(rel) + 1);
	if (!link)
		return NULL;
	link->watcher = watcher;
	link->dir = dir;
	memcpy(link->rel, rel, strlen(rel));
	DL_APPEND(watcher->links, link);
	DL_APPEND2(dir->links, link, dprev, dnext);
	return link;
}

static const char *base_name(const char *rel)
{
	const char *slash = strrchr(rel, '/');

	return slash ? slash + 1 : rel;
}

int abx__watch_adopt(abx__watcher *watcher, const abx__watch_scan *scan, bool is_new)
{
	ABX_CLEANUP(abx__freep)
	abx__watch_link **links =
		abx__calloc(scan->count ? scan->count : 1, sizeof(*links));

	if (!links)
		return ABX_ENOMEM;
	for (size_t i = 0; i < scan->count; i++) {
		const abx__watch_found *found = &scan->items[i];
		abx__watch_link *parent = i > 0 ? links[found->parent] : NULL;

		if (found->is_dir && found->wd >= 0) {
			links[i] = get_link(watcher, found->wd, found->rel);
			if (!links[i])
				return ABX_ENOMEM;
		}
		if (is_new && parent && add_fresh(parent, base_name(found->rel)) < 0)
			return ABX_ENOMEM;
	}
	return ABX_OK;
}

static void drop_link(abx__watch_link *link)
{
	link->is_dropped = true;
	link->watcher->table->needs_sweep = true;
}

void abx__watch_drop_tree(abx__watcher *watcher, const char *rel)
{
	size_t len = strlen(rel);
	abx__watch_link *link;

	DL_FOREACH(watcher->links, link)
	{
		if (strncmp(link->rel, rel, len) == 0 &&
		    (link->rel[len] == '\0' || link->rel[len] == '/'))
			drop_link(link);
	}
}

void abx__watch_drop_dir(abx__watches *table, abx__watch_dir *dir)
{
	abx__watch_link *link;

	HASH_DEL(table->dirs, dir);
	dir->is_gone = true;
	DL_FOREACH2(dir->links, link, dnext)
	{
		drop_link(link);
	}
	if (!dir->links)
		abx__free(dir);
}

/* ---- the sweep ---- */

static void free_link(abx__watches *table, abx__watch_link *link)
{
	abx__watch_dir *dir = link->dir;

	DL_DELETE(link->watcher->links, link);
	DL_DELETE2(dir->links, link, dprev, dnext);
	abx__watch_clear_fresh(link);
	abx__free(link);
	if (dir->links)
		return;
	if (!dir->is_gone) {
		HASH_DEL(table->dirs, dir);
		inotify_rm_watch(table->fd, dir->wd);
	}
	abx__free(dir);
}

static void free_watcher(abx__watcher *watcher)
{
	DL_DELETE(watcher->table->watchers, watcher);
	abx__free(watcher->root);
	abx__free(watcher);
}

/* A scan under way may have been given a watch that would be removed here. */
static void sweep(abx__watches *table)
{
	abx__watcher *watcher, *next_watcher;
	abx__watch_link *link, *next;

	if (!table->needs_sweep || table->job_count > 0)
		return;
	table->needs_sweep = false;
	DL_FOREACH_SAFE(table->watchers, watcher, next_watcher)
	{
		DL_FOREACH_SAFE(watcher->links, link, next)
		{
			if (link->is_dropped)
				free_link(table, link);
		}
		if (watcher->is_removed)
			free_watcher(watcher);
	}
	if (!table->watchers)
		close_inotify(table);
}

static void drop_links(abx__watcher *watcher)
{
	abx__watch_link *link;

	DL_FOREACH(watcher->links, link)
	{
		drop_link(link);
	}
}

static void drain(abx__watches *table)
{
	if (!table->poll || table->job_count > 0)
		return;
	abx__watch_events_read(table);
	sweep(table);
}

struct abx__watch_wait {
	struct abx__watch_wait *next;
	void (*drained)(void *userdata);
	void *userdata;
};

int abx__watches_when_drained(abx__watches *table, void (*drained)(void *userdata),
			      void *userdata)
{
	struct abx__watch_wait *wait;

	if (table->job_count == 0) {
		drain(table);
		drained(userdata);
		return ABX_OK;
	}
	wait = abx__calloc(1, sizeof(*wait));
	if (!wait)
		return ABX_ENOMEM;
	wait->drained = drained;
	wait->userdata = userdata;
	LL_APPEND(table->waits, wait);
	return ABX_OK;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	drain(poll->data);
}

/* The last scan is over: what happened meanwhile waits in the kernel. */
static void resume(abx__watches *table)
{
	struct abx__watch_wait *wait, *next = table->waits;

	if (table->job_count > 0)
		return;
	table->waits = NULL;
	drain(table);
	if (table->poll)
		uv_poll_start(table->poll, UV_READABLE, on_poll);
	while ((wait = next)) {
		next = wait->next;
		wait->drained(wait->userdata);
		abx__free(wait);
	}
}

/* ---- the end of a watcher ---- */

void abx__watcher_fail(abx__watcher *watcher, enum abx__connect_code code,
		       const char *fmt, ...)
{
	va_list ap;

	if (watcher->code || watcher->is_removed)
		return;
	watcher->code = code;
	va_start(ap, fmt);
	vsnprintf(watcher->message, sizeof(watcher->message), fmt, ap);
	va_end(ap);
	drop_links(watcher);
	if (watcher->is_started)
		watcher->ops->failed(watcher);
}

void abx__watcher_fail_scan(abx__watcher *watcher, const char *rel, int error)
{
	const char *where = *rel ? rel : watcher->root;

	if (error == ENOSPC || error == E2BIG)
		abx__watcher_fail(watcher, ABX__CONNECT_RESOURCE_EXHAUSTED,
				  "no more directories can be watched (at %.128s)",
				  where);
	else if (error == ENOENT)
		abx__watcher_fail(watcher, ABX__CONNECT_NOT_FOUND,
				  "path %.128s not found", where);
	else
		abx__watcher_fail(watcher, ABX__CONNECT_INTERNAL,
				  "cannot watch %.128s: %s", where, strerror(error));
}

/* ---- the start of a watcher ---- */

struct abx__watch_job {
	uv_work_t work;
	abx__watcher *watcher;
	abx__watch_scan scan;
	int result;
};

static void run_job(uv_work_t *work)
{
	struct abx__watch_job *job = work->data;

	job->result = abx__watch_scan_run(&job->scan, "");
}

static void after_job(uv_work_t *work, int status)
{
	struct abx__watch_job *job = work->data;
	abx__watcher *watcher = job->watcher;
	abx__watches *table = watcher->table;

	watcher->job = NULL;
	table->job_count--;
	/* What was watched has to be in the table also when it is dropped again. */
	if (abx__watch_adopt(watcher, &job->scan, false) < 0)
		job->result = -ENOMEM;
	if (watcher->is_removed)
		drop_links(watcher);
	else if (status < 0 || job->result < 0)
		abx__watcher_fail_scan(watcher, "",
				       status < 0 ? ECANCELED : -job->result);
	abx__watch_scan_done(&job->scan);
	abx__free(job);
	if (!watcher->is_removed) {
		watcher->is_started = true;
		watcher->ops->started(watcher);
	}
	sweep(table);
	resume(table);
}

static void start_job(abx__watcher *watcher, struct abx__watch_job *job)
{
	abx__watches *table = watcher->table;

	job->work.data = job;
	job->watcher = watcher;
	job->scan.inotify = table->fd;
	job->scan.root = watcher->root;
	job->scan.is_recursive = watcher->is_recursive;
	job->scan.max_dirs = ABX__WATCH_MAX_DIRS - HASH_COUNT(table->dirs);
	watcher->job = job;
	table->job_count++;
	uv_poll_stop(table->poll);
	uv_queue_work(table->envd->loop, &job->work, run_job, after_job);
}

int abx__watcher_new(abx__watches *table, const char *root, bool is_recursive,
		     bool include_entry, const abx__watcher_ops *ops, void *data,
		     abx__watcher **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) struct abx__watch_job *job = NULL;
	ABX_CLEANUP(abx__freep) abx__watcher *watcher = NULL;
	int r;

	if (table->watcher_count >= ABX__WATCH_MAX_WATCHERS)
		return abx__error_set(reterr, ABX_EEXHAUSTED,
				      "%u watchers exist already; remove some",
				      table->watcher_count);
	r = table->poll ? ABX_OK : open_inotify(table, reterr);
	if (r < 0)
		return r;
	job = abx__calloc(1, sizeof(*job));
	watcher = abx__calloc(1, sizeof(*watcher));
	if (watcher)
		watcher->root = abx__strdup(root);
	if (!job || !watcher || !watcher->root)
		return abx__error_nomem(reterr);
	watcher->table = table;
	watcher->ops = ops;
	watcher->data = data;
	watcher->is_recursive = is_recursive;
	watcher->include_entry = include_entry;
	table->watcher_count++;
	DL_APPEND(table->watchers, watcher);
	start_job(watcher, abx_take(job));
	*ret = abx_take(watcher);
	return ABX_OK;
}

void abx__watcher_remove(abx__watcher *watcher)
{
	abx__watches *table;

	if (!watcher || watcher->is_removed)
		return;
	table = watcher->table;
	watcher->is_removed = true;
	if (watcher->job)
		atomic_store_explicit(&watcher->job->scan.cancelled, true,
				      memory_order_relaxed);
	drop_links(watcher);
	table->watcher_count--;
	table->needs_sweep = true;
	sweep(table);
}

/* ---- the table ---- */

void abx__watches_init(abx__watches *table, struct abx__envd *envd)
{
	memset(table, 0, sizeof(*table));
	table->envd = envd;
	table->fd = -1;
}
