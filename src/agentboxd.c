/*
 * agentboxd.c - the daemon's command line: what it is to do and with what.
 */
#include "agentboxd.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "model/duration.h"
#include "serve/jwt.h"

#define MAX_TIMEOUT_LEAST_MS 300000

static const char usage[] =
	"Usage: agentboxd [OPTION]...\n"
	"Serves sandboxes: the native API, the E2B API and the way into every sandbox.\n"
	"\n"
	"  --state-dir DIR        everything of this instance (default "
	"$AGENTBOX_STATE_DIR;\n"
	"                         without it /var/lib/agentbox for root, else\n"
	"                         $XDG_STATE_HOME/agentbox)\n"
	"  --listen IP:PORT       an address for all surfaces; may be repeated, \"none\" "
	"for the\n"
	"                         Unix socket alone (default 127.0.0.1:8080)\n"
	"  --e2b-listen IP:PORT   an address for the E2B API and the data plane alone\n"
	"  --tls-listen IP:PORT   an address for all surfaces over TLS, HTTP/1.1 and "
	"HTTP/2; may\n"
	"                         be repeated\n"
	"  --domain NAME          what names of sandboxes end in: PORT-ID.NAME, and "
	"api.NAME for\n"
	"                         the E2B API (default agentbox.localhost)\n"
	"  --tls-cert FILE        the certificate with its chain, PEM; read again on "
	"SIGHUP and\n"
	"                         daily (default: one for NAME and *.NAME, signed by the "
	"own CA\n"
	"                         in DIR/tls/ca.crt)\n"
	"  --tls-key FILE         its key, PEM\n"
	"  --jwt-secret-file FILE what console sessions are signed with (HS256), at "
	"least 32\n"
	"                         bytes in a file nobody else may read (default: no "
	"sessions)\n"
	"  --console-url URL      where people look at this cluster, for links in "
	"answers\n"
	"  --public-url URL       what clients reach this server as, for addresses in "
	"answers and\n"
	"                         documentation (default: the first address it listens "
	"on)\n"
	"  --allow-remote         addresses off loopback are meant; a key is then "
	"required there\n"
	"                         for everything\n"
	"  --socket PATH          the Unix socket that needs no key (default "
	"DIR/agentboxd.sock)\n"
	"  --engine local|fake    what runs Pods (default local)\n"
	"  --podd-socket PATH     where agentbox-podd listens (default DIR/podd.sock)\n"
	"  --with-base            make the env \"base\" over this machine's own "
	"programs, "
	"as long\n"
	"                         as there is no env\n"
	"  --max-timeout TIME     the longest idle timeout a request may ask for, like "
	"24h; at\n"
	"                         least 5m (default: any)\n"
	"  --cluster-id ID        this cluster's name (default local)\n"
	"  --instance-types FILE  the catalogue pools may be sized by (YAML or JSON)\n"
	"  --quotas FILE          how much of it who may have (YAML or JSON)\n"
	"  --account NAME|UID[:GID]  who to be instead of root (default agentbox, else "
	"nobody)\n"
	"  --log-file PATH        JSON lines go there (default: standard error)\n"
	"  --debug                say more in the log\n"
	"  --ready-fd N           write \"ready\" to this descriptor once requests are "
	"answered\n"
	"  --foreground           stay there (the default)\n"
	"  --daemon               go into the background once requests are answered\n"
	"\n"
	"  --supervise            start agentbox-podd and agentboxd and keep them "
	"running\n"
	"  --podd PROGRAM         the agentbox-podd to start (default: beside "
	"agentboxd)\n"
	"  --podd-arg ARG         hand this on to it; may be repeated\n"
	"  --stop                 end the instance of --state-dir: daemons and Pods\n"
	"  --purge                with --stop: remove the state directory as well\n"
	"\n"
	"  --version, --help\n";

