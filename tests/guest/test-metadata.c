/*
 * test-metadata.c - metadata from headers, and in extended attributes.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/alloc.h"
#include "envd/metadata.h"

Test(guest_metadata, headers_become_lower_case_keys_and_the_first_counts)
{
	abx__map set = ABX__MAP_INIT;

	cr_assert_eq(abx__metadata_add_header(&set, "x-METADATA-Author", "A b~", NULL),
		     1);
	cr_assert_eq(abx__metadata_add_header(&set, "X-Metadata-author", "two", NULL), 1);
	cr_assert_eq(abx__metadata_add_header(&set, "X-Metadata-e", "", NULL), 1);
	cr_assert_eq(abx__metadata_add_header(&set, "X-Meta", "no", NULL), 0);
	cr_assert_eq(set.count, 2);
	cr_assert_str_eq(abx__map_get(&set, "author"), "A b~");
	cr_assert_str_eq(abx__map_get(&set, "e"), "");
	cr_assert_eq(abx__metadata_check(&set, NULL), ABX_OK);
	abx__map_done(&set);
}

Test(guest_metadata, what_cannot_be_kept_is_told)
{
	char long_key[300] = "X-Metadata-";
	const struct {
		const char *name, *value, *text;
	} rows[] = {
		{ "X-Metadata-", "v", "invalid metadata: a key is empty" },
		{ long_key, "v", "exceeds 246 bytes" },
		{ "X-Metadata-k", "a\tb",
		  "invalid metadata: value of 'k' contains non-printable-ASCII byte 0x09 "
		  "at offset 1" },
		{ "X-Metadata-k", "\xc3\xbc",
		  "invalid metadata: value of 'k' contains non-printable-ASCII byte 0xc3 "
		  "at offset 0" },
		{ "X-Metadata-a\x7f", "v",
		  "invalid metadata: key of 'a\x7f' contains non-printable-ASCII byte "
		  "0x7f "
		  "at offset 1" },
	};
	abx__map set = ABX__MAP_INIT;

	memset(long_key + 11, 'k', 247);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		abx_error *err = NULL;

		cr_assert_eq(
			abx__metadata_add_header(&set, rows[i].name, rows[i].value, &err),
			ABX_EINVAL);
		cr_assert(strstr(abx_error_message(err), rows[i].text), "%s",
			  abx_error_message(err));
		abx_error_free(err);
	}
	cr_assert_eq(set.count, 0);
	long_key[11 + 246] = '\0';
	cr_assert_eq(abx__metadata_add_header(&set, long_key, "v", NULL), 1);
	abx__map_done(&set);
}

Test(guest_metadata, a_set_has_4096_bytes)
{
	abx__map set = ABX__MAP_INIT;
	abx_error *err = NULL;
	char value[4097];

	memset(value, 'v', sizeof(value) - 1);
	value[4096 - 10] = '\0'; /* user.e2b.k */
	abx__map_set(&set, "k", value);
	cr_assert_eq(abx__metadata_check(&set, NULL), ABX_OK);
	value[4096 - 10] = 'v';
	value[4096 - 9] = '\0';
	abx__map_set(&set, "k", value);
	cr_assert_eq(abx__metadata_check(&set, &err), ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err),
			 "invalid metadata: total size 4097 exceeds 4096 bytes");
	abx_error_free(err);
	abx__map_done(&set);
}

Test(guest_metadata, a_write_replaces_the_set_and_leaves_other_attributes)
{
	char path[] = "/tmp/abx-metadata-XXXXXX";
	int fd = mkstemp(path);
	abx__map set = ABX__MAP_INIT, got = ABX__MAP_INIT;

	if (fsetxattr(fd, "user.other", "x", 1, 0) < 0) {
		unlink(path);
		cr_skip_test("no user attributes here: %s", strerror(errno));
	}
	fsetxattr(fd, "user.e2b.old", "x", 1, 0);
	abx__map_set(&set, "a", "1");
	abx__map_set(&set, "b", "");
	cr_assert_eq(abx__metadata_write(fd, &set), 0);
	cr_assert_eq(abx__metadata_read(path, &got), ABX_OK);
	cr_assert(abx__map_equal(&set, &got));
	cr_assert_eq(fgetxattr(fd, "user.other", NULL, 0), 1);
	/* What is no text is left out, not guessed at. */
	fsetxattr(fd, "user.e2b.bad", "\xff", 1, 0);
	fsetxattr(fd, "user.e2b.nul", "a\0b", 3, 0);
	fsetxattr(fd, "user.e2b.\xff", "x", 1, 0);
	abx__map_done(&got);
	cr_assert_eq(abx__metadata_read(path, &got), ABX_OK);
	cr_assert(abx__map_equal(&set, &got));
	cr_assert_eq(abx__metadata_write(fd, NULL), 0);
	abx__map_done(&got);
	cr_assert_eq(abx__metadata_read(path, &got), ABX_OK);
	cr_assert_eq(got.count, 0);
	cr_assert_eq(fgetxattr(fd, "user.e2b.bad", NULL, 0), -1);
	cr_assert_eq(abx__metadata_read("/nowhere", &got), ABX_OK);
	abx__map_done(&set);
	close(fd);
	unlink(path);
}
