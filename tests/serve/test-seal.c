/* The server's key: its file, the seal, the lookup hash. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "serve/seal.h"

static char dir[] = "/tmp/serve-seal-XXXXXX";
static char path[64];

static void setup(void)
{
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/server.key", dir);
}

static void teardown(void)
{
	unlink(path);
	rmdir(dir);
}

static abx__seal *with_key(uint8_t byte)
{
	uint8_t key[ABX__SEAL_KEY_LEN];
	abx__seal *seal = NULL;

	memset(key, byte, sizeof(key));
	cr_assert_eq(abx__seal_new(key, &seal, NULL), ABX_OK);
	return seal;
}

Test(serve_seal, makes_a_key_only_its_owner_reads_and_finds_it_again, .init = setup,
     .fini = teardown)
{
	abx__seal *a = NULL, *b = NULL;
	uint8_t x[ABX__SHA256_LEN], y[ABX__SHA256_LEN];
	struct stat st;

	cr_assert_eq(abx__seal_load(path, &a, NULL), ABX_OK);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0600);
	cr_assert_eq(st.st_size, 32);
	cr_assert_eq(abx__seal_load(path, &b, NULL), ABX_OK);
	abx__seal_lookup_hash(a, "k", 1, x);
	abx__seal_lookup_hash(b, "k", 1, y);
	cr_assert_eq(memcmp(x, y, sizeof(x)), 0);
	abx__seal_free(a);
	abx__seal_free(b);
}

Test(serve_seal, refuses_a_key_others_may_read, .init = setup, .fini = teardown)
{
	abx__seal *seal = NULL;
	abx_error *err = NULL;

	cr_assert_eq(abx__seal_load(path, &seal, NULL), ABX_OK);
	abx__seal_free(seal);
	seal = NULL;
	chmod(path, 0640);
	cr_assert_eq(abx__seal_load(path, &seal, &err), ABX_EDENIED);
	cr_assert(strstr(abx_error_message(err), "chmod 600"));
	cr_assert_null(seal);
	abx_error_free(err);
}

Test(serve_seal, refuses_a_key_of_another_size_and_keeps_it, .init = setup,
     .fini = teardown)
{
	abx__seal *seal = NULL;
	abx_error *err = NULL;
	struct stat st;
	int fd = open(path, O_CREAT | O_WRONLY, 0600);

	cr_assert_eq(write(fd, "short", 5), 5);
	close(fd);
	cr_assert_eq(abx__seal_load(path, &seal, &err), ABX_EINVAL);
	cr_assert(strstr(abx_error_message(err), "5 bytes"));
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_size, 5);
	abx_error_free(err);
}

Test(serve_seal, opens_what_it_sealed_and_nothing_else)
{
	abx__seal *seal = with_key(1), *other = with_key(2);
	abx__secret *plain = NULL;
	char *text = NULL, *again = NULL;

	cr_assert_eq(abx__seal_wrap(seal, "name", "secret", 6, &text, NULL), ABX_OK);
	cr_assert_eq(abx__seal_wrap(seal, "name", "secret", 6, &again, NULL), ABX_OK);
	cr_assert_str_neq(text, again, "a nonce is used once");
	cr_assert_null(strstr(text, "secret"));
	cr_assert_eq(abx__seal_unwrap(seal, "name", text, &plain, NULL), ABX_OK);
	cr_assert_str_eq(abx__secret_reveal(plain), "secret");
	abx__secret_free(plain);
	plain = NULL;
	cr_assert_eq(abx__seal_unwrap(seal, "other name", text, &plain, NULL),
		     ABX_EDENIED);
	cr_assert_eq(abx__seal_unwrap(other, "name", text, &plain, NULL), ABX_EDENIED);
	cr_assert_eq(abx__seal_unwrap(seal, "name", "AAAA", &plain, NULL), ABX_EDENIED);
	cr_assert_eq(abx__seal_unwrap(seal, "name", "!", &plain, NULL), ABX_EDENIED);
	text[20] = text[20] == 'A' ? 'B' : 'A';
	cr_assert_eq(abx__seal_unwrap(seal, "name", text, &plain, NULL), ABX_EDENIED);
	cr_assert_null(plain);
	abx__free(text);
	abx__free(again);
	abx__seal_free(seal);
	abx__seal_free(other);
}

Test(serve_seal, derives_unrelated_keys)
{
	abx__seal *seal = with_key(1);
	uint8_t hash[ABX__SHA256_LEN], same[ABX__SHA256_LEN];

	abx__seal_lookup_hash(seal, "x", 1, hash);
	abx__hmac_sha256(abx__seal_token_key(seal), ABX__SHA256_LEN, "x", 1, same);
	cr_assert_neq(memcmp(hash, same, sizeof(hash)), 0);
	abx__seal_free(seal);
}

Test(serve_seal, reports_out_of_memory)
{
	abx__seal *seal = with_key(1);
	char *text = NULL;
	int r = ABX_ENOMEM;

	for (unsigned n = 0; r != ABX_OK; n++) {
		abx__test_fail_alloc_after(n);
		r = abx__seal_wrap(seal, "name", "secret", 6, &text, NULL);
		abx__test_alloc_reset();
		cr_assert(r == ABX_OK || r == ABX_ENOMEM);
	}
	abx__free(text);
	abx__seal_free(seal);
}
