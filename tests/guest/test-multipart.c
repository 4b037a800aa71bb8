/*
 * test-multipart.c - multipart bodies at every split, and broken ones.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include <agentbox/error.h>

#include "base/alloc.h"
#include "envd/multipart.h"

static int on_begin(void *userdata, const char *name, const char *filename)
{
	return abx__buf_addf(userdata, "<%s|%s>", name ? name : "-",
			     filename ? filename : "-");
}

static int on_data(void *userdata, const char *data, size_t len)
{
	return abx__buf_add(userdata, data, len);
}

static int on_end(void *userdata)
{
	return abx__buf_adds(userdata, "</>");
}

static const abx__multipart_ops ops = { on_begin, on_data, on_end };

/* The result of feeding and finishing, `step` bytes at a time. */
static int run(const char *text, size_t len, size_t step, abx__buf *out)
{
	abx__multipart parser;
	int r = abx__multipart_init(&parser, "multipart/form-data; boundary=\"XX\"", &ops,
				    out);

	for (size_t at = 0; r == ABX_OK && at < len; at += step)
		r = abx__multipart_feed(&parser, text + at,
					len - at < step ? len - at : step);
	if (r == ABX_OK)
		r = abx__multipart_finish(&parser);
	abx__multipart_done(&parser);
	return r;
}

static void expect(const char *text, int r, const char *want)
{
	for (size_t step = 1; step <= strlen(text) + 1; step++) {
		ABX_CLEANUP_BUF abx__buf out = ABX__BUF_INIT;
		int got = run(text, strlen(text), step, &out);

		cr_assert(got == r, "%d at step %zu: %s", got, step, text);
		if (want)
			cr_assert_str_eq(abx__buf_str(&out), want, "step %zu: %s", step,
					 abx__buf_str(&out));
	}
}

#define HEAD(name, file)                                                                 \
	"Content-Disposition: form-data; name=\"" name "\"; filename=\"" file "\"\r\n\r" \
	"\n"

Test(guest_multipart, parts_are_exact_at_every_split)
{
	expect("--XX\r\n" HEAD("file", "a") "one\r\n--XX--\r\n", ABX_OK,
	       "<file|a>one</>");
	expect("pre\r\n--XX \t\r\n" HEAD("file", "a") "\r\n--X\r\n-\r\n--XX\r\n" HEAD(
		       "f", "b/c") "2\r\n--XX--",
	       ABX_OK, "<file|a>\r\n--X\r\n-</><f|b/c>2</>");
	expect("--XX\r\n" HEAD("file", "e") "\r\n--XX--", ABX_OK, "<file|e></>");
	expect("--XX\r\n" HEAD("file", "e") "--XX--", ABX_OK,
	       "<file|e></>"); /* no CR LF before it */
	expect("--XX\r\n\r\nx\r\n--XX--", ABX_OK, "<-|->x</>");
	expect("--XX\r\nX-A: "
	       "1\r\ncontent-disposition:form-data;name=n\r\n\r\nx\r\n--XX--rest",
	       ABX_OK, "<n|->x</>");
	expect("--XX--", ABX_OK, "");
}

Test(guest_multipart, broken_bodies_are_refused)
{
	expect("", ABX_EPROTO, NULL);
	expect("nonsense", ABX_EPROTO, NULL);
	expect("--XX\r\n" HEAD("file", "a") "one\r\n--XX", ABX_EPROTO, NULL);
	expect("--XX\r\n" HEAD("file", "a") "one", ABX_EPROTO, NULL);
	expect("--XXY\r\n" HEAD("file", "a") "one\r\n--XX--", ABX_EPROTO, NULL);
	expect("--XX\r\nContent-Disposition: x", ABX_EPROTO, NULL);
}

Test(guest_multipart, long_heads_are_refused)
{
	static char text[40000] = "--XX\r\nX: ";
	ABX_CLEANUP_BUF abx__buf out = ABX__BUF_INIT;

	memset(text + 9, 'a', sizeof(text) - 10);
	cr_assert(run(text, sizeof(text) - 1, 1000, &out) == ABX_EPROTO);
	memset(text, 'a', sizeof(text) - 1);
	memcpy(text, "--XX", 4);
	cr_assert(run(text, sizeof(text) - 1, 1000, &out) == ABX_EPROTO);
}

Test(guest_multipart, boundaries_must_be_usable)
{
	static const char *const bad[] = { "multipart/form-data",
					   "multipart/form-data; boundary=",
					   "multipart/form-data; bound=x" };
	abx__multipart parser;
	char text[512] = "multipart/form-data; boundary=";

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert(abx__multipart_init(&parser, bad[i], &ops, NULL) == ABX_EINVAL,
			  "%s", bad[i]);
	memset(text + strlen(text), 'b', 300);
	cr_assert(abx__multipart_init(&parser, text, &ops, NULL) == ABX_EINVAL);
}

Test(guest_multipart, parameters_of_headers)
{
	static const struct {
		const char *value, *name, *want; /* NULL: not there */
	} rows[] = {
		{ "form-data; name=file", "name", "file" },
		{ "form-data; name=\"a b\"; filename=c", "filename", "c" },
		{ "form-data; filename=\"q\\\"q\"", "filename", "q\"q" },
		{ "form-data; filename=\"c:\\dir\"", "filename", "c:\\dir" },
		{ "form-data; filename=\"a;name=b\"; name=x", "name", "x" },
		{ "form-data; filename=\"p\"; filename*=UTF-8''%C3%A9", "filename",
		  "\xc3\xa9" },
		{ "form-data; filename*=UTF-8''%C3%A9; filename=p", "filename",
		  "\xc3\xa9" },
		{ "form-data; filename*=latin1''x; filename=p", "filename", "p" },
		{ "form-data; NAME=x", "name", "x" },
		{ "form-data", "name", NULL },
		{ "form-data; xname=x", "name", NULL },
		{ "form-data; name", "name", NULL },
		{ "form-data; ; =; name=x", "name", "x" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ABX_CLEANUP(abx__freep) char *got = NULL;
		int r = abx__header_param(rows[i].value, rows[i].name, &got);

		cr_assert(r == (rows[i].want != NULL), "%s: %d", rows[i].value, r);
		if (rows[i].want)
			cr_assert_str_eq(got, rows[i].want, "%s: %s", rows[i].value, got);
	}
}
