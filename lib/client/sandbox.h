/*
 * sandbox.h - a sandbox's handle, and reading what the platform says of one.
 */
#ifndef ABX_CLIENT_SANDBOX_H
#define ABX_CLIENT_SANDBOX_H

#include <agentbox/agentbox.h>
#include <json-c/json.h>

#include "base/secret.h"
#include "client/op.h"

struct abx_sandbox {
	abx_client *client;
	unsigned refs; /* the owner's, and one per process handle */
	char *id;
	char *template_id;
	char *domain;        /* the answer's, or NULL */
	abx__secret *token;  /* envd's, or NULL */
	char *traffic_token; /* of its ports, or NULL */
};

abx_sandbox *abx__sandbox_new(abx_client *client, const char *id);
abx_sandbox *abx__sandbox_ref(abx_sandbox *sandbox);
/* A handle from a `Sandbox` of the control API. */
int abx__sandbox_parse(abx_client *client, json_object *obj, abx_sandbox **ret,
		       abx_error **reterr);
/* An operation on /sandboxes/ID + `tail`, "WHAT ID" in messages; takes `body` (or NULL).
   Ends a start function. */
int abx__sandbox_control(abx_sandbox *sandbox, const abx__then *then, const char *what,
			 const char *method, const char *tail, json_object *body,
			 int (*on_answer)(abx_op *, int, abx_error **),
			 abx_error **reterr);
/* An id of either kind the contract knows: [a-z0-9.-], 1 to 128 characters. */
int abx__sandbox_check_id(const char *id, abx_error **reterr);
/* The URL of `path` at a port, by the client's form of data plane; NULL when out of
 * memory. */
char *abx__sandbox_base(const abx_sandbox *sandbox, unsigned port, const char *path);
/* Fills an info (abx_sandbox_info_free()) from a SandboxDetail or ListedSandbox. */
int abx__sandbox_info_parse(json_object *obj, abx_sandbox_info **ret, abx_error **reterr);
/* Sends a kill nobody waits for. */
void abx__sandbox_kill_quietly(abx_sandbox *sandbox);

/* "KEY=VALUE" lists (NULL: empty) as a JSON object; `what` names the list in messages. */
int abx__pairs_json(const char *what, const char *const *pairs, json_object **ret,
		    abx_error **reterr);
/* The body of a connect; NULL when out of memory. `opts` is complete. */
json_object *abx__sandbox_connect_body(const abx_sandbox_connect_options *opts);
/* Milliseconds as whole seconds, rounded up. */
uint32_t abx__seconds_up(uint32_t ms);

#endif
