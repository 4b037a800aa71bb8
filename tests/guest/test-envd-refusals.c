/*
 * Every refusal of envd.md that this daemon can give, with its exact body
 * (tests/refusals.md has the list). '@' stands for the scratch directory, which holds a
 * file f and a link loop to itself.
 */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "envd-expect.h"

static envd_child child;

static void start(void)
{
	ABX_CLEANUP(abx__freep) char *loop = NULL;

	envd_child_start(&child, (const char *const[]){ "-isnotfc", NULL });
	envd_expect(&child, "POST", "/files?path=@/f", OCTETS, "x", 200, NULL);
	loop = envd_expand(&child, "@/loop");
	cr_assert_eq(symlink("loop", loop), 0);
}

static void stop(void)
{
	envd_child_stop(&child);
}

TestSuite(envd_refusals, .init = start, .fini = stop, .timeout = 60);

typedef struct row {
	const char *method, *target, *headers, *body;
	int status;
	const char *message;
} row;

#define NO_USER "error looking up user 'nosuch': unknown user nosuch"
#define NO_HOME "cannot expand user-specific home dir"
#define CLOSED                                                                       \
	"unauthorized access, please provide a valid access token or method signing" \
	" if supported"
#define PART                                                      \
	"--XX\r\nContent-Disposition: form-data; name=\"file\"; " \
	"filename=\"a\"\r\n\r\n1\r\n"
/* Section 4: {"code":STATUS,"message":"..."} */
static const row plain[] = {
	{ "GET", "/files?path=@/none", NULL, NULL, 404, "path '@/none' does not exist" },
	{ "GET", "/files?path=@", NULL, NULL, 400, "path '@' is a directory" },
	{ "GET", "/files?path=/dev/null", NULL, NULL, 400,
	  "path '/dev/null' is not a regular file" },
	{ "GET", "/files?path=~other/x", NULL, NULL, 400, NO_HOME },
	{ "GET", "/files?path=x%00y", NULL, NULL, 400,
	  "the path parameter is broken or holds a NUL byte" },
	{ "GET", "/files?path=@/f&username=nosuch", NULL, NULL, 401, NO_USER },
	{ "GET", "/files?path=@/f", "Accept-Encoding: identity;q=0\r\n", NULL, 406,
	  "error parsing Accept-Encoding: no acceptable encoding found, supported: "
	  "[gzip]" },
	{ "GET", "/files?path=@/f", "Range: bytes=10-\r\n", NULL, 416,
	  "invalid range: failed to overlap" },
	{ "GET", "/files?path=@/f&signature_expiration=x", NULL, NULL, 400,
	  "signature_expiration: expected a number of seconds" },
	{ "POST", "/files", OCTETS, "x", 400,
	  "path query parameter is required for raw body upload" },
	{ "POST", "/files?path=@/g", "Content-Type: text/plain\r\n", "x", 400,
	  "unsupported content type: text/plain" },
	{ "POST", "/files?path=@/g", NULL, "x", 400, "unsupported content type: " },
	{ "POST", "/files?path=@/g", OCTETS "Content-Encoding: br\r\n", "x", 400,
	  "error decompressing request body: unsupported Content-Encoding: br, "
	  "supported: [gzip]" },
	{ "POST", "/files?path=@", OCTETS, "x", 400, "path is a directory: @" },
	{ "POST", "/files?path=@/f/below", OCTETS, "x", 400, "path is a file: @/f" },
	{ "POST", "/files?path=@/g&username=nosuch", OCTETS, "x", 401, NO_USER },
	{ "POST", "/files?path=~other/x", OCTETS, "x", 400, NO_HOME },
	{ "POST", "/files?path=@/g", "Content-Type: multipart/form-data\r\n", "x", 400,
	  "the multipart content type has no usable boundary" },
	{ "POST", "/files?path=@/g", FORM, "nonsense", 500,
	  "error reading multipart body: it ends before its last boundary" },
	{ "POST", "/files?path=@/same", FORM, PART PART "--XX--\r\n", 400,
	  "you cannot upload multiple files to the same path '@/same' in one upload "
	  "request" },
	{ "POST", "/files/compose", JSON,
	  "{\"source_paths\":[\"@/f\"],\"destination\":\"@/x\",\"username\":\"nosuch\"}",
	  401, NO_USER },
	{ "POST", "/files/compose", JSON, "{\"source_paths\":[],\"destination\":\"@/x\"}",
	  400, "source_paths must not be empty" },
	{ "POST", "/files/compose", JSON, "{\"source_paths\":[\"@/f\"]}", 400,
	  "destination is required" },
	{ "POST", "/upgrade", NULL, "x", 501, "/upgrade is not supported yet" },
	{ "POST", "/freeze", NULL, "", 501, "/freeze is not supported yet" },
	{ "POST", "/unfreeze", NULL, "", 501, "/unfreeze is not supported yet" },
	{ "POST", "/collapse", NULL, "", 501, "/collapse is not supported yet" },
	{ "POST", "/fsfreeze", NULL, "", 501, "/fsfreeze is not supported yet" },
	{ "POST", "/fsthaw", NULL, "", 501, "/fsthaw is not supported yet" },
};

