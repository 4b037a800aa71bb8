/* Env addresses and sandbox id spellings. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "model/address.h"

#define ID "abcdefghij0123456789"

static void expect_part(const char *got, const char *want, const char *text)
{
	if (want)
		cr_expect(got && strcmp(got, want) == 0, "%s gave %s", text,
			  got ? got : "nothing");
	else
		cr_expect_null(got, "%s gave %s", text, got);
}

Test(model_address, the_four_spellings_parse)
{
	static const struct {
		const char *text, *cluster, *name, *image;
	} cases[] = {
		{ "base", NULL, "base", NULL },
		{ " base ", NULL, "base", NULL },
		{ "c1::base", "c1", "base", NULL },
		{ "base//python:3.12", NULL, "base", "python:3.12" },
		{ " c1 :: base-2c8gi // ghcr.io/a/b:1 ", "c1", "base-2c8gi",
		  "ghcr.io/a/b:1" },
		{ "base//host:", NULL, "base", "host:" },
		{ "base//oci:/srv/images/py:v1", NULL, "base", "oci:/srv/images/py:v1" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ABX__CLEANUP_ADDRESS abx__address address = { 0 };

		cr_assert_eq(abx__address_parse(cases[i].text, &address, NULL), ABX_OK,
			     "%s", cases[i].text);
		expect_part(address.cluster, cases[i].cluster, cases[i].text);
		expect_part(address.name, cases[i].name, cases[i].text);
		expect_part(address.image, cases[i].image, cases[i].text);
	}
}

Test(model_address, errors_name_the_part)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "", "address \"\": the name is empty" },
		{ "  ", "address \"  \": the name is empty" },
		{ "c1::", "address \"c1::\": the name is empty" },
		{ "::base", "address \"::base\": the cluster before \"::\" is empty" },
		{ "C1::base", "address \"C1::base\": cluster \"C1\" is not valid" },
		{ "Base", "address \"Base\": name \"Base\" is not valid" },
		{ "a::b::c", "address \"a::b::c\": name \"b::c\" is not valid" },
		{ "base:py", "address \"base:py\": name \"base:py\" is not valid" },
		{ "base//", "address \"base//\": the image behind \"//\" is empty" },
		{ "//python", "address \"//python\": the name is empty" },
		{ "base//Py", "address \"base//Py\": image \"Py\": the name is not valid "
			      "(lower-case letters, digits and single separators)" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		abx__address address = { 0 };
		abx_error *err = NULL;

		cr_assert_eq(abx__address_parse(cases[i].text, &address, &err),
			     ABX_EINVAL, "%s", cases[i].text);
		cr_expect_str_eq(abx_error_message(err), cases[i].message);
		cr_expect_null(address.name);
		abx_error_free(err);
	}
}

Test(model_address, printing_drops_the_blanks)
{
	ABX__CLEANUP_ADDRESS abx__address address = { 0 };
	ABX_CLEANUP(abx__freep) char *text = NULL;

	cr_assert_eq(abx__address_parse(" c1 :: base // python ", &address, NULL),
		     ABX_OK);
	text = abx__address_print(&address);
	cr_assert_str_eq(text, "c1::base//python");
}

Test(model_address, every_failed_allocation_is_reported)
{
	int r = ABX_ENOMEM;

	for (unsigned n = 0; r != ABX_OK; n++) {
		ABX__CLEANUP_ADDRESS abx__address address = { 0 };
		abx_error *err = NULL;

		abx__test_fail_alloc_after(n);
		r = abx__address_parse("c1::base//ghcr.io/a/b@sha256:"
				       "0123456789abcdef0123456789abcdef",
				       &address, &err);
		abx__test_alloc_reset();
		cr_assert(r == ABX_OK || r == ABX_ENOMEM, "allocation %u gave %d", n, r);
		abx_error_free(err);
	}
}

Test(model_sandbox_name, three_spellings_are_one_sandbox)
{
	static const struct {
		const char *text, *cluster, *printed;
	} cases[] = {
		{ ID, "", ID },
		{ ID "-c1", "c1", ID "-c1" },
		{ ID "-eu-west-1", "eu-west-1", ID "-eu-west-1" },
		{ "c1." ID, "c1", ID "-c1" },
		{ "abcdefghij0123456789-x." ID, "abcdefghij0123456789-x",
		  ID "-abcdefghij0123456789-x" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[ABX__SANDBOX_ID_LEN + 1 + ABX__CLUSTER_ID_SIZE];
		abx__sandbox_name name;

		cr_assert_eq(abx__sandbox_name_parse(cases[i].text, &name, NULL), ABX_OK,
			     "%s", cases[i].text);
		cr_expect_str_eq(name.id, ID);
		cr_expect_str_eq(name.cluster, cases[i].cluster);
		abx__sandbox_name_print(&name, text);
		cr_expect_str_eq(text, cases[i].printed);
	}
}

Test(model_sandbox_name, anything_else_is_refused)
{
	static const char *const cases[] = {
		"",
		"a",
		ID "-",
		ID "x",
		ID "." ID,
		"." ID,
		ID ".c1",
		"c1-" ID,
		"0bcdefghij0123456789",
		"Abcdefghij0123456789",
		ID "-c_1",
		ID "--",
		"a.b." ID,
		ID "-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"../../etc/passwd",
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		abx__sandbox_name name;
		abx_error *err = NULL;
		int r = abx__sandbox_name_parse(cases[i], &name, &err);

		/* A 20-character word is a valid cluster id too. */
		if (strcmp(cases[i], ID "." ID) == 0)
			cr_expect_eq(r, ABX_OK);
		else
			cr_expect_eq(r, ABX_EINVAL, "%s", cases[i]);
		abx_error_free(err);
	}
	cr_expect(abx__sandbox_id_is_valid(ID));
	cr_expect_not(abx__sandbox_id_is_valid(ID "-c1"));
	cr_expect_not(abx__sandbox_id_is_valid(""));
}
