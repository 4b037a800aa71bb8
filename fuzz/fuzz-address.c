/* Addresses, image references and sandbox ids: what parses prints to something that
 * parses and prints the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/address.h"
#include "model/image-ref.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_address(const char *text)
{
	ABX__CLEANUP_ADDRESS abx__address address = { 0 }, again = { 0 };
	ABX_CLEANUP(abx__freep) char *printed = NULL;
	ABX_CLEANUP(abx__freep) char *twice = NULL;

	if (abx__address_parse(text, &address, NULL) < 0)
		return;
	printed = abx__address_print(&address);
	if (!printed || abx__address_parse(printed, &again, NULL) < 0)
		abort();
	twice = abx__address_print(&again);
	if (!twice || strcmp(printed, twice) != 0)
		abort();
}

static void fuzz_image(const char *text)
{
	ABX__CLEANUP_IMAGE_REF abx__image_ref ref = { 0 }, again = { 0 };
	ABX_CLEANUP(abx__freep) char *printed = NULL;
	ABX_CLEANUP(abx__freep) char *twice = NULL;

	if (abx__image_ref_parse(text, &ref, NULL) < 0)
		return;
	printed = abx__image_ref_print(&ref);
	if (!printed || strlen(printed) > ABX__IMAGE_REF_MAX)
		return; /* defaults made it longer than the cap */
	if (abx__image_ref_parse(printed, &again, NULL) < 0)
		abort();
	twice = abx__image_ref_print(&again);
	if (!twice || strcmp(printed, twice) != 0)
		abort();
}

static void fuzz_sandbox_name(const char *text)
{
	char printed[ABX__SANDBOX_ID_LEN + 1 + ABX__CLUSTER_ID_SIZE];
	abx__sandbox_name name, again;

	if (abx__sandbox_name_parse(text, &name, NULL) < 0)
		return;
	abx__sandbox_name_print(&name, printed);
	if (abx__sandbox_name_parse(printed, &again, NULL) < 0 ||
	    memcmp(name.id, again.id, sizeof(name.id)) != 0 ||
	    strcmp(name.cluster, again.cluster) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ABX_CLEANUP(abx__freep) char *text = abx__strndup((const char *)data, size);

	if (!text)
		return 0;
	fuzz_address(text);
	fuzz_image(text);
	fuzz_sandbox_name(text);
	return 0;
}
