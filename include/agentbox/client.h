/*
 * agentbox/client.h - the connection to a platform: where it is, with which key, on which
 * loop.
 *
 * Where a setting comes from, first match wins, each setting for itself:
 *
 *   1. the options of abx_client_new()
 *   2. the environment
 *        AGENTBOX_SOCKET        path of an agentboxd's Unix socket
 *        AGENTBOX_CLUSTER_API   base URL of one cluster (also AGENTBOX_API_URL)
 *        AGENTBOX_ENDPOINT      base URL of a console in front of many clusters
 *        AGENTBOX_CLUSTER       the cluster to address behind a console
 *        AGENTBOX_API_KEY       the key; AGENTBOX_AUTH_SCHEME "api-key" or "bearer"
 *        AGENTBOX_STATE_DIR     state directory of the local engine
 *        E2B_API_URL, E2B_DOMAIN, E2B_SANDBOX_URL, E2B_API_KEY
 *                               when no AGENTBOX_ address is set: a service that speaks
 * E2B
 *        SSL_CERT_FILE          PEM file of the CAs to trust for https, instead of the
 *                               system's (no option or context has it)
 *   3. the context file ${XDG_CONFIG_HOME:-~/.config}/abx/config.json
 *   4. the local engine: the socket agentboxd.sock in the state directory, which is
 *      /var/lib/agentbox for root and ${XDG_STATE_HOME:-~/.local/state}/agentbox for
 *      others
 *
 * When nobody listens at that socket, root starts the engine: the agentboxd installed
 * with the library, else the PATH's, or the program AGENTBOX_DAEMON names, with
 * "--supervise
 * --daemon --with-base --state-dir DIR". It makes the env "base" when there is no env,
 * and runs on when the program ends; "agentboxd --stop --state-dir DIR" ends it. The log
 * is told at ABX_LOG_INFO. Programs that start one at once get the same one. A port of
 * its own, or other options: start agentboxd by hand (docs/agentboxd.md).
 *
 * Threads: one client, its sandboxes, processes and operations belong to one thread at a
 * time; abx_client_wakeup() is the exception. The library installs no signal handlers.
 * Looking up a host name runs on a helper thread of libcurl.
 */
#ifndef AGENTBOX_CLIENT_H
#define AGENTBOX_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <agentbox/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A platform client. */
typedef struct abx_client abx_client;

enum abx_log_level {
	ABX_LOG_DEBUG = 0,
	ABX_LOG_INFO = 1,
	ABX_LOG_WARN = 2,
	ABX_LOG_ERROR = 3
};

/** One event: a text and "key=value key=value" fields (never NULL). No secrets are in it.
 */
typedef void (*abx_log_fn)(void *userdata, int level, const char *text,
			   const char *fields);

/** Do not read the environment. */
#define ABX_CLIENT_NO_ENVIRONMENT 0x1u
/** Do not read the context file. */
#define ABX_CLIENT_NO_CONTEXT 0x2u
/** Do not start a local engine that does not run; give ABX_EUNAVAILABLE instead. */
#define ABX_CLIENT_NO_START 0x4u

/** How to make a client. Strings are borrowed for the call. NULL or 0: see the top of
 * this file. */
typedef struct abx_client_options {
	size_t size;             /* set by ABX_CLIENT_OPTIONS_INIT */
	const char *socket_path; /* Unix socket of an agentboxd */
	const char *cluster_api; /* base URL of one cluster, "http://127.0.0.1:8080" */
	const char *endpoint;    /* base URL of a console; needs `cluster` */
	const char *cluster;     /* cluster id */
	const char *api_key;     /* sent as the address wants it */
	const char *
		auth_scheme; /* "api-key" or "bearer" instead of what the address wants */
	const char *context; /* entry of the context file instead of the current one */
	const char *config_path;     /* context file instead of the usual one */
	const char *state_dir;       /* state directory of the local engine */
	const char *e2b_api_url;     /* base URL of an E2B API alone */
	const char *e2b_domain;      /* domain of sandboxes: PORT-ID.DOMAIN */
	const char *e2b_sandbox_url; /* one base URL for every sandbox, told apart by
					headers */
	uint32_t request_timeout_ms; /* one request and its answer; 0: 60000;
					ABX_NO_TIMEOUT */
	uint32_t connect_timeout_ms; /* 0: 10000 */
	uint32_t flags;              /* ABX_CLIENT_... */
	abx_log_fn log;              /* NULL: silence */
	void *log_userdata;          /* must outlive the client */
	int log_level; /* events below it are not given; enum abx_log_level */
} abx_client_options;
#define ABX_CLIENT_OPTIONS_INIT ABX_OPTIONS_INIT(abx_client_options)
/** Does what ABX_CLIENT_OPTIONS_INIT does. Since: 0.1.0 */
ABX_API void abx_client_options_init(abx_client_options *opts);

