/*
 * test-proto-json.c - proto3 JSON and protobuf bytes against envd's own messages.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include <envd/filesystem.pb-c.h>
#include <envd/process.pb-c.h>

#include "base/alloc.h"
#include "base/error.h"
#include "io/proto-json.h"

static int parse(const ProtobufCMessageDescriptor *desc, const char *text,
		 ProtobufCMessage **ret, abx_error **reterr)
{
	return abx__proto_json_parse(desc, text, strlen(text), 0, ret, reterr);
}

/* JSON in, JSON out. */
static void expect_json(const ProtobufCMessageDescriptor *desc, const char *in,
			const char *out)
{
	ABX_CLEANUP(abx__proto_freep) ProtobufCMessage *msg = NULL;
	ABX_CLEANUP(abx__proto_freep) ProtobufCMessage *again = NULL;
	ABX_CLEANUP_BUF abx__buf json = ABX__BUF_INIT, bytes = ABX__BUF_INIT;

	cr_assert(parse(desc, in, &msg, NULL) == ABX_OK, "%s", in);
	cr_assert(abx__proto_json_print(msg, &json) == ABX_OK);
	cr_assert_str_eq(json.data, out);
	/* The same through the other codec. */
	cr_assert(abx__proto_pack(msg, &bytes) == ABX_OK);
	cr_assert(abx__proto_unpack(desc, bytes.data, bytes.len, &again, NULL) == ABX_OK);
	abx__buf_clear(&json);
	cr_assert(abx__proto_json_print(again, &json) == ABX_OK);
	cr_assert_str_eq(json.data, out);
}

static void expect_error(const ProtobufCMessageDescriptor *desc, const char *in,
			 const char *text)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ProtobufCMessage *msg = NULL;

	cr_assert(parse(desc, in, &msg, &err) == ABX_EINVAL, "%s", in);
	cr_assert(strstr(abx_error_message(err), text), "%s: %s", in,
		  abx_error_message(err));
	cr_assert_null(msg);
}

#define START &process__start_request__descriptor
#define CONFIG &process__process_config__descriptor
#define SELECT &process__process_selector__descriptor
#define ENTRY &filesystem__entry_info__descriptor
#define END &process__process_event__end_event__descriptor
#define INPUT &process__process_input__descriptor
#define SIGNAL &process__send_signal_request__descriptor

Test(guest_proto_json, messages_come_back_as_they_went)
{
	expect_json(START, "{}", "{}");
	expect_json(CONFIG,
		    "{\"cmd\":\"a\",\"args\":[\"b\",\"\"],\"envs\":{\"K\":\"v\",\"L\":"
		    "\"\"},\"cwd\":\"\"}",
		    "{\"cmd\":\"a\",\"args\":[\"b\",\"\"],\"envs\":{\"K\":\"v\",\"L\":"
		    "\"\"},\"cwd\":\"\"}");
	expect_json(START, "{\"process\":{\"cmd\":\"x\"},\"stdin\":false}",
		    "{\"process\":{\"cmd\":\"x\"},\"stdin\":false}");
	expect_json(SELECT, "{\"pid\":4294967295}", "{\"pid\":4294967295}");
	expect_json(SELECT, "{\"pid\":\"7\"}", "{\"pid\":7}");
	expect_json(SELECT, "{\"pid\":7.0}", "{\"pid\":7}");
	expect_json(END, "{\"exitCode\":-1}", "{\"exitCode\":-1}");
	expect_json(END, "{\"exit_code\":3,\"exited\":true}",
		    "{\"exitCode\":3,\"exited\":true}");
	expect_json(INPUT, "{\"stdin\":\"\"}", "{\"stdin\":\"\"}");
}

Test(guest_proto_json, defaults_null_and_unknown_fields_are_left_out)
{
	expect_json(END,
		    "{\"exitCode\":0,\"exited\":false,\"status\":\"\",\"error\":null}",
		    "{}");
	expect_json(CONFIG,
		    "{\"cmd\":null,\"args\":null,\"later\":{\"x\":[1]},\"envs\":{}}",
		    "{}");
}

Test(guest_proto_json, wide_numbers_enums_and_times)
{
	expect_json(ENTRY,
		    "{\"name\":\"n\",\"type\":2,\"size\":\"-9223372036854775808\","
		    "\"modified_time\":\"2026-01-02T03:04:05.000006Z\",\"symlinkTarget\":"
		    "\"\"}",
		    "{\"name\":\"n\",\"type\":\"FILE_TYPE_DIRECTORY\",\"size\":\"-"
		    "9223372036854775808\","
		    "\"modifiedTime\":\"2026-01-02T03:04:05.000006Z\",\"symlinkTarget\":"
		    "\"\"}");
	expect_json(ENTRY, "{\"size\":12,\"modifiedTime\":\"1969-12-31T23:59:59.5Z\"}",
		    "{\"size\":\"12\",\"modifiedTime\":\"1969-12-31T23:59:59.500Z\"}");
	expect_json(SIGNAL, "{\"signal\":\"SIGNAL_SIGTERM\"}",
		    "{\"signal\":\"SIGNAL_SIGTERM\"}");
	expect_json(SIGNAL, "{\"signal\":77}", "{\"signal\":77}");
}

