/*
 * init.c - /init: everything is checked before anything is applied, so a refused call
 * changes nothing. Answers for failures are plain text, as the contract has them.
 */
#include "envd/init.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "envd/answer.h"
#include "envd/ca.h"
#include "envd/env-vars.h"
#include "envd/envd.h"
#include "io/json.h"

#define MAX_BODY_BYTES ((size_t)8 << 20)

/* A body, read. Strings are borrowed from the JSON. */
struct init {
	json_object *env_vars;
	const char *token; /* NULL or empty: none */
	const char *default_user;
	const char *default_workdir;
	const char *ca_bundle;
	int64_t timestamp_us;
	bool has_timestamp;
};

static int read_timestamp(json_object *body, struct init *init, abx_error **reterr)
{
	const char *text = NULL;
	int r = abx__json_get_str(body, "timestamp", &text, reterr);

	if (r <= 0)
		return r;
	if (abx__rfc3339_parse(text, &init->timestamp_us) < 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "timestamp: expected an RFC 3339 time");
	init->has_timestamp = true;
	return ABX_OK;
}

/* Fields of the contract this daemon cannot honour are refused by name, never skipped. */
static int refuse_unsupported(json_object *body, abx_error **reterr)
{
	static const char *const known[] = { "envVars",        "accessToken",
					     "timestamp",      "defaultUser",
					     "defaultWorkdir", "hyperloopIP",
					     "caBundle",       "volumeMounts",
					     "lifecycleID",    NULL };
	json_object *value;

	if (json_object_object_get_ex(body, "hyperloopIP", &value) && value &&
	    !(json_object_is_type(value, json_type_string) &&
	      json_object_get_string_len(value) == 0))
		return abx__error_set(reterr, ABX_EUNSUPPORTED,
				      "hyperloopIP is not supported");
	if (json_object_object_get_ex(body, "volumeMounts", &value) && value &&
	    !(json_object_is_type(value, json_type_array) &&
	      json_object_array_length(value) == 0))
		return abx__error_set(reterr, ABX_EUNSUPPORTED,
				      "volumeMounts is not supported");
	return abx__json_only(body, known, reterr);
}

static int check_env_vars(json_object *vars, abx_error **reterr)
{
	json_object_object_foreach(vars, name, value)
	{
		if (!abx__env_var_is_name(name) || !abx__json_str(value))
			return abx__error_set(
				reterr, ABX_EINVAL,
				"envVars: '%.64s' must be a name with a string", name);
	}
	return ABX_OK;
}

static int read_init(json_object *body, struct init *init, abx_error **reterr)
{
	int r = refuse_unsupported(body, reterr);

	if (r >= 0)
		r = abx__json_get_object(body, "envVars", &init->env_vars, reterr);
	if (r > 0)
		r = check_env_vars(init->env_vars, reterr);
	if (r >= 0)
		r = abx__json_get_str(body, "accessToken", &init->token, reterr);
	if (r >= 0)
		r = abx__json_get_str(body, "defaultUser", &init->default_user, reterr);
	if (r >= 0)
		r = abx__json_get_str(body, "defaultWorkdir", &init->default_workdir,
				      reterr);
	if (r >= 0)
		r = abx__json_get_str(body, "caBundle", &init->ca_bundle, reterr);
	return r < 0 ? r : read_timestamp(body, init, reterr);
}

/* Once a token is set only its owner may call again. */
static bool is_authorized(const struct abx__envd *envd, abx__http_req *req,
			  const struct init *init)
{
	if (!envd->token)
		return true;
	if (!init->token || !*init->token)
		abx__answer_text(req, 401, "access token reset not authorized");
	else if (!abx__secret_equals(envd->token, init->token, strlen(init->token)))
		abx__answer_text(req, 401, "access token validation failed");
	else
		return true;
	return false;
}

