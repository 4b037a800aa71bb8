/*
 * http-listen.c - where a server listens: addresses, sockets in the file system,
 * descriptors that listen already.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "io/http-server-priv.h"

#define BACKLOG 1024

static void listener_closed(uv_handle_t *handle)
{
	struct listener *listener = (struct listener *)handle;
	abx__http_server *server = listener->server;

	abx__free(listener->path);
	abx__free(listener);
	abx__http_server_unhold(server);
}

void abx__http_listener_close(struct listener *listener)
{
	struct stat st;

	if (listener->path && lstat(listener->path, &st) == 0 &&
	    st.st_dev == listener->dev && st.st_ino == listener->ino)
		unlink(listener->path);
	uv_close(&listener->io.handle, listener_closed);
}

static struct listener *new_listener(abx__http_server *server, bool is_unix)
{
	struct listener *listener = abx__calloc(1, sizeof(*listener));
	int r;

	if (!listener)
		return NULL;
	listener->server = server;
	listener->is_unix = is_unix;
	if (is_unix)
		r = uv_pipe_init(server->opts.loop, &listener->io.pipe, 0);
	else
		r = uv_tcp_init(server->opts.loop, &listener->io.tcp);
	if (r < 0) {
		abx__free(listener);
		return NULL;
	}
	server->handles++;
	return listener;
}

/* Listens on what is bound already, and joins the server's list. */
static int start_listener(struct listener *listener)
{
	abx__http_server *server = listener->server;
	int r = uv_listen(&listener->io.stream, BACKLOG, abx__http_server_connection);

	if (r < 0)
		return r;
	listener->next = server->listeners;
	server->listeners = listener;
	return 0;
}

static int bind_tcp(struct listener *listener, const char *ip, uint16_t port)
{
	struct sockaddr_storage addr;
	int r = uv_ip4_addr(ip, port, (struct sockaddr_in *)&addr);

	if (r < 0)
		r = uv_ip6_addr(ip, port, (struct sockaddr_in6 *)&addr);
	if (r == 0)
		r = uv_tcp_bind(&listener->io.tcp, (const struct sockaddr *)&addr, 0);
	return r < 0 ? r : start_listener(listener);
}

static uint16_t bound_port(const struct listener *listener)
{
	struct sockaddr_storage addr;
	int len = sizeof(addr);

	if (uv_tcp_getsockname(&listener->io.tcp, (struct sockaddr *)&addr, &len) < 0)
		return 0;
	if (addr.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&addr)->sin6_port);
	return ntohs(((struct sockaddr_in *)&addr)->sin_port);
}

int abx__http_server_listen_tcp(abx__http_server *server, const char *ip, uint16_t port,
				uint16_t *ret_port, abx_error **reterr)
{
	struct listener *listener = new_listener(server, false);
	int r;

	if (!listener)
		return abx__error_nomem(reterr);
	r = bind_tcp(listener, ip, port);
	if (r < 0) {
		abx__http_listener_close(listener);
		return abx__error_errno(reterr,
					r == UV_EADDRINUSE ? ABX_EEXISTS
					: r == UV_EINVAL   ? ABX_EINVAL
							   : ABX_EIO,
					-r, "listen on %s port %u", ip, port);
	}
	if (ret_port)
		*ret_port = bound_port(listener);
	return ABX_OK;
}

/* A socket file is removed when nobody answers on it. */
static int clear_stale(const struct sockaddr_un *addr, abx_error **reterr)
{
	ABX_CLEANUP(abx__closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	if (fd < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "socket");
	if (lstat(addr->sun_path, &st) < 0)
		return ABX_OK;
	if (!S_ISSOCK(st.st_mode))
		return abx__error_set(reterr, ABX_EEXISTS,
				      "%s exists and is not a socket", addr->sun_path);
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0)
		return abx__error_set(reterr, ABX_EEXISTS,
				      "%s: somebody listens there already",
				      addr->sun_path);
	if (errno != ECONNREFUSED)
		return abx__error_errno(reterr, ABX_EIO, errno, "try %s", addr->sun_path);
	if (unlink(addr->sun_path) < 0 && errno != ENOENT)
		return abx__error_errno(reterr, ABX_EIO, errno, "remove the stale %s",
					addr->sun_path);
	return ABX_OK;
}

/* Bound and with its mode set, but not listening yet, so nobody gets in before the mode
 * holds. */
static int bind_unix(const char *path, unsigned mode, int *ret_fd, struct stat *ret_st,
		     abx_error **reterr)
{
	ABX_CLEANUP(abx__closep) int fd = -1;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int r;

	if (strlen(path) >= sizeof(addr.sun_path))
		return abx__error_set(
			reterr, ABX_EINVAL,
			"%s: longer than the %zu bytes a socket's path may have", path,
			sizeof(addr.sun_path) - 1);
	memcpy(addr.sun_path, path, strlen(path));
	r = clear_stale(&addr, reterr);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "socket");
	if (bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return abx__error_errno(reterr,
					errno == EADDRINUSE ? ABX_EEXISTS : ABX_EIO,
					errno, "bind %s", path);
	if (chmod(path, mode) < 0 || lstat(path, ret_st) < 0) {
		r = abx__error_errno(reterr, ABX_EIO, errno, "set the mode of %s", path);
		unlink(path);
		return r;
	}
	*ret_fd = abx_take_fd(fd);
	return ABX_OK;
}

int abx__http_server_listen_unix(abx__http_server *server, const char *path,
				 unsigned mode, abx_error **reterr)
{
	ABX_CLEANUP(abx__closep) int fd = -1;
	struct listener *listener;
	struct stat st;
	int r;

	r = bind_unix(path, mode, &fd, &st, reterr);
	if (r < 0)
		return r;
	listener = new_listener(server, true);
	if (!listener)
		return abx__error_nomem(reterr);
	listener->path = abx__strdup(path);
	listener->dev = st.st_dev;
	listener->ino = st.st_ino;
	r = listener->path ? uv_pipe_open(&listener->io.pipe, fd) : UV_ENOMEM;
	if (r == 0) {
		fd = -1;
		r = start_listener(listener);
	}
	if (r < 0) {
		abx__http_listener_close(listener);
		return abx__error_errno(reterr, r == UV_ENOMEM ? ABX_ENOMEM : ABX_EIO, -r,
					"listen on %s", path);
	}
	return ABX_OK;
}

int abx__http_server_listen_fd(abx__http_server *server, int fd, abx_error **reterr)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	struct listener *listener;
	int r;

	if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
		return abx__error_errno(reterr, ABX_EINVAL, errno,
					"listen on descriptor %d", fd);
	listener = new_listener(server, addr.ss_family == AF_UNIX);
	if (!listener)
		return abx__error_nomem(reterr);
	r = listener->is_unix ? uv_pipe_open(&listener->io.pipe, fd)
			      : uv_tcp_open(&listener->io.tcp, fd);
	if (r == 0)
		r = start_listener(listener);
	if (r < 0) {
		abx__http_listener_close(listener);
		return abx__error_errno(reterr, ABX_EIO, -r, "listen on descriptor %d",
					fd);
	}
	return ABX_OK;
}
