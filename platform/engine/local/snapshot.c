/*
 * snapshot.c - snapshots through podd: asked for in one message, ended by an event.
 */
#include "engine/local/state.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "io/json.h"

static struct shot **find(struct local *l, const char *id)
{
	struct shot **at = &l->shots;

	while (*at && strcmp((*at)->id, id) != 0)
		at = &(*at)->next;
	return at;
}

static void complete(struct shot **at, int r, int64_t bytes, const abx_error *err)
{
	struct shot *s = *at;

	*at = s->next;
	s->done(s->userdata, r, bytes, err);
	abx__free(s);
}

void abx__local_snapshot_event(struct local *l, json_object *body)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	const char *id = "", *message = "";
	int64_t r = ABX_OK, bytes = 0;
	struct shot **at;

	abx__json_get_str(body, "id", &id, NULL);
	abx__json_get_str(body, "message", &message, NULL);
	abx__json_get_i64(body, "r", INT32_MIN, 0, &r, NULL);
	abx__json_get_i64(body, "bytes", 0, INT64_MAX, &bytes, NULL);
	at = find(l, id);
	if (!*at)
		return;
	if (r < 0)
		abx__error_set(&err, (int)r, "snapshot %s: %s", id, message);
	complete(at, (int)r, bytes, err);
}

void abx__local_snapshots_lost(struct local *l, int r)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	abx__error_set(&err, r, "agentbox-podd went away while the snapshot was made");
	while (l->shots)
		complete(&l->shots, r, 0, err);
}

/* The request itself was refused, or did not arrive. */
static void on_asked(void *userdata, int r, json_object *body, int fd,
		     const abx_error *err)
{
	struct shot *s = userdata;
	struct shot **at = &s->local->shots;

	(void)body;
	(void)fd;
	if (r == ABX_OK)
		return;
	/* By its address: podd's death may have completed and freed it. */
	while (*at && *at != s)
		at = &(*at)->next;
	if (*at)
		complete(at, r, 0, err);
}

void abx__local_snapshot_pod(abx__engine *engine, const char *namespace_,
			     const char *name, const char *id, abx__snapshot_done done,
			     void *userdata)
{
	struct local *l = abx__local_of(engine);
	abx_error *err = NULL;
	struct lpod *p = abx__lpod_find_live(l, namespace_, name, &err);
	struct shot *s = p ? abx__calloc(1, sizeof(*s)) : NULL;
	json_object *o = s ? abx__tell_request(p) : NULL;
	int r = p ? ABX_OK : ABX_ENOTFOUND;

	if (p && (!o || abx__json_set_str(o, "id", id) < 0))
		r = abx__error_nomem(&err);
	if (r == ABX_OK && abx__str_copy(s->id, sizeof(s->id), id) < 0)
		r = abx__error_set(&err, ABX_EINVAL, "a snapshot's id is too long: %s",
				   id);
	if (r < 0) {
		abx__free(s);
		json_object_put(o);
		abx__local_fail_later(
			l, r, err,
			(struct later){ .snapshot_done = done, .userdata = userdata });
		return;
	}
	s->local = l;
	s->done = done;
	s->userdata = userdata;
	s->next = l->shots;
	l->shots = s;
	abx__podd_client_call(l->podd, ABX__PODD_SNAPSHOT, o, false, on_asked, s);
	json_object_put(o);
}

/* ---- deleting ---- */

struct deletion {
	abx__engine_done done;
	void *userdata;
};

static void on_deleted(void *userdata, int r, json_object *body, int fd,
		       const abx_error *err)
{
	struct deletion *d = userdata;

	(void)body;
	(void)fd;
	d->done(d->userdata, r, err);
	abx__free(d);
}

void abx__local_delete_snapshot(abx__engine *engine, const char *id,
				abx__engine_done done, void *userdata)
{
	struct local *l = abx__local_of(engine);
	struct deletion *d = abx__calloc(1, sizeof(*d));
	json_object *o = d ? json_object_new_object() : NULL;

	if (!o || abx__json_set_str(o, "id", id) < 0) {
		abx_error *err = NULL;
		int r = abx__error_nomem(&err);

		abx__free(d);
		json_object_put(o);
		abx__local_fail_later(
			l, r, err,
			(struct later){ .engine_done = done, .userdata = userdata });
		return;
	}
	*d = (struct deletion){ .done = done, .userdata = userdata };
	abx__podd_client_call(l->podd, ABX__PODD_SNAPSHOT_DELETE, o, true, on_deleted, d);
	json_object_put(o);
}
