/*
 * netlink.h - rtnetlink in a page. Every call gives 0 or a negative errno; addresses are
 * in host order.
 */
#ifndef ABX_ENGINE_PODD_NETLINK_H
#define ABX_ENGINE_PODD_NETLINK_H

#include <stdbool.h>
#include <stdint.h>

int abx__netlink_open(
	void); /* in the calling thread's network namespace; -1 with errno */
int abx__netlink_add_veth(int fd, const char *name, const char *peer, int peer_netns_fd,
			  uint32_t mtu);
int abx__netlink_remove_link(int fd, const char *name);
int abx__netlink_link_up(int fd, const char *name);
int abx__netlink_add_address(int fd, int index, uint32_t address, unsigned prefix);
int abx__netlink_add_default_route(int fd, int index, uint32_t gateway);
int abx__netlink_range_is_taken(int fd, uint32_t first, uint32_t last, bool *ret);
int abx__netlink_default_route(int fd, int *ret_index);

#endif
