/* JSON: what is taken, what is refused and how it is said, printing, getters. */
#include <criterion/criterion.h>
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "io/json.h"

static int parse(const char *text, json_object **ret, abx_error **reterr)
{
	return abx__json_parse(text, strlen(text), 0, ret, reterr);
}

Test(io_json, takes_every_kind_of_value_and_prints_it_compact)
{
	static const char *const rows[][2] = {
		{ "{ \"a\" : [1, -2.5, true, false, null, \"x\"] }",
		  "{\"a\":[1,-2.5,true,false,null,\"x\"]}" },
		{ "\n12 ", "12" },
		{ "\"a/b\\u00e9\"", "\"a/b\303\251\"" },
		{ "null", "null" },
		{ "9223372036854775807", "9223372036854775807" },
		{ "[]", "[]" },
		{ "{}", "{}" },
		{ "0.1", "0.1" },
		{ "\"\\u0000\"", "\"\\u0000\"" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ABX_CLEANUP_JSON json_object *value = NULL;
		ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
		ABX_CLEANUP(abx__freep) char *text = NULL;

		cr_assert_eq(parse(rows[i][0], &value, &err), ABX_OK, "%s: %s",
			     rows[i][0], abx_error_message(err));
		text = abx__json_text(value, NULL);
		cr_assert_str_eq(text, rows[i][1]);
	}
}

Test(io_json, refuses_what_is_not_json)
{
	static const char *const rows[] = {
		"",           " ",          "{",
		"[1,]",       "{\"a\":1,}", "{'a':1}",
		"[1] x",      "tru",        "// c\n1",
		"NaN",        "[Infinity]", "-Infinity",
		"\"a\nb\"",   "\"\xff\"",   "{\"a\" 1}",
		"01",         "1.",         "\"\\x\"",
		"{\"a\":1}}", "\"unended",  "{\"k\":NaN}",
		"/* c */ 1",  "[1 2]",      "1e999",
		"nULL",       "TRUE",       "+1",
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
		json_object *value = NULL;

		cr_assert_eq(parse(rows[i], &value, &err), ABX_EINVAL, "%s was taken",
			     rows[i]);
		cr_assert_null(value);
		cr_assert_not_null(err);
	}
}

Test(io_json, refuses_bytes_behind_a_nul)
{
	json_object *value = NULL;

	cr_assert_eq(abx__json_parse("1\0 2", 4, 0, &value, NULL), ABX_EINVAL);
	cr_assert_eq(abx__json_parse("{}\0", 3, 0, &value, NULL), ABX_EINVAL);
}

Test(io_json, says_line_and_byte)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	json_object *value = NULL;

	parse("{\n\"a\": 1,\n\"b\" 2}", &value, &err);
	cr_assert(strstr(abx_error_message(err), "line 3"), "%s", abx_error_message(err));
	cr_assert(strstr(abx_error_message(err), "byte 14"), "%s",
		  abx_error_message(err));
}

Test(io_json, caps_bytes_and_depth)
{
	char deep[400];
	json_object *value = NULL;

	cr_assert_eq(abx__json_parse("[1,2,3]", 7, 6, &value, NULL), ABX_ETOOBIG);
	memset(deep, '[', sizeof(deep));
	cr_assert_eq(abx__json_parse(deep, sizeof(deep), 0, &value, NULL), ABX_ETOOBIG);
}

Test(io_json, an_object_is_demanded_where_one_is_needed)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	json_object *value = NULL;

	cr_assert_eq(abx__json_parse_object("[1]", 3, 0, &value, &err), ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err),
			 "JSON: an object is expected, not array");
	cr_assert_eq(abx__json_parse_object("null", 4, 0, &value, NULL), ABX_EINVAL);
}

Test(io_json, getters_tell_absent_from_wrong)
{
	ABX_CLEANUP_JSON json_object *obj = NULL;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	const char *s = "kept";
	int64_t n = 7;
	bool b = true;
	json_object *sub = NULL;

	cr_assert_eq(
		parse("{\"s\":\"v\",\"n\":5,\"b\":false,\"z\":null,\"nul\":\"a\\u0000b\","
		      "\"o\":{},\"a\":[]}",
		      &obj, NULL),
		ABX_OK);
	cr_assert_eq(abx__json_get_str(obj, "s", &s, NULL), 1);
	cr_assert_str_eq(s, "v");
	cr_assert_eq(abx__json_get_str(obj, "none", &s, NULL), 0);
	cr_assert_eq(abx__json_get_str(obj, "z", &s, NULL), 0);
	cr_assert_eq(abx__json_get_str(obj, "n", &s, &err), ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err), "n: string expected, not int");
	cr_assert_eq(abx__json_get_str(obj, "nul", &s, NULL), ABX_EINVAL);
	cr_assert_eq(abx__json_get_i64(obj, "n", 0, 9, &n, NULL), 1);
	cr_assert_eq(n, 5);
	cr_assert_eq(abx__json_get_i64(obj, "n", 6, 9, &n, NULL), ABX_EINVAL);
	cr_assert_eq(abx__json_get_bool(obj, "b", &b, NULL), 1);
	cr_assert_not(b);
	cr_assert_eq(abx__json_get_object(obj, "o", &sub, NULL), 1);
	cr_assert_eq(abx__json_get_array(obj, "a", &sub, NULL), 1);
	cr_assert_eq(abx__json_get_array(obj, "o", &sub, NULL), ABX_EINVAL);
}

Test(io_json, unknown_members_are_named)
{
	static const char *const known[] = { "a", "b", NULL };
	ABX_CLEANUP_JSON json_object *obj = NULL;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	parse("{\"a\":1,\"c\":2}", &obj, NULL);
	cr_assert_eq(abx__json_only(obj, known, &err), ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err), "unknown field c");
}

Test(io_json, setters_build_what_is_printed)
{
	ABX_CLEANUP_JSON json_object *obj = json_object_new_object();
	ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT;
	json_object *array = json_object_new_array();

	abx__json_push_take(array, json_object_new_int(1));
	cr_assert_eq(abx__json_set_str(obj, "s", "a\"b"), ABX_OK);
	cr_assert_eq(abx__json_set_str(obj, "z", NULL), ABX_OK);
	cr_assert_eq(abx__json_set_i64(obj, "n", INT64_MIN), ABX_OK);
	cr_assert_eq(abx__json_set_bool(obj, "b", true), ABX_OK);
	cr_assert_eq(abx__json_set_double(obj, "d", 0.1), ABX_OK);
	cr_assert_eq(abx__json_set_take(obj, "a", array), ABX_OK);
	cr_assert_eq(abx__json_print(obj, &buf), ABX_OK);
	cr_assert_str_eq(
		buf.data,
		"{\"s\":\"a\\\"b\",\"z\":null,\"n\":-9223372036854775808,\"b\":true,"
		"\"d\":0.1,\"a\":[1]}");
}
