/*
 * snapshot.c - making, keeping and deleting snapshots.
 *
 * Written down before the engine makes one, as not ready; ready when the engine has it;
 * not ready again before the engine forgets it; removed last. So whatever a crash leaves
 * is told by the documents: what is not ready is deleted at the next start, as is what
 * was made for a fork.
 */
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"
#include "control/internal.h"

#define KIND ABX__KIND_SNAPSHOT
#define RETRY_MS 5000

struct abx__snapshot {
	abx__snapshot_rec rec; /* first: the list hands it out */
	abx__control *control;
	abx__snapshot *prev, *next; /* the newest first */
	char id[ABX__SANDBOX_ID_LEN + 1];
	char *namespace_, *sandbox, *env, *team, *user, *name, *tag;
	enum { CREATING, READY, GOING } state;
	bool busy; /* a call about it is under way */
	abx__timer timer;
	abx__snapshot_cb made;
	abx__control_done gone;
	void *userdata;
};

static void on_timer(abx__timer *timer);

void abx__snapshot_free(abx__snapshot *s)
{
	if (!s)
		return;
	if (s->prev)
		DL_DELETE(s->control->snapshots, s);
	abx__timers_release(&s->control->timers, &s->timer);
	abx__free(s->namespace_);
	abx__free(s->sandbox);
	abx__free(s->env);
	abx__free(s->team);
	abx__free(s->user);
	abx__free(s->name);
	abx__free(s->tag);
	abx__free(s);
}

static abx__snapshot *snapshot_new(abx__control *control)
{
	abx__snapshot *s = abx__calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->control = control;
	s->rec.id = s->id;
	if (abx__timers_reserve(&control->timers, &s->timer, on_timer, s) == ABX_OK)
		return s;
	abx__free(s);
	return NULL;
}

/* The record shows what the strings are. */
static int fill(abx__snapshot *s, const abx__snapshot_rec *from)
{
	const char *const texts[] = { from->namespace_, from->sandbox, from->env,
				      from->team,       from->user,    from->name,
				      from->tag };
	char **const own[] = { &s->namespace_, &s->sandbox, &s->env, &s->team,
			       &s->user,       &s->name,    &s->tag };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		*own[i] = abx__strdup(texts[i]);
		if (texts[i] && !*own[i])
			return ABX_ENOMEM;
	}
	s->rec = (abx__snapshot_rec){ .id = s->id,
				      .namespace_ = s->namespace_,
				      .sandbox = s->sandbox,
				      .env = s->env,
				      .team = s->team,
				      .user = s->user,
				      .name = s->name,
				      .tag = s->tag,
				      .created_ms = from->created_ms,
				      .bytes = from->bytes,
				      .hidden = from->hidden };
	return ABX_OK;
}

/* In the order they are listed in. */
static int newest_first(const abx__snapshot *a, const abx__snapshot *b)
{
	if (a->rec.created_ms != b->rec.created_ms)
		return a->rec.created_ms > b->rec.created_ms ? -1 : 1;
	return strcmp(a->id, b->id);
}

/* --- documents --- */

static int set_text(json_object *o, const char *key, const char *text)
{
	return text ? abx__field_set_str(o, key, text) : ABX_OK;
}

static json_object *document(const abx__snapshot *s, bool ready)
{
	const abx__snapshot_rec *r = &s->rec;
	json_object *o = json_object_new_object();

	if (o && set_text(o, "sandbox", r->sandbox) == ABX_OK &&
	    set_text(o, "env", r->env) == ABX_OK &&
	    set_text(o, "team", r->team) == ABX_OK &&
	    set_text(o, "user", r->user) == ABX_OK &&
	    set_text(o, "name", r->name) == ABX_OK &&
	    set_text(o, "tag", r->tag) == ABX_OK &&
	    abx__field_set_int(o, "createdMs", r->created_ms) == ABX_OK &&
	    abx__field_set_int(o, "bytes", r->bytes) == ABX_OK &&
	    abx__field_set_bool(o, "hidden", r->hidden) == ABX_OK &&
	    abx__field_set_bool(o, "ready", ready) == ABX_OK)
		return o;
	json_object_put(o);
	return NULL;
}

