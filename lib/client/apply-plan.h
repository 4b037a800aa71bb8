/*
 * apply-plan.h - an apply under way: its documents, and the writes they come to.
 */
#ifndef ABX_CLIENT_APPLY_PLAN_H
#define ABX_CLIENT_APPLY_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include <agentbox/agentbox.h>
#include <json-c/json.h>

/* One write. */
struct step {
	const char *kind;
	char *name;
	size_t document; /* from 1 */
	const char *method;
	char *path; /* behind /v1 */
	json_object *body;
	char *item_path;    /* where the object is when it exists; NULL: not known */
	bool drop_replicas; /* on update: a group's autoscaler has them */
};

enum phase { ASK_CLUSTERS, ASK_WHOAMI, WRITE, READ, REPLACE };

/* The state of an operation. */
struct apply {
	int mode;
	char *resource;
	char *source;
	json_object *documents;
	enum phase phase;
	char *cluster;
	char *namespace_;
	struct step *steps;
	size_t count, size, at;
	json_object *done; /* the result array */
};

/* `documents` of JSON or YAML text; each is an object. ABX_EINVAL, ABX_ETOOBIG,
 * ABX_ENOMEM, with `source` before the message. */
int abx__apply_parse(struct apply *apply, const char *text, size_t len,
		     abx_error **reterr);
/* Is there a manifest among them? Then `cluster` is needed for the plan. */
bool abx__apply_has_objects(json_object *documents);
/* All `steps`. ABX_EINVAL, ABX_EUNSUPPORTED, ABX_ENOMEM naming the document. */
int abx__apply_plan(struct apply *apply, abx_error **reterr);
/* Puts which document it is before the error; gives `r` back. */
int abx__apply_in_document(struct apply *apply, size_t number, int r, abx_error **reterr);

#endif
