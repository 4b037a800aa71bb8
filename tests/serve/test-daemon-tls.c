/*
 * The daemon over TLS: its own CA, given certificates, names, and the wrong options.
 */
#include <criterion/criterion.h>
#include <curl/curl.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "daemon.h"

TestSuite(serve_daemon_tls, .fini = daemon_teardown, .timeout = 120);

static char ca[128], port[8];

static void start(const char *extra, const char *value, const char *more,
		  const char *more_value)
{
	char path[128], text[2048] = "";
	json_object *o;
	const char *listen;
	int fd;

	daemon_start("--tls-listen", "127.0.0.1:0", extra, value, more, more_value, NULL);
	snprintf(path, sizeof(path), "%s/agentboxd.json", d.dir);
	fd = open(path, O_RDONLY);
	cr_assert(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	o = json_tokener_parse(text);
	listen = at(o, "tlsListen.0");
	cr_assert_not_null(listen, "%s", text);
	snprintf(port, sizeof(port), "%s", strrchr(listen, ':') + 1);
	snprintf(ca, sizeof(ca), "%s", at(o, "ca") ? at(o, "ca") : "");
	json_object_put(o);
}

static size_t collect(char *data, size_t size, size_t n, void *userdata)
{
	abx__buf_add(userdata, data, size * n);
	return size * n;
}

/* The status, or minus curl's code. */
static int get(const char *host, const char *path, long version, const char *trust,
	       abx__buf *ret_text)
{
	ABX_CLEANUP(abx__freep)
	char *url = abx__strf("https://%s:%s%s", host, port, path);
	ABX_CLEANUP(abx__freep) char *where = abx__strf("%s:%s:127.0.0.1", host, port);
	ABX_CLEANUP(abx__freep) char *key = abx__strf("X-API-Key: %s", d.e2b);
	struct curl_slist *resolve = curl_slist_append(NULL, where);
	struct curl_slist *headers = curl_slist_append(NULL, key);
	CURL *curl = curl_easy_init();
	long status = 0;
	CURLcode r;

	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_RESOLVE, resolve);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_CAINFO, trust);
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, version);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, 20L);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, ret_text);
	r = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	if (r == CURLE_OK) {
		long spoken = 0;

		curl_easy_getinfo(curl, CURLINFO_HTTP_VERSION, &spoken);
		cr_assert_eq(spoken, version == CURL_HTTP_VERSION_2TLS
					     ? CURL_HTTP_VERSION_2_0
					     : version);
	}
	curl_easy_cleanup(curl);
	curl_slist_free_all(resolve);
	curl_slist_free_all(headers);
	return r == CURLE_OK ? (int)status : -(int)r;
}

static void expect_get(const char *host, const char *path, int status, const char *text)
{
	static const long versions[] = { CURL_HTTP_VERSION_1_1, CURL_HTTP_VERSION_2TLS };

	for (size_t i = 0; i < 2; i++) {
		ABX_CLEANUP_BUF abx__buf got = ABX__BUF_INIT;
		int r = get(host, path, versions[i], ca, &got);

		cr_assert_eq(r, status, "%s%s: %d %s", host, path, r, abx__buf_str(&got));
		cr_assert(!text || strstr(abx__buf_str(&got), text), "%s",
			  abx__buf_str(&got));
	}
}

Test(serve_daemon_tls, every_surface_is_there_by_its_name)
{
	start(NULL, NULL, NULL, NULL);
	expect_get("api.agentbox.localhost", "/v2/sandboxes", 200, "[]");
	expect_get("agentbox.localhost", "/v1/envs", 200, "items");
	expect_get("127.0.0.1", "/ping", 200, "ok");
	expect_get("localhost", "/ping", 200, "ok");
	expect_get("49983-abc.agentbox.localhost", "/health", 502,
		   "The sandbox was not found");
	expect_get("49983-abc-00000000.agentbox.localhost", "/health", 502,
		   "The sandbox was not found");
	expect_get("127.0.0.1", "/sandboxes/abc/8080/x", 502, "not found");
}

Test(serve_daemon_tls, another_domain_is_in_the_certificate)
{
	ABX_CLEANUP_BUF abx__buf got = ABX__BUF_INIT;

	start("--domain", "box.example", NULL, NULL);
	expect_get("api.box.example", "/v2/sandboxes", 200, NULL);
	expect_get("8080-abc.box.example", "/", 502, NULL);
	cr_assert_eq(
		get("api.agentbox.localhost", "/ping", CURL_HTTP_VERSION_1_1, ca, &got),
		-CURLE_PEER_FAILED_VERIFICATION);
}

static void read_file(const char *path, abx__buf *ret)
{
	char text[4096];
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text));

	cr_assert_gt(n, 0, "%s", path);
	close(fd);
	abx__buf_add(ret, text, (size_t)n);
}

