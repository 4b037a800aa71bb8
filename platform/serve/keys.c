/*
 * keys.c - the index of API keys over the store's ApiKey documents.
 *
 * Lookup is by keyed hash through a hash table, so what a guess costs tells nothing about
 * the keys that exist; the full hash is compared in constant time on top.
 */
#include "serve/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "io/json.h"

#define HASH_NONFATAL_OOM 1
#define uthash_malloc(sz) abx__malloc(sz)
#define uthash_free(p, sz) abx__free(p)
#define uthash_nonfatal_oom(e) ((e)->indexed = false)
#include <uthash.h>

#define KIND "ApiKey"
#define NAME_PREFIX "agentbox-apikey-"
#define FIRST_LABEL "first"
#define KEYS_MAX 10000

typedef struct entry {
	abx__api_key key;
	json_object *body; /* owns every string of `key` but the static ones */
	char name[sizeof(NAME_PREFIX) + 16];
	uint8_t hash[ABX__SHA256_LEN];
	bool indexed;
	UT_hash_handle hh;
} entry;

struct abx__keys {
	abx__store *store;
	const abx__seal *seal;
	const abx__clock *clock;
	char *pair_path;
	entry *index;
	unsigned pending;
};

static const struct {
	const char *prefix;
	size_t bytes;
} forms[] = {
	[ABX__KEY_AGBX] = { "agbx_", 32 },
	[ABX__KEY_E2B] = { "e2b_", 20 },
};

const abx__identity abx__identity_local = { .admin = true,
					    .team = "admin",
					    .user = "admin",
					    .namespace_ = "default",
					    .key_name = "" };

static void entry_free(entry *e)
{
	if (!e)
		return;
	json_object_put(e->body);
	abx__free(e);
}

ABX_DEFINE_FREEP(entry_freep, entry, entry_free)

int abx__keys_new(abx__store *store, const abx__seal *seal, const abx__clock *clock,
		  const char *pair_path, abx__keys **ret, abx_error **reterr)
{
	abx__keys *keys = abx__calloc(1, sizeof(*keys));
	char *path = abx__strdup(pair_path);

	if (!keys || !path) {
		abx__free(keys);
		abx__free(path);
		return abx__error_nomem(reterr);
	}
	keys->store = store;
	keys->seal = seal;
	keys->clock = clock;
	keys->pair_path = path;
	*ret = keys;
	return ABX_OK;
}

void abx__keys_free(abx__keys *keys)
{
	entry *e, *next;

	if (!keys)
		return;
	HASH_ITER(hh, keys->index, e, next)
	{
		HASH_DEL(keys->index, e);
		entry_free(e);
	}
	abx__free(keys->pair_path);
	abx__free(keys);
}

/* ---- documents ---- */

static const char *text_of(json_object *body, const char *field)
{
	const char *value = NULL;

	return abx__json_get_str(body, field, &value, NULL) == 1 ? value : NULL;
}

static int unhex(const char *hex, uint8_t *out, size_t len)
{
	static const char digits[] = "0123456789abcdef";

	if (!hex || strlen(hex) != 2 * len)
		return ABX_EINVAL;
	for (size_t i = 0; i < 2 * len; i++) {
		const char *d = strchr(digits, hex[i]);
		if (!d)
			return ABX_EINVAL;
		out[i / 2] =
			(uint8_t)(i % 2 ? out[i / 2] | (d - digits) : (d - digits) << 4);
	}
	return ABX_OK;
}

static bool fill_key(abx__api_key *key, json_object *body)
{
	const char *role = text_of(body, "role");
	int64_t digits = 0;

	key->id = text_of(body, "id");
	key->label = text_of(body, "label");
	key->created_by = text_of(body, "createdBy");
	key->prefix = text_of(body, "prefix");
	key->head = text_of(body, "head");
	key->tail = text_of(body, "tail");
	key->who.team = text_of(body, "team");
	key->who.user = text_of(body, "user");
	key->who.namespace_ = text_of(body, "namespace");
	abx__json_get_i64(body, "digits", 0, 256, &digits, NULL);
	key->digits = (size_t)digits;
	abx__json_get_i64(body, "createdMs", 0, INT64_MAX, &key->created_ms, NULL);
	key->who.admin = role && strcmp(role, "admin") == 0;
	return key->id && key->label && key->created_by && key->prefix && key->head &&
	       key->tail && key->who.team && key->who.user && key->who.namespace_ &&
	       role && text_of(body, "sealed");
}

