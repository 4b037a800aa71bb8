/*
 * proto-pack.c - protobuf bytes to messages and back: protobuf-c does the work, this file
 * adds what it lets pass.
 *
 * protobuf-c copies a string with a NUL inside and never tells, and does not look at
 * UTF-8; so the bytes are walked by descriptor first. The walk also bounds the depth.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "io/proto-json.h"

#define MAX_DEPTH 64

static void *alloc_bytes(void *data, size_t size)
{
	(void)data;
	return abx__malloc(size);
}

static void free_bytes(void *data, void *p)
{
	(void)data;
	abx__free(p);
}

ProtobufCAllocator abx__proto_allocator = { .alloc = alloc_bytes, .free = free_bytes };

void abx__proto_free(ProtobufCMessage *msg)
{
	if (msg)
		protobuf_c_message_free_unpacked(msg, &abx__proto_allocator);
}

bool abx__proto_is_map(const ProtobufCFieldDescriptor *field)
{
	const ProtobufCMessageDescriptor *entry = field->descriptor;

	return field->label == PROTOBUF_C_LABEL_REPEATED &&
	       field->type == PROTOBUF_C_TYPE_MESSAGE &&
	       abx__str_ends(entry->short_name, "Entry") && entry->n_fields == 2 &&
	       strcmp(entry->fields[0].name, "key") == 0 &&
	       strcmp(entry->fields[1].name, "value") == 0;
}

bool abx__proto_is_timestamp(const ProtobufCMessageDescriptor *desc)
{
	return strcmp(desc->name, "google.protobuf.Timestamp") == 0;
}

size_t abx__proto_element_size(const ProtobufCFieldDescriptor *field)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return 8;
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	default: /* 32-bit numbers, bool and enum */
		return 4;
	}
}

/* One base-128 number; 0 when it is cut off or too long. */
static size_t get_varint(const uint8_t *p, size_t len, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < len && i < 10; i++) {
		value |= (uint64_t)(p[i] & 0x7f) << (7 * i);
		if (!(p[i] & 0x80)) {
			*ret = value;
			return i + 1;
		}
	}
	return 0;
}

static int check_message(const ProtobufCMessageDescriptor *desc, const uint8_t *p,
			 size_t len, int depth, abx_error **reterr);

static int check_block(const ProtobufCFieldDescriptor *field, const uint8_t *p,
		       size_t len, int depth, abx_error **reterr)
{
	if (field && field->type == PROTOBUF_C_TYPE_STRING) {
		if (memchr(p, '\0', len))
			return abx__error_set(reterr, ABX_EINVAL,
					      "%s: a NUL byte is not allowed",
					      field->name);
		if (!abx__utf8_is_valid((const char *)p, len))
			return abx__error_set(reterr, ABX_EINVAL, "%s: not valid UTF-8",
					      field->name);
	}
	if (field && field->type == PROTOBUF_C_TYPE_MESSAGE)
		return check_message(field->descriptor, p, len, depth + 1, reterr);
	return ABX_OK;
}

static int check_message(const ProtobufCMessageDescriptor *desc, const uint8_t *p,
			 size_t len, int depth, abx_error **reterr)
{
	if (depth > MAX_DEPTH)
		return abx__error_set(reterr, ABX_EINVAL, "%s: nested too deep",
				      desc->name);
	while (len > 0) {
		uint64_t key, size = 0;
		size_t n = get_varint(p, len, &key);

		if (n == 0 || key >> 3 == 0 || key > UINT32_MAX)
			return abx__error_set(reterr, ABX_EINVAL, "%s: broken protobuf",
					      desc->name);
		p += n;
		len -= n;
		switch (key & 7) {
		case 0:
			n = get_varint(p, len, &size);
			size = 0;
			break;
		case 1:
		case 5:
			n = (key & 7) == 1 ? 8 : 4;
			break;
		case 2:
			n = get_varint(p, len, &size);
			break;
		default:
			n = 0;
		}
		if (n == 0 || n > len || size > len - n)
			return abx__error_set(reterr, ABX_EINVAL, "%s: broken protobuf",
					      desc->name);
		p += n;
		len -= n;
		if ((key & 7) == 2) {
			const ProtobufCFieldDescriptor *field =
				protobuf_c_message_descriptor_get_field(
					desc, (unsigned)(key >> 3));
			int r = check_block(field, p, size, depth, reterr);

			if (r < 0)
				return r;
			p += size;
			len -= size;
		}
	}
	return ABX_OK;
}

int abx__proto_unpack(const ProtobufCMessageDescriptor *desc, const void *data,
		      size_t len, ProtobufCMessage **ret, abx_error **reterr)
{
	ProtobufCMessage *msg;
	int r = check_message(desc, data, len, 0, reterr);

	if (r < 0)
		return r;
	msg = protobuf_c_message_unpack(desc, &abx__proto_allocator, len, data);
	if (!msg)
		return abx__error_set(reterr, ABX_EINVAL, "%s: broken protobuf",
				      desc->name);
	*ret = msg;
	return ABX_OK;
}

int abx__proto_pack(const ProtobufCMessage *msg, abx__buf *buf)
{
	size_t size = protobuf_c_message_get_packed_size(msg);
	int r = abx__buf_reserve(buf, size);

	if (r < 0)
		return r;
	buf->len += protobuf_c_message_pack(msg, (uint8_t *)buf->data + buf->len);
	buf->data[buf->len] = '\0';
	return ABX_OK;
}
