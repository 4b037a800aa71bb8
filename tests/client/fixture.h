/*
 * fixture.h - a client on a scripted server, for every suite of this room.
 */
#ifndef ABX_TESTS_CLIENT_FIXTURE_H
#define ABX_TESTS_CLIENT_FIXTURE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include <agentbox/agentbox.h>

#include "base/buf.h"
#include "fake-server.h"
#include "io/connect-frame.h"

#define STREAM "application/connect+json"

typedef struct fixture {
	fake_server *server;
	abx_client *client;
	abx_sandbox *sandbox; /* "sb1", without asking anybody */
	abx_error *err;
} fixture;

static inline void fixture_up_with(fixture *f, const fake_answer *answers,
				   uint32_t timeout_ms)
{
	abx_client_options opts = ABX_CLIENT_OPTIONS_INIT;

	memset(f, 0, sizeof(*f));
	f->server = fake_server_start(answers);
	opts.cluster_api = fake_server_url(f->server);
	opts.flags = ABX_CLIENT_NO_ENVIRONMENT | ABX_CLIENT_NO_CONTEXT;
	opts.api_key = "agbx_secret";
	opts.request_timeout_ms = timeout_ms;
	cr_assert(abx_client_new(&opts, &f->client, &f->err) == ABX_OK, "%s",
		  abx_error_message(f->err));
	cr_assert(abx_sandbox_open(f->client, "sb1", &f->sandbox, &f->err) == ABX_OK);
}

static inline void fixture_up(fixture *f, const fake_answer *answers)
{
	fixture_up_with(f, answers, 5000);
}

static inline void fixture_down(fixture *f)
{
	abx_error_free(f->err);
	abx_sandbox_free(f->sandbox);
	abx_client_free(f->client);
	fake_server_stop(f->server);
}

/* A stream of messages; "!" before the last makes it the end of the stream. */
static inline char *frames(const char *const *messages, size_t *ret_len)
{
	abx__buf buf = ABX__BUF_INIT;

	for (size_t i = 0; messages[i]; i++) {
		bool is_end = messages[i][0] == '!';
		const char *text = messages[i] + is_end;

		abx__connect_frame_add(&buf, is_end ? ABX__CONNECT_END_STREAM : 0, text,
				       strlen(text));
	}
	*ret_len = buf.len;
	return abx__buf_take(&buf);
}

/* The error at hand has this code and says this. */
static inline void expect_error(fixture *f, int r, int code, const char *part)
{
	cr_expect(r == code, "gave %d (%s), not %d", r, abx_error_message(f->err), code);
	cr_expect(abx_error_code(f->err) == code);
	cr_expect(strstr(abx_error_message(f->err), part) != NULL, "'%s' lacks '%s'",
		  abx_error_message(f->err), part);
	abx_error_free(f->err);
	f->err = NULL;
}

static inline void expect_seen(fixture *f, unsigned index, const char *part)
{
	cr_expect(strstr(fake_server_seen(f->server, index), part) != NULL,
		  "request %u lacks '%s':\n%s", index, part,
		  fake_server_seen(f->server, index));
}

static inline void expect_not_seen(fixture *f, unsigned index, const char *part)
{
	cr_expect(strstr(fake_server_seen(f->server, index), part) == NULL,
		  "request %u has '%s':\n%s", index, part,
		  fake_server_seen(f->server, index));
}

#endif
