/*
 * agentboxd-base.c - --with-base: the template and the env `base`, so that a program that
 * starts the engine and asks for a sandbox gets one.
 *
 * The documents are those of deploy/samples, compiled in: they are there wherever the
 * program is. They go the way of every document, through control. An env of whatever name
 * says that somebody has decided what this instance offers, and nothing is made any more.
 */
#include <string.h>

#include "agentboxd-base-documents.h"
#include "agentboxd.h"
#include "base/alloc.h"
#include "base/error.h"
#include "io/json.h"
#include "io/yaml.h"
#include "model/keys.h"
#include "serve/keys.h"

typedef struct base {
	abx__control *control;
	json_object *documents; /* the template, the env */
	abx__control_done done;
	void *userdata;
} base;

static void finish(base *b, int r, const abx_error *err)
{
	abx__control_done done = b->done;
	void *userdata = b->userdata;

	json_object_put(b->documents);
	abx__free(b);
	done(userdata, r, err);
}

static json_object *document(const base *b, size_t i)
{
	return json_object_array_get_idx(b->documents, i);
}

static json_object *member(json_object *of, const char *key)
{
	return json_object_object_get(of, key);
}

/* The env is the instance owner's, and its pool this cluster's. */
static int adapt_env(json_object *env, const char *cluster_id)
{
	json_object *metadata = member(env, "metadata");
	json_object *clusters = member(member(env, "spec"), "clusters");
	json_object *labels = json_object_new_object();

	if (!labels || abx__json_set_take(metadata, "labels", labels) < 0 ||
	    abx__json_set_str(labels, ABX__LABEL_TEAM, abx__identity_local.team) < 0 ||
	    abx__json_set_str(labels, ABX__LABEL_USER, abx__identity_local.user) < 0 ||
	    abx__json_set_str(metadata, "namespace", abx__identity_local.namespace_) <
		    0 ||
	    abx__json_set_str(json_object_array_get_idx(clusters, 0), "clusterID",
			      cluster_id) < 0)
		return ABX_ENOMEM;
	return ABX_OK;
}

static void on_env(void *userdata, int r, json_object *object, const abx_error *err)
{
	(void)object;
	finish(userdata, r, err);
}

static void make_env(base *b)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int r = abx__control_env_create(b->control, document(b, 1), on_env, b, &err);

	if (r < 0)
		finish(b, r, err);
}

static void on_template(void *userdata, int r, json_object *object, const abx_error *err)
{
	(void)object;
	/* There since a start that was killed in between. */
	if (r < 0 && r != ABX_EEXISTS)
		finish(userdata, r, err);
	else
		make_env(userdata);
}

static int is_wanted(const base *b, bool *ret, abx_error **reterr)
{
	ABX_CLEANUP_JSON json_object *envs = NULL;
	int r = abx__control_env_list(b->control, NULL, &envs, reterr);

	if (r == ABX_OK)
		*ret = json_object_array_length(envs) == 0;
	return r;
}

static int begin(base *b, const char *cluster_id, bool *ret_wanted, abx_error **reterr)
{
	int r = is_wanted(b, ret_wanted, reterr);

	if (r < 0 || !*ret_wanted)
		return r;
	r = abx__yaml_parse(base_documents, strlen(base_documents), 0, &b->documents,
			    reterr);
	if (r < 0)
		return r;
	if (adapt_env(document(b, 1), cluster_id) < 0)
		return abx__error_nomem(reterr);
	r = abx__control_template_put(b->control, document(b, 0), true, on_template, b,
				      reterr);
	if (r != ABX_EEXISTS)
		return r;
	make_env(b);
	return ABX_OK;
}

void agentboxd_base_make(abx__control *control, const char *cluster_id,
			 abx__control_done done, void *userdata)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	base *b = abx__calloc(1, sizeof(*b));
	bool wanted = true;
	int r;

	if (!b) {
		abx__error_nomem(&err);
		done(userdata, ABX_ENOMEM, err);
		return;
	}
	*b = (base){ .control = control, .done = done, .userdata = userdata };
	r = begin(b, cluster_id, &wanted, &err);
	if (r < 0 || !wanted)
		finish(b, r, err);
}
