/*
 * apply.c - manifests become requests of the native API.
 *
 * One operation, many exchanges: the text is parsed when it starts; then this cluster and
 * the caller's namespace are asked for when whole objects are among the documents; then
 * every document is taken apart (lib/model) before the first write is sent; then the
 * writes follow one another. What exists already is read and replaced by its `editable`
 * with the manifest's part in it, for a PUT is the whole object.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "client/answer.h"
#include "client/apply-plan.h"
#include "client/client.h"
#include "client/options.h"
#include "client/request.h"
#include "io/json.h"

#define MAX_ANSWER ((size_t)64 << 20)

static int on_answer(abx_op *op, int status, abx_error **reterr);

/* ---- memory ---- */

static void free_apply(void *state)
{
	struct apply *apply = state;

	for (size_t i = 0; i < apply->count; i++) {
		abx__free(apply->steps[i].name);
		abx__free(apply->steps[i].path);
		abx__free(apply->steps[i].item_path);
		json_object_put(apply->steps[i].body);
	}
	abx__free(apply->steps);
	abx__free(apply->resource);
	abx__free(apply->source);
	abx__free(apply->cluster);
	abx__free(apply->namespace_);
	json_object_put(apply->documents);
	json_object_put(apply->done);
	abx__free(apply);
}

int abx_platform_parse(const char *text, size_t len, char **ret, abx_error **reterr)
{
	struct apply apply = { 0 };
	int r;

	if (!text && len)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_platform_parse: text is NULL");
	r = abx__apply_parse(&apply, text, len, reterr);
	if (r >= 0) {
		char *json = abx__json_text(apply.documents, NULL);

		r = json ? ABX_OK : abx__error_nomem(reterr);
		if (json)
			*ret = json;
	}
	json_object_put(apply.documents);
	return r;
}

/* ---- exchanges ---- */

static int ask(abx_op *op, const char *method, const char *path, json_object *body,
	       abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_NATIVE,
			     .method = method,
			     .path = path,
			     .max_answer = MAX_ANSWER };

	abx__free(abx_take(op->out));
	op->out_len = 0;
	if (body) {
		op->out = abx__json_text(body, &op->out_len);
		if (!op->out)
			return abx__error_nomem(reterr);
	}
	return abx__request_again(op, &req, reterr);
}

static int write_next(abx_op *op, abx_error **reterr)
{
	struct apply *apply = op->state;
	struct step *step = &apply->steps[apply->at];

	if (apply->at == apply->count) {
		op->result = abx__json_text(apply->done, &op->result_len);
		return op->result ? ABX_OK : abx__error_nomem(reterr);
	}
	/* An update of a whole object begins with what is there. */
	if (apply->mode == ABX_APPLY_UPDATE && step->item_path) {
		apply->phase = READ;
		return ask(op, "GET", step->item_path, NULL, reterr);
	}
	apply->phase = WRITE;
	return ask(op, step->method, step->path, step->body, reterr);
}

static int note_done(struct apply *apply, const char *action, json_object *object)
{
	struct step *step = &apply->steps[apply->at];
	json_object *entry = json_object_new_object();

	if (!entry || abx__json_set_str(entry, "kind", step->kind) < 0 ||
	    abx__json_set_str(entry, "name", step->name) < 0 ||
	    abx__json_set_str(entry, "action", action) < 0 ||
	    abx__json_set_take(entry, "object", json_object_get(object)) < 0) {
		json_object_put(entry);
		return ABX_ENOMEM;
	}
	apply->at++;
	return abx__json_push_take(apply->done, entry);
}

static int step_failed(abx_op *op, int status, abx_error **reterr)
{
	struct apply *apply = op->state;
	struct step *step = &apply->steps[apply->at];

	int r;

	if (status == 409 && step->method[1] == 'O' && apply->phase == WRITE)
		r = abx__error_http(reterr, ABX_EEXISTS, status, "it exists already");
	else
		r = abx__answer_failed(op, status, reterr);
	abx__error_prefix(reterr, "%s%s%s", step->kind, *step->name ? " " : "",
			  step->name);
	return abx__apply_in_document(apply, step->document, r, reterr);
}

static int after_write(abx_op *op, const char *action, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *object = NULL;
	int r;

	if (op->in.len) {
		r = abx__answer_object(op, &object, reterr);
		if (r < 0)
			return r;
	}
	if (note_done(op->state, action, object) < 0)
		return abx__error_nomem(reterr);
	return write_next(op, reterr);
}

/* ---- replacing ---- */

/* The server stamps labels and annotations of its own, which a PUT must repeat. */
static int merge_map(json_object *body, json_object *live, const char *key)
{
	json_object *mine = NULL;
	json_object *theirs = NULL;
	int r;

	if (abx__json_get_object(live, key, &theirs, NULL) <= 0)
		return ABX_OK;
	if (abx__json_get_object(body, key, &mine, NULL) <= 0)
		return abx__json_set_take(body, key, json_object_get(theirs));
	json_object_object_foreach(theirs, name, value)
	{
		if (json_object_object_get_ex(mine, name, NULL))
			continue;
		r = abx__json_set_take(mine, name, json_object_get(value));
		if (r < 0)
			return r;
	}
	return ABX_OK;
}

