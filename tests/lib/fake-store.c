/*
 * fake-store.c - documents in a list. It uses libc's allocator: faults of the seam are
 * for what is tested.
 */
#include "fake-store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"

enum op_type { GET, LIST, CREATE, UPDATE, REMOVE };

typedef struct doc {
	struct doc *next;
	char *kind, *ns, *name, *body;
	char uid[ABX__UUID_LEN + 1];
	uint64_t version;
} doc;

typedef struct op {
	struct op *next;
	enum op_type type;
	bool applied;
	char *kind, *ns, *name, *body;
	uint64_t version;
	int r;
	doc *removed;
	abx__doc_done done;
	abx__docs_done docs_done;
	void *userdata;
} op;

typedef struct fake_store {
	abx__store base;
	doc *docs;
	op *ops, **tail;
	uint64_t version;
	unsigned fail_count;
	int fail_code;
} fake_store;

static char *copy(const char *s)
{
	return s ? strdup(s) : NULL;
}

static void doc_free(doc *d)
{
	if (!d)
		return;
	free(d->kind);
	free(d->ns);
	free(d->name);
	free(d->body);
	free(d);
}

static void op_free(op *o)
{
	free(o->kind);
	free(o->ns);
	free(o->name);
	free(o->body);
	doc_free(o->removed);
	free(o);
}

static doc *find(fake_store *s, const op *o)
{
	for (doc *d = s->docs; d; d = d->next)
		if (!strcmp(d->kind, o->kind) && !strcmp(d->ns, o->ns) &&
		    !strcmp(d->name, o->name))
			return d;
	return NULL;
}

static void apply_create(fake_store *s, op *o)
{
	doc **p = &s->docs, *d;

	if (find(s, o)) {
		o->r = ABX_EEXISTS;
		return;
	}
	d = calloc(1, sizeof(*d));
	d->kind = copy(o->kind);
	d->ns = copy(o->ns);
	d->name = copy(o->name);
	d->body = copy(o->body);
	abx__id_uuid(d->uid);
	d->version = ++s->version;
	while (*p && strcmp((*p)->name, d->name) < 0)
		p = &(*p)->next;
	d->next = *p;
	*p = d;
}

static void apply_change(fake_store *s, op *o)
{
	doc *d = find(s, o);

	if (!d || (o->version && d->version != o->version)) {
		o->r = d ? ABX_ECONFLICT : ABX_ENOTFOUND;
		return;
	}
	d->version = ++s->version;
	if (o->type == UPDATE) {
		free(d->body);
		d->body = copy(o->body);
		return;
	}
	for (doc **p = &s->docs; *p; p = &(*p)->next) {
		if (*p == d) {
			*p = d->next;
			break;
		}
	}
	o->removed = d;
}

static void apply(fake_store *s, op *o)
{
	o->applied = true;
	if (o->type <= LIST)
		return;
	if (s->fail_count) {
		s->fail_count--;
		o->r = s->fail_code;
	} else if (o->type == CREATE) {
		apply_create(s, o);
	} else {
		apply_change(s, o);
	}
}

static abx__doc view(const doc *d)
{
	return (abx__doc){ .kind = d->kind,
			   .namespace_ = d->ns,
			   .name = d->name,
			   .uid = d->uid,
			   .version = d->version,
			   .created_ms = 1,
			   .body = d->body,
			   .body_len = strlen(d->body) };
}

static void report_list(fake_store *s, op *o)
{
	abx__doc *docs = calloc(fake_store_count(&s->base) + 1, sizeof(*docs));
	size_t count = 0;

	for (doc *d = s->docs; d; d = d->next)
		if (!strcmp(d->kind, o->kind) && (!o->ns || !strcmp(d->ns, o->ns)))
			docs[count++] = view(d);
	o->docs_done(o->userdata, ABX_OK, docs, count, NULL);
	free(docs);
}

