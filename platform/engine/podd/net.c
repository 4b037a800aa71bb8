/*
 * net.c - the instance's address range, rules and resolvers, and a Pod's namespaces and
 * link.
 *
 * A Pod reaches the internet when the host does; never another Pod, never the host's own
 * services. Fails closed: when the rules cannot be set no Pod gets a link, and the log
 * says so. Every link is named by the instance's tag.
 */
#include "engine/podd/podd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "engine/podd/netlink.h"

#define RANGE_FIRST 0x64400000u /* 100.64.0.0/10, shared address space: RFC 6598 */
#define SLICE_BITS 13           /* 8192 addresses: 4096 Pods an instance */
#define SLICES (1u << (22 - SLICE_BITS))

#define ID_FIRST 0x10000000u
#define ID_SLOTS 0x7000u

static uint32_t tag_number(const struct podd *podd)
{
	uint32_t n = 0;

	for (int i = 0; i < 4; i++) {
		char c = podd->tag[i];

		n = n * 16 + (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	return n;
}

uint32_t abx__net_id_base(const struct podd *podd, uint32_t n)
{
	return ID_FIRST + (tag_number(podd) * 409u + n) % ID_SLOTS * ABX__ID_RANGE;
}

static void link_name(const struct podd *podd, uint32_t n, char out[IFNAMSIZ])
{
	snprintf(out, IFNAMSIZ, "%s%u", podd->net.prefix, n % 100000u);
}

/* Runs a function of nft.c in a child; its words come back through a pipe. */
static int run_nft(int (*job)(const char *, char *, size_t), const char *argument,
		   char *text, size_t size)
{
	ssize_t n = 0;
	int fds[2], status = -1;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return ABX_EIO;
	pid = abx__child_fork();
	if (pid == 0) {
		int r;

		*text = '\0';
		r = job(argument, text, size);
		if (write(fds[1], text, strlen(text)) < 0)
			_exit(2);
		_exit(r == ABX_OK ? 0 : 1);
	}
	close(fds[1]);
	if (pid > 0) {
		n = read(fds[0], text, size - 1);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(fds[0]);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return status == 0 ? ABX_OK : ABX_EIO;
}

static int apply_rules(struct podd *podd, const char *rules, bool quiet)
{
	char err[512] = "";
	int r = run_nft(abx__nft_apply, rules, err, sizeof(err));

	if (r < 0 && !quiet)
		abx__log_warn(podd->log, "nftables refused the rules", "error=%s", err);
	return r;
}

/* Our table's "accept" ends our chain alone: a packet still meets every other chain of
 * the hook, and one "drop" among them is the last word. Theirs to change, not ours. */
static void warn_of_other_firewall(struct podd *podd)
{
	char chain[256] = "";

	if (run_nft(abx__nft_forward_drop, NULL, chain, sizeof(chain)) == ABX_OK &&
	    *chain)
		abx__log_warn(
			podd->log,
			"a firewall of the host drops what it forwards: Pods reach the "
			"internet only where it accepts them",
			"chain=\"%s\" accept_out=\"iifname %s*\" accept_back=\"oifname "
			"%s* ct state established,related\" see=docs/network.md",
			chain, podd->net.prefix, podd->net.prefix);
}

/* `own_address`: by the table of routes a packet's source must belong to the link it came
 * from, so no Pod speaks as another. */
static int write_rules(struct podd *podd, bool own_address)
{
	char range[32];
	struct in_addr a = { .s_addr = htonl(podd->net.base) };
	abx__buf rules = ABX__BUF_INIT;
	const char *tag = podd->tag, *p = podd->net.prefix;
	int r;

	snprintf(range, sizeof(range), "%s/%d", inet_ntoa(a), 32 - SLICE_BITS);
	r = abx__buf_addf(&rules,
			  "table inet agentbox-%s { }\n"
			  "delete table inet agentbox-%s\n"
			  "table inet agentbox-%s {\n"
			  " chain forward { type filter hook forward priority filter - "
			  "10; policy accept;\n"
			  /* An address that is not the Pod's range, and anything but
			     IPv4, goes nowhere. */
			  "  iifname \"%s*\" ip saddr != %s drop\n"
			  "%s%s%s"
			  "  iifname \"%s*\" meta nfproto != ipv4 drop\n"
			  "  iifname \"%s*\" oifname \"ab*\" drop\n"
			  /* A cloud's metadata service, and with it the machine's own
			     credentials, is the host's; some clouds have their resolver
			     there. */
			  "  iifname \"%s*\" ip daddr 169.254.0.0/16 meta l4proto "
			  "!= { tcp, udp } drop\n"
			  "  iifname \"%s*\" ip daddr 169.254.0.0/16 th dport != 53 "
			  "drop\n"
			  "  oifname \"%s*\" ct state established,related accept\n"
			  "  oifname \"%s*\" drop\n"
			  " }\n"
			  " chain input { type filter hook input priority filter - 10; "
			  "policy accept;\n"
			  "  iifname \"%s*\" ct state established,related accept\n"
			  "  iifname \"%s*\" drop\n"
			  " }\n"
			  /* A Pod's ports are reached through podd alone: not by whoever
			     has an account on the host. */
			  " chain output { type filter hook output priority filter - 10; "
			  "policy accept;\n"
			  "  oifname \"%s*\" ct state established,related accept\n"
			  "  oifname \"%s*\" drop\n"
			  " }\n"
			  " chain postrouting { type nat hook postrouting priority "
			  "srcnat; policy accept;\n"
			  "  ip saddr %s oifname != \"%s*\" masquerade\n"
			  " }\n"
			  "}\n",
			  tag, tag, tag, p, range, own_address ? "  iifname \"" : "",
			  own_address ? p : "",
			  own_address ? "*\" fib saddr . iif oif missing drop\n" : "", p,
			  p, p, p, p, p, p, p, p, p, range, p);
	if (r == ABX_OK)
		r = apply_rules(podd, abx__buf_str(&rules), own_address);
	abx__buf_done(&rules);
	return r;
}

/* ---- rules that went away: `nft flush ruleset`, as a firewall does when it reloads ----
 */

enum { RULES_ARE_THERE, RULES_SET_AGAIN, RULES_REFUSED };

static void on_rules_checked(struct child *child, int status)
{
	struct podd *podd = child->owner;

	if (!WIFEXITED(status) || WEXITSTATUS(status) == RULES_ARE_THERE)
		return;
	if (WEXITSTATUS(status) == RULES_SET_AGAIN)
		abx__log_warn(podd->log,
			      "the rules between Pods and the host had been removed; "
			      "they are set again",
			      "table=\"inet agentbox-%s\"", podd->tag);
	else
		abx__log_error(podd->log,
			       "the rules between Pods and the host were removed and "
			       "cannot be set again",
			       "table=\"inet agentbox-%s\"", podd->tag);
}

void abx__net_check_rules(struct podd *podd)
{
	char list[64], err[256];
	pid_t pid;

	if (!podd->net.enabled || podd->rules_job.pid)
		return;
	pid = abx__child_fork();
	if (pid == 0) {
		snprintf(list, sizeof(list), "list table inet agentbox-%s", podd->tag);
		if (abx__nft_apply(list, err, sizeof(err)) == ABX_OK)
			_exit(RULES_ARE_THERE);
		_exit(write_rules(podd, true) == ABX_OK ||
				      write_rules(podd, false) == ABX_OK
			      ? RULES_SET_AGAIN
			      : RULES_REFUSED);
	}
	if (pid < 0)
		return;
	podd->rules_job =
		(struct child){ .pid = pid, .on_exit = on_rules_checked, .owner = podd };
	abx__child_add(podd, &podd->rules_job);
}

/* An address range that no route leads to; kept, so that Pods that live on keep theirs.
 */
static int choose_range(struct podd *podd, int nl)
{
	json_object *kept = abx__fs_read_json(podd->dir_fd, "net.json"), *value;
	uint32_t at = tag_number(podd) % SLICES;
	int r = ABX_EUNAVAILABLE;

	if (kept && json_object_object_get_ex(kept, "slice", &value) &&
	    json_object_is_type(value, json_type_int)) {
		podd->net.base =
			RANGE_FIRST +
			(((uint32_t)json_object_get_int(value) % SLICES) << SLICE_BITS);
		json_object_put(kept);
		return ABX_OK;
	}
	json_object_put(kept);
	for (unsigned i = 0; i < SLICES && r < 0; i++, at = (at + 1) % SLICES) {
		uint32_t base = RANGE_FIRST + (at << SLICE_BITS);
		bool taken = true;

		if (abx__netlink_range_is_taken(nl, base, base + (1u << SLICE_BITS) - 1,
						&taken) < 0)
			return ABX_EIO;
		if (taken)
			continue;
		podd->net.base = base;
		kept = json_object_new_object();
		if (!kept)
			return ABX_ENOMEM;
		json_object_object_add(kept, "slice", json_object_new_int((int)at));
		r = abx__fs_replace_json(podd->dir_fd, "net.json", kept);
		json_object_put(kept);
	}
	return r;
}

static void read_resolvers(struct podd *podd)
{
	static const char *const files[] = { "/etc/resolv.conf",
					     "/run/systemd/resolve/resolv.conf" };
	abx__buf out = ABX__BUF_INIT_CAP(sizeof(podd->net.resolv) - 1);

	for (size_t i = 0; i < 2 && out.len == 0; i++) {
		char *text = abx__fs_read(AT_FDCWD, files[i], 65536, NULL);

		for (char *line = text, *end; line && *line; line = end) {
			end = strchr(line, '\n');
			if (end)
				*end++ = '\0';
			if (strncmp(line, "nameserver", 10) == 0 &&
			    strstr(line, " 127.") == NULL && strchr(line, ':') == NULL)
				abx__buf_addf(&out, "%s\n", line);
			else if (strncmp(line, "search ", 7) == 0 ||
				 strncmp(line, "options ", 8) == 0)
				abx__buf_addf(&out, "%s\n", line);
		}
		abx__free(text);
		if (!strstr(abx__buf_str(&out), "nameserver"))
			abx__buf_clear(&out);
	}
	abx__str_copy(podd->net.resolv, sizeof(podd->net.resolv), abx__buf_str(&out));
	abx__buf_done(&out);
}

static uint32_t route_mtu(int nl)
{
	struct ifreq ifr = { 0 };
	int index, fd;
	uint32_t mtu = 1500;

	if (abx__netlink_default_route(nl, &index) < 0 ||
	    !if_indextoname((unsigned)index, ifr.ifr_name))
		return mtu;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && ioctl(fd, SIOCGIFMTU, &ifr) == 0 && ifr.ifr_mtu >= 576)
		mtu = (uint32_t)ifr.ifr_mtu;
	if (fd >= 0)
		close(fd);
	return mtu;
}

/* Files of /proc: one write, no creation, no change of mode. */
static int write_sysctl(const char *path, const char *value)
{
	ABX_CLEANUP(abx__closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, value, strlen(value)) > 0 ? ABX_OK : ABX_EIO;
}

static int try_open(struct podd *podd, int nl)
{
	int index, r;

	r = choose_range(podd, nl);
	if (r < 0) {
		abx__log_warn(podd->log, "no free address range for Pods", NULL);
		return r;
	}
	podd->net.mtu = route_mtu(nl);
	if (abx__netlink_default_route(nl, &index) < 0)
		abx__log_warn(podd->log,
			      "the host has no default route: Pods reach nothing outside",
			      NULL);
	{
		ABX_CLEANUP(abx__closep)
		int fd = open("/proc/sys/net/ipv4/ip_forward", O_RDWR | O_CLOEXEC);
		char on = '0';

		if (fd < 0 || read(fd, &on, 1) != 1 ||
		    (on != '1' && pwrite(fd, "1", 1, 0) != 1)) {
			abx__log_warn(podd->log, "cannot switch on net.ipv4.ip_forward",
				      NULL);
			return ABX_EIO;
		}
	}
	warn_of_other_firewall(podd);
	if (write_rules(podd, true) == ABX_OK)
		return ABX_OK;
	abx__log_warn(
		podd->log,
		"nftables has no fib expression here: rp_filter alone keeps Pods to "
		"their own address",
		NULL);
	return write_rules(podd, false);
}

int abx__net_open(struct podd *podd, abx_error **reterr)
{
	ABX_CLEANUP(abx__closep) int nl = -1;

	snprintf(podd->net.prefix, sizeof(podd->net.prefix), "ab%s", podd->tag);
	podd->host_netns_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (podd->host_netns_fd < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "/proc/self/ns/net");
	read_resolvers(podd);
	if (podd->options.no_network)
		return ABX_OK;
	nl = abx__netlink_open();
	podd->net.enabled = nl >= 0 && try_open(podd, nl) == ABX_OK;
	if (!podd->net.enabled)
		abx__log_warn(podd->log, "Pods get no network beyond their loopback",
			      NULL);
	return ABX_OK;
}

static struct pod *pod_of_number(struct podd *podd, uint32_t n)
{
	for (struct pod *pod = podd->pods; pod; pod = pod->hh.next)
		if (pod->n == n)
			return pod;
	return NULL;
}

/* Links of this instance that no Pod claims. */
static void sweep_links(struct podd *podd, bool all)
{
	struct if_nameindex *list = if_nameindex();
	ABX_CLEANUP(abx__closep) int nl = abx__netlink_open();
	size_t len = strlen(podd->net.prefix);

	for (struct if_nameindex *i = list; i && i->if_index; i++) {
		uint64_t n;

		if (strncmp(i->if_name, podd->net.prefix, len) != 0)
			continue;
		if (!all &&
		    abx__parse_u64(i->if_name + len, 0, UINT32_MAX, &n) == ABX_OK &&
		    pod_of_number(podd, (uint32_t)n))
			continue;
		abx__netlink_remove_link(nl, i->if_name);
	}
	if (list)
		if_freenameindex(list);
}

void abx__net_sweep(struct podd *podd)
{
	sweep_links(podd, false);
}

void abx__net_purge(struct podd *podd)
{
	char rules[128];

	snprintf(podd->net.prefix, sizeof(podd->net.prefix), "ab%s", podd->tag);
	sweep_links(podd, true);
	snprintf(rules, sizeof(rules),
		 "table inet agentbox-%s { }\ndelete table inet agentbox-%s\n", podd->tag,
		 podd->tag);
	apply_rules(podd, rules, true);
}

void abx__net_remove(struct podd *podd, uint32_t n)
{
	ABX_CLEANUP(abx__closep) int nl = -1;
	char name[IFNAMSIZ];

	if (!podd->net.enabled)
		return;
	nl = abx__netlink_open();
	link_name(podd, n, name);
	if (nl >= 0)
		abx__netlink_remove_link(nl, name);
}

/* ---- a Pod's namespaces, in a child ---- */

/* A process in new namespaces that waits to be killed, by us or with us, and keeps
 * nothing of ours open. */
static pid_t spawn_holder(bool userns)
{
	pid_t parent = getpid(), pid;
	struct clone_args args = {
		.flags = CLONE_NEWNET | (userns ? CLONE_NEWUSER : 0),
		.exit_signal = SIGCHLD,
	};

	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		syscall(SYS_close_range, 0, ~0U, 0);
		if (getppid() != parent)
			_exit(1);
		for (;;)
			pause();
	}
	return pid;
}

static int write_id_maps(pid_t pid, uint32_t base)
{
	char path[64], map[64];
	static const char *const files[] = { "uid_map", "gid_map" };

	snprintf(map, sizeof(map), "0 %u %u\n", base, ABX__ID_RANGE);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, files[i]);
		if (write_sysctl(path, map) < 0)
			return ABX_EIO;
	}
	return ABX_OK;
}

