/*
 * agentboxd.h - what the daemon's files share: its settings, and the four things it can
 * be told to do.
 */
#ifndef AGENTBOXD_H
#define AGENTBOXD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <agentbox/error.h>
#include <uv.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "control/capacity.h"
#include "control/control.h"
#include "control/port-engine.h"
#include "control/port-runtime.h"
#include "io/tls.h"

#define AGENTBOXD_LISTEN_MAX 16
#define AGENTBOXD_PODD_ARGS_MAX 64
/* Exit status of a supervisor whose state directory has one (also in
 * lib/client/local.c). */
#define AGENTBOXD_RUNS_ALREADY 75

typedef struct agentboxd_address {
	char ip[64];
	unsigned short port;
	bool e2b_only;
	bool tls;
	bool fallback; /* the default: may be taken by somebody else */
} agentboxd_address;

typedef struct agentboxd_settings {
	char *state_dir;
	char *socket_path;
	char *podd_socket;
	char *log_file;          /* NULL: stderr */
	const char *max_timeout; /* as it was given; NULL: none */
	int64_t max_timeout_ms;
	const char *cluster_id;
	char *instance_types, *quotas; /* files; NULL: none */
	const char *engine;            /* "local" or "fake" */
	const char *account;
	const char *domain; /* sandboxes are PORT-ID.DOMAIN */
	char *tls_cert;     /* PEM; NULL: an own one */
	char *tls_key;
	char *jwt_secret_file;   /* NULL: no console sessions */
	abx__secret *jwt_secret; /* what is in it */
	const char *public_url;  /* what clients reach this server as; NULL: an address it
				    listens on */
	const char *console_url; /* NULL: not known */
	const char *podd_program; /* NULL: beside this program */
	agentboxd_address listen[AGENTBOXD_LISTEN_MAX];
	size_t listen_count;
	const char *podd_args[AGENTBOXD_PODD_ARGS_MAX];
	size_t podd_arg_count;
	bool allow_remote;
	bool with_base; /* the env `base`, in a store without envs */
	bool supervise, daemon, stop, purge;
	bool debug;
	int ready_fd; /* "ready\n" is written there once requests are answered; -1: none
		       */
	int argc;     /* the command line, for the supervisor to hand on */
	char **argv;
} agentboxd_settings;

/* Who the daemon is to be, once it is not root any more. */
typedef struct agentboxd_account {
	uid_t uid;
	gid_t gid;
} agentboxd_account;

/* NAME, UID or UID:GID; NULL: "agentbox", else "nobody". Not root: whoever runs it. */
int agentboxd_account_find(const char *name, agentboxd_account *ret, abx_error **reterr);
/* Makes the state directory, mode 0700, and its owner the account. */
int agentboxd_state_dir_make(const char *path, const agentboxd_account *account,
			     abx_error **reterr);
/* Gives up root for good: ids, groups, capabilities, and the way back to them. */
int agentboxd_rights_drop(const agentboxd_account *account, abx_error **reterr);

/* Serves until SIGTERM or SIGINT; the process's exit status. */
int agentboxd_run(const agentboxd_settings *s);
/* Keeps agentbox-podd and agentboxd running until SIGTERM or SIGINT.
 * AGENTBOXD_RUNS_ALREADY: somebody else does. */
int agentboxd_supervise(const agentboxd_settings *s, const agentboxd_account *account);
/* Ends the supervisor of the state directory, the daemons and their Pods; with purge, the
 * directory too. */
int agentboxd_stop(const agentboxd_settings *s);
/* Into the background; returns in the child, with a descriptor for settings.ready_fd. The
   first process waits for "ready" and exits with 0, or, when the child ended first, with
   the child's status; then it says why, from the log. */
int agentboxd_daemonize(agentboxd_settings *s, abx_error **reterr);

/* The sample template and env `base` (deploy/samples), unless the store has an env
 * already. `done` once, later. */
void agentboxd_base_make(abx__control *control, const char *cluster_id,
			 abx__control_done done, void *userdata);

/* The certificate of the TLS listeners. ABX_EIO, ABX_EINVAL as tls.h and tls-local.h have
 * them. */
typedef struct agentboxd_tls agentboxd_tls;
int agentboxd_tls_new(uv_loop_t *loop, const agentboxd_settings *s, const abx__log *log,
		      agentboxd_tls **ret, abx_error **reterr);
abx__tls_context *agentboxd_tls_context(agentboxd_tls *tls);
/* The file clients are to trust; NULL with a given certificate. */
const char *agentboxd_tls_ca(const agentboxd_tls *tls);
void agentboxd_tls_close(agentboxd_tls *tls); /* its handles; the loop must still turn */
void agentboxd_tls_free(agentboxd_tls *tls);

/* Instance types and quotas from their files; NULL stays when neither is named.
   ABX_EIO, ABX_EINVAL naming the file and what is wrong in it. */
int agentboxd_capacity_load(const agentboxd_settings *s, abx__capacity **ret,
			    abx_error **reterr);

/* --engine fake: Pods in memory that nothing runs in, for developing clients. Lives as
 * long as the process. */
int agentboxd_fake_new(uv_loop_t *loop, abx__engine **ret_engine,
		       abx__runtime **ret_runtime, abx_error **reterr);
/* Lets go of the loop; after it nothing of the fake is called any more. */
void agentboxd_fake_stop(void);

#endif
