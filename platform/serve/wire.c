/*
 * wire.c - pieces of bodies both surfaces share.
 */
#include "serve/wire.h"

#include "base/clock.h"
#include "base/error.h"
#include "io/json.h"

int abx__json_set_time(json_object *o, const char *key, int64_t wall_ms)
{
	char text[ABX__RFC3339_SIZE];

	abx__rfc3339_format(wall_ms, text);
	return abx__json_set_str(o, key, text);
}

int abx__json_set_map(json_object *o, const char *key, const abx__map *map)
{
	json_object *v = json_object_new_object();
	int r = v ? abx__json_set_take(o, key, v) : ABX_ENOMEM;

	for (size_t i = 0; r == ABX_OK && i < map->count; i++)
		r = abx__json_set_str(v, map->items[i].key, map->items[i].value);
	return r;
}

int abx__json_get_map(json_object *o, const char *key, abx__map *ret, abx_error **reterr)
{
	json_object *v = NULL;
	int r = abx__json_get_object(o, key, &v, reterr);

	if (r <= 0)
		return r;
	json_object_object_foreach(v, name, item)
	{
		const char *text = item ? abx__json_str(item) : NULL;

		if (!*name || !text)
			return abx__error_set(reterr, ABX_EINVAL,
					      "%s[\"%s\"] must be a string", key, name);
		if (abx__map_set(ret, name, text) < 0)
			return abx__error_nomem(reterr);
	}
	return 1;
}
