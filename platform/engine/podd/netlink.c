/*
 * netlink.c - the few rtnetlink requests a Pod's link needs, built by hand: a link, an
 * address, a route.
 *
 * Each request is sent and its acknowledgement read at once; sockets stay in the
 * namespace they were made in.
 */
#include "engine/podd/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <agentbox/error.h>

#include "base/cleanup.h"

struct request {
	struct nlmsghdr h;
	char body[1024];
};

static void *add_bytes(struct request *q, const void *data, size_t len)
{
	char *at = (char *)q + NLMSG_ALIGN(q->h.nlmsg_len);

	memset(at, 0, NLMSG_ALIGN(len));
	if (data)
		memcpy(at, data, len);
	q->h.nlmsg_len = NLMSG_ALIGN(q->h.nlmsg_len) + NLMSG_ALIGN(len);
	return at;
}

static struct rtattr *add_attr(struct request *q, unsigned short type, const void *data,
			       size_t len)
{
	struct rtattr *a = add_bytes(q, NULL, RTA_LENGTH(0));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(len);
	if (len)
		add_bytes(q, data, len);
	return a;
}

static void end_nest(struct request *q, struct rtattr *a)
{
	a->rta_len = (unsigned short)((char *)q + q->h.nlmsg_len - (char *)a);
}

static void begin(struct request *q, int type, int flags)
{
	memset(q, 0, sizeof(*q));
	q->h.nlmsg_len = NLMSG_LENGTH(0);
	q->h.nlmsg_type = (unsigned short)type;
	q->h.nlmsg_flags = (unsigned short)(NLM_F_REQUEST | NLM_F_ACK | flags);
	q->h.nlmsg_seq = 1;
}