static void report(fake_store *s, op *o)
{
	doc *d = o->removed ? o->removed : o->type == LIST ? NULL : find(s, o);
	abx_error *err = NULL;
	abx__doc v;

	if (o->type == LIST) {
		report_list(s, o);
		return;
	}
	if (o->r == ABX_OK && !d)
		o->r = ABX_ENOTFOUND;
	if (o->r < 0) {
		abx__error_set(&err, o->r, "fake store: %s %s", o->kind, o->name);
		o->done(o->userdata, o->r, NULL, err);
		abx_error_free(err);
		return;
	}
	v = view(d);
	o->done(o->userdata, ABX_OK, &v, NULL);
}

bool fake_store_step(abx__store *base)
{
	fake_store *s = (fake_store *)base;
	op *o = s->ops;

	if (!o)
		return false;
	if (!o->applied) {
		apply(s, o);
		return true;
	}
	s->ops = o->next;
	if (!s->ops)
		s->tail = &s->ops;
	report(s, o);
	op_free(o);
	return true;
}

void fake_store_detach(abx__store *base)
{
	fake_store *s = (fake_store *)base;

	while (s->ops) {
		op *o = s->ops;

		s->ops = o->next;
		op_free(o);
	}
	s->tail = &s->ops;
}

static op *push(abx__store *base, enum op_type type, const char *kind, const char *ns,
		const char *name, void *userdata)
{
	fake_store *s = (fake_store *)base;
	op *o = calloc(1, sizeof(*o));

	o->type = type;
	o->kind = copy(kind);
	o->ns = copy(ns);
	o->name = copy(name);
	o->userdata = userdata;
	*s->tail = o;
	s->tail = &o->next;
	return o;
}

static void do_get(abx__store *s, const char *kind, const char *ns, const char *name,
		   abx__doc_done done, void *userdata)
{
	push(s, GET, kind, ns, name, userdata)->done = done;
}

static void do_list(abx__store *s, const char *kind, const char *ns, abx__docs_done done,
		    void *userdata)
{
	push(s, LIST, kind, ns, NULL, userdata)->docs_done = done;
}

static void do_create(abx__store *s, const char *kind, const char *ns, const char *name,
		      const char *body, size_t len, abx__doc_done done, void *userdata)
{
	op *o = push(s, CREATE, kind, ns, name, userdata);

	o->body = strndup(body, len);
	o->done = done;
}

static void do_update(abx__store *s, const char *kind, const char *ns, const char *name,
		      uint64_t version, const char *body, size_t len, abx__doc_done done,
		      void *userdata)
{
	op *o = push(s, UPDATE, kind, ns, name, userdata);

	o->body = strndup(body, len);
	o->version = version;
	o->done = done;
}

static void do_remove(abx__store *s, const char *kind, const char *ns, const char *name,
		      uint64_t version, abx__doc_done done, void *userdata)
{
	op *o = push(s, REMOVE, kind, ns, name, userdata);

	o->version = version;
	o->done = done;
}

static const abx__store_ops ops = {
	.name = "fake",
	.get = do_get,
	.list = do_list,
	.create = do_create,
	.update = do_update,
	.remove = do_remove,
};

abx__store *fake_store_new(void)
{
	fake_store *s = calloc(1, sizeof(*s));

	s->base.ops = &ops;
	s->tail = &s->ops;
	return &s->base;
}

void fake_store_free(abx__store *base)
{
	fake_store *s = (fake_store *)base;

	fake_store_detach(base);
	while (s->docs) {
		doc *d = s->docs;

		s->docs = d->next;
		doc_free(d);
	}
	free(s);
}

void fake_store_fail(abx__store *base, unsigned count, int code)
{
	((fake_store *)base)->fail_count = count;
	((fake_store *)base)->fail_code = code;
}

size_t fake_store_count(const abx__store *base)
{
	size_t n = 0;

	for (const doc *d = ((const fake_store *)base)->docs; d; d = d->next)
		n++;
	return n;
}

size_t fake_store_count_of(const abx__store *base, const char *kind)
{
	size_t n = 0;

	for (const doc *d = ((const fake_store *)base)->docs; d; d = d->next)
		n += strcmp(d->kind, kind) == 0;
	return n;
}
