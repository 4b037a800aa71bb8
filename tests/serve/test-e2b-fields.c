/*
 * No field of a body is accepted and ignored: every field of api/e2b.yaml, at any depth,
 * is asked of the daemon with a value of the wrong type, which only somebody who reads it
 * can refuse; and each field of a create stands in a table that says what becomes of it.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "daemon.h"
#include "io/json.h"
#include "model/gen/routes.h"

TestSuite(serve_e2b_fields, .init = daemon_begin, .fini = daemon_teardown,
	  .timeout = 120);

/* A value the field cannot take. */
static const char *wrong_value(const abx__schema_field *field)
{
	if (field->flags & ABX__FIELD_ARRAY)
		return "7";
	switch (field->type) {
	case ABX__SCHEMA_BOOL:
	case ABX__SCHEMA_INT32:
	case ABX__SCHEMA_INT64:
	case ABX__SCHEMA_NUMBER:
		return "\"x\"";
	default:
		return "7";
	}
}

/* What has to be there for the rest to be looked at. */
static const char *with_required(const char *operation)
{
	if (abx__str_starts(operation, "CreateSandbox"))
		return "\"templateID\":\"base\",";
	if (strcmp(operation, "ConnectSandbox") == 0)
		return "\"timeout\":60,";
	return "";
}

static void expect_refused(const abx__route *route, const char *path, const char *member,
			   const char *name)
{
	const char *first = with_required(route->operation_id);
	ABX_CLEANUP(abx__freep) char *body = NULL;
	answer a;

	/* The field itself may be the required one. */
	if (*first && abx__str_starts(member, "\"templateID\""))
		first = "";
	if (*first && abx__str_starts(member, "\"timeout\"") &&
	    !abx__str_starts(first, "\"templateID\""))
		first = "";
	body = abx__strf("{%s%s}", first, member);
	a = ask(route->method, path, body);
	cr_assert_eq(a.status, 400, "%s with %s: %d %s", route->operation_id, body,
		     a.status, a.text);
	cr_assert(strstr(a.text, name), "%s with %s does not name it: %s",
		  route->operation_id, body, a.text);
	answer_done(&a);
}

/* `open` and `close` hold what lies around the object of `schema`; `top` is the field of
 * the body it is in, NULL at the root. */
static void walk(const abx__route *route, const char *path, const abx__schema *schema,
		 const char *open, const char *close, const char *top)
{
	for (size_t i = 0; i < schema->count; i++) {
		const abx__schema_field *f = &schema->fields[i];
		bool array = f->flags & ABX__FIELD_ARRAY;
		ABX_CLEANUP(abx__freep)
		char *member =
			abx__strf("%s\"%s\":%s%s", open, f->name, wrong_value(f), close);
		ABX_CLEANUP(abx__freep)
		char *deeper =
			abx__strf("%s\"%s\":%s", open, f->name, array ? "[{" : "{");
		ABX_CLEANUP(abx__freep)
		char *back = abx__strf("%s%s", array ? "}]" : "}", close);

		expect_refused(route, path, member, top ? top : f->name);
		if (f->type == ABX__SCHEMA_OBJECT)
			walk(route, path, f->object, deeper, back, top ? top : f->name);
	}
}

/* NULL: one without a sandbox in it. */
static char *path_of(const abx__route *route, const char *id)
{
	static const char hole[] = "{sandboxID}";
	const char *at = strstr(route->path, hole);

	if (!at)
		return strchr(route->path, '{') ? NULL : abx__strdup(route->path);
	return abx__strf("%.*s%s%s", (int)(at - route->path), route->path, id,
			 at + sizeof(hole) - 1);
}

Test(serve_e2b_fields, every_field_is_read)
{
	size_t walked = 0;
	char id[32];

	make_env("base", 2);
	make_sandbox("base", id);
	for (size_t i = 0; i < ABX__M_E2B_ROUTE_COUNT; i++) {
		const abx__route *route = &abx__m_e2b_routes[i];
		ABX_CLEANUP(abx__freep) char *path = path_of(route, id);
		answer a;

		if (!route->request || !path)
			continue;
		a = ask(route->method, path, "{\"surprise\":1}");
		if (a.status != 501) {
			cr_assert_eq(a.status, 400, "%s: %s", route->operation_id,
				     a.text);
			cr_assert(strstr(a.text, "surprise"), "%s: %s",
				  route->operation_id, a.text);
			walk(route, path, route->request, "", "", NULL);
			walked++;
		}
		answer_done(&a);
	}
	cr_assert_geq(walked, 7);
	expect("GET", "/v2/sandboxes", NULL, 200, id);
}

