/* Output read without a JSON parser: what it takes, JSON reads as the same. */
#include <stdlib.h>
#include <string.h>

#include <agentbox/error.h>

#include "base/alloc.h"
#include "base/id.h"
#include "client/output-event.h"
#include "io/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static json_object *member(json_object *object, const char *key)
{
	json_object *value = NULL;

	if (!json_object_is_type(object, json_type_object) ||
	    json_object_object_length(object) != 1 ||
	    !json_object_object_get_ex(object, key, &value))
		abort();
	return value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ABX_CLEANUP(abx__freep) uint8_t *bytes = NULL;
	ABX_CLEANUP(abx__freep) uint8_t *again = NULL;
	ABX_CLEANUP_JSON json_object *message = NULL;
	json_object *kinds, *text = NULL;
	bool is_stderr = false;
	size_t len = 0, again_len = 0;

	if (abx__output_event_read((const char *)data, size, &is_stderr, &bytes, &len) <=
	    0)
		return 0;
	if (abx__json_parse((const char *)data, size, 0, &message, NULL) < 0)
		abort();
	kinds = member(member(message, "event"), "data");
	if (json_object_object_get_ex(kinds, "stderr", &text) != is_stderr)
		abort();
	if (!is_stderr && !json_object_object_get_ex(kinds, "stdout", &text))
		text = member(kinds, "pty");
	if (json_object_object_length(kinds) != 1 ||
	    abx__base64_decode(json_object_get_string(text),
			       (size_t)json_object_get_string_len(text), &again,
			       &again_len) < 0 ||
	    again_len != len || memcmp(bytes, again, len) != 0)
		abort();
	return 0;
}
