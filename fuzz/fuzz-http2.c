/* HTTP/2 entering the server: frames behind the client's preface. */
#include "io/http2.h"
#include "serve-bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
				      "\0\0\0\4\0\0\0\0\0";

	serve_bytes((abx__http_server_options){ .http2 = &abx__http2 }, preface,
		    sizeof(preface) - 1, data, size);
	return 0;
}
