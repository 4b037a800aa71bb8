/* Keys, sessions, acting as somebody else, approvals: asked of the daemon. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"
#include "daemon.h"
#include "io/json.h"

#define SECRET "0123456789abcdef0123456789abcdef"
#define CONSOLE "https://console.example"

static char secret_path[64];

static void setup(void)
{
	int fd;

	snprintf(secret_path, sizeof(secret_path), "/tmp/serve-jwt-XXXXXX");
	fd = mkstemp(secret_path);
	cr_assert_eq(write(fd, SECRET "\n", 33), 33);
	close(fd);
	daemon_start("--jwt-secret-file", secret_path, "--console-url", CONSOLE, NULL);
}

static void teardown(void)
{
	daemon_teardown();
	unlink(secret_path);
}

TestSuite(serve_native_keys, .init = setup, .fini = teardown, .timeout = 120);

/* "Authorization: Bearer ..." of a session with these claims. Static. */
static const char *session(const char *claims)
{
	static char header[1024];
	static const char head[] = "{\"alg\":\"HS256\"}";
	char *h = abx__base64url_encode(head, strlen(head));
	char *c = abx__base64url_encode(claims, strlen(claims));
	char *both = abx__strf("%s.%s", h, c), *s;
	uint8_t mac[ABX__SHA256_LEN];

	abx__hmac_sha256(SECRET, strlen(SECRET), both, strlen(both), mac);
	s = abx__base64url_encode(mac, sizeof(mac));
	snprintf(header, sizeof(header), "Authorization: Bearer %s.%s", both, s);
	abx__free(h);
	abx__free(c);
	abx__free(both);
	abx__free(s);
	return header;
}

static const char *const person = "{\"user\":\"u\",\"team\":\"t\",\"email\":\"u@x\"}";

static answer as_session(const char *claims, const char *method, const char *path,
			 const char *body)
{
	const char *const headers[] = { session(claims), NULL };

	return ask_with(method, path, body, headers);
}

/* With this key, and a session id when not NULL. */
static answer as_key(const char *key, const char *session_id, const char *method,
		     const char *path, const char *body)
{
	char header[160], run[64];
	const char *const headers[] = { header, session_id ? run : NULL, NULL };

	snprintf(header, sizeof(header), "AGENTBOX-API-KEY: %s", key);
	snprintf(run, sizeof(run), "X-AgentBox-Session-Id: %s",
		 session_id ? session_id : "");
	return ask_with(method, path, body, headers);
}

static void check_at(const answer *a, int status, const char *text, int line)
{
	cr_assert_eq(a->status, status, "line %d: %d %s", line, a->status, a->text);
	cr_assert(!text || strstr(a->text, text), "line %d: %s", line, a->text);
}

static void check_done_at(answer a, int status, const char *text, int line)
{
	check_at(&a, status, text, line);
	answer_done(&a);
}

#define CHECK(a, status, text) check_at(&(a), status, text, __LINE__)
#define CHECK_DONE(a, status, text) check_done_at(a, status, text, __LINE__)

/* A key of u in t; its text and id. */
static void make_key(const char *mode, char key[128], char id[64])
{
	char body[64];
	answer a;

	snprintf(body, sizeof(body), "{\"mode\":\"%s\",\"description\":\"mine\"}", mode);
	a = as_session(person, "POST", "/v1/api-keys", body);
	CHECK(a, 201, "\"role\":\"tenant\"");
	snprintf(key, 128, "%s", at(a.json, "apiKey"));
	snprintf(id, 64, "%s", at(a.json, "keyId"));
	cr_assert_str_eq(answer_header(&a, "Cache-Control"), "no-store");
	answer_done(&a);
	cr_assert(abx__str_starts(key, "agbx_") && strlen(key) == 69);
	cr_assert(abx__str_starts(id, "agentbox-apikey-") && strlen(id) == 32);
}

