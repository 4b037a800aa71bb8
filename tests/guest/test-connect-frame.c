/*
 * test-connect-frame.c - envelopes at every split.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include <agentbox/error.h>

#include "base/buf.h"
#include "io/connect-code.h"
#include "io/connect-frame.h"

static int collect(void *userdata, unsigned flags, const char *data, size_t len)
{
	abx__buf *buf = userdata;

	abx__buf_addf(buf, "[%u:%zu:", flags, len);
	abx__buf_add(buf, data, len);
	return abx__buf_addc(buf, ']');
}

static int refuse(void *userdata, unsigned flags, const char *data, size_t len)
{
	(void)userdata;
	(void)flags;
	(void)data;
	(void)len;
	return ABX_ECANCELED;
}

Test(guest_connect_frame, messages_are_whole_at_every_split)
{
	ABX_CLEANUP_BUF abx__buf in = ABX__BUF_INIT;

	abx__connect_frame_add(&in, 0, "hello", 5);
	abx__connect_frame_add(&in, 0, "", 0);
	abx__connect_frame_add(&in, 2, "{}", 2);
	for (size_t step = 1; step <= in.len; step++) {
		ABX_CLEANUP_BUF abx__buf out = ABX__BUF_INIT;
		abx__connect_parser parser = { 0 };

		for (size_t at = 0; at < in.len; at += step) {
			size_t len = in.len - at < step ? in.len - at : step;

			cr_assert(abx__connect_parser_feed(&parser, in.data + at, len,
							   collect, &out) == ABX_OK);
		}
		cr_assert(abx__connect_parser_finish(&parser) == ABX_OK);
		cr_assert_str_eq(out.data, "[0:5:hello][0:0:][2:2:{}]", "split at %zu",
				 step);
		abx__connect_parser_done(&parser);
	}
}

Test(guest_connect_frame, ends_inside_a_message_and_long_messages_are_refused)
{
	abx__connect_parser parser = { .max_bytes = 4 };

	cr_assert(abx__connect_parser_feed(&parser, "\0\0\0\0\4ab", 7, refuse, NULL) ==
		  ABX_OK);
	cr_assert(abx__connect_parser_finish(&parser) == ABX_EPROTO);
	cr_assert(abx__connect_parser_feed(&parser, "cd", 2, refuse, NULL) ==
		  ABX_ECANCELED);
	abx__connect_parser_done(&parser);
	parser = (abx__connect_parser){ .max_bytes = 4 };
	cr_assert(abx__connect_parser_feed(&parser, "\0\0\0\0\5", 5, refuse, NULL) ==
		  ABX_ETOOBIG);
	abx__connect_parser_done(&parser);
}

Test(guest_connect_frame, codes_have_names_statuses_and_errors)
{
	cr_assert_str_eq(abx__connect_code_name(ABX__CONNECT_NOT_FOUND), "not_found");
	cr_assert(abx__connect_code_http(ABX__CONNECT_RESOURCE_EXHAUSTED) == 429);
	cr_assert(abx__connect_code_from_name("unauthenticated") ==
		  ABX__CONNECT_UNAUTHENTICATED);
	cr_assert(abx__connect_code_from_name("no such") == ABX__CONNECT_UNKNOWN);
	cr_assert(abx__connect_code_from_name(NULL) == ABX__CONNECT_UNKNOWN);
	cr_assert(abx__connect_code_from_error(ABX_EEXISTS) ==
		  ABX__CONNECT_ALREADY_EXISTS);
	cr_assert(abx__connect_code_error(ABX__CONNECT_DEADLINE_EXCEEDED) ==
		  ABX_ETIMEDOUT);
}
