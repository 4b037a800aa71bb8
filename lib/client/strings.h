/*
 * strings.h - the strings and string lists a public result struct points to, given back
 * together.
 */
#ifndef ABX_CLIENT_STRINGS_H
#define ABX_CLIENT_STRINGS_H

#include <stddef.h>

#include <json-c/json.h>

typedef struct abx__strings {
	void **items;
	size_t count;
	size_t size;
} abx__strings;

void abx__strings_done(abx__strings *strings);
/* Takes `text` (NULL: out of memory). ABX_ENOMEM. */
int abx__strings_take(abx__strings *strings, char *text, const char **ret);
/* A copy of a string member, or `otherwise` (static, or NULL) when there is none. */
int abx__strings_member(abx__strings *strings, json_object *obj, const char *key,
			const char *otherwise, const char **ret);
/* "KEY=VALUE" of an object's string members; a list with its NULL also for NULL. */
int abx__strings_pairs(abx__strings *strings, json_object *obj, const char *const **ret);
/* The strings of an array; a list with its NULL also for NULL. */
int abx__strings_list(abx__strings *strings, json_object *array, const char *const **ret);

#endif
