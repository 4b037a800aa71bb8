/* Body framing, cut at every place. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/buf.h"
#include "io/http-body.h"
#include <agentbox/error.h>

/* Feeds `text` in pieces of `step`; the payload, or NULL when refused. *ret_used counts
 * what was eaten. */
static const char *decode(abx__http_body *body, const char *text, size_t len, size_t step,
			  abx__buf *out, size_t *ret_used)
{
	size_t used = 0;

	abx__buf_clear(out);
	while (used < len && !body->done) {
		size_t have = len - used < step ? len - used : step, eaten = 0;

		while (eaten < have && !body->done) {
			const char *data;
			size_t n;
			ssize_t r = abx__http_body_next(body, text + used + eaten,
							have - eaten, &data, &n);

			if (r < 0)
				return NULL;
			cr_assert(r > 0);
			abx__buf_add(out, data, n);
			eaten += (size_t)r;
		}
		used += eaten;
	}
	*ret_used = used;
	return abx__buf_str(out);
}

Test(io_http_body, chunks_decode_however_they_are_cut)
{
	static const char text[] =
		"5\r\nhello\r\n1;ext=\"a b\"\r\n \r\n00A \r\nwide world\r\n0\r\n"
		"Trailer: x\r\nOther: y\r\n\r\nNEXT";
	ABX_CLEANUP_BUF abx__buf out = ABX__BUF_INIT;

	for (size_t step = 1; step < sizeof(text); step++) {
		abx__http_body body;
		size_t used = 0;

		abx__http_body_init(&body, ABX__HTTP_CHUNKED, 0);
		cr_assert_str_eq(decode(&body, text, strlen(text), step, &out, &used),
				 "hello wide world");
		cr_assert(body.done);
		cr_assert_eq(used, strlen(text) - 4);
	}
}

Test(io_http_body, a_length_is_exact)
{
	ABX_CLEANUP_BUF abx__buf out = ABX__BUF_INIT;
	abx__http_body body;
	size_t used = 0;

	abx__http_body_init(&body, ABX__HTTP_LENGTH, 3);
	cr_assert_str_eq(decode(&body, "abcdef", 6, 2, &out, &used), "abc");
	cr_assert_eq(used, 3);
	abx__http_body_init(&body, ABX__HTTP_LENGTH, 0);
	cr_assert(body.done);
	abx__http_body_init(&body, ABX__HTTP_NO_BODY, 0);
	cr_assert(body.done);
}

Test(io_http_body, until_close_takes_everything_and_is_never_done)
{
	ABX_CLEANUP_BUF abx__buf out = ABX__BUF_INIT;
	abx__http_body body;
	size_t used = 0;

	abx__http_body_init(&body, ABX__HTTP_UNTIL_CLOSE, 0);
	cr_assert_str_eq(decode(&body, "abcdef", 6, 4, &out, &used), "abcdef");
	cr_assert_not(body.done);
}

Test(io_http_body, broken_chunks_are_refused)
{
	static const char *const rows[] = {
		"x\r\n",
		"\r\n",
		"-1\r\n",
		"0x5\r\nhello\r\n",
		"5\nhello\r\n0\r\n\r\n",
		"5\rXhello\r\n0\r\n\r\n",
		"5\r\nhelloXX0\r\n\r\n",
		"5\r\nhello\n0\r\n\r\n",
		"5\r\nhello\rX0\r\n\r\n",
		"5\r\nhello\r\n0\r\n\rX",
		"5;a\x01\r\nhello\r\n",
		"0\r\nTrailer\nOther: x\r\n\r\n",
		"fffffffffffffffff\r\n",
		"10000000000000000\r\n",
		" 5\r\nhello\r\n",
		";a\r\n",
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (size_t step = 1; step < 9; step++) {
			ABX_CLEANUP_BUF abx__buf out = ABX__BUF_INIT;
			abx__http_body body;
			size_t used = 0;

			abx__http_body_init(&body, ABX__HTTP_CHUNKED, 0);
			cr_assert_null(decode(&body, rows[i], strlen(rows[i]), step, &out,
					      &used),
				       "row %zu", i);
		}
	}
}

Test(io_http_body, size_lines_and_trailers_have_caps)
{
	static char text[64 * 1024];
	ABX_CLEANUP_BUF abx__buf out = ABX__BUF_INIT;
	abx__http_body body;
	size_t used = 0;

	memset(text, 'x', sizeof(text));
	memcpy(text, "5;", 2);
	abx__http_body_init(&body, ABX__HTTP_CHUNKED, 0);
	cr_assert_null(decode(&body, text, sizeof(text), 512, &out, &used));
	memset(text, '0', sizeof(text));
	abx__http_body_init(&body, ABX__HTTP_CHUNKED, 0);
	cr_assert_null(decode(&body, text, sizeof(text), 512, &out, &used));
	memcpy(text, "0\r\n", 3);
	for (size_t i = 3; i + 3 <= sizeof(text); i += 3)
		memcpy(text + i, "a\r\n", 3);
	abx__http_body_init(&body, ABX__HTTP_CHUNKED, 0);
	cr_assert_null(decode(&body, text, sizeof(text) - 3, 512, &out, &used));
}

Test(io_http_body, trailers_are_kept_in_order_but_for_what_may_not_trail)
{
	static const char text[] = "3\r\nabc\r\n0\r\nX-One: 1\r\nContent-Length: 5\r\n"
				   "Transfer-Encoding: chunked\r\nx-two:\t two \t\r\n"
				   "Host: h\r\nX-Empty:\r\n\r\n";

	for (size_t step = 1; step < sizeof(text); step += 3) {
		ABX_CLEANUP_BUF abx__buf out = ABX__BUF_INIT;
		ABX_CLEANUP_BUF abx__buf trailers = ABX__BUF_INIT;
		const char *name = NULL, *value = NULL;
		abx__http_body body;
		size_t used = 0;

		abx__http_body_init(&body, ABX__HTTP_CHUNKED, 0);
		body.trailers = &trailers;
		cr_assert_not_null(
			decode(&body, text, sizeof(text) - 1, step, &out, &used));
		cr_assert(body.done);
		cr_assert_eq(abx__http_trailers_split(&trailers), ABX_OK);
		cr_assert(abx__http_trailers_at(&trailers, 0, &name, &value));
		cr_assert_str_eq(name, "X-One");
		cr_assert_str_eq(value, "1");
		cr_assert(abx__http_trailers_at(&trailers, 1, &name, &value));
		cr_assert_str_eq(name, "x-two");
		cr_assert_str_eq(value, "two");
		cr_assert(abx__http_trailers_at(&trailers, 2, &name, &value));
		cr_assert_str_eq(value, "");
		cr_assert_not(abx__http_trailers_at(&trailers, 3, &name, &value));
	}
}

Test(io_http_body, lines_that_are_no_fields_are_no_trailers)
{
	static const char *const rows[] = { "no colon\r\n", ": x\r\n", "a b: x\r\n",
					    " folded: x\r\n", "a : x\r\n" };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		abx__buf trailers = ABX__BUF_INIT;

		abx__buf_adds(&trailers, rows[i]);
		cr_assert_eq(abx__http_trailers_split(&trailers), ABX_EPROTO, "%s",
			     rows[i]);
		cr_assert_eq(trailers.len, 0);
	}
}
