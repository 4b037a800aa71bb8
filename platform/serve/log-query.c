/*
 * log-query.c - see log-query.h.
 */
#include "serve/log-query.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "serve/view.h"

#define LINES_MAX 10000

void abx__log_query_done(abx__log_query *q)
{
	abx__free(q->container);
	abx__free(q->runtime);
	abx__free(q->file);
	json_object_put(q->template_);
}

static json_object *list_at(json_object *template_, const char *key)
{
	json_object *list = abx__view_path(template_, "spec", "template", "spec", key);

	return list && json_object_is_type(list, json_type_array) ? list : NULL;
}

/* Names of the Pod's containers, the sandbox's own first, those that prepare it last;
 * NULL when out of memory. */
json_object *abx__log_containers(json_object *template_)
{
	static const char *const keys[] = { "containers", "initContainers" };
	ABX_CLEANUP_JSON json_object *names = json_object_new_array();

	for (size_t k = 0; names && k < 2; k++) {
		json_object *list = list_at(template_, keys[k]);

		for (size_t i = 0; list && i < json_object_array_length(list); i++) {
			json_object *name = abx__view_path(
				json_object_array_get_idx(list, i), "name");

			if (name && abx__json_push_take(names, json_object_get(name)) < 0)
				return NULL;
		}
	}
	return abx_take(names);
}

const char *abx__log_main_container(json_object *template_)
{
	json_object *list = list_at(template_, "containers");
	const char *name =
		list ? abx__view_str(json_object_array_get_idx(list, 0), "name") : NULL;

	return name ? name : "main";
}

static int check_container(const abx__log_query *q, abx_error **reterr)
{
	const char *own = abx__log_main_container(q->template_);
	ABX_CLEANUP_JSON json_object *names = abx__log_containers(q->template_);

	if (!q->container || strcmp(q->container, own) == 0)
		return ABX_OK;
	for (size_t i = 0; names && i < json_object_array_length(names); i++)
		if (abx__str_eq(abx__json_str(json_object_array_get_idx(names, i)),
				q->container))
			return abx__error_set(reterr, ABX_EUNSUPPORTED,
					      "the log of container \"%s\" is not kept "
					      "by this server, only that of \"%s\"",
					      q->container, own);
	return abx__error_set(
		reterr, ABX_EINVAL, "container \"%s\" is none of the sandbox's: %s",
		q->container,
		names ? json_object_to_json_string_ext(names, JSON_C_TO_STRING_PLAIN)
		      : "");
}

/* The file of the runtime that is asked for. */
static int find_file(abx__log_query *q, abx_error **reterr)
{
	json_object *runtimes = abx__view_path(q->template_, "spec", "runtimes");
	size_t n = runtimes ? json_object_array_length(runtimes) : 0;

	if (!q->runtime)
		return ABX_OK;
	for (size_t i = 0; i < n; i++) {
		json_object *runtime = json_object_array_get_idx(runtimes, i);
		const char *file = abx__view_str(runtime, "logDir");

		if (!abx__str_eq(abx__view_str(runtime, "name"), q->runtime))
			continue;
		if (!file || !*file)
			return abx__error_set(reterr, ABX_EINVAL,
					      "runtime \"%s\" keeps no log (logDir)",
					      q->runtime);
		q->file = abx__strdup(file);
		return q->file ? ABX_OK : abx__error_nomem(reterr);
	}
	return abx__error_set(reterr, ABX_EINVAL,
			      "source \"%s\" is neither stdout nor a runtime of the "
			      "sandbox",
			      q->runtime);
}

/* `lenient`: a number that is none counts as 0. */
static int get_lines(const char *query, bool lenient, unsigned *ret, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *text = NULL;
	int r = query ? abx__query_get(query, "lines", &text) : 0;
	uint64_t n = 0;

	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	if (r == 1 && abx__parse_u64(text, 0, LINES_MAX, &n) < 0 && !lenient)
		r = ABX_EINVAL;
	if (r < 0 && !lenient)
		return abx__error_set(reterr, ABX_EINVAL, "lines is 0 to %d", LINES_MAX);
	*ret = (unsigned)n;
	return ABX_OK;
}

static int get_text(const char *query, const char *key, char **ret, abx_error **reterr)
{
	int r = query ? abx__query_get(query, key, ret) : 0;

	if (r == 1 && !**ret) {
		abx__free(*ret);
		*ret = NULL;
	}
	if (r == ABX_ENOMEM)
		return abx__error_nomem(reterr);
	return r < 0 ? abx__error_set(reterr, ABX_EINVAL, "%s is not well encoded", key)
		     : ABX_OK;
}

int abx__log_query_parse(abx__call *call, const char *template_, bool lenient,
			 abx__log_query *q, abx_error **reterr)
{
	const char *query = abx__http_req_query(call->req);
	int r = get_lines(query, lenient, &q->lines, reterr);

	if (r == ABX_OK)
		r = get_text(query, "container", &q->container, reterr);
	if (r == ABX_OK)
		r = get_text(query, "source", &q->runtime, reterr);
	if (r < 0)
		return r;
	if (q->runtime && strcmp(q->runtime, "stdout") == 0) {
		abx__free(q->runtime);
		q->runtime = NULL;
	}
	/* A template cannot go while a sandbox of it lives. */
	if (template_)
		abx__control_template_get(call->serve->control, template_, &q->template_,
					  NULL);
	r = check_container(q, reterr);
	return r < 0 ? r : find_file(q, reterr);
}
