/*
 * input.c - standard input over a libuv pipe.
 */
#include "envd/input.h"

#include <unistd.h>

#include "base/alloc.h"
#include "envd/envd.h"
#include "envd/process.h"

struct write {
	uv_write_t req;
	abx__input *in;
	uint8_t *data;
	abx__input_done done;
	void *userdata;
};

void abx__input_abort(abx__input *in)
{
	in->is_open = false;
	if (in->is_shut)
		return;
	in->is_shut = true;
	abx__process_close_handle(in->process, (uv_handle_t *)&in->pipe);
}

void abx__input_open(abx__input *in, abx__process *process, int fd)
{
	in->process = process;
	in->is_shut = true;
	if (fd < 0)
		return;
	uv_pipe_init(process->envd->loop, &in->pipe, 0);
	process->open_handles++;
	in->is_shut = false;
	in->is_open = true;
	if (uv_pipe_open(&in->pipe, fd) < 0) {
		close(fd);
		abx__input_abort(in);
	}
}

static void on_written(uv_write_t *req, int status)
{
	struct write *write = req->data;
	abx__input *in = write->in;

	write->done(status, write->userdata);
	abx__free(write->data);
	abx__free(write);
	if (in->is_closing &&
	    uv_stream_get_write_queue_size((uv_stream_t *)&in->pipe) == 0)
		abx__input_abort(in);
}

int abx__input_write_take(abx__input *in, uint8_t *data, size_t len, abx__input_done done,
			  void *userdata)
{
	struct write *write;
	uv_buf_t buf = uv_buf_init((char *)data, (unsigned)len);
	int r = ABX_OK;

	if (!in->is_open)
		r = ABX_ESTATE;
	else if (uv_stream_get_write_queue_size((uv_stream_t *)&in->pipe) + len >
		 ABX__INPUT_MAX_PENDING)
		r = ABX_EEXHAUSTED;
	write = r < 0 ? NULL : abx__calloc(1, sizeof(*write));
	if (!write) {
		abx__free(data);
		return r < 0 ? r : ABX_ENOMEM;
	}
	write->in = in;
	write->data = data;
	write->done = done;
	write->userdata = userdata;
	write->req.data = write;
	if (uv_write(&write->req, (uv_stream_t *)&in->pipe, &buf, 1, on_written) < 0) {
		abx__free(data);
		abx__free(write);
		return ABX_ESTATE;
	}
	return ABX_OK;
}

void abx__input_close(abx__input *in)
{
	if (!in->is_open)
		return;
	in->is_open = false;
	in->is_closing = true;
	if (uv_stream_get_write_queue_size((uv_stream_t *)&in->pipe) == 0)
		abx__input_abort(in);
}
