/*
 * agentboxd-run.c - the daemon itself: store, engine, control, keys, APIs and listeners
 * on one loop.
 *
 * Order of the start: store, keys, engine and control; then the listeners, so that
 * whoever is answered is answered truly. Order of the end: listeners, control, keys,
 * APIs, engine, store. Pods go on running.
 */
#include "agentboxd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "control/control.h"
#include "engine/local/local.h"
#include "gateway/gateway.h"
#include "io/http-server.h"
#include "io/http2.h"
#include "io/json.h"
#include "io/tls-relay.h"
#include "serve/keys.h"
#include "serve/seal.h"
#include "serve/serve.h"
#include "store/sqlite.h"

#define CLOSE_LIMIT_MS 10000

typedef struct app app;

/* The gateway arms Pods and needs control's table, control needs who arms: this stands in
 * until both are there. */
typedef struct late_runtime {
	abx__runtime base;
	abx__runtime *real;
} late_runtime;

typedef struct listener {
	app *app;
	abx__http_server *server;
	bool e2b_only;
	bool remote; /* off loopback */
	bool tls;
	const char *ip;
	uint16_t port; /* 0: the Unix socket, or not listening */
} listener;

struct app {
	const agentboxd_settings *s;
	uv_loop_t loop;
	abx__log log;
	abx__store *store;
	abx__seal *seal;
	abx__engine *engine;
	abx__gateway *gateway;
	abx__tls_relays *relays; /* to sandboxes' ports that speak TLS */
	late_runtime runtime;
	agentboxd_tls *tls; /* NULL: no listener has it */
	abx__capacity *capacity;
	abx__control *control;
	abx__keys *keys;
	abx__serve *serve;
	listener listeners[AGENTBOXD_LISTEN_MAX + 1];
	size_t listener_count;
	char base_url[96];
	char tls_url[288]; /* of the first that speaks TLS, by name */
	uv_signal_t signals[2];
	uv_prepare_t prepare;
	uv_timer_t tick;
	uv_timer_t close_limit;
	bool closing;
	bool any_remote;
	bool request_is_remote; /* of the request the gateway is just being given */
	size_t open_servers;
	int status;
};

static void close_all(app *a);

/* ---- requests ---- */

static void on_request(abx__http_req *req, void *userdata)
{
	listener *l = userdata;
	app *a = l->app;

	if (abx__gateway_match(a->gateway, req)) {
		a->request_is_remote = l->remote;
		abx__gateway_serve(a->gateway, req);
	} else {
		abx__serve_request(a->serve, req, l->e2b_only);
	}
}

/* Off loopback a request for a sandbox needs a key, or the sandbox's own token, which an
 * E2B SDK sends instead. */
static int check_key(void *userdata, const abx__http_req *req, const char *key,
		     const abx__sandbox_rec *sandbox)
{
	app *a = userdata;
	const char *token = abx__http_req_header(req, "X-Access-Token");

	(void)key;
	if (!a->request_is_remote || abx__http_req_is_unix(req) ||
	    abx__serve_is_authenticated(a->serve, req))
		return ABX_OK;
	if (sandbox && sandbox->access_token && token &&
	    abx__secret_equals(sandbox->access_token, token, strlen(token)))
		return ABX_OK;
	return ABX_EUNAUTHENTICATED;
}

static void late_arm(abx__runtime *runtime, const char *namespace_, const char *pod,
		     uint16_t port, const char *body, size_t body_len,
		     uint64_t deadline_ms,
		     void (*done)(void *userdata, int r, const abx_error *err),
		     void *userdata)
{
	abx__runtime *real = ((late_runtime *)runtime)->real;

	real->ops->arm(real, namespace_, pod, port, body, body_len, deadline_ms, done,
		       userdata);
}

static void late_forget(abx__runtime *runtime, const char *namespace_, const char *pod)
{
	abx__runtime *real = ((late_runtime *)runtime)->real;

	real->ops->forget(real, namespace_, pod);
}

static const abx__runtime_ops late_ops = { .arm = late_arm, .forget = late_forget };

static bool is_loopback(const char *ip)
{
	return strncmp(ip, "127.", 4) == 0 || strcmp(ip, "::1") == 0;
}

static int open_server(app *a, bool tls, listener **ret, abx_error **reterr)
{
	listener *l = &a->listeners[a->listener_count];
	abx__http_server_options opts = { .loop = &a->loop,
					  .on_request = on_request,
					  .http2 = &abx__http2,
					  .userdata = l };
	int r = ABX_OK;

	if (tls && !a->tls)
		r = agentboxd_tls_new(&a->loop, a->s, &a->log, &a->tls, reterr);
	if (r == ABX_OK && tls)
		opts.tls = agentboxd_tls_context(a->tls);
	if (r == ABX_OK)
		r = abx__http_server_new(&opts, &l->server, reterr);
	if (r < 0)
		return r;
	l->tls = tls;
	l->app = a;
	a->listener_count++;
	a->open_servers++;
	*ret = l;
	return ABX_OK;
}

