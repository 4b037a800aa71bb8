/*
 * proto-json-parse.c - proto3 JSON to protobuf-c messages.
 *
 * Every value is written straight into the message, so that a half-read one is given back
 * by abx__proto_free() like any other.
 */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "io/json.h"
#include "io/proto-json.h"

static int read_message(const ProtobufCMessageDescriptor *desc, json_object *obj,
			ProtobufCMessage **ret, abx_error **reterr);

static int wrong(const ProtobufCFieldDescriptor *field, const char *want,
		 abx_error **reterr)
{
	return abx__error_set(reterr, ABX_EINVAL, "%s: expected %s", field->name, want);
}

/* Whether `key` is the field's own name or its lowerCamel form. */
static bool names_field(const ProtobufCFieldDescriptor *field, const char *key)
{
	const char *name = field->name;

	if (strcmp(name, key) == 0)
		return true;
	for (; *name; name++, key++) {
		char c = *name;

		if (c == '_' && name[1]) {
			name++;
			c = *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A')
							 : *name;
		}
		if (c != *key)
			return false;
	}
	return *key == '\0';
}

static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *desc,
						  const char *key)
{
	for (unsigned i = 0; i < desc->n_fields; i++)
		if (names_field(&desc->fields[i], key))
			return &desc->fields[i];
	return NULL;
}

static int read_string(const ProtobufCFieldDescriptor *field, json_object *value,
		       char **out, abx_error **reterr)
{
	const char *s = abx__json_str(value);
	char *copy;

	if (!s)
		return wrong(field, "a string without NUL bytes", reterr);
	copy = abx__strdup(s);
	if (!copy)
		return abx__error_nomem(reterr);
	*out = copy;
	return ABX_OK;
}

/* Base64 in either alphabet, padded or not. */
static int read_bytes(const ProtobufCFieldDescriptor *field, json_object *value,
		      ProtobufCBinaryData *out, abx_error **reterr)
{
	const char *s = abx__json_str(value);
	size_t len = s ? strlen(s) : 0;
	int r;

	if (!s)
		return wrong(field, "a base64 string", reterr);
	if (len % 4 == 0 && !strpbrk(s, "-_")) {
		r = abx__base64_decode(s, len, &out->data, &out->len);
	} else {
		ABX_CLEANUP(abx__freep) char *url = abx__strdup(s);

		if (!url)
			return abx__error_nomem(reterr);
		while (len > 0 && url[len - 1] == '=')
			len--;
		for (size_t i = 0; i < len; i++)
			url[i] = url[i] == '+' ? '-' : url[i] == '/' ? '_' : url[i];
		r = abx__base64url_decode(url, len, &out->data, &out->len);
	}
	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	return r < 0 ? wrong(field, "a base64 string", reterr) : ABX_OK;
}

/* A number, or the same in a string (as int64 travels). */
static int read_integer(const ProtobufCFieldDescriptor *field, json_object *value,
			int64_t min, uint64_t max, uint64_t *ret, abx_error **reterr)
{
	const char *text;
	bool negative;
	uint64_t magnitude = 0;

	if (json_object_is_type(value, json_type_int) ||
	    json_object_is_type(value, json_type_double))
		text = json_object_get_string(value);
	else
		text = abx__json_str(value);
	if (!text)
		return wrong(field, "an integer", reterr);
	negative = *text == '-';
	text += negative;
	if (!*text)
		return wrong(field, "an integer", reterr);
	/* A fraction of zeros (1.0) is the same number. */
	for (; *text && *text != '.'; text++) {
		unsigned digit = (unsigned)(*text - '0');

		if (digit > 9 || __builtin_mul_overflow(magnitude, 10u, &magnitude) ||
		    __builtin_add_overflow(magnitude, digit, &magnitude))
			return wrong(field, "an integer in range", reterr);
	}
	if (*text == '.' && text[1 + strspn(text + 1, "0")] != '\0')
		return wrong(field, "an integer", reterr);
	if (negative ? magnitude > (uint64_t)0 - (uint64_t)min : magnitude > max)
		return wrong(field, "an integer in range", reterr);
	*ret = negative ? 0 - magnitude : magnitude;
	return ABX_OK;
}

static int read_enum(const ProtobufCFieldDescriptor *field, json_object *value, void *out,
		     abx_error **reterr)
{
	const char *name = abx__json_str(value);
	uint64_t number;
	int32_t narrow;
	int r;

	if (name) {
		const ProtobufCEnumValue *known =
			protobuf_c_enum_descriptor_get_value_by_name(field->descriptor,
								     name);

		if (!known)
			return abx__error_set(reterr, ABX_EINVAL,
					      "%s: unknown value \"%.64s\"", field->name,
					      name);
		narrow = known->value;
	} else {
		r = read_integer(field, value, INT32_MIN, INT32_MAX, &number, reterr);
		if (r < 0)
			return r;
		narrow = (int32_t)number;
	}
	memcpy(out, &narrow, sizeof(narrow));
	return ABX_OK;
}

