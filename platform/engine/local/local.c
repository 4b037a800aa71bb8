/*
 * local.c - the port's calls, one queue of writes a Pod, and keeping podd in line with
 * the documents.
 *
 * Invariants: a Pod's `doc` is what the store has acknowledged; podd is told only what is
 * durable; writes of one Pod happen one after the other, so a version checked is a
 * version held. Views given out are made anew each time.
 */
#include "engine/local/local.h"

#include <string.h>
#include <uthash.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "engine/local/doc.h"
#include "engine/local/podd-client.h"
#include "engine/podd/spec.h"
#include "io/json.h"

#define KIND "Pod"

struct local;

/* A change waiting for its turn, or under way: owned copies. */
struct write {
	abx__pod_change change;
	abx__map set_labels, set_annotations;
	char **remove_labels, **remove_annotations;
	char *image;
	abx__pod_done done;
	void *userdata;
	struct write *next;
};

struct lpod {
	struct local *local;
	char *key; /* "ns/name" */
	char *ns, *name;
	abx__pod_doc doc;
	uint64_t version;
	int64_t created_ms;
	bool creating; /* not durable yet: nobody hears of it */
	bool deleting; /* its document is being removed, or is gone */
	bool reported;
	struct write *writes,
		**writes_tail; /* the first one is under way when `writing` */
	bool writing;
	abx__pod_doc next; /* what the write under way makes of it */
	bool next_anew, next_restart;
	abx__pod_done create_done;
	abx__engine_done delete_done;
	void *op_userdata;

	/* what podd says */
	bool in_podd;
	uint64_t podd_generation, running_generation;
	char *running_image, *reason, *message;
	char phase[12];
	bool ready;
	int exit_code;
	/* podd refused to make it */
	char *refused;
	UT_hash_handle hh;
};

/* A completion that must not happen inside the call that asked for it. */
struct later {
	void (*fn)(struct later *l);
	int r;
	abx_error *err;
	abx__pod_done pod_done;
	abx__engine_done engine_done;
	abx__fd_done fd_done;
	void *userdata;
	struct later *next;
};

struct local {
	abx__engine engine;
	uv_loop_t *loop;
	abx__store *store;
	const abx__log *log;
	abx__podd_client *podd;
	struct lpod *pods;
	json_object *classes; /* from podd's HELLO */
	void (*on_pod)(void *userdata, const abx__pod *pod);
	void (*on_synced)(void *userdata, int r, const abx_error *err);
	void *userdata;
	bool started, listed, podd_synced, synced;
	struct later *later, **later_tail;
	uv_timer_t turn;
	unsigned busy; /* store calls under way */
	bool closing, podd_closed, turn_closed;
	void (*closed)(void *userdata);
	void *closed_userdata;
};

static struct local *local_of(abx__engine *engine)
{
	return (struct local *)engine;
}

static void maybe_closed(struct local *l);

/* ---- completions of the next turn ---- */

static void later_free(struct later *x)
{
	abx_error_free(x->err);
	abx__free(x);
}

static void on_turn(uv_timer_t *timer)
{
	struct local *l = timer->data;
	struct later *list = l->later;

	l->later = NULL;
	l->later_tail = &l->later;
	while (list) {
		struct later *x = list;

		list = x->next;
		if (x->pod_done)
			x->pod_done(x->userdata, x->r, NULL, x->err);
		if (x->engine_done)
			x->engine_done(x->userdata, x->r, x->err);
		if (x->fd_done)
			x->fd_done(x->userdata, x->r, -1, x->err);
		later_free(x);
	}
}

/* Takes over `err`. */
static void fail_later(struct local *l, int r, abx_error *err, struct later how)
{
	struct later *x = abx__memdup(&how, sizeof(how));

	if (!x) { /* better inside the call than never */
		if (how.pod_done)
			how.pod_done(how.userdata, r, NULL, err);
		if (how.engine_done)
			how.engine_done(how.userdata, r, err);
		if (how.fd_done)
			how.fd_done(how.userdata, r, -1, err);
		abx_error_free(err);
		return;
	}
	x->r = r;
	x->err = err;
	x->next = NULL;
	*l->later_tail = x;
	l->later_tail = &x->next;
	uv_timer_start(&l->turn, on_turn, 0, 0);
}

/* ---- Pods ---- */