Test(serve_daemon_tls, the_own_ca_is_kept_over_a_restart)
{
	ABX_CLEANUP_BUF abx__buf before = ABX__BUF_INIT;
	ABX_CLEANUP_BUF abx__buf after = ABX__BUF_INIT;
	ABX_CLEANUP(abx__freep) char *cert = NULL;

	start(NULL, NULL, NULL, NULL);
	cert = abx__strf("%s/tls/server.crt", d.dir);
	read_file(ca, &before);
	read_file(cert, &before);
	daemon_again();
	read_file(ca, &after);
	read_file(cert, &after);
	cr_assert_str_eq(abx__buf_str(&before), abx__buf_str(&after));
}

/* A copy of a file of the daemon's CA, in a folder of our own. */
static void copy_file(const char *name, const char *to)
{
	ABX_CLEANUP(abx__freep) char *from = abx__strf("%s/tls/%s", d.dir, name);
	ABX_CLEANUP_BUF abx__buf text = ABX__BUF_INIT;
	int fd;

	read_file(from, &text);
	fd = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	cr_assert(fd >= 0 && write(fd, text.data, text.len) == (ssize_t)text.len);
	close(fd);
}

Test(serve_daemon_tls, given_files_are_served_and_read_again_on_sighup)
{
	char dir[] = "/tmp/serve-tls-XXXXXX", cert[64], key[64], trust[64];
	ABX_CLEANUP_BUF abx__buf got = ABX__BUF_INIT;
	int r = 0;

	cr_assert(mkdtemp(dir));
	chmod(dir, 0755);
	snprintf(cert, sizeof(cert), "%s/c.pem", dir);
	snprintf(key, sizeof(key), "%s/k.pem", dir);
	snprintf(trust, sizeof(trust), "%s/ca.pem", dir);
	start("--domain", "one.example", NULL, NULL);
	copy_file("server.crt", cert);
	copy_file("server.key", key);
	copy_file("ca.crt", trust);
	daemon_teardown();

	start("--tls-cert", cert, "--tls-key", key);
	cr_assert_str_eq(ca, "", "no CA of its own");
	snprintf(ca, sizeof(ca), "%s", trust);
	expect_get("api.one.example", "/ping", 200, NULL);

	/* A new pair, of another daemon with another name. */
	daemon_fixture first = d;
	char first_port[8];
	memcpy(first_port, port, sizeof(port));
	memset(&d, 0, sizeof(d));
	start("--domain", "two.example", NULL, NULL);
	copy_file("server.crt", cert);
	copy_file("server.key", key);
	copy_file("ca.crt", trust);
	daemon_teardown();
	d = first;
	memcpy(port, first_port, sizeof(port));
	cr_assert_eq(get("api.two.example", "/ping", CURL_HTTP_VERSION_1_1, trust, &got),
		     -CURLE_PEER_FAILED_VERIFICATION, "not before it is told");
	kill(d.pid, SIGHUP);
	for (int i = 0; i < 200 && r != 200; i++) {
		usleep(20000);
		r = get("api.two.example", "/ping", CURL_HTTP_VERSION_1_1, trust, &got);
	}
	cr_assert_eq(r, 200);

	/* What cannot be read changes nothing. */
	unlink(cert);
	kill(d.pid, SIGHUP);
	usleep(100000);
	cr_assert_eq(get("api.two.example", "/ping", CURL_HTTP_VERSION_1_1, trust, &got),
		     200);
	unlink(key);
	unlink(trust);
	rmdir(dir);
}

Test(serve_daemon_tls, wrong_options_are_named)
{
	static const char *const table[][6] = {
		{ "--tls-listen", "8443", NULL, "\"8443\" is not IP:PORT" },
		{ "--tls-listen", "0.0.0.0:0", NULL, "not a loopback address" },
		{ "--tls-cert", "c.pem", NULL, "go together" },
		{ "--domain", "", NULL, "is no host name" },
		{ "--domain", "*.x", NULL, "is no host name" },
	};
	static const char *const alone[] = { "--tls-cert", "c", "--tls-key", "k", NULL };
	char out[4096];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		cr_assert_eq(run_to_end(out, sizeof(out), table[i]), 1);
		cr_assert(strstr(out, table[i][3]), "%zu: %s", i, out);
	}
	cr_assert_eq(run_to_end(out, sizeof(out), alone), 1);
	cr_assert(strstr(out, "--tls-cert goes with --tls-listen"), "%s", out);
}

Test(serve_daemon_tls, a_certificate_that_is_none_stops_the_start)
{
	char dir[] = "/tmp/serve-tls-XXXXXX", state[64], out[4096];
	const char *const args[] = {
		"--engine",   "fake",         "--state-dir", state,       "--listen",
		"none",       "--tls-listen", "127.0.0.1:0", "--tls-key", "/dev/null",
		"--tls-cert", "/dev/null",    NULL
	};

	cr_assert(mkdtemp(dir));
	chmod(dir, 0755);
	snprintf(state, sizeof(state), "%s/state", dir);
	cr_assert_eq(run_to_end(out, sizeof(out), args), 1);
	cr_assert(strstr(out, "/dev/null is no certificate in PEM form"), "%s", out);
	snprintf(out, sizeof(out), "rm -rf '%s'", dir);
	cr_assert_eq(run_to_end(out, sizeof(out),
				(const char *const[]){ "--stop", "--purge", "--state-dir",
						       state, NULL }),
		     0);
	rmdir(dir);
}