Test(guest_proto_json, base64_is_read_in_every_dress)
{
	expect_json(INPUT, "{\"stdin\":\"+/8=\"}", "{\"stdin\":\"+/8=\"}");
	expect_json(INPUT, "{\"stdin\":\"-_8\"}", "{\"stdin\":\"+/8=\"}");
	expect_json(INPUT, "{\"stdin\":\"-_8=\"}", "{\"stdin\":\"+/8=\"}");
	expect_json(INPUT, "{\"stdin\":\"AAEC\"}", "{\"stdin\":\"AAEC\"}");
	expect_error(INPUT, "{\"stdin\":\"!!!!\"}", "base64");
	expect_error(INPUT, "{\"stdin\":\"A\"}", "base64");
}

Test(guest_proto_json, wrong_shapes_name_the_field)
{
	expect_error(CONFIG, "[]", "process.ProcessConfig");
	expect_error(CONFIG, "3", "JSON object");
	expect_error(CONFIG, "", "JSON");
	expect_error(CONFIG, "{\"cmd\":3}", "cmd");
	expect_error(CONFIG, "{\"cmd\":\"a\\u0000b\"}", "cmd");
	expect_error(CONFIG, "{\"args\":\"x\"}", "args");
	expect_error(CONFIG, "{\"args\":[null]}", "args");
	expect_error(CONFIG, "{\"args\":[\"a\",2]}", "args");
	expect_error(CONFIG, "{\"envs\":[]}", "envs");
	expect_error(CONFIG, "{\"envs\":{\"A\":1}}", "envs[\"A\"]");
	expect_error(CONFIG, "{\"envs\":{\"A\":null}}", "envs");
	expect_error(START, "{\"stdin\":\"yes\"}", "stdin");
	expect_error(START, "{\"process\":[]}", "process.ProcessConfig");
	expect_error(SELECT, "{\"pid\":-1}", "pid");
	expect_error(SELECT, "{\"pid\":4294967296}", "pid");
	expect_error(SELECT, "{\"pid\":1.5}", "pid");
	expect_error(SELECT, "{\"pid\":1e3}", "pid");
	expect_error(SELECT, "{\"pid\":1,\"tag\":\"x\"}", "oneof");
	expect_error(END, "{\"exit_code\":1,\"exitCode\":2}", "given twice");
	expect_error(SIGNAL, "{\"signal\":\"SIGNAL_NOPE\"}", "SIGNAL_NOPE");
	expect_error(ENTRY, "{\"modifiedTime\":\"soon\"}", "RFC 3339");
	expect_error(ENTRY, "{\"size\":\"9223372036854775808\"}", "size");
}

Test(guest_proto_json, protobuf_bytes_are_checked_before_they_are_read)
{
	static const struct {
		const char *bytes;
		size_t len;
		int r;
	} rows[] = {
		{ "\x0a\x01x", 3, ABX_OK },
		{ "\x0a\x02x", 3, ABX_EINVAL },           /* cut off */
		{ "\x0a\x03x\0y", 5, ABX_EINVAL },        /* a NUL */
		{ "\x0a\x01\xff", 3, ABX_EINVAL },        /* not UTF-8 */
		{ "\x1a\x04\x0a\x02K\0", 6, ABX_EINVAL }, /* a NUL in a map's key */
		{ "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, ABX_EINVAL },
		{ "\x03", 1, ABX_EINVAL }, /* a group */
		{ "\x00", 1, ABX_EINVAL },
		{ "\xfa\x01\x01z", 4, ABX_OK }, /* an unknown field */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ProtobufCMessage *msg = NULL;
		int r = abx__proto_unpack(CONFIG, rows[i].bytes, rows[i].len, &msg, NULL);

		cr_assert(r == rows[i].r, "row %zu: %d", i, r);
		abx__proto_free(msg);
	}
}

Test(guest_proto_json, running_out_of_memory_leaks_nothing)
{
	static const char text[] = "{\"process\":{\"cmd\":\"x\",\"args\":[\"a\",\"b\"],"
				   "\"envs\":{\"A\":\"b\"},"
				   "\"cwd\":\"/\"},\"tag\":\"t\"}";
	int r = ABX_ENOMEM;

	for (unsigned n = 0; r != ABX_OK; n++) {
		ProtobufCMessage *msg = NULL;

		abx__test_fail_alloc_after(n);
		r = parse(START, text, &msg, NULL);
		abx__test_alloc_reset();
		cr_assert(r == ABX_OK || r == ABX_ENOMEM, "allocation %u gave %d", n, r);
		abx__proto_free(msg);
	}
}
