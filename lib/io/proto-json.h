/*
 * proto-json.h - protobuf-c messages as proto3 JSON and as protobuf bytes, by descriptor,
 * for any message type.
 *
 * JSON: lowerCamel names out, camel and snake in; defaults omitted, members of a oneof
 * written whenever set; int64 as string; bytes in base64 (either alphabet and padding or
 * not, in); enums as names (numbers accepted); maps with string keys as objects;
 * google.protobuf.Timestamp as RFC 3339 (in: to the microsecond); unknown fields ignored;
 * null means absent.
 *
 * Both parsers refuse a string with a NUL byte or broken UTF-8: C code would see it cut
 * or pass it on.
 */
#ifndef ABX_IO_PROTO_JSON_H
#define ABX_IO_PROTO_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include <agentbox/error.h>
#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"
#include "base/cleanup.h"

/* ABX_EINVAL names the field, ABX_ETOOBIG over `max_bytes` (0: the JSON reader's
   default), ABX_ENOMEM. Give the message back with abx__proto_free(). */
int abx__proto_json_parse(const ProtobufCMessageDescriptor *desc, const char *text,
			  size_t len, size_t max_bytes, ProtobufCMessage **ret,
			  abx_error **reterr);
int abx__proto_json_print(const ProtobufCMessage *msg, abx__buf *buf);

int abx__proto_unpack(const ProtobufCMessageDescriptor *desc, const void *data,
		      size_t len, ProtobufCMessage **ret, abx_error **reterr);
int abx__proto_pack(const ProtobufCMessage *msg, abx__buf *buf);

void abx__proto_free(ProtobufCMessage *msg);
/* The allocator messages of this header live on; set strings and arrays of a message with
 * abx__malloc(). */
extern ProtobufCAllocator abx__proto_allocator;

ABX_DEFINE_FREEP(abx__proto_freep, ProtobufCMessage, abx__proto_free)

/* Shared by the two directions. */
bool abx__proto_is_map(const ProtobufCFieldDescriptor *field);
bool abx__proto_is_timestamp(const ProtobufCMessageDescriptor *desc);
size_t abx__proto_element_size(const ProtobufCFieldDescriptor *field);

#endif
