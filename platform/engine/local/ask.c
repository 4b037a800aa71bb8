/*
 * ask.c - what is asked of podd and changes nothing: a socket to a port, what a Pod uses,
 * its log.
 */
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/local/state.h"
#include "io/json.h"

struct asking {
	abx__fd_done fd_done;
	abx__stats_done stats_done;
	void *userdata;
};

/* `port` 0: none. */
static void ask(abx__engine *engine, const char *namespace_, const char *name,
		uint16_t type, uint16_t port, bool hold, abx__podd_reply reply,
		struct asking asking)
{
	struct local *l = abx__local_of(engine);
	abx_error *err = NULL;
	struct lpod *p = abx__lpod_find_live(l, namespace_, name, &err);
	struct asking *a = p ? abx__memdup(&asking, sizeof(asking)) : NULL;
	json_object *o = a ? abx__tell_request(p) : NULL;
	int r;

	if (!o || (port && abx__json_set_i64(o, "port", port) < 0)) {
		r = p ? abx__error_nomem(&err) : ABX_ENOTFOUND;
		abx__free(a);
		json_object_put(o);
		abx__local_fail_later(l, r, err,
				      (struct later){ .fd_done = asking.fd_done,
						      .stats_done = asking.stats_done,
						      .userdata = asking.userdata });
		return;
	}
	abx__podd_client_call(l->podd, type, o, hold, reply, a);
	json_object_put(o);
}

static void on_fd(void *userdata, int r, json_object *body, int fd, const abx_error *err)
{
	struct asking *a = userdata;
	abx_error *missing = NULL;

	(void)body;
	if (r == ABX_OK && fd < 0)
		r = abx__error_set(&missing, ABX_EPROTO,
				   "agentbox-podd sent no descriptor");
	a->fd_done(a->userdata, r, r < 0 ? -1 : fd, missing ? missing : err);
	abx_error_free(missing);
	abx__free(a);
}

void abx__local_connect_pod(abx__engine *engine, const char *namespace_, const char *name,
			    uint16_t port, abx__fd_done done, void *userdata)
{
	ask(engine, namespace_, name, ABX__PODD_CONNECT, port, true, on_fd,
	    (struct asking){ .fd_done = done, .userdata = userdata });
}

void abx__local_open_log(abx__engine *engine, const char *namespace_, const char *name,
			 abx__fd_done done, void *userdata)
{
	ask(engine, namespace_, name, ABX__PODD_LOG, 0, true, on_fd,
	    (struct asking){ .fd_done = done, .userdata = userdata });
}

static uint64_t number(json_object *body, const char *key)
{
	json_object *v = NULL;

	json_object_object_get_ex(body, key, &v);
	return json_object_is_type(v, json_type_int) ? json_object_get_uint64(v) : 0;
}

static void on_stats(void *userdata, int r, json_object *body, int fd,
		     const abx_error *err)
{
	struct asking *a = userdata;
	abx__pod_stats stats = { 0 };

	if (fd >= 0)
		close(fd);
	if (r == ABX_OK)
		stats = (abx__pod_stats){
			.cpu_ns = number(body, "cpu_ns"),
			.memory_bytes = number(body, "memory"),
			.memory_cache = number(body, "cache"),
			.memory_total = number(body, "memory_total"),
			.disk_used = number(body, "disk_used"),
			.disk_total = number(body, "disk_total"),
		};
	a->stats_done(a->userdata, r, r == ABX_OK ? &stats : NULL, err);
	abx__free(a);
}

/* Not held while podd is away: a sample that comes late is none. */
void abx__local_stat_pod(abx__engine *engine, const char *namespace_, const char *name,
			 abx__stats_done done, void *userdata)
{
	ask(engine, namespace_, name, ABX__PODD_STATS, 0, false, on_stats,
	    (struct asking){ .stats_done = done, .userdata = userdata });
}
