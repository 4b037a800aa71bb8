/*
 * native-templates.c - sandbox templates (native-api.md, sections 10 and 13.2). An admin
 * writes whole objects, as JSON text in `crdJson`; a tenant sees those its visibility
 * rules admit.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "model/gen/crds.h"
#include "model/keys.h"
#include "serve/native.h"
#include "serve/view.h"

static int put_common(json_object *o, json_object *doc)
{
	const char *source = abx__view_label(doc, ABX__LABEL_SYNC_SOURCE);
	const char *const texts[][2] = {
		{ "name", abx__view_meta(doc, "name") },
		{ "version", abx__view_str(doc, "spec", "version") },
		{ "description", abx__view_str(doc, "spec", "description") },
		{ "createdAt", abx__view_meta(doc, "creationTimestamp") },
		{ "syncSource", source ? source : "local" },
		{ "poolSizing", abx__view_label(doc, ABX__LABEL_POOL_SIZING) },
	};
	int r = ABX_OK;

	for (size_t i = 0; r == ABX_OK && i < sizeof(texts) / sizeof(texts[0]); i++)
		r = abx__native_put_str(o, texts[i][0], texts[i][1]);
	return r;
}

/* cpu and memory of the main container's limits, else its requests. */
static int put_size(json_object *o, json_object *doc)
{
	json_object *containers =
		abx__view_path(doc, "spec", "template", "spec", "containers");
	json_object *first = containers ? json_object_array_get_idx(containers, 0) : NULL;
	static const char *const keys[] = { "cpu", "memory" };

	for (size_t i = 0; first && i < 2; i++) {
		json_object *v = abx__view_path(first, "resources", "limits", keys[i]);

		if (!v)
			v = abx__view_path(first, "resources", "requests", keys[i]);
		if (abx__native_put(o, keys[i], v) < 0)
			return ABX_ENOMEM;
	}
	return ABX_OK;
}

static int put_runtimes(json_object *o, json_object *doc)
{
	json_object *runtimes = abx__view_path(doc, "spec", "runtimes");
	size_t n = runtimes ? json_object_array_length(runtimes) : 0;
	json_object *names = json_object_new_array();

	for (size_t i = 0; names && i < n; i++) {
		json_object *name =
			abx__view_path(json_object_array_get_idx(runtimes, i), "name");

		if (name && abx__json_push_take(names, json_object_get(name)) < 0) {
			json_object_put(names);
			return ABX_ENOMEM;
		}
	}
	return names ? abx__json_set_take(o, "runtimeNames", names) : ABX_ENOMEM;
}

static json_object *summary(json_object *doc)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (!o || put_common(o, doc) < 0 || put_size(o, doc) < 0 ||
	    put_runtimes(o, doc) < 0 ||
	    abx__json_set_bool(o, "hasDocs",
			       abx__view_annotation(doc, ABX__ANNOTATION_DOCS) != NULL) <
		    0)
		return NULL;
	return abx_take(o);
}

/* Two-space JSON is YAML as well, so every YAML reader takes it. */
int abx__native_put_yaml(json_object *o, const char *key, json_object *doc)
{
	const char *text = json_object_to_json_string_ext(
		doc, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
			     JSON_C_TO_STRING_NOSLASHESCAPE);

	return text ? abx__json_set_str(o, key, text) : ABX_ENOMEM;
}

int abx__native_put_docs(json_object *o, const char *key, json_object *template_,
			 const abx__docs_names *names)
{
	const char *docs = abx__view_annotation(template_, ABX__ANNOTATION_DOCS);
	ABX_CLEANUP_BUF abx__buf text = ABX__BUF_INIT_CAP(ABX__DOCS_MAX);
	int r;

	if (!docs)
		return ABX_OK;
	r = abx__docs_render(docs, names, &text);
	/* What would be too long rendered is given as it is. */
	return abx__json_set_str(o, key, r < 0 ? docs : abx__buf_str(&text));
}

static json_object *full(const abx__serve *serve, json_object *doc)
{
	const abx__docs_names names = { .cluster = serve->cluster_id,
					.base_url = serve->base_url };
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (!o || put_common(o, doc) < 0 || put_size(o, doc) < 0 ||
	    abx__native_put_yaml(o, "crdYaml", doc) < 0 ||
	    abx__native_put_docs(o, "docs", doc, &names) < 0)
		return NULL;
	return abx_take(o);
}

static void answer_template(abx__call *call, int status, json_object *doc)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *view = full(call->serve, doc);

	if (!view || !o) {
		json_object_put(view);
		abx__call_nomem(call);
	} else if (abx__json_set_take(o, "template", view) < 0) {
		abx__call_nomem(call);
	} else {
		abx__call_json(call, status, abx_take(o));
	}
}

/* Those `who` may see. */
static void answer_list(abx__call *call, const abx__identity *who)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *docs = NULL;
	ABX_CLEANUP_JSON json_object *items = json_object_new_array();

	if (abx__control_template_list(call->serve->control, &docs, &err) < 0) {
		abx__call_error(call, err);
		return;
	}
	for (size_t i = 0; items && i < json_object_array_length(docs); i++) {
		json_object *doc = json_object_array_get_idx(docs, i), *o;

		if (!abx__view_template_visible(who, doc))
			continue;
		o = summary(doc);
		if (!o || abx__json_push_take(items, o) < 0) {
			abx__call_nomem(call);
			return;
		}
	}
	abx__native_page(call, abx_take(items), true);
}

