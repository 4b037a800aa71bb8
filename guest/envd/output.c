/*
 * output.c - pipes to streams. One read buffer serves every process: a piece is encoded,
 * at most once a codec, before the next is read.
 */
#include "envd/output.h"

#include <sys/ioctl.h>

#include <envd/process.pb-c.h>
#include <utlist.h>

#include "base/alloc.h"
#include "envd/envd.h"
#include "envd/process.h"

#define STALL_LOOK_MS 2000

static char piece[ABX__OUTPUT_PIECE_BYTES];

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	(void)handle;
	(void)suggested;
	*buf = uv_buf_init(piece, sizeof(piece));
}

static void fill_data(int index, const char *data, size_t len,
		      Process__ProcessEvent__DataEvent *event)
{
	ProtobufCBinaryData bytes = { .len = len, .data = (uint8_t *)(uintptr_t)data };

	process__process_event__data_event__init(event);
	if (index == 0) {
		event->output_case = PROCESS__PROCESS_EVENT__DATA_EVENT__OUTPUT_STDOUT;
		event->stdout = bytes;
	} else {
		event->output_case = PROCESS__PROCESS_EVENT__DATA_EVENT__OUTPUT_STDERR;
		event->stderr = bytes;
	}
}

/* StartResponse and ConnectResponse look alike on the wire, so one encoding serves both.
 */
static int encode_data(bool is_json, int index, const char *data, size_t len,
		       abx__buf *buf)
{
	Process__ProcessEvent__DataEvent output;
	Process__ProcessEvent event = PROCESS__PROCESS_EVENT__INIT;
	Process__StartResponse msg = PROCESS__START_RESPONSE__INIT;

	fill_data(index, data, len, &output);
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
	sub->stalled_bytes = abx__http_res_queued(rpc->req);
	sub->stalled_ms = uv_now(rpc->envd->loop);
	if (!uv_is_active((uv_handle_t *)&sub->process->stall))
		uv_timer_start(&sub->process->stall, abx__subscribers_on_stall_timer,
			       STALL_LOOK_MS, 0);
	abx__http_res_on_drain(rpc->req, ABX__OUTPUT_RESUME_BYTES, on_drain, sub);
}

static void deliver(abx__process *process, int index, const char *data, size_t len)
{
	ABX_CLEANUP_BUF abx__buf json = ABX__BUF_INIT, proto = ABX__BUF_INIT;
	abx__subscriber *sub, *next;

	DL_FOREACH_SAFE(process->subscribers, sub, next)
	{
		abx__buf *buf = sub->rpc->is_json ? &json : &proto;

		if (!buf->len &&
		    encode_data(sub->rpc->is_json, index, data, len, buf) < 0)
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

static void on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
	abx__output *out = stream->data;
	abx__process *process = out->process;

	if (nread == 0)
		return;
	if (nread < 0) {
		close_output(out);
		abx__process_check_end(process);
		return;
	}
	if (process->is_ended)
		return; /* what the background still writes is dropped */
	process->output_ms = uv_now(stream->loop);
	deliver(process, (int)(out - process->out), buf->base, (size_t)nread);
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
	abx__subscriber *sub = abx__calloc(1, sizeof(*sub));

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
	rpc->keepalive = &alive_msg.base;
	start.pid = process->pid;
	event.event_case = PROCESS__PROCESS_EVENT__EVENT_START;
	event.start = &start;
	msg.event = &event;
	abx__rpc_send(rpc, &msg.base);
}

/* Whether its connection has taken nothing for too long. */
static bool is_gone(abx__subscriber *sub, uint64_t now)
{
	size_t queued = abx__http_res_queued(sub->rpc->req);

	if (queued < sub->stalled_bytes) {
		sub->stalled_bytes = queued;
		sub->stalled_ms = now;
	}
	return now - sub->stalled_ms >= ABX__OUTPUT_GONE_MS;
}

static void cut_off(abx__subscriber *sub)
{
	abx__rpc *rpc = abx__rpc_ref(sub->rpc);

	forget(sub);
	rpc->is_done = true;
	abx__http_res_abort(rpc->req);
	abx__rpc_unref(rpc);
}

/* Alone it may take its time: nobody else waits. */
void abx__subscribers_on_stall_timer(uv_timer_t *timer)
{
	abx__process *process = timer->data;
	uint64_t now = uv_now(timer->loop);
	abx__subscriber *sub, *next;

	DL_FOREACH_SAFE(process->subscribers, sub, next)
	{
		if (sub->is_stalled && sub->rpc->req && is_gone(sub, now) &&
		    process->subscribers->next)
			cut_off(sub);
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
		abx__rpc *rpc;

		if (!sub->is_starter)
			continue;
		rpc = abx__rpc_ref(sub->rpc);
		forget(sub);
		abx__rpc_fail(rpc, code, "%s", message);
		abx__rpc_unref(rpc);
	}
	abx__outputs_update(process);
}
