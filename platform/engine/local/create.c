/*
 * create.c - a Pod's document is made, and removed.
 */
#include "engine/local/state.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/podd/readiness.h"
#include "io/json.h"

/* ---- create ---- */

static int check_spec(struct local *l, json_object *pod_template, abx__spec **ret,
		      abx_error **reterr)
{
	abx__spec *spec = NULL;
	bool known;
	int r = abx__spec_parse(pod_template, &spec, reterr);

	if (r < 0)
		return r;
	known = !spec->runtime_class;
	for (size_t i = 0;
	     !known && l->classes && i < json_object_array_length(l->classes); i++)
		known = strcmp(json_object_get_string(
				       json_object_array_get_idx(l->classes, i)),
			       spec->runtime_class) == 0;
	if (!known)
		r = abx__error_set(
			reterr, ABX_EUNSUPPORTED,
			"spec.runtimeClassName: this machine has no runtime class %s",
			spec->runtime_class);
	if (r == ABX_OK && ret)
		*ret = spec;
	else
		abx__spec_free(spec);
	return r;
}

int abx__local_check_template(abx__engine *engine, json_object *pod_template,
			      abx_error **reterr)
{
	return check_spec(abx__local_of(engine), pod_template, NULL, reterr);
}

static void on_created(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	struct lpod *p = userdata;
	struct local *l = p->local;
	abx__pod_done done = p->create_done;
	void *done_userdata = p->op_userdata;
	abx__pod v;

	l->busy--;
	p->creating = false;
	if (r < 0) {
		abx__lpod_free(p);
		done(done_userdata, r, NULL, err);
		abx__local_maybe_closed(l);
		return;
	}
	p->version = doc->version;
	p->created_ms = doc->created_ms;
	if (!l->closing && l->podd_synced)
		abx__tell_create(p);
	v = abx__lpod_view(p);
	done(done_userdata, ABX_OK, &v, NULL);
	p = abx__lpod_find(l, doc->namespace_, doc->name);
	if (p)
		abx__lpod_report(p);
	abx__local_maybe_closed(l);
}

static int check_name(const char *what, const char *s, abx_error **reterr)
{
	size_t len = strlen(s);

	if (len >= 1 && len <= 63 && s[0] != '-' &&
	    strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == len)
		return ABX_OK;
	return abx__error_set(reterr, ABX_EINVAL,
			      "%s %s is not [a-z0-9-] of at most 63 characters", what, s);
}

static int check_readiness(const abx__map *annotations, abx_error **reterr)
{
	const char *text =
		annotations ? abx__map_get(annotations, ABX__POD_READINESS_ANNOTATION)
			    : NULL;
	abx__readiness probe = { 0 };
	json_object *o = NULL;
	int r;

	if (!text)
		return ABX_OK;
	r = abx__json_parse_object(text, strlen(text), 4096, &o, reterr);
	if (r == ABX_OK)
		r = abx__readiness_parse(o, &probe, reterr);
	if (r < 0)
		abx__error_prefix(reterr, "annotation %s", ABX__POD_READINESS_ANNOTATION);
	abx__readiness_done(&probe);
	json_object_put(o);
	return r;
}

static int fill_doc(struct local *l, abx__pod_doc *doc, const abx__map *labels,
		    const abx__map *annotations, json_object *pod_template,
		    abx_error **reterr)
{
	abx__spec *spec = NULL;
	const char *text;
	int r = check_spec(l, pod_template, &spec, reterr);

	if (r < 0)
		return r;
	doc->generation = 1;
	doc->activity = ABX__POD_RUN;
	doc->image = abx__strdup(spec->main.image);
	abx__spec_free(spec);
	if (!doc->image || (labels && abx__map_copy(&doc->labels, labels) < 0) ||
	    (annotations && abx__map_copy(&doc->annotations, annotations) < 0))
		return abx__error_nomem(reterr);
	/* A copy: the caller may change its template afterwards. */
	text = json_object_to_json_string_ext(pod_template, JSON_C_TO_STRING_PLAIN);
	r = text ? abx__json_parse_object(text, strlen(text), 0, &doc->template_json,
					  reterr)
		 : abx__error_nomem(reterr);
	return r;
}

