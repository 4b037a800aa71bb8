/*
 * keys-start.c - the index is loaded from the store, and the first pair of keys made and
 * written where the owner finds it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/str.h"
#include "serve/keys-priv.h"

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

static abx__key_entry *first_of(const abx__keys *keys, enum abx__key_form form)
{
	for (abx__key_entry *e = keys->index; e; e = e->hh.next)
		if (e->key.who.admin &&
		    strcmp(e->key.label, ABX__KEYS_FIRST_LABEL) == 0 &&
		    strcmp(e->key.prefix, abx__key_prefix(form)) == 0)
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
	abx__key_entry *a = first_of(keys, ABX__KEY_AGBX),
		       *b = first_of(keys, ABX__KEY_E2B);
	ABX_CLEANUP(abx__secret_freep) abx__secret *agbx = NULL;
	ABX_CLEANUP(abx__secret_freep) abx__secret *e2b = NULL;
	int r;

	/* The owner may have removed one: then there is no pair to write, and none is
	 * missed. */
	if (!a || !b)
		return ABX_OK;
	r = abx__seal_unwrap(keys->seal, a->name, abx__key_text(a, "sealed"), &agbx,
			     reterr);
	if (r < 0)
		return r;
	r = abx__seal_unwrap(keys->seal, b->name, abx__key_text(b, "sealed"), &e2b,
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
					 .label = ABX__KEYS_FIRST_LABEL,
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
		ABX_CLEANUP(abx__key_entry_freep) abx__key_entry *e = NULL;
		json_object *body = NULL;
		int r;

		r = abx__json_parse_object(docs[i].body, docs[i].body_len, 0, &body,
					   reterr);
		if (r < 0)
			return abx__error_prefix(reterr, "API key document %s",
						 docs[i].name);
		r = abx__key_entry_new(docs[i].name, body, &e, reterr);
		if (r == ABX_OK)
			r = abx__keys_index_add(keys, e, reterr);
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
	keys->store->ops->list(keys->store, ABX__KEYS_KIND, NULL, on_listed, op);
}
