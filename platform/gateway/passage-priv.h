/*
 * passage-priv.h - a passage, for its own files: passage.c and passage-head.c.
 */
#ifndef ABX_GATEWAY_PASSAGE_PRIV_H
#define ABX_GATEWAY_PASSAGE_PRIV_H

#include "gateway/gateway-priv.h"

/* A paused sandbox that is being resumed for a request. Outlives a client that goes. */
struct waking {
	abx__gateway *gateway;
	passage *passage; /* NULL: nobody waits any more */
};

struct passage {
	abx__gateway *gateway;
	struct waking *waking;
	passage *prev, *next;
	abx__http_req *req;
	abx__upstream *up;
	abx__upstream_ticket *ticket;
	enum abx__route_form form;
	uint16_t port;
	bool tls;     /* the port speaks it */
	bool keeps;   /* the port is the runtime's: its connections are kept */
	bool upgrade; /* asked for */
	bool raw;
	bool body_taken; /* so the request cannot be sent a second time */
	bool retried;
	bool req_paused;
	abx__tube *there, *back; /* for long bodies; NULL: none */
	uint64_t moved;          /* loop time */
	char *host; /* told to the sandbox instead of the client's; NULL: none */
	char *id, *namespace_, *pod, *target;
	char text[];
};

/* The head of the request as the sandbox is to get it. ABX_ENOMEM, ABX_ETOOBIG. */
int abx__passage_request_head(const passage *p, abx__buf *head);
/* The answer's fields, all but the connection's own, to the client's answer. */
int abx__passage_answer_fields(passage *p, const abx__http_head *head);
/* The sandbox's 101, for the client. */
int abx__passage_switching_head(const passage *p, const abx__http_head *head,
				abx__buf *text);

#endif
