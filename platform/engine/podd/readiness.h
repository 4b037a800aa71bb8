/*
 * readiness.h - the question that says whether a Pod's main container is ready, as it
 * travels: the annotation ABX__POD_READINESS_ANNOTATION, podd's CREATE, pod.json. Pure.
 */
#ifndef ABX_ENGINE_PODD_READINESS_H
#define ABX_ENGINE_PODD_READINESS_H

#include <stdbool.h>
#include <stdint.h>

#include <agentbox/error.h>
#include <json-c/json.h>

#define ABX__READINESS_PATH_MAX 256

/* A Kubernetes httpGet probe. Of the numbers, 0 is one that was not given. */
typedef struct abx__readiness {
	uint16_t port; /* 0: there is no question */
	char *path;
	uint32_t initial_delay_s; /* since the container started */
	uint32_t timeout_s;       /* of one request */
	uint32_t period_s;
	uint32_t success_threshold; /* in a row, until it is ready */
	uint32_t failure_threshold; /* in a row, until it is not ready any more */
} abx__readiness;

/* `o` is {port, path, initialDelaySeconds?, timeoutSeconds?, periodSeconds?,
 * successThreshold?, failureThreshold?} and nothing else. ABX_EINVAL, ABX_EUNSUPPORTED
 * naming the field; then `ret` is empty. Free with abx__readiness_done(). */
int abx__readiness_parse(json_object *o, abx__readiness *ret, abx_error **reterr);
/* The same object again; NULL when out of memory. */
json_object *abx__readiness_print(const abx__readiness *probe);
void abx__readiness_done(abx__readiness *probe);

/* Is it asked on, once the Pod is ready? Only of a probe that says how often, or after
 * how many failures; a container whose envd dies ends anyway. */
bool abx__readiness_goes_on(const abx__readiness *probe);

#endif
