/*
 * keys-write.c - API keys are made, imported and removed, and approvals written on them:
 * one write of the store each.
 */
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "serve/keys-priv.h"

/* ---- creating ---- */

typedef struct create_op {
	abx__keys *keys;
	abx__key_entry *e;
	abx__secret *raw; /* NULL: an import */
	abx__key_done done;
	void *userdata;
} create_op;

static void create_op_free(create_op *op)
{
	if (!op)
		return;
	abx__key_entry_free(op->e);
	abx__secret_free(op->raw);
	abx__free(op);
}

ABX_DEFINE_FREEP(create_op_freep, create_op, create_op_free)

static void on_created(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	ABX_CLEANUP(create_op_freep) create_op *op = userdata;
	ABX_CLEANUP(abx__error_freep) abx_error *own = NULL;

	(void)doc;
	op->keys->pending--;
	if (r == ABX_OK) {
		r = abx__keys_index_add(op->keys, op->e, &own);
		err = own;
	}
	if (r < 0) {
		op->done(op->userdata, r, NULL, NULL, err);
		return;
	}
	op->done(op->userdata, ABX_OK, &op->e->key, op->raw, NULL);
	op->e = NULL; /* the index owns it */
}

/* True: the hash is known, and the caller told. */
static bool is_known(abx__keys *keys, const abx__api_key_spec *spec, abx__key_done done,
		     void *userdata)
{
	char name[ABX__KEYS_NAME_SIZE] = ABX__KEYS_NAME_PREFIX;
	const abx__api_key *key;

	if (!spec->token_hash)
		return false;
	memcpy(name + strlen(name), spec->token_hash, 16);
	key = abx__keys_by_id(keys, name);
	if (key)
		done(userdata, ABX_OK, key, NULL, NULL);
	return key != NULL;
}

void abx__keys_create(abx__keys *keys, const abx__api_key_spec *spec, abx__key_done done,
		      void *userdata)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP(create_op_freep) create_op *op = NULL;
	ABX_CLEANUP(abx__freep) char *text = NULL;
	size_t len = 0;
	int r;

	if (is_known(keys, spec, done, userdata))
		return;
	op = abx__calloc(1, sizeof(*op));
	r = op ? abx__key_entry_make(keys, spec, &op->e, &op->raw, &err)
	       : abx__error_nomem(&err);
	if (r == ABX_OK) {
		text = abx__json_text(op->e->body, &len);
		r = text ? ABX_OK : abx__error_nomem(&err);
	}
	if (r < 0) {
		done(userdata, r, NULL, NULL, err);
		return;
	}
	op->keys = keys;
	op->done = done;
	op->userdata = userdata;
	keys->pending++;
	keys->store->ops->create(keys->store, ABX__KEYS_KIND, "", op->e->name, text, len,
				 on_created, op);
	op = NULL; /* on_created has it */
}

/* ---- removing ---- */

typedef struct remove_op {
	abx__keys *keys;
	abx__keys_done done;
	void *userdata;
	abx__key_entry *e;
} remove_op;

static void on_removed(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	remove_op *op = userdata;
	ABX_CLEANUP(abx__error_freep) abx_error *own = NULL;

	(void)doc;
	op->keys->pending--;
	/* A document that would not go is still a key: back into the index, so that
	 * memory and store agree. */
	if (r < 0 && r != ABX_ENOTFOUND &&
	    abx__keys_index_add(op->keys, op->e, &own) == ABX_OK)
		op->e = NULL;
	op->done(op->userdata, r, err);
	abx__key_entry_free(op->e);
	abx__free(op);
}

static void refuse(abx__keys_done done, void *userdata, const char *id)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int r = id ? abx__error_set(&err, ABX_ENOTFOUND, "API key %s not found", id)
		   : abx__error_nomem(&err);

	done(userdata, r, err);
}

void abx__keys_remove(abx__keys *keys, const char *id, abx__keys_done done,
		      void *userdata)
{
	abx__key_entry *e = abx__keys_entry(keys, id);
	remove_op *op = e ? abx__calloc(1, sizeof(*op)) : NULL;

	if (!op) {
		refuse(done, userdata, e ? NULL : id);
		return;
	}
	op->keys = keys;
	op->done = done;
	op->userdata = userdata;
	op->e = e;
	HASH_DEL(keys->index, e);
	keys->pending++;
	keys->store->ops->remove(keys->store, ABX__KEYS_KIND, "", e->name, 0, on_removed,
				 op);
}

