/*
 * conditions.h - conditional requests for a file (RFC 9110, section 13). Pure.
 */
#ifndef ABX_ENVD_CONDITIONS_H
#define ABX_ENVD_CONDITIONS_H

#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

/* Header values; NULL or empty: absent. */
typedef struct abx__conditions {
	const char *if_match;
	const char *if_unmodified_since;
	const char *if_none_match;
	const char *if_modified_since;
	const char *if_range;
} abx__conditions;

#define ABX__ETAG_SIZE 64

/* A tag that changes with the file: quoted, strong. */
void abx__etag_of(const struct stat *st, char out[ABX__ETAG_SIZE]);

/* The status to answer: 200 (go on), 304 or 412. A date that cannot be read, and a file
   of the epoch's first second, make the date conditions count as absent. */
int abx__conditions_judge(const abx__conditions *conditions, const char *etag,
			  time_t mtime);
/* Whether If-Range lets a Range count. */
bool abx__conditions_keep_range(const abx__conditions *conditions, const char *etag,
				time_t mtime);
/* The three forms of a HTTP date; false for anything else. */
bool abx__http_date_parse(const char *text, time_t *ret);

#endif
