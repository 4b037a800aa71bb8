/*
 * test-context.c - the file of known deployments: what is written, and that nobody's file
 * is lost.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <agentbox/agentbox.h>

TestSuite(client_context, .timeout = 30);

struct folder {
	char path[64], file[96];
};

static void folder_up(struct folder *f)
{
	snprintf(f->path, sizeof(f->path), "/tmp/abx-context-XXXXXX");
	cr_assert_not_null(mkdtemp(f->path));
	snprintf(f->file, sizeof(f->file), "%s/deep/config.json", f->path);
}

static void folder_down(struct folder *f)
{
	char line[160];

	snprintf(line, sizeof(line), "rm -rf '%s'", f->path);
	cr_expect(system(line) == 0);
}

static void write_file(struct folder *f, const char *text)
{
	char deep[96];

	snprintf(deep, sizeof(deep), "%s/deep", f->path);
	mkdir(deep, 0700);
	FILE *out = fopen(f->file, "w");
	cr_assert_not_null(out);
	fputs(text, out);
	fclose(out);
}

static void expect_file(struct folder *f, const char *text)
{
	char buf[1024] = "";
	struct stat st;
	FILE *in = fopen(f->file, "r");

	cr_assert_not_null(in);
	buf[fread(buf, 1, sizeof(buf) - 1, in)] = '\0';
	fclose(in);
	cr_expect_str_eq(buf, text);
	cr_expect(stat(f->file, &st) == 0 && (st.st_mode & 0777) == 0600, "mode %o",
		  st.st_mode & 0777);
}

static void expect_refusal(int r, int code, const char *message, abx_error **err)
{
	cr_expect(r == code, "%d", r);
	cr_expect_not_null(strstr(abx_error_message(*err), message), "%s",
			   abx_error_message(*err));
	abx_error_free(*err);
	*err = NULL;
}

Test(client_context, one_is_set_used_and_removed)
{
	abx_context_options opts = ABX_CONTEXT_OPTIONS_INIT;
	abx_error *err = NULL;
	struct folder f;
	char *json = NULL;

	folder_up(&f);
	opts.endpoint = "https://console.test/x/api/clusters/c1/";
	opts.api_key = "agbx_secret";
	cr_assert(abx_context_set(f.file, "a", &opts, &err) == 1);
	abx_context_options_init(&opts);
	opts.cluster_api = "http://127.0.0.1:8080//";
	opts.cluster = "c2";
	cr_assert(abx_context_set(f.file, "b", &opts, &err) == 0);
	cr_assert(abx_context_use(f.file, "b", &err) == ABX_OK);
	expect_file(&f, "{\n  \"contexts\": {\n    \"a\": {\n      \"endpoint\": "
			"\"https://console.test/x\",\n      \"apiKey\": "
			"\"agbx_secret\"\n    },\n    \"b\": {\n      \"clusterApi\": "
			"\"http://127.0.0.1:8080\",\n      \"cluster\": \"c2\"\n    }\n  "
			"},\n  \"currentContext\": \"b\"\n}\n");
	cr_assert(abx_context_list(f.file, &json, &err) == ABX_OK);
	cr_expect_not_null(strstr(json, "\"current\":\"b\""), "%s", json);
	cr_expect_not_null(strstr(json, "\"hasKey\":true"), "%s", json);
	cr_expect_null(strstr(json, "secret"));
	abx_free(json);
	cr_assert(abx_context_remove(f.file, "b", &err) == ABX_OK);
	cr_assert(abx_context_list(f.file, &json, &err) == ABX_OK);
	cr_expect_not_null(strstr(json, "\"current\":\"a\""), "%s", json);
	abx_free(json);
	folder_down(&f);
}

Test(client_context, what_is_no_context_is_refused_and_a_broken_file_is_left_alone)
{
	abx_context_options opts = ABX_CONTEXT_OPTIONS_INIT;
	abx_error *err = NULL;
	struct folder f;
	char *json = NULL;

	folder_up(&f);
	expect_refusal(abx_context_set(f.file, "a", NULL, &err), ABX_EINVAL, "no address",
		       &err);
	expect_refusal(abx_context_use(f.file, "a", &err), ABX_ENOTFOUND,
		       "no context 'a'", &err);
	opts.endpoint = "ftp://x";
	expect_refusal(abx_context_set(f.file, "a", &opts, &err), ABX_EINVAL, "ftp://x",
		       &err);
	opts.endpoint = "http://x";
	expect_refusal(abx_context_set(f.file, "", &opts, &err), ABX_EINVAL, "a name",
		       &err);
	opts.cluster_api = "http://x";
	expect_refusal(abx_context_set(f.file, "a", &opts, &err), ABX_EINVAL, "not both",
		       &err);
	opts.cluster_api = NULL;
	write_file(&f, "{ not json");
	expect_refusal(abx_context_set(f.file, "a", &opts, &err), ABX_EINVAL,
		       "config.json", &err);
	cr_assert(abx_context_list(f.file, &json, &err) == ABX_OK);
	cr_expect_not_null(strstr(json, "\"current\":null,\"contexts\":[]"), "%s", json);
	abx_free(json);
	write_file(&f, "{\"other\":[1],\"endpoint\":\"http://flat\"}");
	cr_assert(abx_context_set(f.file, "a", &opts, &err) == 1);
	expect_file(&f, "{\n  \"other\": [\n    1\n  ],\n  \"endpoint\": "
			"\"http://flat\",\n  \"contexts\": {\n    \"a\": {\n      "
			"\"endpoint\": \"http://x\"\n    }\n  },\n  "
			"\"currentContext\": \"a\"\n}\n");
	folder_down(&f);
}

Test(client_context, a_clients_identity_tells_no_key)
{
	abx_client_options opts = ABX_CLIENT_OPTIONS_INIT;
	abx_client *one = NULL, *two = NULL;
	abx_error *err = NULL;

	opts.cluster_api = "http://127.0.0.1:9";
	opts.api_key = "agbx_one";
	opts.flags = ABX_CLIENT_NO_ENVIRONMENT | ABX_CLIENT_NO_CONTEXT;
	cr_assert(abx_client_new(&opts, &one, &err) == ABX_OK);
	opts.api_key = "agbx_two";
	cr_assert(abx_client_new(&opts, &two, &err) == ABX_OK);
	char *a = abx_client_identity(one), *b = abx_client_identity(two);
	cr_expect(strlen(a) == strlen("default:01234567") && strcmp(a, b) != 0 &&
			  strncmp(a, "default:", 8) == 0,
		  "%s %s", a, b);
	abx_free(a);
	abx_free(b);
	cr_expect_null(abx_client_console(one));
	abx_client_free(one);
	abx_client_free(two);
}
