/*
 * test-podd-network.c - whom a Pod reaches and who reaches it. Real Pods.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <agentbox/error.h>

#include "engine/podd/proto.h"
#include "podd-case.h"
#include "podd-tools.h"

#define PODD_TEST(name) PODD_CASE(podd_network, name)

/* Until somebody listens there. */
static void connect_to(const char *name, int port)
{
	p.reply_fd = -1;
	for (int i = 0; i < 1000 && p.reply_fd < 0; i++) {
		podd_peer_call(
			&p, ABX__PODD_CONNECT,
			podd_peer_body("{\"ns\":\"t\",\"name\":\"%s\",\"port\":%d}", name,
				       port));
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
	cr_assert_geq(p.reply_fd, 0, "%s", podd_peer_message(&p));
}

static bool host_reaches(const char *address, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct timeval limit = { .tv_sec = 1 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool reached;

	cr_assert_eq(inet_pton(AF_INET, address, &a.sin_addr), 1);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	reached = connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
	close(fd);
	return reached;
}

PODD_TEST(a_pod_reaches_neither_another_pod_nor_the_host)
{
	char script[1024], other[64] = "";
	uint16_t port;
	int fd = listen_any(&port);
	const char *out;

	out = podd_peer_run(
		&p, "a", "runtime:",
		"(while :; do echo PEER | nc -l -p 8000; done) >/dev/null 2>&1 &\n"
		"ip -4 -o addr show eth0 | sed 's/.*inet \\([0-9.]*\\).*/\\1/'\n",
		"");
	sscanf(out, "%63[0-9.]", other);
	if (!*other)
		cr_skip_test("no network for Pods on this machine");
	/* It does listen, so not reaching it means something. */
	connect_to("a", 8000);
	close(p.reply_fd);
	cr_assert_not(host_reaches(other, 8000), "by whoever has an account on the host");
	snprintf(script, sizeof(script),
		 "echo | nc -w 1 127.0.0.1 1; echo self\n"
		 "nc -w 2 %s 8000 </dev/null && echo REACHED-POD\n"
		 "gw=$(ip route | sed -n 's/default via \\([0-9.]*\\).*/\\1/p'); echo gw "
		 "$gw\n"
		 "echo | nc -w 2 $gw %u && echo REACHED-HOST\n"
		 "ping -c1 -W1 $gw >/dev/null && echo PINGED-HOST\n"
		 "ping -c1 -W1 127.0.0.1 >/dev/null && echo ping works\n",
		 other, port);
	out = podd_peer_run(&p, "b", "runtime:", script, "");
	close(fd);
	cr_assert(strstr(out, "gw 100."), "%s", out);
	cr_assert(strstr(out, "ping works"), "%s", out);
	cr_assert_null(strstr(out, "REACHED"), "%s", out);
	cr_assert_null(strstr(out, "PINGED"), "%s", out);
}

PODD_TEST(a_port_on_the_pods_loopback_is_reached_by_connect)
{
	char text[16] = "";

	podd_peer_run(&p, "a", "runtime:",
		      "(while :; do echo hello | nc -l -p 8000; done) "
		      ">/dev/null 2>&1 &",
		      "");
	connect_to("a", 8000);
	fcntl(p.reply_fd, F_SETFL, 0);
	cr_assert_eq(read(p.reply_fd, text, sizeof(text) - 1), 6);
	close(p.reply_fd);
	p.reply_fd = -1;
	cr_assert_str_eq(text, "hello\n");
}

/* Which "localhost" is to some servers. */
PODD_TEST(a_port_on_the_pods_ipv6_loopback_alone_is_reached_too)
{
	static const char request[] = "GET / HTTP/1.0\r\n\r\n";
	char text[16] = "";

	podd_peer_run(&p, "a", "runtime:", "httpd -f -p '[::1]:8001' >/dev/null 2>&1 &",
		      "");
	connect_to("a", 8001);
	fcntl(p.reply_fd, F_SETFL, 0);
	cr_assert_eq(write(p.reply_fd, request, sizeof(request) - 1),
		     sizeof(request) - 1);
	cr_assert_eq(read(p.reply_fd, text, 7), 7);
	close(p.reply_fd);
	p.reply_fd = -1;
	cr_assert_str_eq(text, "HTTP/1.");
}
