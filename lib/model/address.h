/*
 * address.h - what a caller may write to say where a sandbox comes from,
 * `[CLUSTER::]NAME[//IMAGE]`, and the spellings of a sandbox id.
 */
#ifndef ABX_MODEL_ADDRESS_H
#define ABX_MODEL_ADDRESS_H

#include <stdbool.h>

#include <agentbox/error.h>

#include "base/cleanup.h"
#include "base/id.h"

typedef struct abx__address {
	char *cluster; /* NULL when not written */
	char *name;    /* an Env, or with a cluster also a pool */
	char *image;   /* NULL when not written */
} abx__address;

/* `//` is cut first, then `::`; parts are trimmed. ABX_EINVAL names the part that is
 * wrong. */
int abx__address_parse(const char *s, abx__address *ret, abx_error **reterr);
void abx__address_done(abx__address *address);
/* The same without blanks; NULL when out of memory. */
char *abx__address_print(const abx__address *address);

#define ABX__CLEANUP_ADDRESS ABX_CLEANUP(abx__address_done)
#define ABX__CLUSTER_ID_SIZE 64

typedef struct abx__sandbox_name {
	char id[ABX__SANDBOX_ID_LEN + 1];
	char cluster[ABX__CLUSTER_ID_SIZE]; /* "" when not written */
} abx__sandbox_name;

bool abx__sandbox_id_is_valid(
	const char *s); /* the bare id: 20 of [a-z0-9], a letter first */
/* ID, CLUSTER.ID or ID-CLUSTER. ABX_EINVAL. Allocates nothing but the error. */
int abx__sandbox_name_parse(const char *s, abx__sandbox_name *ret, abx_error **reterr);
/* ID-CLUSTER, or ID without a cluster: what fits a host name. */
void abx__sandbox_name_print(const abx__sandbox_name *name,
			     char out[ABX__SANDBOX_ID_LEN + 1 + ABX__CLUSTER_ID_SIZE]);

#endif