static struct lpod *find(struct local *l, const char *ns, const char *name)
{
	char key[160];
	abx__buf buf = ABX__BUF_INIT_CAP(sizeof(key) - 1);
	struct lpod *p = NULL;

	if (abx__buf_addf(&buf, "%s/%s", ns, name) == ABX_OK)
		HASH_FIND_STR(l->pods, abx__buf_str(&buf), p);
	abx__buf_done(&buf);
	return p;
}

/* Is there, and stays. */
static struct lpod *find_live(struct local *l, const char *ns, const char *name,
			      abx_error **reterr)
{
	struct lpod *p = find(l, ns, name);

	if (p && !p->creating && !p->deleting)
		return p;
	abx__error_set(reterr, ABX_ENOTFOUND, "there is no Pod %s in namespace %s", name,
		       ns);
	return NULL;
}

static struct lpod *lpod_new(struct local *l, const char *ns, const char *name)
{
	struct lpod *p = abx__calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->local = l;
	p->writes_tail = &p->writes;
	p->exit_code = -1;
	p->ns = abx__strdup(ns);
	p->name = abx__strdup(name);
	p->key = abx__strf("%s/%s", ns, name);
	if (!p->ns || !p->name || !p->key) {
		abx__free(p->ns);
		abx__free(p->name);
		abx__free(p->key);
		abx__free(p);
		return NULL;
	}
	HASH_ADD_KEYPTR(hh, l->pods, p->key, strlen(p->key), p);
	return p;
}

static void free_strv(char **v)
{
	abx__spec_strv_free(v);
}

static void write_free(struct write *w)
{
	abx__map_done(&w->set_labels);
	abx__map_done(&w->set_annotations);
	free_strv(w->remove_labels);
	free_strv(w->remove_annotations);
	abx__free(w->image);
	abx__free(w);
}

static void forget_podd_state(struct lpod *p)
{
	p->in_podd = false;
	p->podd_generation = p->running_generation = 0;
	p->ready = false;
	p->exit_code = -1;
	abx__free(abx_take(p->running_image));
	abx__free(abx_take(p->reason));
	abx__free(abx_take(p->message));
	p->phase[0] = '\0';
}

static void lpod_free(struct lpod *p)
{
	HASH_DEL(p->local->pods, p);
	while (p->writes) {
		struct write *w = p->writes;

		p->writes = w->next;
		write_free(w);
	}
	forget_podd_state(p);
	abx__pod_doc_done(&p->doc);
	abx__pod_doc_done(&p->next);
	abx__free(p->refused);
	abx__free(p->key);
	abx__free(p->ns);
	abx__free(p->name);
	abx__free(p);
}

static enum abx__pod_phase phase_of(const struct lpod *p)
{
	if (p->refused)
		return ABX__POD_FAILED;
	if (!p->in_podd || p->podd_generation != p->doc.generation)
		return ABX__POD_PENDING;
	if (strcmp(p->phase, "failed") == 0)
		return ABX__POD_FAILED;
	return strcmp(p->phase, "running") == 0 ? ABX__POD_RUNNING : ABX__POD_PENDING;
}

static abx__pod view(const struct lpod *p)
{
	bool current = p->podd_generation == p->doc.generation;

	return (abx__pod){
		.namespace_ = p->ns,
		.name = p->name,
		.version = p->version,
		.created_ms = p->created_ms,
		.labels = p->doc.labels,
		.annotations = p->doc.annotations,
		.image = p->doc.image,
		.running_image = p->running_image ? p->running_image : "",
		.generation = p->doc.generation,
		.running_generation = p->running_generation,
		.phase = phase_of(p),
		.ready = p->ready && p->running_generation == p->doc.generation,
		.reason = p->refused             ? "CreateError"
			  : current && p->reason ? p->reason
						 : "",
		.message = p->refused              ? p->refused
			   : current && p->message ? p->message
						   : "",
		.exit_code = p->exit_code,
	};
}

static void report(struct lpod *p)
{
	struct local *l = p->local;
	abx__pod v;

	if (!l->listed || l->closing || p->creating || p->deleting)
		return;
	/* Before the sync everything is told once, at the sync. */
	if (!l->synced)
		return;
	v = view(p);
	p->reported = true;
	l->on_pod(l->userdata, &v);
}

/* ---- telling podd ---- */

