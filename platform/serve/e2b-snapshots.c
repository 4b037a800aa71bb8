/*
 * e2b-snapshots.c - snapshots: making, listing, deleting them, and finding the one a
 * create names.
 *
 * On the wire a snapshot is `NAMESPACE/NAME:TAG` when it has a name and `ID:TAG` when it
 * has none; the namespace is the owner's team. Without the tag it names the whole
 * template: all that were made under the name.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "serve/e2b.h"
#include "serve/list.h"

#define LIMIT_MAX 100

/* ---- names ---- */

static const char *namespace_of(const char *team)
{
	return team && *team ? team : "default";
}

static bool part_is_valid(const char *s, const char *more)
{
	size_t len = strlen(s);

	for (size_t i = 0; i < len; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-_", s[i]) &&
		    !strchr(more, s[i]))
			return false;
	return len >= 1 && len <= ABX__SNAPSHOT_NAME_MAX;
}

void abx__e2b_ref_done(abx__e2b_ref *ref)
{
	abx__free(ref->text);
	memset(ref, 0, sizeof(*ref));
}

/* [namespace/]name[:tag], trimmed and in lower case. */
int abx__e2b_ref_parse(const char *text, abx__e2b_ref *ret, abx_error **reterr)
{
	abx__e2b_ref ref = { 0 };
	size_t from = strspn(text, " \t"), len = strlen(text + from);
	char *slash, *colon;

	while (len > 0 && strchr(" \t", text[from + len - 1]))
		len--;
	ref.text = abx__strndup(text + from, len);
	if (!ref.text)
		return abx__error_nomem(reterr);
	for (char *p = ref.text; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p - 'A' + 'a');
	ref.name = ref.text;
	slash = strchr(ref.text, '/');
	if (slash) {
		*slash = '\0';
		ref.namespace_ = ref.text;
		ref.name = slash + 1;
	}
	colon = strchr(ref.name, ':');
	if (colon) {
		*colon = '\0';
		ref.tag = colon + 1;
	}
	if (!part_is_valid(ref.name, "") ||
	    (ref.namespace_ && !part_is_valid(ref.namespace_, "")) ||
	    (ref.tag && !part_is_valid(ref.tag, "."))) {
		abx__e2b_ref_done(&ref);
		return abx__error_set(reterr, ABX_EINVAL,
				      "Invalid name: \"%.200s\" is not "
				      "[namespace/]name[:tag] of a-z, 0-9, - and _",
				      text);
	}
	*ret = ref;
	return ABX_OK;
}

static bool is_visible(const abx__identity *who, const abx__snapshot_rec *s)
{
	return abx__identity_sees_all(who) ||
	       (abx__str_eq(who->team, s->team) && abx__str_eq(who->user, s->user));
}

bool abx__e2b_ref_matches(const abx__e2b_ref *ref, const abx__snapshot_rec *s)
{
	if (ref->tag && strcmp(ref->tag, s->tag) != 0)
		return false;
	if (!s->name || strcmp(ref->name, s->name) != 0)
		return !ref->namespace_ && strcmp(ref->name, s->id) == 0;
	return !ref->namespace_ || strcmp(ref->namespace_, namespace_of(s->team)) == 0;
}

const abx__snapshot_rec *abx__e2b_snapshot_lookup(abx__call *call,
						  const abx__e2b_ref *ref,
						  const abx__snapshot_rec *after)
{
	const abx__control *control = call->serve->control;
	const abx__snapshot_rec *s = abx__control_snapshot_next(control, after);

	while (s && !(is_visible(&call->who, s) && abx__e2b_ref_matches(ref, s)))
		s = abx__control_snapshot_next(control, s);
	return s;
}

const abx__snapshot_rec *abx__e2b_snapshot_named(abx__call *call, const char *template_id)
{
	const abx__snapshot_rec *s = NULL, *found;
	abx__e2b_ref ref = { 0 };

	if (strstr(template_id, "::") || strstr(template_id, "//") ||
	    abx__e2b_ref_parse(template_id, &ref, NULL) < 0)
		return NULL;
	found = abx__e2b_snapshot_lookup(call, &ref, NULL);
	for (s = found; s && !ref.tag; s = abx__e2b_snapshot_lookup(call, &ref, s)) {
		if (strcmp(s->tag, ABX__SNAPSHOT_TAG_DEFAULT) == 0) {
			found = s;
			break;
		}
	}
	abx__e2b_ref_done(&ref);
	return found;
}

char *abx__e2b_snapshot_template(const abx__snapshot_rec *s)
{
	return s->name ? abx__strf("%s/%s", namespace_of(s->team), s->name)
		       : abx__strdup(s->id);
}

static json_object *info(const abx__snapshot_rec *s)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	ABX_CLEANUP(abx__freep) char *name = abx__e2b_snapshot_template(s);
	ABX_CLEANUP(abx__freep)
	char *id = name ? abx__strf("%s:%s", name, s->tag) : NULL;
	json_object *names = json_object_new_array();

	if (!o || !id || !names || abx__json_set_take(o, "names", names) < 0 ||
	    abx__json_set_str(o, "snapshotID", id) < 0 ||
	    (s->name && abx__json_push_take(names, json_object_new_string(name)) < 0))
		return NULL;
	return abx_take(o);
}