Test(serve_native_keys, sessions_are_people)
{
	answer a = as_session(person, "GET", "/v1/auth/whoami", NULL);
	char bad[1100];
	const char *headers[3] = { bad, NULL, NULL };
	char key[128];

	CHECK(a, 200, "\"role\":\"tenant\"");
	cr_assert_str_eq(at(a.json, "user"), "u");
	cr_assert_str_eq(at(a.json, "team"), "t");
	cr_assert_str_eq(at(a.json, "namespace"), "default");
	answer_done(&a);
	CHECK_DONE(as_session("{\"sub\":\"root\",\"role\":\"admin\"}", "GET",
			      "/v1/admin/teams", NULL),
		   200, "\"items\"");
	CHECK_DONE(as_session(person, "GET", "/v1/admin/teams", NULL), 403,
		   "\"admin access required\"");
	CHECK_DONE(as_session("{\"user\":\"u\",\"exp\":1}", "GET", "/v1/envs", NULL), 401,
		   "expired");
	/* A bad session is 401 whatever key comes with it. */
	snprintf(bad, sizeof(bad), "%sx", session(person));
	snprintf(key, sizeof(key), "AGENTBOX-API-KEY: %s", d.agbx);
	headers[1] = key;
	CHECK_DONE(ask_with("GET", "/v1/envs", NULL, headers), 401, "session");
	snprintf(bad, sizeof(bad), "Authorization: Bearer %s", d.agbx);
	headers[1] = NULL;
	CHECK_DONE(ask_with("GET", "/v1/envs", NULL, headers), 200, "items");
}

Test(serve_native_keys, own_keys)
{
	char key[128], id[64], path[128];
	answer a;

	make_key("unrestricted", key, id);
	CHECK_DONE(as_key(key, NULL, "GET", "/v1/auth/whoami", NULL), 200,
		   "\"mode\":\"unrestricted\"");
	CHECK_DONE(as_key(key, NULL, "GET", "/v1/admin/teams", NULL), 403,
		   "\"admin api key required\"");
	a = as_key(key, NULL, "GET", "/v1/api-keys", NULL);
	CHECK(a, 200, NULL);
	cr_assert(json_object_is_type(a.json, json_type_array));
	cr_assert_eq(json_object_array_length(a.json), 1);
	cr_assert_str_eq(at(a.json, "0.rawToken"), key);
	cr_assert_str_eq(at(a.json, "0.keyId"), id);
	cr_assert_str_eq(at(a.json, "0.description"), "mine");
	answer_done(&a);
	snprintf(path, sizeof(path), "/v1/api-keys/%s", id);
	CHECK_DONE(ask("DELETE", path, NULL), 403, "somebody else's");
	CHECK_DONE(ask("DELETE", "/v1/api-keys/nope", NULL), 404, "nope");
	snprintf(path, sizeof(path), "/v1/api-keys/agentbox-system%%2F%s", id);
	CHECK_DONE(as_session(person, "DELETE", path, NULL), 200, "\"Deleted\"");
	CHECK_DONE(as_key(key, NULL, "GET", "/v1/envs", NULL), 401, "invalid api key");
	CHECK_DONE(as_session(person, "POST", "/v1/api-keys",
			      "{\"expiresAt\":\"2020-01-01T00:00:00Z\"}"),
		   400, "expiresAt is in the past");
	CHECK_DONE(as_session(person, "POST", "/v1/api-keys", "{\"mode\":\"robot\"}"),
		   400, "mode");
	CHECK_DONE(as_session(person, "POST", "/v1/api-keys",
			      "{\"expiresAt\":\"2100-01-01T00:00:00Z\"}"),
		   201, "\"expiresAt\":\"2100-01-01T00:00:00Z\"");
}

Test(serve_native_keys, a_person_has_so_many_and_no_more)
{
	for (int i = 0; i < 100; i++)
		CHECK_DONE(as_session(person, "POST", "/v1/api-keys", "{}"), 201, NULL);
	CHECK_DONE(as_session(person, "POST", "/v1/api-keys", "{}"), 409, "100");
	CHECK_DONE(as_session("{\"user\":\"v\"}", "POST", "/v1/api-keys", "{}"), 201,
		   NULL);
}

