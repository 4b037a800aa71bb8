/*
 * The library's HTTP client against a raw server on a Unix socket and on loopback: no
 * call waits for ever, whatever the peer does and whatever event is lost.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "io/http-client.h"

TestSuite(io_http_client, .timeout = 60);

struct fixture {
	uv_loop_t loop;
	abx__http_client *client;
	abx__http_call *call;
	char dir[64], path[96];
	int listener, peer;
	int done, r;
	char message[256];
};

static void on_done(void *userdata, int r, const abx_error *err)
{
	struct fixture *f = userdata;

	f->done++;
	f->r = r;
	snprintf(f->message, sizeof(f->message), "%s", err ? abx_error_message(err) : "");
}

static void listen_at(struct fixture *f)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", f->path);
	f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(f->listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	cr_assert_eq(listen(f->listener, 4), 0);
}

static void start(struct fixture *f)
{
	abx__http_client_options opts = { .loop = &f->loop, .guard_ms = 50 };

	signal(SIGPIPE, SIG_IGN);
	memset(f, 0, sizeof(*f));
	f->peer = -1;
	snprintf(f->dir, sizeof(f->dir), "/tmp/abx-http-client-XXXXXX");
	cr_assert(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/s", f->dir);
	listen_at(f);
	uv_loop_init(&f->loop);
	cr_assert_eq(abx__http_client_new(&opts, &f->client, NULL), ABX_OK);
}

static void turn(struct fixture *f)
{
	uv_run(&f->loop, UV_RUN_NOWAIT);
	if (f->peer < 0)
		f->peer = accept4(f->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	usleep(1000);
}

#define UNTIL(f, cond)                                                          \
	do {                                                                    \
		int64_t end__ = abx__mono_ms() + 10000;                         \
		while (!(cond) && abx__mono_ms() < end__)                       \
			turn(f);                                                \
		cr_assert(cond, "not within 10 s: %s; r %d, %s", #cond, (f)->r, \
			  (f)->message);                                        \
	} while (0)

static void stop(struct fixture *f)
{
	abx__http_client_free(f->client);
	for (int i = 0; i < 10 && uv_loop_close(&f->loop) == UV_EBUSY; i++)
		uv_run(&f->loop, UV_RUN_NOWAIT);
	if (f->peer >= 0)
		close(f->peer);
	close(f->listener);
	unlink(f->path);
	rmdir(f->dir);
}

static void call(struct fixture *f, uint32_t timeout_ms)
{
	abx__http_call_options opts = {
		.method = "GET",
		.url = "http://local/x",
		.unix_path = f->path,
		.peer = "the daemon",
		.timeout_ms = timeout_ms,
		.on_done = on_done,
		.userdata = f,
	};

	f->done = f->r = 0;
	cr_assert_eq(abx__http_call_start(f->client, &opts, &f->call, NULL), ABX_OK);
}

/* The request is out, and the server has it. */
static void until_asked(struct fixture *f)
{
	char got[4096];

	UNTIL(f, f->peer >= 0);
	UNTIL(f, recv(f->peer, got, sizeof(got), MSG_PEEK) > 0);
}

static void answer(struct fixture *f)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
	char got[4096];

	cr_assert_gt(recv(f->peer, got, sizeof(got), 0), 0);
	cr_assert_eq(send(f->peer, text, sizeof(text) - 1, 0), (ssize_t)sizeof(text) - 1);
}

static void lose_watches(uv_handle_t *handle, void *userdata)
{
	(void)userdata;
	if (handle->type == UV_POLL && !uv_is_closing(handle))
		uv_poll_stop((uv_poll_t *)handle);
}

/* curl's timer; the guard's repeats. */
static void lose_timers(uv_handle_t *handle, void *userdata)
{
	(void)userdata;
	if (handle->type == UV_TIMER && uv_timer_get_repeat((uv_timer_t *)handle) == 0)
		uv_timer_stop((uv_timer_t *)handle);
}

Test(io_http_client, an_answer_comes_and_the_connection_is_used_again)
{
	struct fixture f;

	start(&f);
	for (int i = 0; i < 3; i++) {
		call(&f, 0);
		until_asked(&f);
		answer(&f);
		UNTIL(&f, f.done == 1);
		cr_assert_eq(f.r, ABX_OK, "%s", f.message);
	}
	stop(&f);
}

