/*
 * test-files.c - files of a sandbox: contents whole and streamed, and the filesystem
 * service.
 */
#include "base/alloc.h"
#include "fixture.h"

TestSuite(client_files, .timeout = 60);

Test(client_files, contents_are_bytes)
{
	static const fake_answer answers[] = {
		{ .method = "GET",
		  .path = "/files",
		  .query = "path=%2Ftmp%2Fa%20b&username=root",
		  .status = 200,
		  .type = "application/octet-stream",
		  .body = "a\0b\xff",
		  .len = 4,
		  .split = 1 },
		{ .method = "GET",
		  .path = "/files",
		  .query = "path=empty",
		  .status = 200 },
		{ .method = "POST", .path = "/files", .status = 200, .body = "[{}]" },
		{ 0 },
	};
	abx_file_options o = ABX_FILE_OPTIONS_INIT;
	char *data = NULL;
	size_t len = 99;
	fixture f;

	fixture_up(&f, answers);
	o.user = "root";
	cr_assert(abx_file_read(f.sandbox, "/tmp/a b", &o, &data, &len, &f.err) == ABX_OK,
		  "%s", abx_error_message(f.err));
	cr_expect(len == 4 && memcmp(data, "a\0b\xff", 5) == 0);
	abx_free(data);
	cr_assert(abx_file_read(f.sandbox, "empty", NULL, &data, &len, &f.err) == ABX_OK);
	cr_expect(len == 0 && data[0] == '\0');
	abx_free(data);
	cr_assert(abx_file_write(f.sandbox, "/tmp/a b", "x\ny", 3, &o, &f.err) == ABX_OK);
	expect_seen(&f, 2, "POST /files?path=%2Ftmp%2Fa%20b&username=root\n");
	expect_seen(&f, 2, "content-type: application/octet-stream\n");
	expect_seen(&f, 2, "content-length: 3\n");
	expect_seen(&f, 2, "\n\nx\ny");
	cr_assert(abx_file_write(f.sandbox, "none", NULL, 0, NULL, &f.err) == ABX_OK);
	expect_seen(&f, 3, "content-length: 0\n");
	fixture_down(&f);
}