static json_object *request_of(const struct lpod *p)
{
	json_object *o = json_object_new_object();

	if (o && (abx__json_set_str(o, "ns", p->ns) < 0 ||
		  abx__json_set_str(o, "name", p->name) < 0)) {
		json_object_put(o);
		return NULL;
	}
	return o;
}

/* The Pod a reply is about may be gone by then, so it is found again by name. */
struct told {
	struct local *local;
	char *ns, *name;
	uint64_t generation;
};

static void told_free(struct told *t)
{
	abx__free(t->ns);
	abx__free(t->name);
	abx__free(t);
}

static struct told *told_new(const struct lpod *p)
{
	struct told *t = abx__calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->local = p->local;
	t->generation = p->doc.generation;
	t->ns = abx__strdup(p->ns);
	t->name = abx__strdup(p->name);
	if (!t->ns || !t->name) {
		told_free(t);
		return NULL;
	}
	return t;
}

static void set_refused(struct lpod *p, const char *message)
{
	abx__free(p->refused);
	p->refused = message ? abx__strdup(message) : NULL;
}

static void on_told(void *userdata, int r, json_object *body, int fd,
		    const abx_error *err)
{
	struct told *t = userdata;
	struct lpod *p = find(t->local, t->ns, t->name);

	(void)body;
	(void)fd;
	/* Unreachable or late: the next sync compares anyway. A conflict means podd is
	 * further already. */
	if (r < 0 && p && !t->local->closing && r != ABX_EUNAVAILABLE &&
	    r != ABX_ETIMEDOUT && r != ABX_ECANCELED && r != ABX_ECONFLICT &&
	    r != ABX_EEXISTS && t->generation == p->doc.generation) {
		abx__log_warn(t->local->log, "agentbox-podd refused a Pod",
			      "pod=%s error=%s", p->name, abx_error_message(err));
		set_refused(p, abx_error_message(err));
		report(p);
	}
	told_free(t);
}

static void tell(struct lpod *p, uint16_t type, json_object *o)
{
	struct told *t = o ? told_new(p) : NULL;

	if (!t)
		set_refused(p, "out of memory");
	else
		abx__podd_client_call(p->local->podd, type, o, false, on_told, t);
	json_object_put(o);
}

static void tell_create(struct lpod *p)
{
	const char *readiness =
		abx__map_get(&p->doc.annotations, ABX__POD_READINESS_ANNOTATION);
	json_object *o = request_of(p), *probe = NULL;

	set_refused(p, NULL);
	if (o && readiness &&
	    abx__json_parse_object(readiness, strlen(readiness), 0, &probe, NULL) ==
		    ABX_OK)
		abx__json_set_take(o, "readiness", probe);
	if (o && (abx__json_set_str(o, "image", p->doc.image) < 0 ||
		  abx__json_set_i64(o, "generation", (int64_t)p->doc.generation) < 0 ||
		  abx__json_set_take(o, "template",
				     json_object_get(p->doc.template_json)) < 0)) {
		json_object_put(o);
		o = NULL;
	}
	tell(p, ABX__PODD_CREATE, o);
}

static void tell_swap(struct lpod *p, bool restart)
{
	json_object *o = request_of(p);

	set_refused(p, NULL);
	if (o && (abx__json_set_str(o, "image", p->doc.image) < 0 ||
		  abx__json_set_i64(o, "generation", (int64_t)p->doc.generation) < 0 ||
		  abx__json_set_bool(o, "restart", restart) < 0)) {
		json_object_put(o);
		o = NULL;
	}
	tell(p, ABX__PODD_SWAP, o);
}

static void on_nothing(void *userdata, int r, json_object *body, int fd,
		       const abx_error *err)
{
	(void)userdata;
	(void)r;
	(void)body;
	(void)fd;
	(void)err;
}

static void tell_delete(struct local *l, const char *ns, const char *name)
{
	json_object *o = json_object_new_object();

	if (o && abx__json_set_str(o, "ns", ns) == ABX_OK &&
	    abx__json_set_str(o, "name", name) == ABX_OK)
		abx__podd_client_call(l->podd, ABX__PODD_DELETE, o, false, on_nothing,
				      NULL);
	json_object_put(o);
}

