/* The daemon under test, and a client for it. */
#include "daemon.h"

#include <criterion/criterion.h>
#include <curl/curl.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "io/json.h"

daemon_fixture d;

static const char *program(void)
{
	static char path[512];
	const char *top = getenv("top_builddir");

	snprintf(path, sizeof(path), "%s/src/agentboxd", top ? top : ".");
	return path;
}

static json_object *read_json(const char *name)
{
	char path[128], text[1024] = "";
	json_object *o = NULL;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", d.dir, name);
	fd = open(path, O_RDONLY);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	cr_assert_gt(n, 0, "%s", path);
	cr_assert_eq(abx__json_parse_object(text, (size_t)n, 0, &o, NULL), ABX_OK, "%s",
		     text);
	return o;
}

static void copy_text(json_object *o, const char *key, char *out, size_t size)
{
	const char *text = NULL;

	cr_assert_eq(abx__json_get_str(o, key, &text, NULL), 1);
	snprintf(out, size, "%s", text);
}

static void run(char **argv)
{
	int fds[2], n = 0;
	char number[16], ready[8] = "";
	json_object *o;

	cr_assert_eq(pipe(fds), 0);
	d.pid = fork();
	if (d.pid == 0) {
		char log[128];
		int fd;

		snprintf(log, sizeof(log), "%s/agentboxd.log", d.dir);
		fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
		dup2(fd, 2);
		close(fds[0]);
		snprintf(number, sizeof(number), "%d", fds[1]);
		while (argv[n])
			n++;
		argv[n++] = (char *)"--ready-fd";
		argv[n++] = number;
		argv[n] = NULL;
		execv(argv[0], argv);
		_exit(127);
	}
	close(fds[1]);
	cr_assert_eq(read(fds[0], ready, 6), 6,
		     "the daemon did not get ready; see %s/agentboxd.log", d.dir);
	close(fds[0]);
	o = read_json("agentboxd.json");
	copy_text(o, "url", d.url, sizeof(d.url));
	copy_text(o, "socket", d.socket, sizeof(d.socket));
	snprintf(d.second, sizeof(d.second), "%s",
		 at(o, "listen.1") ? at(o, "listen.1") : "");
	json_object_put(o);
	o = read_json("keys.json");
	copy_text(o, "agbx", d.agbx, sizeof(d.agbx));
	copy_text(o, "e2b", d.e2b, sizeof(d.e2b));
	json_object_put(o);
}

static char *arguments[64];

void daemon_start(const char *extra, ...)
{
	int n = 0;
	va_list ap;

	snprintf(d.dir, sizeof(d.dir), "/tmp/serve-test-XXXXXX");
	cr_assert(mkdtemp(d.dir));
	arguments[n++] = (char *)program();
	arguments[n++] = (char *)"--state-dir";
	arguments[n++] = d.dir;
	arguments[n++] = (char *)"--engine";
	arguments[n++] = (char *)"fake";
	arguments[n++] = (char *)"--listen";
	arguments[n++] = (char *)"127.0.0.1:0";
	va_start(ap, extra);
	for (const char *arg = extra; arg; arg = va_arg(ap, const char *))
		arguments[n++] = (char *)arg;
	va_end(ap);
	arguments[n] = NULL;
	run(arguments);
}

void daemon_begin(void)
{
	daemon_start(NULL);
}

