/* A sandbox's log: what lines say, and which of them a query gets. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "io/json.h"
#include "serve/logs.h"

#define START INT64_C(1700000000000)

static const char text[] =
	"first light\n"
	"{\"time\":\"2026-01-02T03:04:05.678Z\",\"level\":\"warn\",\"msg\":\"low\","
	"\"fields\":\"a=1\"}\n"
	"\n"
	"ERROR: it broke\r\n"
	"{\"time\":\"2020-01-02T03:04:05Z\",\"message\":\"late\"}\n"
	"[debug] {not json\n"
	"no end";

static json_object *entries(const char *query, bool v2)
{
	abx__logs logs = { 0 };
	abx__logs_query q;
	json_object *o;

	cr_assert_eq((v2 ? abx__logs_query_v2 : abx__logs_query_v1)(query, &q, NULL),
		     ABX_OK, "%s", query);
	cr_assert_eq(abx__logs_add_event(&logs, START + 1, "sandbox started", NULL),
		     ABX_OK);
	cr_assert_eq(abx__logs_add_text(&logs, text, sizeof(text) - 1, START), ABX_OK);
	abx__logs_select(&logs, &q);
	o = v2 ? abx__logs_entries(&logs) : abx__logs_plain(&logs);
	cr_assert(o);
	abx__logs_done(&logs);
	abx__logs_query_done(&q);
	return o;
}

static const char *field(json_object *array, size_t i, const char *key)
{
	json_object *v = NULL;

	json_object_object_get_ex(json_object_array_get_idx(array, i), key, &v);
	return v ? json_object_get_string(v) : NULL;
}

/* The messages of the query's answer, with a blank between them. */
static void expect(const char *query, const char *messages)
{
	json_object *o = entries(query, true);
	ABX_CLEANUP_BUF abx__buf all = ABX__BUF_INIT;

	for (size_t i = 0; i < json_object_array_length(o); i++)
		cr_assert_eq(
			abx__buf_addf(&all, "%s%s", i ? "|" : "", field(o, i, "message")),
			ABX_OK);
	cr_assert_str_eq(abx__buf_str(&all), messages, "%s", query);
	json_object_put(o);
}

Test(serve_logs, queries)
{
	static const char newest_first[] = "no end|[debug] {not json|late|ERROR: it "
					   "broke|low|sandbox started|first light";

	expect(NULL, newest_first);
	expect("direction=backward", newest_first);
	expect("direction=forward", "first light|sandbox started|low|ERROR: it "
				    "broke|late|[debug] {not json|no end");
	expect("limit=2", "no end|[debug] {not json");
	expect("limit=2&direction=forward", "first light|sandbox started");
	expect("limit=0", "");
	expect("level=warn", "ERROR: it broke|low");
	expect("level=ERROR", "ERROR: it broke");
	expect("search=light", "first light");
	expect("search=%22level%22", "");
	expect("cursor=1700000000001&direction=backward", "sandbox started|first light");
	expect("cursor=1700000000002&direction=forward",
	       "low|ERROR: it broke|late|[debug] {not json|no end");
}

Test(serve_logs, a_line_says_its_time_and_level_or_takes_what_is_known)
{
	json_object *o = entries("direction=forward", true);

	cr_assert_str_eq(field(o, 0, "timestamp"), "2023-11-14T22:13:20Z");
	cr_assert_str_eq(field(o, 0, "level"), "info");
	cr_assert_str_eq(field(o, 0, "fields"),
			 "{ \"container\": \"main\", \"source\": \"stdout\" }");
	cr_assert_str_eq(field(o, 2, "timestamp"), "2026-01-02T03:04:05.678Z");
	cr_assert_str_eq(field(o, 2, "level"), "warn");
	cr_assert_str_eq(field(o, 2, "fields"), "{ \"container\": \"main\", \"source\": "
						"\"stdout\", \"fields\": \"a=1\" }");
	cr_assert_str_eq(field(o, 3, "level"), "error");
	cr_assert_str_eq(field(o, 3, "timestamp"), "2026-01-02T03:04:05.678Z");
	cr_assert_str_eq(field(o, 4, "timestamp"), "2026-01-02T03:04:05.678Z",
			 "time does not go back");
	cr_assert_str_eq(field(o, 5, "level"), "debug");
	json_object_put(o);
}

