/*
 * members.h - what the files that read an env's document share. Inside of control/ only.
 */
#ifndef ABX_CONTROL_MEMBERS_H
#define ABX_CONTROL_MEMBERS_H

#include "control/capacity.h"
#include "control/internal.h"

/* members.c */
json_object *abx__members_spec(json_object *doc);

/* groups.c: a group appears, disabled, with its first member. */
int abx__groups_complete(json_object *env_doc, json_object *member, abx_error **reterr);
/* Every group belongs to a member and makes sense. */
int abx__groups_check(json_object *env_doc, abx_error **reterr);

/* member-size.c */

bool abx__pool_sizing_is_valid(const char *sizing);
/* NULL: no such thing, or no catalogue. */
const abx__instance_type *abx__instance_type_find(const abx__control *control,
						  const char *name);
const abx__quota *abx__quota_find(const abx__control *control, const char *url);
/* The shape of a member and its key. ABX_EINVAL, ABX_EUNSUPPORTED. */
int abx__member_key(const abx__control *control, json_object *member,
		    char key[ABX__RESOURCE_KEY_SIZE], int64_t *ret_cpu,
		    int64_t *ret_memory, abx_error **reterr);
/* The end of its pool's name; NULL: none. */
const char *abx__member_quota_short(const abx__control *control, json_object *member);
/* A member that is being made: refused, or completed with what its instance type says.
   ABX_EINVAL, ABX_EUNSUPPORTED, ABX_EEXHAUSTED (the quota allows not one Pod). */
int abx__member_size_new(const abx__control *control, json_object *env_doc,
			 json_object *member, abx_error **reterr);

#endif
