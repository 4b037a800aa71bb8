/*
 * rig.c - calls and the table. One kept libcurl handle for single calls; a multi handle
 * for bursts.
 */
#include "rig.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <curl/curl.h>

typedef struct bytes {
	char *data;
	size_t len;
} bytes;

void rig_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

double rig_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static size_t collect(char *data, size_t size, size_t count, void *userdata)
{
	bytes *b = userdata;
	char *grown = realloc(b->data, b->len + size * count + 1);

	if (!grown)
		return 0;
	b->data = grown;
	memcpy(b->data + b->len, data, size * count);
	b->len += size * count;
	b->data[b->len] = '\0';
	return size * count;
}

static CURL *prepare(CURL *curl, const char *method, const char *url, const char *body,
		     struct curl_slist *headers, bytes *answer)
{
	curl_easy_reset(curl);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, 120L);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
	if (body)
		curl_easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, body);
	return curl;
}

static CURL *kept(void)
{
	static CURL *curl;

	if (!curl)
		curl = curl_easy_init();
	return curl;
}

static struct curl_slist *api_headers(const bench_rig *rig)
{
	struct curl_slist *list;
	char line[256];

	snprintf(line, sizeof(line), "X-API-Key: %s", rig->key);
	list = curl_slist_append(NULL, line);
	snprintf(line, sizeof(line), "AGENTBOX-API-KEY: %s", rig->key);
	list = curl_slist_append(list, line);
	return curl_slist_append(list, "Content-Type: application/json");
}

int rig_call(const bench_rig *rig, const char *method, const char *path, const char *body,
	     json_object **ret)
{
	struct curl_slist *headers = api_headers(rig);
	bytes answer = { 0 };
	char url[512];
	long status = 0;
	CURLcode code;

	snprintf(url, sizeof(url), "%s%s", rig->url, path);
	code = curl_easy_perform(prepare(kept(), method, url, body, headers, &answer));
	if (code != CURLE_OK)
		rig_die("%s %s: %s", method, url, curl_easy_strerror(code));
	curl_easy_getinfo(kept(), CURLINFO_RESPONSE_CODE, &status);
	if (ret)
		*ret = answer.data ? json_tokener_parse(answer.data) : NULL;
	if (status >= 400)
		fprintf(stderr, "%s %s: %ld %s\n", method, url, status,
			answer.data ? answer.data : "");
	free(answer.data);
	curl_slist_free_all(headers);
	return (int)status;
}

static void create_body(char *out, size_t size, const char *template_id,
			const char *image)
{
	snprintf(out, size, "{\"templateID\":\"%s%s%s\",\"timeout\":600}", template_id,
		 image ? "//" : "", image ? image : "");
}

static void take_sandbox(json_object *answer, sandbox_ref *ret)
{
	json_object *id, *token;

	if (!json_object_object_get_ex(answer, "sandboxID", &id))
		rig_die("create: no sandboxID in the answer");
	snprintf(ret->id, sizeof(ret->id), "%s", json_object_get_string(id));
	ret->token[0] = '\0';
	if (json_object_object_get_ex(answer, "envdAccessToken", &token) && token)
		snprintf(ret->token, sizeof(ret->token), "%s",
			 json_object_get_string(token));
}

#define CREATE_PATH "/agent-sandbox/api/e2b/v2/sandboxes"

void rig_create(const bench_rig *rig, const char *template_id, const char *image,
		sandbox_ref *ret)
{
	json_object *answer = NULL;
	char body[512];

	create_body(body, sizeof(body), template_id, image);
	if (rig_call(rig, "POST", CREATE_PATH, body, &answer) != 201)
		rig_die("create from %s failed", template_id);
	take_sandbox(answer, ret);
	json_object_put(answer);
}

void rig_kill(const bench_rig *rig, const sandbox_ref *sandbox)
{
	char path[256];

	snprintf(path, sizeof(path), "/agent-sandbox/api/e2b/sandboxes/%s", sandbox->id);
	if (rig_call(rig, "DELETE", path, NULL, NULL) != 204)
		rig_die("kill %s failed", sandbox->id);
}

static struct curl_slist *envd_headers(const sandbox_ref *sandbox, const char *type)
{
	struct curl_slist *list;
	char line[256];

	snprintf(line, sizeof(line), "E2b-Sandbox-Id: %s", sandbox->id);
	list = curl_slist_append(NULL, line);
	list = curl_slist_append(list, "E2b-Sandbox-Port: 49983");
	if (sandbox->token[0]) {
		snprintf(line, sizeof(line), "X-Access-Token: %s", sandbox->token);
		list = curl_slist_append(list, line);
	}
	snprintf(line, sizeof(line), "Content-Type: %s", type);
	list = curl_slist_append(list, line);
	return curl_slist_append(list, "Expect:");
}

/* The exit code in the stream of envelopes: an end event without exitCode is 0 (envd.md
 * section 6). */
