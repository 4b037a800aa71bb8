/*
 * log.c - what a sandbox's container has written, by the sandbox's id.
 */
#include <unistd.h>

#include "base/error.h"
#include "base/str.h"
#include "control/internal.h"

typedef struct opening {
	abx__control *control;
	abx__fd_done done;
	void *userdata;
} opening;

static void on_log(void *userdata, int r, int fd, const abx_error *err)
{
	opening *o = userdata;
	abx__control *control = o->control;

	o->done(o->userdata, r, fd, err);
	abx__free(o);
	abx__control_call_end(control);
}

int abx__control_open_log(abx__control *control, const char *id, abx__fd_done done,
			  void *userdata, abx_error **reterr)
{
	abx__engine *engine = control->config.engine;
	abx__sandbox *s = abx__sandboxes_get(&control->sandboxes, id);
	opening *o;

	if (!s || !s->pod)
		return abx__error_set(reterr, ABX_ENOTFOUND,
				      "Sandbox \"%s\" doesn't exist or you don't have "
				      "access to it",
				      id);
	o = abx__malloc(sizeof(*o));
	if (!o)
		return abx__error_nomem(reterr);
	o->control = control;
	o->done = done;
	o->userdata = userdata;
	abx__control_call_begin(control);
	engine->ops->open_log(engine, s->pod->namespace_, s->pod->name, on_log, o);
	return ABX_OK;
}
