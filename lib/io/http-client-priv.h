/*
 * http-client-priv.h - what http-client.c (calls and curl's callbacks) and
 * http-client-loop.c (curl's sockets and timers on the loop) share. Nobody else includes
 * it.
 */
#ifndef ABX_IO_HTTP_CLIENT_PRIV_H
#define ABX_IO_HTTP_CLIENT_PRIV_H

#include <curl/curl.h>

#include "io/http-client.h"

#define MAX_SPARE_EASY 64

struct abx__http_client {
	uv_loop_t *loop;
	CURLM *multi;
	uv_timer_t timer; /* curl's */
	uv_timer_t guard; /* while there are calls */
	uint32_t guard_ms;
	uv_idle_t idle;
	int open_handles; /* of these three */
	bool closing;     /* takes no new calls */
	bool freed;
	uint32_t connect_timeout_ms;
	char *user_agent;
	char *ca_file;
	CURL *spare[MAX_SPARE_EASY];
	size_t spare_count;
	abx__http_call *calls;
	abx__http_call *marked;
};

struct abx__http_call {
	abx__http_client *client;
	abx__http_call *prev, *next; /* of client->calls */
	abx__http_call *next_marked;
	bool is_marked;
	CURL *easy;
	struct curl_slist *headers;
	char *peer;
	abx_source_fn read;
	int (*on_head)(void *userdata, int status);
	abx_sink_fn on_data;
	void (*on_done)(void *userdata, int r, const abx_error *err);
	void *userdata;
	/* Monotonic; the loop's own time stands still between blocking calls. 0: none */
	int64_t deadline;
	struct watch *watch; /* of its socket */
	unsigned stuck; /* looks of the guard that found its socket readable, in a row */
	bool poke_wanted;
	size_t head_bytes;
	int status;
	int end_code; /* negative: why we end it ourselves */
	bool head_given;
	bool rx_paused; /* the sink said so; curl may not know yet */
	bool rx_held;   /* curl holds bytes back */
	bool tx_paused;
	bool resume_wanted;
	char errbuf[CURL_ERROR_SIZE];
};

/* http-client.c: takes the call out of curl, tells its end, frees it. */
void abx__http_call_finish(abx__http_call *call, CURLcode code);

/* http-client-loop.c */
int abx__http_client_join(abx__http_client *client, unsigned max_idle); /* ABX_ENOMEM */
void abx__http_client_leave(abx__http_client *client, uv_close_cb closed);
void abx__http_client_guard(abx__http_client *client); /* while calls are under way */
/* Serves the call from the loop, soon: to end, resume or pause it. */
void abx__http_call_mark(abx__http_call *call);
void abx__http_call_unmark(abx__http_call *call);
void abx__http_call_unwatch(abx__http_call *call);

#endif