/* An address to say, not to bind: "any" is reached at loopback. */
static void set_base_url(app *a, const char *ip, uint16_t port)
{
	if (strcmp(ip, "0.0.0.0") == 0)
		ip = "127.0.0.1";
	else if (strcmp(ip, "::") == 0)
		ip = "::1";
	snprintf(a->base_url, sizeof(a->base_url),
		 strchr(ip, ':') ? "http://[%s]:%u" : "http://%s:%u", ip, port);
}

static int listen_tcp(app *a, const agentboxd_address *address, abx_error **reterr)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	listener *l;
	uint16_t port = 0;
	int r = open_server(a, address->tls, &l, reterr);

	if (r < 0)
		return r;
	l->e2b_only = address->e2b_only;
	l->remote = !is_loopback(address->ip);
	r = abx__http_server_listen_tcp(l->server, address->ip, address->port, &port,
					&err);
	if (r < 0 && address->fallback) {
		abx__log_warn(&a->log,
			      "default address is taken; only the Unix socket is served",
			      "error=\"%s\"", abx_error_message(err));
		return ABX_OK;
	}
	if (r < 0) {
		if (reterr)
			*reterr = abx_take(err);
		return r;
	}
	l->ip = address->ip;
	l->port = port;
	if (!a->base_url[0] && !address->e2b_only && !address->tls)
		set_base_url(a, address->ip, port);
	if (!a->tls_url[0] && !address->e2b_only && address->tls)
		snprintf(a->tls_url, sizeof(a->tls_url), "https://%s:%u", a->s->domain,
			 port);
	abx__log_info(&a->log, "listening", "address=%s port=%u surface=%s tls=%s",
		      address->ip, port, address->e2b_only ? "e2b" : "all",
		      address->tls ? "yes" : "no");
	return ABX_OK;
}

static int listen_unix(app *a, abx_error **reterr)
{
	listener *l;
	int r = open_server(a, false, &l, reterr);

	if (r < 0)
		return r;
	return abx__http_server_listen_unix(l->server, a->s->socket_path, 0600, reterr);
}

static int listen_all(app *a, abx_error **reterr)
{
	for (size_t i = 0; i < a->s->listen_count; i++) {
		int r = listen_tcp(a, &a->s->listen[i], reterr);
		if (r < 0)
			return r;
	}
	return listen_unix(a, reterr);
}

/* ---- time ---- */

static void on_tick(uv_timer_t *timer)
{
	app *a = timer->data;

	if (a->control)
		abx__control_tick(a->control);
}

/* Before the loop waits: the timer follows control's next deadline, wherever it moved. */
static void on_prepare(uv_prepare_t *prepare)
{
	app *a = prepare->data;
	int64_t next = a->control ? abx__control_next_deadline_ms(a->control) : INT64_MAX;
	int64_t now = abx__mono_ms();

	if (next == INT64_MAX)
		uv_timer_stop(&a->tick);
	else
		uv_timer_start(&a->tick, on_tick, next > now ? (uint64_t)(next - now) : 0,
			       0);
}

/* ---- the end ---- */

static void on_handle_closed(uv_handle_t *handle)
{
	(void)handle;
}

static void on_store_closed(void *userdata)
{
	app *a = userdata;

	uv_close((uv_handle_t *)&a->prepare, on_handle_closed);
	uv_close((uv_handle_t *)&a->tick, on_handle_closed);
	uv_close((uv_handle_t *)&a->close_limit, on_handle_closed);
	agentboxd_tls_close(a->tls);
	for (size_t i = 0; i < 2; i++)
		uv_close((uv_handle_t *)&a->signals[i], on_handle_closed);
}

static void close_store(void *userdata)
{
	app *a = userdata;

	abx__keys_free(a->keys);
	a->keys = NULL;
	agentboxd_fake_stop();
	if (a->store)
		a->store->ops->close(a->store, on_store_closed, a);
	else
		on_store_closed(a);
}

static void close_engine(void *userdata)
{
	app *a = userdata;

	abx__control_free(a->control); /* the gateway read its table until now */
	a->control = NULL;
	if (a->engine)
		a->engine->ops->close(a->engine, close_store, a);
	else
		close_store(a);
}

