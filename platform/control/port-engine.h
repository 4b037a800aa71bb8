/*
 * port-engine.h - what control/ needs of something that runs Pods. Owned by control/;
 * filled by platform/engine/{local,kubernetes,fake}. Its suite,
 * tests/engine/suite-engine.c, is written against this header alone and runs against
 * every filling.
 *
 * The shape is the Kubernetes one on purpose: a Pod is a document with labels,
 * annotations and a main image, and every change of it is one conditional write. The
 * local engine persists that document through the store port and carries the image out
 * with podd; the Kubernetes engine patches the API server.
 *
 * Calls never block: each completes once, later, on the loop's thread, through `done`.
 * `err` is borrowed for the call of `done`. Strings of a Pod view live until the callback
 * returns.
 */
#ifndef ABX_CONTROL_PORT_ENGINE_H
#define ABX_CONTROL_PORT_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <json-c/json.h>

#include "base/map.h"

/* Written by control/ at create_pod from runtimes[].readinessProbe: JSON {"port": 49983,
   "path": "/health"}, and those of initialDelaySeconds, timeoutSeconds, periodSeconds,
   successThreshold, failureThreshold that the probe gives, as Kubernetes means them. A
   status of 200 to 399 is ready. */
#define ABX__POD_READINESS_ANNOTATION "agentbox.navix.sh/readiness"

/* What the engine sees of a Pod. Grows at the end. */
enum abx__pod_phase {
	ABX__POD_PENDING, /* accepted, not all containers run yet */
	ABX__POD_RUNNING, /* main container runs `running_image` */
	ABX__POD_FAILED,  /* will not run without a change; see reason, message */
	ABX__POD_GONE,    /* last event of a deleted Pod: nothing of it is left */
};

/* What a Pod's main container is to do, and does. A frozen one keeps its memory: every
   process of the Pod stands still until it is thawed. A stopped one is ended; its file
   system stays. Other images and restarts make it run. */
enum abx__pod_activity {
	ABX__POD_AS_IT_IS, /* of a change: no wish */
	ABX__POD_RUN,
	ABX__POD_FREEZE,
	ABX__POD_STOP,
};

typedef struct abx__pod {
	const char *namespace_;
	const char *name;
	uint64_t version;   /* changes with every write; for conditional writes */
	int64_t created_ms; /* wall clock */
	abx__map
		labels; /* agentbox.navix.sh/... keys are control's (crds.md section 4) */
	abx__map annotations;
	const char *image;         /* what should run */
	const char *running_image; /* what runs; "" while none does */
	uint64_t generation; /* goes up with every (re)start of the main container asked
				for */
	uint64_t running_generation; /* the generation that runs; ready counts for this
					one */
	enum abx__pod_phase phase;
	bool ready; /* the template's readiness probe has passed for running_generation */
	const char *
		reason; /* e.g. "ErrImagePull", "StartError", "OOMKilled"; "" when fine */
	const char *message; /* names the object; for people */
	int exit_code; /* of the main container's last end; -1 when none or by signal */
	bool deleting; /* a delete was accepted: GONE follows */
	/* What is so, which follows what was asked for: FREEZE once nothing of the Pod
	   runs any more, STOP once its container has ended; RUN in between. */
	enum abx__pod_activity activity;
} abx__pod;

typedef void (*abx__pod_done)(void *userdata, int r, const abx__pod *pod,
			      const abx_error *err);
typedef void (*abx__engine_done)(void *userdata, int r, const abx_error *err);
typedef void (*abx__snapshot_done)(void *userdata, int r, int64_t bytes,
				   const abx_error *err);
typedef void (*abx__fd_done)(void *userdata, int r, int fd, const abx_error *err);

/* A change of one Pod in one conditional write. NULL and false leave things as they are.
 */
typedef struct abx__pod_change {
	uint64_t expect_version; /* 0: whatever it is; else ABX_ECONFLICT when it moved on
				  */
	const abx__map *set_labels;
	const abx__map *set_annotations;
	const char *const *remove_labels;      /* NULL-terminated */
	const char *const *remove_annotations; /* NULL-terminated */
	const char *image; /* another main image: the container is swapped in place */
	bool restart; /* destroy the main container and its upper layer and make it anew,
			 also when the image stays */
	/* Durable with the write; the outcome arrives as an event. RUN of a stopped Pod
	   starts its main container anew, a generation further, on the file system it
	   left; init containers do not run again. Ignored beside a restart or another
	   image. */
	enum abx__pod_activity activity;
} abx__pod_change;

/* The image a snapshot is: this and its id. Nobody but control/ may name one. */
#define ABX__POD_SNAPSHOT_SCHEME "snapshot:"