int run_to_end(char *out, size_t size, const char *const *args)
{
	const char *argv[32] = { program() };
	int fds[2], status, n = 1;
	size_t len = 0;
	ssize_t got;
	pid_t pid;

	while (*args)
		argv[n++] = *args++;
	argv[n] = NULL;
	cr_assert_eq(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		close(fds[0]);
		close(fds[1]);
		execv(argv[0], (char **)argv);
		_exit(127);
	}
	close(fds[1]);
	while (len + 1 < size && (got = read(fds[0], out + len, size - 1 - len)) > 0)
		len += (size_t)got;
	out[len] = '\0';
	close(fds[0]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void daemon_end(void)
{
	int status = 0;

	if (d.pid <= 0)
		return;
	kill(d.pid, SIGTERM);
	cr_assert_eq(waitpid(d.pid, &status, 0), d.pid);
	d.pid = 0;
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		  "the daemon ended with %x; see %s/agentboxd.log", status, d.dir);
}

void daemon_again(void)
{
	char *argv[64];

	daemon_end();
	memcpy(argv, arguments, sizeof(argv));
	for (int i = 0; argv[i]; i++)
		if (strcmp(argv[i], "--ready-fd") == 0)
			argv[i] = NULL;
	run(argv);
}

/* A folder with files alone in it. */
static void remove_folder(const char *folder)
{
	char path[512];
	struct dirent *e;
	DIR *dir = opendir(folder);

	while (dir && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		unlink(path);
	}
	if (dir)
		closedir(dir);
	rmdir(folder);
}

void daemon_teardown(void)
{
	char tls[80];

	daemon_end();
	snprintf(tls, sizeof(tls), "%s/tls", d.dir);
	remove_folder(tls);
	remove_folder(d.dir);
}

/* ---- the client ---- */

static size_t on_body(char *data, size_t size, size_t n, void *userdata)
{
	abx__buf_add(userdata, data, size * n);
	return size * n;
}

static size_t on_header(char *data, size_t size, size_t n, void *userdata)
{
	answer *a = userdata;

	strncat(a->headers, data,
		sizeof(a->headers) - 1 - strlen(a->headers) < size * n
			? sizeof(a->headers) - 1 - strlen(a->headers)
			: size * n);
	return size * n;
}

static answer request(const char *method, const char *path, const char *body,
		      struct curl_slist *headers, bool over_unix)
{
	char url[2048];
	abx__buf buf = ABX__BUF_INIT;
	answer a = { 0 };
	CURL *curl = curl_easy_init();
	long status = 0;
	CURLcode code;

	snprintf(url, sizeof(url), "%s%s", over_unix ? "http://localhost" : d.url, path);
	headers = curl_slist_append(headers, "Expect:");
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, 30L);
	if (over_unix)
		curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, d.socket);
	if (body) {
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)strlen(body));
	}
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &buf);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, &a);
	code = curl_easy_perform(curl);
	cr_assert_eq(code, CURLE_OK, "%s %s: %s", method, path, curl_easy_strerror(code));
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_slist_free_all(headers);
	curl_easy_cleanup(curl);
	a.status = (int)status;
	a.text = abx__strdup(abx__buf_str(&buf));
	if (buf.len)
		abx__json_parse(buf.data, buf.len, 0, &a.json, NULL);
	abx__buf_done(&buf);
	return a;
}

static struct curl_slist *list_of(const char *const *headers)
{
	struct curl_slist *list = NULL;

	for (; headers && *headers; headers++)
		list = curl_slist_append(list, *headers);
	return list;
}

answer ask_with(const char *method, const char *path, const char *body,
		const char *const *headers)
{
	return request(method, path, body, list_of(headers), false);
}

answer ask_unix_with(const char *method, const char *path, const char *body,
		     const char *const *headers)
{
	return request(method, path, body, list_of(headers), true);
}

answer ask(const char *method, const char *path, const char *body)
{
	char header[128];
	const char *const headers[] = { header, NULL };

	snprintf(header, sizeof(header), "AGENTBOX-API-KEY: %s", d.agbx);
	return ask_with(method, path, body, headers);
}

answer ask_unix(const char *method, const char *path, const char *body)
{
	return request(method, path, body, NULL, true);
}

void answer_done(answer *a)
{
	abx__free(a->text);
	json_object_put(a->json);
	memset(a, 0, sizeof(*a));
}

