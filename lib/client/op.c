/*
 * op.c - operations: start, finish, deliver, cancel.
 */
#include "client/op.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "client/client.h"

static void unref(abx_op *op)
{
	abx_client *client = op->client;

	if (--op->refs)
		return;
	if (op->free_state)
		op->free_state(op->state);
	abx__op_free_result(op->then.kind, op->result);
	abx_error_free(op->err);
	abx__free(op->what);
	abx__buf_done(&op->in);
	abx__free(op->out);
	abx__free(op);
	abx__client_unref(client);
}

static void unlink_op(abx_op *op)
{
	abx_client *client = op->client;

	if (op->prev)
		op->prev->next = op->next;
	else
		client->ops = op->next;
	if (op->next)
		op->next->prev = op->prev;
	client->op_count--;
}

static void link_op(abx_op *op)
{
	abx_client *client = op->client;

	op->next = client->ops;
	if (op->next)
		op->next->prev = op;
	client->ops = op;
	client->op_count++;
}

int abx__op_new(abx_client *client, const abx__then *then, abx_op **ret,
		abx_error **reterr, const char *what_fmt, ...)
{
	ABX_CLEANUP(abx__buf_done) abx__buf what = ABX__BUF_INIT;
	abx_op *op;
	va_list ap;
	int r;

	if (client->is_closed)
		return abx__error_set(reterr, ABX_ESTATE, "the client was freed");
	if (then->wait && client->is_busy) {
		abx__error_set(reterr, ABX_ESTATE, "a blocking call inside a callback");
		abx__error_hint(reterr, "use the _async call there");
		return ABX_ESTATE;
	}
	va_start(ap, what_fmt);
	r = abx__buf_vaddf(&what, what_fmt, ap);
	va_end(ap);
	if (r < 0)
		return abx__error_nomem(reterr);
	op = abx__calloc(1, sizeof(*op));
	if (!op)
		return abx__error_nomem(reterr);
	op->client = abx__client_ref(client);
	op->refs = 1;
	op->then = *then;
	op->what = abx__buf_take(&what);
	link_op(op);
	*ret = op;
	return ABX_OK;
}

int abx__op_abandon(abx_op *op, int r, abx_error **reterr)
{
	abx__error_prefix(reterr, "%s", op->what);
	unlink_op(op);
	unref(op);
	return r;
}

int abx__op_started(abx_op *op)
{
	if (op->then.ret_op) {
		op->refs++;
		*op->then.ret_op = op;
	}
	return ABX_OK;
}

void abx__op_finish(abx_op *op, int r, abx_error *err)
{
	abx_client *client = op->client;

	if (op->is_finished) {
		abx_error_free(err);
		return;
	}
	op->is_finished = true;
	op->r = r;
	op->err = err;
	if (r < 0)
		abx__error_prefix(&op->err, "%s", op->what);
	op->next_done = NULL;
	if (client->last_done)
		client->last_done->next_done = op;
	else
		client->first_done = op;
	client->last_done = op;
	abx__client_happened(client);
}

static void call_done(const abx_op *op, void *result)
{
	const union abx__done *fn = &op->then.fn;
	void *userdata = op->then.userdata;
	const abx_error *err = op->err;
	int r = op->r;

	switch (op->then.kind) {
	case ABX__OP_DONE:
		fn->done(userdata, r, err);
		break;
	case ABX__OP_TEXT:
		fn->text(userdata, r, result, err);
		break;
	case ABX__OP_DATA:
		fn->data(userdata, r, result, op->result_len, err);
		break;
	case ABX__OP_SANDBOX:
		fn->sandbox(userdata, r, result, err);
		break;
	case ABX__OP_SANDBOX_INFO:
		fn->sandbox_info(userdata, r, result, err);
		break;
	case ABX__OP_SANDBOX_NEXT:
		fn->next(userdata, r, result, err);
		break;
	case ABX__OP_COMMAND:
		fn->command(userdata, r, result, err);
		break;
	case ABX__OP_PROCESS:
		fn->process(userdata, r, result, err);
		break;
	case ABX__OP_PROCESS_LIST:
		fn->process_list(userdata, r, result, err);
		break;
	case ABX__OP_FILE_INFO:
		fn->file_info(userdata, r, result, err);
		break;
	case ABX__OP_FILE_LIST:
		fn->file_list(userdata, r, result, err);
		break;
	case ABX__OP_WATCH:
		fn->watch(userdata, r, result, err);
		break;
	case ABX__OP_METRICS:
		fn->metrics(userdata, r, result, err);
		break;
	case ABX__OP_LOGS:
		fn->logs(userdata, r, result, err);
		break;
	case ABX__OP_SNAPSHOT:
		fn->snapshot(userdata, r, result, err);
		break;
	case ABX__OP_SNAPSHOT_NEXT:
		fn->snapshot_next(userdata, r, result, err);
		break;
	case ABX__OP_FORKS:
		fn->forks(userdata, r, result, err);
		break;
	case ABX__OP_CODE:
		fn->code(userdata, r, result, err);
		break;
	}
}