/* What becomes of each field of a create: shown by GET, or refused by name, or (".")
   shown by a test of its own. */
static const struct row {
	const char *field, *value;
	int status;
	const char *text;
} rows[] = {
	{ "templateID", "\"base\"", 201, "\"templateID\":\"base\"" },
	{ "timeout", "600", 201, "." }, /* serve_e2b timeouts */
	{ "secure", "true", 201, "\"envdAccessToken\":\"" },
	{ "metadata", "{\"k\":\"v\"}", 201, "\"metadata\":{\"k\":\"v\"}" },
	{ "envVars", "{\"K\":\"v\"}", 201, "." }, /* tests/e2b, tests/live */
	{ "autoPause", "true", 201, "\"onTimeout\":\"pause\"" },
	{ "autoPauseMemory", "false", 400, "autoPauseMemory" },
	{ "autoResume", "{\"enabled\":true}", 201, "\"autoResume\":true" },
	{ "allow_internet_access", "false", 400, "allow_internet_access" },
	{ "mcp", "{\"a\":{}}", 201, "." }, /* tests/serve/test-body.c */
	{ "iam", "{\"tokens\":{\"a\":{\"audience\":\"b\",\"tokenType\":\"JWT-SVID\"}}}",
	  400, "iam.tokens is not supported" },
	{ "volumeMounts", "[{\"name\":\"v\",\"path\":\"/v\"}]", 400,
	  "volumeMounts is not supported" },
	{ "network.allowPublicTraffic", "false", 201, "\"allowPublicTraffic\":false" },
	{ "network.maskRequestHost", "\"h\"", 201, "\"maskRequestHost\":\"h\"" },
	{ "network.httpsPorts", "[8443]", 201, "\"httpsPorts\":[8443]" },
	{ "network.allowOut", "[\"1.1.1.1\"]", 400, "network.allowOut is not supported" },
	{ "network.denyOut", "[\"1.1.1.1\"]", 400, "network.denyOut is not supported" },
	{ "network.egressProxy", "{\"address\":\"a\"}", 400,
	  "network.egressProxy is not supported" },
	{ "network.rules", "{\"a.b\":[]}", 400, "network.rules is not supported" },
};

static const struct row *row_of(const char *field)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].field, field) == 0)
			return &rows[i];
	return NULL;
}

static void try_row(const struct row *row)
{
	const char *dot = strchr(row->field, '.');
	ABX_CLEANUP(abx__freep)
	char *member = dot ? abx__strf("\"%.*s\":{\"%s\":%s}", (int)(dot - row->field),
				       row->field, dot + 1, row->value)
			   : abx__strf("\"%s\":%s", row->field, row->value);
	ABX_CLEANUP(abx__freep)
	char *body = abx__strf(
		"{%s%s%s}",
		abx__str_starts(member, "\"templateID\"") ? ""
							  : "\"templateID\":\"base\",",
		abx__str_starts(member, "\"secure\"") ? "" : "\"secure\":true,", member);
	char path[96];
	answer a = ask("POST", "/sandboxes", body);

	cr_assert_eq(a.status, row->status, "%s: %s", body, a.text);
	if (a.status != 201) {
		cr_assert(strstr(a.text, row->text), "%s: %s", body, a.text);
		answer_done(&a);
		return;
	}
	snprintf(path, sizeof(path), "/sandboxes/%s", at(a.json, "sandboxID"));
	answer_done(&a);
	expect("GET", path, NULL, 200, strcmp(row->text, ".") == 0 ? NULL : row->text);
	expect("DELETE", path, NULL, 204, NULL);
}

Test(serve_e2b_fields, each_field_of_a_create_is_honoured_or_refused_by_name)
{
	const abx__schema *create = NULL;

	for (size_t i = 0; i < ABX__M_E2B_ROUTE_COUNT; i++)
		if (strcmp(abx__m_e2b_routes[i].operation_id, "CreateSandbox") == 0)
			create = abx__m_e2b_routes[i].request;
	cr_assert(create);
	for (size_t i = 0; i < create->count; i++) {
		const abx__schema_field *f = &create->fields[i];
		bool inside = strcmp(f->name, "network") == 0;

		if (!inside)
			cr_assert(row_of(f->name), "no row says what becomes of %s",
				  f->name);
		for (size_t k = 0; inside && k < f->object->count; k++) {
			ABX_CLEANUP(abx__freep)
			char *name =
				abx__strf("%s.%s", f->name, f->object->fields[k].name);

			cr_assert(row_of(name), "no row says what becomes of %s", name);
		}
	}
	make_env("base", 2);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		try_row(&rows[i]);
}
