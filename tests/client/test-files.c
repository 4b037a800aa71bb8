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

/* ---- parts, metadata, packed, composed, signed ---- */

Test(client_files, a_part_of_a_file_is_asked_for_as_a_range)
{
	static const fake_answer answers[] = {
		{ .method = "GET", .status = 206, .body = "cde", .times = 1 },
		{ .method = "GET", .status = 206, .body = "cdefgh", .times = 1 },
		{ .method = "GET",
		  .status = 416,
		  .type = "text/plain",
		  .body = "invalid range: failed to overlap\n",
		  .times = 1 },
		{ .method = "GET", .status = 200, .body = "abcdefgh" },
		{ 0 },
	};
	abx_file_options o = ABX_FILE_OPTIONS_INIT;
	char *data = NULL;
	size_t len = 9;
	fixture f;

	fixture_up(&f, answers);
	o.offset_bytes = 2;
	o.length_bytes = 3;
	cr_assert(abx_file_read(f.sandbox, "/f", &o, &data, &len, &f.err) == ABX_OK, "%s",
		  abx_error_message(f.err));
	cr_expect(len == 3 && strcmp(data, "cde") == 0);
	abx_free(data);
	expect_seen(&f, 0, "range: bytes=2-4\n");
	o.length_bytes = 0;
	cr_assert(abx_file_read(f.sandbox, "/f", &o, &data, &len, &f.err) == ABX_OK);
	cr_expect(len == 6);
	abx_free(data);
	expect_seen(&f, 1, "range: bytes=2-\n");
	o.offset_bytes = 8;
	cr_assert(abx_file_read(f.sandbox, "/f", &o, &data, &len, &f.err) == ABX_OK);
	cr_expect(len == 0 && data && !*data);
	abx_free(data);
	expect_error(&f, abx_file_read(f.sandbox, "/f", &o, &data, &len, &f.err),
		     ABX_EPROTO, "200");
	o.offset_bytes = -1;
	expect_error(&f, abx_file_read(f.sandbox, "/f", &o, &data, &len, &f.err),
		     ABX_EINVAL, "range");
	o.offset_bytes = INT64_MAX;
	o.length_bytes = 1;
	expect_error(&f, abx_file_read(f.sandbox, "/f", &o, &data, &len, &f.err),
		     ABX_EINVAL, "range");
	fixture_down(&f);
}

Test(client_files, metadata_goes_along_and_comes_back)
{
	static const fake_answer answers[] = {
		{ .method = "POST", .path = "/files", .status = 200, .body = "[]" },
		{ .status = 200,
		  .body = "{\"entry\":{\"name\":\"f\",\"path\":\"/f\",\"type\":"
			  "\"FILE_TYPE_FILE\",\"metadata\":{\"kind\":\"a plot\"}}}",
		  .times = 1 },
		{ .status = 200,
		  .body = "{\"entry\":{\"name\":\"f\",\"path\":\"/f\",\"type\":"
			  "\"FILE_TYPE_FILE\"}}" },
		{ 0 },
	};
	const char *const metadata[] = { "Kind=a plot", "empty=", NULL };
	const char *const broken[] = { "a=b", "nothing", NULL };
	const char *const bytes[] = { "a=\xc3\xa4", NULL };
	const char *const lines[] = { "a=b\r\nX-Evil: 1", NULL };
	const char *const blank[] = { "a b=c", NULL };
	const char *const *const wrong[] = { broken, bytes, lines, blank };
	const char *many[66];
	abx_file_options o = ABX_FILE_OPTIONS_INIT;
	abx_file_info *info = NULL;
	fixture f;

	fixture_up(&f, answers);
	o.metadata = metadata;
	cr_assert(abx_file_write(f.sandbox, "/f", "x", 1, &o, &f.err) == ABX_OK, "%s",
		  abx_error_message(f.err));
	expect_seen(&f, 0, "x-metadata-kind: a plot\n");
	expect_seen(&f, 0, "x-metadata-empty:");
	cr_assert(abx_file_stat(f.sandbox, "/f", NULL, &info, &f.err) == ABX_OK);
	cr_expect(info->metadata[0] && !info->metadata[1]);
	cr_expect_str_eq(info->metadata[0], "kind=a plot");
	abx_file_info_free(info);
	cr_assert(abx_file_stat(f.sandbox, "/f", NULL, &info, &f.err) == ABX_OK);
	cr_expect(info->metadata && !info->metadata[0]);
	abx_file_info_free(info);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		o.metadata = wrong[i];
		expect_error(&f, abx_file_write(f.sandbox, "/f", "x", 1, &o, &f.err),
			     ABX_EINVAL, "metadata: entry");
	}
	for (size_t i = 0; i < 65; i++)
		many[i] = "a=b";
	many[65] = NULL;
	o.metadata = many;
	expect_error(&f, abx_file_write(f.sandbox, "/f", "x", 1, &o, &f.err), ABX_EINVAL,
		     "over 64");
	cr_expect(fake_server_count(f.server) == 3);
	fixture_down(&f);
}