static void try_plain(const row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const row *r = &rows[i];

		envd_expect_error(&child, r->method, r->target, r->headers, r->body,
				  r->status, r->message);
	}
}

Test(envd_refusals, of_the_plain_endpoints)
{
	try_plain(plain, sizeof(plain) / sizeof(plain[0]));
	envd_expect(&child, "GET", "/files?path=@/g", NULL, NULL, 404, NULL);
	envd_expect(&child, "GET", "/files?path=@/f", NULL, NULL, 200, "x");
}

/* Sections 1, 5 and 6: no body, or a text. */
static const row bare[] = {
	{ "PUT", "/files?path=@/f", OCTETS, "x", 405, "" },
	{ "PATCH", "/health", NULL, NULL, 405, "" },
	{ "GET", "/init", NULL, NULL, 405, "" },
	{ "GET", "/nothing", NULL, NULL, 404, "404 page not found\n" },
	{ "GET", "/process.Process/List", NULL, NULL, 405, "" },
	{ "POST", "/process.Process/List", "Content-Type: text/plain\r\n", "{}", 415,
	  "" },
	{ "POST", "/process.Process/Start", JSON, "{}", 415, "" },
	{ "POST", "/process.Process/List", "Content-Type: application/connect+json\r\n",
	  "{}", 415, "" },
	{ "POST", "/process.Process/Nothing", JSON, "{}", 404, "404 page not found\n" },
	{ "POST", "/no.Such/Thing", JSON, "{}", 404, "404 page not found\n" },
	{ "POST", "/init", JSON, "nonsense", 400,
	  "JSON, line 1, byte 0: neither a string, a number, true, false nor null" },
	{ "POST", "/init", JSON, "{\"defaultUser\":7}", 400,
	  "defaultUser: string expected, not int" },
};

Test(envd_refusals, without_a_body_of_json)
{
	for (size_t i = 0; i < sizeof(bare) / sizeof(bare[0]); i++)
		envd_expect(&child, bare[i].method, bare[i].target, bare[i].headers,
			    bare[i].body, bare[i].status, bare[i].message);
}

/* Section 6: {"code":"CODE","message":"..."} with the status of the code. */
#define CONNECT(code, message) "{\"code\":\"" code "\",\"message\":\"" message "\"}"
#define P "/process.Process/"
#define F "/filesystem.Filesystem/"
#define PID_1 "process with pid 1 not found"
#define TAG_T "process with tag t not found"
#define NO_FILE "No such file or directory"