int abx__netlink_open(void)
{
	struct timeval tv = { .tv_sec = 10 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	return fd;
}

/* 0 or a negative errno. */
static int transact(int fd, struct request *q)
{
	char answer[4096] __attribute__((aligned(8)));
	struct nlmsghdr *h = (struct nlmsghdr *)answer;
	ssize_t n;

	if (send(fd, q, q->h.nlmsg_len, 0) < 0)
		return -errno;
	do
		n = recv(fd, answer, sizeof(answer), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if ((size_t)n < NLMSG_LENGTH(sizeof(struct nlmsgerr)) ||
	    h->nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return ((struct nlmsgerr *)NLMSG_DATA(h))->error;
}

int abx__netlink_add_veth(int fd, const char *name, const char *peer, int peer_netns_fd,
			  uint32_t mtu)
{
	struct ifinfomsg link = { .ifi_family = AF_UNSPEC };
	struct rtattr *info, *data, *nest;
	uint32_t ns = (uint32_t)peer_netns_fd;
	struct request q;

	begin(&q, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	add_bytes(&q, &link, sizeof(link));
	add_attr(&q, IFLA_IFNAME, name, strlen(name) + 1);
	add_attr(&q, IFLA_MTU, &mtu, sizeof(mtu));
	info = add_attr(&q, IFLA_LINKINFO, NULL, 0);
	add_attr(&q, IFLA_INFO_KIND, "veth", 5);
	data = add_attr(&q, IFLA_INFO_DATA, NULL, 0);
	nest = add_attr(&q, VETH_INFO_PEER, NULL, 0);
	add_bytes(&q, &link, sizeof(link));
	add_attr(&q, IFLA_IFNAME, peer, strlen(peer) + 1);
	add_attr(&q, IFLA_MTU, &mtu, sizeof(mtu));
	add_attr(&q, IFLA_NET_NS_FD, &ns, sizeof(ns));
	end_nest(&q, nest);
	end_nest(&q, data);
	end_nest(&q, info);
	return transact(fd, &q);
}

int abx__netlink_remove_link(int fd, const char *name)
{
	struct ifinfomsg link = { .ifi_family = AF_UNSPEC };
	struct request q;

	begin(&q, RTM_DELLINK, 0);
	add_bytes(&q, &link, sizeof(link));
	add_attr(&q, IFLA_IFNAME, name, strlen(name) + 1);
	return transact(fd, &q);
}

int abx__netlink_link_up(int fd, const char *name)
{
	struct ifinfomsg link = { .ifi_family = AF_UNSPEC,
				  .ifi_flags = IFF_UP,
				  .ifi_change = IFF_UP };
	struct request q;

	begin(&q, RTM_NEWLINK, 0);
	add_bytes(&q, &link, sizeof(link));
	add_attr(&q, IFLA_IFNAME, name, strlen(name) + 1);
	return transact(fd, &q);
}

int abx__netlink_add_address(int fd, int index, uint32_t address, unsigned prefix)
{
	struct ifaddrmsg msg = { .ifa_family = AF_INET,
				 .ifa_prefixlen = (unsigned char)prefix,
				 .ifa_index = (unsigned)index };
	uint32_t be = htonl(address);
	struct request q;

	begin(&q, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE);
	add_bytes(&q, &msg, sizeof(msg));
	add_attr(&q, IFA_LOCAL, &be, sizeof(be));
	add_attr(&q, IFA_ADDRESS, &be, sizeof(be));
	return transact(fd, &q);
}

int abx__netlink_add_default_route(int fd, int index, uint32_t gateway)
{
	struct rtmsg msg = { .rtm_family = AF_INET,
			     .rtm_table = RT_TABLE_MAIN,
			     .rtm_protocol = RTPROT_STATIC,
			     .rtm_scope = RT_SCOPE_UNIVERSE,
			     .rtm_type = RTN_UNICAST };
	uint32_t be = htonl(gateway), oif = (uint32_t)index;
	struct request q;

	begin(&q, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
	add_bytes(&q, &msg, sizeof(msg));
	add_attr(&q, RTA_GATEWAY, &be, sizeof(be));
	add_attr(&q, RTA_OIF, &oif, sizeof(oif));
	return transact(fd, &q);
}

/* Walks one dump; `fn` gets each message. */
static int dump(int fd, int type, unsigned char family,
		int (*fn)(const struct nlmsghdr *h, void *userdata), void *userdata)
{
	struct {
		struct nlmsghdr h;
		struct rtmsg m;
	} q = { .h = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
		       .nlmsg_type = (unsigned short)type,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		       .nlmsg_seq = 2 },
		.m = { .rtm_family = family } };
	char block[32768] __attribute__((aligned(8)));

	if (send(fd, &q, q.h.nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		ssize_t n = recv(fd, block, sizeof(block), 0);
		struct nlmsghdr *h = (struct nlmsghdr *)block;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EPROTO;
		for (; NLMSG_OK(h, (size_t)n); h = NLMSG_NEXT(h, n)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return 0;
			if (h->nlmsg_type == NLMSG_ERROR)
				return -EPROTO;
			fn(h, userdata);
		}
	}
}

struct route_search {
	uint32_t first, last; /* the range asked for */
	bool taken;
	bool has_default;
	int default_index;
};

static int on_route(const struct nlmsghdr *h, void *userdata)
{
	struct route_search *s = userdata;
	const struct rtmsg *m = NLMSG_DATA(h);
	const struct rtattr *a = RTM_RTA(m);
	int len = (int)RTM_PAYLOAD(h);
	uint32_t dst = 0, mask;
	int oif = 0;

	if (m->rtm_family != AF_INET || m->rtm_type != RTN_UNICAST)
		return 0;
	for (; RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		if (a->rta_type == RTA_DST)
			memcpy(&dst, RTA_DATA(a), sizeof(dst));
		else if (a->rta_type == RTA_OIF)
			memcpy(&oif, RTA_DATA(a), sizeof(oif));
	}
	dst = ntohl(dst);
	if (m->rtm_dst_len == 0) {
		if (!s->has_default)
			s->default_index = oif;
		s->has_default = true;
		return 0;
	}
	mask = m->rtm_dst_len >= 32 ? 0 : UINT32_MAX >> m->rtm_dst_len;
	if (dst <= s->last && (dst | mask) >= s->first)
		s->taken = true;
	return 0;
}

int abx__netlink_range_is_taken(int fd, uint32_t first, uint32_t last, bool *ret)
{
	struct route_search s = { .first = first, .last = last };
	int r = dump(fd, RTM_GETROUTE, AF_INET, on_route, &s);

	*ret = s.taken;
	return r;
}

int abx__netlink_default_route(int fd, int *ret_index)
{
	struct route_search s = { .first = 1 };
	int r = dump(fd, RTM_GETROUTE, AF_INET, on_route, &s);

	if (r < 0)
		return r;
	if (!s.has_default)
		return -ENOENT;
	*ret_index = s.default_index;
	return 0;
}
