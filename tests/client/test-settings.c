/*
 * test-settings.c - where settings come from and what they become.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <agentbox/agentbox.h>

#include "base/error.h"
#include "client/options.h"
#include "client/settings.h"

TestSuite(client_settings, .timeout = 20);

static char config[128];

static void clean_environment(void)
{
	static const char *const names[] = {
		"AGENTBOX_SOCKET",
		"AGENTBOX_CLUSTER_API",
		"AGENTBOX_API_URL",
		"AGENTBOX_ENDPOINT",
		"AGENTBOX_CLUSTER",
		"AGENTBOX_API_KEY",
		"AGENTBOX_AUTH_SCHEME",
		"AGENTBOX_STATE_DIR",
		"E2B_API_URL",
		"E2B_DOMAIN",
		"E2B_SANDBOX_URL",
		"E2B_API_KEY",
		"E2B_HTTPS",
		"XDG_CONFIG_HOME",
		"SSL_CERT_FILE",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	setenv("HOME", "/nonexistent", 1);
}

static void write_config(const char *text)
{
	int fd;

	snprintf(config, sizeof(config), "/tmp/abx-client-config-XXXXXX");
	fd = mkstemp(config);
	cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

struct want {
	const char *what;
	const char *env[4]; /* NAME=VALUE */
	abx_client_options opts;
	const char *config;
	int r;
	const char *message; /* part of it, or NULL */
	const char *address, *native, *e2b, *data, *domain, *key, *cluster, *context,
		*scheme, *ca;
	enum abx__data_form form;
	bool bearer;
};

static void same(const char *row, const char *what, const char *got, const char *wanted)
{
	if (wanted && *wanted == '-')
		cr_expect_null(got, "%s: %s is '%s'", row, what, got);
	else if (wanted)
		cr_expect(got && strcmp(got, wanted) == 0, "%s: %s is '%s', not '%s'",
			  row, what, got ? got : "NULL", wanted);
}

static void check(const struct want *want)
{
	abx__settings settings = { 0 };
	abx_client_options opts = want->opts;
	abx_error *err = NULL;
	char copy[128];
	int r;

	clean_environment();
	for (size_t i = 0; i < 4 && want->env[i]; i++) {
		snprintf(copy, sizeof(copy), "%s", want->env[i]);
		*strchr(copy, '=') = '\0';
		setenv(copy, strchr(want->env[i], '=') + 1, 1);
	}
	if (want->config) {
		write_config(want->config);
		opts.config_path = config;
	}
	r = abx__settings_load(&settings, &opts, &err);
	cr_expect(r == want->r, "%s: gave %d: %s", want->what, r, abx_error_message(err));
	if (want->message)
		cr_expect(strstr(abx_error_message(err), want->message) != NULL,
			  "%s: '%s'", want->what, abx_error_message(err));
	if (r >= 0) {
		same(want->what, "address", settings.address, want->address);
		same(want->what, "native_base", settings.native_base, want->native);
		same(want->what, "e2b_base", settings.e2b_base, want->e2b);
		same(want->what, "data_base", settings.data_base, want->data);
		same(want->what, "domain", settings.domain, want->domain);
		same(want->what, "key",
		     settings.key ? abx__secret_reveal(settings.key) : NULL, want->key);
		same(want->what, "cluster", settings.cluster, want->cluster);
		same(want->what, "context", settings.context, want->context);
		same(want->what, "scheme", settings.scheme, want->scheme);
		same(want->what, "ca_file", settings.ca_file, want->ca);
		cr_expect(settings.form == want->form, "%s: form %d", want->what,
			  settings.form);
		cr_expect(settings.is_bearer == want->bearer, "%s: bearer %d", want->what,
			  settings.is_bearer);
	}
	if (want->config)
		unlink(config);
	abx_error_free(err);
	abx__settings_done(&settings);
}

#define TWO                                                                     \
	"{\"contexts\":{\"a\":{\"clusterApi\":\"http://a\",\"apiKey\":\"ka\"}," \
	"\"b\":{\"endpoint\":\"http://b/api/clusters/"                          \
	"x\",\"apiKey\":\"kb\",\"cluster\":\"cb\"}}"

