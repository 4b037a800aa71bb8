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

/* claim.c: armed; from here on it is written that the sandbox runs. */
void abx__claim_start(abx__claim *claim);

#endif