/* Takes `body`, also on failure. */
static int entry_new(const char *name, json_object *body, entry **ret, abx_error **reterr)
{
	ABX_CLEANUP(entry_freep) entry *e = abx__calloc(1, sizeof(*e));

	if (!e) {
		json_object_put(body);
		return abx__error_nomem(reterr);
	}
	e->body = body;
	if (abx__str_copy(e->name, sizeof(e->name), name) < 0 ||
	    !fill_key(&e->key, body) ||
	    unhex(text_of(body, "hash"), e->hash, sizeof(e->hash)) < 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "API key document %s is damaged", name);
	e->key.name = e->name;
	e->key.who.key_name = e->name;
	*ret = abx_take(e);
	return ABX_OK;
}

static int index_add(abx__keys *keys, entry *e, abx_error **reterr)
{
	if (HASH_COUNT(keys->index) >= KEYS_MAX)
		return abx__error_set(reterr, ABX_EEXHAUSTED, "no more than %d API keys",
				      KEYS_MAX);
	e->indexed = true;
	HASH_ADD(hh, keys->index, hash, sizeof(e->hash), e);
	return e->indexed ? ABX_OK : abx__error_nomem(reterr);
}

/* ---- lookups ---- */

const abx__api_key *abx__keys_find(const abx__keys *keys, const char *raw)
{
	uint8_t hash[ABX__SHA256_LEN];
	size_t len = strlen(raw);
	entry *e = NULL;

	if (len > 256 || abx__seal_lookup_hash(keys->seal, raw, len, hash) < 0)
		return NULL;
	HASH_FIND(hh, keys->index, hash, sizeof(hash), e);
	return e && CRYPTO_memcmp(e->hash, hash, sizeof(hash)) == 0 ? &e->key : NULL;
}

bool abx__keys_at(const abx__keys *keys, size_t index, const abx__api_key **ret)
{
	const entry *e = keys->index;

	while (e && index--)
		e = e->hh.next;
	if (e)
		*ret = &e->key;
	return e != NULL;
}

static entry *by_id(const abx__keys *keys, const char *id)
{
	for (entry *e = keys->index; e; e = e->hh.next)
		if (strcmp(e->key.id, id) == 0 || strcmp(e->name, id) == 0)
			return e;
	return NULL;
}

const abx__api_key *abx__keys_by_id(const abx__keys *keys, const char *id)
{
	entry *e = by_id(keys, id);

	return e ? &e->key : NULL;
}

/* ---- creating ---- */

typedef struct create_op {
	abx__keys *keys;
	entry *e;
	abx__secret *raw;
	abx__key_done done;
	void *userdata;
} create_op;

static void create_op_free(create_op *op)
{
	if (!op)
		return;
	entry_free(op->e);
	abx__secret_free(op->raw);
	abx__free(op);
}

ABX_DEFINE_FREEP(create_op_freep, create_op, create_op_free)

static int make_raw(enum abx__key_form form, abx__secret **ret, abx_error **reterr)
{
	uint8_t bytes[32];
	char text[8 + 2 * sizeof(bytes) + 1];
	size_t n = strlen(forms[form].prefix);

	if (abx__random(bytes, forms[form].bytes) < 0)
		return abx__error_set(reterr, ABX_EIO, "no random bytes for an API key");
	memcpy(text, forms[form].prefix, n);
	abx__hex(bytes, forms[form].bytes, text + n);
	*ret = abx__secret_new(text, strlen(text));
	abx__wipe(bytes, sizeof(bytes));
	abx__wipe(text, sizeof(text));
	return *ret ? ABX_OK : abx__error_nomem(reterr);
}

