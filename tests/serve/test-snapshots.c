/* Snapshots and forks over the E2B API: every status and body, asked of the daemon. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "daemon.h"

TestSuite(serve_snapshots, .init = daemon_begin, .fini = daemon_teardown, .timeout = 120);

static char path[256];

static const char *of(const char *id, const char *rest)
{
	snprintf(path, sizeof(path), "/sandboxes/%s%s", id, rest);
	return path;
}

/* The snapshotID; lives until the second call after this one. */
static const char *snapshot(const char *id, const char *body)
{
	static char ids[2][200];
	static unsigned turn;
	char *out = ids[turn++ % 2];
	answer a = ask("POST", of(id, "/snapshots"), body);

	cr_assert_eq(a.status, 201, "%s", a.text);
	snprintf(out, 200, "%s", at(a.json, "snapshotID"));
	answer_done(&a);
	return out;
}

/* "team/name:tag" as a part of a path. */
static const char *template_path(const char *id)
{
	size_t n = (size_t)snprintf(path, sizeof(path), "/templates/");

	for (; *id && n + 4 < sizeof(path); id++) {
		if (*id == '/')
			n += (size_t)snprintf(path + n, sizeof(path) - n, "%%2F");
		else if (*id == ':')
			n += (size_t)snprintf(path + n, sizeof(path) - n, "%%3A");
		else
			path[n++] = *id;
	}
	path[n] = '\0';
	return path;
}

static size_t listed(const char *query)
{
	answer a;
	size_t n;

	snprintf(path, sizeof(path), "/snapshots%s", query);
	a = ask("GET", path, NULL);
	cr_assert_eq(a.status, 200, "%s", a.text);
	n = json_object_array_length(a.json);
	answer_done(&a);
	return n;
}

static answer create_from(const char *template_id)
{
	char body[300];

	snprintf(body, sizeof(body), "{\"templateID\":\"%s\"}", template_id);
	return ask("POST", "/sandboxes", body);
}

Test(serve_snapshots, without_a_name_it_is_its_templates)
{
	char id[32], shot[200], template_id[64], query[96], copy[32];
	answer a;

	make_env("base", 2);
	make_sandbox("base", id);
	a = ask("POST", of(id, "/snapshots"), "{}");
	cr_assert_eq(a.status, 201, "%s", a.text);
	cr_assert_eq(json_object_array_length(node(a.json, "names")), 0);
	snprintf(shot, sizeof(shot), "%s", at(a.json, "snapshotID"));
	answer_done(&a);
	cr_assert(strstr(shot, ":default"), "%s", shot);
	snprintf(template_id, sizeof(template_id), "%.*s", (int)strcspn(shot, ":"), shot);
	cr_assert_eq(listed(""), 1);
	snprintf(query, sizeof(query), "?name=%s", template_id);
	cr_assert_eq(listed(query), 1);
	snprintf(query, sizeof(query), "?sandboxID=%s", id);
	cr_assert_eq(listed(query), 1);
	cr_assert_eq(listed("?sandboxID=i0123456789abcdefghi"), 0);
	cr_assert_eq(listed("?name=nothing"), 0);

	a = create_from(shot);
	cr_assert_eq(a.status, 201, "%s", a.text);
	cr_assert_str_eq(at(a.json, "templateID"), template_id);
	snprintf(copy, sizeof(copy), "%s", at(a.json, "sandboxID"));
	answer_done(&a);
	a = ask("DELETE", template_path(shot), NULL);
	cr_assert_eq(a.status, 400, "%s", a.text);
	cr_assert(strstr(a.text, "because there are running sandboxes using it"));
	answer_done(&a);
	expect("POST", of(copy, "/pause"), "{}", 204, NULL);
	expect("DELETE", template_path(shot), NULL, 400, "paused sandboxes using it");
	expect("DELETE", of(copy, ""), NULL, 204, NULL);
	expect("DELETE", template_path(shot), NULL, 204, NULL);
	expect("DELETE", template_path(shot), NULL, 404, "not found");
	cr_assert_eq(listed(""), 0);
	a = create_from(shot);
	cr_assert_eq(a.status, 400, "%s", a.text);
	answer_done(&a);
}