/* ---- standing approvals ---- */

typedef struct grant_op {
	abx__keys *keys;
	char name[ABX__KEYS_NAME_SIZE];
	char *operation;
	json_object *before; /* what to put back when the write fails; NULL: nothing */
	abx__keys_done done;
	void *userdata;
} grant_op;

static void grant_op_free(grant_op *op)
{
	if (!op)
		return;
	json_object_put(op->before);
	abx__free(op->operation);
	abx__free(op);
}

ABX_DEFINE_FREEP(grant_op_freep, grant_op, grant_op_free)

/* The grants of the key, made when there are none; NULL when out of memory. Borrowed. */
static json_object *grants_for_writing(abx__key_entry *e)
{
	json_object *grants = NULL;

	if (abx__json_get_object(e->body, "grants", &grants, NULL) == 1)
		return grants;
	grants = json_object_new_object();
	if (!grants || abx__json_set_take(e->body, "grants", grants) < 0)
		return NULL;
	return grants;
}

/* `grant` (taken) takes the place of what is there; NULL: nothing does. */
static int put_grant(abx__key_entry *e, const char *operation, json_object *grant)
{
	json_object *grants = grants_for_writing(e);

	if (!grants) {
		json_object_put(grant);
		return ABX_ENOMEM;
	}
	json_object_object_del(grants, operation);
	return grant ? abx__json_set_take(grants, operation, grant) : ABX_OK;
}

static void on_granted(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	ABX_CLEANUP(grant_op_freep) grant_op *op = userdata;
	abx__key_entry *e = abx__keys_entry(op->keys, op->name);

	(void)doc;
	op->keys->pending--;
	if (r < 0 && e)
		put_grant(e, op->operation, abx_take(op->before));
	op->done(op->userdata, r, err);
}

/* The index changes now, the document with the write that follows, in the store's order:
   so two writes of one key do not undo each other. */
static int write_grant(grant_op *op, abx__key_entry *e, json_object *grant)
{
	ABX_CLEANUP(abx__freep) char *text = NULL;
	json_object *grants = grants_for_writing(e), *before = NULL;
	size_t len = 0;

	if (grants && json_object_object_get_ex(grants, op->operation, &before))
		op->before = json_object_get(before);
	if (put_grant(e, op->operation, grant) < 0)
		return ABX_ENOMEM;
	text = abx__json_text(e->body, &len);
	if (!text) {
		put_grant(e, op->operation, abx_take(op->before));
		return ABX_ENOMEM;
	}
	op->keys->pending++;
	op->keys->store->ops->update(op->keys->store, ABX__KEYS_KIND, "", e->name, 0,
				     text, len, on_granted, op);
	return ABX_OK;
}

static void change_grant(abx__keys *keys, const char *name, const char *operation,
			 json_object *grant, abx__keys_done done, void *userdata)
{
	ABX_CLEANUP(grant_op_freep) grant_op *op = NULL;
	abx__key_entry *e = abx__keys_entry(keys, name);

	op = e ? abx__calloc(1, sizeof(*op)) : NULL;
	if (op)
		op->operation = abx__strdup(operation);
	if (!op || !op->operation) {
		json_object_put(grant);
		refuse(done, userdata, e ? NULL : name);
		return;
	}
	op->keys = keys;
	op->done = done;
	op->userdata = userdata;
	memcpy(op->name, e->name, sizeof(op->name));
	if (write_grant(op, e, grant) < 0)
		refuse(done, userdata, NULL);
	else
		op = NULL; /* on_granted has it */
}

void abx__keys_grant(abx__keys *keys, const char *name, const char *operation,
		     const char *granted_by, abx__keys_done done, void *userdata)
{
	json_object *grant = json_object_new_object();
	int64_t now = keys->clock->wall_ms(keys->clock->userdata);

	if (!grant || abx__json_set_str(grant, "grantedBy", granted_by) < 0 ||
	    abx__json_set_i64(grant, "grantedMs", now) < 0) {
		json_object_put(grant);
		refuse(done, userdata, NULL);
		return;
	}
	change_grant(keys, name, operation, grant, done, userdata);
}

void abx__keys_revoke(abx__keys *keys, const char *name, const char *operation,
		      abx__keys_done done, void *userdata)
{
	change_grant(keys, name, operation, NULL, done, userdata);
}
