/*
 * fs-rpc.c - filesystem.Filesystem. Single calls of the kernel run at once; trees go to a
 * worker, which also prints the answer, so that a long listing does not hold up the loop.
 */
#include "envd/fs-rpc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <envd/filesystem.pb-c.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "envd/envd.h"
#include "envd/fs-entry.h"
#include "envd/fs-walk.h"
#include "envd/path.h"
#include "io/proto-json.h"

char *abx__fs_rpc_resolve(abx__rpc *rpc, const char *path)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	char *out = NULL;

	if (abx__path_resolve(path, &rpc->user, rpc->envd->default_workdir, &out, &err) <
	    0) {
		abx__rpc_fail_error(rpc, err);
		return NULL;
	}
	for (size_t len = strlen(out); len > 1 && out[len - 1] == '/'; len--)
		out[len - 1] = '\0';
	return out;
}

/* Replies with a message of one entry: Stat, MakeDir and Move look alike on the wire. */
static void reply_entry(abx__rpc *rpc, const char *path)
{
	Filesystem__StatResponse msg = FILESYSTEM__STAT_RESPONSE__INIT;
	int r = abx__fs_entry_at(path, &rpc->envd->users, &msg.entry);

	if (r == -ENOENT || r == -ENOTDIR) {
		abx__rpc_fail(rpc, ABX__CONNECT_NOT_FOUND, "file not found: lstat %s: %s",
			      path, strerror(-r));
		return;
	}
	if (r < 0) {
		abx__rpc_fail(rpc, ABX__CONNECT_INTERNAL,
			      "error getting file info: lstat %s: %s", path,
			      strerror(-r));
		return;
	}
	abx__rpc_reply(rpc, &msg.base);
	abx__proto_free(&msg.entry->base);
}

static void handle_stat(abx__rpc *rpc)
{
	ABX_CLEANUP(abx__freep)
	char *path = abx__fs_rpc_resolve(rpc, ((Filesystem__StatRequest *)rpc->in)->path);

	if (path)
		reply_entry(rpc, path);
}

static void handle_make_dir(abx__rpc *rpc)
{
	ABX_CLEANUP(abx__freep)
	char *path =
		abx__fs_rpc_resolve(rpc, ((Filesystem__MakeDirRequest *)rpc->in)->path);
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	struct stat st;
	int r;

	if (!path)
		return;
	if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) {
		abx__rpc_fail(rpc, ABX__CONNECT_INVALID_ARGUMENT,
			      "path already exists but it is not a directory: %s", path);
		return;
	}
	r = abx__path_make_dirs(path, rpc->user.uid, rpc->user.gid, &err);
	if (r == 1)
		abx__rpc_fail(rpc, ABX__CONNECT_ALREADY_EXISTS,
			      "directory already exists: %s", path);
	else if (r == ABX_EEXISTS)
		abx__rpc_fail(rpc, ABX__CONNECT_INVALID_ARGUMENT, "%s",
			      abx_error_message(err));
	else if (r < 0)
		abx__rpc_fail(rpc, ABX__CONNECT_INTERNAL, "%s", abx_error_message(err));
	else
		reply_entry(rpc, path);
}

static bool make_parent(abx__rpc *rpc, const char *path)
{
	ABX_CLEANUP(abx__freep) char *parent = abx__path_parent(path);
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;

	if (parent &&
	    abx__path_make_dirs(parent, rpc->user.uid, rpc->user.gid, &err) >= 0)
		return true;
	abx__rpc_fail(rpc, ABX__CONNECT_INTERNAL, "%s", abx_error_message(err));
	return false;
}

static void handle_move(abx__rpc *rpc)
{
	const Filesystem__MoveRequest *request = (Filesystem__MoveRequest *)rpc->in;
	ABX_CLEANUP(abx__freep) char *source = abx__fs_rpc_resolve(rpc, request->source);
	ABX_CLEANUP(abx__freep) char *destination = NULL;
	struct stat st;

	if (source)
		destination = abx__fs_rpc_resolve(rpc, request->destination);
	if (!destination)
		return;
	if (lstat(source, &st) < 0) {
		abx__rpc_fail(rpc,
			      errno == ENOENT || errno == ENOTDIR ? ABX__CONNECT_NOT_FOUND
								  : ABX__CONNECT_INTERNAL,
			      "source file not found: lstat %s: %s", source,
			      strerror(errno));
		return;
	}
	if (!make_parent(rpc, destination))
		return;
	if (rename(source, destination) < 0)
		abx__rpc_fail(rpc,
			      errno == ENOENT ? ABX__CONNECT_NOT_FOUND
					      : ABX__CONNECT_INTERNAL,
			      "error renaming: rename %s %s: %s", source, destination,
			      strerror(errno));
	else
		reply_entry(rpc, destination);
}

/* ---- on a worker ---- */

struct job {
	uv_work_t work;
	abx__rpc *rpc; /* a reference; the worker reads its request and user only */
	char *path;
	unsigned depth;
	atomic_bool cancelled;
	abx__buf answer; /* printed; when code is 0 */
	enum abx__connect_code code;
	char message[512];
};

__attribute__((format(printf, 3, 4))) static void
job_fail(struct job *job, enum abx__connect_code code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(job->message, sizeof(job->message), fmt, ap);
	va_end(ap);
	job->code = code;
}

