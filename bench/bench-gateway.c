/*
 * bench-gateway.c - the gateway's promises, each against a floor measured in the same
 * run: small requests on one core, against nginx as a plain proxy (0.6 of its requests
 * per second of processor time); 1 GiB read and written through the gateway, against a
 * raw loopback stream (0.25 of it, and 800 MB/s), memory flat.
 *
 * Processes: the sandbox (our server), the proxy under test, and this one as the client.
 * BENCH_MIB and BENCH_SECONDS make a run shorter. Without nginx that line is left out,
 * aloud. Exit status 0 whatever the figures: it measures.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "base/clock.h"
#include "base/str.h"
#include "gateway/gateway.h"
#include "stub-connect.h"
#include "stub-sandboxes.h"

#define CLIENTS 16
#define PIECE ((size_t)256 << 10)

extern char **environ;

static uint64_t total_bytes = (uint64_t)1 << 30;
static uint64_t seconds = 2;
static char piece[PIECE];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* ---- the sandbox ---- */

struct pour {
	uint64_t left;
	bool ended;
};

static void pour_closed(abx__http_req *req, bool answered, void *userdata)
{
	(void)req;
	(void)answered;
	free(userdata);
}

static void pour(abx__http_req *req, void *userdata)
{
	struct pour *p = userdata;

	while (p->left > 0 && abx__http_res_queued(req) < 2 * PIECE) {
		size_t n = p->left < PIECE ? (size_t)p->left : PIECE;

		if (abx__http_res_write_ref(req, piece, n, NULL, NULL) < 0)
			return;
		p->left -= n;
	}
	if (p->left == 0 && !p->ended) {
		p->ended = true;
		abx__http_res_end(req);
	}
}

static void swallow(abx__http_req *req, const char *data, size_t len, int r,
		    void *userdata)
{
	(void)len;
	(void)userdata;
	if (!data && r == ABX_OK)
		abx__http_res_send(req, 204, NULL, NULL, 0);
}

static void on_sandbox(abx__http_req *req, void *userdata)
{
	struct pour *p;

	(void)userdata;
	if (strcmp(abx__http_req_path(req), "/read") == 0) {
		p = calloc(1, sizeof(*p));
		p->left = total_bytes;
		abx__http_req_on_closed(req, pour_closed, p);
		abx__http_res_begin(req, 200, (int64_t)p->left);
		abx__http_res_on_drain(req, PIECE, pour, p);
	} else if (strcmp(abx__http_req_path(req), "/write") == 0) {
		abx__http_req_read(req, swallow, NULL);
	} else {
		abx__http_res_send(req, 200, "text/plain", "hello world\n", 12);
	}
}

static abx__gateway *gateway;

static void on_gateway(abx__http_req *req, void *userdata)
{
	(void)userdata;
	abx__gateway_serve(gateway, req);
}

/* A listening socket made before the fork, so that nobody has to wait for anybody. */
static int listen_on_loopback(uint16_t *ret_port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, 128) < 0 ||
	    getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
		die("listen");
	*ret_port = ntohs(addr.sin_port);
	return fd;
}

static void pin(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void run_server(int fd, uint16_t sandbox_port)
{
	abx__http_server_options opts = { .read_chunk_bytes = PIECE };
	static abx__sandboxes table;
	struct stub_connect engine;
	abx__http_server *server;
	uv_loop_t loop;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	uv_loop_init(&loop);
	opts.loop = &loop;
	opts.on_request = sandbox_port ? on_gateway : on_sandbox;
	if (sandbox_port) {
		abx__gateway_options g = { .loop = &loop, .sandboxes = &table };

		pin(0);
		stub_connect_init(&engine, &loop);
		engine.to = sandbox_port;
		stub_sandboxes_add(&table, "bench", ABX__SANDBOX_RUNNING);
		g.engine = &engine.engine;
		if (abx__gateway_new(&g, &gateway, NULL) < 0)
			_exit(1);
	}
	if (abx__http_server_new(&opts, &server, NULL) < 0 ||
	    abx__http_server_listen_fd(server, fd, NULL) < 0)
		_exit(1);
	uv_run(&loop, UV_RUN_DEFAULT);
	_exit(0);
}

static pid_t start_server(uint16_t sandbox_port, uint16_t *ret_port)
{
	int fd = listen_on_loopback(ret_port);
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid == 0)
		run_server(fd, sandbox_port);
	close(fd);
	return pid;
}

/* ---- nginx ---- */

static const char *find_nginx(void)
{
	static const char *const places[] = { "/usr/sbin/nginx", "/usr/bin/nginx", NULL };

	for (const char *const *p = places; *p; p++) {
		if (access(*p, X_OK) == 0)
			return *p;
	}
	return NULL;
}

