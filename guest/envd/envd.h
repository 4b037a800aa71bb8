/*
 * envd.h - the daemon's one object: what it was started with, what /init set, and the
 * tables its services keep.
 *
 * One loop, one thread. Work that may block (file trees, file data) goes to libuv's
 * workers, which see copies only.
 */
#ifndef ABX_ENVD_ENVD_H
#define ABX_ENVD_ENVD_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/error.h"
#include "base/log.h"
#include "base/map.h"
#include "base/secret.h"
#include "envd/interpreter.h"
#include "envd/process.h"
#include "envd/users.h"
#include "envd/watch.h"
#include "io/http-server.h"

/* The version of the interface, as X-Envd-Version and -version say it (contract/envd.md).
 */
#define ABX__ENVD_VERSION "0.6.13"
#define ABX__ENVD_PORT 49983

typedef struct abx__envd_options {
	const char *bind_ip; /* NULL: all addresses */
	uint16_t port;       /* 0: any free one */
	bool is_not_fc;  /* not a Firecracker machine: run commands directly, leave the
			    clock alone */
	bool await_init; /* refuse RPCs until the first /init */
	bool verbose;
	const char *run_dir;      /* NULL: /run/e2b */
	const char *image_root;   /* NULL: none; see abx__image_prepare() */
	const char *profile_file; /* NULL: none; the image's environment for login shells
				     is written there */
	const char *interpreter;  /* NULL: none; the code interpreter's program */
	uint16_t interpreter_port;
	bool interpreter_warm; /* started at once, its kernel too */
} abx__envd_options;

typedef struct abx__envd {
	uv_loop_t *loop;
	abx__http_server *http;
	abx__log log;
	bool is_not_fc;
	bool await_init;
	bool is_initialized; /* a /init was accepted */
	bool is_installing_ca;
	uint16_t port;

	abx__secret *token; /* NULL: everything is open */
	char *default_user; /* never NULL once started */
	char *default_workdir;
	abx__map internal_vars; /* set by the platform; users cannot replace them */
	abx__map user_vars;
	int64_t applied_us; /* the timestamp of the last /init that had one; INT64_MIN:
			       none */

	abx__users users;
	abx__processes processes;
	abx__watches watches;
	abx__interpreter interpreter;
	int64_t started_us;
} abx__envd;

int abx__envd_start(abx__envd *envd, uv_loop_t *loop, const abx__envd_options *opts,
		    uint16_t *ret_port, abx_error **reterr);
/* Gives everything back; the loop must have been run until the listener closed. */
void abx__envd_done(abx__envd *envd);

#endif
