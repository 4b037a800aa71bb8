/*
 * sync.c - the start, and after it and each time podd comes back: documents against Pods.
 */
#include "engine/local/state.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "io/json.h"

void abx__local_bring_into_line(struct lpod *p)
{
	if (p->creating)
		return;
	if (p->deleting) {
		if (p->delete_done || p->writing)
			return; /* the document's removal is under way */
		if (p->in_podd)
			abx__tell_delete(p->local, p->ns, p->name);
		else
			abx__lpod_gone(p);
	} else if (!p->in_podd) {
		abx__tell_create(p);
	} else if (p->podd_generation < p->doc.generation) {
		abx__tell_swap(p, !p->doc.keep);
		if (p->doc.activity != ABX__POD_RUN)
			abx__tell_activity(p);
	} else if (p->podd_generation == p->doc.generation) {
		/* What it is asked to be, not what it is: it may be on its way. */
		abx__tell_activity(p);
	} else {
		/* The store is older than podd's folder, as after a restored backup: made
		 * anew when it is gone. */
		abx__tell_delete(p->local, p->ns, p->name);
	}
}

static void sync_all(struct local *l)
{
	struct lpod *p, *tmp;

	if (!l->listed || !l->podd_synced)
		return;
	HASH_ITER(hh, l->pods, p, tmp)
	abx__local_bring_into_line(p);
	if (l->synced)
		return;
	HASH_ITER(hh, l->pods, p, tmp)
	{
		abx__pod v = abx__lpod_view(p);

		if (p->creating || p->deleting)
			continue;
		p->reported = true;
		l->on_pod(l->userdata, &v);
	}
	l->synced = true;
	l->on_synced(l->userdata, ABX_OK, NULL);
}

static void take_status(struct lpod *p, json_object *o)
{
	const char *s = NULL;
	int64_t n = 0;

	p->in_podd = true;
	abx__free(abx_take(p->running_image));
	abx__free(abx_take(p->reason));
	abx__free(abx_take(p->message));
	if (abx__json_get_i64(o, "generation", 0, INT64_MAX, &n, NULL) == 1)
		p->podd_generation = (uint64_t)n;
	if (abx__json_get_i64(o, "running_generation", 0, INT64_MAX, &n, NULL) == 1)
		p->running_generation = (uint64_t)n;
	if (abx__json_get_str(o, "running_image", &s, NULL) == 1)
		p->running_image = abx__strdup(s);
	if (abx__json_get_str(o, "reason", &s, NULL) == 1)
		p->reason = abx__strdup(s);
	if (abx__json_get_str(o, "message", &s, NULL) == 1)
		p->message = abx__strdup(s);
	if (abx__json_get_str(o, "phase", &s, NULL) != 1 ||
	    abx__str_copy(p->phase, sizeof(p->phase), s) < 0)
		p->phase[0] = '\0';
	if (abx__json_get_str(o, "activity", &s, NULL) != 1 ||
	    abx__str_copy(p->activity, sizeof(p->activity), s) < 0)
		p->activity[0] = '\0';
	p->ready = false;
	abx__json_get_bool(o, "ready", &p->ready, NULL);
	if (abx__json_get_i64(o, "exit_code", -1, 255, &n, NULL) == 1)
		p->exit_code = (int)n;
}

static void on_podd_hello(void *userdata, json_object *hello)
{
	struct local *l = userdata;
	json_object *classes = NULL;
	struct lpod *p, *tmp;

	l->podd_synced = false;
	json_object_put(abx_take(l->classes));
	if (abx__json_get_array(hello, "classes", &classes, NULL) == 1)
		l->classes = json_object_get(classes);
	HASH_ITER(hh, l->pods, p, tmp)
	p->in_podd = false;
}

static void on_podd_event(void *userdata, uint16_t type, json_object *body)
{
	struct local *l = userdata;
	const char *ns = "", *name = "";
	struct lpod *p;

	if (type == ABX__PODD_SYNCED) {
		l->podd_synced = true;
		sync_all(l);
		return;
	}
	if (type == ABX__PODD_SNAPSHOT_DONE) {
		abx__local_snapshot_event(l, body);
		return;
	}
	abx__json_get_str(body, "ns", &ns, NULL);
	abx__json_get_str(body, "name", &name, NULL);
	p = abx__lpod_find(l, ns, name);
	if (type == ABX__PODD_GONE) {
		if (!p)
			return;
		abx__lpod_forget_podd(p);
		if (p->deleting && !p->delete_done) {
			abx__lpod_gone(p);
		} else if (!p->deleting && !p->creating && l->podd_synced) {
			abx__tell_create(p);
			abx__lpod_report(p);
		}
		return;
	}
	if (type != ABX__PODD_POD)
		return;
	if (!p) {
		/* No document: nobody's. Before the documents are read that cannot be
		 * told yet; the hello is asked anew. */
		if (l->listed)
			abx__tell_delete(l, ns, name);
		return;
	}
	take_status(p, body);
	abx__lpod_report(p);
}

static void on_podd_down(void *userdata)
{
	struct local *l = userdata;

	l->podd_synced = false;
	abx__local_snapshots_lost(l, ABX_EUNAVAILABLE);
	abx__log_warn(l->log, "agentbox-podd went away; Pods go on", NULL);
}

const abx__podd_client_events abx__local_podd_events = { on_podd_hello, on_podd_event,
							 on_podd_down };

/* ---- start ---- */

static int adopt_doc(struct local *l, const abx__doc *doc)
{
	abx__pod_doc parsed = { 0 };
	struct lpod *p;
	int r = abx__pod_doc_parse(doc->body, doc->body_len, &parsed);

	if (r < 0)
		return r;
	p = abx__lpod_new(l, doc->namespace_, doc->name);
	if (!p) {
		abx__pod_doc_done(&parsed);
		return ABX_ENOMEM;
	}
	p->doc = parsed;
	p->version = doc->version;
	p->created_ms = doc->created_ms;
	return ABX_OK;
}

static void on_listed(void *userdata, int r, const abx__doc *docs, size_t count,
		      const abx_error *err)
{
	struct local *l = userdata;

	l->busy--;
	if (l->closing) {
		abx__local_maybe_closed(l);
		return;
	}
	if (r < 0) {
		l->on_synced(l->userdata, r, err);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		r = adopt_doc(l, &docs[i]);
		if (r == ABX_ENOMEM) {
			abx_error *e = NULL;

			abx__error_nomem(&e);
			l->on_synced(l->userdata, r, e);
			abx_error_free(e);
			return;
		}
		if (r < 0)
			abx__log_error(l->log,
				       "a Pod's document does not hold together and is "
				       "left alone",
				       "pod=%s", docs[i].name);
	}
	l->listed = true;
	/* Only now, so that no Pod is taken for one without a document. */
	abx__podd_client_start(l->podd);
}

void abx__local_start(abx__engine *engine,
		      void (*on_pod)(void *userdata, const abx__pod *pod),
		      void (*on_synced)(void *userdata, int r, const abx_error *err),
		      void *userdata)
{
	struct local *l = abx__local_of(engine);

	l->on_pod = on_pod;
	l->on_synced = on_synced;
	l->userdata = userdata;
	l->started = true;
	l->busy++;
	l->store->ops->list(l->store, ABX__LOCAL_KIND, NULL, on_listed, l);
}
