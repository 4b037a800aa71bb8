/*
 * podd.h - what the stages of agentbox-podd share.
 *
 * One process, one thread, one loop. podd keeps no secret and little memory, so that a
 * fork is cheap. Whatever may block or touches foreign bytes (images, mounts, trees to
 * delete) happens in a child. A Pod is driven by abx__pod_step(), which looks at what is
 * and does the next thing towards what should be; every event ends in it.
 */
#ifndef ABX_ENGINE_PODD_PODD_H
#define ABX_ENGINE_PODD_PODD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <uthash.h>
#include <uv.h>

#include "base/log.h"
#include "engine/podd/proto.h"
#include "engine/podd/readiness.h"
#include "engine/podd/spec.h"

#define ABX__POD_KEY_SIZE 136
#define ABX__ID_RANGE 65536u
#define ABX__ORPHAN_MAX 128

struct podd;
struct pod;
struct snapshot_job;

/* ---- children (child.c) ---- */

/* A child process and what to do when it ends. `status` as of waitpid(2). */
struct child {
	pid_t pid;
	void (*on_exit)(struct child *child, int status);
	void *owner;
	UT_hash_handle hh;
};

void abx__child_add(struct podd *podd, struct child *child);
/* The status of a child nobody was waiting for yet; false when there was none. Asked
 * once. */
bool abx__child_orphan(struct podd *podd, pid_t pid, int *ret_status);
void abx__child_note_orphan(struct podd *podd, pid_t pid, int status);
void abx__child_forget(struct podd *podd, struct child *child);
/* fork(2) with signals and the parent's death handled: in the child 0 is returned, and it
 * dies with podd. */
pid_t abx__child_fork(void);
/* The same, and in this cgroup (v2) from the start; -1: none. Where the kernel does not
 * do that it is a plain fork, and *ret_inside false on both sides. */
pid_t abx__child_fork_into(int cgroup_fd, bool *ret_inside);

/* ---- images (image*.c) ---- */

#define ABX__IMAGE_LAYER_MAX 256

/* An image that is unpacked. Immutable; shared by reference count. */
struct image {
	unsigned refs;
	char *reference;
	bool host_usr; /* the host's /usr lies over usr/ */
	bool is_idle;  /* a placeholder: it serves nothing, so running is ready */
	char **layers; /* folder names below layers/, the lowest first; NULL-terminated */
	char **entrypoint, **cmd, **env; /* NULL-terminated or NULL */
	char *user, *working_dir;
};

enum image_state { IMAGE_READY, IMAGE_WORKING, IMAGE_FAILED };

/* READY fills *ret (borrowed); FAILED fills reason and message (borrowed); WORKING: Pods
 * are stepped when it ends. */
enum image_state abx__image_want(struct podd *podd, const char *reference,
				 bool pull_always, bool pull_never, int64_t since_ms,
				 struct image **ret, const char **ret_reason,
				 const char **ret_message);
struct image *abx__image_ref(struct image *image);
void abx__image_unref(struct image *image);
int abx__images_open(struct podd *podd, abx_error **reterr);
void abx__images_close(struct podd *podd);

/* What an image's file says, both ways; NULL when out of memory, or when it does not hold
 * together. */
struct image *abx__image_from_json(struct podd *podd, const char *reference,
				   json_object *o);
json_object *abx__image_to_json(const struct image *image);
/* A snapshot that is gone. */
void abx__image_forget(struct podd *podd, const char *snapshot_id);

/* ---- snapshots (snapshot.c) ---- */

int abx__snapshots_open(struct podd *podd);
bool abx__snapshot_id_is_valid(const char *id);
/* NULL when the reference is none of a snapshot. */
const char *abx__snapshot_id_of(const char *reference);
/* The image it is; NULL when there is none. A new reference. */
json_object *abx__snapshot_read(struct podd *podd, const char *id);
/* Begins one; abx__server_snapshot() says how it ended. ABX_ECONFLICT: the Pod does not
 * run, or is being snapshotted. */