Test(client_files, refusals_name_the_file_and_the_sandbox)
{
	static const struct {
		int status;
		const char *body;
		int code;
		const char *text;
	} rows[] = {
		{ 404, "{\"code\":404,\"message\":\"path '/x' does not exist\"}",
		  ABX_ENOTFOUND, "/x in sandbox sb1: path '/x' does not exist" },
		{ 400, "{\"code\":400,\"message\":\"path '/x' is a directory\"}",
		  ABX_EINVAL, "is a directory" },
		{ 401, "{\"code\":401,\"message\":\"error looking up user 'who': no\"}",
		  ABX_EINVAL, "'who'" },
		{ 401, "{\"code\":401,\"message\":\"invalid signature\"}",
		  ABX_EUNAUTHENTICATED, "signature" },
		{ 507, "{\"code\":507,\"message\":\"not enough disk space available\"}",
		  ABX_EEXHAUSTED, "disk space" },
		{ 502,
		  "{\"sandboxId\":\"sb1\",\"message\":\"The sandbox was not "
		  "found\",\"code\":502}",
		  ABX_ENOTFOUND, "sandbox was not found" },
		{ 413, "", ABX_ETOOBIG, "HTTP status 413" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fake_answer answers[2] = { { .status = rows[i].status,
					     .body = rows[i].body } };
		char *data = NULL;
		fixture f;
		int r;

		fixture_up(&f, answers);
		r = abx_file_read(f.sandbox, "/x", NULL, &data, NULL, &f.err);
		expect_error(&f, r, rows[i].code, rows[i].text);
		cr_expect_null(data);
		r = abx_file_write(f.sandbox, "/x", "y", 1, NULL, &f.err);
		expect_error(&f, r, rows[i].code, rows[i].text);
		fixture_down(&f);
	}
}

Test(client_files, a_read_has_a_cap)
{
	static const fake_answer answers[] = {
		{ .status = 200, .ending = FAKE_STREAM, .stream_bytes = 1 << 20 },
		{ 0 },
	};
	abx_file_options o = ABX_FILE_OPTIONS_INIT;
	char *data = NULL;
	fixture f;
	int r;

	fixture_up(&f, answers);
	o.max_bytes = 1000;
	r = abx_file_read(f.sandbox, "big", &o, &data, NULL, &f.err);
	cr_expect(abx_error_hint(f.err) &&
		  strstr(abx_error_hint(f.err), "abx_file_read_stream"));
	expect_error(&f, r, ABX_ETOOBIG, "over 1000 bytes");
	o.max_bytes = 1 << 20;
	cr_expect(abx_file_read(f.sandbox, "big", &o, &data, NULL, &f.err) == ABX_OK);
	abx_free(data);
	fixture_down(&f);
}

struct flow {
	uint64_t bytes, limit;
	int answer, pause_every;
	unsigned calls, pauses;
	abx_op *op;
	bool over, failed;
	int r;
};

static int count(void *userdata, const char *data, size_t len)
{
	struct flow *flow = userdata;

	for (size_t i = 0; i < len; i += 4096)
		flow->failed |= data[i] != 'x';
	flow->bytes += len;
	flow->calls++;
	if (flow->pause_every && flow->calls % (unsigned)flow->pause_every == 0) {
		flow->pauses++;
		return ABX_PAUSE;
	}
	return flow->answer;
}

static int produce(void *userdata, char *buf, size_t size, size_t *ret_len)
{
	struct flow *flow = userdata;
	uint64_t left = flow->limit - flow->bytes;

	if (flow->answer < 0 && flow->calls)
		return flow->answer;
	flow->calls++;
	if (flow->pause_every && flow->calls % (unsigned)flow->pause_every == 0) {
		flow->pauses++;
		return ABX_PAUSE;
	}
	*ret_len = left < size ? (size_t)left : size;
	memset(buf, 'x', *ret_len);
	flow->bytes += *ret_len;
	return ABX_OK;
}

static void flow_done(void *userdata, int r, const abx_error *err)
{
	struct flow *flow = userdata;

	(void)err;
	flow->r = r;
	flow->over = true;
}

static const fake_answer streams[] = {
	{ .method = "GET",
	  .path = "/files",
	  .query = "missing",
	  .status = 404,
	  .body = "{\"code\":404,\"message\":\"path 'missing' does not exist\"}" },
	{ .method = "GET",
	  .path = "/files",
	  .status = 200,
	  .ending = FAKE_STREAM,
	  .stream_bytes = 30u << 20 },
	{ .method = "POST", .path = "/files", .status = 200, .body = "[]" },
	{ 0 },
};

Test(client_files, streams_carry_every_byte_both_ways)
{
	abx_file_options o = ABX_FILE_OPTIONS_INIT;
	struct flow flow = { 0 };
	fixture f;
	int r;

	fixture_up(&f, streams);
	r = abx_file_read_stream(f.sandbox, "big", NULL, count, &flow, &f.err);
	cr_expect(r == ABX_OK && flow.bytes == 30u << 20 && !flow.failed, "%s",
		  abx_error_message(f.err));
	flow = (struct flow){ .limit = 20u << 20 };
	r = abx_file_write_stream(f.sandbox, "big", NULL, produce, &flow, &f.err);
	cr_expect(r == ABX_OK && fake_server_body_bytes(f.server) == 20u << 20, "%s",
		  abx_error_message(f.err));
	expect_seen(&f, 1, "transfer-encoding: chunked\n");
	flow = (struct flow){ .limit = 1000 };
	o.content_length = 1000;
	r = abx_file_write_stream(f.sandbox, "small", &o, produce, &flow, &f.err);
	cr_expect(r == ABX_OK, "%s", abx_error_message(f.err));
	expect_seen(&f, 2, "content-length: 1000\n");
	r = abx_file_read_stream(f.sandbox, "missing", NULL, count, &flow, &f.err);
	expect_error(&f, r, ABX_ENOTFOUND, "'missing' does not exist");
	fixture_down(&f);
}

Test(client_files, a_stream_ends_with_what_its_callback_answers)
{
	abx_file_options o = ABX_FILE_OPTIONS_INIT;
	struct flow flow = { .answer = ABX_EDENIED };
	fixture f;
	int r;

	fixture_up(&f, streams);
	r = abx_file_read_stream(f.sandbox, "big", NULL, count, &flow, &f.err);
	expect_error(&f, r, ABX_EDENIED, "read big in sandbox sb1");
	flow = (struct flow){ .limit = 1u << 20, .answer = ABX_EIO };
	r = abx_file_write_stream(f.sandbox, "big", NULL, produce, &flow, &f.err);
	expect_error(&f, r, ABX_EIO, "write big in sandbox sb1");
	flow = (struct flow){ .pause_every = 1 };
	r = abx_file_read_stream(f.sandbox, "big", NULL, count, &flow, &f.err);
	expect_error(&f, r, ABX_EINVAL, "read big");
	flow = (struct flow){ .limit = 999 };
	o.content_length = 1000;
	r = abx_file_write_stream(f.sandbox, "x", &o, produce, &flow, &f.err);
	expect_error(&f, r, ABX_EINVAL, "fewer bytes than content_length");
	flow = (struct flow){ .limit = 1001 };
	r = abx_file_write_stream(f.sandbox, "x", &o, produce, &flow, &f.err);
	expect_error(&f, r, ABX_EINVAL, "more bytes than content_length");
	fixture_down(&f);
}

Test(client_files, paused_streams_go_on_both_ways)
{
	struct flow flow = { .pause_every = 7 };
	unsigned seen = 0;
	fixture f;

	fixture_up(&f, streams);
	cr_assert(abx_file_read_stream_async(f.sandbox, "big", NULL, count, &flow,
					     flow_done, &flow, NULL, &flow.op,
					     &f.err) == ABX_OK);
	while (!flow.over) {
		cr_assert(abx_client_wait(f.client, 1000, NULL) >= 0);
		if (flow.pauses == seen)
			continue;
		cr_expect(flow.pauses == seen + 1, "went on while paused");
		seen = flow.pauses;
		abx_op_resume(flow.op);
	}
	cr_expect(flow.r == ABX_OK && flow.bytes == 30u << 20 && !flow.failed);
	cr_expect(flow.pauses > 3);
	abx_op_free(flow.op);

	flow = (struct flow){ .pause_every = 7, .limit = 10u << 20 };
	seen = 0;
	cr_assert(abx_file_write_stream_async(f.sandbox, "big", NULL, produce, &flow,
					      flow_done, &flow, NULL, &flow.op,
					      &f.err) == ABX_OK);
	while (!flow.over) {
		cr_assert(abx_client_wait(f.client, 1000, NULL) >= 0);
		if (flow.pauses != seen) {
			seen = flow.pauses;
			abx_op_resume(flow.op);
		}
	}
	cr_expect(flow.r == ABX_OK && fake_server_body_bytes(f.server) == 10u << 20);
	cr_expect(flow.pauses > 0);
	abx_op_free(flow.op);
	fixture_down(&f);
}

Test(client_files, a_silent_stream_is_given_up)
{
	static const fake_answer answers[] = {
		{ .status = 200, .body = "part", .ending = FAKE_STALL, .split = 4 },
		{ 0 },
	};
	abx_file_options o = ABX_FILE_OPTIONS_INIT;
	char *data = NULL;
	fixture f;
	int r;

	fixture_up(&f, answers);
	o.request_timeout_ms = 1000;
	r = abx_file_read(f.sandbox, "x", &o, &data, NULL, &f.err);
	expect_error(&f, r, ABX_ETIMEDOUT, "read x in sandbox sb1");
	fixture_down(&f);
}

static const char entry_json[] = "{\"entry\":{\"name\":\"a\",\"type\":\"FILE_TYPE_FILE\","
				 "\"path\":\"/tmp/a\",\"size\":\"5000000000\","
				 "\"mode\":420,\"permissions\":\"-rw-r--r--\",\"owner\":"
				 "\"user\",\"group\":\"users\","
				 "\"modifiedTime\":\"2026-01-02T03:04:05.250Z\"}}";

Test(client_files, stat_and_list_read_every_field)
{
	static const fake_answer answers[] = {
		{ .path = "/filesystem.Filesystem/Stat",
		  .status = 200,
		  .body = entry_json },
		{ .path = "/filesystem.Filesystem/ListDir",
		  .status = 200,
		  .body = "{\"entries\":[{\"name\":\"d\",\"type\":\"FILE_TYPE_"
			  "DIRECTORY\",\"path\":\"/d\"},"
			  "{\"name\":\"l\",\"type\":\"FILE_TYPE_SYMLINK\","
			  "\"symlinkTarget\":\"/t\"},{}]}" },
		{ 0 },
	};
	abx_file_options o = ABX_FILE_OPTIONS_INIT;
	abx_file_info *info = NULL;
	abx_file_list *list = NULL;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_file_stat(f.sandbox, "/tmp/a", NULL, &info, &f.err) == ABX_OK, "%s",
		  abx_error_message(f.err));
	cr_expect_str_eq(info->name, "a");
	cr_expect_str_eq(info->path, "/tmp/a");
	cr_expect(info->type == ABX_FILE_REGULAR && info->length_bytes == 5000000000 &&
		  info->mode == 0644);
	cr_expect_str_eq(info->permissions, "-rw-r--r--");
	cr_expect(strcmp(info->owner, "user") == 0 && strcmp(info->group, "users") == 0);
	cr_expect(info->modified_at_ms == 1767323045250);
	cr_expect_null(info->symlink_target);
	abx_file_info_free(info);
	expect_seen(&f, 0, "{\"path\":\"/tmp/a\"}");
	o.depth = 3;
	o.user = "root";
	cr_assert(abx_file_list_dir(f.sandbox, "/", &o, &list, &f.err) == ABX_OK);
	expect_seen(&f, 1, "{\"path\":\"/\",\"depth\":3}");
	expect_seen(&f, 1, "authorization: Basic cm9vdDo=\n");
	cr_assert(abx_file_list_count(list) == 3);
	cr_expect(abx_file_list_at(list, 0)->type == ABX_FILE_DIRECTORY);
	cr_expect_str_eq(abx_file_list_at(list, 1)->symlink_target, "/t");
	cr_expect(abx_file_list_at(list, 2)->type == ABX_FILE_UNKNOWN);
	cr_expect_null(abx_file_list_at(list, 3));
	abx_file_list_free(list);
	fixture_down(&f);
}

