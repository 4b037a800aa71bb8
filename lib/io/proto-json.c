/*
 * proto-json.c - protobuf-c messages to proto3 JSON, written straight into a buffer.
 *
 * Strings go through json-c, so escaping has one author; base64 is encoded in place, as
 * output of commands is the bulk of what passes here.
 */
#include "io/proto-json.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <time.h>

#include <openssl/evp.h>

#include "base/alloc.h"
#include "io/json.h"

static int print_message(const ProtobufCMessage *msg, abx__buf *buf);

static int print_string(const char *s, abx__buf *buf)
{
	json_object *value = json_object_new_string(s ? s : "");
	int r;

	if (!value)
		return ABX_ENOMEM;
	r = abx__json_print(value, buf);
	json_object_put(value);
	return r;
}

static int print_bytes(const ProtobufCBinaryData *bytes, abx__buf *buf)
{
	int r;

	if (bytes->len > INT_MAX / 2)
		return ABX_ETOOBIG;
	r = abx__buf_reserve(buf, (bytes->len + 2) / 3 * 4 + 2);
	if (r < 0)
		return r;
	buf->data[buf->len++] = '"';
	if (bytes->len)
		buf->len += (size_t)EVP_EncodeBlock((unsigned char *)buf->data + buf->len,
						    bytes->data, (int)bytes->len);
	return abx__buf_addc(buf, '"');
}

static int print_name(const char *name, abx__buf *buf)
{
	int r = abx__buf_addc(buf, '"');

	for (; r >= 0 && *name; name++) {
		char c = *name;

		if (c == '_' && name[1]) {
			name++;
			c = *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A')
							 : *name;
		}
		r = abx__buf_addc(buf, c);
	}
	return r < 0 ? r : abx__buf_adds(buf, "\":");
}

static int print_real(double value, abx__buf *buf)
{
	if (value != value)
		return abx__buf_adds(buf, "\"NaN\"");
	if (value > 1.7976931348623157e308 || value < -1.7976931348623157e308)
		return abx__buf_adds(buf, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
	return abx__buf_addf(buf, "%.17g", value);
}

static int print_enum(const ProtobufCEnumDescriptor *desc, int value, abx__buf *buf)
{
	const ProtobufCEnumValue *known =
		protobuf_c_enum_descriptor_get_value(desc, value);

	return known ? abx__buf_addf(buf, "\"%s\"", known->name)
		     : abx__buf_addf(buf, "%d", value);
}

static int print_value(const ProtobufCFieldDescriptor *field, const void *p,
		       abx__buf *buf)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
		return print_string(*(char *const *)p, buf);
	case PROTOBUF_C_TYPE_BYTES:
		return print_bytes(p, buf);
	case PROTOBUF_C_TYPE_MESSAGE:
		return print_message(*(ProtobufCMessage *const *)p, buf);
	case PROTOBUF_C_TYPE_ENUM:
		return print_enum(field->descriptor, *(const int *)p, buf);
	case PROTOBUF_C_TYPE_BOOL:
		return abx__buf_adds(buf,
				     *(const protobuf_c_boolean *)p ? "true" : "false");
	case PROTOBUF_C_TYPE_FLOAT:
		return print_real((double)*(const float *)p, buf);
	case PROTOBUF_C_TYPE_DOUBLE:
		return print_real(*(const double *)p, buf);
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		return abx__buf_addf(buf, "%" PRIu32, *(const uint32_t *)p);
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		return abx__buf_addf(buf, "\"%" PRIu64 "\"", *(const uint64_t *)p);
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		return abx__buf_addf(buf, "\"%" PRId64 "\"", *(const int64_t *)p);
	default:
		return abx__buf_addf(buf, "%" PRId32, *(const int32_t *)p);
	}
}

static bool is_default(const ProtobufCFieldDescriptor *field, const void *p)
{
	static const char zeros[8];
	const char *s;

	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
		s = *(char *const *)p;
		return !s || !*s;
	case PROTOBUF_C_TYPE_BYTES:
		return ((const ProtobufCBinaryData *)p)->len == 0;
	case PROTOBUF_C_TYPE_MESSAGE:
		return *(void *const *)p == NULL;
	default:
		return memcmp(p, zeros, abx__proto_element_size(field)) == 0;
	}
}