/* ---- create ---- */

static void on_made(void *userdata, int r, const abx__snapshot_rec *s,
		    const abx_error *err)
{
	abx__call *call = userdata;

	if (r < 0)
		abx__call_error(call, err);
	else
		abx__call_json(call, 201, info(s));
	abx__call_drop(call);
}

/* The name belongs to the team it says. */
static int check_namespace(const abx__identity *who, const abx__e2b_ref *ref,
			   abx_error **reterr)
{
	const char *own = namespace_of(who->team);

	if (!ref->namespace_ || strcmp(ref->namespace_, own) == 0)
		return ABX_OK;
	return abx__error_set(reterr, ABX_EINVAL,
			      "namespace \"%s\" is not your team's, which is \"%s\"",
			      ref->namespace_, own);
}

/* An env of that name would always be meant. */
static int check_name(abx__call *call, const abx__e2b_ref *ref, abx_error **reterr)
{
	json_object *env = NULL;
	int r = check_namespace(&call->who, ref, reterr);

	if (r < 0)
		return r;
	if (abx__control_env_get(call->serve->control, call->who.namespace_, ref->name,
				 &env, NULL) < 0)
		return ABX_OK;
	json_object_put(env);
	return abx__error_set(reterr, ABX_EINVAL,
			      "Invalid name: \"%s\" is the name of an env", ref->name);
}

void abx__e2b_snapshot_create(abx__call *call)
{
	static const char *const known[] = { "name", NULL };
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	const abx__sandbox_rec *rec;
	abx__e2b_ref ref = { 0 };
	const char *name = NULL;
	int r = abx__json_only(call->body, known, &err);

	if (r == ABX_OK)
		r = abx__json_get_str(call->body, "name", &name, &err);
	if (r == 1)
		r = abx__e2b_ref_parse(name, &ref, &err);
	if (r == ABX_OK && name)
		r = check_name(call, &ref, &err);
	if (r < 0) {
		abx__call_error(call, err);
		abx__e2b_ref_done(&ref);
		return;
	}
	rec = abx__call_sandbox(call);
	if (rec) {
		abx__call_hold(call);
		if (abx__control_snapshot(call->serve->control, rec->id, ref.name,
					  ref.tag, false, on_made, call, &err) < 0) {
			abx__call_error(call, err);
			abx__call_drop(call);
		}
	}
	abx__e2b_ref_done(&ref);
}

/* ---- list ---- */

typedef struct query {
	char *sandbox;
	abx__e2b_ref ref;
	bool has_name;
	uint64_t limit;
	bool has_token;
	int64_t token_us;
	char *token_id;
} query;

static void query_done(query *q)
{
	abx__free(q->sandbox);
	abx__free(q->token_id);
	abx__e2b_ref_done(&q->ref);
}

/* 1 and the value, 0 when absent or empty. */
static int param(const char *text, const char *name, char **ret, abx_error **reterr)
{
	int r = text ? abx__query_get(text, name, ret) : 0;

	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	if (r < 0)
		return abx__error_set(reterr, ABX_EINVAL, "%s is not well encoded", name);
	return r == 1 && **ret ? 1 : 0;
}

static int parse_query(const char *text, query *q, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *name = NULL;
	ABX_CLEANUP(abx__freep) char *limit = NULL;
	ABX_CLEANUP(abx__freep) char *token = NULL;
	int r = param(text, "sandboxID", &q->sandbox, reterr);

	q->limit = LIMIT_MAX;
	if (r >= 0)
		r = param(text, "name", &name, reterr);
	if (r == 1) {
		q->has_name = true;
		r = abx__e2b_ref_parse(name, &q->ref, reterr);
	}
	if (r >= 0)
		r = param(text, "limit", &limit, reterr);
	if (r == 1 && abx__parse_u64(limit, 1, LIMIT_MAX, &q->limit) < 0)
		return abx__error_set(reterr, ABX_EINVAL, "limit is 1 to %d, not \"%s\"",
				      LIMIT_MAX, limit);
	if (r >= 0)
		r = param(text, "nextToken", &token, reterr);
	if (r == 1) {
		q->has_token = true;
		r = abx__list_token_parse(token, false, &q->token_us, &q->token_id,
					  reterr);
	}
	return r < 0 ? r : ABX_OK;
}

/* Is it behind the last one of the page before? The newest first, then by id. */
static bool is_behind(const query *q, const abx__snapshot_rec *s)
{
	int64_t us = s->created_ms * 1000;

	if (!q->has_token || us != q->token_us)
		return !q->has_token || us < q->token_us;
	return strcmp(s->id, q->token_id) > 0;
}

