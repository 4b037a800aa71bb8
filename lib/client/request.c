/*
 * request.c - from a path to an exchange: base address, data plane form, credentials,
 * deadlines.
 */
#include "client/request.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/id.h"
#include "base/str.h"
#include "client/answer.h"
#include "client/sandbox.h"
#include "io/json.h"

#define DEFAULT_MAX_ANSWER ((size_t)16 << 20)
#define KEEPALIVE_SECONDS 50

void abx__prepared_done(abx__prepared *prepared)
{
	for (size_t i = 0; i < prepared->header_count; i++) {
		abx__wipe(prepared->headers[i], strlen(prepared->headers[i]));
		abx__free(prepared->headers[i]);
	}
	abx__free(prepared->url);
	memset(prepared, 0, sizeof(*prepared));
}

static int add(abx__prepared *prepared, const char *name, const char *value)
{
	char *header;

	if (prepared->header_count == ABX__MAX_REQUEST_HEADERS)
		return ABX_ETOOBIG;
	header = abx__strf("%s: %s", name, value);
	if (!header)
		return ABX_ENOMEM;
	prepared->headers[prepared->header_count++] = header;
	return ABX_OK;
}

static int add_more(abx__prepared *prepared, const char *const *headers)
{
	for (size_t i = 0; headers && headers[i]; i++) {
		char *copy;

		if (prepared->header_count == ABX__MAX_REQUEST_HEADERS)
			return ABX_ETOOBIG;
		copy = abx__strdup(headers[i]);
		if (!copy)
			return ABX_ENOMEM;
		prepared->headers[prepared->header_count++] = copy;
	}
	return ABX_OK;
}

static int add_number(abx__prepared *prepared, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return add(prepared, name, text);
}

static int add_key(abx_client *client, const char *name, const char *prefix,
		   abx__prepared *prepared)
{
	char *header;

	if (!client->settings.key)
		return ABX_OK;
	header = abx__strf("%s%s", prefix, abx__secret_reveal(client->settings.key));
	if (!header)
		return ABX_ENOMEM;
	int r = add(prepared, name, header);
	abx__wipe(header, strlen(header));
	abx__free(header);
	return r;
}

static int add_basic_user(const char *user, abx__prepared *prepared)
{
	ABX_CLEANUP(abx__freep) char *pair = abx__strf("%s:", user);
	ABX_CLEANUP(abx__freep)
	char *coded = pair ? abx__base64_encode(pair, strlen(pair)) : NULL;
	ABX_CLEANUP(abx__freep) char *value = coded ? abx__strf("Basic %s", coded) : NULL;

	return value ? add(prepared, "Authorization", value) : ABX_ENOMEM;
}

static int prepare_sandbox(abx_client *client, const abx__request *req,
			   abx__prepared *prepared)
{
	abx_sandbox *sandbox = req->sandbox;
	uint16_t port = req->port ? req->port : ABX__ENVD_PORT;
	int r;

	prepared->url = abx__sandbox_base(sandbox, port, req->path);
	if (!prepared->url)
		return ABX_ENOMEM;
	if (client->settings.form == ABX__DATA_HEADERS) {
		if ((r = add(prepared, "E2b-Sandbox-Id", sandbox->id)) < 0 ||
		    (r = add_number(prepared, "E2b-Sandbox-Port", port)) < 0)
			return r;
	}
	if (port != ABX__ENVD_PORT && sandbox->traffic_token &&
	    (r = add(prepared, "E2b-Traffic-Access-Token", sandbox->traffic_token)) < 0)
		return r;
	if (sandbox->token &&
	    (r = add(prepared, "X-Access-Token", abx__secret_reveal(sandbox->token))) < 0)
		return r;
	if (req->user && (r = add_basic_user(req->user, prepared)) < 0)
		return r;
	if (req->is_rpc && (r = add(prepared, "Connect-Protocol-Version", "1")) < 0)
		return r;
	if (req->is_stream &&
	    (r = add_number(prepared, "Keepalive-Ping-Interval", KEEPALIVE_SECONDS)) < 0)
		return r;
	if (req->server_timeout_ms)
		return add_number(prepared, "Connect-Timeout-Ms", req->server_timeout_ms);
	return ABX_OK;
}

static int no_native(abx_client *client, abx_error **reterr)
{
	if (client->settings.is_bearer) {
		abx__error_set(reterr, ABX_EINVAL, "%s: no cluster is chosen",
			       client->settings.address);
		abx__error_hint(reterr, "set AGENTBOX_CLUSTER, or the cluster option");
		return ABX_EINVAL;
	}
	abx__error_set(reterr, ABX_EUNSUPPORTED,
		       "%s is an E2B API alone; it has no platform objects",
		       client->settings.address);
	abx__error_hint(reterr, "set AGENTBOX_CLUSTER_API to the platform's own API");
	return ABX_EUNSUPPORTED;
}