static void write_conf(const char *dir, uint16_t sandbox_port, uint16_t port)
{
	char path[256];
	FILE *out;

	snprintf(path, sizeof(path), "%s/nginx.conf", dir);
	out = fopen(path, "we");
	if (!out)
		die(path);
	fprintf(out,
		"daemon off; master_process off; worker_processes 1; worker_cpu_affinity "
		"1;\n"
		"error_log stderr crit; pid %s/pid;\nevents { worker_connections 1024; "
		"}\n"
		"http { access_log off; client_max_body_size 0; keepalive_requests "
		"100000000;\n"
		"client_body_temp_path %s/b; proxy_temp_path %s/p; fastcgi_temp_path "
		"%s/f;\n"
		"uwsgi_temp_path %s/u; scgi_temp_path %s/s;\n"
		"server { listen 127.0.0.1:%u; location / { proxy_pass "
		"http://127.0.0.1:%u; } } }\n",
		dir, dir, dir, dir, dir, dir, port, sandbox_port);
	fclose(out);
}

static pid_t start_nginx(const char *program, const char *dir, uint16_t sandbox_port,
			 uint16_t *ret_port)
{
	char conf[256];
	char *argv[] = { (char *)program, (char *)"-p", (char *)dir,
			 (char *)"-c",    conf,         NULL };
	pid_t pid;

	close(listen_on_loopback(ret_port));
	write_conf(dir, sandbox_port, *ret_port);
	snprintf(conf, sizeof(conf), "%s/nginx.conf", dir);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(0);
		execve(program, argv, environ);
		_exit(127);
	}
	return pid;
}

/* ---- the client ---- */

static int connect_to(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };
	int one = 1, fd;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 200; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0) {
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
			return fd;
		}
		close(fd);
		usleep(10000);
	}
	die("connect");
	return -1;
}

