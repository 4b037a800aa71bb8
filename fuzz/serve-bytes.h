/*
 * serve-bytes.h - a server as a peer meets it: bytes on a connection, requests answered
 * in all the ways there are. It must come to an end whatever the bytes are, and call
 * every `closed` once.
 */
#ifndef FUZZ_SERVE_BYTES_H
#define FUZZ_SERVE_BYTES_H

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/http-server.h"

static int begun, closed;

static void on_closed(abx__http_req *req, bool answered, void *userdata)
{
	(void)req;
	(void)answered;
	(void)userdata;
	closed++;
}

static void on_all(abx__http_req *req, int r, const char *data, size_t len,
		   void *userdata)
{
	(void)userdata;
	if (r < 0)
		abx__http_res_send(req, r == ABX_ETOOBIG ? 413 : 400, NULL, NULL, 0);
	else
		abx__http_res_send(req, 200, "text/plain", data, len);
}

static void on_piece(abx__http_req *req, const char *data, size_t len, int r,
		     void *userdata)
{
	(void)userdata;
	if (data)
		abx__http_res_write(req, data, len);
	else if (r == ABX_OK)
		abx__http_res_end(req);
	else
		abx__http_res_abort(req);
}

static void on_request(abx__http_req *req, void *userdata)
{
	(void)userdata;
	begun++;
	abx__http_req_on_closed(req, on_closed, NULL);
	switch (abx__http_req_path(req)[0] ? abx__http_req_path(req)[1] : 0) {
	case 'a':
		abx__http_req_read_all(req, 100, on_all, NULL);
		break;
	case 's':
		abx__http_res_begin(req, 200, -1);
		abx__http_req_read(req, on_piece, NULL);
		break;
	case 'h':
		if (abx__http_req_hijack(req) == ABX_OK)
			abx__http_req_read(req, on_piece, NULL);
		break;
	default:
		abx__http_res_send(req, 200, "text/plain", "ok", 2);
	}
}

static void on_server_closed(void *userdata)
{
	*(bool *)userdata = true;
}

/* `first` is sent before the input; the input in two pieces, cut where its first byte
 * says. */
static void serve_bytes(abx__http_server_options opts, const char *first,
			size_t first_len, const uint8_t *data, size_t size)
{
	abx__http_server *server;
	bool done = false;
	char sink[4096];
	uv_loop_t loop;
	int fds[2];

	if (size > 60000)
		return;
	begun = closed = 0;
	signal(SIGPIPE, SIG_IGN);
	uv_loop_init(&loop);
	opts.loop = &loop;
	opts.on_request = on_request;
	if (abx__http_server_new(&opts, &server, NULL) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) < 0 ||
	    abx__http_server_adopt_fd(server, fds[0], NULL) < 0)
		abort();
	if (first_len > 0 && write(fds[1], first, first_len) < 0)
		abort();
	for (size_t at = 0, cut = size ? data[0] % size : 0; at < size;
	     at = cut, cut = size) {
		if (cut > at && write(fds[1], data + at, cut - at) < 0)
			break;
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	shutdown(fds[1], SHUT_WR);
	for (int i = 0; i < 4; i++) {
		uv_run(&loop, UV_RUN_NOWAIT);
		while (read(fds[1], sink, sizeof(sink)) > 0)
			;
	}
	close(fds[1]);
	abx__http_server_close(server, on_server_closed, &done);
	while (!done)
		uv_run(&loop, UV_RUN_ONCE);
	if (uv_loop_close(&loop) != 0 || begun != closed)
		abort();
}

#endif
