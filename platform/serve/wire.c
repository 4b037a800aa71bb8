/*
 * wire.c - pieces of bodies both surfaces share.
 */
#include "serve/wire.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
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

/* How long the character at `s` is; 0: it is none. */
static size_t character(const char *s, size_t len)
{
	for (size_t n = 1; n <= 4 && n <= len; n++)
		if (abx__utf8_is_valid(s, n))
			return n;
	return 0;
}

json_object *abx__json_clean_text(const char *s, size_t len)
{
	ABX_CLEANUP_BUF abx__buf clean = ABX__BUF_INIT;
	int r = ABX_OK;

	if (abx__utf8_is_valid(s, len))
		return json_object_new_string_len(s, (int)len);
	for (size_t i = 0, n; r == ABX_OK && i < len; i += n ? n : 1) {
		n = character(s + i, len - i);
		r = n ? abx__buf_add(&clean, s + i, n)
		      : abx__buf_add(&clean, "\xef\xbf\xbd", 3);
	}
	return r == ABX_OK
		       ? json_object_new_string_len(abx__buf_str(&clean), (int)clean.len)
		       : NULL;
}
