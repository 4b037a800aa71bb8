/*
 * pod-net.c - a Pod's namespaces, made by a child and held open here, and connections
 * into them.
 */
#include "engine/podd/podd.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/str.h"

void abx__pod_close_net(struct pod *pod)
{
	if (pod->userns_fd >= 0)
		close(pod->userns_fd);
	if (pod->netns_fd >= 0)
		close(pod->netns_fd);
	pod->userns_fd = pod->netns_fd = -1;
	pod->has_net = false;
}

/* Namespaces and link are made by a child, since the kernel may take its time;
 * descriptors come back by a socket. */
static _Noreturn void net_job_main(struct pod *pod, int sock)
{
	abx_error *err = NULL;
	int fds[2] = { -1, -1 };
	char control[CMSG_SPACE(sizeof(fds))] = { 0 };
	char text[1024] = "";
	struct iovec iov = { .iov_base = text, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	bool userns = !pod->spec->main.privileged;
	int r = abx__net_make(pod->podd, pod->n, userns, &fds[0], &fds[1], &err);

	if (r < 0) {
		abx__str_copy(text, sizeof(text), abx_error_message(err));
		iov.iov_len = strlen(text);
	} else {
		struct cmsghdr *h;
		size_t count = userns ? 2 : 1;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		h = CMSG_FIRSTHDR(&msg);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(h), userns ? fds : fds + 1, count * sizeof(int));
	}
	_exit(sendmsg(sock, &msg, 0) < 0 || r < 0 ? 1 : 0);
}

static int take_namespaces(struct pod *pod, char *text, size_t size)
{
	int fds[2] = { -1, -1 };
	char control[CMSG_SPACE(sizeof(fds))];
	struct iovec iov = { .iov_base = text, .iov_len = size - 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(pod->net_job_fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	struct cmsghdr *h = n >= 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	text[n > 0 ? n : 0] = '\0';
	if (!h)
		return ABX_EIO;
	if (h->cmsg_len == CMSG_LEN(2 * sizeof(int))) {
		memcpy(fds, CMSG_DATA(h), sizeof(fds));
		pod->userns_fd = fds[0];
		pod->netns_fd = fds[1];
	} else {
		memcpy(&pod->netns_fd, CMSG_DATA(h), sizeof(int));
	}
	pod->has_net = true;
	return ABX_OK;
}

static void on_net_job(struct child *child, int status)
{
	struct pod *pod = child->owner;
	char text[1024];

	(void)status;
	if (take_namespaces(pod, text, sizeof(text)) < 0 && !pod->deleting)
		abx__pod_fail(pod, "StartError",
			      *text ? text : "the Pod's network could not be made");
	close(pod->net_job_fd);
	pod->net_job_fd = -1;
	abx__pod_step(pod);
}

void abx__pod_make_net(struct pod *pod)
{
	int socks[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, socks) < 0) {
		abx__pod_fail(pod, "StartError", "no socket pair for the Pod's network");
		return;
	}
	pid = abx__child_fork();
	if (pid == 0)
		net_job_main(pod, socks[1]);
	close(socks[1]);
	if (pid < 0) {
		close(socks[0]);
		abx__pod_fail(pod, "StartError", "no process for the Pod's network");
		return;
	}
	pod->net_job_fd = socks[0];
	pod->net_job = (struct child){ .pid = pid, .on_exit = on_net_job, .owner = pod };
	abx__child_add(pod->podd, &pod->net_job);
}

/* ---- a connection into it ---- */

static int socket_inside(struct pod *pod, int family, abx_error **reterr)
{
	int fd, error;

	if (setns(pod->netns_fd, CLONE_NEWNET) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "network of Pod %s",
					pod->name);
	fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	error = fd < 0 ? errno : 0;
	if (setns(pod->podd->host_netns_fd, CLONE_NEWNET) < 0)
		_exit(70); /* never go on in a Pod's network */
	return fd < 0 ? abx__error_errno(reterr, ABX_EIO, error, "socket") : fd;
}

/* 0, or what went wrong, as errno has it. Over loopback the answer is there when
 * connect(2) returns, unless the listener's queue is full. */
static int connect_now(int fd, const struct sockaddr *to, socklen_t to_len,
		       bool *ret_pending)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int error = 0;

	if (connect(fd, to, to_len) < 0 && errno != EINPROGRESS)
		return errno;
	*ret_pending = poll(&poll_fd, 1, 0) == 0;
	if (!*ret_pending && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		return errno;
	return error;
}

int abx__pod_connect(struct pod *pod, uint16_t port, int *ret_fd, bool *ret_pending,
		     abx_error **reterr)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
				   .sin6_port = htons(port),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	ABX_CLEANUP(abx__closep) int fd = -1;
	int error;

	if (pod->netns_fd < 0)
		return abx__error_set(reterr, ABX_EUNAVAILABLE,
				      "Pod %s has no network yet", pod->name);
	fd = socket_inside(pod, AF_INET, reterr);
	if (fd < 0)
		return fd;
	error = connect_now(fd, (struct sockaddr *)&v4, sizeof(v4), ret_pending);
	/* Servers told to listen on "localhost" may have taken ::1 for it. */
	if (error == ECONNREFUSED) {
		close(fd);
		fd = socket_inside(pod, AF_INET6, NULL);
		if (fd >= 0)
			error = connect_now(fd, (struct sockaddr *)&v6, sizeof(v6),
					    ret_pending);
	}
	if (error)
		return abx__error_errno(reterr, ABX_EUNAVAILABLE, error,
					"port %u of Pod %s", port, pod->name);
	*ret_fd = abx_take_fd(fd);
	return ABX_OK;
}