static const row unary[] = {
	{ "GET", "/envs", "Authorization: Basic bm9zdWNodXNlcjo=\r\n", NULL, 401,
	  CONNECT("unauthenticated", "invalid username: 'nosuchuser'") },
	{ "POST", P "List", JSON "Authorization: Basic bm9zdWNodXNlcjo=\r\n", "{}", 401,
	  CONNECT("unauthenticated", "invalid username: 'nosuchuser'") },
	{ "POST", P "List", JSON "Connect-Timeout-Ms: x\r\n", "{}", 400,
	  CONNECT("invalid_argument", "Connect-Timeout-Ms is not a number") },
	{ "POST", P "List", JSON "Content-Encoding: br\r\n", "{}", 501,
	  CONNECT("unimplemented", "unknown compression \\\"br\\\": supported encodings "
				   "are identity") },
	{ "POST", P "SendInput", JSON, "[1", 400,
	  CONNECT("invalid_argument",
		  "unmarshal message: JSON, line 1, byte 2: the text ends too early") },
	{ "POST", P "SendSignal", JSON, "{\"process\":{\"pid\":\"x\"}}", 400,
	  CONNECT("invalid_argument",
		  "unmarshal message: pid: expected an integer in range") },
	{ "POST", P "SendInput", JSON,
	  "{\"process\":{\"pid\":1},\"input\":{\"stdin\":\"eA==\"}}", 404,
	  CONNECT("not_found", PID_1) },
	{ "POST", P "SendInput", JSON,
	  "{\"process\":{\"tag\":\"t\"},\"input\":{\"stdin\":\"eA==\"}}", 404,
	  CONNECT("not_found", TAG_T) },
	{ "POST", P "SendInput", JSON, "{\"input\":{\"stdin\":\"eA==\"}}", 501,
	  CONNECT("unimplemented", "process selector is missing") },
	{ "POST", P "SendSignal", JSON, "{\"process\":{\"pid\":1},\"signal\":9}", 404,
	  CONNECT("not_found", PID_1) },
	{ "POST", P "CloseStdin", JSON, "{\"process\":{\"pid\":1}}", 404,
	  CONNECT("not_found", PID_1) },
	{ "POST", P "Update", JSON, "{\"process\":{\"tag\":\"t\"}}", 404,
	  CONNECT("not_found", TAG_T) },
	{ "POST", P "Update", JSON, "{}", 501,
	  CONNECT("unimplemented", "process selector is missing") },
	{ "POST", F "Stat", JSON, "{\"path\":\"@/none\"}", 404,
	  CONNECT("not_found", "file not found: lstat @/none: " NO_FILE) },
	{ "POST", F "Stat", JSON, "{\"path\":\"~x\"}", 400,
	  CONNECT("invalid_argument", NO_HOME) },
	{ "POST", F "Stat", JSON, "{\"path\":\"a\\u0000b\"}", 400,
	  CONNECT("invalid_argument",
		  "unmarshal message: path: expected a string without NUL bytes") },
	{ "POST", F "MakeDir", JSON, "{\"path\":\"@\"}", 409,
	  CONNECT("already_exists", "directory already exists: @") },
	{ "POST", F "MakeDir", JSON, "{\"path\":\"@/f\"}", 400,
	  CONNECT("invalid_argument",
		  "path already exists but it is not a directory: @/f") },
	{ "POST", F "MakeDir", JSON, "{\"path\":\"@/f/g\"}", 400,
	  CONNECT("invalid_argument", "path is a file: @/f") },
	{ "POST", F "MakeDir", JSON, "{\"path\":\"~x\"}", 400,
	  CONNECT("invalid_argument", NO_HOME) },
	{ "POST", F "Move", JSON, "{\"source\":\"@/none\",\"destination\":\"@/y\"}", 404,
	  CONNECT("not_found", "source file not found: lstat @/none: " NO_FILE) },
	{ "POST", F "Move", JSON, "{\"source\":\"~x\",\"destination\":\"@/y\"}", 400,
	  CONNECT("invalid_argument", NO_HOME) },
	{ "POST", F "Move", JSON, "{\"source\":\"@/f\",\"destination\":\"~x\"}", 400,
	  CONNECT("invalid_argument", NO_HOME) },
	{ "POST", F "ListDir", JSON, "{\"path\":\"@/none\"}", 404,
	  CONNECT("not_found", "directory not found: @/none: " NO_FILE) },
	{ "POST", F "ListDir", JSON, "{\"path\":\"@/f\"}", 400,
	  CONNECT("invalid_argument", "path is not a directory: @/f") },
	{ "POST", F "ListDir", JSON, "{\"path\":\"@/loop\"}", 400,
	  CONNECT("failed_precondition", "too many links: @/loop") },
	{ "POST", F "ListDir", JSON, "{\"path\":\"~x\"}", 400,
	  CONNECT("invalid_argument", NO_HOME) },
	{ "POST", F "Remove", JSON, "{\"path\":\"~x\"}", 400,
	  CONNECT("invalid_argument", NO_HOME) },
	{ "POST", F "CreateWatcher", JSON, "{\"path\":\"@/none\"}", 404,
	  CONNECT("not_found", "path @/none not found: stat @/none: " NO_FILE) },
	{ "POST", F "CreateWatcher", JSON, "{\"path\":\"@/f\"}", 400,
	  CONNECT("invalid_argument", "path @/f is not a directory") },
	{ "POST", F "CreateWatcher", JSON, "{\"path\":\"~x\"}", 400,
	  CONNECT("invalid_argument", NO_HOME) },
	{ "POST", F "GetWatcherEvents", JSON, "{\"watcherId\":\"wnone\"}", 404,
	  CONNECT("not_found", "watcher with id wnone not found") },
	{ "POST", F "RemoveWatcher", JSON, "{\"watcherId\":\"wnone\"}", 404,
	  CONNECT("not_found", "watcher with id wnone not found") },
};

Test(envd_refusals, of_unary_calls)
{
	for (size_t i = 0; i < sizeof(unary) / sizeof(unary[0]); i++)
		envd_expect(&child, unary[i].method, unary[i].target, unary[i].headers,
			    unary[i].body, unary[i].status, unary[i].message);
}