static int prepare_control(abx_client *client, const abx__request *req,
			   abx__prepared *prepared, abx_error **reterr)
{
	const char *base = req->where == ABX__TO_E2B ? client->settings.e2b_base
						     : client->settings.native_base;

	if (req->where == ABX__TO_CONSOLE && client->settings.console_base)
		base = client->settings.console_base;

	if (!base)
		return no_native(client, reterr);
	prepared->url = abx__strf("%s%s", base, req->path);
	if (!prepared->url)
		return ABX_ENOMEM;
	if (req->where == ABX__TO_E2B)
		return add_key(client, "X-API-Key", "", prepared);
	if (client->settings.is_bearer)
		return add_key(client, "Authorization", "Bearer ", prepared);
	return add_key(client, "AGENTBOX-API-KEY", "", prepared);
}

int abx__request_prepare(abx_client *client, const abx__request *req,
			 abx__prepared *prepared, abx_error **reterr)
{
	int r;

	if (req->where == ABX__TO_SANDBOX)
		r = prepare_sandbox(client, req, prepared);
	else
		r = prepare_control(client, req, prepared, reterr);
	if (r >= 0)
		r = add(prepared, "Accept", "*/*");
	if (r >= 0 && (req->where == ABX__TO_NATIVE || req->where == ABX__TO_CONSOLE))
		r = add(prepared, "X-AgentBox-Client-Version", ABX_VERSION_STRING);
	if (r >= 0)
		r = add(prepared, "Content-Type",
			req->content_type ? req->content_type : "application/json");
	if (r >= 0)
		r = add_more(prepared, req->headers);
	if (r == ABX_ETOOBIG)
		return abx__error_set(reterr, r, "over %d headers",
				      ABX__MAX_REQUEST_HEADERS);
	return r == ABX_ENOMEM ? abx__error_nomem(reterr) : r;
}

static uint32_t deadline(abx_client *client, const abx__request *req)
{
	if (req->timeout_ms == ABX_NO_TIMEOUT)
		return 0;
	return req->timeout_ms ? req->timeout_ms : client->settings.request_timeout_ms;
}

void abx__request_apply(abx_client *client, const abx__request *req,
			const abx__prepared *prepared, abx__http_call_options *opts)
{
	opts->method = req->method;
	opts->url = prepared->url;
	opts->unix_path = client->settings.socket_path;
	opts->peer = client->settings.address;
	opts->headers = (const char *const *)prepared->headers;
	opts->timeout_ms = deadline(client, req);
}

/* ---- an exchange that collects its answer ---- */

static int on_data(void *userdata, const char *data, size_t len)
{
	abx_op *op = userdata;

	return abx__buf_add(&op->in, data, len);
}

static void on_done(void *userdata, int r, const abx_error *http_err)
{
	abx_op *op = userdata;
	abx__http_call *call = op->call;
	abx_error *err = NULL;

	if (r < 0)
		err = abx__error_copy(http_err);
	else
		r = op->on_answer(op, abx__http_call_status(call), &err);
	if (op->call != call)
		return; /* it goes on with another request */
	op->call = NULL;
	abx__op_finish(op, r, err);
}

int abx__request_json(abx_op *op, json_object *json, abx_error **reterr)
{
	op->out = json ? abx__json_text(json, &op->out_len) : NULL;
	json_object_put(json);
	return op->out ? ABX_OK : abx__error_nomem(reterr);
}

static int send_request(abx_op *op, const abx__request *req, abx_error **reterr)
{
	ABX_CLEANUP(abx__prepared_done) abx__prepared prepared = { 0 };
	abx__http_call_options opts = {
		.body = op->out,
		.body_len = op->out_len,
		.on_data = on_data,
		.on_done = on_done,
		.userdata = op,
	};
	int r;

	r = abx__request_prepare(op->client, req, &prepared, reterr);
	if (r < 0)
		return r;
	abx__request_apply(op->client, req, &prepared, &opts);
	op->in.cap = req->max_answer ? req->max_answer : DEFAULT_MAX_ANSWER;
	return abx__http_call_start(op->client->http, &opts, &op->call, reterr);
}

int abx__request_again(abx_op *op, const abx__request *req, abx_error **reterr)
{
	abx__buf_done(&op->in);
	return send_request(op, req, reterr);
}

int abx__request_send(abx_op *op, const abx__request *req, abx_error **reterr)
{
	int r = send_request(op, req, reterr);

	return r < 0 ? abx__op_abandon(op, r, reterr) : abx__op_started(op);
}
