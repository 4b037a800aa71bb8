/*
 * map.c - the ordered string map.
 */
#include "base/map.h"

#include <string.h>

#include "base/alloc.h"
#include <agentbox/error.h>

void abx__map_done(abx__map *map)
{
	for (size_t i = 0; i < map->count; i++) {
		abx__free(map->items[i].key);
		abx__free(map->items[i].value);
	}
	abx__free(map->items);
	*map = (abx__map)ABX__MAP_INIT;
}

/* The index of `key`, or of the place where it would go. */
static size_t position(const abx__map *map, const char *key, bool *found)
{
	size_t low = 0, high = map->count;

	*found = false;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(map->items[mid].key, key);

		if (order == 0) {
			*found = true;
			return mid;
		}
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

const char *abx__map_get(const abx__map *map, const char *key)
{
	bool found;
	size_t at = position(map, key, &found);

	return found ? map->items[at].value : NULL;
}

static int grow(abx__map *map)
{
	size_t size = map->size ? map->size * 2 : 8;
	abx__map_item *items;

	if (map->count < map->size)
		return ABX_OK;
	items = abx__reallocarray(map->items, size, sizeof(*items));
	if (!items)
		return ABX_ENOMEM;
	map->items = items;
	map->size = size;
	return ABX_OK;
}

int abx__map_set(abx__map *map, const char *key, const char *value)
{
	ABX_CLEANUP(abx__freep) char *copy = abx__strdup(value);
	ABX_CLEANUP(abx__freep) char *name = NULL;
	bool found;
	size_t at = position(map, key, &found);

	if (!copy)
		return ABX_ENOMEM;
	if (found) {
		abx__free(map->items[at].value);
		map->items[at].value = abx_take(copy);
		return ABX_OK;
	}
	name = abx__strdup(key);
	if (!name || grow(map) < 0)
		return ABX_ENOMEM;
	memmove(map->items + at + 1, map->items + at,
		(map->count - at) * sizeof(*map->items));
	map->items[at] =
		(abx__map_item){ .key = abx_take(name), .value = abx_take(copy) };
	map->count++;
	return ABX_OK;
}

bool abx__map_remove(abx__map *map, const char *key)
{
	bool found;
	size_t at = position(map, key, &found);

	if (!found)
		return false;
	abx__free(map->items[at].key);
	abx__free(map->items[at].value);
	map->count--;
	memmove(map->items + at, map->items + at + 1,
		(map->count - at) * sizeof(*map->items));
	return true;
}

int abx__map_copy(abx__map *dst, const abx__map *src)
{
	abx__map copy = ABX__MAP_INIT;

	for (size_t i = 0; i < src->count; i++) {
		if (abx__map_set(&copy, src->items[i].key, src->items[i].value) < 0) {
			abx__map_done(&copy);
			return ABX_ENOMEM;
		}
	}
	abx__map_done(dst);
	*dst = copy;
	return ABX_OK;
}

bool abx__map_equal(const abx__map *a, const abx__map *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->items[i].key, b->items[i].key) != 0 ||
		    strcmp(a->items[i].value, b->items[i].value) != 0)
			return false;
	return true;
}