/* Creates or replaces it; completes later. */
static int write_document(abx__snapshot *s, bool create, bool ready, abx__doc_done done)
{
	abx__store *store = s->control->config.store;
	json_object *o = document(s, ready);
	size_t len = 0;
	const char *text =
		o ? json_object_to_json_string_length(o, JSON_C_TO_STRING_PLAIN, &len)
		  : NULL;

	if (!text) {
		json_object_put(o);
		return ABX_ENOMEM;
	}
	s->busy = true;
	abx__control_call_begin(s->control);
	if (create)
		store->ops->create(store, KIND, s->namespace_, s->id, text, len, done, s);
	else
		store->ops->update(store, KIND, s->namespace_, s->id, 0, text, len, done,
				   s);
	json_object_put(o);
	return ABX_OK;
}

int abx__snapshot_load(abx__control *control, const abx__doc *doc, abx_error **reterr)
{
	json_object *o = json_tokener_parse(doc->body);
	abx__snapshot *s = o ? snapshot_new(control) : NULL;
	int r = s ? ABX_OK : ABX_ENOMEM;

	if (s && abx__str_copy(s->id, sizeof(s->id), doc->name) < 0)
		r = ABX_EINVAL;
	if (r == ABX_OK)
		r = fill(s, &(abx__snapshot_rec){
				    .namespace_ = doc->namespace_,
				    .sandbox = abx__field_str(o, "sandbox"),
				    .env = abx__field_str(o, "env"),
				    .team = abx__field_str(o, "team"),
				    .user = abx__field_str(o, "user"),
				    .name = abx__field_str(o, "name"),
				    .tag = abx__field_str(o, "tag"),
				    .created_ms = abx__field_int(o, "createdMs", 0),
				    .bytes = abx__field_int(o, "bytes", 0),
				    .hidden = abx__field_bool(o, "hidden", false),
			    });
	if (r == ABX_OK) {
		s->state = abx__field_bool(o, "ready", false) && !s->rec.hidden ? READY
										: GOING;
		DL_INSERT_INORDER(control->snapshots, s, newest_first);
	} else {
		abx__snapshot_free(s);
	}
	json_object_put(o);
	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	return r == ABX_EINVAL ? ABX_OK : r;
}

void abx__snapshots_adopted(abx__control *control)
{
	for (abx__snapshot *s = control->snapshots; s; s = s->next)
		if (s->state == GOING)
			abx__control_set_timer(control, &s->timer, 0);
}

/* --- deleting --- */

static void go(abx__snapshot *s);

static void again_later(abx__snapshot *s, const char *what, const abx_error *err)
{
	abx__log_warn(s->control->config.log, what, "snapshot=%s error=%s", s->id,
		      abx_error_message(err));
	abx__control_set_timer(s->control, &s->timer,
			       abx__control_mono(s->control) + RETRY_MS);
}

static void on_removed(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	abx__snapshot *s = userdata;
	abx__control *control = s->control;
	abx__control_done gone = s->gone;
	void *gone_userdata = s->userdata;

	(void)doc;
	s->busy = false;
	if (r == ABX_OK || r == ABX_ENOTFOUND) {
		abx__snapshot_free(s);
		if (gone)
			gone(gone_userdata, ABX_OK, NULL);
	} else {
		again_later(s, "snapshot's document could not be removed", err);
	}
	abx__control_call_end(control);
}

static void on_engine_deleted(void *userdata, int r, const abx_error *err)
{
	abx__snapshot *s = userdata;
	abx__control *control = s->control;
	abx__store *store = control->config.store;

	s->busy = false;
	if (r < 0) {
		again_later(s, "snapshot could not be deleted", err);
		abx__control_call_end(control);
		return;
	}
	s->busy = true;
	store->ops->remove(store, KIND, s->namespace_, s->id, 0, on_removed, s);
}

static void on_marked(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	abx__snapshot *s = userdata;
	abx__control *control = s->control;
	abx__engine *engine = control->config.engine;

	(void)doc;
	s->busy = false;
	if (r < 0 && r != ABX_ENOTFOUND) {
		again_later(s, "snapshot could not be marked", err);
		abx__control_call_end(control);
		return;
	}
	s->busy = true;
	engine->ops->delete_snapshot(engine, s->id, on_engine_deleted, s);
}