static double cpu_seconds(pid_t pid)
{
	unsigned long user = 0, sys = 0;
	char path[64];
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	in = fopen(path, "re");
	if (!in ||
	    fscanf(in, "%*d %*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
		   &user, &sys) != 2)
		user = sys = 0;
	if (in)
		fclose(in);
	return (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
}

static long pss_kib(pid_t pid)
{
	char path[64], line[256];
	long kib = -1;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	in = fopen(path, "re");
	while (in && fgets(line, sizeof(line), in)) {
		if (sscanf(line, "Pss: %ld", &kib) == 1)
			break;
	}
	if (in)
		fclose(in);
	return kib;
}

static const char small_request[] =
	"GET /hello HTTP/1.1\r\nHost: bench\r\nUser-Agent: bench/1.0\r\n"
	"Accept: */*\r\nE2b-Sandbox-Id: bench\r\n"
	"E2b-Sandbox-Port: 49983\r\n\r\n";

struct rate {
	double per_second;
	double per_cpu_second;
};

/* Closed loop over CLIENTS kept connections; an answer is whole when its body's last byte
 * came. */
static struct rate small_requests(uint16_t port, pid_t proxy)
{
	struct pollfd fds[CLIENTS];
	char buf[4096];
	uint64_t done = 0;
	double cpu;
	int64_t begun, took;

	for (int i = 0; i < CLIENTS; i++) {
		fds[i] = (struct pollfd){ .fd = connect_to(port), .events = POLLIN };
		if (write(fds[i].fd, small_request, strlen(small_request)) < 0)
			die("write");
	}
	cpu = cpu_seconds(proxy);
	begun = abx__mono_us();
	do {
		if (poll(fds, CLIENTS, 1000) <= 0)
			die("no answer");
		for (int i = 0; i < CLIENTS; i++) {
			ssize_t n;

			if (!fds[i].revents)
				continue;
			n = read(fds[i].fd, buf, sizeof(buf));
			if (n <= 0)
				die("read");
			if (n < 12 || memcmp(buf + n - 12, "hello world\n", 12) != 0)
				continue;
			done++;
			if (write(fds[i].fd, small_request, strlen(small_request)) < 0)
				die("write");
		}
		took = abx__mono_us() - begun;
	} while (took < (int64_t)seconds * 1000000);
	cpu = cpu_seconds(proxy) - cpu;
	for (int i = 0; i < CLIENTS; i++)
		close(fds[i].fd);
	return (struct rate){ (double)done * 1e6 / (double)took,
			      (double)done / (cpu > 0 ? cpu : 1) };
}

static void send_all(int fd, uint64_t left)
{
	while (left > 0) {
		ssize_t n = write(fd, piece, left < PIECE ? (size_t)left : PIECE);

		if (n <= 0)
			die("write");
		left -= (uint64_t)n;
	}
}

static double megabytes(int64_t us)
{
	return (double)total_bytes / (double)us;
}

static double raw_stream(void)
{
	uint16_t port;
	int listener = listen_on_loopback(&port), fd;
	int64_t begun;
	pid_t pid = fork();
	char c;

	if (pid == 0) {
		uint64_t got = 0;
		ssize_t n;

		fd = accept(listener, NULL, NULL);
		while (got < total_bytes && (n = read(fd, piece, PIECE)) > 0)
			got += (uint64_t)n;
		if (write(fd, "x", 1) < 0)
			_exit(1);
		_exit(0);
	}
	fd = connect_to(port);
	begun = abx__mono_us();
	send_all(fd, total_bytes);
	if (read(fd, &c, 1) != 1)
		die("raw stream");
	begun = abx__mono_us() - begun;
	waitpid(pid, NULL, 0);
	close(fd);
	close(listener);
	return megabytes(begun);
}

static double write_through(uint16_t port)
{
	int fd = connect_to(port);
	int64_t begun = abx__mono_us();
	char buf[1024];

	dprintf(fd,
		"POST /write HTTP/1.1\r\nHost: 49983-bench.x\r\nContent-Length: "
		"%llu\r\n\r\n",
		(unsigned long long)total_bytes);
	send_all(fd, total_bytes);
	if (read(fd, buf, sizeof(buf)) < 12 || memcmp(buf, "HTTP/1.1 204", 12) != 0)
		die("write through");
	begun = abx__mono_us() - begun;
	close(fd);
	return megabytes(begun);
}

static double read_through(uint16_t port)
{
	int fd = connect_to(port);
	int64_t begun = abx__mono_us();
	uint64_t got = 0;
	ssize_t n;

	dprintf(fd, "GET /read HTTP/1.1\r\nHost: 49983-bench.x\r\n\r\n");
	while (got < total_bytes && (n = read(fd, piece, PIECE)) > 0)
		got += (uint64_t)n;
	if (got < total_bytes)
		die("read through");
	begun = abx__mono_us() - begun;
	close(fd);
	return megabytes(begun);
}

static void row(const char *what, const char *unit, double ours, double least,
		const char *floor_name, double floor_value, double ratio)
{
	printf("%-38s %10.0f %-7s (>= %5.0f)   %-20s %10.0f   ratio %5.2f (>= %.2f)\n",
	       what, ours, unit, least, floor_name, floor_value, ours / floor_value,
	       ratio);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void bench_small(uint16_t sandbox_port, uint16_t port, pid_t proxy)
{
	char dir[] = "/tmp/abx-bench-XXXXXX", command[300];
	const char *program = find_nginx();
	struct rate ours, theirs;
	uint16_t nginx_port;
	pid_t nginx;

	small_requests(port, proxy); /* warm */
	ours = small_requests(port, proxy);
	if (!program) {
		printf("gateway, small requests: %.0f/s, %.0f per CPU second; nginx is "
		       "not here, so no ratio\n",
		       ours.per_second, ours.per_cpu_second);
		return;
	}
	if (!mkdtemp(dir))
		die("mkdtemp");
	nginx = start_nginx(program, dir, sandbox_port, &nginx_port);
	small_requests(nginx_port, nginx);
	theirs = small_requests(nginx_port, nginx);
	end(nginx);
	row("gateway, small requests, one core", "req/s", ours.per_second, 0,
	    "nginx, plain proxy", theirs.per_second, 0.6);
	row("  the same, per CPU second of it", "req", ours.per_cpu_second, 0,
	    "nginx, plain proxy", theirs.per_cpu_second, 0.6);
	/* Files that nginx made: named, not walked. */
	for (const char *const *f = (const char *const[]){ "nginx.conf", "pid", "b", "p",
							   "f", "u", "s", NULL };
	     *f; f++) {
		snprintf(command, sizeof(command), "%s/%s", dir, *f);
		if (unlink(command) < 0)
			rmdir(command);
	}
	rmdir(dir);
}

static void read_setting(const char *name, uint64_t most, uint64_t *ret)
{
	const char *text = getenv(name);

	if (text && abx__parse_u64(text, 1, most, ret) < 0) {
		fprintf(stderr, "%s: a number from 1 to %llu is expected\n", name,
			(unsigned long long)most);
		exit(2);
	}
}

int main(void)
{
	uint16_t sandbox_port, port;
	uint64_t mib = total_bytes >> 20;
	double raw, written, got, cpu;
	long before, after;
	pid_t sandbox, proxy;

	read_setting("BENCH_MIB", 1 << 20, &mib);
	read_setting("BENCH_SECONDS", 600, &seconds);
	total_bytes = mib << 20;
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	sandbox = start_server(0, &sandbox_port);
	proxy = start_server(sandbox_port, &port);
	bench_small(sandbox_port, port, proxy);
	before = pss_kib(proxy);
	raw = raw_stream();
	cpu = cpu_seconds(proxy);
	written = write_through(port);
	got = read_through(port);
	cpu = cpu_seconds(proxy) - cpu;
	after = pss_kib(proxy);
	row("write through the gateway", "MB/s", written, 800, "raw loopback", raw, 0.25);
	row("read through the gateway", "MB/s", got, 800, "raw loopback", raw, 0.25);
	printf("%-38s %10.0f MB per CPU second of it\n", "  both streams",
	       2 * (double)total_bytes / 1e6 / (cpu > 0 ? cpu : 1));
	printf("%-38s %10ld KiB before, %ld KiB after the streams\n",
	       "memory of the gateway (PSS)", before, after);
	end(proxy);
	end(sandbox);
	return 0;
}
