/*
 * answer.h - what an answer that is no success says, as an error: the one place that
 * reads error bodies.
 */
#ifndef ABX_CLIENT_ANSWER_H
#define ABX_CLIENT_ANSWER_H

#include <agentbox/error.h>
#include <json-c/json.h>

#include "client/op.h"

/* Any surface's error body: E2B and envd {code, message}, Connect {code: "text",
   message}, native {error, errorCode, detail}, gateway {sandboxId, message, code}. Never
   returns ABX_OK. */
int abx__answer_error(int status, const char *body, size_t len, abx_error **reterr);
/* The same for a call's answer, with the Retry-After it may carry. */
int abx__answer_failed(abx_op *op, int status, abx_error **reterr);
/* A Connect error object, as in an end-of-stream message. */
int abx__answer_connect_error(json_object *error, int status, abx_error **reterr);
/* Whether op->in is a Connect error of that code name, such as "not_found". */
bool abx__answer_is_connect(abx_op *op, const char *code);
/* op->in as a JSON object; ABX_EPROTO when it is none. */
int abx__answer_object(abx_op *op, json_object **ret, abx_error **reterr);

/* An on_answer for operations whose success is any 2xx and no result. */
int abx__answer_none(abx_op *op, int status, abx_error **reterr);

#endif
