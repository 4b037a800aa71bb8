/*
 * tell.c - what podd is asked for: a Pod made, swapped, deleted. Only what is durable.
 */
#include "engine/local/state.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "io/json.h"

json_object *abx__tell_request(const struct lpod *p)
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

static void on_told(void *userdata, int r, json_object *body, int fd,
		    const abx_error *err)
{
	struct told *t = userdata;
	struct lpod *p = abx__lpod_find(t->local, t->ns, t->name);

	(void)body;
	(void)fd;
	/* Unreachable or late: the next sync compares anyway. A conflict means podd is
	 * further already. */
	if (r < 0 && p && !t->local->closing && r != ABX_EUNAVAILABLE &&
	    r != ABX_ETIMEDOUT && r != ABX_ECANCELED && r != ABX_ECONFLICT &&
	    r != ABX_EEXISTS && t->generation == p->doc.generation) {
		abx__log_warn(t->local->log, "agentbox-podd refused a Pod",
			      "pod=%s error=%s", p->name, abx_error_message(err));
		abx__lpod_set_refused(p, abx_error_message(err));
		abx__lpod_report(p);
	}
	told_free(t);
}

static void tell(struct lpod *p, uint16_t type, json_object *o)
{
	struct told *t = o ? told_new(p) : NULL;

	if (!t)
		abx__lpod_set_refused(p, "out of memory");
	else
		abx__podd_client_call(p->local->podd, type, o, false, on_told, t);
	json_object_put(o);
}

void abx__tell_create(struct lpod *p)
{
	const char *readiness =
		abx__map_get(&p->doc.annotations, ABX__POD_READINESS_ANNOTATION);
	json_object *o = abx__tell_request(p), *probe = NULL;

	abx__lpod_set_refused(p, NULL);
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

void abx__tell_swap(struct lpod *p, bool restart)
{
	json_object *o = abx__tell_request(p);

	abx__lpod_set_refused(p, NULL);
	if (o && (abx__json_set_str(o, "image", p->doc.image) < 0 ||
		  abx__json_set_i64(o, "generation", (int64_t)p->doc.generation) < 0 ||
		  abx__json_set_bool(o, "restart", restart) < 0 ||
		  abx__json_set_bool(o, "keep", p->doc.keep) < 0)) {
		json_object_put(o);
		o = NULL;
	}
	tell(p, ABX__PODD_SWAP, o);
}

static void on_activity_told(void *userdata, int r, json_object *body, int fd,
			     const abx_error *err)
{
	struct told *t = userdata;

	(void)body;
	(void)fd;
	/* Whoever waits for it waits with a deadline; the Pod itself is as well as
	 * before. */
	if (r < 0 && !t->local->closing)
		abx__log_warn(t->local->log, "a Pod could not be told to freeze or run",
			      "pod=%s error=%s", t->name, abx_error_message(err));
	told_free(t);
}

void abx__tell_activity(struct lpod *p)
{
	json_object *o = abx__tell_request(p);
	struct told *t = o ? told_new(p) : NULL;

	if (t && abx__json_set_str(o, "activity",
				   abx__pod_activity_name(p->doc.activity)) == ABX_OK)
		abx__podd_client_call(p->local->podd, ABX__PODD_ACTIVITY, o, false,
				      on_activity_told, t);
	else if (t)
		told_free(t);
	json_object_put(o);
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

void abx__tell_delete(struct local *l, const char *ns, const char *name)
{
	json_object *o = json_object_new_object();

	if (o && abx__json_set_str(o, "ns", ns) == ABX_OK &&
	    abx__json_set_str(o, "name", name) == ABX_OK)
		abx__podd_client_call(l->podd, ABX__PODD_DELETE, o, false, on_nothing,
				      NULL);
	json_object_put(o);
}