/* What a Pod uses. */
typedef struct abx__pod_stats {
	uint64_t
		cpu_ns; /* of all its processes so far; only its growth means something */
	uint64_t memory_bytes, memory_cache; /* without, and in, the page cache */
	uint64_t memory_total;               /* the limit, or what the machine has */
	uint64_t disk_used, disk_total;      /* of what its root lies on */
} abx__pod_stats;
typedef void (*abx__stats_done)(void *userdata, int r, const abx__pod_stats *stats,
				const abx_error *err);

typedef struct abx__engine abx__engine;
typedef struct abx__engine_ops {
	const char *name; /* "local", "kubernetes", "fake" */

	/* Can this engine honour such a Pod template (spec.template of a
	   SandboxTemplate)? Synchronous, pure. ABX_EUNSUPPORTED naming the field (and its
	   value, such as the runtimeClassName), or ABX_EINVAL. */
	int (*check_template)(abx__engine *engine, json_object *pod_template,
			      abx_error **reterr);

	/* Starts reporting: `on_pod` is called for every Pod that exists (adoption after
	   a restart), then `on_synced` once, then `on_pod` for every change,
	   ABX__POD_GONE last. Called once, first. */
	void (*start)(abx__engine *engine,
		      void (*on_pod)(void *userdata, const abx__pod *pod),
		      void (*on_synced)(void *userdata, int r, const abx_error *err),
		      void *userdata);

	/* Accepts a Pod; completes when it is durable, not when it runs. `pod_template`
	   is materialised: the main image, volumes and init containers are final. The
	   readiness probe travels as the annotation ABX__POD_READINESS_ANNOTATION;
	   without it a Pod is ready as soon as its main container runs. ABX_EEXISTS,
	   ABX_EINVAL, ABX_EUNSUPPORTED. */
	void (*create_pod)(abx__engine *engine, const char *namespace_, const char *name,
			   const abx__map *labels, const abx__map *annotations,
			   json_object *pod_template, abx__pod_done done, void *userdata);

	/* One durable conditional write; completes when it is durable. A swap's outcome
	   arrives as events (running_generation, ready, or reason). ABX_ENOTFOUND,
	   ABX_ECONFLICT. */
	void (*change_pod)(abx__engine *engine, const char *namespace_, const char *name,
			   const abx__pod_change *change, abx__pod_done done,
			   void *userdata);

	/* Removes a Pod and all of it. Completes when accepted; GONE follows. Absent is
	 * ABX_ENOTFOUND. */
	void (*delete_pod)(abx__engine *engine, const char *namespace_, const char *name,
			   abx__engine_done done, void *userdata);

	/* A connected stream socket to port of 127.0.0.1, or of ::1 when that refuses,
	   inside the Pod's network namespace. The caller owns the fd (non-blocking,
	   close-on-exec). ABX_EUNAVAILABLE: nothing listens there. Any phase. */
	void (*connect_pod)(abx__engine *engine, const char *namespace_, const char *name,
			    uint16_t port, abx__fd_done done, void *userdata);

	/* The files of a Pod's main container become the image "snapshot:ID" ([a-z0-9],
	   at most 40). The Pod stands still while they are copied and then goes on; its
	   volumes and its memory are not in it. Completes when it is durable, with what
	   was copied. ABX_ENOTFOUND; ABX_ECONFLICT: it does not run, or one is being made
	   of it; ABX_EEXISTS; ABX_ETOOBIG; ABX_EUNAVAILABLE. */
	void (*snapshot_pod)(abx__engine *engine, const char *namespace_,
			     const char *name, const char *id, abx__snapshot_done done,
			     void *userdata);
	/* No Pod is started from it any more; what runs from it runs on. Absent is fine.
	 */
	void (*delete_snapshot)(abx__engine *engine, const char *id,
				abx__engine_done done, void *userdata);

	/* What the Pod uses now; cheap. ABX_ENOTFOUND, ABX_EUNAVAILABLE. */
	void (*stat_pod)(abx__engine *engine, const char *namespace_, const char *name,
			 abx__stats_done done, void *userdata);

	/* A descriptor to read to its end: what the main container has written since it
	   was last started, at most a MiB of it, and nothing of a container before.
	   ABX_ENOTFOUND also when nothing was written yet. */
	void (*open_log)(abx__engine *engine, const char *namespace_, const char *name,
			 abx__fd_done done, void *userdata);

	/* Everything given back; Pods go on running. `done` once nothing is left to
	 * complete. */
	void (*close)(abx__engine *engine, void (*done)(void *userdata), void *userdata);
} abx__engine_ops;

struct abx__engine {
	const abx__engine_ops *ops;
	/* a filling's own struct starts with this one */
};

#endif