int abx__pod_snapshot(struct pod *pod, const char *id, abx_error **reterr);
/* From freeze.c: nothing of the Pod runs. */
void abx__snapshot_frozen(struct pod *pod);
/* The Pod does not wait for it: its container ends. */
void abx__snapshot_abort(struct pod *pod);
int abx__snapshot_delete(struct podd *podd, const char *id);
/* Those that were deleted and are not used any more. */
void abx__snapshots_sweep(struct podd *podd);

/* ---- cgroups (cgroup.c) ---- */

#define ABX__CGROUP_MAX 8

struct cgroups {
	bool v2;
	struct {
		char *base; /* .../agentbox-<tag> */
		bool cpu, cpuacct, memory, pids, freezer;
		bool processes; /* the one to list and kill by */
	} at[ABX__CGROUP_MAX];
	size_t count;
};

int abx__cgroups_open(struct podd *podd, abx_error **reterr);
/* The same below another root than /sys/fs/cgroup; `mountinfo` is taken apart. */
int abx__cgroups_open_at(struct podd *podd, const char *root, char *mountinfo,
			 abx_error **reterr);
void abx__cgroups_close(struct podd *podd);
int abx__cgroup_make(struct podd *podd, const char *key, const abx__spec_container *c,
		     abx_error **reterr);
int abx__cgroup_enter(struct podd *podd, const char *key); /* the calling process */
/* For abx__child_fork_into(); -1 on v1. */
int abx__cgroup_open(struct podd *podd, const char *key);
/* The kernel's own pace: see abx__cgroup_is_frozen(). */
void abx__cgroup_freeze(struct podd *podd, const char *key, bool frozen);
bool abx__cgroup_is_frozen(struct podd *podd, const char *key);
bool abx__cgroups_can_freeze(const struct podd *podd);
/* Frozen processes too. */
void abx__cgroup_kill(struct podd *podd, const char *key);
bool abx__cgroup_is_empty(struct podd *podd, const char *key);
void abx__cgroup_remove(struct podd *podd, const char *key);
void abx__cgroup_sweep(struct podd *podd); /* those no Pod claims */
uint64_t abx__cgroup_oom_kills(struct podd *podd, const char *key);
/* The text of a file of the Pod's group, where memory (else CPU time) is counted; NULL.
 * Free with abx__free(). */
char *abx__cgroup_read(struct podd *podd, const char *key, bool memory, const char *v2,
		       const char *v1);

/* ---- network (net.c, netlink.c, nft.c) ---- */

struct net {
	bool enabled;
	uint32_t base; /* host order, of a /19 */
	uint32_t mtu;
	char prefix[8]; /* "ab<tag>" */
	char resolv[1024];
};

int abx__net_open(struct podd *podd, abx_error **reterr);
void abx__net_sweep(struct podd *podd);
/* Sets the rules again when somebody removed them; a child looks. */
void abx__net_check_rules(struct podd *podd);
void abx__net_purge(struct podd *podd);
/* In a child: makes the Pod's namespaces and its link; fills the descriptors. userns_fd
 * is -1 without one. */
int abx__net_make(struct podd *podd, uint32_t n, bool userns, int *ret_userns,
		  int *ret_netns, abx_error **reterr);
void abx__net_remove(struct podd *podd, uint32_t n);
/* In a child of its own, both. */
int abx__nft_apply(const char *commands, char *err, size_t err_size);
/* The first chain of anyone's that drops what the host forwards, as "ip filter FORWARD";
 * "" when none does. */
int abx__nft_forward_drop(const char *unused, char *ret, size_t size);
uint32_t abx__net_id_base(const struct podd *podd, uint32_t n);

/* ---- one container (container.c, start.c, oci.c) ---- */

enum container_state { CONTAINER_STARTING, CONTAINER_RUNNING };

