/*
 * http-client.h - HTTP requests of the library: libcurl's multi interface on a libuv
 * loop.
 *
 * One call is one request and its answer. Both bodies stream: what a callback answers
 * with ABX_PAUSE stops that direction until it is resumed, and TCP pushes back. HTTP/1.1
 * only, connections are kept and used again, easy handles too. Redirects are not
 * followed.
 *
 * Invariants: `on_done` runs exactly once for a call that started, from the loop (or from
 * abx__http_client_free()), never from inside start, cancel or resume; the call is gone
 * when it returns. No other callback runs after it. Caps: head of an answer 256 KiB,
 * deadlines from the options. No signals are used or handled.
 *
 * Threads: everything on the loop's thread; looking up names runs on a thread of curl's.
 */
#ifndef ABX_IO_HTTP_CLIENT_H
#define ABX_IO_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <agentbox/op.h>
#include <uv.h>

typedef struct abx__http_client abx__http_client;
typedef struct abx__http_call abx__http_call;

typedef struct abx__http_client_options {
	uv_loop_t *loop;
	uint32_t connect_timeout_ms; /* 0: 10 s */
	unsigned max_idle;           /* connections kept for later; 0: 256 */
	const char *user_agent;      /* NULL: none is sent */
	const char *ca_file; /* PEM, trusted for https; NULL: what the system trusts */
	uint32_t guard_ms;   /* between looks at calls that may be stuck; 0: 2 s */
} abx__http_client_options;

int abx__http_client_new(const abx__http_client_options *opts, abx__http_client **ret,
			 abx_error **reterr);
/* Ends every call with ABX_ECANCELED (their on_done run in here) and closes the handles;
   the loop must run once more, after which the memory is gone. NULL is fine. */
void abx__http_client_free(abx__http_client *client);

typedef struct abx__http_call_options {
	const char *method;
	const char *url;       /* http:// or https:// */
	const char *unix_path; /* NULL, or the socket to connect to instead of the URL's
				  host */
	const char *peer;      /* the address for messages; NULL: the URL */
	const char *const *headers; /* "Name: value", NULL at the end; copied */
	const void *body;           /* a whole body, borrowed until on_done */
	size_t body_len;
	abx_source_fn read;  /* a streamed body instead, see op.h */
	int64_t read_length; /* its length; -1: chunked */
	uint32_t timeout_ms; /* whole exchange; 0: none */
	uint32_t
		idle_timeout_s; /* without a byte either way, not while paused; 0: none */
	bool is_bulk;           /* large buffers */
	bool takes_gzip; /* a packed answer is asked for, and given unpacked to on_data */
	/* All may be NULL but on_done. A negative answer ends the call with that code. */
	int (*on_head)(void *userdata, int status); /* before the first on_data */
	abx_sink_fn on_data;
	void (*on_done)(void *userdata, int r,
			const abx_error *err); /* ABX_OK: a whole answer, any status */
	void *userdata;
} abx__http_call_options;

int abx__http_call_start(abx__http_client *client, const abx__http_call_options *opts,
			 abx__http_call **ret, abx_error **reterr);
/* Ends it soon: on_done gets `code` (such as ABX_ECANCELED), unless it is over before. */
void abx__http_call_cancel(abx__http_call *call, int code);
void abx__http_call_resume(
	abx__http_call *call); /* both directions; not paused: nothing */
/* The status once on_head ran, else 0. */
int abx__http_call_status(const abx__http_call *call);
/* The last header of that name in the answer, any case; NULL when absent. Lives until the
 * next such question. */
const char *abx__http_call_header(abx__http_call *call, const char *name);

#endif