/* A stream is 200 and tells in its one envelope, whose flags are "end of stream". */
static const struct {
	const char *method, *body, *message;
} streams[] = {
	{ P "Start", "{}", CONNECT("invalid_argument", "process is missing") },
	{ P "Start", "{\"process\":{\"cmd\":\"\"}}",
	  CONNECT("invalid_argument", "cmd is empty") },
	{ P "Start", "{\"process\":{\"cmd\":\"/no/such\"}}",
	  CONNECT("invalid_argument",
		  "cannot run '/no/such': no such file in this image") },
	{ P "Start", "{\"process\":{\"cmd\":\"true\",\"cwd\":\"/no/dir\"}}",
	  CONNECT("invalid_argument", "cwd '/no/dir' does not exist") },
	{ P "Start", "{\"process\":{\"cmd\":\"true\",\"cwd\":\"@/f\"}}",
	  CONNECT("invalid_argument", "cwd '@/f' is not a directory") },
	{ P "Start", "{\"process\":{\"cmd\":\"true\",\"cwd\":\"~o\"}}",
	  CONNECT("invalid_argument", NO_HOME) },
	{ P "Connect", "{\"process\":{\"pid\":1}}", CONNECT("not_found", PID_1) },
	{ P "Connect", "{\"process\":{\"tag\":\"t\"}}", CONNECT("not_found", TAG_T) },
	{ P "Connect", "{}", CONNECT("unimplemented", "process selector is missing") },
	{ P "StreamInput", "{\"data\":{\"input\":{\"stdin\":\"eA==\"}}}",
	  CONNECT("invalid_argument", "the first message must be start") },
	{ F "WatchDir", "{\"path\":\"@/none\"}",
	  CONNECT("not_found", "path @/none not found: stat @/none: " NO_FILE) },
	{ F "WatchDir", "{\"path\":\"@/f\"}",
	  CONNECT("invalid_argument", "path @/f is not a directory") },
	{ F "WatchDir", "{\"path\":\"~x\"}", CONNECT("invalid_argument", NO_HOME) },
};

Test(envd_refusals, of_streams)
{
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		ABX_CLEANUP(abx__freep)
		char *body = envd_expand(&child, streams[i].body);
		ABX_CLEANUP(abx__freep)
		char *message = envd_expand(&child, streams[i].message);
		ABX_CLEANUP(abx__freep)
		char *want = abx__strf("{\"error\":%s}", message);
		envd_answer a = envd_child_stream(&child, streams[i].method, NULL, body);
		const char *data = abx__buf_str(&a.body);

		cr_expect(a.status == 200 && a.is_whole, "row %zu: %d", i, a.status);
		cr_assert(a.body.len > 5 && data[0] == 2, "row %zu", i);
		cr_expect_str_eq(data + 5, want, "row %zu: %s", i, data + 5);
		envd_answer_done(&a);
	}
}

/* Section 2 and 4.1, once a token is set. */
static const row closed[] = {
	{ "GET", "/envs", NULL, NULL, 401, CLOSED },
	{ "GET", "/metrics", "X-Access-Token: no\r\n", NULL, 401, CLOSED },
	{ "POST", P "List", JSON, "{}", 401, CLOSED },
	{ "POST", "/files/compose", JSON, "{}", 401, CLOSED },
	{ "GET", "/files?path=@/f", NULL, NULL, 401,
	  "missing signature query parameter" },
	{ "POST", "/files?path=@/f", OCTETS, "y", 401,
	  "missing signature query parameter" },
	{ "GET", "/files?path=@/f&signature=v1_a", NULL, NULL, 401, "invalid signature" },
	{ "POST", "/files?path=@/f&signature=v1_a", OCTETS, "y", 401,
	  "invalid signature" },
	{ "GET", "/files?path=@/f", "X-Access-Token: no\r\n", NULL, 401,
	  "access token present in header but does not match" },
	{ "POST", "/files?path=@/f", OCTETS "X-Access-Token: no\r\n", "y", 401,
	  "access token present in header but does not match" },
};

Test(envd_refusals, without_the_token)
{
	envd_expect(&child, "POST", "/init", JSON, "{\"accessToken\":\"secret\"}", 204,
		    NULL);
	try_plain(closed, sizeof(closed) / sizeof(closed[0]));
	envd_expect(&child, "POST", "/init", JSON, "{}", 401,
		    "access token reset not authorized");
	envd_expect(&child, "POST", "/init", NULL, "", 401,
		    "access token reset not authorized");
	envd_expect(&child, "POST", "/init", JSON, "{\"accessToken\":\"other\"}", 401,
		    "access token validation failed");
	envd_expect(&child, "GET", "/files?path=@/f", "X-Access-Token: secret\r\n", NULL,
		    200, "x");
}