static void fail_list(struct job *job, int error)
{
	struct stat st;

	if (error == ENOTDIR && stat(job->path, &st) == 0)
		job_fail(job, ABX__CONNECT_INVALID_ARGUMENT,
			 "path is not a directory: %s", job->path);
	else if (error == ENOENT || error == ENOTDIR)
		job_fail(job, ABX__CONNECT_NOT_FOUND, "directory not found: %s: %s",
			 job->path, strerror(error));
	else if (error == ELOOP)
		job_fail(job, ABX__CONNECT_FAILED_PRECONDITION, "too many links: %s",
			 job->path);
	else if (error == E2BIG)
		job_fail(job, ABX__CONNECT_RESOURCE_EXHAUSTED, "more than %d entries: %s",
			 ABX__FS_MAX_ENTRIES, job->path);
	else if (error == ECANCELED)
		job_fail(job, ABX__CONNECT_CANCELED, "canceled");
	else
		job_fail(job, ABX__CONNECT_INTERNAL, "error reading directory: %s: %s",
			 job->path, strerror(error));
}

static void run_list(uv_work_t *work)
{
	struct job *job = work->data;
	ABX_CLEANUP(abx__users_done) abx__users users;
	ABX_CLEANUP(abx__fs_list_done) abx__fs_list list = { 0 };
	Filesystem__ListDirResponse msg = FILESYSTEM__LIST_DIR_RESPONSE__INIT;
	int r;

	abx__users_init(&users, NULL, NULL);
	r = abx__fs_walk(job->path, job->depth, &users, &job->cancelled, &list);
	if (r < 0) {
		fail_list(job, -r);
		return;
	}
	msg.entries = list.entries;
	msg.n_entries = list.count;
	r = job->rpc->is_json ? abx__proto_json_print(&msg.base, &job->answer)
			      : abx__proto_pack(&msg.base, &job->answer);
	if (r < 0)
		job_fail(job, ABX__CONNECT_RESOURCE_EXHAUSTED,
			 "the listing is too long: %s", job->path);
}

static void run_remove(uv_work_t *work)
{
	struct job *job = work->data;
	Filesystem__RemoveResponse msg = FILESYSTEM__REMOVE_RESPONSE__INIT;
	int r = abx__fs_remove(job->path);

	if (r < 0)
		job_fail(job, ABX__CONNECT_INTERNAL,
			 "error removing file or directory: %s: %s", job->path,
			 strerror(-r));
	else if ((job->rpc->is_json ? abx__proto_json_print(&msg.base, &job->answer)
				    : abx__proto_pack(&msg.base, &job->answer)) < 0)
		job_fail(job, ABX__CONNECT_RESOURCE_EXHAUSTED, "out of memory");
}

static void on_job_gone(abx__rpc *rpc)
{
	struct job *job = rpc->data;

	atomic_store_explicit(&job->cancelled, true, memory_order_relaxed);
}

static void after_job(uv_work_t *work, int status)
{
	struct job *job = work->data;
	abx__rpc *rpc = job->rpc;

	rpc->on_gone = NULL;
	rpc->data = NULL;
	if (status < 0)
		abx__rpc_fail(rpc, ABX__CONNECT_CANCELED, "canceled");
	else if (job->code)
		abx__rpc_fail(rpc, job->code, "%s", job->message);
	else
		abx__rpc_reply_encoded(rpc, &job->answer);
	abx__buf_done(&job->answer);
	abx__free(job->path);
	abx__free(job);
	abx__rpc_unref(rpc);
}

static void start_job(abx__rpc *rpc, const char *path, unsigned depth, uv_work_cb run)
{
	struct job *job = abx__calloc(1, sizeof(*job));

	if (!job) {
		abx__rpc_fail(rpc, ABX__CONNECT_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	job->path = abx__fs_rpc_resolve(rpc, path);
	if (!job->path) {
		abx__free(job);
		return;
	}
	job->work.data = job;
	job->depth = depth;
	job->rpc = abx__rpc_ref(rpc);
	rpc->data = job;
	rpc->on_gone = on_job_gone;
	uv_queue_work(rpc->envd->loop, &job->work, run, after_job);
}

static void handle_list_dir(abx__rpc *rpc)
{
	const Filesystem__ListDirRequest *request = (Filesystem__ListDirRequest *)rpc->in;

	start_job(rpc, request->path, request->depth, run_list);
}

static void handle_remove(abx__rpc *rpc)
{
	start_job(rpc, ((Filesystem__RemoveRequest *)rpc->in)->path, 0, run_remove);
}

#define METHOD(name, stream, type, fn)                                   \
	{                                                                \
		.path = "/filesystem.Filesystem/" name, .kind = stream,  \
		.input = &filesystem__##type##__descriptor, .handle = fn \
	}

const abx__rpc_method abx__fs_methods[] = {
	METHOD("Stat", ABX__RPC_UNARY, stat_request, handle_stat),
	METHOD("MakeDir", ABX__RPC_UNARY, make_dir_request, handle_make_dir),
	METHOD("Move", ABX__RPC_UNARY, move_request, handle_move),
	METHOD("ListDir", ABX__RPC_UNARY, list_dir_request, handle_list_dir),
	METHOD("Remove", ABX__RPC_UNARY, remove_request, handle_remove),
	{ 0 },
};