static bool add_text(json_object *o, const char *field, const char *value)
{
	return abx__json_set_str(o, field, value) == ABX_OK;
}

static bool body_who(json_object *o, const abx__api_key_spec *spec)
{
	return add_text(o, "label", spec->label) &&
	       add_text(o, "role", spec->admin ? "admin" : "tenant") &&
	       add_text(o, "team", spec->team) && add_text(o, "user", spec->user) &&
	       add_text(o, "namespace", spec->namespace_) &&
	       add_text(o, "createdBy", spec->created_by ? spec->created_by : "");
}

static bool body_shape(json_object *o, const abx__keys *keys, enum abx__key_form form,
		       const char *raw)
{
	size_t skip = strlen(forms[form].prefix), len = strlen(raw);
	char uuid[ABX__UUID_LEN + 1], head[3];

	memcpy(head, raw + skip, 2);
	head[2] = '\0';
	return abx__id_uuid(uuid) == ABX_OK && add_text(o, "id", uuid) &&
	       add_text(o, "prefix", forms[form].prefix) && add_text(o, "head", head) &&
	       add_text(o, "tail", raw + len - 4) &&
	       abx__json_set_i64(o, "digits", (int64_t)(len - skip)) == ABX_OK &&
	       abx__json_set_i64(o, "createdMs",
				 keys->clock->wall_ms(keys->clock->userdata)) == ABX_OK;
}

static int make_body(const abx__keys *keys, const abx__api_key_spec *spec,
		     const char *name, const abx__secret *raw, json_object **ret,
		     abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	ABX_CLEANUP(abx__freep) char *sealed = NULL;
	const char *text = abx__secret_reveal(raw);
	uint8_t hash[ABX__SHA256_LEN];
	char hex[2 * ABX__SHA256_LEN + 1];
	int r = abx__seal_wrap(keys->seal, name, text, abx__secret_len(raw), &sealed,
			       reterr);

	if (r < 0)
		return r;
	if (abx__seal_lookup_hash(keys->seal, text, abx__secret_len(raw), hash) < 0)
		return abx__error_set(reterr, ABX_EIO, "cannot hash an API key");
	abx__hex(hash, sizeof(hash), hex);
	if (!o || !body_who(o, spec) || !body_shape(o, keys, spec->form, text) ||
	    !add_text(o, "hash", hex) || !add_text(o, "sealed", sealed))
		return abx__error_nomem(reterr);
	*ret = abx_take(o);
	return ABX_OK;
}

static int create_op_new(abx__keys *keys, const abx__api_key_spec *spec, create_op **ret,
			 abx_error **reterr)
{
	ABX_CLEANUP(create_op_freep) create_op *op = abx__calloc(1, sizeof(*op));
	char name[sizeof(NAME_PREFIX) + 16] = NAME_PREFIX;
	uint8_t sha[ABX__SHA256_LEN];
	json_object *body = NULL;
	int r;

	if (!op)
		return abx__error_nomem(reterr);
	op->keys = keys;
	r = make_raw(spec->form, &op->raw, reterr);
	if (r < 0)
		return r;
	r = abx__sha256(abx__secret_reveal(op->raw), abx__secret_len(op->raw), sha);
	if (r < 0)
		return abx__error_set(reterr, ABX_EIO, "cannot hash an API key");
	abx__hex(sha, 8, name + strlen(NAME_PREFIX));
	r = make_body(keys, spec, name, op->raw, &body, reterr);
	if (r < 0)
		return r;
	r = entry_new(name, body, &op->e, reterr);
	if (r < 0)
		return r;
	*ret = abx_take(op);
	return ABX_OK;
}

static void on_created(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	ABX_CLEANUP(create_op_freep) create_op *op = userdata;
	ABX_CLEANUP(abx__error_freep) abx_error *own = NULL;

	(void)doc;
	op->keys->pending--;
	if (r == ABX_OK) {
		r = index_add(op->keys, op->e, &own);
		err = own;
	}
	if (r < 0) {
		op->done(op->userdata, r, NULL, NULL, err);
		return;
	}
	op->done(op->userdata, ABX_OK, &op->e->key, op->raw, NULL);
	op->e = NULL; /* the index owns it */
}

