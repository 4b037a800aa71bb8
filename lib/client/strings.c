/*
 * strings.c - storage of result structs.
 */
#include "client/strings.h"

#include <agentbox/error.h>

#include "base/alloc.h"
#include "base/str.h"
#include "io/json.h"

void abx__strings_done(abx__strings *strings)
{
	for (size_t i = 0; i < strings->count; i++)
		abx__free(strings->items[i]);
	abx__free(strings->items);
	*strings = (abx__strings){ 0 };
}

/* Takes `item`, also when it fails. */
static int keep(abx__strings *strings, void *item)
{
	if (!item)
		return ABX_ENOMEM;
	if (strings->count == strings->size) {
		size_t size = strings->size ? strings->size * 2 : 8;
		void **items = abx__reallocarray(strings->items, size, sizeof(*items));

		if (!items) {
			abx__free(item);
			return ABX_ENOMEM;
		}
		strings->items = items;
		strings->size = size;
	}
	strings->items[strings->count++] = item;
	return ABX_OK;
}

int abx__strings_take(abx__strings *strings, char *text, const char **ret)
{
	int r = keep(strings, text);

	if (r >= 0)
		*ret = text;
	return r;
}

int abx__strings_member(abx__strings *strings, json_object *obj, const char *key,
			const char *otherwise, const char **ret)
{
	const char *value = NULL;

	if (abx__json_get_str(obj, key, &value, NULL) <= 0) {
		*ret = otherwise;
		return ABX_OK;
	}
	return abx__strings_take(strings, abx__strdup(value), ret);
}

static int new_list(abx__strings *strings, size_t count, const char ***ret)
{
	const char **list = abx__calloc(count + 1, sizeof(*list));
	int r = keep(strings, list);

	if (r >= 0)
		*ret = list;
	return r;
}

int abx__strings_pairs(abx__strings *strings, json_object *obj, const char *const **ret)
{
	const char **list = NULL;
	size_t n = 0;
	int r;

	r = new_list(strings, obj ? (size_t)json_object_object_length(obj) : 0, &list);
	if (r < 0)
		return r;
	*ret = list;
	if (!obj)
		return ABX_OK;
	json_object_object_foreach(obj, key, value)
	{
		const char *text = abx__json_str(value);

		r = text ? abx__strings_take(strings, abx__strf("%s=%s", key, text),
					     &list[n])
			 : ABX_OK;
		if (r < 0)
			return r;
		n += text != NULL;
	}
	return ABX_OK;
}

int abx__strings_list(abx__strings *strings, json_object *array, const char *const **ret)
{
	size_t count = array ? json_object_array_length(array) : 0;
	const char **list = NULL;
	size_t n = 0;
	int r;

	r = new_list(strings, count, &list);
	if (r < 0)
		return r;
	*ret = list;
	for (size_t i = 0; i < count; i++) {
		const char *text = abx__json_str(json_object_array_get_idx(array, i));

		r = text ? abx__strings_take(strings, abx__strdup(text), &list[n])
			 : ABX_OK;
		if (r < 0)
			return r;
		n += text != NULL;
	}
	return ABX_OK;
}
