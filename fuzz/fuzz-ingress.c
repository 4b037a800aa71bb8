/*
 * A mask for a sandbox's Host, and the JSON in which all of its ingress stands on the
 * Pod: the first line is the mask, the rest the JSON. What is taken can be put into a
 * header's line, and survives being written and read again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "control/ingress.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_mask(const char *mask)
{
	size_t len = strlen(mask);

	if (abx__ingress_check_mask(mask, NULL) < 0)
		return;
	if (len == 0 || len > ABX__INGRESS_MASK_MAX)
		abort();
	for (size_t i = 0; i < len; i++)
		if (mask[i] <= ' ' || mask[i] >= 0x7f || mask[i] == '/' || mask[i] == '@')
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = abx__strndup((const char *)data, size), *rest;
	json_object *given, *written;
	abx__ingress first, second;

	if (!text)
		return 0;
	rest = text + strcspn(text, "\n");
	if (*rest)
		*rest++ = '\0';
	check_mask(text);
	given = json_tokener_parse(rest);
	abx__ingress_read(given, &first);
	if (first.mask_host[0])
		check_mask(first.mask_host);
	for (size_t i = 0; i < first.https_count; i++)
		if (abx__ingress_check_https_port(first.https_ports[i], NULL) < 0)
			abort();
	written = abx__ingress_json(&first);
	if (!written)
		abort();
	abx__ingress_read(written, &second);
	if (memcmp(&first, &second, sizeof(first)) != 0)
		abort();
	json_object_put(written);
	json_object_put(given);
	abx__free(text);
	return 0;
}
