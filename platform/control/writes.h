/*
 * writes.h - what writes.c and the makers of the documents it stores share. Inside of
 * control/ only.
 */
#ifndef ABX_CONTROL_WRITES_H
#define ABX_CONTROL_WRITES_H

#include "control/internal.h"

/* writes.c */

/* NULL also when memory ran out. */
json_object *abx__write_copy(json_object *value);
/* The env a write is about; NULL: there is none. */
abx__env *abx__write_env(const abx__write *w);
int abx__write_no_env(const abx__write *w, abx_error **reterr);
/* What the writer may know of the object: nothing, or its present version. */
int abx__write_check_version(json_object *input, const abx__object *object,
			     abx_error **reterr);
/* {metadata: {labels, annotations, generation}, spec}: what is stored of a document. */
int abx__write_stored_form(json_object *input, json_object *spec, const abx__object *old,
			   json_object **ret, abx_error **reterr);

/* write-templates.c */
int abx__make_template(abx__write *w, json_object **ret, abx_error **reterr);
int abx__make_template_delete(abx__write *w, json_object **ret, abx_error **reterr);

/* write-envs.c */

/* Completes, checks and wraps a spec that is ours to change. */
int abx__write_finish_env(abx__write *w, json_object *input, json_object *spec,
			  const abx__object *old, json_object **ret, abx_error **reterr);
int abx__make_env(abx__write *w, json_object **ret, abx_error **reterr);
int abx__make_env_delete(abx__write *w, json_object **ret, abx_error **reterr);

/* write-members.c */
int abx__make_pool_create(abx__write *w, json_object **ret, abx_error **reterr);
int abx__make_pool_update(abx__write *w, json_object **ret, abx_error **reterr);
int abx__make_pool_delete(abx__write *w, json_object **ret, abx_error **reterr);
int abx__make_group(abx__write *w, json_object **ret, abx_error **reterr);
int abx__make_scale(abx__write *w, json_object **ret, abx_error **reterr);

#endif
