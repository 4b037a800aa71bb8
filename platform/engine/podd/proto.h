/*
 * proto.h - what agentboxd and agentbox-podd say to each other over a SOCK_SEQPACKET Unix
 * socket.
 *
 * One message is one packet: this header, then a JSON object (may be empty), and at most
 * one descriptor. agentboxd asks, podd answers with the same `seq` (RE); events have seq
 * 0. `r` is ABX_OK or a negative ABX_E...; an error's JSON is {"message": TEXT}. Both
 * ends are of one release, so a wrong version ends the connection.
 *
 * HELLO {} -> {"tag", "network", "userns", "classes": [NAME...]}, then a POD event for
 * every Pod, then SYNCED
 *
 * CREATE {ns, name, template, image, generation, readiness?} -> {}
 *
 * SWAP {ns, name, image, generation, restart, keep} -> {}; generation must grow; keep: on
 * the file system of the one before
 *
 * DELETE {ns, name} -> {}; GONE follows
 *
 * CONNECT {ns, name, port} -> {} with the connected socket
 *
 * ACTIVITY {ns, name, activity: "run", "freeze" or "stop"} -> {}; POD says when it is so
 *
 * SNAPSHOT {ns, name, id} -> {}; SNAPSHOT_DONE follows, and it is an image: snapshot:ID
 *
 * SNAPSHOT_DELETE {id} -> {}, also when there is none; what runs from it runs on
 *
 * STATS {ns, name} -> {cpu_ns, memory, cache, memory_total, disk_used, disk_total}
 *
 * LOG {ns, name} -> {} with the log opened to be read
 *
 * Events: POD {ns, name, generation, image, running_generation, running_image, phase,
 * ready, reason, message, exit_code, activity}; GONE {ns, name}; SYNCED {}; SNAPSHOT_DONE
 * {id, r, bytes, message}
 */
#ifndef ABX_ENGINE_PODD_PROTO_H
#define ABX_ENGINE_PODD_PROTO_H

#include <stdint.h>

#define ABX__PODD_VERSION 1
#define ABX__PODD_MESSAGE_MAX ((size_t)128 << 10)

enum abx__podd_type {
	ABX__PODD_HELLO = 1,
	ABX__PODD_CREATE,
	ABX__PODD_SWAP,
	ABX__PODD_DELETE,
	ABX__PODD_CONNECT,
	ABX__PODD_ACTIVITY,
	ABX__PODD_SNAPSHOT,
	ABX__PODD_SNAPSHOT_DELETE,
	ABX__PODD_STATS,
	ABX__PODD_LOG,
	ABX__PODD_REQUEST_LAST = ABX__PODD_LOG,

	ABX__PODD_RE = 32,
	ABX__PODD_POD,
	ABX__PODD_GONE,
	ABX__PODD_SYNCED,
	ABX__PODD_SNAPSHOT_DONE,
	ABX__PODD_EVENT_LAST = ABX__PODD_SNAPSHOT_DONE,
};

/* An image that podd made of a Pod: only control/ may ask for one. */
#define ABX__SNAPSHOT_SCHEME "snapshot:"
#define ABX__SNAPSHOT_ID_MAX 40

struct abx__podd_header {
	uint16_t version;
	uint16_t type;
	int32_t r;
	uint64_t seq;
};

#endif
