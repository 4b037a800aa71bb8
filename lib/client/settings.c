/*
 * settings.c - options, environment and context file become one set of addresses.
 */
#include "client/settings.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

#define DEFAULT_REQUEST_MS 60000
/* A create may wait in its pool's queue: 2 minutes (contract native-api, startupTimeout),
 * and the answer shall be the platform's. */
#define DEFAULT_CREATE_MS 150000
#define SOCKET_NAME "agentboxd.sock"

/* The settings as they were given, before they become addresses. All borrowed. */
struct given {
	const char *socket_path, *cluster_api, *endpoint, *cluster, *api_key,
		*auth_scheme;
	const char *e2b_api_url, *e2b_domain, *e2b_sandbox_url, *e2b_key;
	const char *state_dir;
};

void abx__settings_done(abx__settings *settings)
{
	abx__free(settings->socket_path);
	abx__free(settings->address);
	abx__free(settings->native_base);
	abx__free(settings->console_base);
	abx__free(settings->e2b_base);
	abx__free(settings->data_base);
	abx__free(settings->domain);
	abx__free(settings->public_base);
	abx__free(settings->cluster);
	abx__free(settings->context);
	abx__free(settings->state_dir);
	abx__free(settings->ca_file);
	abx__secret_free(settings->key);
	memset(settings, 0, sizeof(*settings));
}

/* Without slashes at the end, and without what a console's own pages append to an
 * endpoint. */
char *abx__settings_normalised(const char *url)
{
	char *copy = abx__strdup(url);
	char *tail;
	size_t len;

	if (!copy)
		return NULL;
	tail = strstr(copy, "/api/clusters");
	if (tail && (tail[13] == '\0' || tail[13] == '/') &&
	    (tail[13] == '\0' || !strchr(tail + 14, '/') || !strchr(tail + 14, '/')[1]))
		*tail = '\0';
	for (len = strlen(copy); len && copy[len - 1] == '/'; len--)
		copy[len - 1] = '\0';
	return copy;
}

int abx__settings_check_url(const char *what, const char *url, abx_error **reterr)
{
	CURLU *parsed;
	char *scheme = NULL;
	int r = ABX_OK;

	parsed = curl_url();
	if (!parsed)
		return abx__error_nomem(reterr);
	if (curl_url_set(parsed, CURLUPART_URL, url, 0) != CURLUE_OK ||
	    curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
	    (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)) {
		r = abx__error_set(reterr, ABX_EINVAL,
				   "%s: '%s' is not an http or https URL", what, url);
		abx__error_hint(reterr, "write it like http://127.0.0.1:8080");
	}
	curl_free(scheme);
	curl_url_cleanup(parsed);
	return r;
}

/* "scheme://host:port" of a URL that abx__settings_check_url() passed. */
static char *origin(const char *url)
{
	const char *host = strstr(url, "://");
	const char *end = host ? strchr(host + 3, '/') : NULL;

	return end ? abx__strndup(url, (size_t)(end - url)) : abx__strdup(url);
}

static const char *scheme_of(const char *url)
{
	return abx__str_starts(url, "https:") ? "https" : "http";
}

static const char *env(const abx_client_options *opts, const char *name)
{
	const char *value;

	if (opts->flags & ABX_CLIENT_NO_ENVIRONMENT)
		return NULL;
	value = getenv(name);
	return value && *value ? value : NULL;
}

static const char *pick(const char *option, const char *environment)
{
	return option && *option ? option : environment;
}

static bool has_address(const struct given *given)
{
	return given->socket_path || given->cluster_api || given->endpoint ||
	       given->e2b_api_url || given->e2b_domain;
}

/* Explicit addresses shut out every other kind of address, wherever that one was set. */
static void gather_addresses(struct given *given, const abx_client_options *opts)
{
	given->socket_path = pick(opts->socket_path, NULL);
	given->cluster_api = pick(opts->cluster_api, NULL);
	given->endpoint = pick(opts->endpoint, NULL);
	given->e2b_api_url = pick(opts->e2b_api_url, NULL);
	given->e2b_domain = pick(opts->e2b_domain, NULL);
	given->state_dir = pick(opts->state_dir, NULL);
	if (has_address(given) || given->state_dir || opts->context)
		return;
	given->socket_path = env(opts, "AGENTBOX_SOCKET");
	given->cluster_api =
		pick(env(opts, "AGENTBOX_CLUSTER_API"), env(opts, "AGENTBOX_API_URL"));
	given->endpoint = env(opts, "AGENTBOX_ENDPOINT");
	given->state_dir = env(opts, "AGENTBOX_STATE_DIR");
	if (has_address(given) || given->state_dir)
		return;
	given->e2b_api_url = env(opts, "E2B_API_URL");
	given->e2b_domain = env(opts, "E2B_DOMAIN");
}

