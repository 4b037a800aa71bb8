/*
 * spec.h - a Pod template turned into typed fields, or refused.
 *
 * The one place that knows which fields of a Pod template the local engine honours. Every
 * other field is an error that names its path: nothing is ignored. Pure: JSON in, struct
 * or error out; used by agentboxd (check_template) and again by podd, which trusts
 * nobody.
 */
#ifndef ABX_ENGINE_PODD_SPEC_H
#define ABX_ENGINE_PODD_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <json-c/json.h>

#define ABX__SPEC_INIT_MAX 16
#define ABX__SPEC_VOLUME_MAX 32
#define ABX__SPEC_MOUNT_MAX 32
#define ABX__SPEC_ARG_MAX 1024
#define ABX__SPEC_ENV_MAX 1024

typedef struct abx__spec_mount {
	char *volume;   /* index into volumes[] is found by name */
	char *path;     /* absolute and clean */
	char *sub_path; /* NULL, or relative and clean */
	bool read_only;
} abx__spec_mount;

typedef struct abx__spec_volume {
	char *name;
	bool memory;         /* a tmpfs of the container's memory */
	uint64_t size_bytes; /* of a memory volume; 0: half the memory limit is the
				kernel's business */
} abx__spec_volume;

/* An image's or a template's strings: NULL-terminated vector. */
typedef char **abx__spec_strv;

typedef struct abx__spec_container {
	char *name;
	char *image;
	bool pull_always;
	bool pull_never;
	abx__spec_strv command; /* NULL: the image's Entrypoint */
	abx__spec_strv args;    /* NULL: the image's Cmd, unless command is given */
	abx__spec_strv env;     /* "NAME=value", in order */
	char *working_dir;
	bool privileged;
	int64_t uid, gid;  /* -1: the image's User */
	int64_t cpu_milli; /* limit; 0: none */
	int64_t cpu_request_milli;
	uint64_t memory_bytes; /* limit; 0: none */
	abx__spec_mount mounts[ABX__SPEC_MOUNT_MAX];
	size_t mount_count;
} abx__spec_container;

typedef struct abx__spec {
	abx__spec_container init[ABX__SPEC_INIT_MAX];
	size_t init_count;
	abx__spec_container main;
	abx__spec_volume volumes[ABX__SPEC_VOLUME_MAX];
	size_t volume_count;
	char *runtime_class; /* NULL: none asked for */
	char *hostname;      /* NULL: the Pod's name */
	uint32_t grace_s;    /* between SIGTERM and SIGKILL; 0: SIGKILL at once */
} abx__spec;

/* `template_json` is {metadata?, spec}. ABX_EUNSUPPORTED or ABX_EINVAL naming the field's
 * path. */
int abx__spec_parse(json_object *template_json, abx__spec **ret, abx_error **reterr);
void abx__spec_free(abx__spec *spec);
const abx__spec_volume *abx__spec_find_volume(const abx__spec *spec, const char *name);
/* The main container's first mount of the volume (NULL: of any) that it may write to, or
 * NULL. */
const abx__spec_mount *abx__spec_main_writes(const abx__spec *spec, const char *volume);
void abx__spec_strv_free(abx__spec_strv v);

/* Kubernetes quantities: "500m", "2", "0.5" into thousandths; "2Gi", "1500M", "1e9" into
 * bytes. */
int abx__spec_parse_cpu(const char *s, int64_t *ret_milli);
int abx__spec_parse_bytes(const char *s, uint64_t *ret_bytes);
/* "$(NAME)" from `env` ("NAME=value" strings, the last one wins), "$$(" as "$("; unknown
 * names stay as they are. */
int abx__spec_expand(const char *s, char *const *env, char **ret);
/* Absolute, no "", "." or ".." component, no trailing slash. */
bool abx__spec_path_is_clean(const char *path);

#include "base/cleanup.h"
ABX_DEFINE_FREEP(abx__spec_freep, abx__spec, abx__spec_free)

#endif
