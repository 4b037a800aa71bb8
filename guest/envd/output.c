/*
 * output.c - pipes to streams. One read buffer serves every process: a piece is encoded,
 * at most once a codec, before the next is read.
 */
#include "envd/output.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <envd/process.pb-c.h>
#include <utlist.h>

#include "base/alloc.h"
#include "envd/envd.h"
#include "envd/process.h"
#include "envd/pty.h"

#define STALL_LOOK_MS 250

static char piece[ABX__OUTPUT_PIECE_BYTES];

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	(void)handle;
	(void)suggested;
	*buf = uv_buf_init(piece, sizeof(piece));
}

enum channel { CHANNEL_STDOUT, CHANNEL_STDERR, CHANNEL_PTY };

static void fill_data(enum channel channel, const char *data, size_t len,
		      Process__ProcessEvent__DataEvent *event)
{
	ProtobufCBinaryData bytes = { .len = len, .data = (uint8_t *)(uintptr_t)data };

	process__process_event__data_event__init(event);
	if (channel == CHANNEL_PTY) {
		event->output_case = PROCESS__PROCESS_EVENT__DATA_EVENT__OUTPUT_PTY;
		event->pty = bytes;
	} else if (channel == CHANNEL_STDOUT) {
		event->output_case = PROCESS__PROCESS_EVENT__DATA_EVENT__OUTPUT_STDOUT;
		event->stdout = bytes;
	} else {
		event->output_case = PROCESS__PROCESS_EVENT__DATA_EVENT__OUTPUT_STDERR;
		event->stderr = bytes;
	}
}

/* StartResponse and ConnectResponse look alike on the wire, so one encoding serves both.
 */
static int encode_data(bool is_json, enum channel channel, const char *data, size_t len,
		       abx__buf *buf)
{
	Process__ProcessEvent__DataEvent output;
	Process__ProcessEvent event = PROCESS__PROCESS_EVENT__INIT;
	Process__StartResponse msg = PROCESS__START_RESPONSE__INIT;

	fill_data(channel, data, len, &output);
	event.event_case = PROCESS__PROCESS_EVENT__EVENT_DATA;
	event.data = &output;
	msg.event = &event;
	return abx__rpc_encode(is_json, &msg.base, buf);
}

static void on_drain(abx__http_req *req, void *userdata)
{
	abx__subscriber *sub = userdata;

	(void)req;
	sub->is_stalled = false;
	abx__outputs_update(sub->process);
}

static void send_piece(abx__subscriber *sub, const abx__buf *encoded)
{
	abx__rpc *rpc = sub->rpc;

	abx__rpc_send_encoded(rpc, encoded->data, encoded->len);
	if (rpc->is_done || !rpc->req || sub->is_stalled ||
	    abx__http_res_queued(rpc->req) <= ABX__OUTPUT_STALL_BYTES)
		return;
	sub->is_stalled = true;
	sub->stalled_ms = uv_now(rpc->envd->loop);
	if (!uv_is_active((uv_handle_t *)&sub->process->stall))
		uv_timer_start(&sub->process->stall, abx__subscribers_on_stall_timer,
			       STALL_LOOK_MS, 0);
	abx__http_res_on_drain(rpc->req, ABX__OUTPUT_RESUME_BYTES, on_drain, sub);
}

static void deliver(abx__process *process, enum channel channel, const char *data,
		    size_t len)
{
	ABX_CLEANUP_BUF abx__buf json = ABX__BUF_INIT, proto = ABX__BUF_INIT;
	abx__subscriber *sub, *next;

	DL_FOREACH_SAFE(process->subscribers, sub, next)
	{
		abx__buf *buf = sub->rpc->is_json ? &json : &proto;

		if (!buf->len &&
		    encode_data(sub->rpc->is_json, channel, data, len, buf) < 0)
			abx__rpc_fail(sub->rpc, ABX__CONNECT_INTERNAL, "out of memory");
		else
			send_piece(sub, buf);
	}
}

static void close_output(abx__output *out)
{
	if (!out->is_open)
		return;
	out->is_open = false;
	out->is_reading = false;
	abx__process_close_handle(out->process, (uv_handle_t *)&out->pipe);
}

static enum channel channel_of(const abx__output *out)
{
	if (out->process->has_tty)
		return CHANNEL_PTY;
	return out == out->process->out ? CHANNEL_STDOUT : CHANNEL_STDERR;
}

