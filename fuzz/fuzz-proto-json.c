/* Messages: what either codec reads is written and read again as the same. The first byte
 * picks type and codec. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <agentbox/error.h>
#include <envd/filesystem.pb-c.h>
#include <envd/process.pb-c.h>

#include "io/proto-json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ProtobufCMessageDescriptor *const types[] = {
	&process__start_request__descriptor,
	&process__stream_input_request__descriptor,
	&process__list_response__descriptor,
	&process__start_response__descriptor,
	&filesystem__list_dir_response__descriptor,
	&process__send_signal_request__descriptor,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ABX_CLEANUP(abx__proto_freep) ProtobufCMessage *msg = NULL;
	ABX_CLEANUP(abx__proto_freep) ProtobufCMessage *again = NULL;
	ABX_CLEANUP_BUF abx__buf json = ABX__BUF_INIT, json2 = ABX__BUF_INIT,
				 bytes = ABX__BUF_INIT;
	const ProtobufCMessageDescriptor *desc;
	int r;

	if (size == 0)
		return 0;
	desc = types[(data[0] >> 1) % (sizeof(types) / sizeof(types[0]))];
	if (data[0] & 1)
		r = abx__proto_unpack(desc, data + 1, size - 1, &msg, NULL);
	else
		r = abx__proto_json_parse(desc, (const char *)data + 1, size - 1, 0, &msg,
					  NULL);
	if (r < 0)
		return 0;
	/* A time out of range has bytes but no text. */
	r = abx__proto_json_print(msg, &json);
	if (r < 0 && r != ABX_EINVAL)
		abort();
	if (abx__proto_pack(msg, &bytes) < 0 ||
	    abx__proto_unpack(desc, abx__buf_str(&bytes), bytes.len, &again, NULL) < 0)
		abort();
	if (r == ABX_OK && (abx__proto_json_print(again, &json2) < 0 ||
			    strcmp(json.data, json2.data) != 0))
		abort();
	return 0;
}