static int exit_code_of(const bytes *answer)
{
	size_t at = 0;

	while (answer->len - at >= 5) {
		const unsigned char *p = (const unsigned char *)answer->data + at;
		size_t len = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 |
			     p[4];
		json_object *event, *end, *code, *all;
		char *text;

		if (len > answer->len - at - 5)
			break;
		text = strndup(answer->data + at + 5, len);
		all = text ? json_tokener_parse(text) : NULL;
		free(text);
		at += 5 + len;
		if (json_object_object_get_ex(all, "event", &event) &&
		    json_object_object_get_ex(event, "end", &end)) {
			int value = json_object_object_get_ex(end, "exitCode", &code)
					    ? json_object_get_int(code)
					    : 0;

			json_object_put(all);
			return value;
		}
		json_object_put(all);
	}
	rig_die("exec: no end event in %zu bytes: %.200s", answer->len,
		answer->len > 5 ? answer->data + 5 : "");
}

int rig_exec(const bench_rig *rig, const sandbox_ref *sandbox, const char *const *argv)
{
	struct curl_slist *headers = envd_headers(sandbox, "application/connect+json");
	json_object *request = json_object_new_object(),
		    *process = json_object_new_object();
	json_object *args = json_object_new_array();
	bytes answer = { 0 };
	char url[512], frame[4096];
	const char *text;
	size_t len;
	CURL *curl;
	CURLcode code;
	int exit_code;

	json_object_object_add(process, "cmd", json_object_new_string(argv[0]));
	for (int i = 1; argv[i]; i++)
		json_object_array_add(args, json_object_new_string(argv[i]));
	json_object_object_add(process, "args", args);
	json_object_object_add(request, "process", process);
	json_object_object_add(request, "stdin", json_object_new_boolean(0));
	text = json_object_to_json_string_length(request, JSON_C_TO_STRING_PLAIN, &len);
	frame[0] = 0;
	frame[1] = 0;
	frame[2] = 0;
	frame[3] = (char)(len >> 8);
	frame[4] = (char)len;
	if (len > sizeof(frame) - 5)
		rig_die("exec: command too long");
	memcpy(frame + 5, text, len);
	snprintf(url, sizeof(url), "%s/process.Process/Start", rig->url);
	curl = prepare(kept(), "POST", url, NULL, headers, &answer);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)len + 5);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, frame);
	code = curl_easy_perform(curl);
	if (code != CURLE_OK)
		rig_die("exec: %s", curl_easy_strerror(code));
	exit_code = exit_code_of(&answer);
	free(answer.data);
	json_object_put(request);
	curl_slist_free_all(headers);
	return exit_code;
}

static int number_at(json_object *object, const char *key)
{
	json_object *value;

	return json_object_object_get_ex(object, key, &value) ? json_object_get_int(value)
							      : 0;
}

/* Idle Pods that are ready: the ones that are not yet count as idle too (crds.md section
 * 3). */
static int ready_idle(json_object *pools)
{
	json_object *items, *status;
	int sum = 0;

	if (!json_object_object_get_ex(pools, "items", &items))
		return 0;
	for (size_t i = 0; i < json_object_array_length(items); i++)
		if (json_object_object_get_ex(json_object_array_get_idx(items, i),
					      "status", &status))
			sum += number_at(status, "idleReplicas") -
			       number_at(status, "unavailableIdleReplicas");
	return sum;
}

void rig_wait_idle(const bench_rig *rig, const char *env, int count)
{
	double deadline = rig_now_ms() + 120000;
	char path[256];

	snprintf(path, sizeof(path), "/v1/envs/%s/sandboxpools", env);
	for (;;) {
		json_object *answer = NULL;
		int have;

		if (rig_call(rig, "GET", path, NULL, &answer) != 200)
			rig_die("the pools of env %s cannot be read", env);
		have = ready_idle(answer);
		json_object_put(answer);
		if (have >= count)
			return;
		if (rig_now_ms() > deadline)
			rig_die("env %s: %d of %d ready after two minutes", env, have,
				count);
		usleep(50000);
	}
}