/* Not ready, then not there, then not known. */
static void go(abx__snapshot *s)
{
	s->state = GOING;
	if (s->busy || s->control->state == ABX__CONTROL_CLOSING)
		return;
	if (write_document(s, false, false, on_marked) < 0)
		abx__control_set_timer(s->control, &s->timer,
				       abx__control_mono(s->control) + RETRY_MS);
}

static void on_timer(abx__timer *timer)
{
	abx__snapshot *s = timer->owner;

	if (s->state == GOING)
		go(s);
}

static abx__snapshot *find(const abx__control *control, const char *id)
{
	for (abx__snapshot *s = control->snapshots; s; s = s->next)
		if (strcmp(s->id, id) == 0)
			return s;
	return NULL;
}

static bool is_image_of(const char *image, const char *id)
{
	return image && abx__str_starts(image, ABX__POD_SNAPSHOT_SCHEME) &&
	       strcmp(image + strlen(ABX__POD_SNAPSHOT_SCHEME), id) == 0;
}

const abx__sandbox_rec *abx__control_snapshot_user(const abx__control *control,
						   const char *id)
{
	for (size_t i = 0; i < control->sandboxes.count; i++)
		if (is_image_of(control->sandboxes.order[i]->image, id))
			return &control->sandboxes.order[i]->rec;
	for (const abx__claim *c = control->claims; c; c = c->all_next)
		if (c->sandbox && is_image_of(c->sandbox->image, id))
			return &c->sandbox->rec;
	return NULL;
}

int abx__control_snapshot_delete(abx__control *control, const char *id,
				 abx__control_done done, void *userdata,
				 abx_error **reterr)
{
	abx__snapshot *s = find(control, id);

	if (!s || s->state != READY)
		return abx__error_set(reterr, ABX_ENOTFOUND, "snapshot %s does not exist",
				      id);
	if (control->state != ABX__CONTROL_RUNNING)
		return abx__error_set(reterr, ABX_EUNAVAILABLE,
				      "the server is starting or stopping");
	s->gone = done;
	s->userdata = userdata;
	go(s);
	return ABX_OK;
}

/* --- making --- */

static void answer(abx__snapshot *s, int r, const abx_error *err)
{
	abx__snapshot_cb made = s->made;

	s->made = NULL;
	if (made)
		made(s->userdata, r, r == ABX_OK ? &s->rec : NULL, err);
}

void abx__snapshot_failed(abx__snapshot *s, int r, const abx_error *err)
{
	s->state = GOING;
	answer(s, r, err);
	go(s);
}

/* Of two with the same name and tag the older one is nobody's any more. */
static void replace_older(const abx__snapshot *s)
{
	if (!s->name)
		return;
	for (abx__snapshot *o = s->control->snapshots, *next; o; o = next) {
		next = o->next;
		if (o != s && o->state == READY && abx__str_eq(o->name, s->name) &&
		    abx__str_eq(o->tag, s->tag) && abx__str_eq(o->team, s->team) &&
		    strcmp(o->namespace_, s->namespace_) == 0)
			go(o);
	}
}

static void on_ready(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	abx__snapshot *s = userdata;
	abx__control *control = s->control;

	(void)doc;
	s->busy = false;
	if (r < 0) {
		abx__snapshot_failed(s, r, err);
	} else {
		s->state = READY;
		replace_older(s);
		answer(s, ABX_OK, NULL);
	}
	abx__control_call_end(control);
}

static void on_copied(void *userdata, int r, int64_t bytes, const abx_error *err)
{
	abx__snapshot *s = userdata;
	abx__control *control = s->control;
	ABX_CLEANUP(abx__error_freep) abx_error *own = NULL;

	s->busy = false;
	abx__sandbox_snapshot_over(control, s->sandbox, s);
	s->rec.bytes = bytes;
	if (r == ABX_OK && write_document(s, false, true, on_ready) < 0)
		r = abx__error_nomem(&own);
	if (r < 0)
		abx__snapshot_failed(s, r, own ? own : err);
	abx__control_call_end(control);
}