enum {
	OPT_STATE_DIR = 256,
	OPT_LISTEN,
	OPT_E2B_LISTEN,
	OPT_TLS_LISTEN,
	OPT_DOMAIN,
	OPT_TLS_CERT,
	OPT_TLS_KEY,
	OPT_JWT_SECRET,
	OPT_CONSOLE_URL,
	OPT_PUBLIC_URL,
	OPT_ALLOW_REMOTE,
	OPT_SOCKET,
	OPT_ENGINE,
	OPT_PODD_SOCKET,
	OPT_WITH_BASE,
	OPT_MAX_TIMEOUT,
	OPT_CLUSTER_ID,
	OPT_INSTANCE_TYPES,
	OPT_QUOTAS,
	OPT_ACCOUNT,
	OPT_LOG_FILE,
	OPT_DEBUG,
	OPT_READY_FD,
	OPT_FOREGROUND,
	OPT_DAEMON,
	OPT_SUPERVISE,
	OPT_PODD,
	OPT_PODD_ARG,
	OPT_STOP,
	OPT_PURGE,
	OPT_VERSION,
	OPT_HELP,
};

static const struct option options[] = {
	{ "state-dir", required_argument, NULL, OPT_STATE_DIR },
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "e2b-listen", required_argument, NULL, OPT_E2B_LISTEN },
	{ "tls-listen", required_argument, NULL, OPT_TLS_LISTEN },
	{ "domain", required_argument, NULL, OPT_DOMAIN },
	{ "tls-cert", required_argument, NULL, OPT_TLS_CERT },
	{ "tls-key", required_argument, NULL, OPT_TLS_KEY },
	{ "jwt-secret-file", required_argument, NULL, OPT_JWT_SECRET },
	{ "console-url", required_argument, NULL, OPT_CONSOLE_URL },
	{ "public-url", required_argument, NULL, OPT_PUBLIC_URL },
	{ "allow-remote", no_argument, NULL, OPT_ALLOW_REMOTE },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "engine", required_argument, NULL, OPT_ENGINE },
	{ "podd-socket", required_argument, NULL, OPT_PODD_SOCKET },
	{ "with-base", no_argument, NULL, OPT_WITH_BASE },
	{ "max-timeout", required_argument, NULL, OPT_MAX_TIMEOUT },
	{ "cluster-id", required_argument, NULL, OPT_CLUSTER_ID },
	{ "instance-types", required_argument, NULL, OPT_INSTANCE_TYPES },
	{ "quotas", required_argument, NULL, OPT_QUOTAS },
	{ "account", required_argument, NULL, OPT_ACCOUNT },
	{ "log-file", required_argument, NULL, OPT_LOG_FILE },
	{ "debug", no_argument, NULL, OPT_DEBUG },
	{ "ready-fd", required_argument, NULL, OPT_READY_FD },
	{ "foreground", no_argument, NULL, OPT_FOREGROUND },
	{ "daemon", no_argument, NULL, OPT_DAEMON },
	{ "supervise", no_argument, NULL, OPT_SUPERVISE },
	{ "podd", required_argument, NULL, OPT_PODD },
	{ "podd-arg", required_argument, NULL, OPT_PODD_ARG },
	{ "stop", no_argument, NULL, OPT_STOP },
	{ "purge", no_argument, NULL, OPT_PURGE },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

static int die(const abx_error *err)
{
	const char *hint = abx_error_hint(err);

	fprintf(stderr, "agentboxd: %s\n", abx_error_message(err));
	if (hint)
		fprintf(stderr, "  %s\n", hint);
	return 1;
}

/* ---- addresses ---- */

/* "IP:PORT", "[IPv6]:PORT". */
static int parse_address(const char *text, agentboxd_address *ret, abx_error **reterr)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	const char *ip = text;
	uint64_t port;

	if (len > 2 && ip[0] == '[' && ip[len - 1] == ']') {
		ip++;
		len -= 2;
	}
	if (!colon || len == 0 || len >= sizeof(ret->ip) ||
	    abx__parse_u64(colon + 1, 0, 65535, &port) < 0)
		return abx__error_set(reterr, ABX_EINVAL, "\"%s\" is not IP:PORT", text);
	memcpy(ret->ip, ip, len);
	ret->ip[len] = '\0';
	ret->port = (unsigned short)port;
	return ABX_OK;
}

static int add_address(agentboxd_settings *s, const char *text, bool e2b_only, bool tls,
		       abx_error **reterr)
{
	agentboxd_address *address = &s->listen[s->listen_count];
	int r;

	if (s->listen_count == AGENTBOXD_LISTEN_MAX)
		return abx__error_set(reterr, ABX_EINVAL, "no more than %d addresses",
				      AGENTBOXD_LISTEN_MAX);
	r = parse_address(text, address, reterr);
	if (r < 0)
		return r;
	address->e2b_only = e2b_only;
	address->tls = tls;
	s->listen_count++;
	return ABX_OK;
}

