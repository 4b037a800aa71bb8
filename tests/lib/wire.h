/*
 * wire.h - for tests: a raw client on loopback whose descriptor is polled between turns
 * of the loop under test.
 */
#ifndef TESTS_LIB_WIRE_H
#define TESTS_LIB_WIRE_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/buf.h"
#include "base/clock.h"

struct wire {
	uv_loop_t *loop;
	int fd; /* -1: closed */
	abx__buf got;
	bool eof, reset;
	bool deaf; /* turn, but take nothing */
};

static inline void wire_open(struct wire *w, uv_loop_t *loop, uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };

	memset(w, 0, sizeof(*w));
	w->got.cap = (size_t)2 << 30;
	w->loop = loop;
	w->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	addr.sin_port = htons(port);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(connect(w->fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	fcntl(w->fd, F_SETFL, O_NONBLOCK);
}

static inline void wire_turn(struct wire *w)
{
	char buf[65536];
	ssize_t n = -1;

	uv_run(w->loop, UV_RUN_NOWAIT);
	if (w->fd >= 0 && !w->deaf)
		n = recv(w->fd, buf, sizeof(buf), 0);
	if (n > 0)
		abx__buf_add(&w->got, buf, (size_t)n);
	else if (n == 0)
		w->eof = true;
	else if (w->fd >= 0 && !w->deaf && errno == ECONNRESET)
		w->reset = true;
	if (n <= 0)
		usleep(200);
}

/* Turns the loop until `cond` holds, at most three seconds. */
#define WIRE_UNTIL(w, cond)                                                \
	do {                                                               \
		int64_t end__ = abx__mono_ms() + 3000;                     \
		while (!(cond) && abx__mono_ms() < end__)                  \
			wire_turn(w);                                      \
		cr_assert(cond, "not within 3 s: %s; got: %.2000s", #cond, \
			  abx__buf_str(&(w)->got));                        \
	} while (0)

static inline bool wire_got(const struct wire *w, const char *text)
{
	return strstr(abx__buf_str(&w->got), text) != NULL;
}

static inline int wire_count(const struct wire *w, const char *text)
{
	const char *p = abx__buf_str(&w->got);
	int n = 0;

	while ((p = strstr(p, text))) {
		n++;
		p += strlen(text);
	}
	return n;
}

static inline void wire_say(struct wire *w, const char *text)
{
	size_t len = strlen(text);

	cr_assert_eq(send(w->fd, text, len, MSG_NOSIGNAL), (ssize_t)len);
}

static inline void wire_close(struct wire *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

static inline void wire_done(struct wire *w)
{
	wire_close(w);
	abx__buf_done(&w->got);
}

#endif
