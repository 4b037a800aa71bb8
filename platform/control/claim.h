/*
 * claim.h - what the files of the claim share. Inside of control/ only.
 */
#ifndef ABX_CONTROL_CLAIM_H
#define ABX_CONTROL_CLAIM_H

#include "control/internal.h"

/* claim-choose.c: ABX_ENOTFOUND, ABX_EDENIED, ABX_EUNAVAILABLE. */
int abx__claim_choose(const abx__control *control, const abx__claim_request *request,
		      abx__pool **ret, abx_error **reterr);

/* claim-prepare.c */
int abx__claim_check_image(const abx__pool *pool, const abx__claim_request *request,
			   abx_error **reterr);
int abx__claim_prepare(abx__claim *claim, const abx__pool *pool,
		       const abx__claim_request *request, int64_t startup_ms,
		       abx_error **reterr);
/* A new object; NULL when memory ran out. */
json_object *abx__claim_map_json(const abx__map *map);

/* claim-arm.c: POST /init with these variables (JSON) and the sandbox's token. `done`
   gets the Pod, whose abx__pod_armed() it calls first. ABX_ENOMEM. */
int abx__pod_arm(abx__podrec *pod, const char *vars, int64_t left_ms,
		 void (*done)(void *pod, int r, const abx_error *err));
void abx__pod_armed(abx__podrec *pod);

/* claim.c: armed; from here on it is written that the sandbox runs. */
void abx__claim_start(abx__claim *claim);

#endif