static void close_relays(void *userdata)
{
	app *a = userdata;

	if (a->relays)
		abx__tls_relays_close(a->relays, close_engine, a);
	else
		close_engine(a);
}

static void close_gateway(void *userdata)
{
	app *a = userdata;

	if (a->gateway)
		abx__gateway_close(a->gateway, close_relays, a);
	else
		close_relays(a);
}

static void close_serve(void *userdata)
{
	app *a = userdata;

	if (a->serve)
		abx__serve_close(a->serve, close_gateway, a);
	else
		close_gateway(a);
}

static void close_control(app *a)
{
	if (a->control)
		abx__control_close(a->control, close_serve, a);
	else
		close_serve(a);
}

static void on_server_closed(void *userdata)
{
	app *a = userdata;

	if (--a->open_servers == 0)
		close_control(a);
}

static void on_close_limit(uv_timer_t *timer)
{
	app *a = timer->data;

	abx__log_error(&a->log, "shutdown did not end in time", NULL);
	_exit(1);
}

static void close_all(app *a)
{
	if (a->closing)
		return;
	a->closing = true;
	uv_timer_start(&a->close_limit, on_close_limit, CLOSE_LIMIT_MS, 0);
	unlink(a->s->socket_path);
	if (a->open_servers == 0)
		close_control(a);
	for (size_t i = 0; i < a->listener_count; i++)
		abx__http_server_close(a->listeners[i].server, on_server_closed, a);
}

static void on_signal(uv_signal_t *handle, int signum)
{
	app *a = handle->data;

	abx__log_info(&a->log, "stopping", "signal=%d", signum);
	close_all(a);
}

static void fail(app *a, const char *what, const abx_error *err)
{
	const char *hint = abx_error_hint(err);

	abx__log_error(&a->log, "cannot start", "step=\"%s\" error=\"%s\"%s%s%s", what,
		       abx_error_message(err), hint ? " hint=\"" : "", hint ? hint : "",
		       hint ? "\"" : "");
	a->status = 1;
	close_all(a);
}

/* ---- the start ---- */

static int add_listen(app *a, json_object *list, bool tls)
{
	for (size_t i = 0; i < a->listener_count; i++) {
		const listener *l = &a->listeners[i];
		ABX_CLEANUP(abx__freep) char *text = NULL;
		json_object *v;

		if (!l->port || l->tls != tls)
			continue;
		text = abx__strf(strchr(l->ip, ':') ? "[%s]:%u" : "%s:%u", l->ip,
				 l->port);
		v = text ? json_object_new_string(text) : NULL;
		if (!v || abx__json_push_take(list, v) < 0)
			return ABX_ENOMEM;
	}
	return ABX_OK;
}

static int add_tls(app *a, json_object *o)
{
	const char *ca = agentboxd_tls_ca(a->tls);
	json_object *list = json_object_new_array();

	if (!list || abx__json_set_take(o, "tlsListen", list) < 0 ||
	    add_listen(a, list, true) < 0 ||
	    abx__json_set_str(o, "domain", a->s->domain) < 0)
		return ABX_ENOMEM;
	return ca ? abx__json_set_str(o, "ca", ca) : ABX_OK;
}

static json_object *state_json(app *a)
{
	ABX_CLEANUP_JSON json_object *o = json_object_new_object();
	json_object *list = json_object_new_array();

	if (!o || !list) {
		json_object_put(list);
		return NULL;
	}
	if (abx__json_set_take(o, "listen", list) < 0 || add_listen(a, list, false) < 0 ||
	    (a->tls && add_tls(a, o) < 0) || abx__json_set_i64(o, "pid", getpid()) < 0 ||
	    abx__json_set_str(o, "url", a->base_url) < 0 ||
	    abx__json_set_str(o, "socket", a->s->socket_path) < 0 ||
	    abx__json_set_str(o, "version", abx_version()) < 0)
		return NULL;
	return abx_take(o);
}

/* Writes beside its place and renames; on a full disk over what is there, which has its
 * block already. 0 or -1, errno set. */
static int replace_file(const char *path, const char *tmp, const abx__buf *text)
{
	ABX_CLEANUP(abx__closep)
	int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	ABX_CLEANUP(abx__closep) int old = -1;

	if (fd >= 0 && write(fd, text->data, text->len) == (ssize_t)text->len)
		return rename(tmp, path);
	if (errno != ENOSPC)
		return -1;
	unlink(tmp);
	old = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (old < 0 || write(old, text->data, text->len) != (ssize_t)text->len)
		return -1;
	return ftruncate(old, (off_t)text->len);
}