struct container {
	struct pod *pod;
	const abx__spec_container *spec;
	struct image *image;
	char *image_name;
	uint64_t generation;
	bool is_init;
	bool is_idle; /* no probe: see struct image */
	bool ending;
	bool handled; /* among the Pod's dying: its end is of no further interest */
	enum container_state state;
	char dir[64]; /* below the Pod's folder */
	int gate;     /* write end: a byte lets the starter go on; -1 once opened */
	int said_fd, pid_fd; /* of the starter, see struct start_plan; -1 afterwards */
	struct child starter;
	struct child init;
	int pidfd;
	uint64_t start_time;
	uint64_t oom_before;
	bool init_reaped;
	int init_status; /* -1: unknown */
	uv_poll_t poll;
	bool poll_open;
	uv_timer_t timer;
	unsigned closing;
	struct container *next; /* of the Pod's dying ones */
};

int abx__container_start(struct pod *pod, const abx__spec_container *spec,
			 struct image *image, const char *image_name, bool is_init,
			 bool gate_open, struct container **ret, abx_error **reterr);
int abx__container_adopt(struct pod *pod, pid_t pid, uint64_t start_time, const char *dir,
			 const char *image_name, uint64_t generation,
			 struct container **ret);
void abx__container_open_gate(struct container *c);
void abx__container_end(
	struct container *c); /* asynchronous; abx__pod_container_ended() follows */
uint64_t abx__proc_start_time(pid_t pid);

/* What a Pod's containers find in /etc, and who owns it. */
struct upper {
	const char *hostname;
	uint32_t id_base; /* 0 when privileged */
	uint32_t address; /* host order; 0: loopback only */
	const char *resolv;
};

struct start_plan {
	struct podd *podd;
	const char *pod_key;
	const char *hostname;
	struct upper upper;
	const char *dir; /* of the container */
	const abx__spec *pod_spec;
	const abx__spec_container *spec;
	const struct image *image;
	const char *image_name;
	int userns_fd, netns_fd;
	uint32_t id_base; /* 0 when privileged */
	int gate;         /* read end, -1: open */
	bool in_cgroup;   /* from the start */
	int said_fd;      /* memory: what the starter or crun has to say */
	int pid_fd;       /* memory: the container's first process, from crun */
	bool kept; /* `dir` is an earlier container's: its files are as it left them */
	bool made; /* `dir` has its upper layer */
	const char *crun;
	int crun_fd; /* the same, sealed; -1: none */
};

/* In the child: mounts, config.json, exec of crun. Returns only on failure, having said
 * why in the container's log. */
int abx__start_run(const struct start_plan *plan);
/* The config.json of a container whose root is mounted at `root_fd`. */
int abx__oci_config(const struct start_plan *plan, int root_fd, char **ret,
		    abx_error **reterr);
/* Loads the engines' default profile and compiles it: base64 of the BPF program. */
int abx__seccomp_load(const char *profile_path, char **ret_base64, abx_error **reterr);

/* A descriptor of podd's own to run crun from (crun.c); -1: run it by path. */
int abx__crun_sealed(struct podd *podd);

/* ---- containers' folders (spare.c) ---- */

/* up/ with etc/{hosts,hostname,resolv.conf}, and wk/, in an empty folder. */
int abx__upper_make(int dir_fd, const struct upper *u);
struct upper abx__upper_of(const struct pod *pod);
/* The Pod's spare folder becomes `path`; false when there is none. */
bool abx__spare_take(struct pod *pod, const char *path);
void abx__spares_make(struct podd *podd); /* in a child */

/* ---- Pods (pod.c, pod-net.c, pod-request.c, folder.c, probe.c) ---- */

enum pod_activity { POD_RUN, POD_FREEZE, POD_STOP };

struct pod {
	struct podd *podd;
	char key[ABX__POD_KEY_SIZE]; /* ns_name */
	char *ns, *name;
	uint64_t seq; /* its own: not even an earlier Pod of this name had it */
	uint32_t n;   /* address, uid range */
	json_object *template_json;
	abx__spec *spec;
	abx__readiness readiness;
	int64_t since_ms; /* of the latest request, for images pulled always */