/* What is fixed at create is repeated when the manifest does not say it. */
static int merge_fixed(json_object *body, json_object *live)
{
	static const char *const fixed[] = { "instanceType", "multiplier",
					     "inlineResources", "mode" };
	json_object *value;

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		if (json_object_object_get_ex(body, fixed[i], NULL) ||
		    !json_object_object_get_ex(live, fixed[i], &value))
			continue;
		if (abx__json_set_take(body, fixed[i], json_object_get(value)) < 0)
			return ABX_ENOMEM;
	}
	return ABX_OK;
}

/* A manifest cannot hold pull credentials; that they are there is repeated, so that they
 * stay. */
static int keep_pull_secret(json_object *body, json_object *live)
{
	json_object *theirs = NULL;
	json_object *mine = NULL;
	bool configured = false;

	if (abx__json_get_object(live, "overrides", &theirs, NULL) <= 0 ||
	    abx__json_get_bool(theirs, "imagePullSecretConfigured", &configured, NULL) <=
		    0 ||
	    !configured)
		return ABX_OK;
	if (abx__json_get_object(body, "overrides", &mine, NULL) <= 0) {
		mine = json_object_new_object();
		if (!mine || abx__json_set_take(body, "overrides", mine) < 0)
			return ABX_ENOMEM;
	}
	if (json_object_object_get_ex(mine, "imagePullSecret", NULL))
		return ABX_OK;
	return abx__json_set_bool(mine, "imagePullSecretConfigured", true);
}

static int replacement(struct step *step, json_object *answer, abx_error **reterr)
{
	json_object *live = NULL;

	if (step->drop_replicas)
		json_object_object_del(step->body, "replicas");
	if (abx__json_get_object(answer, "editable", &live, NULL) <= 0)
		return ABX_OK; /* a template: the object as it is replaces it */
	if (merge_map(step->body, live, "labels") < 0 ||
	    merge_map(step->body, live, "annotations") < 0 ||
	    merge_fixed(step->body, live) < 0 || keep_pull_secret(step->body, live) < 0)
		return abx__error_nomem(reterr);
	return ABX_OK;
}

static int after_read(abx_op *op, int status, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *answer = NULL;
	struct apply *apply = op->state;
	struct step *step = &apply->steps[apply->at];
	int r;

	/* A new member of an env that is updated. */
	if (status == 404 && abx__str_eq(step->kind, "SandboxPool")) {
		apply->phase = WRITE;
		return ask(op, step->method, step->path, step->body, reterr);
	}
	if (status != 200)
		return step_failed(op, status, reterr);
	r = abx__answer_object(op, &answer, reterr);
	if (r >= 0)
		r = replacement(step, answer, reterr);
	if (r < 0)
		return r;
	apply->phase = REPLACE;
	return ask(op, "PUT", step->item_path, step->body, reterr);
}

static int wrote(abx_op *op, int status, abx_error **reterr)
{
	struct apply *apply = op->state;
	struct step *step = &apply->steps[apply->at];

	if (status >= 200 && status < 300)
		return after_write(op, step->method[1] == 'U' ? "updated" : "created",
				   reterr);
	if (status != 409 || apply->mode != ABX_APPLY_ANY || !step->item_path)
		return step_failed(op, status, reterr);
	/* A template has no `editable`; it is replaced as it is. */
	if (abx__str_eq(step->kind, "SandboxTemplate")) {
		apply->phase = REPLACE;
		return ask(op, "PUT", step->item_path, step->body, reterr);
	}
	apply->phase = READ;
	return ask(op, "GET", step->item_path, NULL, reterr);
}

/* ---- who and where ---- */

static int begin_writes(abx_op *op, abx_error **reterr)
{
	struct apply *apply = op->state;
	int r = abx__apply_plan(apply, reterr);

	return r < 0 ? r : write_next(op, reterr);
}

/* This cluster: the entry that is local, or the only one. */
static int note_cluster(abx_op *op, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *answer = NULL;
	struct apply *apply = op->state;
	json_object *clusters = NULL;
	const char *id = NULL;
	size_t count;
	int r;

	r = abx__answer_object(op, &answer, reterr);
	if (r < 0)
		return r;
	abx__json_get_array(answer, "clusters", &clusters, NULL);
	count = clusters ? json_object_array_length(clusters) : 0;
	for (size_t i = 0; i < count; i++) {
		json_object *entry = json_object_array_get_idx(clusters, i);
		bool local = count == 1;

		if (!json_object_is_type(entry, json_type_object))
			continue;
		abx__json_get_bool(entry, "local", &local, NULL);
		if (local)
			abx__json_get_str(entry, "id", &id, NULL);
	}
	if (!id)
		return abx__error_set(reterr, ABX_EPROTO,
				      "the platform does not say which cluster it is");
	apply->cluster = abx__strdup(id);
	return apply->cluster ? ABX_OK : abx__error_nomem(reterr);
}

