/*
 * test-doc.c - values of a document by their path, and what is no path.
 */
#include <criterion/criterion.h>
#include <string.h>

#include <agentbox/agentbox.h>

TestSuite(client_doc, .timeout = 30);

static const char text[] =
	"{\"status\":{\"phase\":\"Ready\",\"n\":7,\"big\":9223372036854775807,\"on\":"
	"true,"
	"\"none\":null},\"items\":[{\"name\":\"a\"},{\"name\":\"b\",\"l\":[[1],[2,3]]}],"
	"\"labels\":{\"a.b/c\":\"d\"},\"\":\"empty\"}";

Test(client_doc, values_are_found_by_path)
{
	static const struct {
		const char *path, *value; /* NULL: the fallback */
	} rows[] = {
		{ "status.phase", "Ready" },
		{ "items[1].name", "b" },
		{ "labels[\"a.b/c\"]", "d" },
		{ "items[0][\"name\"]", "a" },
		{ "status.n", NULL },
		{ "status.none", NULL },
		{ "status.phase.x", NULL },
		{ "items[2].name", NULL },
		{ "items[-1].name", NULL },
		{ "items[ 0].name", NULL },
		{ "items[0", NULL },
		{ "items[0]name", NULL },
		{ "items[99999999999999999999].name", NULL },
		{ "status.", NULL },
		{ ".status", NULL },
		{ "status..phase", NULL },
		{ "labels[\"a.b/c\"", NULL },
		{ "labels[\"a.b/c", NULL },
		{ "[", NULL },
		{ "", NULL },
		{ NULL, NULL },
	};
	abx_error *err = NULL;
	abx_doc *doc = NULL;

	cr_assert(abx_doc_new(text, &doc, &err) == ABX_OK);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_str_eq(abx_doc_string(doc, rows[i].path, "-"),
				 rows[i].value ? rows[i].value : "-", "%s",
				 rows[i].path ? rows[i].path : "NULL");
	cr_expect(abx_doc_int(doc, "status.n", -1) == 7);
	cr_expect(abx_doc_int(doc, "status.big", -1) == INT64_MAX);
	cr_expect(abx_doc_int(doc, "items[1].l[1][0]", -1) == 2);
	cr_expect(abx_doc_int(doc, "status.phase", -1) == -1);
	cr_expect(abx_doc_bool(doc, "status.on", 0) == 1);
	cr_expect(abx_doc_bool(doc, "status.n", 5) == 5);
	cr_expect(abx_doc_count(doc, "items") == 2 && abx_doc_count(doc, "status") == 5);
	cr_expect(abx_doc_count(doc, "status.n") == 0 && abx_doc_count(doc, "") == 4);
	char *json = abx_doc_json(doc, "items[1].l");
	cr_expect_str_eq(json, "[[1],[2,3]]");
	abx_free(json);
	cr_expect_null(abx_doc_json(doc, "nothing"));
	abx_doc_free(doc);
	abx_doc_free(NULL);
	cr_expect_str_eq(abx_doc_string(NULL, "a", "-"), "-");
}

Test(client_doc, what_is_no_json_is_refused)
{
	abx_error *err = NULL;
	abx_doc *doc = NULL;

	cr_expect(abx_doc_new("{", &doc, &err) == ABX_EINVAL);
	abx_error_free(err);
	err = NULL;
	cr_expect(abx_doc_new(NULL, &doc, &err) == ABX_EINVAL);
	abx_error_free(err);
	cr_expect_null(doc);
}
