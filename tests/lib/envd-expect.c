/*
 * envd-expect.c - requests and exact answers.
 */
#include "envd-expect.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

char *envd_expand(const envd_child *child, const char *s)
{
	abx__buf out = ABX__BUF_INIT;

	for (; *s; s++)
		*s == '@' ? abx__buf_adds(&out, child->dir) : abx__buf_addc(&out, *s);
	return abx__buf_take(&out);
}

envd_answer envd_ask(const envd_child *child, const char *method, const char *target,
		     const char *headers, const char *body)
{
	ABX_CLEANUP(abx__freep) char *to = envd_expand(child, target);
	ABX_CLEANUP(abx__freep) char *text = body ? envd_expand(child, body) : NULL;

	return envd_child_request(child, method, to, headers, text,
				  text ? strlen(text) : 0);
}

static void check(const envd_child *child, const char *what, const envd_answer *answer,
		  int status, const char *exact)
{
	ABX_CLEANUP(abx__freep) char *want = exact ? envd_expand(child, exact) : NULL;

	cr_assert(answer->status == status, "%s: %d instead of %d: %s", what,
		  answer->status, status, abx__buf_str(&answer->body));
	cr_assert(answer->is_whole, "%s: cut short", what);
	if (want)
		cr_assert_str_eq(abx__buf_str(&answer->body), want, "%s: '%s', not '%s'",
				 what, abx__buf_str(&answer->body), want);
}

void envd_expect(const envd_child *child, const char *method, const char *target,
		 const char *headers, const char *body, int status, const char *exact)
{
	envd_answer answer = envd_ask(child, method, target, headers, body);

	check(child, target, &answer, status, exact);
	envd_answer_done(&answer);
}

void envd_expect_error(const envd_child *child, const char *method, const char *target,
		       const char *headers, const char *body, int status,
		       const char *message)
{
	envd_answer answer = envd_ask(child, method, target, headers, body);
	ABX_CLEANUP(abx__freep)
	char *exact = abx__strf("{\"code\":%d,\"message\":\"%s\"}\n", status, message);

	check(child, target, &answer, status, exact);
	cr_assert(envd_answer_has(&answer, "Content-Type",
				  "application/json; charset=utf-8"));
	cr_assert(envd_answer_has(&answer, "X-Content-Type-Options", "nosniff"));
	envd_answer_done(&answer);
}