static const struct want rows[] = {
	{ .what = "options win",
	  .opts = { .cluster_api = "http://o:1/", .api_key = "ko" },
	  .env = { "AGENTBOX_CLUSTER_API=http://e", "AGENTBOX_API_KEY=ke" },
	  .address = "http://o:1",
	  .native = "http://o:1/v1",
	  .e2b = "http://o:1/e2b",
	  .data = "http://o:1",
	  .key = "ko",
	  .scheme = "http" },
	{ .what = "environment",
	  .env = { "AGENTBOX_CLUSTER_API=https://e", "AGENTBOX_API_KEY=ke" },
	  .address = "https://e",
	  .key = "ke",
	  .scheme = "https" },
	{ .what = "a CA of one's own",
	  .env = { "AGENTBOX_CLUSTER_API=https://e", "SSL_CERT_FILE=/ca.crt" },
	  .address = "https://e",
	  .ca = "/ca.crt" },
	{ .what = "a CA that is not read",
	  .env = { "SSL_CERT_FILE=/ca.crt" },
	  .opts = { .cluster_api = "https://o", .flags = ABX_CLIENT_NO_ENVIRONMENT },
	  .address = "https://o",
	  .ca = "-" },
	{ .what = "its other name",
	  .env = { "AGENTBOX_API_URL=http://e" },
	  .address = "http://e",
	  .key = "-" },
	{ .what = "socket",
	  .env = { "AGENTBOX_SOCKET=/run/s", "AGENTBOX_API_KEY=ke" },
	  .address = "unix:/run/s",
	  .native = "http://localhost/v1",
	  .key = "ke" },
	{ .what = "console",
	  .env = { "AGENTBOX_ENDPOINT=https://c/api/clusters/", "AGENTBOX_CLUSTER=x y",
		   "AGENTBOX_API_KEY=ke" },
	  .address = "https://c",
	  .native = "https://c/api/clusters/x%20y/v1",
	  .e2b = "https://c/agent-sandbox/api/e2b",
	  .data = "https://c/agent-sandbox/api/data",
	  .form = ABX__DATA_PATH,
	  .bearer = true,
	  .cluster = "x y" },
	{ .what = "console without cluster",
	  .opts = { .endpoint = "https://c" },
	  .native = "-",
	  .form = ABX__DATA_PATH,
	  .bearer = true },
	{ .what = "scheme forced",
	  .opts = { .cluster_api = "http://o", .auth_scheme = "bearer" },
	  .bearer = true },
	{ .what = "scheme wrong",
	  .opts = { .cluster_api = "http://o", .auth_scheme = "basic" },
	  .r = ABX_EINVAL,
	  .message = "'basic'" },
	{ .what = "not a URL",
	  .opts = { .cluster_api = "o:80" },
	  .r = ABX_EINVAL,
	  .message = "'o:80'" },
	{ .what = "ftp",
	  .opts = { .endpoint = "ftp://o" },
	  .r = ABX_EINVAL,
	  .message = "console" },
	{ .what = "key with a line end",
	  .opts = { .cluster_api = "http://o", .api_key = "a\r\nB: c" },
	  .r = ABX_EINVAL,
	  .message = "line end" },
	{ .what = "E2B",
	  .env = { "E2B_API_URL=http://e:3000", "E2B_API_KEY=e2b_1",
		   "AGENTBOX_API_KEY=ka" },
	  .address = "http://e:3000",
	  .native = "-",
	  .e2b = "http://e:3000",
	  .data = "http://e:3000",
	  .key = "e2b_1" },
	{ .what = "E2B behind a path",
	  .env = { "E2B_API_URL=http://g/agent-sandbox/api/e2b" },
	  .e2b = "http://g/agent-sandbox/api/e2b",
	  .data = "http://g" },
	{ .what = "E2B domain",
	  .env = { "E2B_DOMAIN=x.dev" },
	  .e2b = "https://api.x.dev",
	  .domain = "x.dev",
	  .form = ABX__DATA_HOST,
	  .scheme = "https" },
	{ .what = "E2B gateway",
	  .env = { "E2B_API_URL=http://g/api", "E2B_DOMAIN=g/agent-sandbox/api/data" },
	  .data = "http://g/agent-sandbox/api/data",
	  .form = ABX__DATA_PATH },
	{ .what = "E2B https",
	  .env = { "E2B_API_URL=http://g/api", "E2B_DOMAIN=g/d", "E2B_HTTPS=true" },
	  .data = "https://g/d",
	  .form = ABX__DATA_PATH,
	  .scheme = "https" },
	{ .what = "E2B sandbox URL",
	  .env = { "E2B_API_URL=http://g", "E2B_SANDBOX_URL=http://s/" },
	  .data = "http://s" },
	{ .what = "AGENTBOX_ before E2B_",
	  .env = { "E2B_API_URL=http://g", "AGENTBOX_CLUSTER_API=http://a",
		   "E2B_API_KEY=e2b_1" },
	  .address = "http://a",
	  .key = "-" },
	{ .what = "no environment",
	  .env = { "AGENTBOX_CLUSTER_API=http://e" },
	  .opts = { .flags = ABX_CLIENT_NO_ENVIRONMENT },
	  .address = "-" },
	{ .what = "flat file",
	  .config = "{\"clusterApi\":\"http://f\",\"apiKey\":\"kf\"}",
	  .address = "http://f",
	  .key = "kf",
	  .context = "-" },
	{ .what = "environment beats file",
	  .config = "{\"clusterApi\":\"http://f\",\"apiKey\":\"kf\"}",
	  .env = { "AGENTBOX_API_KEY=ke" },
	  .address = "http://f",
	  .key = "ke" },
	{ .what = "current context",
	  .config = TWO ",\"currentContext\":\"b\"}",
	  .address = "http://b",
	  .native = "http://b/api/clusters/cb/v1",
	  .key = "kb",
	  .context = "b",
	  .cluster = "cb",
	  .form = ABX__DATA_PATH,
	  .bearer = true },
	{ .what = "named context",
	  .config = TWO ",\"currentContext\":\"b\"}",
	  .opts = { .context = "a" },
	  .address = "http://a",
	  .key = "ka",
	  .context = "a" },
	{ .what = "named context beats environment",
	  .config = TWO "}",
	  .opts = { .context = "a" },
	  .env = { "AGENTBOX_CLUSTER_API=http://e" },
	  .address = "http://a",
	  .context = "a" },
	{ .what = "several and none current",
	  .config = TWO "}",
	  .r = ABX_EINVAL,
	  .message = "none of them" },
	{ .what = "unknown context",
	  .config = TWO "}",
	  .opts = { .context = "z" },
	  .r = ABX_ENOTFOUND,
	  .message = "no context 'z'" },
	{ .what = "only context",
	  .config = "{\"contexts\":{\"a\":{\"clusterApi\":\"http://a\"}}}",
	  .address = "http://a",
	  .context = "a" },
	{ .what = "broken file is empty", .config = "{\"contexts\"", .address = "-" },
	{ .what = "wrong type",
	  .config = "{\"clusterApi\":7}",
	  .r = ABX_EINVAL,
	  .message = "clusterApi" },
	{ .what = "context left out",
	  .config = "{\"clusterApi\":\"http://f\"}",
	  .opts = { .flags = ABX_CLIENT_NO_CONTEXT },
	  .address = "-" },
};

