/*
 * fake-server.c - the scripted loopback server.
 */
#include "fake-server.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "base/buf.h"
#include "io/http-server.h"

#define MAX_SEEN 4096
#define MAX_BODY ((size_t)64 << 20)

struct fake_server {
	pthread_t thread;
	uv_loop_t loop;
	uv_async_t stop;
	abx__http_server *http;
	const fake_answer *answers;
	unsigned used[64];
	char url[64];
	char dir[64];
	char socket[96];
	pthread_mutex_t lock;
	char *seen[MAX_SEEN];
	unsigned count;
	unsigned aborted;
	uint64_t body_bytes;
};

struct exchange {
	fake_server *server;
	const fake_answer *answer;
	uv_idle_t idle;
	abx__http_req *req;
	uint64_t sent, total;
	char *body;
	bool over;
};

static const fake_answer not_scripted = {
	.status = 404,
	.body = "{\"code\":404,\"message\":\"not in the script\"}",
};

static void free_exchange(uv_handle_t *handle)
{
	struct exchange *exchange = handle->data;

	free(exchange->body);
	free(exchange);
}

static void on_closed(abx__http_req *req, bool answered, void *userdata)
{
	struct exchange *exchange = userdata;

	(void)req;
	if (!answered) {
		pthread_mutex_lock(&exchange->server->lock);
		exchange->server->aborted++;
		pthread_mutex_unlock(&exchange->server->lock);
	}
	exchange->over = true;
	uv_close((uv_handle_t *)&exchange->idle, free_exchange);
}

static const char *fill(uint64_t at)
{
	static char block[65536];

	if (!block[0])
		memset(block, 'x', sizeof(block));
	(void)at;
	return block;
}

/* One piece a turn of the loop, so that pieces travel apart. */
static void send_piece(uv_idle_t *idle)
{
	struct exchange *exchange = idle->data;
	const fake_answer *answer = exchange->answer;
	uint64_t left = exchange->total - exchange->sent;
	size_t piece = answer->split ? answer->split : 65536;

	if (abx__http_res_queued(exchange->req) > (answer->split ? 0 : 1u << 20))
		return;
	if (left) {
		piece = piece > left ? (size_t)left : piece;
		abx__http_res_write(exchange->req,
				    exchange->body ? exchange->body + exchange->sent
						   : fill(exchange->sent),
				    piece);
		exchange->sent += piece;
		return;
	}
	uv_idle_stop(idle);
	if (answer->ending == FAKE_ABORT)
		abx__http_res_abort(exchange->req);
	else if (answer->ending != FAKE_STALL)
		abx__http_res_end(exchange->req);
}

static void add_headers(abx__http_req *req, const fake_answer *answer)
{
	char name[64];

	for (size_t i = 0; i < 3 && answer->headers[i]; i++) {
		const char *colon = strchr(answer->headers[i], ':');

		snprintf(name, sizeof(name), "%.*s", (int)(colon - answer->headers[i]),
			 answer->headers[i]);
		abx__http_res_header(req, name, colon + 2);
	}
}

static void answer_now(struct exchange *exchange, const char *body, size_t len)
{
	const fake_answer *answer = exchange->answer;
	const char *text = answer->ending == FAKE_ECHO ? body : answer->body;
	size_t size = answer->ending == FAKE_ECHO ? len
		      : answer->len               ? answer->len
						  : (text ? strlen(text) : 0);

	add_headers(exchange->req, answer);
	if (answer->ending == FAKE_HANG)
		return;
	if (answer->ending == FAKE_WHOLE && !answer->split) {
		abx__http_res_send(
			exchange->req, answer->status,
			size ? (answer->type ? answer->type : "application/json") : NULL,
			text, size);
		return;
	}
	if (answer->ending != FAKE_STREAM) {
		exchange->body = malloc(size + 1);
		memcpy(exchange->body, text ? text : "", size);
		exchange->total = size;
	} else {
		exchange->total = answer->stream_bytes;
	}
	abx__http_res_header(exchange->req, "Content-Type",
			     answer->type ? answer->type : "application/json");
	abx__http_res_begin(exchange->req, answer->status,
			    answer->ending == FAKE_STREAM ? (int64_t)exchange->total
							  : -1);
	uv_idle_start(&exchange->idle, send_piece);
}

static void note(fake_server *server, abx__http_req *req, const char *body, size_t len)
{
	abx__buf text = ABX__BUF_INIT;
	const char *name, *value;

	abx__buf_addf(&text, "%s %s\n", abx__http_req_method(req),
		      abx__http_req_target(req));
	for (size_t i = 0; abx__http_req_header_at(req, i, &name, &value); i++) {
		for (const char *p = name; *p; p++)
			abx__buf_addc(&text, (char)tolower((unsigned char)*p));
		abx__buf_addf(&text, ": %s\n", value);
	}
	abx__buf_addc(&text, '\n');
	/* The envelope of a stream's one message is left out: its first byte is NUL. */
	if (len >= 5 && strstr(abx__buf_str(&text), "application/connect+json")) {
		body += 5;
		len -= 5;
	}
	abx__buf_add(&text, body ? body : "", len > 65536 ? 65536 : len);
	pthread_mutex_lock(&server->lock);
	server->body_bytes += len;
	if (server->count < MAX_SEEN)
		server->seen[server->count++] = abx__buf_take(&text);
	pthread_mutex_unlock(&server->lock);
	abx__buf_done(&text);
}