void abx__native_template_list(abx__call *call)
{
	answer_list(call, &call->who);
}

/* All, or with `team` and `user` what that person sees. */
void abx__native_template_list_all(abx__call *call)
{
	const char *query = abx__http_req_query(call->req);
	ABX_CLEANUP(abx__freep) char *team = NULL;
	ABX_CLEANUP(abx__freep) char *user = NULL;
	abx__identity who = { .admin = true };

	if (query && (abx__query_get(query, "team", &team) < 0 ||
		      abx__query_get(query, "user", &user) < 0)) {
		abx__call_fail(call, 400, "the query is not well encoded");
		return;
	}
	who.team = team ? team : "";
	who.user = user ? user : "";
	who.acts_as = *who.team || *who.user;
	answer_list(call, &who);
}

void abx__native_template_get(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *doc = NULL;
	int r = abx__control_template_get(call->serve->control, call->params[0], &doc,
					  &err);

	if (r == ABX_ENOTFOUND ||
	    (r == ABX_OK && !abx__view_template_visible(&call->who, doc)))
		abx__call_fail(call, 404, "sandbox template \"%s\" not found",
			       call->params[0]);
	else if (r < 0)
		abx__call_error(call, err);
	else
		answer_template(call, 200, doc);
}

/* ---- writes ---- */

/* A whole SandboxTemplate, by its schema. */
static int check_template(json_object *doc, abx_error **reterr)
{
	ABX_CLEANUP(abx__m_sandbox_template_freep) abx__m_sandbox_template *parsed = NULL;
	int r = abx__m_sandbox_template_parse(doc, 0, &parsed, reterr);

	if (r < 0)
		return r;
	if (!parsed->metadata || !parsed->metadata->name)
		return abx__error_set(reterr, ABX_EINVAL, "metadata.name: required");
	return ABX_OK;
}

/* The object in `crdJson`; `name` of the path must be its own. ABX_EINVAL. */
static int parse_crd(const abx__call *call, json_object **ret, abx_error **reterr)
{
	static const char *const known[] = { "crdJson", NULL };
	ABX_CLEANUP_JSON json_object *doc = NULL;
	const char *text = NULL, *name;
	int r = abx__json_only(call->body, known, reterr);

	if (r == ABX_OK)
		r = abx__json_get_str(call->body, "crdJson", &text, reterr);
	if (r == 0)
		r = abx__error_set(reterr, ABX_EINVAL, "crdJson is required");
	if (r < 0)
		return r;
	r = abx__json_parse_object(text, strlen(text), ABX__SERVE_BODY_MAX, &doc, reterr);
	if (r < 0)
		return abx__error_prefix(reterr, "crdJson");
	r = check_template(doc, reterr);
	if (r < 0)
		return abx__error_prefix(reterr, "crdJson");
	name = abx__view_meta(doc, "name");
	if (call->params[0] && !abx__str_eq(name, call->params[0]))
		return abx__error_set(
			reterr, ABX_EINVAL,
			"crdJson: metadata.name \"%s\" is not the path's \"%s\"", name,
			call->params[0]);
	*ret = abx_take(doc);
	return ABX_OK;
}

static void on_created(void *userdata, int r, json_object *doc, const abx_error *err)
{
	abx__call *call = userdata;

	if (r < 0)
		abx__call_error(call, err);
	else
		answer_template(call, 201, doc);
	abx__call_drop(call);
}

static void on_updated(void *userdata, int r, json_object *doc, const abx_error *err)
{
	abx__call *call = userdata;

	if (r < 0)
		abx__call_error(call, err);
	else
		answer_template(call, 200, doc);
	abx__call_drop(call);
}

static void write_template(abx__call *call, bool create)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *doc = NULL;
	int r = parse_crd(call, &doc, &err);

	abx__call_hold(call);
	if (r == ABX_OK)
		r = abx__control_template_put(call->serve->control, doc, create,
					      create ? on_created : on_updated, call,
					      &err);
	if (r < 0) {
		abx__call_error(call, err);
		abx__call_drop(call);
	}
}

void abx__native_template_create(abx__call *call)
{
	write_template(call, true);
}

void abx__native_template_update(abx__call *call)
{
	write_template(call, false);
}

static void on_deleted(void *userdata, int r, const abx_error *err)
{
	abx__call *call = userdata;
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (r < 0)
		abx__call_error(call, err);
	else if (!o || abx__json_set_str(o, "name", call->params[0]) < 0 ||
		 abx__json_set_str(o, "status", "Terminating") < 0)
		abx__call_nomem(call);
	else
		abx__call_json(call, 202, abx_take(o));
	abx__call_drop(call);
}

void abx__native_template_delete(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	abx__call_hold(call);
	if (abx__control_template_delete(call->serve->control, call->params[0],
					 on_deleted, call, &err) < 0) {
		abx__call_error(call, err);
		abx__call_drop(call);
	}
}