Test(client_settings, every_source_in_its_order)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(&rows[i]);
}

Test(client_settings, the_local_engine_is_the_default)
{
	abx_client_options opts = ABX_CLIENT_OPTIONS_INIT;
	abx__settings settings = { 0 };

	clean_environment();
	setenv("AGENTBOX_STATE_DIR", "/tmp/some state", 1);
	setenv("AGENTBOX_API_KEY", "ke", 1);
	cr_assert(abx__settings_load(&settings, &opts, NULL) == ABX_OK);
	cr_expect_str_eq(settings.state_dir, "/tmp/some state");
	cr_expect_null(settings.key, "the socket needs no key");
	abx__settings_done(&settings);
	unsetenv("AGENTBOX_STATE_DIR");
	cr_assert(abx__settings_load(&settings, &opts, NULL) == ABX_OK);
	if (geteuid() == 0)
		cr_expect_str_eq(settings.state_dir, "/var/lib/agentbox");
	else
		cr_expect_str_eq(settings.state_dir,
				 "/nonexistent/.local/state/agentbox");
	abx__settings_done(&settings);
}

Test(client_settings, no_local_engine_is_unavailable_with_a_hint)
{
	abx_client_options opts = ABX_CLIENT_OPTIONS_INIT;
	abx_client *client = NULL;
	abx_error *err = NULL;

	clean_environment();
	opts.state_dir = "/nonexistent/state";
	opts.flags = ABX_CLIENT_NO_START;
	cr_expect(abx_client_new(&opts, &client, &err) == ABX_EUNAVAILABLE);
	cr_expect(strstr(abx_error_message(err), "/nonexistent/state/agentboxd.sock") !=
		  NULL);
	cr_expect(strstr(abx_error_hint(err), "agentboxd --supervise --daemon") != NULL);
	cr_expect_null(client);
	abx_error_free(err);
}

Test(client_settings, only_root_starts_an_engine_and_others_hear_what_to_do)
{
	abx_client_options opts = ABX_CLIENT_OPTIONS_INIT;
	abx_client *client = NULL;
	abx_error *err = NULL;
	uid_t me = geteuid();

	clean_environment();

	if (me == 0)
		cr_assert(seteuid(65534) == 0);
	opts.state_dir = "/nonexistent/state";
	setenv("AGENTBOX_DAEMON", "/bin/false", 1);
	cr_expect(abx_client_new(&opts, &client, &err) == ABX_EUNAVAILABLE);
	cr_expect(strstr(abx_error_message(err), "only root can start one") != NULL);
	cr_expect(strstr(abx_error_hint(err), "--with-base") != NULL);
	cr_expect(strstr(abx_error_hint(err), "AGENTBOX_API_KEY") != NULL);
	abx_error_free(err);
	cr_assert(seteuid(me) == 0); /* who looks for leaks at the end must be root */
}