/* Where it answers, for scripts. */
static int write_state_file(app *a, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep)
	char *path = abx__strf("%s/agentboxd.json", a->s->state_dir);
	ABX_CLEANUP(abx__freep)
	char *tmp = abx__strf("%s/agentboxd.json.new", a->s->state_dir);
	ABX_CLEANUP_JSON json_object *o = state_json(a);
	ABX_CLEANUP_BUF abx__buf text = ABX__BUF_INIT;

	if (!path || !tmp || !o || abx__json_print(o, &text) < 0 ||
	    abx__buf_addc(&text, '\n') < 0)
		return abx__error_nomem(reterr);
	if (replace_file(path, tmp, &text) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "state file %s", path);
	return ABX_OK;
}

static void say_ready(app *a)
{
	static const char text[] = "ready\n";

	abx__log_info(&a->log, "ready", "pid=%ld url=%s socket=%s", (long)getpid(),
		      a->base_url, a->s->socket_path);
	if (a->s->ready_fd < 0)
		return;
	if (write(a->s->ready_fd, text, sizeof(text) - 1) < 0)
		abx__log_warn(&a->log, "nobody waits for the ready notice", NULL);
	close(a->s->ready_fd);
}

static const char *public_url(const app *a)
{
	if (a->s->public_url)
		return a->s->public_url;
	if (a->base_url[0])
		return a->base_url;
	return a->tls_url[0] ? a->tls_url : "http://localhost";
}

static int new_serve(app *a, abx_error **reterr)
{
	const abx__serve_options opts = { .loop = &a->loop,
					  .max_timeout_ms = a->s->max_timeout_ms,
					  .control = a->control,
					  .keys = a->keys,
					  .engine = a->engine,
					  .console_url = a->s->console_url,
					  .jwt_secret = a->s->jwt_secret,
					  .cluster_id = a->s->cluster_id,
					  .base_url = public_url(a),
					  .clock = &abx__clock_system,
					  .log = &a->log };

	return abx__serve_new(&opts, &a->serve, reterr);
}

static void open_all(app *a)
{
	ABX_CLEANUP(abx__error_freep) abx_error *own = NULL;
	int r = listen_all(a, &own);

	if (r == ABX_OK)
		r = new_serve(a, &own);
	if (r == ABX_OK)
		r = write_state_file(a, &own);
	if (r < 0)
		fail(a, "listen", own);
	else
		say_ready(a);
}

/* Without it everything else can be served, and an env be made by hand. */
static void on_base_made(void *userdata, int r, const abx_error *err)
{
	app *a = userdata;

	if (a->closing)
		return;
	if (r < 0)
		abx__log_error(&a->log, "cannot make the env base", "error=\"%s\"",
			       abx_error_message(err));
	open_all(a);
}

static void on_keys_started(void *userdata, int r, const abx_error *err)
{
	app *a = userdata;

	if (a->closing)
		return;
	if (r < 0)
		fail(a, "keys", err);
	else if (a->s->with_base)
		agentboxd_base_make(a->control, a->s->cluster_id, on_base_made, a);
	else
		open_all(a);
}

static void on_control_started(void *userdata, int r, const abx_error *err)
{
	app *a = userdata;

	if (a->closing)
		return;
	if (r < 0)
		fail(a, "control", err);
	else
		abx__keys_start(a->keys, on_keys_started, a);
}

static void on_wake(void *userdata)
{
	(void)userdata; /* on_prepare looks before every wait */
}

static int new_engine(app *a, abx_error **reterr)
{
	if (strcmp(a->s->engine, "fake") == 0)
		return agentboxd_fake_new(&a->loop, &a->engine, &a->runtime.real, reterr);
	return abx__engine_local_new(&a->loop, a->store, a->s->podd_socket, &a->log,
				     &a->engine, reterr);
}

static int resume(void *userdata, const char *id,
		  void (*done)(void *done_userdata, int r, const abx_error *err),
		  void *done_userdata)
{
	app *a = userdata;

	return abx__control_wake(a->control, id, done, done_userdata, NULL);
}

static int seal(void *userdata, const char *name, const char *plain, size_t len,
		char **ret, abx_error **reterr)
{
	return abx__seal_wrap(((app *)userdata)->seal, name, plain, len, ret, reterr);
}

static int unseal(void *userdata, const char *name, const char *sealed, abx__secret **ret,
		  abx_error **reterr)
{
	return abx__seal_unwrap(((app *)userdata)->seal, name, sealed, ret, reterr);
}

static int secure_port(void *userdata, int fd, int *ret_fd)
{
	return abx__tls_relay(((app *)userdata)->relays, fd, ret_fd);
}

