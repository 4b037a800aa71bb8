/* YAML to JSON: the core schema, several documents, and what is refused with its line. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "io/json.h"
#include "io/yaml.h"

Test(io_yaml, scalars_follow_the_core_schema)
{
	static const char *const rows[][2] = {
		{ "a: 1", "[{\"a\":1}]" },
		{ "a: -12", "[{\"a\":-12}]" },
		{ "a: +7", "[{\"a\":7}]" },
		{ "a: 0x1F", "[{\"a\":31}]" },
		{ "a: 0o17", "[{\"a\":15}]" },
		{ "mode: 0644", "[{\"mode\":420}]" },
		{ "a: 0", "[{\"a\":0}]" },
		{ "a: 1.5", "[{\"a\":1.5}]" },
		{ "a: .5e1", "[{\"a\":5.0}]" },
		{ "a: 1.2.3", "[{\"a\":\"1.2.3\"}]" },
		{ "a: 1e", "[{\"a\":\"1e\"}]" },
		{ "a: -", NULL },
		{ "a: true", "[{\"a\":true}]" },
		{ "a: False", "[{\"a\":false}]" },
		{ "a: yes", "[{\"a\":\"yes\"}]" },
		{ "a: on", "[{\"a\":\"on\"}]" },
		{ "a: ~", "[{\"a\":null}]" },
		{ "a:", "[{\"a\":null}]" },
		{ "a: null", "[{\"a\":null}]" },
		{ "a: 'null'", "[{\"a\":\"null\"}]" },
		{ "a: \"12\"", "[{\"a\":\"12\"}]" },
		{ "a: !!str 12", "[{\"a\":\"12\"}]" },
		{ "a: 2026-01-02", "[{\"a\":\"2026-01-02\"}]" },
		{ "a: 12:30:45", "[{\"a\":\"12:30:45\"}]" },
		{ "a: 500m", "[{\"a\":\"500m\"}]" },
		{ "a: 9223372036854775807", "[{\"a\":9223372036854775807}]" },
		{ "a: -9223372036854775808", "[{\"a\":-9223372036854775808}]" },
		{ "a: 18446744073709551615", "[{\"a\":18446744073709551615}]" },
		{ "a: |\n  one\n  two\n", "[{\"a\":\"one\\ntwo\\n\"}]" },
		{ "a: >-\n  one\n  two\n", "[{\"a\":\"one two\"}]" },
		{ "1: x\ntrue: y\n", "[{\"1\":\"x\",\"true\":\"y\"}]" },
		{ "- a\n- [b, {c: d}]\n", "[[\"a\",[\"b\",{\"c\":\"d\"}]]]" },
		{ "a: 1\n---\nb: 2\n---\n---\n# nothing\n...\n",
		  "[{\"a\":1},{\"b\":2}]" },
		{ "", "[]" },
		{ "{\"json\": [1, \"x\"]}", "[{\"json\":[1,\"x\"]}]" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ABX_CLEANUP_JSON json_object *value = NULL;
		ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
		ABX_CLEANUP(abx__freep) char *text = NULL;
		int r = abx__yaml_parse(rows[i][0], strlen(rows[i][0]), 0, &value, &err);

		if (!rows[i][1]) {
			cr_assert_eq(r, ABX_EINVAL, "%s", rows[i][0]);
			continue;
		}
		cr_assert_eq(r, ABX_OK, "%s: %s", rows[i][0], abx_error_message(err));
		text = abx__json_text(value, NULL);
		cr_assert_str_eq(text, rows[i][1]);
	}
}

Test(io_yaml, what_is_refused_names_the_line)
{
	static const struct {
		const char *text, *says;
		int code;
	} rows[] = {
		{ "a: &x 1\nb: *x\n", "line 1: anchors", ABX_EINVAL },
		{ "a: 1\nb: *x\n", "line 2", ABX_EINVAL },
		{ "a: 1\nb: 2\na: 3\n", "line 3: duplicate key: a", ABX_EINVAL },
		{ "x:\n  a: 1\n  a: 3\n", "line 3: duplicate key: a", ABX_EINVAL },
		{ "<<: {a: 1}\n", "line 1: merge keys", ABX_EINVAL },
		{ "? [a]\n: b\n", "line 1: a key must be a scalar", ABX_EINVAL },
		{ "a: !custom 1\n", "line 1: this tag is not taken: !custom",
		  ABX_EINVAL },
		{ "a: !!binary aGk=\n", "line 1: this tag", ABX_EINVAL },
		{ "a: .inf\n", "line 1: infinity", ABX_EINVAL },
		{ "a: 1e999\n", "line 1: the number is out of range", ABX_EINVAL },
		{ "a: 99999999999999999999\n", "line 1: the number is out of range",
		  ABX_EINVAL },
		{ "a: [1, 2\nb: 3\n", "line 2", ABX_EINVAL },
		{ "a: 1\n\tb: 2\n", "line 2", ABX_EINVAL },
		{ "a: \"x\\0y\"\n\"k\\0\": 1\n", "line 2: a NUL byte in a key",
		  ABX_EINVAL },
		{ "a: 'open\n", "line", ABX_EINVAL },
		{ "\xff", "UTF-8", ABX_EINVAL },
		{ "a: \x01\n", "YAML", ABX_EINVAL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
		json_object *value = NULL;

		cr_assert_eq(abx__yaml_parse(rows[i].text, strlen(rows[i].text), 0,
					     &value, &err),
			     rows[i].code, "%s", rows[i].text);
		cr_assert_null(value);
		cr_assert(strstr(abx_error_message(err), rows[i].says), "%s",
			  abx_error_message(err));
	}
}

Test(io_yaml, depth_bytes_and_documents_are_capped)
{
	char deep[500], many[6 * (ABX__YAML_MAX_DOCUMENTS + 1)];
	json_object *value = NULL;

	memset(deep, '[', sizeof(deep));
	cr_assert_eq(abx__yaml_parse(deep, sizeof(deep), 0, &value, NULL), ABX_ETOOBIG);
	cr_assert_eq(abx__yaml_parse("a: 1", 4, 3, &value, NULL), ABX_ETOOBIG);
	for (size_t n = 0; n < sizeof(many); n += 6)
		memcpy(many + n, "--- x\n", 6);
	cr_assert_eq(abx__yaml_parse(many, sizeof(many), 0, &value, NULL), ABX_ETOOBIG);
	cr_assert_eq(abx__yaml_parse(many, sizeof(many) - 6, 0, &value, NULL), ABX_OK);
	json_object_put(value);
}