	char *image; /* wanted */
	uint64_t generation;
	bool wipe; /* volumes main may write to are to be emptied before the next start */
	bool deleting;
	enum pod_activity activity;    /* wanted */
	enum pod_activity shown;       /* and reached */
	bool freezing;                 /* asked of the kernel, not there yet */
	bool frozen;                   /* there: for its activity, or for a snapshot */
	struct snapshot_job *snapshot; /* that the Pod stands still for */
	char kept[64]; /* a container's folder the next start goes on with; "": none */

	int userns_fd, netns_fd;
	bool has_net;
	struct child net_job;
	int net_job_fd;

	size_t init_next;
	struct container *container;
	struct container *dying;

	/* what is reported */
	char *running_image;
	uint64_t running_generation;
	bool ready;
	uint64_t failed_generation;
	char *reason, *message;
	int exit_code;

	struct probe *probe;
	UT_hash_handle hh;
};

int abx__pod_create(struct podd *podd, json_object *request, abx_error **reterr);
int abx__pod_swap(struct podd *podd, struct pod *pod, json_object *request,
		  abx_error **reterr);
void abx__pod_delete(struct pod *pod);
void abx__pod_step(struct pod *pod);
void abx__pods_step(struct podd *podd);
bool abx__pod_name_is_valid(const char *name); /* [a-z0-9-], at most 63 */
/* A child makes its namespaces and its link; a step follows. */
void abx__pod_make_net(struct pod *pod);
void abx__pod_close_net(struct pod *pod);
struct pod *abx__pod_find(struct podd *podd, const char *ns, const char *name);
struct pod *abx__pod_alloc(struct podd *podd, const char *ns, const char *name);
void abx__pod_free(struct pod *pod);
json_object *abx__pod_view(const struct pod *pod);
int abx__pod_connect(struct pod *pod, uint16_t port, int *ret_fd, bool *ret_pending,
		     abx_error **reterr);
/* Ends its main container; what comes of it is a step. */
void abx__pod_end_main(struct pod *pod);
/* freeze.c: what its main container is to do. */
const char *abx__pod_activity_name(enum pod_activity activity);
int abx__pod_activity_parse(const char *name, enum pod_activity *ret);
int abx__pod_set_activity(struct pod *pod, const char *name, abx_error **reterr);
/* Part of a step: true when nothing is to be started. */
bool abx__pod_rests(struct pod *pod);
void abx__pod_thaw(struct pod *pod);
/* The next start goes on with the files of the container that runs, or of the one kept
 * already; or with nobody's. */
void abx__pod_keep_for_next(struct pod *pod);
void abx__pod_drop_kept(struct pod *pod);
/* Makes a container's folder fit for another container. */
void abx__folder_reuse(struct podd *podd, const char *path);
/* From container.c. `status` as of waitpid(2), -1 unknown. */
void abx__pod_container_running(struct container *c);
void abx__pod_container_ended(struct container *c, const char *start_error, int status);
void abx__pod_fail(struct pod *pod, const char *reason, const char *message);

int abx__folder_save_pod(struct pod *pod);
int abx__folder_save_run(struct pod *pod, const struct container *c);
void abx__folder_adopt(struct podd *podd);
void abx__folder_trash(struct podd *podd,
		       const char *path); /* below the state folder; deleted in a child */
/* What lies in a folder, and not the folder: making it again would need a block, which a
 * full disk has not. */
void abx__folder_trash_entries(struct podd *podd, const char *folder);
void abx__folder_trash_kick(struct podd *podd); /* empties it, and makes spares */
void abx__folder_trash_soon(struct podd *podd); /* the same, in a moment */
void abx__folder_sweep(struct podd *podd);
int abx__folder_make_volumes(struct pod *pod, abx_error **reterr);

/* Is its main container one to ask? */
bool abx__probe_is_due(const struct pod *pod);
void abx__probe_start(struct pod *pod);
void abx__probe_stop(struct pod *pod);
int abx__probes_open(struct podd *podd);
void abx__probes_close(struct podd *podd);

/* ---- what a Pod uses and says (stats.c) ---- */

