/*
 * files-compose.c - POST /files/compose: its JSON in, the work to a worker, the entry
 * out.
 */
#include "base/alloc.h"
#include "base/str.h"
#include "envd/answer.h"
#include "envd/compose.h"
#include "envd/envd.h"
#include "envd/files.h"
#include "envd/upload.h"
#include "io/json.h"

#define MAX_BODY_BYTES ((size_t)4 << 20)

struct job {
	struct abx__envd *envd;
	abx__http_req *req; /* NULL once the exchange is over; the work goes on */
	uv_work_t work;
	abx__compose compose;
};

static void free_job(struct job *job)
{
	abx__compose_done(&job->compose);
	abx__free(job);
}

static void on_closed(abx__http_req *req, bool answered, void *userdata)
{
	(void)req;
	(void)answered;
	((struct job *)userdata)->req = NULL;
}

static void run(uv_work_t *work)
{
	abx__compose_run(&((struct job *)work->data)->compose);
}

static void after_run(uv_work_t *work, int status)
{
	struct job *job = work->data;
	abx__compose *compose = &job->compose;

	if (compose->left_behind)
		abx__log_warn(&job->envd->log, "composed files stay behind",
			      "path=\"%s\" count=%zu", compose->path,
			      compose->left_behind);
	if (job->req) {
		abx__http_req_on_closed(job->req, NULL, NULL);
		if (status < 0)
			abx__answer_error(job->req, 500, "canceled");
		else if (compose->status)
			abx__answer_error(job->req, compose->status, "%s",
					  abx_error_message(compose->err));
		else
			abx__answer_json_take(job->req, 200, "application/json",
					      abx__upload_describe(compose->path));
	}
	free_job(job);
}

/* ---- the request ---- */

static int read_sources(json_object *body, abx__compose *compose, abx_error **reterr)
{
	json_object *list = NULL;
	int r = abx__json_get_array(body, "source_paths", &list, reterr);
	size_t count = r > 0 ? json_object_array_length(list) : 0;

	if (r < 0)
		return r;
	if (count == 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "source_paths must not be empty");
	if (count > ABX__COMPOSE_MAX_SOURCES)
		return abx__error_set(reterr, ABX_EINVAL,
				      "source_paths: more than %d paths",
				      ABX__COMPOSE_MAX_SOURCES);
	compose->sources = abx__calloc(count, sizeof(*compose->sources));
	if (!compose->sources)
		return abx__error_nomem(reterr);
	for (; compose->count < count; compose->count++) {
		const char *path =
			abx__json_str(json_object_array_get_idx(list, compose->count));

		if (!path)
			return abx__error_set(reterr, ABX_EINVAL,
					      "source_paths: expected strings");
		compose->sources[compose->count] = abx__strdup(path);
		if (!compose->sources[compose->count])
			return abx__error_nomem(reterr);
	}
	return ABX_OK;
}

/* `ret_username` is borrowed from `body`. */
static int read_request(json_object *body, abx__compose *compose,
			const char **ret_username, abx_error **reterr)
{
	static const char *const known[] = { "source_paths", "destination", "username",
					     NULL };
	const char *destination = NULL;
	int r = abx__json_only(body, known, reterr);

	if (r >= 0)
		r = read_sources(body, compose, reterr);
	if (r >= 0)
		r = abx__json_get_str(body, "destination", &destination, reterr);
	if (r >= 0)
		r = abx__json_get_str(body, "username", ret_username, reterr);
	if (r < 0)
		return r;
	if (!destination || !*destination)
		return abx__error_set(reterr, ABX_EINVAL, "destination is required");
	compose->destination = abx__strdup(destination);
	return compose->destination ? ABX_OK : abx__error_nomem(reterr);
}

/* Answers when it cannot begin. */
static bool prepare(struct abx__envd *envd, abx__http_req *req, json_object *body,
		    abx__compose *compose)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	const char *name = NULL;
	int r = read_request(body, compose, &name, &err);

	if (r >= 0 && envd->default_workdir) {
		compose->workdir = abx__strdup(envd->default_workdir);
		r = compose->workdir ? ABX_OK : abx__error_nomem(&err);
	}
	if (r < 0) {
		abx__answer_error(req, r == ABX_ENOMEM ? 500 : 400, "%s",
				  abx_error_message(err));
		return false;
	}
	name = abx__files_username(envd, req, name);
	return name && abx__files_find_user(envd, req, name, &compose->user);
}

static void start(struct abx__envd *envd, abx__http_req *req, json_object *body)
{
	struct job *job = abx__calloc(1, sizeof(*job));

	if (!job) {
		abx__answer_error(req, 500, "out of memory");
		return;
	}
	if (!prepare(envd, req, body, &job->compose)) {
		free_job(job);
		return;
	}
	job->envd = envd;
	job->req = req;
	job->work.data = job;
	abx__http_req_on_closed(req, on_closed, job);
	uv_queue_work(envd->loop, &job->work, run, after_run);
}

static void on_body(abx__http_req *req, int r, const char *data, size_t len,
		    void *userdata)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP_JSON json_object *body = NULL;

	if (r < 0) {
		abx__answer_error(req, r == ABX_ETOOBIG ? 413 : 400,
				  "invalid request body: it is %s",
				  r == ABX_ETOOBIG ? "too big" : "broken");
		return;
	}
	r = abx__json_parse_object(data, len, MAX_BODY_BYTES, &body, &err);
	if (r < 0)
		abx__answer_error(req, 400, "invalid request body: %s",
				  abx_error_message(err));
	else
		start(userdata, req, body);
}

void abx__files_handle_compose(struct abx__envd *envd, abx__http_req *req)
{
	abx__http_req_read_all(req, MAX_BODY_BYTES, on_body, envd);
}