Test(client_files, an_option_that_is_not_for_the_call_is_refused)
{
	static const fake_answer answers[] = { { 0 } };
	const char *const metadata[] = { "a=b", NULL };
	abx_file_options o = ABX_FILE_OPTIONS_INIT;
	char *data = NULL;
	size_t len = 0;
	fixture f;

	fixture_up(&f, answers);
	o.metadata = metadata;
	expect_error(&f, abx_file_read(f.sandbox, "/f", &o, &data, &len, &f.err),
		     ABX_EINVAL, "metadata is not for this call");
	expect_error(&f, abx_file_remove(f.sandbox, "/f", &o, &f.err), ABX_EINVAL,
		     "metadata");
	o.metadata = NULL;
	o.offset_bytes = 1;
	expect_error(&f, abx_file_write(f.sandbox, "/f", "x", 1, &o, &f.err), ABX_EINVAL,
		     "offset_bytes");
	o.offset_bytes = 0;
	o.length_bytes = 1;
	expect_error(&f, abx_file_write(f.sandbox, "/f", "x", 1, &o, &f.err), ABX_EINVAL,
		     "length_bytes");
	o.length_bytes = 0;
	o.gzip = 1;
	expect_error(&f, abx_file_exists(f.sandbox, "/f", &o, &f.err), ABX_EINVAL,
		     "gzip");
	cr_expect(fake_server_count(f.server) == 0);
	fixture_down(&f);
}