static int open_ns(pid_t pid, const char *what)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, what);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Inside the Pod's network namespace. */
static int configure_inside(struct podd *podd, int nl, uint32_t n, bool linked)
{
	uint32_t host = podd->net.base + n * 2;
	int r;

	/* As the container engines do: ports below 1024 and ping are for everyone in the
	 * Pod. */
	if (write_sysctl("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0") < 0 ||
	    write_sysctl("/proc/sys/net/ipv4/ping_group_range", "0 65535") < 0)
		abx__log_warn(podd->log, "a network sysctl of a Pod could not be set",
			      "errno=%d", errno);
	r = abx__netlink_link_up(nl, "lo");
	if (r < 0 || !linked)
		return r;
	r = abx__netlink_add_address(nl, (int)if_nametoindex("eth0"), host + 1, 31);
	if (r == 0)
		r = abx__netlink_link_up(nl, "eth0");
	if (r == 0)
		r = abx__netlink_add_default_route(nl, (int)if_nametoindex("eth0"), host);
	return r;
}

/* What the rules say as well, where the host's end of a link can say it: packets from the
 * Pod's own address only (its root may send raw ones), and no IPv6. Before it is up. */
static void guard_link(const char *name)
{
	char path[80];

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/rp_filter", name);
	write_sysctl(path, "1");
	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/disable_ipv6", name);
	write_sysctl(path, "1");
}