/* Only a machine of our own has a clock of our own. */
static void set_clock(const struct abx__envd *envd, int64_t wall_us)
{
	int64_t ahead_us = abx__wall_ms() * 1000 - wall_us;
	struct timespec ts = { .tv_sec = wall_us / 1000000,
			       .tv_nsec = wall_us % 1000000 * 1000 };

	if (envd->is_not_fc || (ahead_us >= -50000 && ahead_us <= 5000000))
		return;
	if (clock_settime(CLOCK_REALTIME, &ts) < 0)
		abx__log_warn(&envd->log, "clock not set", "error=\"%s\"",
			      strerror(errno));
}

static int copy_env_vars(json_object *vars, abx__map *ret)
{
	json_object_object_foreach(vars, name, value)
	{
		int r = abx__map_set(ret, name, json_object_get_string(value));

		if (r < 0)
			return r;
	}
	return ABX_OK;
}

static int replace_string(char **dst, const char *value)
{
	char *copy;

	if (!value || !*value)
		return ABX_OK;
	copy = abx__strdup(value);
	if (!copy)
		return ABX_ENOMEM;
	abx__free(*dst);
	*dst = copy;
	return ABX_OK;
}

static int apply(struct abx__envd *envd, const struct init *init, abx_error **reterr)
{
	abx__map vars = ABX__MAP_INIT;
	abx__secret *token = NULL;
	int r;

	if (init->token && *init->token && !envd->token) {
		token = abx__secret_new(init->token, strlen(init->token));
		if (!token)
			return abx__error_nomem(reterr);
	}
	r = init->env_vars ? copy_env_vars(init->env_vars, &vars) : ABX_OK;
	if (r >= 0)
		r = replace_string(&envd->default_user, init->default_user);
	if (r >= 0)
		r = replace_string(&envd->default_workdir, init->default_workdir);
	if (r < 0) {
		abx__map_done(&vars);
		abx__secret_free(token);
		return abx__error_nomem(reterr);
	}
	if (token)
		envd->token = token;
	if (init->env_vars) {
		abx__map_done(&envd->user_vars);
		envd->user_vars = vars;
	}
	return ABX_OK;
}

static void answer_ok(struct abx__envd *envd, abx__http_req *req)
{
	envd->is_initialized = true;
	abx__http_res_header(req, "Cache-Control", "no-store");
	abx__http_res_send(req, 204, NULL, NULL, 0);
}

static int handle_body(struct abx__envd *envd, abx__http_req *req, json_object *body,
		       abx_error **reterr)
{
	struct init init = { 0 };
	int r = body ? read_init(body, &init, reterr) : ABX_OK;

	if (r < 0)
		return r;
	if (!is_authorized(envd, req, &init))
		return ABX_OK;
	if (init.has_timestamp && init.timestamp_us <= envd->applied_us) {
		answer_ok(envd, req);
		return ABX_OK;
	}
	r = init.ca_bundle && *init.ca_bundle
		    ? abx__ca_install("", init.ca_bundle, reterr)
		    : ABX_OK;
	if (r >= 0)
		r = apply(envd, &init, reterr);
	if (r < 0)
		return r;
	if (init.has_timestamp) {
		envd->applied_us = init.timestamp_us;
		set_clock(envd, init.timestamp_us);
	}
	abx__log_info(&envd->log, "initialized", "env_vars=%zu", envd->user_vars.count);
	answer_ok(envd, req);
	return ABX_OK;
}

static void on_body(abx__http_req *req, int r, const char *data, size_t len,
		    void *userdata)
{
	struct abx__envd *envd = userdata;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *body = NULL;

	if (r < 0) {
		abx__answer_text(req, r == ABX_ETOOBIG ? 413 : 400,
				 "the request body is %s",
				 r == ABX_ETOOBIG ? "too big" : "broken");
		return;
	}
	if (len > 0)
		r = abx__json_parse_object(data, len, MAX_BODY_BYTES, &body, &err);
	if (r >= 0)
		r = handle_body(envd, req, body, &err);
	if (r < 0)
		abx__answer_text(req, 400, "%s", abx_error_message(err));
}

void abx__init_handle(struct abx__envd *envd, abx__http_req *req)
{
	/* On refusals too: the platform reads it off whatever it gets. */
	abx__http_res_header(req, "X-Envd-Version", ABX__ENVD_VERSION);
	abx__http_req_read_all(req, MAX_BODY_BYTES, on_body, envd);
}
