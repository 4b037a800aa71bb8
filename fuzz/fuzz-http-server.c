/* HTTP/1.1 entering the server. */
#include "serve-bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	serve_bytes((abx__http_server_options){ 0 }, NULL, 0, data, size);
	return 0;
}