/* Off loopback only when it is meant. */
static int check_addresses(const agentboxd_settings *s, abx_error **reterr)
{
	for (size_t i = 0; i < s->listen_count; i++) {
		const char *ip = s->listen[i].ip;

		if (s->allow_remote || strncmp(ip, "127.", 4) == 0 ||
		    strcmp(ip, "::1") == 0)
			continue;
		abx__error_set(reterr, ABX_EDENIED, "%s is not a loopback address", ip);
		abx__error_hint(reterr, "with --allow-remote it is served, and a key is "
					"required there for "
					"everything; over plain HTTP (--listen) keys "
					"travel unsealed, over TLS (--tls-listen) they "
					"do not");
		return ABX_EDENIED;
	}
	return ABX_OK;
}

/* ---- options ---- */

static int set_text(char **field, const char *value, abx_error **reterr)
{
	abx__free(*field);
	*field = abx__strdup(value);
	return *field ? ABX_OK : abx__error_nomem(reterr);
}

/* Links are made by putting a path behind it. */
static int take_url(const char **field, const char *value, abx_error **reterr)
{
	size_t len = strlen(value);

	if ((!abx__str_starts(value, "http://") && !abx__str_starts(value, "https://")) ||
	    value[len - 1] == '/' || strpbrk(value, "?# "))
		return abx__error_set(reterr, ABX_EINVAL,
				      "\"%s\" is no http address, without a slash at "
				      "its end",
				      value);
	*field = value;
	return ABX_OK;
}

static int take_where(agentboxd_settings *s, int opt, const char *value, bool *none,
		      abx_error **reterr)
{
	switch (opt) {
	case OPT_STATE_DIR:
		return set_text(&s->state_dir, value, reterr);
	case OPT_SOCKET:
		return set_text(&s->socket_path, value, reterr);
	case OPT_PODD_SOCKET:
		return set_text(&s->podd_socket, value, reterr);
	case OPT_LOG_FILE:
		return set_text(&s->log_file, value, reterr);
	case OPT_LISTEN:
		if (strcmp(value, "none") == 0) {
			*none = true;
			return ABX_OK;
		}
		return add_address(s, value, false, false, reterr);
	case OPT_E2B_LISTEN:
		return add_address(s, value, true, false, reterr);
	case OPT_TLS_LISTEN:
		return add_address(s, value, false, true, reterr);
	case OPT_TLS_CERT:
		return set_text(&s->tls_cert, value, reterr);
	case OPT_TLS_KEY:
		return set_text(&s->tls_key, value, reterr);
	case OPT_JWT_SECRET:
		return set_text(&s->jwt_secret_file, value, reterr);
	case OPT_INSTANCE_TYPES:
		return set_text(&s->instance_types, value, reterr);
	case OPT_QUOTAS:
		return set_text(&s->quotas, value, reterr);
	default:
		return 1;
	}
}

static int take_number(agentboxd_settings *s, const char *value, abx_error **reterr)
{
	uint64_t fd;

	if (abx__parse_u64(value, 0, 1023, &fd) < 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "--ready-fd \"%s\" is no descriptor", value);
	s->ready_fd = (int)fd;
	return ABX_OK;
}

static int take_max_timeout(agentboxd_settings *s, const char *value, abx_error **reterr)
{
	if (abx__duration_parse(value, &s->max_timeout_ms, reterr) < 0)
		return abx__error_prefix(reterr, "--max-timeout");
	/* Less than what a request without a timeout gets would refuse those. */
	if (s->max_timeout_ms < MAX_TIMEOUT_LEAST_MS)
		return abx__error_set(reterr, ABX_EINVAL,
				      "--max-timeout \"%s\" is less than 5m", value);
	s->max_timeout = value;
	return ABX_OK;
}

