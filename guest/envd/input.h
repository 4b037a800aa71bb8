/*
 * input.h - a process's standard input: writes in order, answered when the process's pipe
 * took them.
 */
#ifndef ABX_ENVD_INPUT_H
#define ABX_ENVD_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

struct abx__process;

/* Bytes one process may have waiting; over it writes are refused. */
#define ABX__INPUT_MAX_PENDING ((size_t)64 << 20)

typedef struct abx__input {
	uv_pipe_t pipe;
	struct abx__process *process;
	bool is_open;    /* takes writes */
	bool is_closing; /* closes when the pending writes are out */
	bool is_shut;    /* the handle closes or never was */
} abx__input;

/* `status` as libuv gives it. */
typedef void (*abx__input_done)(int status, void *userdata);

/* Takes over the pipe's write end; fd -1: the process has no stdin. */
void abx__input_open(abx__input *in, struct abx__process *process, int fd);
/* Takes `data` over (abx__free). ABX_ESTATE when stdin is off or closed, ABX_EEXHAUSTED
   over the cap, ABX_ENOMEM; only on ABX_OK will `done` run, later. */
int abx__input_write_take(abx__input *in, uint8_t *data, size_t len, abx__input_done done,
			  void *userdata);
void abx__input_close(
	abx__input *in); /* after what is pending; repeated calls are fine */
void abx__input_abort(abx__input *in); /* at once; pending writes get UV_ECANCELED */

#endif