void abx__snapshot_begin(abx__snapshot *s, const abx__podrec *pod)
{
	abx__engine *engine = s->control->config.engine;

	s->busy = true;
	abx__control_call_begin(s->control);
	engine->ops->snapshot_pod(engine, pod->namespace_, pod->name, s->id, on_copied,
				  s);
}

static void on_created(void *userdata, int r, const abx__doc *doc, const abx_error *err)
{
	abx__snapshot *s = userdata;
	abx__control *control = s->control;
	ABX_CLEANUP(abx__error_freep) abx_error *own = NULL;

	(void)doc;
	s->busy = false;
	if (r < 0) {
		answer(s, r, err);
		abx__snapshot_free(s);
	} else {
		r = abx__sandbox_add_snapshot(control, s->sandbox, s, &own);
		if (r < 0)
			abx__snapshot_failed(s, r, own);
	}
	abx__control_call_end(control);
}

static int check(abx__control *control, const char *sandbox_id, const abx__sandbox **ret,
		 abx_error **reterr)
{
	size_t count = 0;
	const abx__snapshot *s;

	if (control->state != ABX__CONTROL_RUNNING)
		return abx__error_set(reterr, ABX_EUNAVAILABLE,
				      "the server is starting or stopping");
	DL_COUNT(control->snapshots, s, count);
	if (count >= ABX__SNAPSHOTS_MAX)
		return abx__error_set(reterr, ABX_EEXHAUSTED,
				      "this server keeps no more than %d snapshots: "
				      "delete some",
				      ABX__SNAPSHOTS_MAX);
	return abx__sandbox_can_snapshot(control, sandbox_id, ret, reterr);
}

int abx__control_snapshot(abx__control *control, const char *sandbox_id, const char *name,
			  const char *tag, bool hidden, abx__snapshot_cb done,
			  void *userdata, abx_error **reterr)
{
	const abx__sandbox *from = NULL;
	abx__snapshot *s;
	int r = check(control, sandbox_id, &from, reterr);

	if (r < 0)
		return r;
	s = snapshot_new(control);
	if (s && abx__id_sandbox(s->id) < 0) {
		abx__snapshot_free(s);
		return abx__error_set(reterr, ABX_EIO, "no random bytes for an id");
	}
	if (!s || fill(s, &(abx__snapshot_rec){
				  .namespace_ = from->namespace_,
				  .sandbox = from->id,
				  .env = from->env,
				  .team = from->team,
				  .user = from->user,
				  .name = name,
				  .tag = tag ? tag : ABX__SNAPSHOT_TAG_DEFAULT,
				  .created_ms = abx__control_wall(control),
				  .hidden = hidden,
			  }) < 0) {
		abx__snapshot_free(s);
		return abx__error_nomem(reterr);
	}
	s->made = done;
	s->userdata = userdata;
	DL_INSERT_INORDER(control->snapshots, s, newest_first);
	if (write_document(s, true, false, on_created) < 0) {
		abx__snapshot_free(s);
		return abx__error_nomem(reterr);
	}
	return ABX_OK;
}

/* --- reading --- */

const abx__snapshot_rec *abx__control_snapshot_find(const abx__control *control,
						    const char *id)
{
	const abx__snapshot *s = find(control, id);

	return s && s->state == READY ? &s->rec : NULL;
}

const abx__snapshot_rec *abx__control_snapshot_next(const abx__control *control,
						    const abx__snapshot_rec *after)
{
	const abx__snapshot *s =
		after ? ((const abx__snapshot *)after)->next : control->snapshots;

	while (s && (s->state != READY || s->rec.hidden))
		s = s->next;
	return s ? &s->rec : NULL;
}

void abx__snapshots_close(abx__control *control, const abx_error *err)
{
	for (abx__snapshot *s = control->snapshots; s; s = s->next)
		answer(s, ABX_ECANCELED, err);
}

void abx__snapshots_done(abx__control *control)
{
	while (control->snapshots)
		abx__snapshot_free(control->snapshots);
}