static int print_map_entry(const ProtobufCMessage *entry, abx__buf *buf)
{
	const ProtobufCFieldDescriptor *fields = entry->descriptor->fields;
	int r = print_string(*(char *const *)((const char *)entry + fields[0].offset),
			     buf);

	if (r < 0)
		return r;
	r = abx__buf_addc(buf, ':');
	return r < 0 ? r
		     : print_value(&fields[1], (const char *)entry + fields[1].offset,
				   buf);
}

static int print_repeated(const ProtobufCFieldDescriptor *field, const char *base,
			  abx__buf *buf)
{
	size_t count = *(const size_t *)(base + field->quantifier_offset);
	const char *items = *(char *const *)(base + field->offset);
	bool map = abx__proto_is_map(field);
	int r = abx__buf_addc(buf, map ? '{' : '[');

	for (size_t i = 0; r >= 0 && i < count; i++) {
		const char *item = items + i * abx__proto_element_size(field);

		r = i ? abx__buf_addc(buf, ',') : ABX_OK;
		if (r >= 0)
			r = map ? print_map_entry(*(ProtobufCMessage *const *)item, buf)
				: print_value(field, item, buf);
	}
	return r < 0 ? r : abx__buf_addc(buf, map ? '}' : ']');
}

static bool is_present(const ProtobufCFieldDescriptor *field, const char *base)
{
	if (field->label == PROTOBUF_C_LABEL_REPEATED)
		return *(const size_t *)(base + field->quantifier_offset) > 0;
	if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		return *(const uint32_t *)(base + field->quantifier_offset) == field->id;
	return !is_default(field, base + field->offset);
}

/* RFC 3339 with 0, 3, 6 or 9 digits of fraction, as the mapping asks. */
static int print_timestamp(const ProtobufCMessage *msg, abx__buf *buf)
{
	const ProtobufCFieldDescriptor *fields = msg->descriptor->fields;
	int64_t seconds = *(const int64_t *)((const char *)msg + fields[0].offset);
	int32_t nanos = *(const int32_t *)((const char *)msg + fields[1].offset);
	time_t when = seconds;
	struct tm tm;
	int r;

	if (seconds < -62135596800 || seconds > 253402300799 || nanos < 0 ||
	    nanos > 999999999 || !gmtime_r(&when, &tm))
		return ABX_EINVAL;
	r = abx__buf_addf(buf, "\"%04d-%02d-%02dT%02d:%02d:%02d", tm.tm_year + 1900,
			  tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
	if (r >= 0 && nanos)
		r = nanos % 1000000 == 0 ? abx__buf_addf(buf, ".%03d", nanos / 1000000)
		    : nanos % 1000 == 0  ? abx__buf_addf(buf, ".%06d", nanos / 1000)
					 : abx__buf_addf(buf, ".%09d", nanos);
	return r < 0 ? r : abx__buf_adds(buf, "Z\"");
}

static int print_message(const ProtobufCMessage *msg, abx__buf *buf)
{
	const ProtobufCMessageDescriptor *desc = msg->descriptor;
	const char *base = (const char *)msg;
	bool first = true;
	int r;

	if (abx__proto_is_timestamp(desc))
		return print_timestamp(msg, buf);
	r = abx__buf_addc(buf, '{');
	for (unsigned i = 0; r >= 0 && i < desc->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &desc->fields[i];

		if (!is_present(field, base))
			continue;
		r = first ? ABX_OK : abx__buf_addc(buf, ',');
		first = false;
		if (r >= 0)
			r = print_name(field->name, buf);
		if (r >= 0)
			r = field->label == PROTOBUF_C_LABEL_REPEATED
				    ? print_repeated(field, base, buf)
				    : print_value(field, base + field->offset, buf);
	}
	return r < 0 ? r : abx__buf_addc(buf, '}');
}

int abx__proto_json_print(const ProtobufCMessage *msg, abx__buf *buf)
{
	size_t before = buf->len;
	int r = print_message(msg, buf);

	if (r < 0 && buf->data) {
		buf->len = before;
		buf->data[before] = '\0';
	}
	return r;
}