/* A program in place of agentboxd. */
static void write_daemon(char *path, size_t size, const char *text)
{
	int fd;

	snprintf(path, size, "/tmp/abx-client-daemon-XXXXXX");
	fd = mkstemp(path);
	cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	fchmod(fd, 0755);
	close(fd);
	setenv("AGENTBOX_DAEMON", path, 1);
}

Test(client_settings, an_engine_that_does_not_start_says_so)
{
	abx_client_options opts = ABX_CLIENT_OPTIONS_INIT;
	abx_client *client = NULL;
	abx_error *err = NULL;
	char path[64];

	if (geteuid() != 0)
		cr_skip_test("only root starts the local engine");
	clean_environment();
	opts.state_dir = "/nonexistent/state";
	write_daemon(path, sizeof(path), "#!/bin/sh\nexit 7\n");
	cr_expect(abx_client_new(&opts, &client, &err) == ABX_EUNAVAILABLE);
	cr_expect(strstr(abx_error_message(err), "status 7") != NULL, "%s",
		  abx_error_message(err));
	cr_expect(strstr(abx_error_hint(err), "/nonexistent/state/agentboxd.log"));
	unlink(path);
	abx_error_free(err);
	err = NULL;
	write_daemon(path, sizeof(path),
		     "#!/bin/sh\necho 'agentboxd: no disk' >&2\n"
		     "echo '  buy one' >&2\nexit 1\n");
	cr_expect(abx_client_new(&opts, &client, &err) == ABX_EUNAVAILABLE);
	cr_expect_str_eq(abx_error_message(err),
			 "the local engine did not start: no disk; buy one");
	unlink(path);
	abx_error_free(err);
	err = NULL;
	cr_expect(abx_client_new(&opts, &client, &err) == ABX_EUNAVAILABLE);
	cr_expect(strstr(abx_error_message(err), path) != NULL, "%s",
		  abx_error_message(err));
	cr_expect(strstr(abx_error_hint(err), "AGENTBOX_DAEMON") != NULL);
	abx_error_free(err);
}

/* ---- options of any age ---- */

struct newer {
	abx_sandbox_options known;
	uint64_t later;
};

Test(client_settings, options_of_other_ages)
{
	struct newer newer = { .known = ABX_SANDBOX_OPTIONS_INIT };
	abx_sandbox_options older = ABX_SANDBOX_OPTIONS_INIT;
	abx_sandbox_options got;

	cr_expect(ABX__OPTIONS(got, NULL, NULL) == ABX_OK && got.size == sizeof(got) &&
		  !got.template_id);
	older.template_id = "a";
	older.timeout_ms = 5;
	older.size = offsetof(abx_sandbox_options, timeout_ms);
	cr_expect(ABX__OPTIONS(got, &older, NULL) == ABX_OK);
	cr_expect_str_eq(got.template_id, "a");
	cr_expect(got.timeout_ms == 0, "bytes behind the size were read");
	newer.known.size = sizeof(newer);
	cr_expect(ABX__OPTIONS(got, &newer, NULL) == ABX_OK, "a zero surplus is fine");
	newer.later = 1;
	cr_expect(ABX__OPTIONS(got, &newer, NULL) == ABX_EINVAL);
	newer.known.size = 0;
	cr_expect(ABX__OPTIONS(got, &newer, NULL) == ABX_EINVAL);
	abx_sandbox_options_init(&older);
	cr_expect(older.size == sizeof(older) && !older.template_id && !older.timeout_ms);
}

/* The queue's 2 minutes, and the answer on top; what a caller chose is his. */
Test(client_settings, a_create_outlasts_the_platforms_queue)
{
	static const struct {
		uint32_t asked, request, create;
	} cases[] = { { 0, 60000, 150000 },
		      { 5000, 5000, 5000 },
		      { ABX_NO_TIMEOUT, 0, 0 } };

	clean_environment();
	setenv("AGENTBOX_CLUSTER_API", "http://a", 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		abx_client_options opts = ABX_CLIENT_OPTIONS_INIT;
		abx__settings settings = { 0 };

		opts.request_timeout_ms = cases[i].asked;
		cr_assert_eq(abx__settings_load(&settings, &opts, NULL), ABX_OK);
		cr_expect_eq(settings.request_timeout_ms, cases[i].request);
		cr_expect_eq(settings.create_timeout_ms, cases[i].create);
		abx__settings_done(&settings);
	}
}
