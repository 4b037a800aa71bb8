/*
 * process-rpc.c - process.Process: requests checked, processes found, answers made.
 */
#include "envd/process-rpc.h"

#include <signal.h>
#include <string.h>

#include <envd/process.pb-c.h>

#include "base/alloc.h"
#include "envd/command.h"
#include "envd/envd.h"
#include "envd/process-tree.h"
#include "envd/process.h"

#define INPUT_MAX_BYTES ((size_t)48 << 20)
/* A stream of input stops reading its request above this. */
#define STREAM_PAUSE_BYTES ((size_t)256 << 10)

static void fail_not_found(abx__rpc *rpc, const Process__ProcessSelector *selector)
{
	if (selector->selector_case == PROCESS__PROCESS_SELECTOR__SELECTOR_PID)
		abx__rpc_fail(rpc, ABX__CONNECT_NOT_FOUND,
			      "process with pid %u not found", selector->pid);
	else
		abx__rpc_fail(rpc, ABX__CONNECT_NOT_FOUND,
			      "process with tag %.256s not found", selector->tag);
}

static bool has_selector(abx__rpc *rpc, const Process__ProcessSelector *selector)
{
	if (selector &&
	    selector->selector_case != PROCESS__PROCESS_SELECTOR__SELECTOR__NOT_SET)
		return true;
	abx__rpc_fail(rpc, ABX__CONNECT_UNIMPLEMENTED, "process selector is missing");
	return false;
}

/* A process that still runs; fails the call when there is none. */
static abx__process *find_running(abx__rpc *rpc, const Process__ProcessSelector *selector)
{
	abx__process *process;

	if (!has_selector(rpc, selector))
		return NULL;
	process = abx__processes_find(&rpc->envd->processes, selector);
	if (process && !process->has_exited)
		return process;
	fail_not_found(rpc, selector);
	return NULL;
}

/* ---- Start, Connect ---- */

static void handle_start(abx__rpc *rpc)
{
	Process__StartRequest *request = (Process__StartRequest *)rpc->in;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__process *process = NULL;

	if (abx__command_start(rpc->envd, request, &rpc->user, &process, &err) < 0) {
		abx__rpc_fail_error(rpc, err);
		return;
	}
	rpc->in = NULL;
	/* The limit is the process's, also when the caller goes away. */
	if (rpc->timeout_ms)
		abx__process_set_deadline(process, rpc->timeout_ms);
	rpc->deadline_ms = 0;
	abx__subscriber_add(process, rpc, true);
	abx__outputs_update(process);
}

static void send_remembered(abx__rpc *rpc, const abx__ended *ended)
{
	Process__ProcessEvent__StartEvent start =
		PROCESS__PROCESS_EVENT__START_EVENT__INIT;
	Process__ProcessEvent__EndEvent end;
	Process__ProcessEvent event = PROCESS__PROCESS_EVENT__INIT;
	Process__ConnectResponse msg = PROCESS__CONNECT_RESPONSE__INIT;
	char text[ABX__PROCESS_TEXT_SIZE];

	abx__process_describe_end(ended->wait_status, &end, text);
	msg.event = &event;
	start.pid = ended->pid;
	event.event_case = PROCESS__PROCESS_EVENT__EVENT_START;
	event.start = &start;
	abx__rpc_send(rpc, &msg.base);
	event.event_case = PROCESS__PROCESS_EVENT__EVENT_END;
	event.end = &end;
	abx__rpc_send_last(rpc, &msg.base);
}

static void handle_connect(abx__rpc *rpc)
{
	const Process__ProcessSelector *selector =
		((Process__ConnectRequest *)rpc->in)->process;
	abx__process *process;
	const abx__ended *ended;

	if (!has_selector(rpc, selector))
		return;
	process = abx__processes_find(&rpc->envd->processes, selector);
	if (process) {
		abx__subscriber_add(process, rpc, false);
		return;
	}
	ended = abx__processes_find_ended(&rpc->envd->processes, selector);
	if (ended)
		send_remembered(rpc, ended);
	else
		fail_not_found(rpc, selector);
}

/* ---- List ---- */

static void fill_info(const abx__process *process, Process__ProcessInfo *info)
{
	process__process_info__init(info);
	info->config = process->request->process;
	info->pid = process->pid;
	if (process->tag) {
		info->has_tag_case = PROCESS__PROCESS_INFO__HAS_TAG_TAG;
		info->tag = (char *)(uintptr_t)process->tag;
	}
}

