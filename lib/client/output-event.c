/*
 * output-event.c - see output-event.h.
 */
#include "client/output-event.h"

#include <string.h>

#include <agentbox/error.h>

#include "base/id.h"

/* Behind `part` where it stands at text, else NULL. */
static const char *behind(const char *text, const char *end, const char *part)
{
	size_t len = strlen(part);

	return (size_t)(end - text) >= len && memcmp(text, part, len) == 0 ? text + len
									   : NULL;
}

int abx__output_event_read(const char *text, size_t len, bool *ret_is_stderr,
			   uint8_t **ret, size_t *ret_len)
{
	static const char *const kinds[] = { "stdout\":\"", "stderr\":\"", "pty\":\"" };
	static const char tail[] = "\"}}}";
	const char *end = text + len, *p = behind(text, end, "{\"event\":{\"data\":{\"");
	const char *coded = NULL;
	size_t kind = 0;
	int r;

	for (; p && !coded && kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
		coded = behind(p, end, kinds[kind]);
	if (!coded || (size_t)(end - coded) < sizeof(tail) - 1)
		return 0;
	end -= sizeof(tail) - 1;
	if (memcmp(end, tail, sizeof(tail) - 1) != 0)
		return 0;
	/* An escape in the string is no base64 either: JSON's to read. */
	r = abx__base64_decode(coded, (size_t)(end - coded), ret, ret_len);
	if (r < 0)
		return r == ABX_ENOMEM ? r : 0;
	*ret_is_stderr = kind == 2; /* one behind the one found */
	return 1;
}