/* "hello\n" packed, as gzip -n makes it. */
static const char packed[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9"
			     "\xc9\xe7\x02\x00\x20\x30\x3a\x36\x06\x00\x00\x00";

Test(client_files, a_packed_answer_is_given_unpacked)
{
	static const fake_answer answers[] = {
		{ .method = "GET",
		  .status = 200,
		  .type = "text/plain",
		  .headers = { "Content-Encoding: gzip" },
		  .body = packed,
		  .len = sizeof(packed) - 1,
		  .split = 3 },
		{ 0 },
	};
	abx_file_options o = ABX_FILE_OPTIONS_INIT;
	char *data = NULL;
	size_t len = 0;
	fixture f;

	fixture_up(&f, answers);
	o.gzip = 1;
	cr_assert(abx_file_read(f.sandbox, "/f", &o, &data, &len, &f.err) == ABX_OK, "%s",
		  abx_error_message(f.err));
	cr_expect(len == 6 && strcmp(data, "hello\n") == 0);
	abx_free(data);
	expect_seen(&f, 0, "accept-encoding: gzip\n");
	fixture_down(&f);
}

static int give_all(void *userdata, char *buf, size_t size, size_t *ret_len)
{
	size_t *left = userdata;

	*ret_len = *left < size ? *left : size;
	memset(buf, 'x', *ret_len);
	*left -= *ret_len;
	return ABX_OK;
}

Test(client_files, a_packed_write_says_so_and_is_small)
{
	static const fake_answer answers[] = {
		{ .method = "POST", .status = 200, .body = "[]" }, { 0 }
	};
	abx_file_options o = ABX_FILE_OPTIONS_INIT;
	size_t left = 8u << 20;
	fixture f;

	fixture_up(&f, answers);
	o.gzip = 1;
	cr_assert(abx_file_write(f.sandbox, "/f", "hello\n", 6, &o, &f.err) == ABX_OK,
		  "%s", abx_error_message(f.err));
	expect_seen(&f, 0, "content-encoding: gzip\n");
	expect_seen(&f, 0, "\n\n\x1f\x8b\x08");
	cr_assert(abx_file_write(f.sandbox, "/f", "", 0, &o, &f.err) == ABX_OK);
	o.content_length = (int64_t)left;
	cr_assert(abx_file_write_stream(f.sandbox, "/f", &o, give_all, &left, &f.err) ==
		  ABX_OK);
	cr_expect(left == 0 && fake_server_body_bytes(f.server) < 100000);
	fixture_down(&f);
}

Test(client_files, compose_names_sources_and_destination)
{
	static const fake_answer answers[] = {
		{ .method = "POST",
		  .path = "/files/compose",
		  .status = 200,
		  .body = "{\"path\":\"/d\",\"name\":\"d\",\"type\":\"file\"}",
		  .times = 1 },
		{ .status = 404,
		  .body = "{\"code\":404,\"message\":\"source file not found: /b\"}" },
		{ 0 },
	};
	const char *const sources[] = { "/a", "/b", NULL };
	const char *const none[] = { NULL };
	abx_file_options o = ABX_FILE_OPTIONS_INIT;
	fixture f;

	fixture_up(&f, answers);
	o.user = "root";
	cr_assert(abx_file_compose(f.sandbox, sources, "/d", &o, &f.err) == ABX_OK, "%s",
		  abx_error_message(f.err));
	expect_seen(&f, 0, "\"source_paths\":[\"/a\",\"/b\"]");
	expect_seen(&f, 0, "\"destination\":\"/d\"");
	expect_seen(&f, 0, "\"username\":\"root\"");
	expect_error(&f, abx_file_compose(f.sandbox, sources, "/d", NULL, &f.err),
		     ABX_ENOTFOUND, "compose /d in sandbox sb1");
	expect_error(&f, abx_file_compose(f.sandbox, none, "/d", NULL, &f.err),
		     ABX_EINVAL, "no sources");
	expect_error(&f, abx_file_compose(f.sandbox, sources, "", NULL, &f.err),
		     ABX_EINVAL, "empty");
	expect_error(&f, abx_file_compose(NULL, sources, "/d", NULL, &f.err), ABX_EINVAL,
		     "NULL");
	fixture_down(&f);
}

Test(client_files, urls_are_signed_with_the_token)
{
	static const fake_answer answers[] = {
		{ .path = "/e2b/v2/sandboxes/sb1/connect",
		  .status = 200,
		  .body = "{\"sandboxID\":\"sb1\",\"envdAccessToken\":\"secret\"}" },
		{ 0 },
	};
	abx_file_url_options o = ABX_FILE_URL_OPTIONS_INIT;
	char *url = NULL, *expected = NULL;
	fixture f;

	fixture_up(&f, answers);
	cr_assert(abx_file_get_download_url(f.sandbox, "/a b", NULL, &url, &f.err) ==
		  ABX_OK);
	cr_expect(strstr(url, "/sandboxes/sb1/49983/files?path=%2Fa%20b") != NULL, "%s",
		  url);
	cr_expect(strstr(url, "signature") == NULL);
	abx_free(url);
	o.expires_in_ms = 1;
	expect_error(&f, abx_file_get_download_url(f.sandbox, "/f", &o, &url, &f.err),
		     ABX_EINVAL, "no access token");
	cr_assert(abx_sandbox_resume(f.sandbox, NULL, &f.err) == 0);
	cr_assert(abx_file_get_download_url(f.sandbox, "/f", NULL, &url, &f.err) ==
		  ABX_OK);
	/* printf '%s' /f:read::secret | openssl sha256 -binary | base64 */
	expected = strstr(url, "&signature=v1_");
	cr_expect(expected && strcmp(expected,
				     "&signature=v1_M62uapD3sdWchwnN2cfWbiXCdykp1Xl4%2FO%"
				     "2FJaezCid4") == 0,
		  "%s", url);
	abx_free(url);
	o.user = "root";
	o.expires_in_ms = 60000;
	cr_assert(abx_file_get_upload_url(f.sandbox, "/f", &o, &url, &f.err) == ABX_OK);
	cr_expect(strstr(url, "?path=%2Ff&username=root&signature=v1_") != NULL);
	cr_expect(strstr(url, "&signature_expiration=") != NULL);
	abx_free(url);
	expect_error(&f, abx_file_get_upload_url(f.sandbox, "", &o, &url, &f.err),
		     ABX_EINVAL, "empty");
	expect_error(&f, abx_file_get_upload_url(NULL, "/f", &o, &url, &f.err),
		     ABX_EINVAL, "NULL");
	fixture_down(&f);
}