/* libuv takes a hang-up behind a short read for the end, but a terminal gives at most
 * 4 KiB at a time: what it still holds, some 64 KiB at most, is read here. */
static void drain_tty(abx__output *out)
{
	ssize_t n;
	int fd;

	if (uv_fileno((const uv_handle_t *)&out->pipe, &fd) < 0)
		return;
	while ((n = read(fd, piece, sizeof(piece))) > 0 || (n < 0 && errno == EINTR))
		if (n > 0 && !out->process->is_ended)
			deliver(out->process, CHANNEL_PTY, piece, (size_t)n);
}

/* A terminal whose other end is closed by all reads as EIO, not as the end. */
static void on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
	abx__output *out = stream->data;
	abx__process *process = out->process;

	if (nread == 0)
		return;
	if (nread < 0) {
		if (process->has_tty && nread == UV_EOF)
			drain_tty(out);
		close_output(out);
		abx__process_check_end(process);
		return;
	}
	if (process->is_ended)
		return; /* what the background still writes is dropped */
	process->output_ms = uv_now(stream->loop);
	deliver(process, channel_of(out), buf->base, (size_t)nread);
	abx__outputs_update(process);
}

void abx__output_open(abx__output *out, abx__process *process, int fd)
{
	out->process = process;
	uv_pipe_init(process->envd->loop, &out->pipe, 0);
	out->pipe.data = out;
	out->is_open = true;
	process->open_handles++;
	if (uv_pipe_open(&out->pipe, fd) < 0) {
		close(fd);
		close_output(out);
	}
}

void abx__outputs_update(abx__process *process)
{
	bool want = process->is_ended || !abx__outputs_are_stalled(process);

	for (int i = 0; i < 2; i++) {
		abx__output *out = &process->out[i];

		if (!out->is_open || out->is_reading == want)
			continue;
		out->is_reading = want;
		if (want)
			uv_read_start((uv_stream_t *)&out->pipe, on_alloc, on_read);
		else
			uv_read_stop((uv_stream_t *)&out->pipe);
	}
}

int abx__output_resize_tty(const abx__output *out, uint32_t cols, uint32_t rows,
			   abx_error **reterr)
{
	int fd;

	if (!out->is_open || uv_fileno((const uv_handle_t *)&out->pipe, &fd) < 0)
		return abx__error_set(reterr, ABX_EIO, "the terminal is closed");
	return abx__pty_resize(fd, cols, rows, reterr);
}

bool abx__outputs_are_open(const abx__process *process)
{
	return process->out[0].is_open || process->out[1].is_open;
}

bool abx__outputs_have_data(const abx__process *process)
{
	for (int i = 0; i < 2; i++) {
		int fd, bytes = 0;

		if (process->out[i].is_open &&
		    uv_fileno((const uv_handle_t *)&process->out[i].pipe, &fd) == 0 &&
		    ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0)
			return true;
	}
	return false;
}

bool abx__outputs_are_stalled(const abx__process *process)
{
	for (const abx__subscriber *sub = process->subscribers; sub; sub = sub->next)
		if (sub->is_stalled)
			return true;
	return false;
}

/* ---- subscribers ---- */

static void forget(abx__subscriber *sub)
{
	DL_DELETE(sub->process->subscribers, sub);
	sub->rpc->on_gone = NULL;
	sub->rpc->data = NULL;
	if (sub->is_stalled && sub->rpc->req)
		abx__http_res_on_drain(sub->rpc->req, 0, NULL, NULL);
	abx__rpc_unref(sub->rpc);
	abx__free(sub);
}

static void on_gone(abx__rpc *rpc)
{
	abx__subscriber *sub = rpc->data;
	abx__process *process = sub->process;

	forget(sub);
	abx__outputs_update(process);
}