/* After GONE, or when podd never had it. */
static void gone(struct lpod *p)
{
	struct local *l = p->local;
	abx__pod v = view(p);

	v.phase = ABX__POD_GONE;
	v.ready = false;
	if (p->reported && l->synced && !l->closing)
		l->on_pod(l->userdata, &v);
	lpod_free(p);
}

/* ---- the sync: documents against Pods ---- */

static void bring_into_line(struct lpod *p)
{
	if (p->creating)
		return;
	if (p->deleting) {
		if (p->delete_done || p->writing)
			return; /* the document's removal is under way */
		if (p->in_podd)
			tell_delete(p->local, p->ns, p->name);
		else
			gone(p);
	} else if (!p->in_podd) {
		tell_create(p);
	} else if (p->podd_generation < p->doc.generation) {
		tell_swap(p, true);
	} else if (p->podd_generation > p->doc.generation) {
		/* The store is older than podd's folder, as after a restored backup: made
		 * anew when it is gone. */
		tell_delete(p->local, p->ns, p->name);
	}
}

static void sync_all(struct local *l)
{
	struct lpod *p, *tmp;

	if (!l->listed || !l->podd_synced)
		return;
	HASH_ITER(hh, l->pods, p, tmp)
	bring_into_line(p);
	if (l->synced)
		return;
	HASH_ITER(hh, l->pods, p, tmp)
	{
		abx__pod v = view(p);

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
	abx__json_get_str(body, "ns", &ns, NULL);
	abx__json_get_str(body, "name", &name, NULL);
	p = find(l, ns, name);
	if (type == ABX__PODD_GONE) {
		if (!p)
			return;
		forget_podd_state(p);
		if (p->deleting && !p->delete_done) {
			gone(p);
		} else if (!p->deleting && !p->creating && l->podd_synced) {
			tell_create(p);
			report(p);
		}
		return;
	}
	if (type != ABX__PODD_POD)
		return;
	if (!p) {
		/* No document: nobody's. Before the documents are read that cannot be
		 * told yet; the hello is asked anew. */
		if (l->listed)
			tell_delete(l, ns, name);
		return;
	}
	take_status(p, body);
	report(p);
}

static void on_podd_down(void *userdata)
{
	struct local *l = userdata;

	l->podd_synced = false;
	abx__log_warn(l->log, "agentbox-podd went away; Pods go on", NULL);
}

static const abx__podd_client_events podd_events = { on_podd_hello, on_podd_event,
						     on_podd_down };

/* ---- start ---- */

static int adopt_doc(struct local *l, const abx__doc *doc)
{
	abx__pod_doc parsed = { 0 };
	struct lpod *p;
	int r = abx__pod_doc_parse(doc->body, doc->body_len, &parsed);

	if (r < 0)
		return r;
	p = lpod_new(l, doc->namespace_, doc->name);
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
		maybe_closed(l);
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

static void local_start(abx__engine *engine,
			void (*on_pod)(void *userdata, const abx__pod *pod),
			void (*on_synced)(void *userdata, int r, const abx_error *err),
			void *userdata)
{
	struct local *l = local_of(engine);

	l->on_pod = on_pod;
	l->on_synced = on_synced;
	l->userdata = userdata;
	l->started = true;
	l->busy++;
	l->store->ops->list(l->store, KIND, NULL, on_listed, l);
}

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

static int local_check_template(abx__engine *engine, json_object *pod_template,
				abx_error **reterr)
{
	return check_spec(local_of(engine), pod_template, NULL, reterr);
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
		lpod_free(p);
		done(done_userdata, r, NULL, err);
		maybe_closed(l);
		return;
	}
	p->version = doc->version;
	p->created_ms = doc->created_ms;
	if (!l->closing && l->podd_synced)
		tell_create(p);
	v = view(p);
	done(done_userdata, ABX_OK, &v, NULL);
	p = find(l, doc->namespace_, doc->name);
	if (p)
		report(p);
	maybe_closed(l);
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
	json_object *o = NULL;
	const char *path = NULL;
	int64_t port = 0;
	int r;

	if (!text)
		return ABX_OK;
	r = abx__json_parse_object(text, strlen(text), 4096, &o, NULL);
	if (r < 0 || abx__json_get_i64(o, "port", 1, 65535, &port, NULL) != 1 ||
	    abx__json_get_str(o, "path", &path, NULL) != 1 || path[0] != '/')
		r = abx__error_set(reterr, ABX_EINVAL,
				   "annotation %s needs a port and a path, not %s",
				   ABX__POD_READINESS_ANNOTATION, text);
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
	if (r == ABX_OK && find(l, ns, name))
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
	p = lpod_new(l, ns, name);
	if (!p) {
		abx__pod_doc_done(&doc);
		return abx__error_nomem(reterr);
	}
	p->doc = doc;
	p->creating = true;
	*ret = p;
	return ABX_OK;
}

static void local_create_pod(abx__engine *engine, const char *namespace_,
			     const char *name, const abx__map *labels,
			     const abx__map *annotations, json_object *pod_template,
			     abx__pod_done done, void *userdata)
{
	struct local *l = local_of(engine);
	abx_error *err = NULL;
	struct lpod *p = NULL;
	char *body = NULL;
	size_t len = 0;
	int r = begin_create(l, namespace_, name, labels, annotations, pod_template, &p,
			     &err);

	if (r == ABX_OK) {
		body = abx__pod_doc_print(&p->doc, &len);
		if (!body) {
			lpod_free(p);
			r = abx__error_nomem(&err);
		}
	}
	if (r < 0) {
		fail_later(l, r, err,
			   (struct later){ .pod_done = done, .userdata = userdata });
		return;
	}
	p->create_done = done;
	p->op_userdata = userdata;
	l->busy++;
	l->store->ops->create(l->store, KIND, namespace_, name, body, len, on_created, p);
	abx__free(body);
}

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
	abx__pod v = view(p);

	p->writing = false;
	w->done(w->userdata, r, r < 0 ? NULL : &v, err);
	write_free(w);
	p = ns && name ? find(l, ns, name) : NULL;
	if (p && r == ABX_OK)
		report(p);
	p = ns && name ? find(l, ns, name) : NULL;
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

		abx__pod_doc_done(&p->doc);
		p->doc = p->next;
		memset(&p->next, 0, sizeof(p->next));
		p->version = doc->version;
		if (anew && !l->closing && l->podd_synced) {
			if (p->refused && !p->in_podd)
				tell_create(p);
			else
				tell_swap(p, p->next_restart);
		}
	} else {
		abx__pod_doc_done(&p->next);
	}
	end_write(p, r, err);
	maybe_closed(l);
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
	l->store->ops->update(l->store, KIND, p->ns, p->name, p->version, body, len,
			      on_written, p);
	abx__free(body);
	return 1;
}

