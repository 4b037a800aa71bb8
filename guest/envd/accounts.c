/*
 * accounts.c - see accounts.h.
 */
#include "envd/accounts.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"

/* The third of the fields between colons; NULL when there are fewer. */
static const char *third_field(const char *line, const char *end, size_t *ret_len)
{
	const char *p = line, *stop;

	for (int i = 0; i < 2; i++) {
		p = memchr(p, ':', (size_t)(end - p));
		if (!p)
			return NULL;
		p++;
	}
	stop = memchr(p, ':', (size_t)(end - p));
	*ret_len = (size_t)((stop ? stop : end) - p);
	return p;
}

static int read_id(const char *field, size_t len, uint64_t *ret)
{
	char digits[8];

	if (!field || len == 0 || len >= sizeof(digits))
		return ABX_EINVAL;
	memcpy(digits, field, len);
	digits[len] = '\0';
	return abx__parse_u64(digits, 0, ABX__ACCOUNTS_ID_COUNT - 1, ret);
}

static void take_line(abx__accounts *t, const char *line, size_t len)
{
	bool is_user =
		(len == 4 || (len > 4 && line[4] == ':')) && memcmp(line, "user", 4) == 0;
	size_t id_len = 0;
	const char *field = third_field(line, line + len, &id_len);
	uint64_t id = 0;
	bool has_id = read_id(field, id_len, &id) == ABX_OK;

	if (has_id)
		t->used[id / 8] |= (uint8_t)(1u << id % 8);
	if (is_user && !t->has_user)
		t->user_id = (uint32_t)id;
	t->has_user |= is_user;
}

void abx__accounts_read(abx__accounts *ret, const char *text, size_t len)
{
	const char *end = text + len;

	memset(ret, 0, sizeof(*ret));
	ret->newline = len && end[-1] != '\n' ? "\n" : "";
	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));

		stop = stop ? stop : end;
		take_line(ret, text, (size_t)(stop - text));
		text = stop + 1;
	}
}

uint32_t abx__accounts_free_id(const abx__accounts *accounts, uint32_t from)
{
	while (from < ABX__ACCOUNTS_ID_COUNT - 1 &&
	       (accounts->used[from / 8] & 1u << from % 8))
		from++;
	return from;
}
