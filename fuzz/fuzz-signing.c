/* Signed URLs: only our own signature of what a query says is good. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file-signature.h"
#include "base/str.h"
#include "envd/signing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW 1700000000

static void sign(abx__signing *signing, const abx__secret *token, const char *operation)
{
	char text[ABX__FILE_SIGNATURE_SIZE];

	if (abx__file_signature(signing->path ? signing->path : "", operation,
				signing->username ? signing->username : "", token,
				signing->expires ? &signing->expires_s : NULL, text) < 0)
		abort();
	abx__free(signing->signature);
	signing->signature = abx__strdup(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ABX_CLEANUP(abx__freep) char *query = abx__strndup((const char *)data, size);
	ABX_CLEANUP(abx__secret_freep) abx__secret *token = abx__secret_new("tok", 3);
	ABX_CLEANUP(abx__signing_done) abx__signing signing = { 0 };
	const char *problem;
	bool is_late;

	if (!query || !token || abx__signing_read(query, &signing, NULL) < 0)
		return 0;
	/* Nobody guesses one. */
	if (!abx__signing_check(&signing, token, ABX__SIGNING_READ, NOW))
		abort();
	is_late = signing.expires && signing.expires_s < NOW;
	sign(&signing, token, ABX__SIGNING_READ);
	problem = abx__signing_check(&signing, token, ABX__SIGNING_READ, NOW);
	if (!abx__str_eq(problem ? problem : "",
			 is_late ? "signature is already expired" : ""))
		abort();
	problem = abx__signing_check(&signing, token, ABX__SIGNING_WRITE, NOW);
	if (!problem || strcmp(problem, "invalid signature") != 0)
		abort();
	return 0;
}