Test(serve_logs, lines_of_v1_are_json_with_level_and_logger)
{
	json_object *o = entries("start=1700000000001&limit=2", false), *line;

	cr_assert_eq(json_object_array_length(o), 2);
	cr_assert_str_eq(field(o, 0, "timestamp"), "2023-11-14T22:13:20.001Z");
	line = json_tokener_parse(field(o, 0, "line"));
	cr_assert_str_eq(json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN),
			 "{\"level\":\"info\",\"logger\":\"sandbox\",\"message\":"
			 "\"sandbox started\",\"container\":\"main\",\"source\":"
			 "\"stdout\"}");
	json_object_put(line);
	line = json_tokener_parse(field(o, 1, "line"));
	cr_assert_str_eq(json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN),
			 "{\"level\":\"warn\",\"logger\":\"main\",\"message\":\"low\","
			 "\"container\":\"main\",\"source\":\"stdout\",\"fields\":"
			 "\"a=1\"}");
	json_object_put(line);
	json_object_put(o);
}

Test(serve_logs, refused_queries)
{
	static const struct {
		const char *query;
		bool v2;
		const char *message;
	} rows[] = {
		{ "limit=1001", true, "limit is 0 to 1000, not \"1001\"" },
		{ "limit=-1", false, "limit is 0 to 1000, not \"-1\"" },
		{ "cursor=x", true, "cursor is a time in Unix milliseconds, not \"x\"" },
		{ "start=-5", false, "start is a time in Unix milliseconds, not \"-5\"" },
		{ "direction=up", true, "direction is forward or backward, not \"up\"" },
		{ "level=loud", true,
		  "level is debug, info, warn or error, not \"loud\"" },
		{ "search=%zz", true, "search is not well encoded" },
	};
	char longest[ABX__LOGS_SEARCH_MAX + 16] = "search=";
	abx__logs_query q;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		abx_error *err = NULL;

		cr_assert_eq((rows[i].v2 ? abx__logs_query_v2
					 : abx__logs_query_v1)(rows[i].query, &q, &err),
			     ABX_EINVAL, "%s", rows[i].query);
		cr_assert_str_eq(abx_error_message(err), rows[i].message);
		abx_error_free(err);
	}
	memset(longest + 7, 'a', ABX__LOGS_SEARCH_MAX + 1);
	cr_assert_eq(abx__logs_query_v2(longest, &q, NULL), ABX_EINVAL);
	cr_assert_eq(abx__logs_query_v2(longest + 1, &q, NULL), ABX_OK);
	abx__logs_query_done(&q);
}

Test(serve_logs, foreign_bytes_become_text_and_lines_have_an_end)
{
	static char huge[ABX__LOGS_LINE_MAX + 100];
	abx__logs logs = { 0 };
	json_object *o;

	cr_assert_eq(abx__logs_add_text(&logs, "a\xff\xc3\xa9\x80z\0q\n", 9, START),
		     ABX_OK);
	memset(huge, 'x', sizeof(huge));
	cr_assert_eq(abx__logs_add_text(&logs, huge, sizeof(huge), START), ABX_OK);
	o = abx__logs_entries(&logs);
	cr_assert_str_eq(field(o, 0, "message"), "a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbdz");
	cr_assert_eq(strlen(field(o, 1, "message")), ABX__LOGS_LINE_MAX);
	json_object_put(o);
	abx__logs_done(&logs);
}

Test(serve_logs, of_many_lines_the_last_are_looked_at)
{
	ABX_CLEANUP_BUF abx__buf many = ABX__BUF_INIT;
	abx__logs logs = { 0 };

	for (int i = 0; i < ABX__LOGS_LINES_MAX + 10; i++)
		cr_assert_eq(abx__buf_addf(&many, "%d\n", i), ABX_OK);
	cr_assert_eq(abx__logs_add_text(&logs, many.data, many.len, START), ABX_OK);
	cr_assert_eq(logs.count, ABX__LOGS_LINES_MAX);
	cr_assert_eq(strncmp(logs.lines[0].text, "10\n", 3), 0);
	abx__logs_done(&logs);
}

Test(serve_logs, reports_out_of_memory)
{
	bool done = false;

	for (unsigned n = 0; !done; n++) {
		abx__logs logs = { 0 };
		json_object *o = NULL;

		abx__test_fail_alloc_after(n);
		if (abx__logs_add_text(&logs, text, sizeof(text) - 1, START) == ABX_OK)
			o = abx__logs_entries(&logs);
		abx__test_alloc_reset();
		done = o != NULL;
		json_object_put(o);
		abx__logs_done(&logs);
		cr_assert_lt(n, 200);
	}
}