static int make_link(struct podd *podd, int nl, uint32_t n, int netns)
{
	char name[IFNAMSIZ];
	int r;

	link_name(podd, n, name);
	abx__netlink_remove_link(nl, name);
	r = abx__netlink_add_veth(nl, name, "eth0", netns, podd->net.mtu);
	if (r == 0)
		r = abx__netlink_add_address(nl, (int)if_nametoindex(name),
					     podd->net.base + n * 2, 31);
	if (r == 0) {
		guard_link(name);
		r = abx__netlink_link_up(nl, name);
	}
	return r;
}

/*
 * In a process of its own, since it cannot come back: ping_group_range is read in the ids
 * of the writer's user namespace, so the writer joins that too. 0 or a negative errno.
 */
static int enter_and_configure(struct podd *podd, int userns, int netns, uint32_t n,
			       bool linked)
{
	int status = -1, nl, r;
	pid_t pid = abx__child_fork();

	if (pid == 0) {
		if (setns(netns, CLONE_NEWNET) < 0 ||
		    (userns >= 0 && setns(userns, CLONE_NEWUSER) < 0) ||
		    (nl = abx__netlink_open()) < 0)
			_exit(errno & 127);
		r = configure_inside(podd, nl, n, linked);
		_exit(r < 0 ? -r & 127 : 0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

int abx__net_make(struct podd *podd, uint32_t n, bool userns, int *ret_userns,
		  int *ret_netns, abx_error **reterr)
{
	ABX_CLEANUP(abx__closep) int nl = podd->net.enabled ? abx__netlink_open() : -1;
	ABX_CLEANUP(abx__closep) int user_fd = -1, net_fd = -1;
	pid_t holder = spawn_holder(userns);
	int r = 0;

	if (holder < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "new namespaces");
	if (userns && (write_id_maps(holder, abx__net_id_base(podd, n)) < 0 ||
		       (user_fd = open_ns(holder, "user")) < 0))
		r = -errno;
	net_fd = open_ns(holder, "net");
	if (r == 0 && net_fd < 0)
		r = -errno;
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	if (r == 0 && podd->net.enabled)
		r = make_link(podd, nl, n, net_fd);
	if (r < 0)
		return abx__error_errno(reterr, ABX_EIO, -r,
					"namespaces and link of Pod %u", n);
	r = enter_and_configure(podd, user_fd, net_fd, n, podd->net.enabled);
	if (r < 0)
		return abx__error_errno(reterr, ABX_EIO, -r, "network of Pod %u", n);
	*ret_userns = abx_take_fd(user_fd);
	*ret_netns = abx_take_fd(net_fd);
	return ABX_OK;
}