static int read_real(const ProtobufCFieldDescriptor *field, json_object *value, void *out,
		     abx_error **reterr)
{
	double number;
	float narrow;

	if (!json_object_is_type(value, json_type_double) &&
	    !json_object_is_type(value, json_type_int))
		return wrong(field, "a number", reterr);
	number = json_object_get_double(value);
	narrow = (float)number;
	if (field->type == PROTOBUF_C_TYPE_FLOAT)
		memcpy(out, &narrow, sizeof(narrow));
	else
		memcpy(out, &number, sizeof(number));
	return ABX_OK;
}

static int read_number(const ProtobufCFieldDescriptor *field, json_object *value,
		       void *out, abx_error **reterr)
{
	int64_t min = 0;
	uint64_t max = UINT64_MAX, wide = 0;
	uint32_t narrow;
	int r;

	switch (field->type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
		min = INT32_MIN;
		max = INT32_MAX;
		break;
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		max = UINT32_MAX;
		break;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		break;
	default:
		min = INT64_MIN;
		max = INT64_MAX;
	}
	r = read_integer(field, value, min, max, &wide, reterr);
	if (r < 0)
		return r;
	narrow = (uint32_t)wide;
	if (abx__proto_element_size(field) == sizeof(wide))
		memcpy(out, &wide, sizeof(wide));
	else
		memcpy(out, &narrow, sizeof(narrow));
	return ABX_OK;
}

static int read_value(const ProtobufCFieldDescriptor *field, json_object *value,
		      void *out, abx_error **reterr)
{
	protobuf_c_boolean truth;

	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
		return read_string(field, value, out, reterr);
	case PROTOBUF_C_TYPE_BYTES:
		return read_bytes(field, value, out, reterr);
	case PROTOBUF_C_TYPE_MESSAGE:
		return read_message(field->descriptor, value, out, reterr);
	case PROTOBUF_C_TYPE_ENUM:
		return read_enum(field, value, out, reterr);
	case PROTOBUF_C_TYPE_FLOAT:
	case PROTOBUF_C_TYPE_DOUBLE:
		return read_real(field, value, out, reterr);
	case PROTOBUF_C_TYPE_BOOL:
		if (!json_object_is_type(value, json_type_boolean))
			return wrong(field, "true or false", reterr);
		truth = json_object_get_boolean(value);
		memcpy(out, &truth, sizeof(truth));
		return ABX_OK;
	default:
		return read_number(field, value, out, reterr);
	}
}

static int read_list(const ProtobufCFieldDescriptor *field, json_object *value,
		     char *base, abx_error **reterr)
{
	size_t *count = (size_t *)(base + field->quantifier_offset);
	size_t size = abx__proto_element_size(field), len;
	char *items;

	if (!json_object_is_type(value, json_type_array))
		return wrong(field, "an array", reterr);
	len = json_object_array_length(value);
	if (len == 0)
		return ABX_OK;
	items = abx__calloc(len, size);
	if (!items)
		return abx__error_nomem(reterr);
	*(void **)(base + field->offset) = items;
	for (size_t i = 0; i < len; i++) {
		json_object *item = json_object_array_get_idx(value, i);
		int r = item ? read_value(field, item, items + i * size, reterr)
			     : wrong(field, "no null in the array", reterr);

		if (r < 0)
			return r;
		*count = i + 1;
	}
	return ABX_OK;
}

static int read_map_entry(const ProtobufCFieldDescriptor *field, const char *key,
			  json_object *value, ProtobufCMessage **ret, abx_error **reterr)
{
	const ProtobufCMessageDescriptor *desc = field->descriptor;
	ABX_CLEANUP(abx__proto_freep)
	ProtobufCMessage *entry = abx__malloc(desc->sizeof_message);
	char *copy;
	int r;

	if (!entry)
		return abx__error_nomem(reterr);
	protobuf_c_message_init(desc, entry);
	copy = abx__strdup(key);
	if (!copy)
		return abx__error_nomem(reterr);
	*(char **)((char *)entry + desc->fields[0].offset) = copy;
	r = read_value(&desc->fields[1], value, (char *)entry + desc->fields[1].offset,
		       reterr);
	if (r < 0) {
		abx__error_prefix(reterr, "%s[\"%.64s\"]", field->name, key);
		return r;
	}
	*ret = abx_take(entry);
	return ABX_OK;
}

