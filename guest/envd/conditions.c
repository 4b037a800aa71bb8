/*
 * conditions.c - conditional requests.
 */
#include "envd/conditions.h"

#include <stdio.h>
#include <string.h>

void abx__etag_of(const struct stat *st, char out[ABX__ETAG_SIZE])
{
	snprintf(out, ABX__ETAG_SIZE, "\"%llx-%llx-%llx.%lx\"",
		 (unsigned long long)st->st_ino, (unsigned long long)st->st_size,
		 (unsigned long long)st->st_mtim.tv_sec,
		 (unsigned long)st->st_mtim.tv_nsec);
}

bool abx__http_date_parse(const char *text, time_t *ret)
{
	static const char *const forms[] = { "%a, %d %b %Y %H:%M:%S GMT",
					     "%A, %d-%b-%y %H:%M:%S GMT",
					     "%a %b %e %H:%M:%S %Y" };

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct tm tm = { 0 };
		const char *end = strptime(text, forms[i], &tm);

		if (!end || *end)
			continue;
		*ret = timegm(&tm);
		return true;
	}
	return false;
}

/* ---- entity tags ---- */

/* The tag at `p`, `W/` and quotes included; its length, 0 when there is none. */
static size_t tag_len(const char *p)
{
	size_t start = strncmp(p, "W/", 2) == 0 ? 2 : 0, len;

	if (p[start] != '"')
		return 0;
	len = strcspn(p + start + 1, "\"");
	return p[start + 1 + len] == '"' ? start + len + 2 : 0;
}

static bool tag_is(const char *p, size_t len, const char *etag, bool weakly)
{
	if (strncmp(p, "W/", 2) == 0) {
		if (!weakly)
			return false;
		p += 2;
		len -= 2;
	}
	return strlen(etag) == len && strncmp(p, etag, len) == 0;
}

/* Does the list name `etag`, or anything ("*")? What is malformed ends the list. */
static bool names_tag(const char *list, const char *etag, bool weakly)
{
	for (;;) {
		size_t len;

		list += strspn(list, " \t,");
		if (*list == '*')
			return true;
		len = tag_len(list);
		if (len == 0)
			return false;
		if (tag_is(list, len, etag, weakly))
			return true;
		list += len;
	}
}

/* ---- the order of RFC 9110, section 13.2.2 ---- */

static bool is_given(const char *header)
{
	return header && *header;
}

/* The date a header gives; false when there is none to compare with. */
static bool read_date(const char *header, time_t mtime, time_t *ret)
{
	return is_given(header) && mtime != 0 && abx__http_date_parse(header, ret);
}

int abx__conditions_judge(const abx__conditions *conditions, const char *etag,
			  time_t mtime)
{
	time_t date;

	if (is_given(conditions->if_match)) {
		if (!names_tag(conditions->if_match, etag, false))
			return 412;
	} else if (read_date(conditions->if_unmodified_since, mtime, &date) &&
		   mtime > date) {
		return 412;
	}
	if (is_given(conditions->if_none_match))
		return names_tag(conditions->if_none_match, etag, true) ? 304 : 200;
	if (read_date(conditions->if_modified_since, mtime, &date) && mtime <= date)
		return 304;
	return 200;
}

bool abx__conditions_keep_range(const abx__conditions *conditions, const char *etag,
				time_t mtime)
{
	const char *header = conditions->if_range;
	size_t len;
	time_t date;

	if (!is_given(header))
		return true;
	len = tag_len(header);
	if (len)
		return tag_is(header, len, etag, false);
	return read_date(header, mtime, &date) && date == mtime;
}