Test(client_files, the_other_calls_answer_as_their_headers_say)
{
	static const fake_answer answers[] = {
		{ .path = "/filesystem.Filesystem/Stat",
		  .status = 200,
		  .body = "{}",
		  .times = 1 },
		{ .path = "/filesystem.Filesystem/Stat",
		  .status = 404,
		  .times = 1,
		  .body = "{\"code\":\"not_found\",\"message\":\"file not found: /x\"}" },
		{ .path = "/filesystem.Filesystem/Stat",
		  .status = 404,
		  .body = "{\"error\":\"sandbox not found\"}" },
		{ .path = "/filesystem.Filesystem/MakeDir",
		  .status = 200,
		  .body = "{}",
		  .times = 1 },
		{ .path = "/filesystem.Filesystem/MakeDir",
		  .status = 409,
		  .times = 1,
		  .body = "{\"code\":\"already_exists\",\"message\":\"directory already "
			  "exists: /d\"}" },
		{ .path = "/filesystem.Filesystem/MakeDir",
		  .status = 400,
		  .body = "{\"code\":\"invalid_argument\",\"message\":\"a file\"}" },
		{ .path = "/filesystem.Filesystem/Move",
		  .status = 200,
		  .body = entry_json,
		  .times = 2 },
		{ .path = "/filesystem.Filesystem/Move",
		  .status = 404,
		  .body = "{\"code\":\"not_found\",\"message\":\"source file not found: "
			  "/x\"}" },
		{ .path = "/filesystem.Filesystem/Remove", .status = 200, .body = "{}" },
		{ 0 },
	};
	abx_file_info *info = NULL;
	fixture f;

	fixture_up(&f, answers);
	cr_expect(abx_file_exists(f.sandbox, "/x", NULL, &f.err) == 1);
	cr_expect(abx_file_exists(f.sandbox, "/x", NULL, &f.err) == 0);
	expect_error(&f, abx_file_exists(f.sandbox, "/x", NULL, &f.err), ABX_ENOTFOUND,
		     "sandbox not found");
	cr_expect(abx_file_make_dir(f.sandbox, "/d", NULL, &f.err) == 1);
	cr_expect(abx_file_make_dir(f.sandbox, "/d", NULL, &f.err) == 0);
	expect_error(&f, abx_file_make_dir(f.sandbox, "/d", NULL, &f.err), ABX_EINVAL,
		     "make directory /d in sandbox sb1: a file");
	cr_expect(abx_file_move(f.sandbox, "/a", "/b", NULL, &info, &f.err) == ABX_OK);
	expect_seen(&f, 6, "{\"source\":\"/a\",\"destination\":\"/b\"}");
	cr_expect_str_eq(info->path, "/tmp/a");
	abx_file_info_free(info);
	cr_expect(abx_file_move(f.sandbox, "/a", "/b", NULL, NULL, &f.err) == ABX_OK);
	expect_error(&f, abx_file_move(f.sandbox, "/x", "/b", NULL, NULL, &f.err),
		     ABX_ENOTFOUND, "/x");
	cr_expect(abx_file_remove(f.sandbox, "/a", NULL, &f.err) == ABX_OK);
	expect_error(&f, abx_file_move(f.sandbox, "/x", NULL, NULL, NULL, &f.err),
		     ABX_EINVAL, "empty");
	expect_error(&f, abx_file_stat(f.sandbox, NULL, NULL, &info, &f.err), ABX_EINVAL,
		     "path is NULL");
	expect_error(&f, abx_file_stat(f.sandbox, "\xff", NULL, &info, &f.err),
		     ABX_EINVAL, "not UTF-8");
	expect_error(&f, abx_file_write(f.sandbox, "", "", 0, NULL, &f.err), ABX_EINVAL,
		     "empty");
	expect_error(&f, abx_file_write(f.sandbox, "a", NULL, 3, NULL, &f.err),
		     ABX_EINVAL, "data is NULL");
	fixture_down(&f);
}