static int note_namespace(abx_op *op, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *answer = NULL;
	struct apply *apply = op->state;
	const char *name = NULL;
	int r;

	r = abx__answer_object(op, &answer, reterr);
	if (r < 0)
		return r;
	if (abx__json_get_str(answer, "namespace", &name, NULL) <= 0)
		return ABX_OK;
	apply->namespace_ = abx__strdup(name);
	return apply->namespace_ ? ABX_OK : abx__error_nomem(reterr);
}

static int on_answer(abx_op *op, int status, abx_error **reterr)
{
	struct apply *apply = op->state;
	int r;

	switch (apply->phase) {
	case ASK_CLUSTERS:
		r = status == 200 ? note_cluster(op, reterr)
				  : abx__answer_failed(op, status, reterr);
		apply->phase = ASK_WHOAMI;
		return r < 0 ? r : ask(op, "GET", "/auth/whoami", NULL, reterr);
	case ASK_WHOAMI:
		r = status == 200 ? note_namespace(op, reterr)
				  : abx__answer_failed(op, status, reterr);
		return r < 0 ? r : begin_writes(op, reterr);
	case WRITE:
		return wrote(op, status, reterr);
	case READ:
		return after_read(op, status, reterr);
	case REPLACE:
		if (status >= 200 && status < 300)
			return after_write(op, "updated", reterr);
		return step_failed(op, status, reterr);
	}
	return ABX_EFAIL;
}

/* ---- starting ---- */

static struct apply *new_apply(const abx_apply_options *opts)
{
	struct apply *apply = abx__calloc(1, sizeof(*apply));

	if (!apply)
		return NULL;
	apply->mode = opts->mode;
	apply->resource = abx__strdup(opts->resource);
	apply->source = abx__strdup(opts->name);
	apply->done = json_object_new_array();
	if ((opts->resource && !apply->resource) || (opts->name && !apply->source) ||
	    !apply->done) {
		free_apply(apply);
		return NULL;
	}
	return apply;
}

static int check_options(const abx_apply_options *opts, abx_error **reterr)
{
	if (opts->mode < ABX_APPLY_ANY || opts->mode > ABX_APPLY_UPDATE)
		return abx__error_set(reterr, ABX_EINVAL, "abx_apply_options: mode %d",
				      opts->mode);
	if (opts->resource && opts->resource[0] != '/')
		return abx__error_set(reterr, ABX_EINVAL,
				      "resource '%s' does not begin with '/'",
				      opts->resource);
	return ABX_OK;
}

static int begin(abx_op *op, const char *text, size_t len, abx_error **reterr)
{
	struct apply *apply = op->state;
	int r = abx__apply_parse(apply, text, len, reterr);

	if (r < 0)
		return r;
	apply->phase = ASK_CLUSTERS;
	if (abx__apply_has_objects(apply->documents))
		return ask(op, "GET", "/clusters", NULL, reterr);
	return begin_writes(op, reterr);
}

static int start_apply(abx_client *client, const char *text, size_t len,
		       const abx_apply_options *user_opts, const abx__then *then,
		       abx_error **reterr)
{
	struct apply *apply;
	abx_apply_options opts;
	abx_op *op = NULL;
	int r;

	if (!client || (!text && len))
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_platform_apply: an argument is NULL");
	if ((r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_apply_options",
				   reterr)) < 0 ||
	    (r = check_options(&opts, reterr)) < 0 ||
	    (r = abx__op_new(client, then, &op, reterr, "apply")) < 0)
		return r;
	apply = new_apply(&opts);
	if (!apply)
		return abx__op_abandon(op, abx__error_nomem(reterr), reterr);
	op->state = apply;
	op->free_state = free_apply;
	op->on_answer = on_answer;
	r = begin(op, text, len, reterr);
	return r < 0 ? abx__op_abandon(op, r, reterr) : abx__op_started(op);
}

int abx_platform_apply(abx_client *client, const char *text, size_t len,
		       const abx_apply_options *opts, char **ret, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_TEXT, &wait);
	int r = start_apply(client, text, len, opts, &then, reterr);

	return abx__wait_text(client, &wait, r, ret, reterr);
}

int abx_platform_apply_async(abx_client *client, const char *text, size_t len,
			     const abx_apply_options *opts, abx_text_fn done,
			     void *userdata, abx_free_fn free_userdata, abx_op **ret_op,
			     abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_TEXT, text, done);

	return abx__then_end(&then, start_apply(client, text, len, opts, &then, reterr));
}