Test(serve_native_keys, keys_for_others)
{
	static const char sha[] =
		"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
	char body[256], id[64];
	answer a;

	a = ask("POST", "/v1/admin/api-keys",
		"{\"team\":\"red\",\"user\":\"ann\",\"namespace\":\"red\"}");
	CHECK(a, 201, "\"tenant\"");
	CHECK_DONE(as_key(at(a.json, "apiKey"), NULL, "GET", "/v1/auth/whoami", NULL),
		   200, "\"namespace\":\"red\"");
	snprintf(id, sizeof(id), "%s", at(a.json, "keyId"));
	answer_done(&a);
	CHECK_DONE(ask("POST", "/v1/admin/api-keys", "{\"team\":\"red\"}"), 400,
		   "user is required");
	CHECK_DONE(ask("POST", "/v1/admin/api-keys",
		       "{\"team\":\"r\",\"user\":\"a\",\"namespace\":\"No\"}"),
		   400, "namespace");
	snprintf(body, sizeof(body),
		 "{\"team\":\"red\",\"user\":\"bob\",\"tokenHash\":\"%s\","
		 "\"hashPrefix\":\"%.16s\",\"issuedAt\":\"2024-01-01T00:00:00Z\"}",
		 sha, sha);
	/* The SHA-256 of "test". */
	CHECK_DONE(ask("POST", "/v1/admin/api-keys", body), 201, "2024-01-01");
	CHECK_DONE(ask("POST", "/v1/admin/api-keys", body), 201, "2024-01-01");
	CHECK_DONE(as_key("test", NULL, "GET", "/v1/auth/whoami", NULL), 200, "\"bob\"");
	CHECK_DONE(ask("POST", "/v1/admin/api-keys",
		       "{\"team\":\"r\",\"user\":\"a\",\"issuedAt\":"
		       "\"2024-01-01T00:00:00Z\"}"),
		   400, "issuedAt goes with tokenHash");
	a = ask("GET", "/v1/admin/api-keys?namespace=red", NULL);
	CHECK(a, 200, id);
	cr_assert_eq(json_object_array_length(a.json), 2);
	cr_assert_null(strstr(a.text, "rawToken"), "other people's texts");
	answer_done(&a);
	CHECK_DONE(ask("GET", "/v1/admin/teams", NULL), 200, "[\"admin\",\"red\"]");
	CHECK_DONE(ask("GET", "/v1/admin/teams/red/users", NULL), 200,
		   "{\"items\":[\"ann\",\"bob\"],\"total\":2}");
	CHECK_DONE(ask("GET", "/v1/admin/namespaces", NULL), 200,
		   "[\"default\",\"red\"]");
	snprintf(body, sizeof(body), "/v1/admin/api-keys/%s/promote", id);
	CHECK_DONE(ask("POST", body, NULL), 503, "hub");
	CHECK_DONE(ask("POST", "/v1/admin/api-keys/nope/promote", NULL), 404, "nope");
	snprintf(body, sizeof(body), "/v1/admin/api-keys/%s", id);
	CHECK_DONE(ask("DELETE", body, NULL), 200, "\"Deleted\"");
	CHECK_DONE(ask("DELETE", body, NULL), 404, id);
}

