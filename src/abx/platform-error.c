/*
 * src/abx/platform-error.c - refusals of the platform: what it said, and what to do now.
 *
 * A write of an agent key that waits for a person, and one that is never allowed, are
 * told apart: the first goes through when the same command is run again, the second
 * never.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "address.h"
#include "cli.h"
#include "table.h"

static const char *text_at(json_object *o, const char *path)
{
	json_object *value = cli_json_at(o, path);

	return json_object_is_type(value, json_type_string)
		       ? json_object_get_string(value)
		       : NULL;
}

static void print_release_url(abx_client *client, json_object *body)
{
	const char *url = text_at(body, "detail.url");
	const char *id = text_at(body, "detail.approvalId");
	const char *console = client != NULL ? abx_client_console(client) : NULL;

	if (url != NULL && url[0] != '\0')
		fprintf(stderr, "a person decides at %s\n", url);
	else if (console != NULL && id != NULL && abx_client_cluster(client) != NULL)
		fprintf(stderr, "a person decides at %s/clusters/%s/approvals?id=%s\n",
			console, abx_client_cluster(client), id);
	else
		fputs("this platform publishes no console address: ask the key's owner\n",
		      stderr);
}

static int fail_held(abx_client *client, json_object *body)
{
	const char *summary = text_at(body, "detail.summary");
	const char *id = text_at(body, "detail.approvalId");
	const char *operation = text_at(body, "detail.operation");
	const char *expires = text_at(body, "detail.expiresAt");
	bool once = json_object_get_boolean(cli_json_at(body, "detail.onceOnly"));

	cli_fail(NULL, "this waits for a person's approval: %s",
		 summary != NULL ? summary : text_at(body, "error"));
	print_release_url(client, body);
	fprintf(stderr, "approval %s (%s%s)%s%s\n", id != NULL ? id : "?",
		operation != NULL ? operation : "?", once ? ", single-use" : "",
		expires != NULL ? ", expires " : "", expires != NULL ? expires : "");
	fputs("run the same command again after the decision: that is how it goes "
	      "through\n",
	      stderr);
	return 1;
}

static int fail_forbidden(json_object *body)
{
	const char *url = text_at(body, "detail.url");
	const char *error = text_at(body, "error");

	cli_fail("an agent key never may: no request was made, and there is none to wait "
		 "for",
		 "%s", error != NULL ? error : "not allowed for an agent key");
	if (url != NULL)
		fprintf(stderr, "a person does it at %s\n", url);
	return 1;
}

static const char *hint_of_denial(const char *error)
{
	static const char *const hints[][2] = {
		{ "console session", "sign in to the console and do it there" },
		{ "admin", "it is for admins: use an admin key, or the console" },
		{ "impersonat", "it is read as its owner: use that user's own key" },
		{ "api key", "credentials are never issued to an agent key" },
		{ "credential", "credentials are never issued to an agent key" },
		{ "belongs to",
		  "a pool's capacity is its owner's: create one in an env of "
		  "your own" },
	};

	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
		if (strcasestr(error, hints[i][0]) != NULL)
			return hints[i][1];
	return NULL;
}

static void hint_of_missing(const struct cli_address *a, const char *doing, char *buf,
			    size_t size)
{
	struct cli_address list = *a;
	char at[256];

	list.name = NULL;
	list.view = NULL;
	if (a->name == NULL && a->resource->parent != NULL) {
		snprintf(buf, size, "check the name: abx %s", a->resource->parent);
		return;
	}
	cli_address_text(&list, at, sizeof(at));
	if (doing != NULL && strcmp(doing, "update") == 0)
		snprintf(buf, size, "update never creates: abx create %s -f FILE", at);
	else
		snprintf(buf, size, "check the name: abx %s lists them", at);
}

static void print_detail(json_object *body)
{
	json_object *detail = cli_json_at(body, "detail");
	const char *hint = text_at(body, "detail.hint");

	if (hint != NULL)
		fprintf(stderr, "%s\n", hint);
	else if (json_object_is_type(detail, json_type_string))
		fprintf(stderr, "%s\n", json_object_get_string(detail));
	else if (json_object_is_type(detail, json_type_object))
		fprintf(stderr, "%s\n",
			json_object_to_json_string_ext(
				detail, JSON_C_TO_STRING_PRETTY |
						JSON_C_TO_STRING_SPACED |
						JSON_C_TO_STRING_NOSLASHESCAPE));
}

static int fail_refusal(const struct cli_address *a, const char *doing, int status,
			json_object *body, const char *message)
{
	char missing[320];
	const char *hint = NULL;

	if (status == 404 && a != NULL) {
		hint_of_missing(a, doing, missing, sizeof(missing));
		hint = missing;
	} else if (status == 403) {
		hint = hint_of_denial(message);
	} else if (status == 401) {
		hint = "give a key: --api-key, AGENTBOX_API_KEY or "
		       "~/.config/abx/config.json (abx context set NAME --api-key KEY)";
	}
	cli_fail(hint, "%s", message);
	if (hint == NULL)
		print_detail(body);
	return 1;
}

int cli_fail_platform(abx_client *client, const struct cli_address *address,
		      const char *doing, abx_error *err)
{
	json_object *body = err != NULL && abx_error_detail(err) != NULL
				    ? json_tokener_parse(abx_error_detail(err))
				    : NULL;
	int status = err != NULL ? abx_error_http_status(err) : 0;
	const char *code = text_at(body, "errorCode"), *error = text_at(body, "error");

	if (status == 428 || (code != NULL && strcmp(code, "APPROVAL_REQUIRED") == 0))
		fail_held(client, body);
	else if (code != NULL && strcmp(code, "FORBIDDEN_FOR_AGENT") == 0)
		fail_forbidden(body);
	else if (error != NULL)
		fail_refusal(address, doing, status, body, error);
	else if (err != NULL && status == 0 && abx_error_hint(err) == NULL &&
		 (abx_error_code(err) == ABX_EUNAVAILABLE ||
		  abx_error_code(err) == ABX_EIO))
		cli_fail("check the address: abx context list", "%s",
			 abx_error_message(err));
	else
		return cli_fail_error(NULL, err);
	json_object_put(body);
	abx_error_free(err);
	return 1;
}
