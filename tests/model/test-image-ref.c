/* Image references. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "model/image-ref.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

Test(model_image_ref, gets_its_full_spelling)
{
	static const struct {
		const char *text, *full;
		enum abx__image_kind kind;
	} cases[] = {
		{ "host:", "host:", ABX__IMAGE_HOST },
		{ "oci:/srv/base", "oci:/srv/base", ABX__IMAGE_OCI },
		{ "oci:/srv/base:v1", "oci:/srv/base:v1", ABX__IMAGE_OCI },
		{ "oci:base", "oci:base", ABX__IMAGE_OCI },
		{ "oci:a..b/c:v1", "oci:a..b/c:v1", ABX__IMAGE_OCI },
		{ "runtime:", "runtime:", ABX__IMAGE_RUNTIME },
		{ "idle:", "idle:", ABX__IMAGE_IDLE },
		{ "oci-archive:/srv/base.tar:v1", "oci-archive:/srv/base.tar:v1",
		  ABX__IMAGE_OCI_ARCHIVE },
		{ "python", "docker.io/library/python:latest", ABX__IMAGE_REGISTRY },
		{ "python:3.12-slim", "docker.io/library/python:3.12-slim",
		  ABX__IMAGE_REGISTRY },
		{ "a/b", "docker.io/a/b:latest", ABX__IMAGE_REGISTRY },
		{ "docker:29-dind", "docker.io/library/docker:29-dind",
		  ABX__IMAGE_REGISTRY },
		{ "ghcr.io/scitix/agent-sandbox-envd:0.9.0-2",
		  "ghcr.io/scitix/agent-sandbox-envd:0.9.0-2", ABX__IMAGE_REGISTRY },
		{ "localhost/a", "localhost/a:latest", ABX__IMAGE_REGISTRY },
		{ "localhost:5000/a", "localhost:5000/a:latest", ABX__IMAGE_REGISTRY },
		{ "127.0.0.1:5000/a/b:t", "127.0.0.1:5000/a/b:t", ABX__IMAGE_REGISTRY },
		{ "[::1]:5000/a", "[::1]:5000/a:latest", ABX__IMAGE_REGISTRY },
		{ "a@sha256:" HEX, "docker.io/library/a@sha256:" HEX,
		  ABX__IMAGE_REGISTRY },
		{ "r.io/a:t@sha256:" HEX, "r.io/a:t@sha256:" HEX, ABX__IMAGE_REGISTRY },
		{ "a_b__c.d---e", "docker.io/library/a_b__c.d---e:latest",
		  ABX__IMAGE_REGISTRY },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ABX__CLEANUP_IMAGE_REF abx__image_ref ref = { 0 };
		ABX_CLEANUP(abx__freep) char *full = NULL;

		cr_assert_eq(abx__image_ref_parse(cases[i].text, &ref, NULL), ABX_OK,
			     "%s", cases[i].text);
		full = abx__image_ref_print(&ref);
		cr_expect_str_eq(full, cases[i].full);
		cr_expect_eq(ref.kind, cases[i].kind);
	}
}

Test(model_image_ref, what_is_wrong_is_named)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{ "", "image reference is empty" },
		{ "Python", "the name is not valid" },
		{ "a b", "blanks" },
		{ "a\n", "blanks" },
		{ "a:", "the tag is not valid" },
		{ "a:-x", "the tag is not valid" },
		{ "a//b", "the name is not valid" },
		{ "/a", "the name is not valid" },
		{ "a/", "the name is not valid" },
		{ "r.io/", "the name is missing" },
		{ "a..b", "the name is not valid" },
		{ "a___b", "the name is not valid" },
		{ "-a", "the name is not valid" },
		{ "a@sha256:12", "the digest is not valid" },
		{ "a@", "the digest is not valid" },
		{ "r.io:99999999/a", "the registry's name is not valid" },
		{ "-r.io/a", "the registry's name is not valid" },
		{ "docker://python", "write it without a scheme" },
		{ "https://r.io/a", "write it without a scheme" },
		{ "oci:", "the name is missing" },
		{ "oci:../b", "the path is not valid" },
		{ "oci:..", "the path is not valid" },
		{ "oci:a/..", "the path is not valid" },
		{ "oci:/a/../b", "the path is not valid" },
		{ "oci:/a:b/c", "the path is not valid" },
		{ "oci-archive:", "the name is missing" },
		{ "oci:/a:!", "the tag is not valid" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		abx_error *err = NULL;

		cr_assert_eq(abx__image_ref_check(cases[i].text, &err), ABX_EINVAL, "%s",
			     cases[i].text);
		cr_expect(strstr(abx_error_message(err), cases[i].part), "%s gave: %s",
			  cases[i].text, abx_error_message(err));
		abx_error_free(err);
	}
}

Test(model_image_ref, an_endless_reference_is_refused)
{
	char text[ABX__IMAGE_REF_MAX + 2];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	cr_assert_eq(abx__image_ref_check(text, NULL), ABX_EINVAL);
}