Test(serve_native_keys, an_admin_acts_as_somebody_else)
{
	char key[160], mine[128], id[64];
	const char *headers[] = { key, "X-Impersonate-Team: t", "X-Impersonate-User: u",
				  NULL };
	answer a;

	make_env("base", 1);
	snprintf(key, sizeof(key), "AGENTBOX-API-KEY: %s", d.agbx);
	a = ask_with("GET", "/v1/auth/whoami", NULL, headers);
	CHECK(a, 200, "\"role\":\"admin\"");
	cr_assert_str_eq(at(a.json, "user"), "u");
	answer_done(&a);
	CHECK_DONE(ask_with("GET", "/v1/envs", NULL, headers), 200, "{\"items\":[]}");
	CHECK_DONE(ask_with("GET", "/v1/envs/base", NULL, headers), 404, "base");
	CHECK_DONE(ask_with("GET", "/v1/admin/teams", NULL, headers), 200, "admin");
	CHECK_DONE(ask_with("POST", "/v1/api-keys", "{}", headers), 201, "\"tenant\"");
	headers[2] = "X-Impersonate-User:   ";
	CHECK_DONE(ask_with("GET", "/v1/envs", NULL, headers), 200, "\"base\"");
	headers[2] = NULL;
	CHECK_DONE(ask_with("GET", "/v1/envs", NULL, headers), 200, "\"base\"");
	make_key("unrestricted", mine, id);
	snprintf(key, sizeof(key), "AGENTBOX-API-KEY: %s", mine);
	headers[1] = "X-Impersonate-Team: admin";
	headers[2] = "X-Impersonate-User: admin";
	CHECK_DONE(ask_with("GET", "/v1/auth/whoami", NULL, headers), 200,
		   "\"user\":\"u\"");
}

Test(serve_native_keys, old_and_odd_clients)
{
	char key[128];
	const char *headers[] = { key, "X-AgentBox-Client-Version: one", NULL };
	answer a;

	snprintf(key, sizeof(key), "AGENTBOX-API-KEY: %s", d.agbx);
	a = ask_with("POST", "/v1/sandboxes", "{}", headers);
	CHECK(a, 426, "\"detail\":\"");
	cr_assert(json_object_is_type(node(a.json, "error"), json_type_string));
	answer_done(&a);
	CHECK_DONE(ask_with("GET", "/v1/envs", NULL, headers), 200, NULL);
	headers[1] = "X-AgentBox-Client-Version: 1.2.3-rc.1+b7";
	CHECK_DONE(ask_with("POST", "/v1/sandboxes", "{}", headers), 400, "poolName");
	snprintf(key, sizeof(key), "X-API-Key: %s", d.agbx);
	headers[1] = "X-AgentBox-Client-Version: one";
	CHECK_DONE(ask_with("POST", "/v1/sandboxes", "{}", headers), 400, "poolName");
}

/* ---- the gate ---- */

static void decide(const char *id, const char *body, int status, const char *text)
{
	char path[96];

	snprintf(path, sizeof(path), "/v1/approvals/%s/decision", id);
	CHECK_DONE(as_session(person, "POST", path, body), status, text);
}

