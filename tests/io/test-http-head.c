/* Heads of requests and answers: what is read from them, and what is refused with which
 * status. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "io/http-head.h"
#include <agentbox/error.h>

static int parse(const char *text, abx__http_head *head, int *status, const char **why)
{
	return abx__http_head_parse_request(head, text, strlen(text), status, why);
}

Test(io_http_head, the_end_is_found_wherever_the_pieces_are_cut)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\nbody";
	size_t whole = strlen(text) - 4;

	for (size_t cut = 0; cut <= strlen(text); cut++) {
		size_t n = abx__http_head_find(text, cut, 0);

		cr_assert_eq(n, cut >= whole ? whole : 0);
		if (n == 0)
			cr_assert_eq(abx__http_head_find(text, strlen(text), cut), whole);
	}
	cr_assert_eq(abx__http_head_find("a\n\nb", 4, 0), 3);
}

Test(io_http_head, a_request_is_taken_apart)
{
	abx__http_head head;
	const char *why;
	int status;

	cr_assert_eq(parse("POST /a/b?x=1&y=%20 HTTP/1.1\r\nhost: h\r\nX-Two:  v w "
			   "\t\r\nX-Empty:\r\n"
			   "Content-Length: 12\r\nExpect: 100-Continue\r\n\r\n",
			   &head, &status, &why),
		     ABX_OK);
	cr_assert_str_eq(head.method, "POST");
	cr_assert_str_eq(head.target, "/a/b?x=1&y=%20");
	cr_assert_str_eq(head.path, "/a/b");
	cr_assert_str_eq(head.query, "x=1&y=%20");
	cr_assert_eq(head.count, 5);
	cr_assert_str_eq(head.fields[1].name, "X-Two");
	cr_assert_str_eq(abx__http_head_get(&head, "x-two"), "v w");
	cr_assert_str_eq(abx__http_head_get(&head, "x-empty"), "");
	cr_assert_str_eq(head.fields[3].name, "Content-Length");
	cr_assert_null(abx__http_head_get(&head, "x"));
	cr_assert_eq(head.content_length, 12);
	cr_assert(head.keep_alive && head.expect_continue && !head.chunked &&
		  !head.upgrade);
	abx__http_head_done(&head);
}

Test(io_http_head, version_and_connection_decide_about_keeping)
{
	static const struct {
		const char *text;
		bool keep, upgrade;
	} rows[] = {
		{ "GET / HTTP/1.1\r\nHost: a\r\n\r\n", true, false },
		{ "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false,
		  false },
		{ "GET / HTTP/1.0\r\n\r\n", false, false },
		{ "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true, false },
		{ "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, "
		  "Upgrade\r\nUpgrade: websocket\r\n\r\n",
		  true, true },
		{ "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n", true,
		  false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		abx__http_head head;
		const char *why;
		int status;

		cr_assert_eq(parse(rows[i].text, &head, &status, &why), ABX_OK, "%s: %s",
			     rows[i].text, why);
		cr_assert_eq(head.keep_alive, rows[i].keep, "%s", rows[i].text);
		cr_assert_eq(head.upgrade, rows[i].upgrade, "%s", rows[i].text);
		abx__http_head_done(&head);
	}
}

Test(io_http_head, an_absolute_target_loses_its_authority)
{
	static const struct {
		const char *text, *target;
	} rows[] = {
		{ "GET http://h:1/p?q HTTP/1.1\r\nHost: h:1\r\n\r\n", "/p?q" },
		{ "GET http://h HTTP/1.1\r\nHost: H\r\n\r\n", "/" },
		{ "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "*" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		abx__http_head head;
		const char *why;
		int status;

		cr_assert_eq(parse(rows[i].text, &head, &status, &why), ABX_OK, "%s",
			     why);
		cr_assert_str_eq(head.target, rows[i].target);
		cr_assert(strcasecmp(abx__http_head_get(&head, "Host"), "h") == 0 ||
			  strcmp(abx__http_head_get(&head, "Host"), "h:1") == 0);
		abx__http_head_done(&head);
	}
}

Test(io_http_head, what_is_broken_or_ambiguous_is_refused)
{
	static const struct {
		const char *text;
		int status;
	} rows[] = {
		{ "GET / HTTP/1.1\r\n\r\n", 400 }, /* no Host */
		{ "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nX Y: a\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\n\tHost: a\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\nHost: a\n\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", 400 },
		{ "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
		{ "GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: "
		  "1\r\n\r\n",
		  400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: "
		  "2\r\n\r\n",
		  400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1 1\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: "
		  "9223372036854775808\r\n\r\n",
		  400 },
		{ "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: "
		  "99999999999999999999999\r\n\r\n",
		  400 },
		{ "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
		  "chunked\r\nContent-Length: 1\r\n\r\n",
		  400 },
		{ "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: "
		  "chunked\r\n\r\n",
		  400 },
		{ "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, "
		  "chunked\r\n\r\n",
		  400 },
		{ "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		  "Transfer-Encoding: chunked\r\n\r\n",
		  400 },
		{ "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
		  400 },
		{ "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
		  400 },
		{ "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400 },
		{ "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
		{ "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
		{ "GET /\r\n\r\n", 400 },
		{ "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505 },
		{ "GET / HTTP/0.9\r\nHost: a\r\n\r\n", 400 },
		{ "PRI * HTTP/2.0\r\n\r\n", 400 },
		{ "FROB / HTTP/1.1\r\nHost: a\r\n\r\n", 501 },
		{ "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 501 },
		{ "\x16\x03\x01 x\r\n\r\n", 400 },
		{ "HTTP/1.1 200 OK\r\n\r\n", 400 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		abx__http_head head;
		const char *why = NULL;
		int status = 0;

		cr_assert_eq(parse(rows[i].text, &head, &status, &why), ABX_EPROTO,
			     "row %zu: %s", i, rows[i].text);
		cr_assert_eq(status, rows[i].status, "row %zu gave %d: %s", i, status,
			     rows[i].text);
		cr_assert_not_null(why);
		cr_assert_null(head.block);
	}
}

Test(io_http_head, a_nul_is_refused)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n";
	abx__http_head head;
	const char *why;
	int status;

	cr_assert_eq(abx__http_head_parse_request(&head, text, sizeof(text) - 1, &status,
						  &why),
		     ABX_EPROTO);
}

Test(io_http_head, more_than_100_headers_are_431)
{
	char text[8192];
	size_t n = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\n");
	abx__http_head head;
	const char *why;
	int status;

	for (int i = 0; i < 99; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "X-%d: v\r\n", i);
	snprintf(text + n, sizeof(text) - n, "\r\n");
	cr_assert_eq(parse(text, &head, &status, &why), ABX_OK);
	abx__http_head_done(&head);
	snprintf(text + n, sizeof(text) - n, "X-99: v\r\n\r\n");
	cr_assert_eq(parse(text, &head, &status, &why), ABX_EPROTO);
	cr_assert_eq(status, 431);
}

Test(io_http_head, answers_are_read_with_bare_line_feeds_too)
{
	static const char text[] =
		"HTTP/1.0 404 Gone away\nServer: x\nContent-Length: 3\n\n";
	abx__http_head head;
	const char *why;

	cr_assert_eq(abx__http_head_parse_response(&head, text, strlen(text), &why),
		     ABX_OK);
	cr_assert_eq(head.status, 404);
	cr_assert_eq(head.content_length, 3);
	cr_assert_not(head.keep_alive);
	cr_assert_str_eq(abx__http_head_get(&head, "server"), "x");
	abx__http_head_done(&head);
}

Test(io_http_head, broken_answers_are_refused)
{
	static const char *const rows[] = {
		"HTTP/1.1 20 OK\r\n\r\n",
		"HTTP/2.0 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: "
		"chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: a\r\n folded\r\n\r\n",
		"SSH-2.0-OpenSSH\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		abx__http_head head;
		const char *why = NULL;

		cr_assert_eq(abx__http_head_parse_response(&head, rows[i],
							   strlen(rows[i]), &why),
			     ABX_EPROTO, "%s", rows[i]);
		cr_assert_not_null(why);
	}
}

Test(io_http_head, list_tokens_are_whole_words)
{
	cr_assert(abx__http_list_has("keep-alive, Upgrade", "upgrade"));
	cr_assert(abx__http_list_has(" ,close ,", "Close"));
	cr_assert_not(abx__http_list_has("closed, not-close", "close"));
	cr_assert_not(abx__http_list_has("", "close"));
}

Test(io_http_head, a_failed_allocation_is_a_code)
{
	abx__http_head head;
	const char *why;
	int status;

	abx__test_fail_alloc_after(0);
	cr_assert_eq(parse("GET / HTTP/1.1\r\nHost: a\r\n\r\n", &head, &status, &why),
		     ABX_ENOMEM);
	abx__test_alloc_reset();
}