void abx__subscriber_add(abx__process *process, abx__rpc *rpc, bool is_starter)
{
	static const Process__ProcessEvent__KeepAlive alive =
		PROCESS__PROCESS_EVENT__KEEP_ALIVE__INIT;
	static const Process__ProcessEvent alive_event = {
		.base = PROTOBUF_C_MESSAGE_INIT(&process__process_event__descriptor),
		.event_case = PROCESS__PROCESS_EVENT__EVENT_KEEPALIVE,
		.keepalive = (Process__ProcessEvent__KeepAlive *)&alive,
	};
	static const Process__StartResponse alive_msg = {
		.base = PROTOBUF_C_MESSAGE_INIT(&process__start_response__descriptor),
		.event = (Process__ProcessEvent *)&alive_event,
	};
	Process__ProcessEvent__StartEvent start =
		PROCESS__PROCESS_EVENT__START_EVENT__INIT;
	Process__ProcessEvent event = PROCESS__PROCESS_EVENT__INIT;
	Process__StartResponse msg = PROCESS__START_RESPONSE__INIT;
	abx__subscriber *sub, *other;
	unsigned count;

	DL_COUNT(process->subscribers, other, count);
	if (count >= ABX__SUBSCRIBERS_MAX) {
		abx__rpc_fail(rpc, ABX__CONNECT_RESOURCE_EXHAUSTED,
			      "%u streams follow this process already", count);
		return;
	}
	sub = abx__calloc(1, sizeof(*sub));
	if (!sub) {
		abx__rpc_fail(rpc, ABX__CONNECT_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	sub->process = process;
	sub->rpc = abx__rpc_ref(rpc);
	sub->is_starter = is_starter;
	DL_APPEND(process->subscribers, sub);
	rpc->data = sub;
	rpc->on_gone = on_gone;
	abx__rpc_set_keepalive(rpc, &alive_msg.base);
	start.pid = process->pid;
	event.event_case = PROCESS__PROCESS_EVENT__EVENT_START;
	event.start = &start;
	msg.event = &event;
	abx__rpc_send(rpc, &msg.base);
}

static void fail_subscriber(abx__subscriber *sub, enum abx__connect_code code,
			    const char *message)
{
	abx__rpc *rpc = abx__rpc_ref(sub->rpc);

	forget(sub);
	abx__rpc_fail(rpc, code, "%s", message);
	abx__rpc_unref(rpc);
}

static bool somebody_waits(const abx__process *process)
{
	const abx__subscriber *sub;

	DL_FOREACH(process->subscribers, sub)
	{
		if (!sub->is_stalled)
			return true;
	}
	return false;
}

void abx__subscribers_on_stall_timer(uv_timer_t *timer)
{
	abx__process *process = timer->data;
	uint64_t now = uv_now(timer->loop);
	abx__subscriber *sub, *next;

	DL_FOREACH_SAFE(process->subscribers, sub, next)
	{
		if (sub->is_stalled && now - sub->stalled_ms >= ABX__OUTPUT_BEHIND_MS &&
		    somebody_waits(process))
			fail_subscriber(sub, ABX__CONNECT_RESOURCE_EXHAUSTED,
					"this stream was read too slowly while others "
					"follow the process, too; connect to it again");
	}
	abx__outputs_update(process);
	if (abx__outputs_are_stalled(process))
		uv_timer_start(timer, abx__subscribers_on_stall_timer, STALL_LOOK_MS, 0);
}

void abx__subscribers_end(abx__process *process)
{
	Process__ProcessEvent__EndEvent end;
	Process__ProcessEvent event = PROCESS__PROCESS_EVENT__INIT;
	Process__StartResponse msg = PROCESS__START_RESPONSE__INIT;
	char text[ABX__PROCESS_TEXT_SIZE];

	if (process->is_overdue)
		abx__subscribers_fail_starter(process, ABX__CONNECT_DEADLINE_EXCEEDED,
					      "deadline exceeded");
	abx__process_describe_end(process->wait_status, &end, text);
	event.event_case = PROCESS__PROCESS_EVENT__EVENT_END;
	event.end = &end;
	msg.event = &event;
	while (process->subscribers) {
		abx__subscriber *sub = process->subscribers;
		abx__rpc *rpc = abx__rpc_ref(sub->rpc);

		forget(sub);
		abx__rpc_send_last(rpc, &msg.base);
		abx__rpc_unref(rpc);
	}
}

void abx__subscribers_fail_starter(abx__process *process, enum abx__connect_code code,
				   const char *message)
{
	abx__subscriber *sub, *next;

	DL_FOREACH_SAFE(process->subscribers, sub, next)
	{
		if (sub->is_starter)
			fail_subscriber(sub, code, message);
	}
	abx__outputs_update(process);
}
