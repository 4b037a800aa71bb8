/*
 * fake-server.h - a loopback HTTP server on a thread of its own, answering from a script.
 *
 * It runs beside the test, so that blocking calls work and allocation faults of the
 * test's thread do not reach it.
 */
#ifndef ABX_TESTS_FAKE_SERVER_H
#define ABX_TESTS_FAKE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fake_ending {
	FAKE_WHOLE,  /* the answer as it should be */
	FAKE_HANG,   /* no answer */
	FAKE_STALL,  /* head and body, but no end */
	FAKE_ABORT,  /* head and body, then the connection breaks */
	FAKE_STREAM, /* `stream_bytes` bytes of 'x', as fast as they are taken */
	FAKE_ECHO,   /* the request's body */
};

typedef struct fake_answer {
	const char *method; /* NULL: any */
	const char *path;   /* up to '?'; NULL: any */
	const char *query;  /* a part of the query that must be there, or NULL */
	int status;
	const char *type;       /* NULL: application/json */
	const char *body;       /* NULL: none */
	size_t len;             /* 0: strlen(body) */
	const char *headers[3]; /* "Name: value" */
	size_t split;           /* bytes written at a time; 0: whole */
	enum fake_ending ending;
	uint64_t stream_bytes;
	unsigned times; /* uses; 0: no limit */
} fake_answer;

typedef struct fake_server fake_server;

/* `answers` end with a row whose status is 0 and live as long as the server. The first
   row that fits answers; none: 404 {"code":404,"message":"not in the script"}. */
fake_server *fake_server_start(const fake_answer *answers);
void fake_server_stop(fake_server *server);
const char *fake_server_url(fake_server *server);
const char *fake_server_socket(fake_server *server);
/* Requests so far; and request `index` as "METHOD target\nname: value\n...\n\nbody"
 * (names in lower case); of a Connect stream the message without its envelope. */
unsigned fake_server_count(fake_server *server);
const char *fake_server_seen(fake_server *server, unsigned index);
/* Connections taken so far is not known to the server; bytes of request bodies are. */
uint64_t fake_server_body_bytes(fake_server *server);
/* Requests that ended because the client went away. */
unsigned fake_server_aborted(fake_server *server);

#endif