static void begin_delete(struct lpod *p);

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
		begin_delete(p);
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
	write_free(w);
	return NULL;
}

static void local_change_pod(abx__engine *engine, const char *namespace_,
			     const char *name, const abx__pod_change *change,
			     abx__pod_done done, void *userdata)
{
	struct local *l = local_of(engine);
	abx_error *err = NULL;
	struct lpod *p = find_live(l, namespace_, name, &err);
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
		fail_later(l, r, err,
			   (struct later){ .pod_done = done, .userdata = userdata });
		return;
	}
	*p->writes_tail = w;
	p->writes_tail = &w->next;
	if (!p->writing && p->writes == w) {
		r = begin_write(p, w, &err);
		if (r < 0) {
			take_write(p);
			write_free(w);
			fail_later(
				l, r, err,
				(struct later){ .pod_done = done, .userdata = userdata });
		}
	}
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
	p->delete_done = NULL;
	if (r < 0 && r != ABX_ENOTFOUND) {
		p->deleting = false;
		done(done_userdata, r, err);
		maybe_closed(l);
		return;
	}
	{
		char *ns = abx__strdup(p->ns), *name = abx__strdup(p->name);

		done(done_userdata, ABX_OK, NULL);
		p = ns && name ? find(l, ns, name) : NULL;
		abx__free(ns);
		abx__free(name);
	}
	/* Away or not synced: the sync will find a Pod without a document. */
	if (p && !l->closing && l->podd_synced)
		bring_into_line(p);
	maybe_closed(l);
}

static void begin_delete(struct lpod *p)
{
	struct local *l = p->local;

	l->busy++;
	l->store->ops->remove(l->store, KIND, p->ns, p->name, 0, on_removed, p);
}