/* {cpu_ns, memory, cache, memory_total, disk_used, disk_total}; NULL: out of memory. */
json_object *abx__pod_stats_json(struct pod *pod);
/* The log, opened to be read; ABX_ENOTFOUND: nothing was written yet. */
int abx__pod_open_log(struct pod *pod, abx_error **reterr);

/* ---- the server (server.c) ---- */

struct client;
int abx__server_open(struct podd *podd, abx_error **reterr);
void abx__server_close(struct podd *podd);
void abx__server_pod(struct podd *podd, const struct pod *pod); /* tells everyone */
void abx__server_snapshot(struct podd *podd, const char *id, int r, uint64_t bytes,
			  const char *message);
void abx__server_gone(struct podd *podd, const char *ns, const char *name);

/* ---- the whole (podd.c) ---- */

#define ABX__PODD_CLASS_MAX 8
#define ABX__PODD_IMAGE_DIR_MAX 8

struct podd_options {
	const char *state_dir, *socket_path, *runtime_dir, *alias_file, *seccomp_profile,
		*crun;
	const char *image_dirs[ABX__PODD_IMAGE_DIR_MAX];
	size_t image_dir_count;
	struct {
		const char *name, *crun;
	} classes[ABX__PODD_CLASS_MAX];
	size_t class_count;
	uid_t uid;
	gid_t gid;
	bool no_network;
	bool no_privileged;
	int ready_fd; /* "ready\n" is written there once requests are taken; -1: none */
	int log_level;
};

struct podd {
	struct podd_options options;
	const abx__log *log;
	uv_loop_t loop;
	char *dir; /* real path of STATE/podd */
	int dir_fd;
	char tag[5];
	int lock_fd; /* abstract socket: one podd a tag */
	bool userns; /* idmapped layers work on the state directory's file system */
	bool hybrid; /* /sys/fs/cgroup/unified is to be hidden from crun */
	char *seccomp;
	int crun_fd; /* see abx__crun_sealed() */
	struct stat crun_stat;
	struct cgroups cgroups;
	struct net net;
	struct child rules_job;
	struct pod *pods;
	struct child *children;
	struct {
		pid_t pid;
		int status;
	} orphans[ABX__ORPHAN_MAX];
	unsigned orphan_next;
	struct image_table *images;
	struct snapshot_job *snapshots; /* being made */
	uv_signal_t sig_child, sig_term, sig_int;
	uv_timer_t sweep, freeze_timer, trash_timer;
	uint64_t freeze_look_ms;
	struct server *server;
	struct probes *probes;
	struct child trash_job;
	bool trash_again;
	uint64_t trash_seq, container_seq;
	int host_netns_fd;
	bool stopping;
};

int abx__podd_run(const struct podd_options *options, const abx__log *log);
int abx__podd_purge(const struct podd_options *options, const abx__log *log);

/* ---- files (fs.c) ---- */

int abx__fs_write(int dir_fd, const char *path, const void *data, size_t len,
		  mode_t mode);
int abx__fs_replace(int dir_fd, const char *path, const void *data, size_t len,
		    mode_t mode);
/* A whole file below `cap` bytes; NULL on failure with errno set. Free with abx__free().
 */
char *abx__fs_read(int dir_fd, const char *path, size_t cap, size_t *ret_len);
/* The same, resolved inside `root_fd` as if it were "/". */
char *abx__fs_read_in_root(int root_fd, const char *path, size_t cap, size_t *ret_len);
int abx__fs_mkdir(int dir_fd, const char *path, mode_t mode,
		  uid_t owner); /* fine when it is there */
int abx__fs_open_in_root(int root_fd, const char *path, int flags);
int abx__fs_open_beneath(int root_fd, const char *path,
			 int flags); /* no symbolic link anywhere */
/* Removes everything below an open folder, however deep, with constant descriptors. */
int abx__fs_empty(int dir_fd);
int abx__fs_copy(int from_dir, const char *from, int to_dir, const char *to, mode_t mode);
json_object *abx__fs_read_json(int dir_fd, const char *path);
int abx__fs_replace_json(int dir_fd, const char *path, json_object *o);

#endif