void abx__op_free_result(enum abx__op_kind kind, void *result)
{
	switch (kind) {
	case ABX__OP_TEXT:
	case ABX__OP_DATA:
		abx_free(result);
		break;
	case ABX__OP_SANDBOX:
		abx_sandbox_free(result);
		break;
	case ABX__OP_SANDBOX_INFO:
		abx_sandbox_info_free(result);
		break;
	case ABX__OP_COMMAND:
		abx_command_result_free(result);
		break;
	case ABX__OP_PROCESS:
		abx_process_free(result);
		break;
	case ABX__OP_PROCESS_LIST:
		abx_process_list_free(result);
		break;
	case ABX__OP_FILE_INFO:
		abx_file_info_free(result);
		break;
	case ABX__OP_FILE_LIST:
		abx_file_list_free(result);
		break;
	case ABX__OP_WATCH:
		abx_watch_free(result);
		break;
	case ABX__OP_METRICS:
		abx_metrics_free(result);
		break;
	case ABX__OP_LOGS:
		abx_logs_free(result);
		break;
	case ABX__OP_SNAPSHOT:
		abx_snapshot_info_free(result);
		break;
	case ABX__OP_FORKS:
		abx_forks_free(result);
		break;
	case ABX__OP_CODE:
		abx_code_execution_free(result);
		break;
	case ABX__OP_DONE:
	case ABX__OP_SANDBOX_NEXT: /* the iterator's */
	case ABX__OP_SNAPSHOT_NEXT:
		break;
	}
}

static void deliver_one(abx_op *op)
{
	abx__wait *wait = op->then.wait;

	unlink_op(op);
	if (wait) {
		wait->is_over = true;
		wait->r = op->r;
		wait->result = abx_take(op->result);
		wait->len = op->result_len;
		wait->err = abx_take(op->err);
	} else if (op->then.fn.done) {
		call_done(op, abx_take(op->result));
	}
	if (op->then.free_userdata)
		op->then.free_userdata(op->then.userdata);
	unref(op);
}

size_t abx__op_deliver(abx_client *client)
{
	abx_op *last = client->last_done;
	size_t count = 0;
	abx_op *op;

	/* Those that finish meanwhile wait for the next round, so that a chain of them
	 * cannot hold the loop. */
	while ((op = client->first_done)) {
		client->first_done = op->next_done;
		if (!client->first_done)
			client->last_done = NULL;
		count++;
		if (op == last) {
			deliver_one(op);
			break;
		}
		deliver_one(op);
	}
	return count;
}

void abx__op_cancel_all(abx_client *client)
{
	for (abx_op *op = client->ops; op; op = op->next) {
		abx_error *err = NULL;

		if (op->is_finished)
			continue;
		abx__error_set(&err, ABX_ECANCELED, "the client was freed");
		abx__op_finish(op, ABX_ECANCELED, err);
	}
}

int abx__then_end(const abx__then *then, int r)
{
	if (r < 0 && then->free_userdata)
		then->free_userdata(then->userdata);
	return r;
}

int abx__wait_end(abx_client *client, abx__wait *wait, int r, abx_error **reterr)
{
	if (r < 0)
		return r;
	while (!wait->is_over)
		abx__client_turn(client, UV_RUN_ONCE);
	if (client->free_wanted)
		abx_client_free(client);
	if (wait->r < 0 && reterr) {
		abx_error_free(*reterr);
		*reterr = abx_take(wait->err);
	}
	abx_error_free(wait->err);
	return wait->r;
}

int abx__wait_object(abx_client *client, const abx__then *then, int r, void *ret,
		     abx_error **reterr)
{
	if (r < 0)
		return r;
	r = abx__wait_end(client, then->wait, r, reterr);
	if (r >= 0 && ret)
		memcpy(ret, &then->wait->result, sizeof(then->wait->result));
	else
		abx__op_free_result(then->kind, then->wait->result);
	return r;
}

int abx__wait_text(abx_client *client, abx__wait *wait, int r, char **ret,
		   abx_error **reterr)
{
	if (r < 0)
		return r;
	r = abx__wait_end(client, wait, r, reterr);
	if (r >= 0 && ret)
		*ret = wait->result;
	else
		abx_free(wait->result);
	return r;
}

/* ---- the public calls ---- */

void abx_op_cancel(abx_op *op)
{
	abx_error *err = NULL;

	if (!op || op->is_finished)
		return;
	if (op->on_cancel) {
		op->on_cancel(op);
	} else if (op->call) {
		abx__http_call_cancel(op->call, ABX_ECANCELED);
	} else {
		abx__error_set(&err, ABX_ECANCELED, "cancelled");
		abx__op_finish(op, ABX_ECANCELED, err);
	}
}

void abx_op_resume(abx_op *op)
{
	if (!op || op->is_finished)
		return;
	if (op->on_resume)
		op->on_resume(op);
	else if (op->call)
		abx__http_call_resume(op->call);
}

void abx_op_free(abx_op *op)
{
	if (op)
		unref(op);
}
