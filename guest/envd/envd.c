/*
 * envd.c - the daemon's start and end. The start does little: what is needed later is
 * made later.
 */
#include "envd/envd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "envd/env-vars.h"
#include "envd/image.h"
#include "envd/server.h"

#define IDLE_TIMEOUT_MS 640000

extern char **environ;

/* What tells programs where they are (contract/envd.md, section 1). A read-only root is
 * no reason not to start. */
static void write_marker(const abx__envd *envd, const char *dir)
{
	ABX_CLEANUP(abx__freep) char *file = abx__strf("%s/.E2B_SANDBOX", dir);
	const char *text = envd->is_not_fc ? "false" : "true";
	ABX_CLEANUP(abx__closep) int fd = -1;

	if (!file || (mkdir(dir, 0755) < 0 && errno != EEXIST))
		return;
	fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0444);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		abx__log_debug(&envd->log, "marker not written", "file=%s error=\"%s\"",
			       file, strerror(errno));
}

static void write_profile(const abx__envd *envd, const char *file)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	if (abx__env_vars_write_profile(file, environ, &err) < 0)
		abx__log_warn(&envd->log,
			      "login shells will miss the image's environment",
			      "error=\"%s\"", abx_error_message(err));
}

static int listen_on(abx__envd *envd, const abx__envd_options *opts, uint16_t *ret_port,
		     abx_error **reterr)
{
	abx__http_server_options http = {
		.loop = envd->loop,
		.on_request = abx__server_on_request,
		.userdata = envd,
		.idle_timeout_ms = IDLE_TIMEOUT_MS,
	};
	int r = abx__http_server_new(&http, &envd->http, reterr);

	if (r < 0)
		return r;
	return abx__http_server_listen_tcp(envd->http,
					   opts->bind_ip ? opts->bind_ip : "0.0.0.0",
					   opts->port, ret_port, reterr);
}

int abx__envd_start(abx__envd *envd, uv_loop_t *loop, const abx__envd_options *opts,
		    uint16_t *ret_port, abx_error **reterr)
{
	int r;

	memset(envd, 0, sizeof(*envd));
	envd->loop = loop;
	envd->is_not_fc = opts->is_not_fc;
	envd->await_init = opts->await_init;
	envd->applied_us = INT64_MIN;
	envd->started_us = abx__mono_us();
	envd->log = (abx__log){
		.write = abx__log_json_line,
		.userdata = (void *)(intptr_t)STDERR_FILENO,
		.level = opts->verbose ? ABX__LOG_DEBUG : ABX__LOG_WARN,
	};
	abx__users_init(&envd->users, NULL, NULL);
	abx__watches_init(&envd->watches, envd);
	envd->default_user = abx__strdup("root");
	if (!envd->default_user || abx__map_set(&envd->internal_vars, "E2B_SANDBOX",
						envd->is_not_fc ? "false" : "true") < 0)
		return abx__error_nomem(reterr);
	r = abx__processes_init(&envd->processes, envd, reterr);
	if (r >= 0)
		r = listen_on(envd, opts, ret_port, reterr);
	if (r < 0)
		return r;
	if (opts->image_root)
		abx__image_prepare(opts->image_root);
	write_marker(envd, opts->run_dir ? opts->run_dir : "/run/e2b");
	if (opts->profile_file)
		write_profile(envd, opts->profile_file);
	envd->port = *ret_port;
	abx__interpreter_init(&envd->interpreter, envd, opts);
	return ABX_OK;
}

void abx__envd_done(abx__envd *envd)
{
	abx__users_done(&envd->users);
	abx__secret_free(envd->token);
	abx__free(envd->default_user);
	abx__free(envd->default_workdir);
	abx__map_done(&envd->internal_vars);
	abx__map_done(&envd->user_vars);
}
