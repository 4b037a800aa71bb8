/*
 * output.h - a process's two output pipes and those who listen to them.
 *
 * Back pressure: a subscriber with more than 256 KiB not yet taken by its connection
 * stops the reading of both pipes until it fell to 64 KiB, so the process waits in
 * write(2) and memory stays bounded. A subscriber whose connection ends is removed at
 * once and stalls nobody; one that stayed behind for 1 s while another could have gone
 * on gets what it has waiting and then `resource_exhausted`. Alone it may take its time.
 * Without subscribers output is read and dropped.
 */
#ifndef ABX_ENVD_OUTPUT_H
#define ABX_ENVD_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include <uv.h>

#include "envd/rpc.h"

struct abx__process;

#define ABX__OUTPUT_PIECE_BYTES 32768
#define ABX__OUTPUT_STALL_BYTES ((size_t)256 << 10)
#define ABX__OUTPUT_RESUME_BYTES ((size_t)64 << 10)
#define ABX__OUTPUT_BEHIND_MS 1000
#define ABX__SUBSCRIBERS_MAX 256 /* of one process */

typedef struct abx__output {
	uv_pipe_t pipe;
	struct abx__process *process;
	bool is_open;
	bool is_reading;
} abx__output;

typedef struct abx__subscriber {
	struct abx__subscriber *prev, *next;
	struct abx__process *process;
	abx__rpc *rpc; /* a reference */
	bool is_starter;
	bool is_stalled;
	uint64_t stalled_ms; /* since when */
} abx__subscriber;

/* Takes over the pipe's read end. */
void abx__output_open(abx__output *out, struct abx__process *process, int fd);
void abx__outputs_update(
	struct abx__process *process); /* reads or not, as the subscribers allow */
/* Of a process with a terminal. ABX_EINVAL for a size it cannot have. */
int abx__output_resize_tty(const abx__output *out, uint32_t cols, uint32_t rows,
			   abx_error **reterr);
bool abx__outputs_are_open(const struct abx__process *process);
bool abx__outputs_have_data(
	const struct abx__process *process); /* in the pipes, unread */
bool abx__outputs_are_stalled(const struct abx__process *process);

/* Sends the start event and listens from here on. */
void abx__subscriber_add(struct abx__process *process, abx__rpc *rpc, bool is_starter);
/* The timer that looks at stalled subscribers. */
void abx__subscribers_on_stall_timer(uv_timer_t *timer);
/* Sends the end to all and forgets them. */
void abx__subscribers_end(struct abx__process *process);
/* Ends the stream of the one who started the process, if it is still there. */
void abx__subscribers_fail_starter(struct abx__process *process,
				   enum abx__connect_code code, const char *message);

#endif