Test(serve_native_keys, an_agents_write_waits_for_a_person)
{
	static const char create[] = "{\"name\":\"x\",\"templateRef\":{\"name\":\"t\"}}";
	char key[128], id[64], approval[32], path[96];
	answer a;

	make_env("base", 1);
	make_key("agent", key, id);
	CHECK_DONE(as_key(key, NULL, "GET", "/v1/auth/whoami", NULL), 200,
		   "\"mode\":\"agent\"");
	CHECK_DONE(as_key(key, NULL, "POST", "/v1/envs", "{\"nme\":1}"), 400, "nme");
	a = as_key(key, NULL, "POST", "/v1/envs", create);
	CHECK(a, 428, "\"errorCode\":\"APPROVAL_REQUIRED\"");
	cr_assert_str_eq(at(a.json, "error"), "approval required: Create an environment");
	cr_assert_str_eq(at(a.json, "detail.operation"), "env.create");
	cr_assert_str_eq(at(a.json, "detail.summary"), "Create an environment");
	cr_assert_str_eq(at(a.json, "detail.onceOnly"), "false");
	snprintf(approval, sizeof(approval), "%s", at(a.json, "detail.approvalId"));
	snprintf(path, sizeof(path), "/v1/approvals/%s", approval);
	cr_assert_str_eq(at(a.json, "detail.pollUrl"), path);
	snprintf(path, sizeof(path), CONSOLE "/clusters/local/approvals?id=%s", approval);
	cr_assert_str_eq(at(a.json, "detail.url"), path);
	cr_assert_eq(strlen(at(a.json, "detail.expiresAt")), 20);
	answer_done(&a);
	CHECK_DONE(as_key(key, NULL, "POST", "/v1/envs", create), 428, approval);
	snprintf(path, sizeof(path), "/v1/approvals/%s", approval);
	CHECK_DONE(as_key(key, NULL, "GET", path, NULL), 200, "\"status\":\"pending\"");
	CHECK_DONE(ask("GET", path, NULL), 404, approval);
	CHECK_DONE(as_session(person, "GET", "/v1/approvals", NULL), 200, approval);
	strcat(path, "/decision");
	CHECK_DONE(as_key(key, NULL, "POST", path, "{\"decision\":\"approve\"}"), 403,
		   "console session");
	decide(approval, "{\"decision\":\"maybe\"}", 400, "decision");
	decide(approval, "{\"decision\":\"approve\",\"scope\":\"session\"}", 400,
	       "no session");
	decide(approval, "{\"decision\":\"approve\"}", 200, "\"decidedBy\":\"u@x\"");
	decide(approval, "{\"decision\":\"deny\"}", 400, "already");
	decide("apr_0000000000000000", "{\"decision\":\"deny\"}", 404, "apr_");
	CHECK_DONE(as_key(key, NULL, "POST", "/v1/envs", create), 201, "\"env\"");
	CHECK_DONE(as_key(key, NULL, "POST", "/v1/envs", create), 428, "APPROVAL");
}

Test(serve_native_keys, a_session_and_a_key_are_let_through)
{
	static const char create[] = "{\"poolName\":\"nope\"}";
	char key[128], id[64], approval[32], grant[160], path[192];
	answer a;

	make_key("agent", key, id);
	a = as_key(key, "run-1", "POST", "/v1/sandboxes", create);
	CHECK(a, 428, NULL);
	decide(at(a.json, "detail.approvalId"),
	       "{\"decision\":\"approve\",\"scope\":\"session\"}", 200,
	       "\"sessionId\":\"run-1\"");
	answer_done(&a);
	CHECK_DONE(as_key(key, "run-1", "POST", "/v1/sandboxes", create), 404, "nope");
	CHECK_DONE(as_key(key, "run-1", "POST", "/v1/sandboxes", "{}"), 400, "poolName");
	a = as_key(key, "run-2", "POST", "/v1/sandboxes", create);
	CHECK(a, 428, NULL);
	snprintf(approval, sizeof(approval), "%s", at(a.json, "detail.approvalId"));
	answer_done(&a);
	decide(approval, "{\"decision\":\"approve\",\"scope\":\"key\"}", 200,
	       "\"scope\":\"key\"");
	CHECK_DONE(as_key(key, NULL, "POST", "/v1/sandboxes", create), 404, "nope");
	a = as_key(key, NULL, "GET", "/v1/approvals", NULL);
	CHECK(a, 200, "\"pending\":[]");
	cr_assert_eq(json_object_array_length(node(a.json, "grants")), 2);
	cr_assert_str_eq(at(a.json, "grants.1.scope"), "key");
	cr_assert_str_eq(at(a.json, "grants.1.grantedBy"), "u@x");
	cr_assert_str_eq(at(a.json, "grants.1.principal.keyId"), id);
	snprintf(grant, sizeof(grant), "%s", at(a.json, "grants.1.id"));
	snprintf(path, sizeof(path), "/v1/approvals/grants/%s",
		 at(a.json, "grants.0.id"));
	answer_done(&a);
	CHECK_DONE(as_key(key, NULL, "DELETE", path, NULL), 404, "grn_");
	CHECK_DONE(as_session(person, "DELETE", path, NULL), 204, NULL);
	CHECK_DONE(as_session(person, "DELETE", path, NULL), 404, NULL);
	daemon_again();
	CHECK_DONE(as_key(key, NULL, "POST", "/v1/sandboxes", create), 404, "nope");
	snprintf(path, sizeof(path), "/v1/approvals/grants/%s", grant);
	CHECK_DONE(ask_unix("DELETE", path, NULL), 404, "grk_");
	CHECK_DONE(as_session(person, "DELETE", path, NULL), 204, NULL);
	CHECK_DONE(as_key(key, NULL, "POST", "/v1/sandboxes", create), 428, NULL);
}