double rig_create_many(const bench_rig *rig, const char *template_id, sandbox_ref *ret,
		       int count)
{
	struct curl_slist *headers = api_headers(rig);
	CURLM *multi = curl_multi_init();
	CURL **easy = calloc((size_t)count, sizeof(*easy));
	bytes *answers = calloc((size_t)count, sizeof(*answers));
	char url[512], body[512];
	double start, took;
	int running = 1;

	if (!easy || !answers)
		rig_die("out of memory");
	snprintf(url, sizeof(url), "%s" CREATE_PATH, rig->url);
	create_body(body, sizeof(body), template_id, NULL);
	for (int i = 0; i < count; i++) {
		easy[i] = prepare(curl_easy_init(), "POST", url, body, headers,
				  &answers[i]);
		curl_multi_add_handle(multi, easy[i]);
	}
	start = rig_now_ms();
	while (running) {
		curl_multi_perform(multi, &running);
		if (running)
			curl_multi_poll(multi, NULL, 0, 1000, NULL);
	}
	took = rig_now_ms() - start;
	for (int i = 0; i < count; i++) {
		long status = 0;
		json_object *answer;

		curl_easy_getinfo(easy[i], CURLINFO_RESPONSE_CODE, &status);
		if (status != 201)
			rig_die("create %d of %d: status %ld: %s", i, count, status,
				answers[i].data ? answers[i].data : "no answer");
		answer = json_tokener_parse(answers[i].data);
		take_sandbox(answer, &ret[i]);
		json_object_put(answer);
		curl_multi_remove_handle(multi, easy[i]);
		curl_easy_cleanup(easy[i]);
		free(answers[i].data);
	}
	curl_multi_cleanup(multi);
	curl_slist_free_all(headers);
	free(answers);
	free(easy);
	return took;
}

struct flow {
	uint64_t left;
	char block[256 << 10];
};

static size_t produce(char *out, size_t size, size_t count, void *userdata)
{
	struct flow *flow = userdata;
	size_t n = size * count;

	if (n > flow->left)
		n = flow->left;
	if (n > sizeof(flow->block))
		n = sizeof(flow->block);
	memcpy(out, flow->block, n);
	flow->left -= n;
	return n;
}

static size_t swallow(char *data, size_t size, size_t count, void *userdata)
{
	(void)data;
	*(uint64_t *)userdata += size * count;
	return size * count;
}

/* A form of one part. */
static curl_mime *make_form(CURL *curl, struct flow *flow)
{
	curl_mime *form = curl_mime_init(curl);
	curl_mimepart *part = curl_mime_addpart(form);

	curl_mime_name(part, "file");
	curl_mime_filename(part, "bench.bin");
	curl_mime_data_cb(part, (curl_off_t)flow->left, produce, NULL, NULL, flow);
	curl_easy_setopt(curl, CURLOPT_MIMEPOST, form);
	return form;
}

double rig_stream_file(const bench_rig *rig, const sandbox_ref *sandbox,
		       enum stream_way way, const char *path, uint64_t bytes_count)
{
	int up = way != STREAM_DOWN;
	struct curl_slist *headers =
		envd_headers(sandbox, way == STREAM_UP_FORM ? "multipart/form-data"
							    : "application/octet-stream");
	static struct flow flow;
	curl_mime *form = NULL;
	uint64_t got = 0;
	bytes answer = { 0 };
	CURL *curl = curl_easy_init();
	char url[512];
	long status = 0;
	double start, took;
	CURLcode code;

	snprintf(url, sizeof(url), "%s/files?path=%s&username=root", rig->url, path);
	prepare(curl, up ? "POST" : "GET", url, NULL, headers, &answer);
	curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 512L << 10);
	if (up) {
		flow.left = bytes_count;
		memset(flow.block, 'x', sizeof(flow.block));
	}
	if (way == STREAM_UP_FORM) {
		curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, 512L << 10);
		form = make_form(curl, &flow);
	} else if (up) {
		curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, 512L << 10);
		curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, "POST");
		curl_easy_setopt(curl, CURLOPT_READFUNCTION, produce);
		curl_easy_setopt(curl, CURLOPT_READDATA, &flow);
		curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)bytes_count);
	} else {
		curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, swallow);
		curl_easy_setopt(curl, CURLOPT_WRITEDATA, &got);
	}
	start = rig_now_ms();
	code = curl_easy_perform(curl);
	took = rig_now_ms() - start;
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	if (code != CURLE_OK || status != 200 || (!up && got != bytes_count))
		rig_die("%s of a file: %s, status %ld, %llu bytes: %s",
			up ? "write" : "read", curl_easy_strerror(code), status,
			(unsigned long long)got, answer.data ? answer.data : "");
	free(answer.data);
	curl_easy_cleanup(curl);
	curl_mime_free(form);
	curl_slist_free_all(headers);
	return (double)bytes_count / 1e6 / (took / 1e3);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double percentile(double *samples, int count, double p)
{
	int at = (int)ceil(p / 100.0 * count) - 1;

	qsort(samples, (size_t)count, sizeof(*samples), by_value);
	return samples[at < 0 ? 0 : at];
}

void table_head(void)
{
	printf("%-46s %-24s %-28s %-8s %s\n", "promise", "ours", "floor in this run",
	       "ratio", "to reach");
}

void row(const char *promise, const char *figure, const char *floor, const char *ratio,
	 const char *target, int ok)
{
	printf("%-46s %-24s %-28s %-8s %s%s\n", promise, figure, floor, ratio, target,
	       ok ? "" : "   <-- not reached");
	fflush(stdout);
}
