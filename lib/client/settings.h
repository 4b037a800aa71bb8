/*
 * settings.h - where the platform is and how to speak to it, made from options,
 * environment and context file.
 *
 * Pure but for the environment and the one file: no connection is made here. The order
 * and the meaning of each source are those of <agentbox/client.h>.
 */
#ifndef ABX_CLIENT_SETTINGS_H
#define ABX_CLIENT_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include <agentbox/client.h>

#include "base/secret.h"

/* How a sandbox is told to the data plane. */
enum abx__data_form {
	ABX__DATA_HEADERS, /* one base, E2b-Sandbox-Id and E2b-Sandbox-Port */
	ABX__DATA_PATH,    /* base/sandboxes/ID/PORT */
	ABX__DATA_HOST,    /* scheme://PORT-ID.domain */
};

typedef struct abx__settings {
	char *socket_path;  /* NULL: TCP */
	char *address;      /* for people and messages */
	char *native_base;  /* ".../v1"; NULL: no native API there */
	char *console_base; /* ".../api" of a console; NULL: there is none */
	char *e2b_base;     /* control calls */
	char *data_base;    /* of the headers and path forms */
	char *domain;       /* of the host form, or NULL */
	char *public_base; /* what others can use in the path form; NULL: a socket only */
	const char
		*scheme; /* "http" or "https", of the host form and of public addresses */
	enum abx__data_form form;
	char *cluster;
	char *context;
	char *state_dir; /* of the local engine; set when nothing else was configured */
	abx__secret *key;
	bool is_bearer;
	uint32_t request_timeout_ms; /* 0: none */
	uint32_t
		create_timeout_ms; /* of a create that says nothing of its own; 0: none */
	uint32_t connect_timeout_ms;
	char *ca_file; /* NULL: what the system trusts */
} abx__settings;

void abx__settings_done(abx__settings *settings);
/* `opts` is complete (abx__options_copy). On failure `settings` is to be given to _done
   all the same. When no address is configured, `state_dir` is set and the rest is to be
   filled with abx__settings_use_socket(). */
int abx__settings_load(abx__settings *settings, const abx_client_options *opts,
		       abx_error **reterr);
int abx__settings_use_socket(abx__settings *settings, const char *path);

/* A base URL without slashes at its end, and without what a console's pages append to it;
 * NULL: out of memory. */
char *abx__settings_normalised(const char *url);
/* ABX_EINVAL when it is no http or https URL; `what` it is, for the message. */
int abx__settings_check_url(const char *what, const char *url, abx_error **reterr);

/* One entry of the context file; NULL members were not there. */
typedef struct abx__context {
	char *name;
	char *endpoint;
	char *cluster_api;
	char *cluster;
	char *auth_scheme;
	abx__secret *key;
} abx__context;

void abx__context_done(abx__context *context);
/* Reads `path` (NULL: the usual place). A missing or unreadable file is an empty one.
 * `name` NULL: the current one. */
int abx__context_load(abx__context *context, const char *path, const char *name,
		      abx_error **reterr);

#endif
