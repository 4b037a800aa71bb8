/* API keys over a real store: the first pair, lookup, removal, and nothing in plain text
 * at rest. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "io/json.h"
#include "serve/keys.h"
#include "store/sqlite.h"

typedef struct fixture {
	char dir[64];
	char pair[96];
	uv_loop_t loop;
	abx__store *store;
	abx__seal *seal;
	abx__keys *keys;
	int r;
	char raw[128];
	char id[64];
	bool done;
} fixture;

static fixture f;

static void on_done(void *userdata, int r, const abx_error *err)
{
	(void)userdata;
	(void)err;
	f.r = r;
	f.done = true;
}

static void wait_done(void)
{
	while (!f.done)
		uv_run(&f.loop, UV_RUN_ONCE);
	f.done = false;
}

static void open_all(void)
{
	const abx__store_sqlite_options options = { .dir = f.dir };
	char path[96];

	snprintf(path, sizeof(path), "%s/server.key", f.dir);
	uv_loop_init(&f.loop);
	cr_assert_eq(abx__store_sqlite_open(&f.loop, &options, &f.store, NULL), ABX_OK);
	cr_assert_eq(abx__seal_load(path, &f.seal, NULL), ABX_OK);
	cr_assert_eq(
		abx__keys_new(f.store, f.seal, &abx__clock_system, f.pair, &f.keys, NULL),
		ABX_OK);
	abx__keys_start(f.keys, on_done, NULL);
	wait_done();
	cr_assert_eq(f.r, ABX_OK);
}

static void on_closed(void *userdata)
{
	(void)userdata;
	f.done = true;
}

static void close_all(void)
{
	abx__keys_free(f.keys);
	f.store->ops->close(f.store, on_closed, NULL);
	wait_done();
	uv_run(&f.loop, UV_RUN_DEFAULT);
	cr_assert_eq(uv_loop_close(&f.loop), 0);
	abx__seal_free(f.seal);
}

static void setup(void)
{
	snprintf(f.dir, sizeof(f.dir), "/tmp/serve-keys-XXXXXX");
	cr_assert(mkdtemp(f.dir));
	snprintf(f.pair, sizeof(f.pair), "%s/keys.json", f.dir);
	open_all();
}

static void teardown(void)
{
	struct dirent *e;
	DIR *dir;

	close_all();
	dir = opendir(f.dir);
	while ((e = readdir(dir)))
		unlinkat(dirfd(dir), e->d_name, 0);
	closedir(dir);
	rmdir(f.dir);
}

/* The pair's file, parsed; the caller puts it. */
static json_object *read_pair(void)
{
	char text[512] = "";
	int fd = open(f.pair, O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	json_object *o = NULL;

	close(fd);
	cr_assert_gt(n, 0);
	cr_assert_eq(abx__json_parse_object(text, (size_t)n, 0, &o, NULL), ABX_OK);
	return o;
}

static const char *half(json_object *pair, const char *which)
{
	const char *text = NULL;

	cr_assert_eq(abx__json_get_str(pair, which, &text, NULL), 1);
	return text;
}

static void on_key(void *userdata, int r, const abx__api_key *key, const abx__secret *raw,
		   const abx_error *err)
{
	(void)userdata;
	(void)err;
	f.r = r;
	f.done = true;
	if (r < 0)
		return;
	snprintf(f.raw, sizeof(f.raw), "%s", raw ? abx__secret_reveal(raw) : "");
	snprintf(f.id, sizeof(f.id), "%s", key->id);
}

static void make_key(const char *team)
{
	const abx__api_key_spec spec = { .form = ABX__KEY_E2B,
					 .label = "mine",
					 .team = team,
					 .user = "u",
					 .namespace_ = "default" };

	abx__keys_create(f.keys, &spec, on_key, NULL);
	wait_done();
}

/* Is the text in any file of the directory but `except`? */
static bool at_rest(const char *text, const char *except)
{
	DIR *dir = opendir(f.dir);
	struct dirent *e;
	bool found = false;

	while ((e = readdir(dir))) {
		ABX_CLEANUP_BUF abx__buf buf = ABX__BUF_INIT;
		char piece[65536];
		int fd = openat(dirfd(dir), e->d_name, O_RDONLY);
		ssize_t n;

		if (e->d_name[0] == '.' || strcmp(e->d_name, except) == 0) {
			close(fd);
			continue;
		}
		while ((n = read(fd, piece, sizeof(piece))) > 0)
			abx__buf_add(&buf, piece, (size_t)n);
		close(fd);
		if (buf.len && memmem(buf.data, buf.len, text, strlen(text)))
			found = true;
	}
	closedir(dir);
	return found;
}

Test(serve_keys, first_start_makes_a_pair_for_its_owner_alone, .init = setup,
     .fini = teardown)
{
	ABX_CLEANUP_JSON json_object *pair = read_pair();
	const char *agbx = half(pair, "agbx"), *e2b = half(pair, "e2b");
	const abx__api_key *key;
	struct stat st;

	cr_assert_eq(stat(f.pair, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0600);
	cr_assert(abx__str_starts(agbx, "agbx_"));
	cr_assert_eq(strspn(agbx + 5, "0123456789abcdef"), 64);
	cr_assert_eq(strlen(agbx), 69);
	cr_assert(abx__str_starts(e2b, "e2b_"));
	cr_assert_eq(strspn(e2b + 4, "0123456789abcdef"), strlen(e2b + 4));
	key = abx__keys_find(f.keys, agbx);
	cr_assert_not_null(key);
	cr_assert(key->who.admin);
	cr_assert_not_null(abx__keys_find(f.keys, e2b));
	cr_assert_null(abx__keys_find(f.keys, "agbx_0"));
	cr_assert_null(abx__keys_find(f.keys, ""));
}

Test(serve_keys, are_the_same_after_a_restart, .init = setup, .fini = teardown)
{
	ABX_CLEANUP_JSON json_object *pair = read_pair();
	ABX_CLEANUP_JSON json_object *again = NULL;

	unlink(f.pair);
	close_all();
	open_all();
	again = read_pair();
	cr_assert_str_eq(half(pair, "agbx"), half(again, "agbx"),
			 "a lost file is written again from the sealed keys");
	cr_assert_str_eq(half(pair, "e2b"), half(again, "e2b"));
	cr_assert_not_null(abx__keys_find(f.keys, half(pair, "agbx")));
}

Test(serve_keys, are_nowhere_in_plain_text, .init = setup, .fini = teardown)
{
	ABX_CLEANUP_JSON json_object *pair = read_pair();

	make_key("team-of-the-test");
	close_all();
	cr_assert(at_rest("team-of-the-test", ""), "the search finds what is stored");
	cr_assert_not(at_rest(f.raw, "keys.json"));
	cr_assert_not(at_rest(f.raw + 4, "keys.json"), "nor the digits alone");
	cr_assert_not(at_rest(half(pair, "agbx") + 5, "keys.json"));
	cr_assert_not(at_rest(half(pair, "e2b") + 4, "keys.json"));
	open_all();
	cr_assert_not_null(abx__keys_find(f.keys, f.raw));
}

Test(serve_keys, removed_ones_stop_working_at_once, .init = setup, .fini = teardown)
{
	make_key("t");
	cr_assert_not_null(abx__keys_find(f.keys, f.raw));
	cr_assert_not(abx__keys_find(f.keys, f.raw)->who.admin);
	abx__keys_remove(f.keys, f.id, on_done, NULL);
	cr_assert_null(abx__keys_find(f.keys, f.raw));
	wait_done();
	cr_assert_eq(f.r, ABX_OK);
	abx__keys_remove(f.keys, f.id, on_done, NULL);
	wait_done();
	cr_assert_eq(f.r, ABX_ENOTFOUND);
}

Test(serve_keys, a_failed_creation_leaves_no_key, .init = setup, .fini = teardown)
{
	bool failed = false;

	for (unsigned n = 0; n < 60; n++) {
		const abx__api_key_spec spec = { .form = ABX__KEY_AGBX,
						 .label = "l",
						 .team = "t",
						 .user = "u",
						 .namespace_ = "n" };

		abx__test_fail_alloc_after(n);
		abx__keys_create(f.keys, &spec, on_key, NULL);
		abx__test_alloc_reset();
		wait_done();
		if (f.r == ABX_OK)
			break;
		cr_assert_eq(f.r, ABX_ENOMEM, "allocation %u gave %d", n, f.r);
		failed = true;
	}
	cr_assert(failed);
	cr_assert_eq(f.r, ABX_OK);
}

static void make(const abx__api_key_spec *spec)
{
	abx__keys_create(f.keys, spec, on_key, NULL);
	wait_done();
	cr_assert_eq(f.r, ABX_OK);
}

Test(serve_keys, an_expired_one_lets_nobody_in_and_is_listed, .init = setup,
     .fini = teardown)
{
	abx__api_key_spec spec = { .form = ABX__KEY_AGBX,
				   .label = "short",
				   .team = "t",
				   .user = "u",
				   .namespace_ = "n",
				   .expires_ms = abx__wall_ms() + 3600000 };

	make(&spec);
	cr_assert_not_null(abx__keys_find(f.keys, f.raw));
	spec.expires_ms = abx__wall_ms() - 1;
	make(&spec);
	cr_assert_null(abx__keys_find(f.keys, f.raw));
	cr_assert_not_null(abx__keys_by_id(f.keys, f.id));
	cr_assert_eq(abx__keys_count_of(f.keys, "t", "u"), 2);
	close_all();
	open_all();
	cr_assert_null(abx__keys_find(f.keys, f.raw));
}

Test(serve_keys, the_owner_may_have_its_text_again, .init = setup, .fini = teardown)
{
	ABX_CLEANUP(abx__secret_freep) abx__secret *raw = NULL;

	make_key("t");
	cr_assert_eq(abx__keys_reveal(f.keys, abx__keys_by_id(f.keys, f.id), &raw, NULL),
		     1);
	cr_assert_str_eq(abx__secret_reveal(raw), f.raw);
}

Test(serve_keys, an_imported_one_is_found_by_its_text_alone, .init = setup,
     .fini = teardown)
{
	static const char text[] = "agbx_a key of another cluster";
	ABX_CLEANUP(abx__secret_freep) abx__secret *raw = NULL;
	uint8_t sha[ABX__SHA256_LEN];
	char hex[2 * ABX__SHA256_LEN + 1], marked[sizeof(hex) + 8], first[64];
	const abx__api_key *key;
	abx__api_key_spec spec = { .label = "taken over",
				   .team = "t",
				   .user = "u",
				   .namespace_ = "n",
				   .token_hash = hex,
				   .issued_ms = 1600000000000 };

	abx__sha256(text, strlen(text), sha);
	abx__hex(sha, sizeof(sha), hex);
	make(&spec);
	snprintf(first, sizeof(first), "%s", f.id);
	make(&spec);
	cr_assert_str_eq(f.id, first, "a known hash is the key it is");
	for (int again = 0; again < 2; again++) {
		key = abx__keys_find(f.keys, text);
		cr_assert_not_null(key);
		cr_assert_eq(strncmp(key->name + strlen("agentbox-apikey-"), hex, 16), 0);
		cr_assert_eq(key->created_ms, 1600000000000);
		cr_assert_eq(abx__keys_reveal(f.keys, key, &raw, NULL), 0);
		cr_assert_null(abx__keys_find(f.keys, hex), "the hash is no key");
		snprintf(marked, sizeof(marked), "sha256:%s", hex);
		cr_assert_null(abx__keys_find(f.keys, marked), "nor is what is hashed");
		close_all();
		open_all();
	}
}

Test(serve_keys, approvals_stand_on_its_document, .init = setup, .fini = teardown)
{
	const abx__api_key_spec spec = { .form = ABX__KEY_AGBX,
					 .label = "agent",
					 .agent = true,
					 .team = "t",
					 .user = "u",
					 .namespace_ = "n" };
	char name[64];
	abx__key_grant g;

	make(&spec);
	cr_assert(abx__keys_find(f.keys, f.raw)->who.agent);
	snprintf(name, sizeof(name), "%s", abx__keys_by_id(f.keys, f.id)->name);
	cr_assert_not(abx__keys_grant_at(f.keys, name, 0, &g));
	abx__keys_grant(f.keys, name, "env.create", "u@x", on_done, NULL);
	wait_done();
	cr_assert_eq(f.r, ABX_OK);
	abx__keys_grant(f.keys, name, "env.update", "u@x", on_done, NULL);
	wait_done();
	close_all();
	open_all();
	cr_assert(abx__keys_find(f.keys, f.raw)->who.agent);
	cr_assert(abx__keys_has_grant(f.keys, name, "env.create"));
	cr_assert_not(abx__keys_has_grant(f.keys, name, "env.delete"));
	cr_assert(abx__keys_grant_at(f.keys, name, 1, &g));
	cr_assert_str_eq(g.operation, "env.update");
	cr_assert_str_eq(g.granted_by, "u@x");
	cr_assert_gt(g.granted_ms, 0);
	cr_assert_not(abx__keys_grant_at(f.keys, name, 2, &g));
	abx__keys_revoke(f.keys, name, "env.create", on_done, NULL);
	cr_assert_not(abx__keys_has_grant(f.keys, name, "env.create"), "at once");
	wait_done();
	close_all();
	open_all();
	cr_assert_not(abx__keys_has_grant(f.keys, name, "env.create"));
	cr_assert(abx__keys_has_grant(f.keys, name, "env.update"));
	abx__keys_grant(f.keys, "agentbox-apikey-nope", "env.create", "u", on_done, NULL);
	wait_done();
	cr_assert_eq(f.r, ABX_ENOTFOUND);
}
