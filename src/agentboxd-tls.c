/*
 * agentboxd-tls.c - the certificate the TLS listeners show: given files, or one signed by
 * the instance's own CA in DIR/tls. Read again on SIGHUP and every day, so that a renewed
 * one is picked up, and the own one is renewed, without a restart.
 */
#include <signal.h>
#include <string.h>

#include "agentboxd.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "io/tls-local.h"

#define DAY_MS (24ULL * 60 * 60 * 1000)
#define NAMES_MAX (5 + AGENTBOXD_LISTEN_MAX)

struct agentboxd_tls {
	const agentboxd_settings *s;
	const abx__log *log;
	char *dir, *cert, *key, *ca; /* ca: NULL with given files */
	char *wildcard;
	const char *names[NAMES_MAX];
	size_t name_count;
	abx__tls_context *context;
	uv_signal_t hangup;
	uv_timer_t daily;
};

static void add_name(agentboxd_tls *tls, const char *name)
{
	for (size_t i = 0; i < tls->name_count; i++) {
		if (strcmp(tls->names[i], name) == 0)
			return;
	}
	tls->names[tls->name_count++] = name;
}

/* What the own certificate is for. "Any" addresses are no names. */
static void collect_names(agentboxd_tls *tls)
{
	add_name(tls, "localhost");
	add_name(tls, "127.0.0.1");
	add_name(tls, "::1");
	add_name(tls, tls->s->domain);
	add_name(tls, tls->wildcard);
	for (size_t i = 0; i < tls->s->listen_count; i++) {
		const agentboxd_address *address = &tls->s->listen[i];

		if (address->tls && strcmp(address->ip, "0.0.0.0") != 0 &&
		    strcmp(address->ip, "::") != 0)
			add_name(tls, address->ip);
	}
}

static int make_own(agentboxd_tls *tls, abx_error **reterr)
{
	bool changed = false;
	int r;

	if (!tls->ca)
		return ABX_OK;
	r = abx__tls_local_make(tls->dir, tls->names, tls->name_count, &changed, reterr);
	if (r == ABX_OK && changed)
		abx__log_info(tls->log, "made a certificate of the instance's own CA",
			      "ca=%s domain=%s", tls->ca, tls->s->domain);
	return r;
}

static void reload(agentboxd_tls *tls)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	int r = make_own(tls, &err);

	if (r == ABX_OK)
		r = abx__tls_context_reload(tls->context, &err);
	if (r < 0)
		abx__log_error(tls->log, "the certificate stays as it was",
			       "error=\"%s\"", abx_error_message(err));
	else
		abx__log_info(tls->log, "certificate read", "file=%s", tls->cert);
}

static void on_hangup(uv_signal_t *handle, int signum)
{
	(void)signum;
	reload(handle->data);
}

static void on_day(uv_timer_t *timer)
{
	reload(timer->data);
}

static int find_files(agentboxd_tls *tls, abx_error **reterr)
{
	const agentboxd_settings *s = tls->s;
	bool given = s->tls_cert != NULL;

	tls->dir = abx__strf("%s/tls", s->state_dir);
	tls->cert = given ? abx__strdup(s->tls_cert)
			  : abx__strf("%s/tls/server.crt", s->state_dir);
	tls->key = given ? abx__strdup(s->tls_key)
			 : abx__strf("%s/tls/server.key", s->state_dir);
	tls->wildcard = abx__strf("*.%s", s->domain);
	if (!given)
		tls->ca = abx__strf("%s/tls/ca.crt", s->state_dir);
	if (!tls->dir || !tls->cert || !tls->key || !tls->wildcard ||
	    (!given && !tls->ca))
		return abx__error_nomem(reterr);
	collect_names(tls);
	return ABX_OK;
}

int agentboxd_tls_new(uv_loop_t *loop, const agentboxd_settings *s, const abx__log *log,
		      agentboxd_tls **ret, abx_error **reterr)
{
	agentboxd_tls *tls = abx__calloc(1, sizeof(*tls));
	int r;

	if (!tls)
		return abx__error_nomem(reterr);
	tls->s = s;
	tls->log = log;
	r = find_files(tls, reterr);
	if (r == ABX_OK)
		r = make_own(tls, reterr);
	if (r == ABX_OK)
		r = abx__tls_context_new(tls->cert, tls->key, true, &tls->context,
					 reterr);
	if (r < 0) {
		if (!tls->ca)
			abx__error_hint(reterr, "the account agentboxd runs as must be "
						"able to read both files");
		agentboxd_tls_free(tls);
		return r;
	}
	uv_signal_init(loop, &tls->hangup);
	uv_timer_init(loop, &tls->daily);
	tls->hangup.data = tls->daily.data = tls;
	uv_signal_start(&tls->hangup, on_hangup, SIGHUP);
	uv_timer_start(&tls->daily, on_day, DAY_MS, DAY_MS);
	*ret = tls;
	return ABX_OK;
}

abx__tls_context *agentboxd_tls_context(agentboxd_tls *tls)
{
	return tls->context;
}

const char *agentboxd_tls_ca(const agentboxd_tls *tls)
{
	return tls->ca;
}

void agentboxd_tls_close(agentboxd_tls *tls)
{
	if (!tls)
		return;
	uv_close((uv_handle_t *)&tls->hangup, NULL);
	uv_close((uv_handle_t *)&tls->daily, NULL);
}

void agentboxd_tls_free(agentboxd_tls *tls)
{
	if (!tls)
		return;
	abx__tls_context_free(tls->context);
	abx__free(tls->dir);
	abx__free(tls->cert);
	abx__free(tls->key);
	abx__free(tls->ca);
	abx__free(tls->wildcard);
	abx__free(tls);
}