static int begin_create(struct local *l, const char *ns, const char *name,
			const abx__map *labels, const abx__map *annotations,
			json_object *pod_template, struct lpod **ret, abx_error **reterr)
{
	abx__pod_doc doc = { 0 };
	struct lpod *p;
	int r = check_name("namespace", ns, reterr);

	if (r == ABX_OK)
		r = check_name("Pod", name, reterr);
	if (r == ABX_OK && abx__lpod_find(l, ns, name))
		r = abx__error_set(reterr, ABX_EEXISTS, "Pod %s exists in namespace %s",
				   name, ns);
	if (r == ABX_OK)
		r = check_readiness(annotations, reterr);
	if (r == ABX_OK)
		r = fill_doc(l, &doc, labels, annotations, pod_template, reterr);
	if (r < 0) {
		abx__pod_doc_done(&doc);
		return r;
	}
	p = abx__lpod_new(l, ns, name);
	if (!p) {
		abx__pod_doc_done(&doc);
		return abx__error_nomem(reterr);
	}
	p->doc = doc;
	p->creating = true;
	*ret = p;
	return ABX_OK;
}

void abx__local_create_pod(abx__engine *engine, const char *namespace_, const char *name,
			   const abx__map *labels, const abx__map *annotations,
			   json_object *pod_template, abx__pod_done done, void *userdata)
{
	struct local *l = abx__local_of(engine);
	abx_error *err = NULL;
	struct lpod *p = NULL;
	char *body = NULL;
	size_t len = 0;
	int r = begin_create(l, namespace_, name, labels, annotations, pod_template, &p,
			     &err);

	if (r == ABX_OK) {
		body = abx__pod_doc_print(&p->doc, &len);
		if (!body) {
			abx__lpod_free(p);
			r = abx__error_nomem(&err);
		}
	}
	if (r < 0) {
		abx__local_fail_later(
			l, r, err,
			(struct later){ .pod_done = done, .userdata = userdata });
		return;
	}
	p->create_done = done;
	p->op_userdata = userdata;
	l->busy++;
	l->store->ops->create(l->store, ABX__LOCAL_KIND, namespace_, name, body, len,
			      on_created, p);
	abx__free(body);
}

/* ---- delete ---- */

static void on_removed(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	struct lpod *p = userdata;
	struct local *l = p->local;
	abx__engine_done done = p->delete_done;
	void *done_userdata = p->op_userdata;

	(void)doc;
	l->busy--;
	p->removing = false;
	p->delete_done = NULL;
	if (r < 0 && r != ABX_ENOTFOUND) {
		p->deleting = false;
		done(done_userdata, r, err);
		abx__local_maybe_closed(l);
		return;
	}
	{
		char *ns = abx__strdup(p->ns), *name = abx__strdup(p->name);

		done(done_userdata, ABX_OK, NULL);
		p = ns && name ? abx__lpod_find(l, ns, name) : NULL;
		abx__free(ns);
		abx__free(name);
	}
	/* Away or not synced: the sync will find a Pod without a document. */
	if (p && !l->closing && l->podd_synced)
		abx__local_bring_into_line(p);
	abx__local_maybe_closed(l);
}

void abx__local_begin_delete(struct lpod *p)
{
	struct local *l = p->local;

	/* Asked for inside the callback of a write, and once more by the queue behind it.
	 */
	if (p->removing)
		return;
	p->removing = true;
	l->busy++;
	l->store->ops->remove(l->store, ABX__LOCAL_KIND, p->ns, p->name, 0, on_removed,
			      p);
}

void abx__local_delete_pod(abx__engine *engine, const char *namespace_, const char *name,
			   abx__engine_done done, void *userdata)
{
	struct local *l = abx__local_of(engine);
	abx_error *err = NULL;
	struct lpod *p = abx__lpod_find_live(l, namespace_, name, &err);

	if (!p) {
		abx__local_fail_later(
			l, ABX_ENOTFOUND, err,
			(struct later){ .engine_done = done, .userdata = userdata });
		return;
	}
	p->deleting = true;
	p->delete_done = done;
	p->op_userdata = userdata;
	if (!p->writing)
		abx__local_begin_delete(p);
}
