/*
 * watch.c - the calls of <agentbox/watch.h>: envd's WatchDir, whose messages are
 * envd.md section 8.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "client/file-info.h"
#include "client/options.h"
#include "client/sandbox.h"
#include "client/stream.h"
#include "io/json.h"

struct abx_watch {
	abx__stream stream; /* first */
	abx_watch_event_fn on_event;
	void *userdata;
	char *path;
};

/* ---- events ---- */

static int type_of(json_object *obj)
{
	static const char *const names[] = {
		[ABX_WATCH_CREATE] = "EVENT_TYPE_CREATE",
		[ABX_WATCH_WRITE] = "EVENT_TYPE_WRITE",
		[ABX_WATCH_REMOVE] = "EVENT_TYPE_REMOVE",
		[ABX_WATCH_RENAME] = "EVENT_TYPE_RENAME",
		[ABX_WATCH_CHMOD] = "EVENT_TYPE_CHMOD",
	};
	const char *name = NULL;

	abx__json_get_str(obj, "type", &name, NULL);
	for (int i = ABX_WATCH_CREATE; i <= ABX_WATCH_CHMOD; i++)
		if (abx__str_eq(name, names[i]))
			return i;
	return ABX_WATCH_UNKNOWN;
}

static int on_event(abx_watch *watch, json_object *obj)
{
	abx_watch_event event = { .size = sizeof(event), .type = type_of(obj) };
	abx_file_info *entry = NULL;
	int r;

	if (abx__json_get_str(obj, "name", &event.name, NULL) <= 0)
		return ABX_EPROTO;
	if (json_object_object_get_ex(obj, "entry", NULL)) {
		r = abx__file_info_parse(obj, &entry);
		if (r < 0)
			return r;
	}
	event.entry = entry;
	r = abx__stream_answered(&watch->stream,
				 watch->on_event(watch->userdata, &event));
	abx_file_info_free(entry);
	return r;
}

static int on_message(abx__stream *stream, json_object *message)
{
	json_object *kind = NULL;

	if (stream->has_ended)
		return ABX_OK;
	if (abx__json_get_object(message, "start", &kind, NULL) > 0)
		abx__stream_begun(stream);
	else if (abx__json_get_object(message, "filesystem", &kind, NULL) > 0)
		return on_event((abx_watch *)stream, kind);
	return ABX_OK; /* keepalives, and what later versions add */
}

/* ---- the handle ---- */

static void destroy(abx__stream *stream)
{
	abx_watch *watch = (abx_watch *)stream;

	abx__free(watch->path);
	abx__free(watch);
}

static const abx__stream_ops watch_ops = {
	.start_kind = ABX__OP_WATCH,
	.no_end = "the stream ended, and with it the watch",
	.on_message = on_message,
	.destroy = destroy,
};

static abx_watch *new_watch(abx_client *client, const char *path,
			    const abx_watch_options *opts)
{
	abx_watch *watch = abx__calloc(1, sizeof(*watch));

	if (!watch)
		return NULL;
	watch->path = abx__strdup(path);
	if (!watch->path) {
		abx__free(watch);
		return NULL;
	}
	abx__stream_init(&watch->stream, client, &watch_ops);
	watch->on_event = opts->on_event;
	watch->userdata = opts->userdata;
	return watch;
}

void abx_watch_free(abx_watch *watch)
{
	if (watch)
		abx__stream_close(&watch->stream);
}

void abx_watch_resume(abx_watch *watch)
{
	if (watch)
		abx__stream_resume(&watch->stream);
}

/* ---- start ---- */

static json_object *make_message(const char *path, const abx_watch_options *opts)
{
	ABX_CLEANUP_JSON json_object *message = json_object_new_object();

	if (!message || abx__json_set_str(message, "path", path) < 0 ||
	    abx__json_set_bool(message, "recursive", opts->recursive != 0) < 0 ||
	    abx__json_set_bool(message, "includeEntry", opts->include_entry != 0) < 0 ||
	    abx__json_set_bool(message, "allowNetworkMounts",
			       opts->allow_network_mounts != 0) < 0)
		return NULL;
	return abx_take(message);
}

static int start_watch(abx_sandbox *sandbox, const char *path,
		       const abx_watch_options *user_opts, const abx__then *then,
		       abx_error **reterr)
{
	abx__request req = { .where = ABX__TO_SANDBOX,
			     .path = "/filesystem.Filesystem/WatchDir",
			     .sandbox = sandbox };
	abx_watch_options opts;
	abx_watch *watch;
	abx_op *op = NULL;
	int r;

	if (!sandbox)
		return abx__error_set(reterr, ABX_EINVAL, "watch: the sandbox is NULL");
	if ((r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_watch_options",
				   reterr)) < 0 ||
	    (r = abx__file_check_path("watch", path, reterr)) < 0)
		return r;
	if (!opts.on_event)
		return abx__error_set(reterr, ABX_EINVAL, "watch %s: on_event is NULL",
				      path);
	r = abx__op_new(sandbox->client, then, &op, reterr, "watch %s in sandbox %s",
			path, sandbox->id);
	if (r < 0)
		return r;
	watch = new_watch(sandbox->client, path, &opts);
	if (!watch)
		return abx__op_abandon(op, abx__error_nomem(reterr), reterr);
	req.user = opts.user;
	if (opts.timeout_ms != ABX_NO_TIMEOUT)
		req.server_timeout_ms = opts.timeout_ms;
	return abx__stream_open(&watch->stream, op, &req, make_message(path, &opts),
				reterr);
}

int abx_watch_start(abx_sandbox *sandbox, const char *path, const abx_watch_options *opts,
		    abx_watch **ret, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_WATCH, &wait);

	if (!ret)
		return abx__error_set(reterr, ABX_EINVAL, "abx_watch_start: ret is NULL");
	return abx__wait_object(ABX__CLIENT_OF(sandbox), &then,
				start_watch(sandbox, path, opts, &then, reterr), ret,
				reterr);
}

int abx_watch_start_async(abx_sandbox *sandbox, const char *path,
			  const abx_watch_options *opts, abx_watch_fn done,
			  void *userdata, abx_free_fn free_userdata, abx_op **ret_op,
			  abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_WATCH, watch, done);

	return abx__then_end(&then, start_watch(sandbox, path, opts, &then, reterr));
}

/* ---- its end ---- */

static int start_wait(abx_watch *watch, const abx__then *then, abx_error **reterr)
{
	char what[96];

	if (!watch)
		return abx__error_set(reterr, ABX_EINVAL,
				      "abx_watch_wait: the watch is NULL");
	snprintf(what, sizeof(what), "the watch of %.72s", watch->path);
	return abx__stream_wait(&watch->stream, then, what, reterr);
}

int abx_watch_wait(abx_watch *watch, abx_error **reterr)
{
	abx__wait wait = { 0 };
	abx__then then = ABX__THEN_WAIT(ABX__OP_DONE, &wait);
	int r = start_wait(watch, &then, reterr);

	return r < 0 ? r : abx__wait_end(watch->stream.client, &wait, r, reterr);
}

int abx_watch_wait_async(abx_watch *watch, abx_done_fn done, void *userdata,
			 abx_free_fn free_userdata, abx_op **ret_op, abx_error **reterr)
{
	abx__then then = ABX__THEN(ABX__OP_DONE, done, done);

	return abx__then_end(&then, start_wait(watch, &then, reterr));
}
