/*
 * agentboxd-children.c - the programs a supervisor runs, and their arguments.
 */
#include "agentboxd-children.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/str.h"

static char *self_path(void)
{
	char buf[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", buf, sizeof(buf) - 1);

	if (n <= 0)
		return NULL;
	buf[n] = '\0';
	return abx__strdup(buf);
}

/* agentbox-podd lies beside agentboxd in the build tree, and among the programs nobody
 * types in an installation. */
static char *podd_path(const agentboxd_settings *s)
{
	ABX_CLEANUP(abx__freep) char *self = NULL;
	ABX_CLEANUP(abx__freep) char *beside = NULL;
	char *slash;

	if (s->podd_program)
		return abx__strdup(s->podd_program);
	self = self_path();
	slash = self ? strrchr(self, '/') : NULL;
	if (!slash)
		return NULL;
	*slash = '\0';
	beside = abx__strf("%s/agentbox-podd", self);
	if (beside && access(beside, X_OK) == 0)
		return abx_take(beside);
	return abx__strdup(ABX_LIBEXECDIR "/agentbox-podd");
}

bool agentboxd_child_add(agentboxd_child *c, char *text)
{
	if (!text || c->argc + 1 >= AGENTBOXD_CHILD_ARGS_MAX) {
		abx__free(text);
		return false;
	}
	c->argv[c->argc++] = text;
	return true;
}

static bool add_pair(agentboxd_child *c, const char *name, const char *value)
{
	return agentboxd_child_add(c, abx__strdup(name)) &&
	       agentboxd_child_add(c, abx__strdup(value));
}

static bool add_account(agentboxd_child *c, const agentboxd_account *account)
{
	return agentboxd_child_add(c, abx__strdup("--account")) &&
	       agentboxd_child_add(c, abx__strf("%u:%u", account->uid, account->gid));
}

bool agentboxd_child_podd(agentboxd_child *c, const agentboxd_settings *s,
			  const agentboxd_account *account)
{
	bool ok = agentboxd_child_add(c, podd_path(s)) &&
		  add_pair(c, "--state-dir", s->state_dir) &&
		  add_pair(c, "--socket", s->podd_socket) && add_account(c, account);

	for (size_t i = 0; ok && i < s->podd_arg_count; i++)
		ok = agentboxd_child_add(c, abx__strdup(s->podd_args[i]));
	return ok;
}

static const char *listen_option(const agentboxd_address *a)
{
	return a->tls ? "--tls-listen" : a->e2b_only ? "--e2b-listen" : "--listen";
}

static bool add_addresses(agentboxd_child *c, const agentboxd_settings *s)
{
	bool ok = true, plain = false;

	for (size_t i = 0; ok && i < s->listen_count; i++) {
		const agentboxd_address *a = &s->listen[i];

		plain = plain || !a->tls;
		/* The default address stays the child's own default, which it may do
		 * without. */
		if (a->fallback)
			continue;
		ok = agentboxd_child_add(c, abx__strdup(listen_option(a))) &&
		     agentboxd_child_add(
			     c, abx__strf(strchr(a->ip, ':') ? "[%s]:%u" : "%s:%u", a->ip,
					  a->port));
	}
	return ok && !plain ? add_pair(c, "--listen", "none") : ok;
}

static bool add_tls(agentboxd_child *c, const agentboxd_settings *s)
{
	if (!add_pair(c, "--domain", s->domain))
		return false;
	return !s->tls_cert || (add_pair(c, "--tls-cert", s->tls_cert) &&
				add_pair(c, "--tls-key", s->tls_key));
}

static bool add_console(agentboxd_child *c, const agentboxd_settings *s)
{
	return (!s->jwt_secret_file ||
		add_pair(c, "--jwt-secret-file", s->jwt_secret_file)) &&
	       (!s->console_url || add_pair(c, "--console-url", s->console_url)) &&
	       (!s->public_url || add_pair(c, "--public-url", s->public_url));
}

static bool add_limits(agentboxd_child *c, const agentboxd_settings *s)
{
	return (!s->max_timeout || add_pair(c, "--max-timeout", s->max_timeout)) &&
	       (!s->instance_types ||
		add_pair(c, "--instance-types", s->instance_types)) &&
	       (!s->quotas || add_pair(c, "--quotas", s->quotas));
}

bool agentboxd_child_main(agentboxd_child *c, const agentboxd_settings *s,
			  const agentboxd_account *account)
{
	bool ok = agentboxd_child_add(c, self_path()) &&
		  add_pair(c, "--state-dir", s->state_dir) &&
		  add_pair(c, "--socket", s->socket_path) &&
		  add_pair(c, "--podd-socket", s->podd_socket) &&
		  add_pair(c, "--cluster-id", s->cluster_id) &&
		  add_pair(c, "--engine", s->engine) && add_addresses(c, s) &&
		  add_tls(c, s) && add_console(c, s) && add_limits(c, s);

	if (ok && geteuid() == 0)
		ok = add_account(c, account);
	if (ok && s->allow_remote)
		ok = agentboxd_child_add(c, abx__strdup("--allow-remote"));
	if (ok && s->with_base)
		ok = agentboxd_child_add(c, abx__strdup("--with-base"));
	if (ok && s->debug)
		ok = agentboxd_child_add(c, abx__strdup("--debug"));
	return ok;
}

void agentboxd_child_done(agentboxd_child *c)
{
	for (size_t i = 0; i < c->argc; i++)
		abx__free(c->argv[i]);
	if (c->ready_fd >= 0)
		close(c->ready_fd);
}

void agentboxd_child_become(char **argv, int ready_fd)
{
	const abx__log log = { .write = abx__log_json_line,
			       .userdata = (void *)(intptr_t)STDERR_FILENO,
			       .level = ABX__LOG_ERROR };
	char number[16];
	sigset_t none;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0); /* a terminal's ^C is the supervisor's to pass on */
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	if (ready_fd >= 0) {
		size_t n = 0;

		fcntl(ready_fd, F_SETFD, 0);
		snprintf(number, sizeof(number), "%d", ready_fd);
		while (argv[n])
			n++;
		argv[n++] = (char *)"--ready-fd";
		argv[n++] = number;
		argv[n] = NULL;
	}
	execv(argv[0], argv);
	abx__log_error(&log, "cannot be run", "program=%s error=\"%s\"", argv[0],
		       strerror(errno));
	_exit(127);
}