static int new_gateway(app *a, abx_error **reterr)
{
	const abx__gateway_options opts = { .loop = &a->loop,
					    .engine = a->engine,
					    .sandboxes =
						    abx__control_sandboxes(a->control),
					    .log = &a->log,
					    .domain = a->s->domain,
					    .check_key = a->any_remote ? check_key : NULL,
					    .resume = resume,
					    .userdata = a,
					    .secure = secure_port,
					    .secure_userdata = a };
	int r = abx__tls_relays_new(&a->loop, &a->relays, reterr);

	if (r == ABX_OK)
		r = abx__gateway_new(&opts, &a->gateway, reterr);

	if (r == ABX_OK && !a->runtime.real)
		a->runtime.real = abx__gateway_runtime(a->gateway);
	return r;
}

static int new_control(app *a, abx_error **reterr)
{
	const abx__control_config config = { .cluster_id = a->s->cluster_id,
					     .token_key = abx__seal_token_key(a->seal),
					     .store = a->store,
					     .engine = a->engine,
					     .runtime = &a->runtime.base,
					     .clock = &abx__clock_system,
					     .log = &a->log,
					     .capacity = a->capacity,
					     .seal = seal,
					     .unseal = unseal,
					     .seal_userdata = a,
					     .wake = on_wake,
					     .wake_userdata = a };

	return abx__control_new(&config, &a->control, reterr);
}

static int assemble(app *a, abx_error **reterr)
{
	static const char *const light[] = { "Pod", ABX__KIND_RECORD, ABX__KIND_ENV_STATE,
					     NULL };
	const abx__store_sqlite_options store = { .dir = a->s->state_dir,
						  .light_kinds = light };
	ABX_CLEANUP(abx__freep) char *key = abx__strf("%s/server.key", a->s->state_dir);
	ABX_CLEANUP(abx__freep) char *pair = abx__strf("%s/keys.json", a->s->state_dir);
	int r;

	if (!key || !pair)
		return abx__error_nomem(reterr);
	r = agentboxd_capacity_load(a->s, &a->capacity, reterr);
	if (r == ABX_OK)
		r = abx__store_sqlite_open(&a->loop, &store, &a->store, reterr);
	if (r == ABX_OK)
		r = abx__seal_load(key, &a->seal, reterr);
	if (r == ABX_OK)
		r = abx__keys_new(a->store, a->seal, &abx__clock_system, pair, &a->keys,
				  reterr);
	if (r == ABX_OK)
		r = new_engine(a, reterr);
	if (r == ABX_OK)
		r = new_control(a, reterr);
	if (r == ABX_OK)
		r = new_gateway(a, reterr);
	if (r < 0)
		return r;
	uv_prepare_start(&a->prepare, on_prepare);
	return abx__control_start(a->control, on_control_started, a, reterr);
}

static void init_loop(app *a)
{
	static const int signums[] = { SIGTERM, SIGINT };

	uv_loop_init(&a->loop);
	uv_prepare_init(&a->loop, &a->prepare);
	a->prepare.data = a;
	uv_timer_init(&a->loop, &a->tick);
	a->tick.data = a;
	uv_timer_init(&a->loop, &a->close_limit);
	a->close_limit.data = a;
	for (size_t i = 0; i < 2; i++) {
		uv_signal_init(&a->loop, &a->signals[i]);
		a->signals[i].data = a;
		uv_signal_start(&a->signals[i], on_signal, signums[i]);
	}
}

/* A stream through the gateway takes two descriptors, and many hosts start programs with
 * 1024: few clients would be enough to leave none for the store and for podd. */
static void raise_limits(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

int agentboxd_run(const agentboxd_settings *s)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	app *a = abx__calloc(1, sizeof(*a));
	int status;

	if (!a)
		return 1;
	a->s = s;
	a->log.write = abx__log_json_line;
	a->log.userdata = (void *)(intptr_t)STDERR_FILENO;
	a->log.level = s->debug ? ABX__LOG_DEBUG : ABX__LOG_INFO;
	signal(SIGPIPE, SIG_IGN);
	raise_limits();
	a->runtime.base.ops = &late_ops;
	for (size_t i = 0; i < s->listen_count; i++)
		a->any_remote = a->any_remote || !is_loopback(s->listen[i].ip);
	init_loop(a);
	if (assemble(a, &err) < 0)
		fail(a, "assemble", err);
	uv_run(&a->loop, UV_RUN_DEFAULT);
	uv_loop_close(&a->loop);
	abx__capacity_free(a->capacity);
	abx__seal_free(a->seal);
	agentboxd_tls_free(a->tls);
	status = a->status;
	abx__free(a);
	return status;
}
