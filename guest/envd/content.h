/*
 * content.h - what a file's answer says about it: type, disposition, date. Pure.
 */
#ifndef ABX_ENVD_CONTENT_H
#define ABX_ENVD_CONTENT_H

#include <stddef.h>
#include <time.h>

/* By extension, else by the first bytes. */
const char *abx__content_type(const char *name, const void *head, size_t len);
/* "inline; filename=NAME", quoted or encoded as the name needs; NULL when out of memory.
 */
char *abx__content_disposition(const char *name);
#define ABX__HTTP_DATE_SIZE 32
void abx__http_date(time_t when, char out[ABX__HTTP_DATE_SIZE]);

#endif