static void on_body(abx__http_req *req, int r, const char *data, size_t len,
		    void *userdata)
{
	struct exchange *exchange = userdata;

	if (r < 0)
		return;
	note(exchange->server, req, data, len);
	answer_now(exchange, data, len);
}

static const fake_answer *choose(fake_server *server, abx__http_req *req)
{
	for (size_t i = 0; server->answers[i].status && i < 64; i++) {
		const fake_answer *answer = &server->answers[i];
		const char *query = abx__http_req_query(req);

		if (answer->method &&
		    strcmp(answer->method, abx__http_req_method(req)) != 0)
			continue;
		if (answer->path && strcmp(answer->path, abx__http_req_path(req)) != 0)
			continue;
		if (answer->query && (!query || !strstr(query, answer->query)))
			continue;
		if (answer->times && server->used[i] >= answer->times)
			continue;
		server->used[i]++;
		return answer;
	}
	return &not_scripted;
}

static void on_request(abx__http_req *req, void *userdata)
{
	fake_server *server = userdata;
	struct exchange *exchange = calloc(1, sizeof(*exchange));

	exchange->server = server;
	exchange->req = req;
	exchange->answer = choose(server, req);
	uv_idle_init(&server->loop, &exchange->idle);
	exchange->idle.data = exchange;
	abx__http_req_on_closed(req, on_closed, exchange);
	abx__http_req_read_all(req, MAX_BODY, on_body, exchange);
}

static void on_stop(uv_async_t *async)
{
	fake_server *server = async->data;

	abx__http_server_close(server->http, NULL, NULL);
	uv_close((uv_handle_t *)async, NULL);
}

static void *run(void *userdata)
{
	fake_server *server = userdata;

	uv_run(&server->loop, UV_RUN_DEFAULT);
	uv_loop_close(&server->loop);
	return NULL;
}

fake_server *fake_server_start(const fake_answer *answers)
{
	fake_server *server = calloc(1, sizeof(*server));
	abx__http_server_options opts = { .loop = &server->loop,
					  .on_request = on_request,
					  .userdata = server };
	uint16_t port = 0;

	server->answers = answers;
	pthread_mutex_init(&server->lock, NULL);
	snprintf(server->dir, sizeof(server->dir), "/tmp/abx-client-test-XXXXXX");
	if (!mkdtemp(server->dir))
		abort();
	snprintf(server->socket, sizeof(server->socket), "%s/s", server->dir);
	uv_loop_init(&server->loop);
	uv_async_init(&server->loop, &server->stop, on_stop);
	server->stop.data = server;
	if (abx__http_server_new(&opts, &server->http, NULL) < 0 ||
	    abx__http_server_listen_tcp(server->http, "127.0.0.1", 0, &port, NULL) < 0 ||
	    abx__http_server_listen_unix(server->http, server->socket, 0600, NULL) < 0)
		abort();
	snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%u", port);
	pthread_create(&server->thread, NULL, run, server);
	return server;
}

void fake_server_stop(fake_server *server)
{
	uv_async_send(&server->stop);
	pthread_join(server->thread, NULL);
	for (unsigned i = 0; i < server->count; i++)
		free(server->seen[i]);
	unlink(server->socket);
	rmdir(server->dir);
	pthread_mutex_destroy(&server->lock);
	free(server);
}

const char *fake_server_url(fake_server *server)
{
	return server->url;
}

const char *fake_server_socket(fake_server *server)
{
	return server->socket;
}

unsigned fake_server_count(fake_server *server)
{
	unsigned count;

	pthread_mutex_lock(&server->lock);
	count = server->count;
	pthread_mutex_unlock(&server->lock);
	return count;
}

const char *fake_server_seen(fake_server *server, unsigned index)
{
	const char *text;

	pthread_mutex_lock(&server->lock);
	text = index < server->count ? server->seen[index] : "";
	pthread_mutex_unlock(&server->lock);
	return text;
}

uint64_t fake_server_body_bytes(fake_server *server)
{
	uint64_t bytes;

	pthread_mutex_lock(&server->lock);
	bytes = server->body_bytes;
	pthread_mutex_unlock(&server->lock);
	return bytes;
}

unsigned fake_server_aborted(fake_server *server)
{
	unsigned aborted;

	pthread_mutex_lock(&server->lock);
	aborted = server->aborted;
	pthread_mutex_unlock(&server->lock);
	return aborted;
}
