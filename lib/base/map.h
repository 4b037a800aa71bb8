/*
 * map.h - an ordered map from string to string: labels, annotations, metadata,
 * environment variables.
 *
 * Small by nature, so a sorted array; keys are unique; iteration is by index.
 * Zero-initialised is valid.
 */
#ifndef ABX_BASE_MAP_H
#define ABX_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

typedef struct abx__map_item {
	char *key;
	char *value;
} abx__map_item;

typedef struct abx__map {
	abx__map_item *items; /* sorted by key */
	size_t count;
	size_t size;
} abx__map;

#define ABX__MAP_INIT \
	{             \
		0     \
	}

void abx__map_done(abx__map *map);
const char *abx__map_get(const abx__map *map, const char *key); /* NULL when absent */
int abx__map_set(abx__map *map, const char *key,
		 const char *value); /* copies both; replaces */
bool abx__map_remove(abx__map *map, const char *key);
int abx__map_copy(abx__map *dst,
		  const abx__map *src); /* dst is replaced, unchanged on failure */
bool abx__map_equal(const abx__map *a, const abx__map *b);

#endif
