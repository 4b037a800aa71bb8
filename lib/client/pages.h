/*
 * pages.h - a walk over a list of the control API, page by page.
 *
 * Invariants: one step at a time; a page is kept until its last item was given; the
 * server's token is opaque.
 */
#ifndef ABX_CLIENT_PAGES_H
#define ABX_CLIENT_PAGES_H

#include <agentbox/agentbox.h>
#include <json-c/json.h>

#include "client/op.h"

#define ABX__PAGE_MAX 100

typedef struct abx__pages_ops {
	const char *what;       /* begins the messages: "list sandboxes" */
	enum abx__op_kind kind; /* of a step */
	/* Makes an item of an array's element; gives it back. */
	int (*parse)(json_object *obj, void **ret, abx_error **reterr);
	void (*free_item)(void *item);
} abx__pages_ops;

typedef struct abx__pages {
	const abx__pages_ops *ops;
	abx_client *client;
	char *path;        /* with its query, without the token; owned */
	char *next_token;  /* NULL: no further page */
	bool is_started;   /* the first page was fetched */
	json_object *page; /* an array, or NULL */
	size_t at;         /* next of the page */
	void *item;
	abx_op *op; /* the last step, with a reference; it does not own the walk */
} abx__pages;

/* Zero-initialised is empty; _init takes `path`. */
void abx__pages_init(abx__pages *pages, abx_client *client, const abx__pages_ops *ops,
		     char *path);
/* A step under way is cancelled. */
void abx__pages_done(abx__pages *pages);
/* ABX_EINVAL naming `call` when there is no iterator. */
int abx__pages_check(const void *iter, const char *call, abx_error **reterr);
/* One step, as an operation: 1 with an item that is the walk's, 0 at the end. Ends a
 * start function. */
int abx__pages_next(abx__pages *pages, const abx__then *then, abx_error **reterr);
/* The same as a blocking call; `ret` is the address of the item's pointer, or NULL. */
int abx__pages_wait(abx__pages *pages, void *ret, abx_error **reterr);
/* "limit=N", checked; `page_count` 0 is the most. */
int abx__pages_limit(uint32_t page_count, abx_error **reterr);

#endif
