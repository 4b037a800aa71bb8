/*
 * change.c - one queue of writes a Pod: they happen one after the other, so a version
 * checked is a version held.
 */
#include "engine/local/state.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

/* ---- change ---- */

static void next_write(struct lpod *p);

static struct write *take_write(struct lpod *p)
{
	struct write *w = p->writes;

	p->writes = w->next;
	if (!p->writes)
		p->writes_tail = &p->writes;
	return w;
}

/* The Pod is looked up again afterwards: `done` may do anything. */
static void end_write(struct lpod *p, int r, const abx_error *err)
{
	struct local *l = p->local;
	struct write *w = take_write(p);
	char *ns = abx__strdup(p->ns), *name = abx__strdup(p->name);
	abx__pod v = abx__lpod_view(p);

	p->writing = false;
	w->done(w->userdata, r, r < 0 ? NULL : &v, err);
	abx__local_write_free(w);
	p = ns && name ? abx__lpod_find(l, ns, name) : NULL;
	if (p && r == ABX_OK)
		abx__lpod_report(p);
	p = ns && name ? abx__lpod_find(l, ns, name) : NULL;
	if (p)
		next_write(p);
	abx__free(ns);
	abx__free(name);
}

static void on_written(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	struct lpod *p = userdata;
	struct local *l = p->local;

	l->busy--;
	if (r == ABX_OK) {
		bool anew = p->next_anew;
		bool other = p->next.activity != p->doc.activity;

		abx__pod_doc_done(&p->doc);
		p->doc = p->next;
		memset(&p->next, 0, sizeof(p->next));
		p->version = doc->version;
		if (anew && !l->closing && l->podd_synced) {
			if (p->refused && !p->in_podd)
				abx__tell_create(p);
			else
				abx__tell_swap(p, p->next_restart);
		} else if (other && !l->closing && l->podd_synced) {
			abx__tell_activity(p);
		}
	} else {
		abx__pod_doc_done(&p->next);
	}
	end_write(p, r, err);
	abx__local_maybe_closed(l);
}

/* 1 begun, else the error. */
static int begin_write(struct lpod *p, const struct write *w, abx_error **reterr)
{
	struct local *l = p->local;
	char *body;
	size_t len;
	int r;

	if (p->deleting)
		return abx__error_set(reterr, ABX_ENOTFOUND,
				      "there is no Pod %s in namespace %s", p->name,
				      p->ns);
	if (w->change.expect_version && w->change.expect_version != p->version)
		return abx__error_set(reterr, ABX_ECONFLICT,
				      "Pod %s was changed meanwhile", p->name);
	r = abx__pod_doc_copy(&p->next, &p->doc);
	if (r == ABX_OK)
		r = abx__pod_doc_apply(&p->next, &w->change);
	body = r < 0 ? NULL : abx__pod_doc_print(&p->next, &len);
	if (!body) {
		abx__pod_doc_done(&p->next);
		return abx__error_nomem(reterr);
	}
	p->next_anew = r == 1;
	p->next_restart = w->change.restart;
	p->writing = true;
	l->busy++;
	l->store->ops->update(l->store, ABX__LOCAL_KIND, p->ns, p->name, p->version, body,
			      len, on_written, p);
	abx__free(body);
	return 1;
}

static void next_write(struct lpod *p)
{
	while (!p->writing && p->writes) {
		abx_error *err = NULL;
		int r = begin_write(p, p->writes, &err);

		if (r == 1)
			return;
		/* end_write() goes on with the next one by itself, or the Pod is gone. */
		end_write(p, r, err);
		abx_error_free(err);
		return;
	}
	if (!p->writing && p->deleting && p->delete_done)
		abx__local_begin_delete(p);
}

static char **copy_strv(const char *const *v, bool *ok)
{
	size_t n = 0;
	char **copy;

	if (!v)
		return NULL;
	while (v[n])
		n++;
	copy = abx__calloc(n + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++)
		if (!(copy[i] = abx__strdup(v[i])))
			*ok = false;
	*ok &= copy != NULL;
	return copy;
}

static struct write *write_new(const abx__pod_change *c, abx__pod_done done,
			       void *userdata)
{
	struct write *w = abx__calloc(1, sizeof(*w));
	bool ok = true;

	if (!w)
		return NULL;
	w->done = done;
	w->userdata = userdata;
	w->change = *c;
	if (c->set_labels)
		ok &= abx__map_copy(&w->set_labels, c->set_labels) == ABX_OK;
	if (c->set_annotations)
		ok &= abx__map_copy(&w->set_annotations, c->set_annotations) == ABX_OK;
	w->remove_labels = copy_strv(c->remove_labels, &ok);
	w->remove_annotations = copy_strv(c->remove_annotations, &ok);
	if (c->image)
		ok &= (w->image = abx__strdup(c->image)) != NULL;
	w->change.set_labels = &w->set_labels;
	w->change.set_annotations = &w->set_annotations;
	w->change.remove_labels = (const char *const *)w->remove_labels;
	w->change.remove_annotations = (const char *const *)w->remove_annotations;
	w->change.image = w->image;
	if (ok)
		return w;
	abx__local_write_free(w);
	return NULL;
}

void abx__local_change_pod(abx__engine *engine, const char *namespace_, const char *name,
			   const abx__pod_change *change, abx__pod_done done,
			   void *userdata)
{
	struct local *l = abx__local_of(engine);
	abx_error *err = NULL;
	struct lpod *p = abx__lpod_find_live(l, namespace_, name, &err);
	struct write *w = NULL;
	int r = ABX_OK;

	if (!p) {
		r = ABX_ENOTFOUND;
	} else if (!p->writing && !p->writes && change->expect_version &&
		   change->expect_version != p->version) {
		r = abx__error_set(&err, ABX_ECONFLICT, "Pod %s was changed meanwhile",
				   name);
	} else {
		w = write_new(change, done, userdata);
		if (!w)
			r = abx__error_nomem(&err);
	}
	if (r < 0) {
		abx__local_fail_later(
			l, r, err,
			(struct later){ .pod_done = done, .userdata = userdata });
		return;
	}
	*p->writes_tail = w;
	p->writes_tail = &w->next;
	if (!p->writing && p->writes == w) {
		r = begin_write(p, w, &err);
		if (r < 0) {
			take_write(p);
			abx__local_write_free(w);
			abx__local_fail_later(
				l, r, err,
				(struct later){ .pod_done = done, .userdata = userdata });
		}
	}
}
