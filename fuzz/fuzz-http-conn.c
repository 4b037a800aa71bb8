/* The HTTP client as a peer answers it: one end or one failure, never both, and nothing
 * left. */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/http-conn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int ends;
static bool raw;

static void on_head(void *userdata, const abx__http_head *head)
{
	(void)userdata;
	raw = head->status == 101;
	if (head->status < 100)
		abort();
}

static void on_body(void *userdata, const char *data, size_t len)
{
	(void)userdata;
	if (ends > 0 || (data && len == 0))
		abort();
	ends += !data;
}

static void on_fail(void *userdata, int r, const char *why)
{
	(void)userdata;
	if (r >= 0 || !why || (ends > 0 && !raw))
		abort();
	ends++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const abx__http_conn_events events = {
		.head = on_head,
		.body = on_body,
		.fail = on_fail,
	};
	static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
	abx__http_scratch scratch = { .size = 4096 };
	abx__http_conn *conn;
	uv_loop_t loop;
	int fds[2];

	if (size > 60000)
		return 0;
	ends = 0;
	raw = false;
	signal(SIGPIPE, SIG_IGN);
	uv_loop_init(&loop);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) < 0 ||
	    abx__http_conn_new(&loop, fds[0], &scratch, &conn, NULL) < 0 ||
	    abx__http_conn_request(conn, request, strlen(request), ABX__HTTP_NO_BODY, 0,
				   size > 0 && data[size - 1] == 'H', &events, NULL) < 0)
		abort();
	for (size_t at = 0, cut = size ? data[0] % size : 0; at < size;
	     at = cut, cut = size) {
		if (cut > at && write(fds[1], data + at, cut - at) < 0)
			break;
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	close(fds[1]);
	for (int i = 0; i < 100 && ends == 0; i++)
		uv_run(&loop, UV_RUN_NOWAIT);
	if (ends != 1)
		abort();
	abx__http_conn_close(conn);
	uv_run(&loop, UV_RUN_DEFAULT);
	if (uv_loop_close(&loop) != 0 || scratch.data)
		abort();
	return 0;
}
