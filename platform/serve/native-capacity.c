/*
 * native-capacity.c - what pools may be sized by and how much of it there is
 * (native-api.md, section 11). One machine has no volumes of a cluster.
 */
#include "base/error.h"
#include "serve/native.h"

void abx__native_gates(abx__call *call)
{
	const abx__control *control = call->serve->control;
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();

	if (!o || abx__json_set_bool(o, "quota", abx__control_has_quotas(control)) < 0 ||
	    abx__json_set_bool(o, "instanceType",
			       abx__control_has_instance_types(control)) < 0 ||
	    abx__json_set_bool(o, "volumes", false) < 0)
		abx__call_nomem(call);
	else
		abx__call_json(call, 200, abx_take(o));
}

void abx__native_instance_types(abx__call *call)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	json_object *items = NULL;

	if (abx__control_instance_types(call->serve->control, &items, &err) < 0)
		abx__call_error(call, err);
	else
		abx__native_page(call, items, false);
}

/* Those the caller may use; an admin as itself sees all. */
void abx__native_quotas(abx__call *call)
{
	bool all = abx__identity_sees_all(&call->who);
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	json_object *items = NULL;

	if (abx__control_quotas(call->serve->control, all ? NULL : call->who.team,
				all ? NULL : call->who.user, &items, &err) < 0)
		abx__call_error(call, err);
	else
		abx__native_page(call, items, true);
}

void abx__native_volumes(abx__call *call)
{
	abx__native_page(call, json_object_new_array(), false);
}
