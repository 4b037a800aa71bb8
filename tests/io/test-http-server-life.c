/*
 * The HTTP server: deadlines and limits, listening, closing, and a lack of memory.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "http-fixture.h"

/* ---- deadlines and limits ---- */

Test(io_http_server, a_head_that_comes_too_slowly_is_408)
{
	struct fixture f = { 0 };

	fixture_start_with(&f, (abx__http_server_options){ .on_request = fixture_hello,
							   .head_timeout_ms = 60 });
	fixture_say(&f, "GET / HT");
	UNTIL(&f, f.eof);
	cr_assert(fixture_got(&f, "HTTP/1.1 408 "));
	fixture_stop(&f);
}

Test(io_http_server, an_idle_connection_is_closed)
{
	struct fixture f = { 0 };

	fixture_start_with(&f, (abx__http_server_options){ .on_request = fixture_hello,
							   .idle_timeout_ms = 60 });
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, fixture_got(&f, "hello"));
	UNTIL(&f, f.eof);
	fixture_stop(&f);
}

Test(io_http_server, a_body_that_stalls_is_an_error_and_a_waiting_answer_is_not)
{
	struct fixture f = { 0 };
	int64_t begun;

	fixture_start_with(&f, (abx__http_server_options){ .on_request = fixture_echo,
							   .idle_timeout_ms = 60 });
	fixture_say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\n\r\nabc");
	UNTIL(&f, f.closed == 1);
	cr_assert_eq(f.body_r, ABX_EIO);
	fixture_stop(&f);

	f = (struct fixture){ 0 };
	fixture_start_with(&f, (abx__http_server_options){ .on_request = fixture_keep,
							   .idle_timeout_ms = 60 });
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	for (begun = abx__mono_ms(); abx__mono_ms() < begun + 200;)
		fixture_turn(&f);
	cr_assert_eq(f.closed, 0);
	fixture_stop(&f);
}

Test(io_http_server, connections_over_the_limit_are_closed_at_once)
{
	struct fixture f = { 0 };
	struct sockaddr_in addr = { .sin_family = AF_INET };
	char c;
	int fd;

	fixture_start_with(&f, (abx__http_server_options){ .on_request = fixture_hello,
							   .max_connections = 1 });
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, fixture_got(&f, "hello"));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	addr.sin_port = htons(f.port);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	for (int i = 0; i < 20; i++)
		fixture_turn(&f);
	cr_assert_eq(recv(fd, &c, 1, 0), 0);
	close(fd);
	fixture_stop(&f);
}

/* ---- listening ---- */

static int connect_unix(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		close(fd);
		return -1;
	}
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static void tell_unix(abx__http_req *req, void *userdata)
{
	(void)userdata;
	abx__http_res_send(req, 200, NULL, abx__http_req_is_unix(req) ? "unix" : "tcp",
			   4);
}

Test(io_http_server,
     a_unix_socket_has_its_mode_replaces_a_stale_file_and_refuses_a_live_one)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	char dir[] = "/tmp/abx-io-XXXXXX", path[64], long_path[200];
	struct fixture f = { 0 };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;
	int stale;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	stale = socket(AF_UNIX, SOCK_STREAM, 0);
	cr_assert_eq(bind(stale, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(stale);

	fixture_start(&f, tell_unix);
	cr_assert_eq(abx__http_server_listen_unix(f.server, path, 0600, &err), ABX_OK,
		     "%s", abx_error_message(err));
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
	cr_assert_eq(abx__http_server_listen_unix(f.server, path, 0600, &err),
		     ABX_EEXISTS);
	cr_assert(strstr(abx_error_message(err), "somebody listens"));
	memset(long_path, 'x', sizeof(long_path));
	long_path[199] = 0;
	cr_assert_eq(abx__http_server_listen_unix(f.server, long_path, 0600, &err),
		     ABX_EINVAL);
	close(f.fd);
	f.fd = connect_unix(path);
	fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	UNTIL(&f, fixture_got(&f, "unix"));
	fixture_stop(&f);
	cr_assert_eq(stat(path, &st), -1, "the socket file stayed behind");
	rmdir(dir);
}

Test(io_http_server, a_port_in_use_is_said)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	struct fixture f = { 0 };

	fixture_start(&f, fixture_hello);
	cr_assert_eq(
		abx__http_server_listen_tcp(f.server, "127.0.0.1", f.port, NULL, &err),
		ABX_EEXISTS);
	cr_assert(strstr(abx_error_message(err), "listen on 127.0.0.1 port"));
	cr_assert_eq(abx__http_server_listen_tcp(f.server, "nowhere", 1, NULL, &err),
		     ABX_EINVAL);
	fixture_stop(&f);
}

Test(io_http_server, closing_with_everything_open_leaves_nothing)
{
	struct fixture f = { 0 };

	fixture_start(&f, fixture_stream);
	fixture_say(&f, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
	UNTIL(&f, f.calls == 1);
	fixture_stop(&f);
	cr_assert_eq(f.closed, 1);
	cr_assert_eq(f.answered, 0);
}

static void try_hello(abx__http_req *req, void *userdata)
{
	(void)userdata;
	if (abx__http_res_header(req, "X-A", "b") < 0 ||
	    abx__http_res_send(req, 200, "text/plain", "hello", 5) < 0)
		abx__http_res_abort(req);
}

Test(io_http_server, failing_allocations_end_in_an_answer_or_a_closed_connection)
{
	for (unsigned n = 0; n < 40; n++) {
		struct fixture f = { 0 };
		int64_t end = abx__mono_ms() + 2000;

		fixture_start(&f, try_hello);
		fixture_turn(&f);
		fixture_say(&f, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
		abx__test_fail_alloc_after(n);
		for (int i = 0; i < 5; i++)
			uv_run(&f.loop, UV_RUN_NOWAIT);
		abx__test_alloc_reset();
		while (!f.eof && !f.reset && abx__mono_ms() < end)
			fixture_turn(&f);
		cr_assert(f.eof || f.reset || fixture_got(&f, "hello"),
			  "allocation %u: neither", n);
		fixture_stop(&f);
	}
}
