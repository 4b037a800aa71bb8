/*
 * server-priv.h - what server.c (the socket, its clients) and server-requests.c share.
 */
#ifndef ABX_ENGINE_PODD_SERVER_PRIV_H
#define ABX_ENGINE_PODD_SERVER_PRIV_H

#include "engine/podd/podd.h"

struct packet {
	struct packet *next;
	int fd;
	size_t len;
	char data[];
};

struct client {
	struct server *server;
	int fd;
	uv_poll_t poll;
	bool synced; /* gets events */
	bool dead;
	struct packet *head, **tail;
	unsigned queued;
	struct client *next;
};

/* A CONNECT whose answer takes longer than the call. */
struct waiting {
	uv_poll_t poll;
	uv_timer_t timer;
	unsigned closing;
	int fd;
	uint64_t seq;
	struct client *client;
	struct waiting *next;
};

struct server {
	struct podd *podd;
	int fd;
	uv_poll_t poll;
	struct client *clients;
	unsigned client_count;
	struct waiting *waiting;
};

/* ---- server.c ---- */

/* Takes over fd, -1: none. A client that has too much waiting, or is gone, is dropped. */
void abx__client_send(struct client *c, uint16_t type, int32_t r, uint64_t seq,
		      json_object *body, int fd);
void abx__client_reply(struct client *c, uint64_t seq, int r, const abx_error *err);

/* ---- server-requests.c ---- */

/* One request, to its answer or its beginning. */
void abx__client_serve(struct client *c, const struct abx__podd_header *h,
		       const char *text, size_t len);
/* Its client is gone, or it has its answer. */
void abx__client_waiting_end(struct waiting *w);

#endif