Test(io_http_client, a_daemon_that_dies_is_noticed)
{
	struct fixture f;

	start(&f);
	call(&f, 0);
	until_asked(&f);
	close(f.peer); /* with the request unread: a reset */
	f.peer = -1;
	close(f.listener);
	UNTIL(&f, f.done == 1);
	cr_assert_eq(f.r, ABX_EUNAVAILABLE);
	cr_assert(strstr(f.message, "the daemon: the connection broke"), "%s", f.message);
	unlink(f.path);
	listen_at(&f);
	stop(&f);
}

Test(io_http_client, a_daemon_that_dies_unwatched_is_noticed_too)
{
	struct fixture f;

	start(&f);
	call(&f, 0);
	until_asked(&f);
	uv_walk(&f.loop, lose_watches, NULL);
	uv_walk(&f.loop, lose_timers, NULL);
	close(f.peer);
	f.peer = -1;
	UNTIL(&f, f.done == 1);
	cr_assert_eq(f.r, ABX_EUNAVAILABLE);
	stop(&f);
}

Test(io_http_client, an_answer_nobody_watches_for_is_read)
{
	struct fixture f;

	start(&f);
	call(&f, 0);
	until_asked(&f);
	uv_walk(&f.loop, lose_watches, NULL);
	answer(&f);
	UNTIL(&f, f.done == 1);
	cr_assert_eq(f.r, ABX_OK, "%s", f.message);
	stop(&f);
}

Test(io_http_client, a_deadline_holds_with_and_without_its_timer)
{
	for (int lost = 0; lost < 2; lost++) {
		struct fixture f;

		start(&f);
		call(&f, 200);
		until_asked(&f);
		if (lost)
			uv_walk(&f.loop, lose_timers, NULL);
		UNTIL(&f, f.done == 1);
		cr_assert_eq(f.r, ABX_ETIMEDOUT);
		cr_assert(strstr(f.message, "the daemon: no answer in time"), "%s",
			  f.message);
		stop(&f);
	}
}

Test(io_http_client, a_deadline_starts_with_the_call_not_with_the_loops_last_turn)
{
	struct fixture f;

	start(&f);
	uv_run(&f.loop, UV_RUN_NOWAIT);
	usleep(1700000); /* the loop's own time stands still meanwhile */
	call(&f, 600);
	until_asked(&f);
	for (int i = 0; i < 5; i++)
		turn(&f);
	answer(&f);
	UNTIL(&f, f.done == 1);
	cr_assert_eq(f.r, ABX_OK, "%s", f.message);
	stop(&f);
}

Test(io_http_client, a_socket_that_takes_no_connection_has_a_deadline)
{
	struct fixture f;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int waiting[16];

	/* More wait at the socket than it lets. */
	start(&f);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", f.path);
	for (int i = 0; i < 16; i++) {
		waiting[i] =
			socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		connect(waiting[i], (struct sockaddr *)&addr, sizeof(addr));
	}
	call(&f, 300);
	while (f.done == 0) {
		uv_run(&f.loop, UV_RUN_NOWAIT);
		usleep(1000);
	}
	cr_assert(f.r == ABX_ETIMEDOUT || f.r == ABX_EUNAVAILABLE, "%d", f.r);
	for (int i = 0; i < 16; i++)
		close(waiting[i]);
	stop(&f);
}

static void find_keepalive(uv_handle_t *handle, void *userdata)
{
	socklen_t len = sizeof(int);
	uv_os_fd_t fd;
	int on = 0;

	if (handle->type == UV_POLL && uv_fileno(handle, &fd) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &len) == 0 && on)
		++*(int *)userdata;
}

Test(io_http_client, a_host_that_vanishes_is_asked_after)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	struct fixture f;
	char url[64];
	int found = 0;

	start(&f);
	close(f.listener);
	f.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(bind(f.listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	listen(f.listener, 4);
	getsockname(f.listener, (struct sockaddr *)&addr, &len);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/", ntohs(addr.sin_port));
	cr_assert_eq(abx__http_call_start(f.client,
					  &(abx__http_call_options){ .method = "GET",
								     .url = url,
								     .on_done = on_done,
								     .userdata = &f },
					  NULL, NULL),
		     ABX_OK);
	until_asked(&f);
	uv_walk(&f.loop, find_keepalive, &found);
	cr_assert_eq(found, 1);
	stop(&f);
}
