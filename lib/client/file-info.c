/*
 * file-info.c - reading EntryInfo messages, one or a list of them.
 */
#include "client/file-info.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "client/strings.h"
#include "io/json.h"

struct stored {
	abx_file_info info; /* first: the public pointer is this one */
	abx__strings strings;
};

struct abx_file_list {
	abx_file_info *items;
	size_t count;
	abx__strings strings;
};

void abx_file_info_free(abx_file_info *info)
{
	struct stored *stored = (struct stored *)info;

	if (!stored)
		return;
	abx__strings_done(&stored->strings);
	abx__free(stored);
}

void abx_file_list_free(abx_file_list *list)
{
	if (!list)
		return;
	abx__strings_done(&list->strings);
	abx__free(list->items);
	abx__free(list);
}

ABX_DEFINE_FREEP(info_freep, abx_file_info, abx_file_info_free)
ABX_DEFINE_FREEP(list_freep, abx_file_list, abx_file_list_free)

size_t abx_file_list_count(abx_file_list *list)
{
	return list->count;
}

const abx_file_info *abx_file_list_at(abx_file_list *list, size_t index)
{
	return index < list->count ? &list->items[index] : NULL;
}

static int type_of(json_object *obj)
{
	static const char *const names[] = {
		[ABX_FILE_REGULAR] = "FILE_TYPE_FILE",
		[ABX_FILE_DIRECTORY] = "FILE_TYPE_DIRECTORY",
		[ABX_FILE_SYMLINK] = "FILE_TYPE_SYMLINK",
	};
	const char *name = NULL;

	abx__json_get_str(obj, "type", &name, NULL);
	for (int i = ABX_FILE_REGULAR; i <= ABX_FILE_SYMLINK; i++)
		if (abx__str_eq(name, names[i]))
			return i;
	return ABX_FILE_UNKNOWN;
}

/* proto3's JSON has int64 as a string; numbers are taken too. */
static int64_t size_of(json_object *obj)
{
	const char *text = NULL;
	int64_t value = 0;

	if (abx__json_get_i64(obj, "size", 0, INT64_MAX, &value, NULL) > 0)
		return value;
	if (abx__json_get_str(obj, "size", &text, NULL) > 0)
		abx__parse_i64(text, 0, INT64_MAX, &value);
	return value;
}

static int parse_entry(abx__strings *strings, json_object *obj, abx_file_info *info)
{
	const char *modified = NULL;
	json_object *metadata = NULL;
	int64_t mode = 0;
	int64_t us = 0;
	int r;

	if (!json_object_is_type(obj, json_type_object))
		return ABX_EPROTO;
	info->size = sizeof(*info);
	info->type = type_of(obj);
	info->length_bytes = size_of(obj);
	abx__json_get_i64(obj, "mode", 0, UINT32_MAX, &mode, NULL);
	info->mode = (uint32_t)mode;
	if (abx__json_get_str(obj, "modifiedTime", &modified, NULL) > 0 &&
	    abx__rfc3339_parse(modified, &us) >= 0)
		info->modified_at_ms = us / 1000;
	r = abx__strings_member(strings, obj, "name", "", &info->name);
	if (r >= 0)
		r = abx__strings_member(strings, obj, "path", "", &info->path);
	if (r >= 0)
		r = abx__strings_member(strings, obj, "permissions", "",
					&info->permissions);
	if (r >= 0)
		r = abx__strings_member(strings, obj, "owner", "", &info->owner);
	if (r >= 0)
		r = abx__strings_member(strings, obj, "group", "", &info->group);
	if (r >= 0)
		r = abx__strings_member(strings, obj, "symlinkTarget", NULL,
					&info->symlink_target);
	abx__json_get_object(obj, "metadata", &metadata, NULL);
	if (r >= 0)
		r = abx__strings_pairs(strings, metadata, &info->metadata);
	return r;
}

int abx__file_info_parse(json_object *answer, abx_file_info **ret)
{
	ABX_CLEANUP(info_freep) abx_file_info *info = NULL;
	struct stored *stored = abx__calloc(1, sizeof(*stored));
	json_object *entry = NULL;
	int r;

	if (!stored)
		return ABX_ENOMEM;
	info = &stored->info;
	if (abx__json_get_object(answer, "entry", &entry, NULL) <= 0)
		return ABX_EPROTO;
	r = parse_entry(&stored->strings, entry, info);
	if (r >= 0)
		*ret = abx_take(info);
	return r;
}

int abx__file_list_parse(json_object *answer, abx_file_list **ret)
{
	ABX_CLEANUP(list_freep) abx_file_list *list = abx__calloc(1, sizeof(*list));
	json_object *array = NULL;
	size_t count;
	int r;

	if (!list)
		return ABX_ENOMEM;
	if (abx__json_get_array(answer, "entries", &array, NULL) < 0)
		return ABX_EPROTO;
	count = array ? json_object_array_length(array) : 0;
	list->items = abx__calloc(count + 1, sizeof(*list->items));
	if (!list->items)
		return ABX_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		r = parse_entry(&list->strings, json_object_array_get_idx(array, i),
				&list->items[i]);
		if (r < 0)
			return r;
		list->count++;
	}
	*ret = abx_take(list);
	return ABX_OK;
}
