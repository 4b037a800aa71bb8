/*
 * agentbox-envd.c - the runtime inside a Pod (guest/envd): options, one loop, an orderly
 * end.
 *
 * Static and small: it has to start in an image that holds nothing, and there may be
 * hundreds of it on a machine.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "envd/envd.h"
#include "envd/options.h"
#include "envd/watch-poll.h"

#ifndef ABX_COMMIT
#define ABX_COMMIT "unknown"
#endif

static abx__envd envd;
static uv_signal_t sigterm, sigint;

/* Descriptors 0 to 2 exist, and nothing we were started with reaches a command. */
static int prepare_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd < 3);
	if (fd >= 0)
		close(fd);
	else if (fcntl(0, F_GETFD) < 0 || fcntl(1, F_GETFD) < 0 || fcntl(2, F_GETFD) < 0)
		return -1;
	syscall(SYS_close_range, 3, ~0U, 1U << 2 /* CLOSE_RANGE_CLOEXEC */);
	return 0;
}

/* One arena and early returns to the kernel: workers come and go, memory must not stay.
 */
static void prepare_memory(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_TRIM_THRESHOLD, 128 * 1024);
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
	setenv("UV_THREADPOOL_SIZE", "2", 0);
}

/* What commands left running in the background is drained until it closes; the end does
 * not wait for that. */
static void on_closed(void *userdata)
{
	uv_stop(userdata);
}

static void on_signal(uv_signal_t *handle, int signum)
{
	(void)signum;
	uv_close((uv_handle_t *)&sigterm, NULL);
	uv_close((uv_handle_t *)&sigint, NULL);
	abx__interpreter_close(&envd.interpreter);
	abx__processes_close(&envd.processes);
	abx__watch_pollers_close(&envd.watches);
	abx__http_server_close(envd.http, on_closed, handle->loop);
}

/* As a Pod's first process it is shielded from signals it has no handler for. */
static void watch_signals(uv_loop_t *loop)
{
	uv_signal_init(loop, &sigterm);
	uv_signal_init(loop, &sigint);
	uv_signal_start(&sigterm, on_signal, SIGTERM);
	uv_signal_start(&sigint, on_signal, SIGINT);
}

static int run(const abx__envd_options *opts)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	uv_loop_t *loop;
	uint16_t port;

	if (prepare_descriptors() < 0) {
		fprintf(stderr, "agentbox-envd: open /dev/null: %s\n", strerror(errno));
		return 1;
	}
	prepare_memory();
	signal(SIGPIPE, SIG_IGN);
	loop = uv_default_loop();
	if (!loop || abx__envd_start(&envd, loop, opts, &port, &err) < 0) {
		fprintf(stderr, "agentbox-envd: %s\n",
			loop ? abx_error_message(err) : "cannot make an event loop");
		return 1;
	}
	watch_signals(loop);
	abx__log_info(&envd.log, "listening", "port=%u", (unsigned)port);
	uv_run(loop, UV_RUN_DEFAULT);
	abx__envd_done(&envd);
	return 0;
}

int main(int argc, char **argv)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	enum abx__envd_action action;
	abx__envd_options opts;

	if (abx__envd_options_read(argc, argv, &opts, &action, &err) < 0) {
		fprintf(stderr, "agentbox-envd: %s\n", abx_error_message(err));
		return 2;
	}
	switch (action) {
	case ABX__ENVD_PRINT_VERSION:
		return puts(ABX__ENVD_VERSION) < 0;
	case ABX__ENVD_PRINT_COMMIT:
		return puts(ABX_COMMIT) < 0;
	case ABX__ENVD_PRINT_HELP:
		return fputs(abx__envd_help, stdout) < 0;
	case ABX__ENVD_RUN:
		break;
	}
	return run(&opts);
}
