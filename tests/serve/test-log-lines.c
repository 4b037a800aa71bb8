/* Lines of a log: at any split, cut at their cap, the last of them. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <agentbox/error.h>

#include "serve/log-lines.h"

static int collect(void *userdata, const char *line, size_t len)
{
	abx__buf *all = userdata;

	abx__buf_add(all, line, len);
	return abx__buf_addc(all, '|');
}

Test(serve_log_lines, come_whole_at_any_split)
{
	static const char text[] = "one\r\n\ntwo\nthree";

	for (size_t piece = 1; piece <= sizeof(text); piece++) {
		ABX_CLEANUP_BUF abx__buf all = ABX__BUF_INIT;
		abx__log_lines lines = { 0 };

		for (size_t at = 0; at < strlen(text); at += piece) {
			size_t n = strlen(text) - at;

			cr_assert_eq(abx__log_lines_feed(&lines, text + at,
							 n < piece ? n : piece, collect,
							 &all),
				     ABX_OK);
		}
		cr_assert_str_eq(abx__buf_str(&all), "one|two|");
		abx__log_lines_finish(&lines, collect, &all);
		cr_assert_str_eq(abx__buf_str(&all), "one|two|three|");
		cr_assert_not(lines.cut);
		abx__log_lines_done(&lines);
	}
}

static int length(void *userdata, const char *line, size_t len)
{
	(void)line;
	*(size_t *)userdata = len;
	return ABX_OK;
}

Test(serve_log_lines, a_long_one_is_cut)
{
	size_t size = ABX__LOG_LINE_MAX + 10, len = 0;
	char *text = malloc(size);
	abx__log_lines lines = { 0 };

	memset(text, 'x', size);
	cr_assert_eq(abx__log_lines_feed(&lines, text, size, length, &len), ABX_OK);
	cr_assert_eq(abx__log_lines_feed(&lines, "yy\nz\n", 3, length, &len), ABX_OK);
	cr_assert_eq(len, ABX__LOG_LINE_MAX);
	cr_assert(lines.cut);
	cr_assert_eq(abx__log_lines_feed(&lines, "z\n", 2, length, &len), ABX_OK);
	cr_assert_eq(len, 1);
	abx__log_lines_done(&lines);
	free(text);
}

static int stop(void *userdata, const char *line, size_t len)
{
	(void)userdata;
	(void)line;
	(void)len;
	return ABX_EIO;
}

Test(serve_log_lines, the_owner_may_stop)
{
	abx__log_lines lines = { 0 };

	cr_assert_eq(abx__log_lines_feed(&lines, "a\nb\n", 4, stop, NULL), ABX_EIO);
	abx__log_lines_done(&lines);
}

Test(serve_log_lines, the_last_ones)
{
	static const struct {
		const char *text;
		size_t count;
		const char *tail;
	} rows[] = {
		{ "a\nb\nc\n", 0, "a\nb\nc\n" },
		{ "a\nb\nc\n", 1, "c\n" },
		{ "a\nb\nc", 2, "b\nc" },
		{ "a\nb\nc\n", 9, "a\nb\nc\n" },
		{ "", 3, "" },
		{ "\n", 1, "\n" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert_str_eq(abx__log_lines_tail(rows[i].text, strlen(rows[i].text),
						     rows[i].count),
				 rows[i].tail, "row %zu", i);
}