static int take_what(agentboxd_settings *s, int opt, const char *value,
		     abx_error **reterr)
{
	switch (opt) {
	case OPT_ALLOW_REMOTE:
		s->allow_remote = true;
		break;
	case OPT_ENGINE:
		s->engine = value;
		if (strcmp(value, "local") != 0 && strcmp(value, "fake") != 0)
			return abx__error_set(reterr, ABX_EINVAL,
					      "engine \"%s\" is neither local nor fake",
					      value);
		break;
	case OPT_WITH_BASE:
		s->with_base = true;
		break;
	case OPT_MAX_TIMEOUT:
		return take_max_timeout(s, value, reterr);
	case OPT_CLUSTER_ID:
		s->cluster_id = value;
		break;
	case OPT_DOMAIN:
		s->domain = value;
		break;
	case OPT_CONSOLE_URL:
		return take_url(&s->console_url, value, reterr);
	case OPT_PUBLIC_URL:
		return take_url(&s->public_url, value, reterr);
	case OPT_ACCOUNT:
		s->account = value;
		break;
	case OPT_DEBUG:
		s->debug = true;
		break;
	case OPT_READY_FD:
		return take_number(s, value, reterr);
	case OPT_DAEMON:
	case OPT_FOREGROUND:
		s->daemon = opt == OPT_DAEMON;
		break;
	case OPT_SUPERVISE:
		s->supervise = true;
		break;
	case OPT_PODD:
		s->podd_program = value;
		break;
	case OPT_PODD_ARG:
		if (s->podd_arg_count == AGENTBOXD_PODD_ARGS_MAX)
			return abx__error_set(reterr, ABX_EINVAL, "too many --podd-arg");
		s->podd_args[s->podd_arg_count++] = value;
		break;
	case OPT_STOP:
		s->stop = true;
		break;
	case OPT_PURGE:
		s->purge = true;
		break;
	default:
		break;
	}
	return ABX_OK;
}

static int default_state_dir(agentboxd_settings *s, abx_error **reterr)
{
	const char *named = getenv("AGENTBOX_STATE_DIR"); /* as the library has it */
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (named && *named)
		s->state_dir = abx__strdup(named);
	else if (geteuid() == 0)
		s->state_dir = abx__strdup("/var/lib/agentbox");
	else if (state && *state == '/')
		s->state_dir = abx__strf("%s/agentbox", state);
	else if (home && *home == '/')
		s->state_dir = abx__strf("%s/.local/state/agentbox", home);
	else
		return abx__error_set(reterr, ABX_EINVAL, "no HOME; name a --state-dir");
	return s->state_dir ? ABX_OK : abx__error_nomem(reterr);
}

/* The directory above all must be absolute: children and --daemon change the working
 * directory. */
static int make_absolute(char **path, abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *cwd = NULL;
	char buf[4096];

	if (!*path || **path == '/')
		return ABX_OK;
	if (!getcwd(buf, sizeof(buf)))
		return abx__error_errno(reterr, ABX_EIO, errno, "working directory");
	cwd = abx__strf("%s/%s", buf, *path);
	if (!cwd)
		return abx__error_nomem(reterr);
	abx__free(*path);
	*path = abx_take(cwd);
	return ABX_OK;
}

static bool has_plain(const agentboxd_settings *s)
{
	for (size_t i = 0; i < s->listen_count; i++) {
		if (!s->listen[i].tls)
			return true;
	}
	return false;
}

static bool has_tls(const agentboxd_settings *s)
{
	for (size_t i = 0; i < s->listen_count; i++) {
		if (s->listen[i].tls)
			return true;
	}
	return false;
}

static int check_tls(const agentboxd_settings *s, abx_error **reterr)
{
	if (!s->tls_cert != !s->tls_key)
		return abx__error_set(reterr, ABX_EINVAL,
				      "--tls-cert and --tls-key go together");
	if (s->tls_cert && !has_tls(s))
		return abx__error_set(reterr, ABX_EINVAL,
				      "--tls-cert goes with --tls-listen");
	if (s->domain[0] == '\0' || strchr(s->domain, '*') || strchr(s->domain, ':'))
		return abx__error_set(reterr, ABX_EINVAL,
				      "--domain \"%s\" is no host name", s->domain);
	return ABX_OK;
}