static int read_map(const ProtobufCFieldDescriptor *field, json_object *value, char *base,
		    abx_error **reterr)
{
	const ProtobufCMessageDescriptor *entry = field->descriptor;
	size_t *count = (size_t *)(base + field->quantifier_offset);
	ProtobufCMessage **items;
	int len;

	if (!json_object_is_type(value, json_type_object) ||
	    entry->fields[0].type != PROTOBUF_C_TYPE_STRING)
		return wrong(field, "an object", reterr);
	len = json_object_object_length(value);
	if (len == 0)
		return ABX_OK;
	items = abx__calloc((size_t)len, sizeof(*items));
	if (!items)
		return abx__error_nomem(reterr);
	*(void **)(base + field->offset) = items;
	json_object_object_foreach(value, key, member)
	{
		int r = member ? read_map_entry(field, key, member, &items[*count],
						reterr)
			       : wrong(field, "no null in the object", reterr);

		if (r < 0)
			return r;
		(*count)++;
	}
	return ABX_OK;
}

/* A oneof's member announces itself in the quantifier, where the other members look, too.
 */
static int read_member(const ProtobufCFieldDescriptor *field, json_object *value,
		       char *base, abx_error **reterr)
{
	bool oneof = field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
	uint32_t *chosen = (uint32_t *)(base + field->quantifier_offset);
	int r;

	if (oneof && *chosen)
		return abx__error_set(reterr, ABX_EINVAL,
				      "%s: another member of the same oneof is set",
				      field->name);
	/* The union may hold a default string's pointer. */
	if (oneof)
		memset(base + field->offset, 0, abx__proto_element_size(field));
	r = read_value(field, value, base + field->offset, reterr);
	if (r == ABX_OK && oneof)
		*chosen = field->id;
	return r;
}

static int read_field(const ProtobufCFieldDescriptor *field, json_object *value,
		      char *base, abx_error **reterr)
{
	if (field->label == PROTOBUF_C_LABEL_NONE)
		return read_member(field, value, base, reterr);
	if (field->label != PROTOBUF_C_LABEL_REPEATED)
		return abx__error_set(reterr, ABX_EUNSUPPORTED,
				      "%s: proto2 fields have no JSON here", field->name);
	if (*(size_t *)(base + field->quantifier_offset) > 0)
		return abx__error_set(reterr, ABX_EINVAL, "%s: given twice", field->name);
	return abx__proto_is_map(field) ? read_map(field, value, base, reterr)
					: read_list(field, value, base, reterr);
}

static int read_timestamp(json_object *value, ProtobufCMessage *msg, abx_error **reterr)
{
	const ProtobufCMessageDescriptor *desc = msg->descriptor;
	const char *text = abx__json_str(value);
	int64_t us, seconds;
	int32_t nanos;

	if (!text || abx__rfc3339_parse(text, &us) < 0)
		return abx__error_set(reterr, ABX_EINVAL, "expected an RFC 3339 time");
	seconds = us / 1000000 - (us % 1000000 < 0);
	nanos = (int32_t)(us - seconds * 1000000) * 1000;
	memcpy((char *)msg + desc->fields[0].offset, &seconds, sizeof(seconds));
	memcpy((char *)msg + desc->fields[1].offset, &nanos, sizeof(nanos));
	return ABX_OK;
}

static int read_members(json_object *obj, ProtobufCMessage *msg, abx_error **reterr)
{
	uint64_t seen = 0;

	json_object_object_foreach(obj, key, value)
	{
		const ProtobufCFieldDescriptor *field = find_field(msg->descriptor, key);
		size_t index = field ? (size_t)(field - msg->descriptor->fields) : 0;
		int r;

		if (!field || !value)
			continue;
		/* Both spellings of a name in one object would leak the first value. */
		if (index >= 64 || seen >> index & 1)
			return abx__error_set(reterr, ABX_EINVAL, "%s: given twice",
					      field->name);
		seen |= (uint64_t)1 << index;
		r = read_field(field, value, (char *)msg, reterr);
		if (r < 0)
			return r;
	}
	return ABX_OK;
}

static int read_message(const ProtobufCMessageDescriptor *desc, json_object *obj,
			ProtobufCMessage **ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__proto_freep) ProtobufCMessage *msg = NULL;
	bool time = abx__proto_is_timestamp(desc);
	int r;

	if (!time && !json_object_is_type(obj, json_type_object))
		return abx__error_set(reterr, ABX_EINVAL, "%s: expected a JSON object",
				      desc->name);
	msg = abx__malloc(desc->sizeof_message);
	if (!msg)
		return abx__error_nomem(reterr);
	protobuf_c_message_init(desc, msg);
	r = time ? read_timestamp(obj, msg, reterr) : read_members(obj, msg, reterr);
	if (r < 0)
		return r;
	*ret = abx_take(msg);
	return ABX_OK;
}

int abx__proto_json_parse(const ProtobufCMessageDescriptor *desc, const char *text,
			  size_t len, size_t max_bytes, ProtobufCMessage **ret,
			  abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *obj = NULL;
	int r;

	r = abx__json_parse(text, len, max_bytes, &obj, reterr);
	if (r < 0)
		return r;
	return read_message(desc, obj, ret, reterr);
}
