/* Conditions and codings of a download: one header a line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "envd/conditions.h"
#include "envd/encoding.h"
#include "envd/metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_encoding(const char *accept)
{
	bool identity = abx__encoding_takes_identity(accept);
	enum abx__encoding chosen = abx__encoding_to_send(accept);

	if (chosen == ABX__ENCODING_IDENTITY && !identity)
		abort();
	if (chosen == ABX__ENCODING_NONE && identity)
		abort();
	abx__encoding_of_body(accept);
}

static void check_metadata(const char *key, const char *value)
{
	ABX_CLEANUP(abx__map_done) abx__map metadata = ABX__MAP_INIT;
	ABX_CLEANUP(abx__freep) char *name = abx__strf("X-Metadata-%s", key);
	int r = name ? abx__metadata_add_header(&metadata, name, value, NULL) : 0;

	for (const char *p = value; r > 0 && *p; p++)
		if (*p < 0x20 || *p > 0x7e)
			abort();
	abx__metadata_check(&metadata, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ABX_CLEANUP(abx__freep) char *text = abx__strndup((const char *)data, size);
	char *lines[7] = { NULL }, *rest = text;
	abx__conditions c;
	int status;

	if (!text)
		return 0;
	for (size_t i = 0; i < 7 && rest; i++)
		lines[i] = strsep(&rest, "\n");
	c = (abx__conditions){ lines[0], lines[1], lines[2], lines[3], lines[4] };
	status = abx__conditions_judge(&c, "\"a-1\"", 784111777);
	if (status != 200 && status != 304 && status != 412)
		abort();
	abx__conditions_keep_range(&c, "\"a-1\"", 784111777);
	check_encoding(lines[5]);
	check_metadata(lines[5] ? lines[5] : "", lines[6] ? lines[6] : "");
	return 0;
}