static void gather(struct given *given, const abx_client_options *opts)
{
	gather_addresses(given, opts);
	given->cluster = pick(opts->cluster, env(opts, "AGENTBOX_CLUSTER"));
	given->api_key = pick(opts->api_key, env(opts, "AGENTBOX_API_KEY"));
	given->auth_scheme = pick(opts->auth_scheme, env(opts, "AGENTBOX_AUTH_SCHEME"));
	if (!given->e2b_api_url && !given->e2b_domain)
		return;
	/* An E2B address never gets an AGENTBOX key from the environment. */
	given->e2b_sandbox_url =
		pick(opts->e2b_sandbox_url, env(opts, "E2B_SANDBOX_URL"));
	given->api_key = pick(opts->api_key, env(opts, "E2B_API_KEY"));
}

static void add_context(struct given *given, const abx__context *context)
{
	if (!has_address(given)) {
		given->cluster_api = context->cluster_api;
		given->endpoint = context->endpoint;
	}
	if (given->e2b_api_url || given->e2b_domain || given->socket_path ||
	    !has_address(given))
		return;
	given->cluster = given->cluster ? given->cluster : context->cluster;
	given->auth_scheme =
		given->auth_scheme ? given->auth_scheme : context->auth_scheme;
	if (!given->api_key && context->key)
		given->api_key = abx__secret_reveal(context->key);
}

/* ---- one kind of address each ---- */

static int use_cluster_api(abx__settings *s, const struct given *given,
			   abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *base = NULL;
	int r;

	r = abx__settings_check_url("the cluster's API address", given->cluster_api,
				    reterr);
	if (r < 0)
		return r;
	base = abx__settings_normalised(given->cluster_api);
	if (!base)
		return abx__error_nomem(reterr);
	s->native_base = abx__strf("%s/v1", base);
	s->e2b_base = abx__strf("%s/e2b", base);
	s->data_base = abx__strdup(base);
	s->public_base = abx__strdup(base);
	s->scheme = scheme_of(base);
	s->address = abx_take(base);
	s->form = ABX__DATA_HEADERS;
	if (!s->native_base || !s->e2b_base || !s->data_base || !s->public_base)
		return abx__error_nomem(reterr);
	return ABX_OK;
}

static int use_endpoint(abx__settings *s, const struct given *given, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *base = NULL;
	ABX_CLEANUP(abx__freep) char *cluster = NULL;
	int r;

	r = abx__settings_check_url("the console's address", given->endpoint, reterr);
	if (r < 0)
		return r;
	base = abx__settings_normalised(given->endpoint);
	cluster = given->cluster ? abx__url_encode(given->cluster) : NULL;
	if (!base || (given->cluster && !cluster))
		return abx__error_nomem(reterr);
	s->native_base =
		cluster ? abx__strf("%s/api/clusters/%s/v1", base, cluster) : NULL;
	s->console_base = abx__strf("%s/api", base);
	s->e2b_base = abx__strf("%s/agent-sandbox/api/e2b", base);
	s->data_base = abx__strf("%s/agent-sandbox/api/data", base);
	s->public_base = abx__strdup(s->data_base);
	s->scheme = scheme_of(base);
	s->address = abx_take(base);
	s->form = ABX__DATA_PATH;
	s->is_bearer = true;
	if ((cluster && !s->native_base) || !s->console_base || !s->e2b_base ||
	    !s->public_base)
		return abx__error_nomem(reterr);
	return ABX_OK;
}

/* Where sandboxes are behind an E2B API: a URL for all, a domain (one with a path is a
   gateway's), or the API's own origin. */
static int use_e2b_data(abx__settings *s, const struct given *given, abx_error **reterr)
{
	if (given->e2b_sandbox_url) {
		int r = abx__settings_check_url("E2B_SANDBOX_URL", given->e2b_sandbox_url,
						reterr);

		if (r < 0)
			return r;
		s->form = ABX__DATA_HEADERS;
		s->data_base = abx__settings_normalised(given->e2b_sandbox_url);
		s->public_base = abx__strdup(s->data_base);
		return s->data_base && s->public_base ? ABX_OK : abx__error_nomem(reterr);
	}
	if (given->e2b_domain && strchr(given->e2b_domain, '/')) {
		s->form = ABX__DATA_PATH;
		s->data_base = abx__strf("%s://%s", s->scheme, given->e2b_domain);
		s->public_base = abx__strdup(s->data_base);
		return s->data_base && s->public_base ? ABX_OK : abx__error_nomem(reterr);
	}
	if (given->e2b_domain) {
		s->form = ABX__DATA_HOST;
		s->domain = abx__strdup(given->e2b_domain);
		return s->domain ? ABX_OK : abx__error_nomem(reterr);
	}
	s->form = ABX__DATA_HEADERS;
	s->data_base = origin(s->e2b_base);
	s->public_base = abx__strdup(s->data_base);
	return s->data_base && s->public_base ? ABX_OK : abx__error_nomem(reterr);
}

