/*
 * watch-rpc.c - requests checked, watchers made, events sent.
 *
 * While a watcher starts, and for as long as a stream lives, its `data` is the call; one
 * that is asked for its events belongs to a poller afterwards.
 */
#include "envd/watch-rpc.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <linux/magic.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "envd/envd.h"
#include "envd/fs-rpc.h"
#include "envd/watch-poll.h"

/* A stream that has this much not yet taken has lost touch. */
#define STREAM_MAX_QUEUED_BYTES ((size_t)4 << 20)

/* ---- what may be watched ---- */

static bool is_network(const char *path)
{
	static const unsigned long magics[] = { NFS_SUPER_MAGIC, CIFS_SUPER_MAGIC,
						SMB_SUPER_MAGIC, SMB2_SUPER_MAGIC,
						FUSE_SUPER_MAGIC };
	struct statfs fs;

	if (statfs(path, &fs) < 0)
		return false;
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if (((unsigned long)fs.f_type & 0xFFFFFFFFu) == magics[i])
			return true;
	return false;
}

static bool may_watch(abx__rpc *rpc, const char *path, bool allow_network)
{
	struct stat st;

	if (stat(path, &st) < 0)
		abx__rpc_fail(rpc,
			      errno == ENOENT || errno == ENOTDIR ? ABX__CONNECT_NOT_FOUND
								  : ABX__CONNECT_INTERNAL,
			      errno == ENOENT || errno == ENOTDIR
				      ? "path %s not found: stat %s: %s"
				      : "error statting path %s: stat %s: %s",
			      path, path, strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		abx__rpc_fail(rpc, ABX__CONNECT_INVALID_ARGUMENT,
			      "path %s is not a directory", path);
	else if (!allow_network && is_network(path))
		abx__rpc_fail(rpc, ABX__CONNECT_INVALID_ARGUMENT,
			      "cannot watch path on network filesystem: %s", path);
	return !rpc->is_done;
}

/* ---- starting ---- */

/* Until the watcher is somebody else's, it ends with the call. */
static void on_gone(abx__rpc *rpc)
{
	abx__watcher_remove(rpc->data);
	rpc->data = NULL;
}

static void start_watcher(abx__rpc *rpc, const Filesystem__WatchDirRequest *request,
			  const abx__watcher_ops *ops)
{
	ABX_CLEANUP(abx__freep) char *path = abx__fs_rpc_resolve(rpc, request->path);
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__watcher *watcher = NULL;

	if (!path || !may_watch(rpc, path, request->allow_network_mounts))
		return;
	if (abx__watcher_new(&rpc->envd->watches, path, request->recursive,
			     request->include_entry, ops, rpc, &watcher, &err) < 0) {
		abx__rpc_fail_error(rpc, err);
		return;
	}
	rpc->data = watcher;
	rpc->on_gone = on_gone;
}

/* ---- WatchDir ---- */

static void send_watch_start(abx__rpc *rpc)
{
	static const Filesystem__WatchDirResponse__KeepAlive alive =
		FILESYSTEM__WATCH_DIR_RESPONSE__KEEP_ALIVE__INIT;
	static const Filesystem__WatchDirResponse alive_msg = {
		.base = PROTOBUF_C_MESSAGE_INIT(
			&filesystem__watch_dir_response__descriptor),
		.event_case = FILESYSTEM__WATCH_DIR_RESPONSE__EVENT_KEEPALIVE,
		.keepalive = (Filesystem__WatchDirResponse__KeepAlive *)(uintptr_t)&alive,
	};
	Filesystem__WatchDirResponse__StartEvent start =
		FILESYSTEM__WATCH_DIR_RESPONSE__START_EVENT__INIT;
	Filesystem__WatchDirResponse msg = FILESYSTEM__WATCH_DIR_RESPONSE__INIT;

	msg.event_case = FILESYSTEM__WATCH_DIR_RESPONSE__EVENT_START;
	msg.start = &start;
	abx__rpc_send(rpc, &msg.base);
	abx__rpc_set_keepalive(rpc, &alive_msg.base);
}

static void on_stream_failed(abx__watcher *watcher)
{
	abx__rpc_fail(watcher->data, watcher->code, "%s", watcher->message);
}

static void on_stream_started(abx__watcher *watcher)
{
	if (watcher->code)
		on_stream_failed(watcher);
	else
		send_watch_start(watcher->data);
}

static void on_stream_event(abx__watcher *watcher, Filesystem__FilesystemEvent *event)
{
	abx__rpc *rpc = watcher->data;
	Filesystem__WatchDirResponse msg = FILESYSTEM__WATCH_DIR_RESPONSE__INIT;

	if (rpc->is_done || !rpc->req)
		return;
	if (abx__http_res_queued(rpc->req) > STREAM_MAX_QUEUED_BYTES) {
		abx__watcher_fail(watcher, ABX__CONNECT_DATA_LOSS,
				  "events were lost: the stream was read too slowly; "
				  "watch again");
		return;
	}
	msg.event_case = FILESYSTEM__WATCH_DIR_RESPONSE__EVENT_FILESYSTEM;
	msg.filesystem = event;
	abx__rpc_send(rpc, &msg.base);
}

static const abx__watcher_ops stream_ops = {
	.started = on_stream_started,
	.event = on_stream_event,
	.failed = on_stream_failed,
};

static void handle_watch_dir(abx__rpc *rpc)
{
	start_watcher(rpc, (Filesystem__WatchDirRequest *)rpc->in, &stream_ops);
}

/* ---- CreateWatcher and what follows ---- */

static void on_poll_started(abx__watcher *watcher)
{
	abx__rpc *rpc = watcher->data;
	Filesystem__CreateWatcherResponse msg = FILESYSTEM__CREATE_WATCHER_RESPONSE__INIT;
	abx__watch_poller *poller;

	if (watcher->code) {
		abx__rpc_fail(rpc, watcher->code, "%s", watcher->message);
		return;
	}
	/* Timed out meanwhile: on_gone() removes it. */
	poller = rpc->is_done ? NULL : abx__watch_poller_new(watcher);
	if (!poller) {
		watcher->data = NULL;
		abx__rpc_fail(rpc, ABX__CONNECT_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	rpc->data = NULL;
	rpc->on_gone = NULL;
	msg.watcher_id = poller->id;
	abx__rpc_reply(rpc, &msg.base);
}

static void on_poll_event(abx__watcher *watcher, Filesystem__FilesystemEvent *event)
{
	if (watcher->data)
		abx__watch_poller_add(watcher->data, event);
}

/* The next question is answered with it. */
static void on_poll_failed(abx__watcher *watcher)
{
	if (watcher->data)
		abx__watch_poller_clear(watcher->data);
}

static const abx__watcher_ops poll_ops = {
	.started = on_poll_started,
	.event = on_poll_event,
	.failed = on_poll_failed,
};

static void handle_create_watcher(abx__rpc *rpc)
{
	const Filesystem__CreateWatcherRequest *in =
		(Filesystem__CreateWatcherRequest *)rpc->in;
	Filesystem__WatchDirRequest request = FILESYSTEM__WATCH_DIR_REQUEST__INIT;

	request.path = in->path;
	request.recursive = in->recursive;
	request.include_entry = in->include_entry;
	request.allow_network_mounts = in->allow_network_mounts;
	start_watcher(rpc, &request, &poll_ops);
}

static abx__watch_poller *find_poller(abx__rpc *rpc, const char *id)
{
	abx__watch_poller *poller = abx__watch_poller_find(&rpc->envd->watches, id);

	if (!poller)
		abx__rpc_fail(rpc, ABX__CONNECT_NOT_FOUND,
			      "watcher with id %.64s not found", id);
	return poller;
}

static void reply_events(void *userdata)
{
	abx__rpc *rpc = userdata;
	abx__watch_poller *poller = find_poller(
		rpc, ((Filesystem__GetWatcherEventsRequest *)rpc->in)->watcher_id);
	Filesystem__GetWatcherEventsResponse msg =
		FILESYSTEM__GET_WATCHER_EVENTS_RESPONSE__INIT;

	if (poller && poller->watcher->code) {
		abx__rpc_fail(rpc, poller->watcher->code, "%s", poller->watcher->message);
	} else if (poller && !rpc->is_done) {
		msg.events = poller->events;
		msg.n_events = poller->count;
		abx__rpc_reply(rpc, &msg.base);
		abx__watch_poller_clear(poller);
	}
	abx__rpc_unref(rpc);
}

/* What was done before the question belongs into the answer. */
static void handle_get_events(abx__rpc *rpc)
{
	if (abx__watches_when_drained(&rpc->envd->watches, reply_events,
				      abx__rpc_ref(rpc)) == ABX_OK)
		return;
	abx__rpc_fail(rpc, ABX__CONNECT_RESOURCE_EXHAUSTED, "out of memory");
	abx__rpc_unref(rpc);
}

static void handle_remove_watcher(abx__rpc *rpc)
{
	abx__watch_poller *poller = find_poller(
		rpc, ((Filesystem__RemoveWatcherRequest *)rpc->in)->watcher_id);
	Filesystem__RemoveWatcherResponse msg = FILESYSTEM__REMOVE_WATCHER_RESPONSE__INIT;

	if (!poller)
		return;
	abx__watch_poller_free(poller);
	abx__rpc_reply(rpc, &msg.base);
}

#define METHOD(name, stream, type, fn)                                   \
	{                                                                \
		.path = "/filesystem.Filesystem/" name, .kind = stream,  \
		.input = &filesystem__##type##__descriptor, .handle = fn \
	}

const abx__rpc_method abx__watch_methods[] = {
	METHOD("WatchDir", ABX__RPC_SERVER_STREAM, watch_dir_request, handle_watch_dir),
	METHOD("CreateWatcher", ABX__RPC_UNARY, create_watcher_request,
	       handle_create_watcher),
	METHOD("GetWatcherEvents", ABX__RPC_UNARY, get_watcher_events_request,
	       handle_get_events),
	METHOD("RemoveWatcher", ABX__RPC_UNARY, remove_watcher_request,
	       handle_remove_watcher),
	{ 0 },
};
