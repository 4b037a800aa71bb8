/*
 * metadata.c - user metadata in extended attributes.
 */
#include "envd/metadata.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/xattr.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"

#define HEADER "X-Metadata-"
#define HEADER_LEN (sizeof(HEADER) - 1)
#define PREFIX_LEN (sizeof(ABX__METADATA_PREFIX) - 1)

/* ---- headers ---- */

/* Printable US-ASCII: what a header carries unharmed in both directions. */
static int check_text(const char *what, const char *key, const char *text,
		      abx_error **reterr)
{
	for (size_t i = 0; text[i]; i++)
		if (text[i] < 0x20 || text[i] > 0x7e)
			return abx__error_set(
				reterr, ABX_EINVAL,
				"invalid metadata: %s of '%.64s' contains "
				"non-printable-ASCII byte 0x%02x at offset %zu",
				what, key, (unsigned)(unsigned char)text[i], i);
	return ABX_OK;
}

int abx__metadata_add_header(abx__map *metadata, const char *name, const char *value,
			     abx_error **reterr)
{
	char key[ABX__METADATA_MAX_KEY + 1];
	size_t len = strlen(name);
	int r;

	if (strncasecmp(name, HEADER, HEADER_LEN) != 0)
		return 0;
	name += HEADER_LEN;
	len -= HEADER_LEN;
	if (len == 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "invalid metadata: a key is empty");
	if (len > ABX__METADATA_MAX_KEY)
		return abx__error_set(reterr, ABX_EINVAL,
				      "invalid metadata: key '%.64s' exceeds %d bytes",
				      name, ABX__METADATA_MAX_KEY);
	for (size_t i = 0; i <= len; i++)
		key[i] = (char)tolower((unsigned char)name[i]);
	r = check_text("key", key, key, reterr);
	if (r >= 0)
		r = check_text("value", key, value, reterr);
	if (r < 0 || abx__map_get(metadata, key))
		return r < 0 ? r : 1;
	r = abx__map_set(metadata, key, value);
	return r < 0 ? abx__error_nomem(reterr) : 1;
}

int abx__metadata_check(const abx__map *metadata, abx_error **reterr)
{
	size_t total = 0;

	for (size_t i = 0; i < metadata->count; i++)
		total += PREFIX_LEN + strlen(metadata->items[i].key) +
			 strlen(metadata->items[i].value);
	if (total > ABX__METADATA_MAX_SET)
		return abx__error_set(reterr, ABX_EINVAL,
				      "invalid metadata: total size %zu exceeds %d bytes",
				      total, ABX__METADATA_MAX_SET);
	return ABX_OK;
}

/* ---- names of a file ---- */

static ssize_t call_list(const char *path, int fd, char *data, size_t size)
{
	return path ? listxattr(path, data, size) : flistxattr(fd, data, size);
}

/* The attribute names of `path`, or of `fd` when it is NULL, NUL after each. A negative
 * errno. Asks for the size first: most files have none, and listings ask for many. */
static int list_names(const char *path, int fd, abx__buf *names)
{
	ssize_t len = call_list(path, fd, NULL, 0);

	while (len > 0) {
		if (abx__buf_reserve(names, (size_t)len) < 0)
			return -ENOMEM;
		len = call_list(path, fd, names->data, names->size - 1);
		if (len < 0 && errno == ERANGE) { /* it grew meanwhile */
			len = call_list(path, fd, NULL, 0);
			continue;
		}
		break;
	}
	if (len < 0)
		return -errno;
	names->len = (size_t)len;
	if (names->data)
		names->data[len] = '\0';
	return 0;
}

/* The next of our names at or behind `at`; NULL at the end. */
static const char *next_of_ours(const abx__buf *names, const char *at)
{
	for (; at && at < names->data + names->len; at += strlen(at) + 1)
		if (strncmp(at, ABX__METADATA_PREFIX, PREFIX_LEN) == 0)
			return at;
	return NULL;
}

/* ---- writing ---- */

static int remove_others(int fd, const abx__map *metadata)
{
	ABX_CLEANUP_BUF abx__buf names = ABX__BUF_INIT;
	int r = list_names(NULL, fd, &names);
	const char *name = r < 0 ? NULL : next_of_ours(&names, names.data);

	for (; name; name = next_of_ours(&names, name + strlen(name) + 1)) {
		if (metadata && abx__map_get(metadata, name + PREFIX_LEN))
			continue;
		if (fremovexattr(fd, name) < 0 && errno != ENODATA)
			return -errno;
	}
	return r;
}

int abx__metadata_write(int fd, const abx__map *metadata)
{
	int r = remove_others(fd, metadata);

	for (size_t i = 0; r == 0 && metadata && i < metadata->count; i++) {
		const abx__map_item *item = &metadata->items[i];
		char name[PREFIX_LEN + ABX__METADATA_MAX_KEY + 1];

		snprintf(name, sizeof(name), "%s%s", ABX__METADATA_PREFIX, item->key);
		if (fsetxattr(fd, name, item->value, strlen(item->value), 0) < 0)
			return -errno;
	}
	return r;
}

/* ---- reading ---- */

/* One value, text only: 1 when it was taken; `room` shrinks. */
static int read_value(const char *path, const char *name, abx__buf *value, size_t *room)
{
	ssize_t len = getxattr(path, name, NULL, 0);

	if (len < 0 || (size_t)len > *room)
		return 0;
	abx__buf_clear(value);
	if (abx__buf_reserve(value, (size_t)len + 1) < 0)
		return ABX_ENOMEM;
	len = getxattr(path, name, value->data, (size_t)len);
	if (len < 0) /* changed meanwhile */
		return 0;
	value->len = (size_t)len;
	value->data[len] = '\0';
	*room -= (size_t)len;
	return abx__utf8_is_valid(value->data, value->len) &&
	       !memchr(value->data, '\0', value->len);
}

int abx__metadata_read(const char *path, abx__map *ret)
{
	ABX_CLEANUP_BUF abx__buf names = ABX__BUF_INIT, value = ABX__BUF_INIT;
	size_t room = ABX__METADATA_MAX_READ;
	const char *name;
	int r = list_names(path, -1, &names);

	if (r < 0)
		return r == -ENOMEM ? ABX_ENOMEM : ABX_OK;
	for (name = next_of_ours(&names, names.data); name;
	     name = next_of_ours(&names, name + strlen(name) + 1)) {
		const char *key = name + PREFIX_LEN;

		r = abx__utf8_is_valid(key, strlen(key))
			    ? read_value(path, name, &value, &room)
			    : 0;
		if (r > 0)
			r = abx__map_set(ret, key, value.data);
		if (r < 0)
			return r;
	}
	return ABX_OK;
}