static int use_e2b(abx__settings *s, const struct given *given, const char *https,
		   abx_error **reterr)
{
	int r;

	if (given->e2b_api_url) {
		r = abx__settings_check_url("E2B_API_URL", given->e2b_api_url, reterr);
		if (r < 0)
			return r;
		s->e2b_base = abx__settings_normalised(given->e2b_api_url);
	} else {
		s->e2b_base = abx__strf("https://api.%s", given->e2b_domain);
	}
	s->address = abx__strdup(s->e2b_base);
	if (!s->e2b_base || !s->address)
		return abx__error_nomem(reterr);
	s->scheme = scheme_of(s->e2b_base);
	if (https)
		s->scheme = abx__str_eq(https, "false") ? "http" : "https";
	return use_e2b_data(s, given, reterr);
}

int abx__settings_use_socket(abx__settings *s, const char *path)
{
	s->socket_path = abx__strdup(path);
	s->address = abx__strf("unix:%s", path);
	s->native_base = abx__strdup("http://localhost/v1");
	s->e2b_base = abx__strdup("http://localhost/e2b");
	s->data_base = abx__strdup("http://localhost");
	s->scheme = "http";
	s->form = ABX__DATA_HEADERS;
	if (!s->socket_path || !s->address || !s->native_base || !s->e2b_base ||
	    !s->data_base)
		return ABX_ENOMEM;
	return ABX_OK;
}

static int find_state_dir(abx__settings *s, const struct given *given,
			  const abx_client_options *opts)
{
	const char *state = env(opts, "XDG_STATE_HOME");
	const char *home = env(opts, "HOME");

	if (given->state_dir)
		s->state_dir = abx__strdup(given->state_dir);
	else if (geteuid() == 0)
		s->state_dir = abx__strdup("/var/lib/agentbox");
	else if (state)
		s->state_dir = abx__strf("%s/agentbox", state);
	else
		s->state_dir = abx__strf("%s/.local/state/agentbox", home ? home : "");
	return s->state_dir ? ABX_OK : ABX_ENOMEM;
}

static int use_address(abx__settings *s, const struct given *given,
		       const abx_client_options *opts, abx_error **reterr)
{
	if (given->socket_path)
		return abx__settings_use_socket(s, given->socket_path) < 0
			       ? abx__error_nomem(reterr)
			       : ABX_OK;
	if (given->cluster_api)
		return use_cluster_api(s, given, reterr);
	if (given->endpoint)
		return use_endpoint(s, given, reterr);
	if (given->e2b_api_url || given->e2b_domain)
		return use_e2b(s, given, env(opts, "E2B_HTTPS"), reterr);
	return find_state_dir(s, given, opts) < 0 ? abx__error_nomem(reterr) : ABX_OK;
}

static int use_credential(abx__settings *s, const struct given *given,
			  const abx_client_options *opts, abx_error **reterr)
{
	const char *key = given->api_key;

	/* The local engine's socket is its own credential; only a key given for it is
	 * sent. */
	if (s->state_dir)
		key = pick(opts->api_key, NULL);
	if (key && strpbrk(key, "\r\n"))
		return abx__error_set(reterr, ABX_EINVAL,
				      "the API key has a line end in it");
	if (given->auth_scheme) {
		if (!abx__str_eq(given->auth_scheme, "api-key") &&
		    !abx__str_eq(given->auth_scheme, "bearer"))
			return abx__error_set(
				reterr, ABX_EINVAL,
				"auth scheme '%s' is neither \"api-key\" nor \"bearer\"",
				given->auth_scheme);
		s->is_bearer = abx__str_eq(given->auth_scheme, "bearer");
	}
	if (key && !(s->key = abx__secret_new(key, strlen(key))))
		return abx__error_nomem(reterr);
	if (given->cluster && !(s->cluster = abx__strdup(given->cluster)))
		return abx__error_nomem(reterr);
	return ABX_OK;
}

int abx__settings_load(abx__settings *s, const abx_client_options *opts,
		       abx_error **reterr)
{
	ABX_CLEANUP(abx__context_done) abx__context context = { 0 };
	struct given given = { 0 };
	int r;

	s->request_timeout_ms =
		opts->request_timeout_ms ? opts->request_timeout_ms : DEFAULT_REQUEST_MS;
	if (opts->request_timeout_ms == ABX_NO_TIMEOUT)
		s->request_timeout_ms = 0;
	s->create_timeout_ms =
		opts->request_timeout_ms ? s->request_timeout_ms : DEFAULT_CREATE_MS;
	s->connect_timeout_ms = opts->connect_timeout_ms;
	s->ca_file = abx__strdup(env(opts, "SSL_CERT_FILE"));
	if (!s->ca_file && env(opts, "SSL_CERT_FILE"))
		return abx__error_nomem(reterr);
	gather(&given, opts);
	if (!(opts->flags & ABX_CLIENT_NO_CONTEXT) && !given.state_dir) {
		r = abx__context_load(&context, opts->config_path, opts->context, reterr);
		if (r < 0)
			return r;
		add_context(&given, &context);
	}
	r = use_address(s, &given, opts, reterr);
	if (r < 0)
		return r;
	s->context = abx_take(context.name);
	return use_credential(s, &given, opts, reterr);
}