Test(serve_native_keys, an_agent_gets_no_keys)
{
	char key[128], id[64], path[128];
	answer a;

	make_key("agent", key, id);
	a = as_key(key, NULL, "POST", "/v1/api-keys", "{\"mode\":\"agent\"}");
	CHECK(a, 403, "\"errorCode\":\"FORBIDDEN_FOR_AGENT\"");
	cr_assert_str_eq(at(a.json, "detail.approvalId"), "");
	cr_assert_str_eq(at(a.json, "detail.operation"), "apikey.create");
	cr_assert_str_eq(at(a.json, "detail.onceOnly"), "false");
	cr_assert_str_eq(at(a.json, "detail.pollUrl"), "");
	cr_assert_str_eq(at(a.json, "detail.expiresAt"), "");
	cr_assert_str_eq(at(a.json, "detail.url"), CONSOLE "/clusters/local/api-keys");
	answer_done(&a);
	a = as_key(key, NULL, "GET", "/v1/api-keys", NULL);
	CHECK(a, 200, id);
	cr_assert_null(strstr(a.text, "rawToken"));
	answer_done(&a);
	/* Nor by the other door. */
	CHECK_DONE(as_key(key, NULL, "POST", "/e2b/api-keys", "{\"name\":\"n\"}"), 403,
		   "agent");
	snprintf(path, sizeof(path), "/v1/api-keys/%s", id);
	a = as_key(key, NULL, "DELETE", path, NULL);
	CHECK(a, 428, "\"onceOnly\":true");
	decide(at(a.json, "detail.approvalId"),
	       "{\"decision\":\"approve\",\"scope\":\"key\"}", 400, "once only");
	answer_done(&a);
}

Test(serve_native_keys, the_owners_socket_decides)
{
	char key[128];
	answer a = ask_unix("POST", "/v1/api-keys", "{\"mode\":\"agent\"}");

	CHECK(a, 201, "\"tenant\"");
	snprintf(key, sizeof(key), "%s", at(a.json, "apiKey"));
	answer_done(&a);
	a = as_key(key, NULL, "DELETE", "/v1/envs/nope", NULL);
	CHECK(a, 428, "Delete an environment (nope)");
	snprintf(key, sizeof(key), "/v1/approvals/%s/decision",
		 at(a.json, "detail.approvalId"));
	answer_done(&a);
	CHECK_DONE(ask("POST", key, "{\"decision\":\"deny\"}"), 403, "session");
	CHECK_DONE(ask_unix("POST", key, "{\"decision\":\"deny\"}"), 200,
		   "\"decidedBy\":\"admin/admin\"");
}

Test(serve_native_keys, an_agents_key_is_one_over_the_socket_too)
{
	char key[128], id[64], header[160], whose[192];
	const char *const headers[] = { header, NULL };
	const char *const others[] = { whose, NULL };

	make_key("agent", key, id);
	snprintf(header, sizeof(header), "AGENTBOX-API-KEY: %s", key);
	snprintf(whose, sizeof(whose), "AGENTBOX-API-KEY: %s0", key);
	CHECK_DONE(ask_unix_with("DELETE", "/v1/envs/nope", NULL, headers), 428,
		   "Delete an environment (nope)");
	CHECK_DONE(ask_unix_with("DELETE", "/v1/envs/nope", NULL, others), 404, "nope");
	CHECK_DONE(ask_unix("DELETE", "/v1/envs/nope", NULL), 404, "nope");
}
