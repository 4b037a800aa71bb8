/*
 * sandboxes.h - the table of claimed Pods, by sandbox id: what the gateway asks for every
 * request, and what the E2B and native APIs read. Kept by control/, read on the same
 * thread; a lookup is O(1) and allocates nothing.
 */
#ifndef ABX_CONTROL_SANDBOXES_H
#define ABX_CONTROL_SANDBOXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/secret.h"

enum abx__sandbox_state {
	ABX__SANDBOX_STARTING, /* claimed, not armed: nobody may reach it yet */
	ABX__SANDBOX_RUNNING,
	ABX__SANDBOX_STOPPING,
	ABX__SANDBOX_PAUSING, /* the last moment of running */
	ABX__SANDBOX_PAUSED,
	ABX__SANDBOX_RESUMING, /* not running yet */
};

/* What happens when its timeout ends, and when somebody calls a paused one. */
typedef struct abx__lifecycle {
	bool auto_pause;  /* it is paused, not killed */
	bool files_only;  /* by that, its memory is not kept */
	bool auto_resume; /* traffic wakes it */
} abx__lifecycle;

#define ABX__INGRESS_MASK_MAX 253
#define ABX__INGRESS_HTTPS_MAX 100

/* How traffic to a sandbox's own ports is let in; the runtime's port is not concerned. */
typedef struct abx__ingress {
	bool closed; /* nobody without the traffic token */
	/* The Host the sandbox is told, "${PORT}" in it being the port; "": the client's
	 */
	char mask_host[ABX__INGRESS_MASK_MAX + 1];
	uint16_t https_ports[ABX__INGRESS_HTTPS_MAX]; /* that speak TLS inside */
	size_t https_count;
} abx__ingress;

typedef struct abx__sandbox_rec {
	const char *id;
	const char *namespace_;
	const char *pod;
	const char *pool;
	const char *env;
	const char *template_; /* SandboxTemplate name */
	const char *image;
	const char *snapshot;    /* that it was created from, for people; NULL: none */
	const char *team, *user; /* owner */
	enum abx__sandbox_state state;
	int64_t claimed_ms, started_ms; /* wall clock */
	/* started_ms with a fraction that tells the order: no two of a server are equal
	 */
	int64_t started_us;
	int64_t last_active_ms;    /* wall clock; moved by abx__sandboxes_touch() */
	int64_t idle_timeout_ms;   /* 0: none */
	abx__map metadata;         /* the caller's own */
	abx__secret *access_token; /* envd's; NULL when the sandbox is not secure */
	int64_t cpu_milli, memory_bytes;
	uint16_t runtime_port;              /* envd's: 49983 */
	const abx__ingress *ingress;        /* NULL: public, nothing masked, no TLS */
	abx__secret *traffic_token;         /* NULL: public */
	const struct abx__metrics *metrics; /* see control/metrics.h; NULL: none yet */
	abx__lifecycle lifecycle;
	int64_t paused_ms; /* wall clock; 0: it is not paused, nor on its way */
	bool memory_kept;  /* while it is */
} abx__sandbox_rec;

typedef struct abx__sandboxes abx__sandboxes;

/* What E2B's API calls clientID, and what its older ids end in: the same for all. */
#define ABX__SANDBOX_CLIENT_ID "6532622b"

/* Any spelling of the id (ID, CLUSTER.ID and ID-CLUSTER with the local cluster,
   ID-CLIENTID); NULL when unknown. Borrowed until the loop turns. */
const abx__sandbox_rec *abx__sandboxes_find(const abx__sandboxes *table, const char *id);
/* A request passed, or a stream is open: the idle clock starts over. Cheap; persisted
 * lazily by control. */
void abx__sandboxes_touch(abx__sandboxes *table, const char *id);
/* Open streams hold a sandbox active: between begin and end its idle clock stands still.
 */
void abx__sandboxes_stream_begin(abx__sandboxes *table, const char *id);
void abx__sandboxes_stream_end(abx__sandboxes *table, const char *id);
/* Iteration in order of start time, then id: false past the end. */
bool abx__sandboxes_at(const abx__sandboxes *table, size_t index,
		       const abx__sandbox_rec **ret);

#endif