Test(serve_snapshots, names_and_tags)
{
	char id[32], name[128], tagless[128];
	answer a;

	make_env("base", 2);
	make_sandbox("base", id);
	a = ask("POST", of(id, "/snapshots"), "{\"name\":\" Mine \"}");
	cr_assert_eq(a.status, 201, "%s", a.text);
	snprintf(name, sizeof(name), "%s", at(a.json, "snapshotID"));
	cr_assert(strstr(name, "/mine:default"), "%s", name);
	snprintf(tagless, sizeof(tagless), "%s", at(a.json, "names.0"));
	cr_assert_eq(strncmp(name, tagless, strlen(tagless)), 0);
	cr_assert_null(strchr(tagless, ':'));
	answer_done(&a);
	cr_assert_str_eq(snapshot(id, "{\"name\":\"mine\"}"), name, "the same name");
	cr_assert_eq(listed("?name=mine"), 1, "and one snapshot");
	cr_assert(strstr(snapshot(id, "{\"name\":\"mine:v2\"}"), "/mine:v2"));
	cr_assert_eq(listed("?name=mine"), 1, "once, as the newest");
	cr_assert_eq(listed(""), 1);
	cr_assert_eq(listed("?name=mine%3Adefault&limit=1"), 1);
	cr_assert_eq(listed("?name=mine%3Adefault"), 1);
	cr_assert_eq(listed("?name=mine%3Av2"), 1);
	cr_assert_eq(listed("?name=mine%3Av3"), 0);
	a = create_from(tagless);
	cr_assert_eq(a.status, 201, "%s", a.text);
	cr_assert_str_eq(at(a.json, "templateID"), tagless);
	expect("DELETE", of(at(a.json, "sandboxID"), ""), NULL, 204, NULL);
	answer_done(&a);
	expect("DELETE", template_path(tagless), NULL, 204, NULL);
	cr_assert_eq(listed(""), 0, "all its tags are gone");
	expect("POST", of(id, "/snapshots"), "{\"name\":\"a b\"}", 400, "Invalid name");
	expect("POST", of(id, "/snapshots"), "{\"name\":\"x/mine\"}", 400,
	       "is not your team's");
	expect("POST", of(id, "/snapshots"), "{\"name\":\"base\"}", 400,
	       "is the name of an env");
	expect("POST", of(id, "/snapshots"), "{\"names\":1}", 400, "names");
	expect("POST", of("i0123456789abcdefghi", "/snapshots"), "{}", 404,
	       "doesn't exist");
	expect("DELETE", "/templates/base", NULL, 400, "is an env");
	expect("DELETE", "/templates/no-such", NULL, 404, "template 'no-such' not found");
	expect("POST", of(id, "/pause"), "{}", 204, NULL);
	expect("POST", of(id, "/snapshots"), "{}", 409, "'paused' state");
}

/* The build of a tag of "mine"; the tags are as many. */
static void build_of(const char *tag, size_t tags, char ret[64])
{
	answer a = ask("GET", "/templates/mine%3Adefault/tags", NULL);

	cr_assert_eq(a.status, 200, "%s", a.text);
	cr_assert_eq(json_object_array_length(a.json), tags, "%s", a.text);
	*ret = '\0';
	for (size_t i = 0; i < tags; i++) {
		json_object *o = json_object_array_get_idx(a.json, i);

		cr_assert_not_null(at(o, "createdAt"));
		if (strcmp(at(o, "tag"), tag) == 0)
			snprintf(ret, 64, "%s", at(o, "buildID"));
	}
	answer_done(&a);
	cr_assert_eq(strlen(ret), 36, "%s: \"%s\"", tag, ret);
}

Test(serve_snapshots, a_tag_names_a_build)
{
	char id[32], first[64], again[64], second[64];
	answer a;

	make_env("base", 2);
	make_sandbox("base", id);
	(void)snapshot(id, "{\"name\":\"mine\"}");
	build_of("default", 1, first);
	(void)snapshot(id, "{\"name\":\"mine:v2\"}");
	build_of("default", 2, again);
	cr_assert_str_eq(first, again);
	build_of("v2", 2, second);
	cr_assert_str_neq(first, second);
	(void)snapshot(id, "{\"name\":\"mine\"}");
	build_of("default", 2, again);
	cr_assert_str_neq(first, again, "the tag was given anew");

	a = ask("GET", "/templates/base/tags", NULL);
	cr_assert_eq(a.status, 200, "%s", a.text);
	cr_assert_str_eq(at(a.json, "0.tag"), "default");
	answer_done(&a);
	expect("GET", "/templates/nothing/tags", NULL, 404,
	       "template 'nothing' not found");
	expect("GET", "/templates/a%20b/tags", NULL, 400, "Invalid template ID");
	expect("POST", "/sandboxes", "{\"templateID\":\"base:v2\"}", 404,
	       "tag 'v2' does not exist for template 'base'");
	a = create_from("base:default");
	cr_assert_eq(a.status, 201, "%s", a.text);
	cr_assert_str_eq(at(a.json, "templateID"), "base");
	answer_done(&a);
}