void abx__keys_create(abx__keys *keys, const abx__api_key_spec *spec, abx__key_done done,
		      void *userdata)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	create_op *op = NULL;
	ABX_CLEANUP(abx__freep) char *text = NULL;
	size_t len = 0;
	int r = create_op_new(keys, spec, &op, &err);

	if (r < 0 || !op) {
		done(userdata, r, NULL, NULL, err);
		return;
	}
	op->done = done;
	op->userdata = userdata;
	text = abx__json_text(op->e->body, &len);
	if (!text) {
		create_op_free(op);
		abx__error_nomem(&err);
		done(userdata, ABX_ENOMEM, NULL, NULL, err);
		return;
	}
	keys->pending++;
	keys->store->ops->create(keys->store, KIND, "", op->e->name, text, len,
				 on_created, op);
}

/* ---- removing ---- */

typedef struct remove_op {
	abx__keys *keys;
	void (*done)(void *userdata, int r, const abx_error *err);
	void *userdata;
	entry *e;
} remove_op;

static void on_removed(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	remove_op *op = userdata;
	ABX_CLEANUP(abx__error_freep) abx_error *own = NULL;

	(void)doc;
	op->keys->pending--;
	/* A document that would not go is still a key: back into the index, so that
	 * memory and store agree. */
	if (r < 0 && r != ABX_ENOTFOUND && index_add(op->keys, op->e, &own) == ABX_OK)
		op->e = NULL;
	op->done(op->userdata, r, err);
	entry_free(op->e);
	abx__free(op);
}

void abx__keys_remove(abx__keys *keys, const char *id,
		      void (*done)(void *userdata, int r, const abx_error *err),
		      void *userdata)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	entry *e = by_id(keys, id);
	remove_op *op;
	int r;

	if (!e) {
		r = abx__error_set(&err, ABX_ENOTFOUND, "API key %s not found", id);
		done(userdata, r, err);
		return;
	}
	op = abx__calloc(1, sizeof(*op));
	if (!op) {
		r = abx__error_nomem(&err);
		done(userdata, r, err);
		return;
	}
	op->keys = keys;
	op->done = done;
	op->userdata = userdata;
	op->e = e;
	HASH_DEL(keys->index, e);
	keys->pending++;
	keys->store->ops->remove(keys->store, KIND, "", e->name, 0, on_removed, op);
}

/* ---- starting ---- */

typedef struct start_op {
	abx__keys *keys;
	void (*done)(void *userdata, int r, const abx_error *err);
	void *userdata;
} start_op;

static void start_end(start_op *op, int r, const abx_error *err)
{
	op->done(op->userdata, r, err);
	abx__free(op);
}

static entry *first_of(const abx__keys *keys, enum abx__key_form form)
{
	for (entry *e = keys->index; e; e = e->hh.next)
		if (e->key.who.admin && strcmp(e->key.label, FIRST_LABEL) == 0 &&
		    strcmp(e->key.prefix, forms[form].prefix) == 0)
			return e;
	return NULL;
}

static int write_pair_file(const char *path, const char *agbx, const char *e2b,
			   abx_error **reterr)
{
	char text[256];
	int len = snprintf(text, sizeof(text), "{\"agbx\": \"%s\", \"e2b\": \"%s\"}\n",
			   agbx, e2b);
	ABX_CLEANUP(abx__freep) char *tmp = abx__strf("%s.new", path);
	ABX_CLEANUP(abx__closep) int fd = -1;
	int r = ABX_OK;

	if (!tmp)
		return abx__error_nomem(reterr);
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fchmod(fd, 0600) < 0 || write(fd, text, (size_t)len) != len ||
	    fsync(fd) < 0 || rename(tmp, path) < 0)
		r = abx__error_errno(reterr, ABX_EIO, errno, "key file %s", path);
	abx__wipe(text, sizeof(text));
	return r;
}