static void handle_list(abx__rpc *rpc)
{
	abx__process *process, *next;
	size_t max = HASH_COUNT(rpc->envd->processes.by_pid), n = 0;
	ABX_CLEANUP(abx__freep)
	Process__ProcessInfo *infos = abx__calloc(max, sizeof(*infos));
	ABX_CLEANUP(abx__freep)
	Process__ProcessInfo **refs = abx__calloc(max, sizeof(*refs));
	Process__ListResponse msg = PROCESS__LIST_RESPONSE__INIT;

	if (!infos || !refs) {
		abx__rpc_fail(rpc, ABX__CONNECT_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	HASH_ITER(hh, rpc->envd->processes.by_pid, process, next)
	{
		if (process->has_exited)
			continue;
		fill_info(process, &infos[n]);
		refs[n] = &infos[n];
		n++;
	}
	msg.processes = refs;
	msg.n_processes = n;
	abx__rpc_reply(rpc, &msg.base);
}

/* ---- SendSignal, Update, CloseStdin ---- */

static void on_killed(void *userdata)
{
	Process__SendSignalResponse msg = PROCESS__SEND_SIGNAL_RESPONSE__INIT;

	abx__rpc_reply(userdata, &msg.base);
	abx__rpc_unref(userdata);
}

/* Whoever kills a process expects it to be gone when the call returns. */
static void reply_when_gone(abx__rpc *rpc, abx__process *process)
{
	if (abx__process_wait_exit(process, on_killed, abx__rpc_ref(rpc)) < 0)
		on_killed(rpc);
}

static void handle_send_signal(abx__rpc *rpc)
{
	const Process__SendSignalRequest *request = (Process__SendSignalRequest *)rpc->in;
	Process__SendSignalResponse msg = PROCESS__SEND_SIGNAL_RESPONSE__INIT;
	abx__process *process = find_running(rpc, request->process);
	int r;

	if (!process)
		return;
	if (request->signal != PROCESS__SIGNAL__SIGNAL_SIGKILL &&
	    request->signal != PROCESS__SIGNAL__SIGNAL_SIGTERM)
		abx__rpc_fail(rpc, ABX__CONNECT_UNIMPLEMENTED,
			      "signal %d is not supported", (int)request->signal);
	else if ((r = abx__process_tree_signal((pid_t)process->pid,
					       (int)request->signal)) < 0)
		abx__rpc_fail(rpc, ABX__CONNECT_INTERNAL, "error sending signal: %s",
			      strerror(-r));
	else if (request->signal == PROCESS__SIGNAL__SIGNAL_SIGKILL)
		reply_when_gone(rpc, process);
	else
		abx__rpc_reply(rpc, &msg.base);
}

static void handle_update(abx__rpc *rpc)
{
	const Process__UpdateRequest *request = (Process__UpdateRequest *)rpc->in;
	Process__UpdateResponse msg = PROCESS__UPDATE_RESPONSE__INIT;

	abx__process *process = find_running(rpc, request->process);
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	const Process__PTY__Size *size = request->pty ? request->pty->size : NULL;

	if (!process)
		return;
	if (request->pty && !process->has_tty)
		abx__rpc_fail(rpc, ABX__CONNECT_INTERNAL,
			      "error resizing tty: the process has no tty");
	else if (size && abx__output_resize_tty(&process->out[0], size->cols, size->rows,
						&err) < 0)
		abx__rpc_fail_error(rpc, err);
	else
		abx__rpc_reply(rpc, &msg.base);
}

static void handle_close_stdin(abx__rpc *rpc)
{
	const Process__CloseStdinRequest *request = (Process__CloseStdinRequest *)rpc->in;
	Process__CloseStdinResponse msg = PROCESS__CLOSE_STDIN_RESPONSE__INIT;
	abx__process *process = find_running(rpc, request->process);

	if (!process)
		return;
	if (process->has_tty) {
		abx__rpc_fail(rpc, ABX__CONNECT_UNKNOWN,
			      "error closing stdin: cannot close stdin for PTY process "
			      "— send Ctrl+D (0x04) instead");
		return;
	}
	abx__input_close(&process->in);
	abx__rpc_reply(rpc, &msg.base);
}

/* ---- SendInput ---- */

static void fail_input(abx__rpc *rpc, int r)
{
	if (r == ABX_EEXHAUSTED)
		abx__rpc_fail(rpc, ABX__CONNECT_RESOURCE_EXHAUSTED,
			      "error writing to stdin: %zu bytes wait already",
			      ABX__INPUT_MAX_PENDING);
	else if (r == ABX_ENOMEM)
		abx__rpc_fail(rpc, ABX__CONNECT_RESOURCE_EXHAUSTED, "out of memory");
	else
		abx__rpc_fail(rpc, ABX__CONNECT_INTERNAL,
			      "error writing to stdin: stdin not enabled or closed");
}

/* The bytes of an input, taken out of the message; false when the call was failed. */
static bool take_input(abx__rpc *rpc, const abx__process *process,
		       Process__ProcessInput *input, ProtobufCBinaryData *ret)
{
	ProtobufCBinaryData *bytes = NULL;

	if (!input || input->input_case == PROCESS__PROCESS_INPUT__INPUT__NOT_SET)
		abx__rpc_fail(rpc, ABX__CONNECT_UNIMPLEMENTED, "input is missing");
	else if (input->input_case == PROCESS__PROCESS_INPUT__INPUT_PTY &&
		 !process->has_tty)
		abx__rpc_fail(rpc, ABX__CONNECT_INTERNAL,
			      "error writing to tty: the process has no tty");
	else if (input->input_case == PROCESS__PROCESS_INPUT__INPUT_STDIN &&
		 process->has_tty)
		abx__rpc_fail(rpc, ABX__CONNECT_INTERNAL,
			      "error writing to stdin: the process has a tty; its input "
			      "goes in the field pty");
	else
		bytes = process->has_tty ? &input->pty : &input->stdin;
	if (!bytes)
		return false;
	*ret = *bytes;
	*bytes = (ProtobufCBinaryData){ 0 };
	return true;
}

static void on_sent(int status, void *userdata)
{
	abx__rpc *rpc = userdata;
	Process__SendInputResponse msg = PROCESS__SEND_INPUT_RESPONSE__INIT;

	if (status == 0)
		abx__rpc_reply(rpc, &msg.base);
	else
		abx__rpc_fail(rpc, ABX__CONNECT_INTERNAL, "error writing to stdin: %s",
			      status == UV_ECANCELED ? "stdin not enabled or closed"
						     : uv_strerror(status));
	abx__rpc_unref(rpc);
}

static void handle_send_input(abx__rpc *rpc)
{
	Process__SendInputRequest *request = (Process__SendInputRequest *)rpc->in;
	abx__process *process = find_running(rpc, request->process);
	ProtobufCBinaryData bytes;
	int r;

	if (!process || !take_input(rpc, process, request->input, &bytes))
		return;
	r = abx__input_write_take(&process->in, bytes.data, bytes.len, on_sent,
				  abx__rpc_ref(rpc));
	if (r == ABX_OK)
		return;
	fail_input(rpc, r);
	abx__rpc_unref(rpc);
}

/* ---- StreamInput ---- */

/* rpc->data of a stream of input. */
struct stream_input {
	uint32_t pid;   /* 0: no start yet */
	size_t pending; /* writes under way */
	bool is_over;   /* the request ended */
	bool is_paused;
};

static void free_stream(abx__rpc *rpc)
{
	abx__free(rpc->data);
	rpc->data = NULL;
}

static abx__process *stream_process(abx__rpc *rpc, const struct stream_input *stream)
{
	Process__ProcessSelector selector = PROCESS__PROCESS_SELECTOR__INIT;

	selector.selector_case = PROCESS__PROCESS_SELECTOR__SELECTOR_PID;
	selector.pid = stream->pid;
	return find_running(rpc, &selector);
}

static void reply_stream(abx__rpc *rpc)
{
	Process__StreamInputResponse msg = PROCESS__STREAM_INPUT_RESPONSE__INIT;

	abx__rpc_reply(rpc, &msg.base);
}

static void on_streamed(int status, void *userdata)
{
	abx__rpc *rpc = userdata;
	struct stream_input *stream = rpc->data;

	if (status != 0)
		abx__rpc_fail(rpc, ABX__CONNECT_INTERNAL, "error writing to stdin: %s",
			      status == UV_ECANCELED ? "stdin not enabled or closed"
						     : uv_strerror(status));
	if (stream) {
		stream->pending--;
		if (stream->pending == 0 && stream->is_paused && rpc->req) {
			stream->is_paused = false;
			abx__http_req_resume(rpc->req);
		}
		if (stream->pending == 0 && stream->is_over)
			reply_stream(rpc);
	}
	abx__rpc_unref(rpc);
}

static void start_stream(abx__rpc *rpc,
			 const Process__StreamInputRequest__StartEvent *start)
{
	abx__process *process = find_running(rpc, start->process);
	struct stream_input *stream = rpc->data;

	if (!process)
		return;
	if (!stream)
		stream = abx__calloc(1, sizeof(*stream));
	if (!stream) {
		abx__rpc_fail(rpc, ABX__CONNECT_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	stream->pid = process->pid;
	rpc->data = stream;
	rpc->on_gone = free_stream;
}

static void write_stream(abx__rpc *rpc, Process__StreamInputRequest__DataEvent *data)
{
	struct stream_input *stream = rpc->data;
	ProtobufCBinaryData bytes;
	abx__process *process;
	int r;

	if (!stream) {
		abx__rpc_fail(rpc, ABX__CONNECT_INVALID_ARGUMENT,
			      "the first message must be start");
		return;
	}
	process = stream_process(rpc, stream);
	if (!process || !take_input(rpc, process, data->input, &bytes))
		return;
	r = abx__input_write_take(&process->in, bytes.data, bytes.len, on_streamed,
				  abx__rpc_ref(rpc));
	if (r < 0) {
		fail_input(rpc, r);
		abx__rpc_unref(rpc);
		return;
	}
	stream->pending++;
	if (!stream->is_paused &&
	    uv_stream_get_write_queue_size((uv_stream_t *)&process->in.pipe) >
		    STREAM_PAUSE_BYTES) {
		stream->is_paused = true;
		abx__http_req_pause(rpc->req);
	}
}

static void on_stream_message(abx__rpc *rpc, ProtobufCMessage *msg)
{
	Process__StreamInputRequest *request = (Process__StreamInputRequest *)msg;

	switch (request->event_case) {
	case PROCESS__STREAM_INPUT_REQUEST__EVENT_START:
		start_stream(rpc, request->start);
		break;
	case PROCESS__STREAM_INPUT_REQUEST__EVENT_DATA:
		write_stream(rpc, request->data);
		break;
	case PROCESS__STREAM_INPUT_REQUEST__EVENT_KEEPALIVE:
		break;
	default:
		abx__rpc_fail(rpc, ABX__CONNECT_UNIMPLEMENTED, "event is missing");
	}
}

static void on_stream_end(abx__rpc *rpc)
{
	struct stream_input *stream = rpc->data;

	if (stream && stream->pending > 0)
		stream->is_over = true;
	else
		reply_stream(rpc);
}

#define UNARY(name, type, fn)                                             \
	{                                                                 \
		.path = "/process.Process/" name, .kind = ABX__RPC_UNARY, \
		.input = &process__##type##__descriptor, .handle = fn     \
	}

const abx__rpc_method abx__process_methods[] = {
	UNARY("List", list_request, handle_list),
	UNARY("Update", update_request, handle_update),
	UNARY("SendSignal", send_signal_request, handle_send_signal),
	UNARY("CloseStdin", close_stdin_request, handle_close_stdin),
	{ .path = "/process.Process/SendInput",
	  .kind = ABX__RPC_UNARY,
	  .input = &process__send_input_request__descriptor,
	  .max_bytes = INPUT_MAX_BYTES,
	  .handle = handle_send_input },
	{ .path = "/process.Process/Start",
	  .kind = ABX__RPC_SERVER_STREAM,
	  .input = &process__start_request__descriptor,
	  .handle = handle_start },
	{ .path = "/process.Process/Connect",
	  .kind = ABX__RPC_SERVER_STREAM,
	  .input = &process__connect_request__descriptor,
	  .handle = handle_connect },
	{ .path = "/process.Process/StreamInput",
	  .kind = ABX__RPC_CLIENT_STREAM,
	  .input = &process__stream_input_request__descriptor,
	  .max_bytes = INPUT_MAX_BYTES,
	  .on_message = on_stream_message,
	  .on_end = on_stream_end },
	{ 0 },
};