static int fill_defaults(agentboxd_settings *s, bool none, abx_error **reterr)
{
	int r = s->state_dir ? ABX_OK : default_state_dir(s, reterr);

	if (r == ABX_OK)
		r = make_absolute(&s->state_dir, reterr);
	if (r == ABX_OK)
		r = make_absolute(&s->log_file, reterr);
	if (r == ABX_OK)
		r = make_absolute(&s->tls_cert, reterr);
	if (r == ABX_OK)
		r = make_absolute(&s->tls_key, reterr);
	if (r == ABX_OK)
		r = make_absolute(&s->jwt_secret_file, reterr);
	if (r == ABX_OK)
		r = make_absolute(&s->instance_types, reterr);
	if (r == ABX_OK)
		r = make_absolute(&s->quotas, reterr);
	if (r < 0)
		return r;
	if (!s->socket_path)
		s->socket_path = abx__strf("%s/agentboxd.sock", s->state_dir);
	if (!s->podd_socket)
		s->podd_socket = abx__strf("%s/podd.sock", s->state_dir);
	if (s->daemon && !s->log_file)
		s->log_file = abx__strf("%s/agentboxd.log", s->state_dir);
	if (!s->socket_path || !s->podd_socket || (s->daemon && !s->log_file))
		return abx__error_nomem(reterr);
	if (!has_plain(s) && !none) {
		r = add_address(s, "127.0.0.1:8080", false, false, reterr);
		if (r == ABX_OK)
			s->listen[s->listen_count - 1].fallback = true;
	}
	if (r == ABX_OK)
		r = check_addresses(s, reterr);
	return r < 0 ? r : check_tls(s, reterr);
}

/* 1: go on; 0: it is done; negative: an error. */
static int parse_options(int argc, char **argv, agentboxd_settings *s, abx_error **reterr)
{
	bool none = false;
	int opt, r;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == '?')
			return abx__error_set(reterr, ABX_EINVAL, "see agentboxd --help");
		if (opt == OPT_HELP) {
			fputs(usage, stdout);
			return 0;
		}
		if (opt == OPT_VERSION) {
			printf("agentboxd %s\n", abx_version());
			return 0;
		}
		r = take_where(s, opt, optarg, &none, reterr);
		if (r == 1)
			r = take_what(s, opt, optarg, reterr);
		if (r < 0)
			return r;
	}
	if (optind < argc)
		return abx__error_set(reterr, ABX_EINVAL, "\"%s\" is not an option",
				      argv[optind]);
	if (s->purge && !s->stop)
		return abx__error_set(reterr, ABX_EINVAL, "--purge goes with --stop");
	r = fill_defaults(s, none, reterr);
	return r < 0 ? r : 1;
}

/* ---- the log ---- */

/* Standard error becomes the file. Opened before root is gone, so that the supervisor may
 * own it. */
static int redirect_log(const agentboxd_settings *s, abx_error **reterr)
{
	int fd;

	if (!s->log_file)
		return ABX_OK;
	fd = open(s->log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
		  0600);
	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "log file %s",
					s->log_file);
	if (fd != STDERR_FILENO)
		close(fd);
	return ABX_OK;
}

static int start(agentboxd_settings *s, abx_error **reterr)
{
	agentboxd_account account;
	int r = agentboxd_account_find(s->account, &account, reterr);

	if (r == ABX_OK)
		r = agentboxd_state_dir_make(s->state_dir, &account, reterr);
	if (r == ABX_OK && s->daemon)
		r = agentboxd_daemonize(s, reterr);
	if (r == ABX_OK)
		r = redirect_log(s, reterr);
	if (r < 0)
		return r;
	if (s->supervise)
		return agentboxd_supervise(s, &account);
	if (s->jwt_secret_file)
		r = abx__jwt_secret_load(s->jwt_secret_file, &s->jwt_secret, reterr);
	if (r == ABX_OK)
		r = agentboxd_rights_drop(&account, reterr);
	return r < 0 ? r : agentboxd_run(s);
}

int main(int argc, char **argv)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	agentboxd_settings s = { .engine = "local",
				 .cluster_id = "local",
				 .domain = "agentbox.localhost",
				 .ready_fd = -1 };
	int r;

	s.argc = argc;
	s.argv = argv;
	r = parse_options(argc, argv, &s, &err);
	if (r == 1)
		r = s.stop ? agentboxd_stop(&s) : start(&s, &err);
	abx__free(s.state_dir);
	abx__free(s.socket_path);
	abx__free(s.podd_socket);
	abx__free(s.log_file);
	abx__free(s.tls_cert);
	abx__free(s.tls_key);
	abx__free(s.jwt_secret_file);
	abx__free(s.instance_types);
	abx__free(s.quotas);
	abx__secret_free(s.jwt_secret);
	return r < 0 ? die(err) : r;
}