static int write_pair(abx__keys *keys, abx_error **reterr)
{
	entry *a = first_of(keys, ABX__KEY_AGBX), *b = first_of(keys, ABX__KEY_E2B);
	ABX_CLEANUP(abx__secret_freep) abx__secret *agbx = NULL;
	ABX_CLEANUP(abx__secret_freep) abx__secret *e2b = NULL;
	int r;

	/* The owner may have removed one: then there is no pair to write, and none is
	 * missed. */
	if (!a || !b)
		return ABX_OK;
	r = abx__seal_unwrap(keys->seal, a->name, text_of(a->body, "sealed"), &agbx,
			     reterr);
	if (r < 0)
		return r;
	r = abx__seal_unwrap(keys->seal, b->name, text_of(b->body, "sealed"), &e2b,
			     reterr);
	if (r < 0)
		return r;
	return write_pair_file(keys->pair_path, abx__secret_reveal(agbx),
			       abx__secret_reveal(e2b), reterr);
}

static void finish_start(start_op *op)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int r = ABX_OK;

	if (access(op->keys->pair_path, F_OK) < 0)
		r = write_pair(op->keys, &err);
	start_end(op, r, err);
}

static void on_second_made(void *userdata, int r, const abx__api_key *key,
			   const abx__secret *raw, const abx_error *err)
{
	start_op *op = userdata;

	(void)key;
	(void)raw;
	if (r < 0)
		start_end(op, r, err);
	else
		finish_start(op);
}

static void make_first(start_op *op, enum abx__key_form form, abx__key_done done)
{
	const abx__api_key_spec spec = { .form = form,
					 .label = FIRST_LABEL,
					 .admin = true,
					 .team = "admin",
					 .user = "admin",
					 .namespace_ = "default" };

	abx__keys_create(op->keys, &spec, done, op);
}

static void on_first_made(void *userdata, int r, const abx__api_key *key,
			  const abx__secret *raw, const abx_error *err)
{
	start_op *op = userdata;

	(void)key;
	(void)raw;
	if (r < 0)
		start_end(op, r, err);
	else
		make_first(op, ABX__KEY_E2B, on_second_made);
}

static int load_docs(abx__keys *keys, const abx__doc *docs, size_t count,
		     abx_error **reterr)
{
	for (size_t i = 0; i < count; i++) {
		ABX_CLEANUP(entry_freep) entry *e = NULL;
		json_object *body = NULL;
		int r;

		r = abx__json_parse_object(docs[i].body, docs[i].body_len, 0, &body,
					   reterr);
		if (r < 0)
			return abx__error_prefix(reterr, "API key document %s",
						 docs[i].name);
		r = entry_new(docs[i].name, body, &e, reterr);
		if (r == ABX_OK)
			r = index_add(keys, e, reterr);
		if (r < 0)
			return r;
		e = NULL;
	}
	return ABX_OK;
}

static void on_listed(void *userdata, int r, const abx__doc *docs, size_t count,
		      const abx_error *err)
{
	start_op *op = userdata;
	ABX_CLEANUP(abx__error_freep) abx_error *own = NULL;

	op->keys->pending--;
	if (r == ABX_OK) {
		r = load_docs(op->keys, docs, count, &own);
		err = own;
	}
	if (r < 0)
		start_end(op, r, err);
	else if (count == 0)
		make_first(op, ABX__KEY_AGBX, on_first_made);
	else if (count == 1 && first_of(op->keys, ABX__KEY_AGBX))
		make_first(op, ABX__KEY_E2B,
			   on_second_made); /* the first start was cut short */
	else
		finish_start(op);
}

void abx__keys_start(abx__keys *keys,
		     void (*done)(void *userdata, int r, const abx_error *err),
		     void *userdata)
{
	start_op *op = abx__calloc(1, sizeof(*op));
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	if (!op) {
		abx__error_nomem(&err);
		done(userdata, ABX_ENOMEM, err);
		return;
	}
	op->keys = keys;
	op->done = done;
	op->userdata = userdata;
	keys->pending++;
	keys->store->ops->list(keys->store, KIND, NULL, on_listed, op);
}
