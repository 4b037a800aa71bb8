/* See stub-connect.h. */
#include "stub-connect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

/* One connect, completed with the loop's next turn. */
struct stub_connecting {
	uv_timer_t timer; /* first */
	struct stub_connect *stub;
	struct stub_connecting *next;
	uint16_t port;
	abx__fd_done done;
	void *userdata;
};

static void freed(uv_handle_t *handle)
{
	free(handle);
}

static int connect_to(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 ||
	    errno == EINPROGRESS)
		return fd;
	close(fd);
	return -1;
}

static void complete(uv_timer_t *timer)
{
	struct stub_connecting *c = (struct stub_connecting *)timer;
	struct stub_connect *stub = c->stub;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int r = stub->fail_code, fd = -1;

	if (r == 0 && stub->fail_first > 0) {
		stub->fail_first--;
		r = ABX_EUNAVAILABLE;
	}
	if (r == 0) {
		fd = connect_to(stub->to ? stub->to : c->port);
		r = fd < 0 ? ABX_EUNAVAILABLE : ABX_OK;
	}
	if (r < 0)
		abx__error_set(&err, r, "port %u: stub says %s", c->port,
			       abx_error_name(r));
	stub->pending--;
	uv_close((uv_handle_t *)timer, freed);
	c->done(c->userdata, r, fd, err);
}

static void connect_pod(abx__engine *engine, const char *namespace_, const char *name,
			uint16_t port, abx__fd_done done, void *userdata)
{
	struct stub_connect *stub = (struct stub_connect *)engine;
	struct stub_connecting *c = calloc(1, sizeof(*c));

	(void)namespace_;
	(void)name;
	stub->connects++;
	stub->pending++;
	c->stub = stub;
	c->port = port;
	c->done = done;
	c->userdata = userdata;
	uv_timer_init(stub->loop, &c->timer);
	if (stub->silent) {
		c->next = stub->kept;
		stub->kept = c;
		return;
	}
	uv_timer_start(&c->timer, complete, 0, 0);
}

static const abx__engine_ops ops = {
	.name = "stub",
	.connect_pod = connect_pod,
};

void stub_connect_init(struct stub_connect *stub, uv_loop_t *loop)
{
	memset(stub, 0, sizeof(*stub));
	stub->engine.ops = &ops;
	stub->loop = loop;
}

void stub_connect_flush(struct stub_connect *stub)
{
	while (stub->kept) {
		struct stub_connecting *c = stub->kept;

		stub->kept = c->next;
		stub->fail_code = ABX_EIO;
		complete(&c->timer);
	}
}
