/*
 * port-runtime.h - what control/ needs to arm a claimed Pod: POST /init to the envd in it
 * (envd.md section 5). Owned by control/; filled by platform/gateway/arm.c over the
 * gateway's own connections, and by a fake in tests.
 */
#ifndef ABX_CONTROL_PORT_RUNTIME_H
#define ABX_CONTROL_PORT_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>

typedef struct abx__runtime abx__runtime;
typedef struct abx__runtime_ops {
	/* Sends `body` (JSON; lives until `done`) as POST /init to port `port` of the
	   Pod; completes once with ABX_OK on 204, ABX_EUNAVAILABLE, ABX_ETIMEDOUT after
	   `deadline_ms` from now, or ABX_EPROTO with envd's text. */
	void (*arm)(abx__runtime *runtime, const char *namespace_, const char *pod,
		    uint16_t port, const char *body, size_t body_len,
		    uint64_t deadline_ms,
		    void (*done)(void *userdata, int r, const abx_error *err),
		    void *userdata);
	/* The Pod's container was replaced or the Pod is gone: drop connections kept to
	 * it. */
	void (*forget)(abx__runtime *runtime, const char *namespace_, const char *pod);
} abx__runtime_ops;

struct abx__runtime {
	const abx__runtime_ops *ops;
};

#endif