static bool passes(abx__call *call, const query *q, const abx__snapshot_rec *s)
{
	return is_visible(&call->who, s) &&
	       (!q->has_name || abx__e2b_ref_matches(&q->ref, s)) &&
	       (!q->sandbox || !*q->sandbox ||
		abx__str_starts(q->sandbox, s->sandbox)) /* ID-CLIENTID */;
}

/* A template is listed once, as the newest of its tags, unless one was asked for. */
static bool is_newest(abx__call *call, const query *q, const abx__snapshot_rec *s)
{
	const abx__control *control = call->serve->control;

	if (!s->name || q->ref.tag)
		return true;
	for (const abx__snapshot_rec *n = abx__control_snapshot_next(control, NULL);
	     n && n != s; n = abx__control_snapshot_next(control, n))
		if (abx__str_eq(n->name, s->name) && abx__str_eq(n->team, s->team) &&
		    strcmp(n->namespace_, s->namespace_) == 0 && passes(call, q, n))
			return false;
	return true;
}

static bool is_asked_for(abx__call *call, const query *q, const abx__snapshot_rec *s)
{
	return passes(call, q, s) && is_behind(q, s) && is_newest(call, q, s);
}

static void answer_list(abx__call *call, const query *q)
{
	ABX_CLEANUP_JSON json_object *array = json_object_new_array();
	const abx__control *control = call->serve->control;
	const abx__snapshot_rec *last = NULL;

	for (const abx__snapshot_rec *s = abx__control_snapshot_next(control, NULL);
	     array && s; s = abx__control_snapshot_next(control, s)) {
		json_object *o;

		if (!is_asked_for(call, q, s))
			continue;
		if (json_object_array_length(array) == q->limit) {
			ABX_CLEANUP(abx__freep)
			char *token = abx__list_token_make(last->created_ms * 1000,
							   last->id, false);

			if (token)
				abx__call_header(call, "X-Next-Token", token);
			break;
		}
		o = info(s);
		if (!o || abx__json_push_take(array, o) < 0) {
			abx__call_nomem(call);
			return;
		}
		last = s;
	}
	abx__call_json(call, 200, abx_take(array));
}

void abx__e2b_snapshot_list(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	query q = { 0 };

	if (parse_query(abx__http_req_query(call->req), &q, &err) < 0)
		abx__call_error(call, err);
	else
		answer_list(call, &q);
	query_done(&q);
}

/* ---- delete ---- */

static bool refuse_used(abx__call *call, const abx__e2b_ref *ref)
{
	const abx__control *control = call->serve->control;

	for (const abx__snapshot_rec *s = abx__e2b_snapshot_lookup(call, ref, NULL); s;
	     s = abx__e2b_snapshot_lookup(call, ref, s)) {
		const abx__sandbox_rec *user = abx__control_snapshot_user(control, s->id);

		if (!user)
			continue;
		abx__call_fail(call, 400,
			       "cannot delete template '%s' because there are %s "
			       "sandboxes using it",
			       call->params[0], user->paused_ms ? "paused" : "running");
		return true;
	}
	return false;
}

/* The last of them answers. */
static void on_deleted(void *userdata, int r, const abx_error *err)
{
	abx__call *call = userdata;

	if (r < 0)
		abx__call_error(call, err);
	else if (--call->pending == 0)
		abx__call_empty(call, 204);
	abx__call_drop(call);
}

static void delete_all(abx__call *call, const abx__e2b_ref *ref)
{
	const abx__snapshot_rec *s = abx__e2b_snapshot_lookup(call, ref, NULL);

	call->pending = 1;
	while (s) {
		/* It is out of sight at once, and its place in the list with it. */
		const abx__snapshot_rec *next = abx__e2b_snapshot_lookup(call, ref, s);

		abx__call_hold(call);
		call->pending++;
		if (abx__control_snapshot_delete(call->serve->control, s->id, on_deleted,
						 call, NULL) < 0) {
			call->pending--;
			abx__call_drop(call);
		}
		s = next;
	}
	if (--call->pending == 0)
		abx__call_empty(call, 204);
}

/* A template here is an env or a snapshot; the E2B API deletes the latter. */
void abx__e2b_template_delete(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	json_object *env = NULL;
	abx__e2b_ref ref = { 0 };

	if (abx__e2b_ref_parse(call->params[0], &ref, &err) < 0) {
		abx__call_fail(call, 400, "Invalid template ID: %s",
			       abx_error_message(err));
		return;
	}
	/* E2B's: whatever the tag, the template goes. */
	ref.tag = NULL;
	if (abx__e2b_snapshot_lookup(call, &ref, NULL)) {
		if (!refuse_used(call, &ref))
			delete_all(call, &ref);
	} else if (abx__control_env_get(call->serve->control, call->who.namespace_,
					ref.name, &env, NULL) == ABX_OK) {
		json_object_put(env);
		abx__call_fail(call, 400,
			       "template '%s' is an env: delete it with `abx delete envs "
			       "%s`",
			       ref.name, ref.name);
	} else {
		abx__call_fail(call, 404, "template '%s' not found", call->params[0]);
	}
	abx__e2b_ref_done(&ref);
}
