/*
 * encoding.c - content codings in headers.
 */
#include "envd/encoding.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define FULL 1000000u /* q=1 */

/* One element of a list: its name, and its weight in millionths. */
struct item {
	const char *name;
	size_t len;
	unsigned weight;
};

static const char *skip_blank(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

/* A weight that is none leaves 1, as if it were not there. */
static unsigned read_weight(const char *p, const char *end)
{
	unsigned weight = 0, unit = FULL;

	if (p == end || *p < '0' || *p > '9')
		return FULL;
	for (; p < end && *p >= '0' && *p <= '9'; p++)
		weight = *p == '0' && weight == 0 ? 0 : FULL;
	if (p < end && *p == '.')
		for (p++; p < end && *p >= '0' && *p <= '9'; p++) {
			unit /= 10;
			/* However small, it is not zero. */
			weight += *p == '0' ? 0 : unit ? (unsigned)(*p - '0') * unit : 1;
		}
	if (skip_blank(p, end) != end)
		return FULL;
	return weight > FULL ? FULL : weight;
}

/* Reads the element at `p`; the return is where the next one begins, NULL at the end. */
static const char *read_item(const char *p, struct item *item)
{
	const char *end = p + strcspn(p, ","), *name_end = p + strcspn(p, ",;"), *param;

	item->name = skip_blank(p, name_end);
	item->len = (size_t)(name_end - item->name);
	while (item->len && strchr(" \t", item->name[item->len - 1]))
		item->len--;
	item->weight = FULL;
	for (param = name_end; param < end; param += strcspn(param, ",;")) {
		param = skip_blank(param + 1, end);
		if (end - param >= 2 && strncasecmp(param, "q=", 2) == 0)
			item->weight =
				read_weight(param + 2, param + strcspn(param, ",;"));
	}
	return *end ? end + 1 : NULL;
}

static bool is_named(const struct item *item, const char *name)
{
	return item->len == strlen(name) && strncasecmp(item->name, name, item->len) == 0;
}

enum abx__encoding abx__encoding_of_body(const char *content_encoding)
{
	struct item item;

	if (!content_encoding || !*content_encoding)
		return ABX__ENCODING_IDENTITY;
	if (read_item(content_encoding, &item))
		return ABX__ENCODING_NONE; /* one after the other */
	if (is_named(&item, "identity"))
		return ABX__ENCODING_IDENTITY;
	return is_named(&item, "gzip") ? ABX__ENCODING_GZIP : ABX__ENCODING_NONE;
}

bool abx__encoding_takes_identity(const char *accept_encoding)
{
	const char *p = accept_encoding;
	bool refused = false, taken = false, others_refused = false;
	struct item item;

	while (p && *p) {
		p = read_item(p, &item);
		if (is_named(&item, "identity"))
			*(item.weight ? &taken : &refused) = true;
		else if (is_named(&item, "*") && !item.weight)
			others_refused = true;
	}
	return !refused && (taken || !others_refused);
}

enum abx__encoding abx__encoding_to_send(const char *accept_encoding)
{
	const char *p = accept_encoding;
	bool identity = abx__encoding_takes_identity(p), has_others = false;
	enum abx__encoding best = identity ? ABX__ENCODING_IDENTITY : ABX__ENCODING_NONE;
	unsigned best_weight = 0;
	struct item item;

	while (p && *p) {
		enum abx__encoding this = ABX__ENCODING_IDENTITY;

		p = read_item(p, &item);
		if (is_named(&item, "gzip") || (is_named(&item, "*") && !identity))
			this = ABX__ENCODING_GZIP;
		else if (!is_named(&item, "identity") && !is_named(&item, "*"))
			this = ABX__ENCODING_NONE;
		has_others |= this == ABX__ENCODING_NONE && item.len && item.weight;
		if (this == ABX__ENCODING_NONE || item.weight <= best_weight ||
		    (this == ABX__ENCODING_IDENTITY && !identity))
			continue;
		best = this;
		best_weight = item.weight;
	}
	return identity && has_others ? ABX__ENCODING_IDENTITY : best;
}
