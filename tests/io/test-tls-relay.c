/*
 * TLS as a client for one who speaks plain: against our own server, and against peers
 * that are no such thing.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "io/http-server.h"
#include "io/tls-local.h"
#include "io/tls-relay.h"
#include "io/tls.h"
#include "wire.h"

struct fixture {
	uv_loop_t loop;
	char dir[64];
	abx__tls_context *context;
	abx__http_server *server;
	abx__tls_relays *relays;
	uint16_t port;
	int closes;
	abx__buf got;
	size_t swallowed;
};

#define BIG ((size_t)8 << 20)

static void fill(abx__http_req *req, void *userdata)
{
	static char piece[65536];
	struct fixture *f = userdata;

	while (f->swallowed < BIG && abx__http_res_queued(req) < 256 * 1024) {
		if (abx__http_res_write(req, piece, sizeof(piece)) < 0)
			return;
		f->swallowed += sizeof(piece);
		if (f->swallowed >= BIG)
			abx__http_res_end(req);
	}
}

static void on_request(abx__http_req *req, void *userdata)
{
	if (strcmp(abx__http_req_path(req), "/big") == 0) {
		abx__http_res_begin(req, 200, (int64_t)BIG);
		abx__http_res_on_drain(req, 65536, fill, userdata);
		fill(req, userdata);
	} else {
		abx__http_res_send(req, 200, "text/plain", "secret", 6);
	}
}

static void start(struct fixture *f)
{
	static const char *const names[] = { "localhost" };
	abx__http_server_options opts = { .loop = &f->loop,
					  .on_request = on_request,
					  .userdata = f };
	ABX_CLEANUP(abx__freep) char *cert = NULL;
	ABX_CLEANUP(abx__freep) char *key = NULL;

	signal(SIGPIPE, SIG_IGN);
	memset(f, 0, sizeof(*f));
	snprintf(f->dir, sizeof(f->dir), "/tmp/abx-test-relay-XXXXXX");
	cr_assert_not_null(mkdtemp(f->dir));
	cert = abx__strf("%s/server.crt", f->dir);
	key = abx__strf("%s/server.key", f->dir);
	cr_assert_eq(abx__tls_local_make(f->dir, names, 1, NULL, NULL), ABX_OK);
	cr_assert_eq(abx__tls_context_new(cert, key, false, &f->context, NULL), ABX_OK);
	uv_loop_init(&f->loop);
	opts.tls = f->context;
	cr_assert_eq(abx__http_server_new(&opts, &f->server, NULL), ABX_OK);
	cr_assert_eq(
		abx__http_server_listen_tcp(f->server, "127.0.0.1", 0, &f->port, NULL),
		ABX_OK);
	cr_assert_eq(abx__tls_relays_new(&f->loop, &f->relays, NULL), ABX_OK);
}

static void one_closed(void *userdata)
{
	((struct fixture *)userdata)->closes++;
}

static void stop(struct fixture *f)
{
	ABX_CLEANUP(abx__freep) char *line = abx__strf("rm -rf '%s'", f->dir);
	int64_t until = abx__mono_ms() + 5000;

	abx__tls_relays_close(f->relays, one_closed, f);
	abx__http_server_close(f->server, one_closed, f);
	while (f->closes < 2 && abx__mono_ms() < until)
		uv_run(&f->loop, UV_RUN_NOWAIT);
	cr_assert_eq(f->closes, 2, "not everything closed");
	uv_run(&f->loop, UV_RUN_NOWAIT);
	cr_assert_eq(uv_loop_close(&f->loop), 0, "handles were left open");
	abx__tls_context_free(f->context);
	abx__buf_done(&f->got);
	cr_assert_eq(system(line), 0);
}

static int connected(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static void say(int fd, const char *text)
{
	cr_assert_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Until the other side has ended; false when it did not in time. */
static bool read_all(struct fixture *f, int fd)
{
	int64_t until = abx__mono_ms() + 20000;
	char piece[65536];

	while (abx__mono_ms() < until) {
		ssize_t n = recv(fd, piece, sizeof(piece), MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return true;
		if (n > 0)
			cr_assert_eq(abx__buf_add(&f->got, piece, (size_t)n), ABX_OK);
		uv_run(&f->loop, UV_RUN_NOWAIT);
	}
	return false;
}

Test(tls_relay, what_is_plain_here_is_tls_there)
{
	struct fixture f;
	int fd;

	start(&f);
	cr_assert_eq(abx__tls_relay(f.relays, connected(f.port), &fd), ABX_OK);
	say(fd, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	cr_assert(read_all(&f, fd));
	cr_assert(strstr(abx__buf_str(&f.got), "HTTP/1.1 200 "), "%s",
		  abx__buf_str(&f.got));
	cr_assert(strstr(abx__buf_str(&f.got), "\r\n\r\nsecret"));
	close(fd);
	stop(&f);
}

Test(tls_relay, a_long_answer_arrives_whole_and_a_slow_reader_holds_it_back)
{
	struct fixture f;
	int fd;

	start(&f);
	cr_assert_eq(abx__tls_relay(f.relays, connected(f.port), &fd), ABX_OK);
	say(fd, "GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	for (int i = 0; i < 2000; i++)
		uv_run(&f.loop, UV_RUN_NOWAIT);
	cr_assert_lt(f.swallowed, BIG, "nothing held the server back");
	f.got.cap = 2 * BIG;
	cr_assert(read_all(&f, fd));
	cr_assert_gt(f.got.len, BIG);
	cr_assert_lt(f.got.len, BIG + 1024);
	close(fd);
	stop(&f);
}

Test(tls_relay, a_peer_that_speaks_no_tls_is_an_end)
{
	struct fixture f;
	int pair[2], fd;

	start(&f);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	cr_assert_eq(abx__tls_relay(f.relays, pair[0], &fd), ABX_OK);
	say(pair[1], "HTTP/1.1 400 Bad Request\r\n\r\n");
	cr_assert(read_all(&f, fd));
	cr_assert_eq(f.got.len, 0);
	close(fd);
	close(pair[1]);
	stop(&f);
}

Test(tls_relay, who_leaves_takes_the_other_side_along)
{
	struct fixture f;
	int fd, wire, gone[2];

	start(&f);
	/* The plain end, in the middle of an answer. */
	cr_assert_eq(abx__tls_relay(f.relays, connected(f.port), &fd), ABX_OK);
	say(fd, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
	for (int i = 0; i < 500; i++)
		uv_run(&f.loop, UV_RUN_NOWAIT);
	close(fd);
	for (int i = 0; i < 500; i++)
		uv_run(&f.loop, UV_RUN_NOWAIT);
	/* The peer, before it has said anything. */
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, gone), 0);
	wire = gone[0];
	cr_assert_eq(abx__tls_relay(f.relays, wire, &fd), ABX_OK);
	close(gone[1]);
	cr_assert(read_all(&f, fd));
	close(fd);
	stop(&f);
}

Test(tls_relay, closing_breaks_off_what_is_under_way)
{
	struct fixture f;
	int fd;

	start(&f);
	cr_assert_eq(abx__tls_relay(f.relays, connected(f.port), &fd), ABX_OK);
	stop(&f);
	close(fd);
}