/**
 * Makes a client: reads the settings and finds the platform. Sends nothing to a
 * configured address; for the local engine it looks whether the socket answers, and may
 * start the engine: usually well under a second, at most 30. `opts` may be NULL.
 *
 * Errors: ABX_EINVAL (a setting is wrong; the message names it and where it came from),
 * ABX_ENOTFOUND (no such context), ABX_EUNAVAILABLE (no address configured and no local
 * engine, and this is not root; or it did not start: the message has what the daemon
 * said, the hint its log and what to do), ABX_EDENIED (the socket is another account's),
 * ABX_ENOMEM. Owner: the caller, abx_client_free(). Since: 0.1.0
 *
 *     abx_client *client = NULL;
 *     abx_error *err = NULL;
 *     if (abx_client_new(NULL, &client, &err) < 0)
 *             fprintf(stderr, "%s\n", abx_error_message(err));
 */
ABX_API int abx_client_new(const abx_client_options *opts, abx_client **ret,
			   abx_error **reterr);

/**
 * Ends every operation with ABX_ECANCELED (their completions run in here), closes the
 * connections and frees the client. Sandboxes go on running on the platform. Handles made
 * from it stay valid to free; other calls on them give ABX_ESTATE. NULL is fine. Not
 * inside a callback. Since: 0.1.0
 */
ABX_API void abx_client_free(abx_client *client);

/**
 * The address in use, for people: "unix:/var/lib/agentbox/agentboxd.sock" or a URL.
 * Owner: the client. Since: 0.1.0
 */
ABX_API const char *abx_client_address(abx_client *client);
/** The base address of the console in use, or NULL: the address is a cluster's or a
 * socket. Owner: the client. Since: 0.1.0 */
ABX_API const char *abx_client_console(abx_client *client);
/** The cluster in use, or NULL. Owner: the client. Since: 0.1.0 */
ABX_API const char *abx_client_cluster(abx_client *client);
/**
 * A short text that stands for the context, address and key in use, such as
 * "default:1f3a5b7c": for naming what a program keeps about them. The key cannot be told
 * from it. NULL: out of memory. Owner: the caller, abx_free(). Since: 0.1.0
 */
ABX_API char *abx_client_identity(abx_client *client);
/** The name of the context in use, or NULL. Owner: the client. Since: 0.1.0 */
ABX_API const char *abx_client_context(abx_client *client);

/* ---- the loop, for a program with a loop of its own ---- */

/**
 * A descriptor to poll for reading (POLLIN): readable means abx_client_process() has
 * work. Constant for the client's life; not to be read, written or closed. Since: 0.1.0
 *
 *     struct pollfd p = { abx_client_fd(client), POLLIN, 0 };
 *     while ((r = abx_client_process(client, &err)) > 0)
 *             poll(&p, 1, abx_client_timeout_ms(client));
 */
ABX_API int abx_client_fd(abx_client *client);

/**
 * How long to poll at most before abx_client_process() has work, in milliseconds: 0 at
 * once, -1 no limit. Ask again before every poll. Since: 0.1.0
 */
ABX_API int abx_client_timeout_ms(abx_client *client);

/**
 * Does what can be done without waiting and runs callbacks and completions.
 *
 * Returns the number of operations still under way (0: none), or ABX_ESTATE inside a
 * callback. Since: 0.1.0
 */
ABX_API int abx_client_process(abx_client *client, abx_error **reterr);

/**
 * Waits until something happened, at most `timeout_ms` (ABX_NO_TIMEOUT: no limit), and
 * processes it. For programs that use the asynchronous calls without a loop of their own.
 *
 * Returns as abx_client_process(). Since: 0.1.0
 */
ABX_API int abx_client_wait(abx_client *client, uint32_t timeout_ms, abx_error **reterr);

/**
 * Makes abx_client_fd() readable and abx_client_wait() return.
 * Threads: any, as long as the client lives; async-signal-safe. Since: 0.1.0
 */
ABX_API void abx_client_wakeup(abx_client *client);

#ifdef __cplusplus
}
#endif
#endif
