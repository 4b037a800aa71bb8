/*
 * local.c - the filling as a whole: completions, the table of calls, and its end.
 */
#include "engine/local/local.h"

#include "base/alloc.h"
#include "base/error.h"
#include "engine/local/state.h"
#include "io/json.h"

struct local *abx__local_of(abx__engine *engine)
{
	return (struct local *)engine;
}

/* ---- completions of the next turn ---- */

static void later_free(struct later *x)
{
	abx_error_free(x->err);
	abx__free(x);
}

static void on_turn(uv_timer_t *timer)
{
	struct local *l = timer->data;
	struct later *list = l->later;

	l->later = NULL;
	l->later_tail = &l->later;
	while (list) {
		struct later *x = list;

		list = x->next;
		if (x->pod_done)
			x->pod_done(x->userdata, x->r, NULL, x->err);
		if (x->engine_done)
			x->engine_done(x->userdata, x->r, x->err);
		if (x->fd_done)
			x->fd_done(x->userdata, x->r, -1, x->err);
		if (x->snapshot_done)
			x->snapshot_done(x->userdata, x->r, 0, x->err);
		if (x->stats_done)
			x->stats_done(x->userdata, x->r, NULL, x->err);
		later_free(x);
	}
}

/* Takes over `err`. */
void abx__local_fail_later(struct local *l, int r, abx_error *err, struct later how)
{
	struct later *x = abx__memdup(&how, sizeof(how));

	if (!x) { /* better inside the call than never */
		if (how.pod_done)
			how.pod_done(how.userdata, r, NULL, err);
		if (how.engine_done)
			how.engine_done(how.userdata, r, err);
		if (how.fd_done)
			how.fd_done(how.userdata, r, -1, err);
		if (how.snapshot_done)
			how.snapshot_done(how.userdata, r, 0, err);
		if (how.stats_done)
			how.stats_done(how.userdata, r, NULL, err);
		abx_error_free(err);
		return;
	}
	x->r = r;
	x->err = err;
	x->next = NULL;
	*l->later_tail = x;
	l->later_tail = &x->next;
	uv_timer_start(&l->turn, on_turn, 0, 0);
}

/* ---- close ---- */

static void local_free(struct local *l)
{
	struct lpod *p, *tmp;
	void (*closed)(void *) = l->closed;
	void *userdata = l->closed_userdata;

	HASH_ITER(hh, l->pods, p, tmp)
	abx__lpod_free(p);
	json_object_put(l->classes);
	abx__free(l);
	closed(userdata);
}

static void on_turn_closed(uv_handle_t *handle)
{
	local_free(handle->data);
}

void abx__local_maybe_closed(struct local *l)
{
	if (!l->closing || l->busy || !l->podd_closed || l->turn_closed)
		return;
	l->turn_closed = true;
	uv_timer_stop(&l->turn);
	on_turn(&l->turn);
	uv_close((uv_handle_t *)&l->turn, on_turn_closed);
}

static void on_podd_closed(void *userdata)
{
	struct local *l = userdata;

	l->podd_closed = true;
	abx__local_maybe_closed(l);
}

static void local_close(abx__engine *engine, void (*done)(void *userdata), void *userdata)
{
	struct local *l = abx__local_of(engine);

	l->closing = true;
	abx__local_snapshots_lost(l, ABX_ECANCELED);
	l->closed = done;
	l->closed_userdata = userdata;
	abx__podd_client_close(l->podd, on_podd_closed, l);
}

static const abx__engine_ops local_ops = {
	.name = "local",
	.check_template = abx__local_check_template,
	.start = abx__local_start,
	.create_pod = abx__local_create_pod,
	.change_pod = abx__local_change_pod,
	.delete_pod = abx__local_delete_pod,
	.snapshot_pod = abx__local_snapshot_pod,
	.delete_snapshot = abx__local_delete_snapshot,
	.connect_pod = abx__local_connect_pod,
	.stat_pod = abx__local_stat_pod,
	.open_log = abx__local_open_log,
	.close = local_close,
};

int abx__engine_local_new(uv_loop_t *loop, abx__store *store, const char *podd_socket,
			  const abx__log *log, abx__engine **ret, abx_error **reterr)
{
	struct local *l = abx__calloc(1, sizeof(*l));
	int r;

	if (!l)
		return abx__error_nomem(reterr);
	r = abx__podd_client_new(loop, podd_socket, log, &abx__local_podd_events, l,
				 &l->podd, reterr);
	if (r < 0) {
		abx__free(l);
		return r;
	}
	l->engine.ops = &local_ops;
	l->loop = loop;
	l->store = store;
	l->log = log;
	l->later_tail = &l->later;
	uv_timer_init(loop, &l->turn);
	l->turn.data = l;
	*ret = &l->engine;
	return ABX_OK;
}
