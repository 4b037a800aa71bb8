/*
 * e2b-tags.c - the tags of a template and the build each names: of a snapshot the tags it
 * was made with, of an env the one it has.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/str.h"
#include "serve/e2b.h"
#include "serve/view.h"

static int push_tag(json_object *array, const char *tag, const char *build,
		    const char *created)
{
	json_object *o = json_object_new_object();

	if (o && abx__json_set_str(o, "tag", tag) == ABX_OK &&
	    abx__json_set_str(o, "buildID", build) == ABX_OK &&
	    abx__json_set_str(o, "createdAt", created) == ABX_OK)
		return abx__json_push_take(array, o);
	json_object_put(o);
	return ABX_ENOMEM;
}

static int push_snapshot(json_object *array, const abx__snapshot_rec *s)
{
	char build[ABX__UUID_LEN + 1], created[ABX__RFC3339_SIZE];
	int r = abx__id_uuid_of(s->id, build);

	abx__rfc3339_format(s->created_ms, created);
	return r < 0 ? r : push_tag(array, s->tag, build, created);
}

/* ABX_ENOTFOUND: there is no env of that name, either. */
static int push_env(abx__call *call, json_object *array, const abx__e2b_ref *ref)
{
	ABX_CLEANUP_JSON json_object *env = NULL;
	const char *uid, *created;
	int r;

	if (ref->namespace_ && !abx__str_eq(ref->namespace_, call->who.namespace_))
		return ABX_ENOTFOUND;
	r = abx__control_env_get(call->serve->control, call->who.namespace_, ref->name,
				 &env, NULL);
	if (r < 0)
		return r;
	if (!abx__view_visible(&call->who, env))
		return ABX_ENOTFOUND;
	uid = abx__view_meta(env, "uid");
	created = abx__view_meta(env, "creationTimestamp");
	return push_tag(array, ABX__SNAPSHOT_TAG_DEFAULT,
			uid ? uid : "00000000-0000-0000-0000-000000000000",
			created ? created : "1970-01-01T00:00:00Z");
}

void abx__e2b_template_tags(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *array = json_object_new_array();
	const abx__snapshot_rec *s = NULL;
	abx__e2b_ref ref = { 0 };
	int r = array ? ABX_OK : ABX_ENOMEM;

	if (abx__e2b_ref_parse(call->params[0], &ref, &err) < 0) {
		abx__call_fail(call, 400, "Invalid template ID: %s",
			       abx_error_message(err));
		return;
	}
	/* E2B's: whatever the tag, all of the template's. */
	ref.tag = NULL;
	while (r == ABX_OK && (s = abx__e2b_snapshot_lookup(call, &ref, s)))
		r = push_snapshot(array, s);
	if (r == ABX_OK && json_object_array_length(array) == 0)
		r = push_env(call, array, &ref);
	if (r == ABX_ENOTFOUND)
		abx__call_fail(call, 404, "template '%s' not found", call->params[0]);
	else if (r < 0)
		abx__call_nomem(call);
	else
		abx__call_json(call, 200, abx_take(array));
	abx__e2b_ref_done(&ref);
}