static void local_delete_pod(abx__engine *engine, const char *namespace_,
			     const char *name, abx__engine_done done, void *userdata)
{
	struct local *l = local_of(engine);
	abx_error *err = NULL;
	struct lpod *p = find_live(l, namespace_, name, &err);

	if (!p) {
		fail_later(l, ABX_ENOTFOUND, err,
			   (struct later){ .engine_done = done, .userdata = userdata });
		return;
	}
	p->deleting = true;
	p->delete_done = done;
	p->op_userdata = userdata;
	if (!p->writing)
		begin_delete(p);
}

/* ---- connect ---- */

struct connecting {
	abx__fd_done done;
	void *userdata;
};

static void on_connected(void *userdata, int r, json_object *body, int fd,
			 const abx_error *err)
{
	struct connecting *c = userdata;
	abx_error *missing = NULL;

	(void)body;
	if (r == ABX_OK && fd < 0)
		r = abx__error_set(&missing, ABX_EPROTO, "agentbox-podd sent no socket");
	c->done(c->userdata, r, r < 0 ? -1 : fd, missing ? missing : err);
	abx_error_free(missing);
	abx__free(c);
}

static void local_connect_pod(abx__engine *engine, const char *namespace_,
			      const char *name, uint16_t port, abx__fd_done done,
			      void *userdata)
{
	struct local *l = local_of(engine);
	abx_error *err = NULL;
	struct lpod *p = find_live(l, namespace_, name, &err);
	struct connecting *c = p ? abx__calloc(1, sizeof(*c)) : NULL;
	json_object *o = c ? request_of(p) : NULL;
	int r;

	if (!c || !o || abx__json_set_i64(o, "port", port) < 0) {
		r = p ? abx__error_nomem(&err) : ABX_ENOTFOUND;
		abx__free(c);
		json_object_put(o);
		fail_later(l, r, err,
			   (struct later){ .fd_done = done, .userdata = userdata });
		return;
	}
	c->done = done;
	c->userdata = userdata;
	abx__podd_client_call(l->podd, ABX__PODD_CONNECT, o, true, on_connected, c);
	json_object_put(o);
}

/* ---- close ---- */

static void local_free(struct local *l)
{
	struct lpod *p, *tmp;
	void (*closed)(void *) = l->closed;
	void *userdata = l->closed_userdata;

	HASH_ITER(hh, l->pods, p, tmp)
	lpod_free(p);
	json_object_put(l->classes);
	abx__free(l);
	closed(userdata);
}

static void on_turn_closed(uv_handle_t *handle)
{
	local_free(handle->data);
}

static void maybe_closed(struct local *l)
{
	if (!l->closing || l->busy || !l->podd_closed || l->turn_closed)
		return;
	l->turn_closed = true;
	uv_timer_stop(&l->turn);
	on_turn(&l->turn);
	uv_close((uv_handle_t *)&l->turn, on_turn_closed);
}

static void on_podd_closed(void *userdata)
{
	struct local *l = userdata;

	l->podd_closed = true;
	maybe_closed(l);
}

static void local_close(abx__engine *engine, void (*done)(void *userdata), void *userdata)
{
	struct local *l = local_of(engine);

	l->closing = true;
	l->closed = done;
	l->closed_userdata = userdata;
	abx__podd_client_close(l->podd, on_podd_closed, l);
}

static const abx__engine_ops local_ops = {
	.name = "local",
	.check_template = local_check_template,
	.start = local_start,
	.create_pod = local_create_pod,
	.change_pod = local_change_pod,
	.delete_pod = local_delete_pod,
	.connect_pod = local_connect_pod,
	.close = local_close,
};

int abx__engine_local_new(uv_loop_t *loop, abx__store *store, const char *podd_socket,
			  const abx__log *log, abx__engine **ret, abx_error **reterr)
{
	struct local *l = abx__calloc(1, sizeof(*l));
	int r;

	if (!l)
		return abx__error_nomem(reterr);
	r = abx__podd_client_new(loop, podd_socket, log, &podd_events, l, &l->podd,
				 reterr);
	if (r < 0) {
		abx__free(l);
		return r;
	}
	l->engine.ops = &local_ops;
	l->loop = loop;
	l->store = store;
	l->log = log;
	l->later_tail = &l->later;
	uv_timer_init(loop, &l->turn);
	l->turn.data = l;
	*ret = &l->engine;
	return ABX_OK;
}