Test(serve_snapshots, pages_neither_repeat_nor_skip)
{
	char id[32], query[256] = "?limit=2", ids[5][200];
	int seen[5] = { 0 };

	make_env("base", 1);
	make_sandbox("base", id);
	for (int i = 0; i < 5; i++)
		snprintf(ids[i], sizeof(ids[i]), "%s", snapshot(id, "{}"));
	for (int page = 0; page < 20; page++) {
		const char *token;
		answer a;

		snprintf(path, sizeof(path), "/snapshots%s", query);
		a = ask("GET", path, NULL);
		cr_assert_eq(a.status, 200, "%s", a.text);
		cr_assert_leq(json_object_array_length(a.json), 2);
		for (size_t i = 0; i < json_object_array_length(a.json); i++) {
			char where[32];

			snprintf(where, sizeof(where), "%zu.snapshotID", i);
			for (int k = 0; k < 5; k++)
				seen[k] += strcmp(ids[k], at(a.json, where)) == 0;
		}
		token = answer_header(&a, "X-Next-Token");
		if (token)
			snprintf(query, sizeof(query), "?limit=2&nextToken=%s", token);
		answer_done(&a);
		if (!token)
			break;
		snapshot(id, "{}"); /* new ones come in front */
	}
	for (int k = 0; k < 5; k++)
		cr_assert_eq(seen[k], 1, "%s was seen %d times", ids[k], seen[k]);
	expect("GET", "/snapshots?limit=0", NULL, 400, "limit");
	expect("GET", "/snapshots?nextToken=x", NULL, 400, "Invalid next token");
	expect("GET", "/snapshots?name=a%20b", NULL, 400, "Invalid name");
}

Test(serve_snapshots, forks_are_copies_of_their_own)
{
	char id[32];
	answer a;

	make_env("base", 3);
	a = ask("POST", "/sandboxes",
		"{\"templateID\":\"base\",\"metadata\":{\"k\":\"v\"},\"envVars\":{\"A\":"
		"\"1\"},\"secure\":true,\"timeout\":60}");
	cr_assert_eq(a.status, 201);
	snprintf(id, sizeof(id), "%s", at(a.json, "sandboxID"));
	answer_done(&a);
	a = ask("POST", of(id, "/fork"), "{\"count\":2,\"timeout\":40}");
	cr_assert_eq(a.status, 201, "%s", a.text);
	cr_assert_eq(json_object_array_length(a.json), 2);
	for (int i = 0; i < 2; i++) {
		char where[32];
		answer got;

		snprintf(where, sizeof(where), "%d.sandbox.sandboxID", i);
		cr_assert_str_neq(at(a.json, where), id);
		got = ask("GET", of(at(a.json, where), ""), NULL);
		cr_assert_eq(got.status, 200);
		cr_assert_str_eq(at(got.json, "metadata.k"), "v");
		cr_assert_str_eq(at(got.json, "templateID"), "base");
		cr_assert_eq(strlen(at(got.json, "envdAccessToken")), 64);
		answer_done(&got);
	}
	answer_done(&a);
	cr_assert_eq(listed(""), 0, "what it was made of is not shown");
	a = ask("GET", of(id, ""), NULL);
	cr_assert_str_eq(at(a.json, "state"), "running");
	answer_done(&a);
}

Test(serve_snapshots, a_fork_that_fails_does_not_take_the_others_along)
{
	char id[32];
	answer a;
	int good = 0, bad = 0;

	make_env("base", 2);
	make_sandbox("base", id);
	a = ask("POST", of(id, "/fork"), "{\"count\":2,\"timeout\":60}");
	cr_assert_eq(a.status, 201, "%s", a.text);
	for (int i = 0; i < 2; i++) {
		char where[32];

		snprintf(where, sizeof(where), "%d.error.code", i);
		if (at(a.json, where)) {
			cr_assert_str_eq(at(a.json, where), "429");
			bad++;
		} else {
			good++;
		}
	}
	cr_assert_eq(good, 1);
	cr_assert_eq(bad, 1);
	answer_done(&a);
}

Test(serve_snapshots, forks_that_cannot_be)
{
	char id[32];

	make_env("base", 1);
	make_sandbox("base", id);
	expect("POST", of(id, "/fork"), "{\"count\":0}", 400, "Count must be at least 1");
	expect("POST", of(id, "/fork"), "{\"count\":101}", 400,
	       "Count cannot be greater than 100");
	expect("POST", of(id, "/fork"), "{\"timeout\":0}", 400, "timeout");
	expect("POST", of(id, "/fork"), "{\"memory\":true}", 400, "memory");
	expect("POST", of("i0123456789abcdefghi", "/fork"), "{}", 404, "doesn't exist");
	expect("POST", of(id, "/pause"), "{}", 204, NULL);
	expect("POST", of(id, "/fork"), "{}", 409,
	       "is paused and cannot be forked; resume it first");
}