const char *answer_header(const answer *a, const char *name)
{
	static char value[512];
	size_t n = strlen(name);

	for (const char *p = a->headers; p && *p;
	     p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		if (strncasecmp(p, name, n) == 0 && p[n] == ':') {
			const char *v = p + n + 1 + strspn(p + n + 1, " ");

			snprintf(value, sizeof(value), "%.*s", (int)strcspn(v, "\r\n"),
				 v);
			return value;
		}
	return NULL;
}

json_object *node(json_object *o, const char *path)
{
	while (o && *path) {
		size_t len = strcspn(path, ".");
		char key[64];
		uint64_t index;

		snprintf(key, sizeof(key), "%.*s", (int)len, path);
		if (json_object_is_type(o, json_type_array)) {
			if (abx__parse_u64(key, 0, 10000, &index) < 0)
				return NULL;
			o = json_object_array_get_idx(o, index);
		} else if (!json_object_is_type(o, json_type_object) ||
			   !json_object_object_get_ex(o, key, &o)) {
			return NULL;
		}
		path += len;
		if (*path == '.')
			path++;
	}
	return o;
}

const char *at(json_object *o, const char *path)
{
	json_object *v = node(o, path);

	return v ? json_object_get_string(v) : NULL;
}

void expect(const char *method, const char *path, const char *body, int status,
	    const char *text)
{
	answer a = ask(method, path, body);

	cr_assert_eq(a.status, status, "%s %s gave %d, not %d: %s", method, path,
		     a.status, status, a.text);
	if (text)
		cr_assert(strstr(a.text, text), "%s %s: %s lacks \"%s\"", method, path,
			  a.text, text);
	answer_done(&a);
}

/* ---- objects ---- */

static const char template_json[] =
	"{\"apiVersion\":\"agents.navix.sh/v1alpha1\",\"kind\":\"SandboxTemplate\","
	"\"metadata\":{\"name\":\"t\"},\"spec\":{\"version\":\"1\",\"description\":\"for "
	"tests\","
	"\"idleImage\":\"idle:1\","
	"\"runtimes\":[{\"name\":\"envd\",\"port\":49983,\"readinessProbe\":{\"httpGet\":"
	"{\"port\":49983,\"path\":\"/health\"}}}],"
	"\"template\":{\"spec\":{\"containers\":[{\"name\":\"sandbox\",\"image\":\"main:"
	"1\"}]}}}}";

static void make_template(void)
{
	ABX_CLEANUP_JSON json_object *body = json_object_new_object();
	answer a;

	json_object_object_add(body, "crdJson", json_object_new_string(template_json));
	a = ask("POST", "/v1/admin/sandbox-templates", json_object_to_json_string(body));
	cr_assert(a.status == 201 || a.status == 409, "%d: %s", a.status, a.text);
	answer_done(&a);
}

static void nap(void)
{
	const struct timespec t = { .tv_nsec = 10000000 };

	nanosleep(&t, NULL);
}

void wait_idle(const char *env, int idle)
{
	char path[128];
	int64_t n = -1;

	snprintf(path, sizeof(path), "/v1/envs/%s/sandboxpools", env);
	for (int i = 0; i < 1000; i++) {
		answer a = ask("GET", path, NULL);
		json_object *v = node(a.json, "items.0.status.idleReplicas");
		json_object *bad = node(a.json, "items.0.status.unavailableIdleReplicas");

		cr_assert_eq(a.status, 200, "%s", a.text);
		n = v ? json_object_get_int64(v) : 0;
		if (bad)
			n -= json_object_get_int64(bad);
		answer_done(&a);
		if (n == idle)
			return;
		nap();
	}
	cr_assert_fail("env %s has %ld idle Pods, not %d", env, (long)n, idle);
}

void make_env(const char *env, int replicas)
{
	char path[128], body[256];

	make_template();
	snprintf(body, sizeof(body), "{\"name\":\"%s\",\"templateRef\":{\"name\":\"t\"}}",
		 env);
	expect("POST", "/v1/envs", body, 201, env);
	snprintf(path, sizeof(path), "/v1/envs/%s/sandboxpools", env);
	snprintf(body, sizeof(body),
		 "{\"inlineResources\":{\"requests\":{\"cpu\":\"1\",\"memory\":\"2Gi\"},"
		 "\"limits\":{\"cpu\":\"1\",\"memory\":\"2Gi\"}},\"replicas\":%d}",
		 replicas);
	expect("POST", path, body, 202, "1c2gi");
	wait_idle(env, replicas);
}

void make_sandbox(const char *env, char id[32])
{
	char body[256];
	answer a;

	snprintf(body, sizeof(body), "{\"templateID\":\"%s\",\"timeout\":300}", env);
	a = ask("POST", "/v2/sandboxes", body);
	cr_assert_eq(a.status, 201, "%s", a.text);
	snprintf(id, 32, "%s", at(a.json, "sandboxID"));
	answer_done(&a);
}
