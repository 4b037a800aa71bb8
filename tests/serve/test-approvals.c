/* Approvals with a turned clock: what waits, what lets pass and for how long. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "serve/approvals.h"
#include "turned-clock.h"

typedef struct fixture {
	turned_clock clock;
	abx__approvals *all;
} fixture;

static fixture f;

static void setup(void)
{
	turned_clock_init(&f.clock);
	cr_assert_eq(abx__approvals_new(&f.clock.clock, &f.all, NULL), ABX_OK);
}

static void teardown(void)
{
	abx__approvals_free(f.all);
}

TestSuite(serve_approvals, .init = setup, .fini = teardown);

static const char *const demo[] = { "demo", NULL };

/* env.update by agent key k of t/u in session s, unless said otherwise. */
static abx__gate_call call_of(const char *body)
{
	return (abx__gate_call){ .gated = abx__gated_find("PUT", "/v1/envs/{name}"),
				 .path = "/v1/envs/demo",
				 .names = demo,
				 .body = body,
				 .body_len = strlen(body),
				 .team = "t",
				 .user = "u",
				 .key_id = "k",
				 .session_id = "s" };
}

static const abx__approval *held(const abx__gate_call *call)
{
	const abx__approval *q = NULL;

	cr_assert_eq(abx__approvals_check(f.all, call, &q, NULL), 0);
	cr_assert_not_null(q);
	return q;
}

static bool passes(const abx__gate_call *call)
{
	const abx__approval *q = NULL;

	return abx__approvals_check(f.all, call, &q, NULL) == 1;
}

static void approve(const abx__approval *q, enum abx__approval_scope scope)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__approval *own = abx__approvals_find(f.all, q->id, "t", "u");

	cr_assert_eq(abx__approvals_decide(f.all, own, true, scope, "p@x", &err), ABX_OK,
		     "%s", abx_error_message(err));
}

static void refused(const abx__approval *q, enum abx__approval_scope scope,
		    const char *why)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__approval *own = abx__approvals_find(f.all, q->id, "t", "u");

	cr_assert_eq(abx__approvals_decide(f.all, own, true, scope, "p", &err),
		     ABX_EINVAL);
	cr_assert(strstr(abx_error_message(err), why), "%s", abx_error_message(err));
}

Test(serve_approvals, the_catalogue_is_the_documented_one)
{
	static const struct {
		const char *method, *path, *operation, *summary;
		bool once_only, refused;
	} rows[] = {
		{ "POST", "/v1/sandboxes", "sandbox.create", "Start a sandbox", 0, 0 },
		{ "DELETE", "/v1/sandboxes/{sandboxId}", "sandbox.delete",
		  "Delete a sandbox", 1, 0 },
		{ "PUT", "/v1/sandboxes/{sandboxId}/timeout", "sandbox.update",
		  "Change a sandbox's timeout", 0, 0 },
		{ "POST", "/v1/sandboxes/{sandboxId}/exec", "sandbox.exec",
		  "Run a command in a sandbox", 0, 0 },
		{ "POST", "/v1/sandboxes/{sandboxId}/exec-token", "sandbox.execToken",
		  "Mint a terminal token for a sandbox", 1, 0 },
		{ "POST", "/v1/envs", "env.create", "Create an environment", 0, 0 },
		{ "PUT", "/v1/envs/{name}", "env.update", "Change an environment", 0, 0 },
		{ "DELETE", "/v1/envs/{name}", "env.delete", "Delete an environment", 1,
		  0 },
		{ "POST", "/v1/envs/{name}/sandboxpools", "pool.create",
		  "Add a warm pool", 0, 0 },
		{ "PUT", "/v1/envs/{name}/sandboxpools/{poolName}", "pool.update",
		  "Change a warm pool", 0, 0 },
		{ "DELETE", "/v1/envs/{name}/sandboxpools/{poolName}", "pool.delete",
		  "Delete a warm pool", 1, 0 },
		{ "PUT", "/v1/envs/{name}/autoscaling/groups/{groupName}",
		  "autoscaling.update", "Change an autoscaling group", 0, 0 },
		{ "DELETE", "/v1/envs/{name}/autoscaling/groups/{groupName}",
		  "autoscaling.delete", "Delete an autoscaling group", 1, 0 },
		{ "DELETE", "/v1/api-keys/{name}", "apikey.delete", "Delete an API key",
		  1, 0 },
		{ "POST", "/v1/api-keys", "apikey.create", "Create an API key", 0, 1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const abx__gated *g = abx__gated_find(rows[i].method, rows[i].path);

		cr_assert_not_null(g, "%s %s", rows[i].method, rows[i].path);
		cr_assert_str_eq(g->operation, rows[i].operation);
		cr_assert_str_eq(g->summary, rows[i].summary);
		cr_assert_eq(g->once_only, rows[i].once_only, "%s", g->operation);
		cr_assert_eq(g->refused, rows[i].refused, "%s", g->operation);
	}
	cr_assert_null(abx__gated_find("GET", "/v1/envs"));
	cr_assert_null(abx__gated_find("POST", "/v1/admin/api-keys"));
	cr_assert_null(abx__gated_find("POST", "/v1/approvals/{approvalId}/decision"));
}

Test(serve_approvals, the_same_call_waits_under_the_same_id)
{
	abx__gate_call call = call_of("{}"), other = call_of("{\"a\":1}");
	char id[ABX__APPROVAL_ID_SIZE];
	const abx__approval *q = held(&call);

	cr_assert_eq(strlen(q->id), 20);
	cr_assert(strncmp(q->id, "apr_", 4) == 0 &&
		  strspn(q->id + 4, "0123456789abcdef") == 16);
	cr_assert_str_eq(q->summary, "Change an environment (demo)");
	cr_assert_eq(q->expires_ms - q->created_ms, 900000);
	strcpy(id, q->id);
	cr_assert_str_eq(held(&call)->id, id);
	cr_assert_str_neq(held(&other)->id, id, "another body is another call");
	other = call_of("{}");
	other.path = "/v1/envs/other";
	cr_assert_str_neq(held(&other)->id, id, "another path, too");
}

Test(serve_approvals, once_is_spent_by_the_first_matching_call)
{
	abx__gate_call call = call_of("{}"), other = call_of("{\"a\":1}");
	const abx__approval *q = held(&call);

	approve(q, ABX__SCOPE_ONCE);
	cr_assert_not(passes(&other));
	other = call_of("{}");
	other.user = "v";
	cr_assert_not(passes(&other), "another user's approval");
	cr_assert(passes(&call));
	cr_assert_not(passes(&call), "it is spent");
}

Test(serve_approvals, once_ends_after_fifteen_minutes)
{
	abx__gate_call call = call_of("{}");
	const abx__approval *q = held(&call);

	approve(q, ABX__SCOPE_ONCE);
	f.clock.now_ms += ABX__APPROVAL_LIFE_MS - 1;
	cr_assert(passes(&call));
	q = held(&call);
	approve(q, ABX__SCOPE_ONCE);
	f.clock.now_ms += ABX__APPROVAL_LIFE_MS;
	cr_assert_not(passes(&call));
}

Test(serve_approvals, a_session_is_let_through_for_two_hours)
{
	abx__gate_call call = call_of("{}"), other = call_of("{\"b\":2}");
	const abx__approval_grant *g;

	approve(held(&call), ABX__SCOPE_SESSION);
	cr_assert(passes(&call));
	cr_assert(passes(&other), "any body of the operation");
	other.session_id = "another";
	cr_assert_not(passes(&other));
	other = call_of("{}");
	other.session_id = NULL;
	cr_assert_not(passes(&other));
	other = call_of("{}");
	other.gated = abx__gated_find("POST", "/v1/envs");
	cr_assert_not(passes(&other), "another operation");
	g = abx__approvals_next_grant(f.all, NULL, "t", "u");
	cr_assert_not_null(g);
	cr_assert(strncmp(g->id, "grn_", 4) == 0 && strlen(g->id) == 20);
	cr_assert_str_eq(g->granted_by, "p@x");
	cr_assert_eq(g->expires_ms - g->created_ms, 7200000);
	cr_assert_null(abx__approvals_next_grant(f.all, NULL, "t", "v"));
	f.clock.now_ms += ABX__APPROVAL_SESSION_MS;
	cr_assert_not(passes(&call));
	abx__approvals_sweep(f.all);
	cr_assert_null(abx__approvals_next_grant(f.all, NULL, "t", "u"));
}

Test(serve_approvals, a_grant_can_be_taken_back)
{
	abx__gate_call call = call_of("{}");
	char id[ABX__APPROVAL_ID_SIZE];

	approve(held(&call), ABX__SCOPE_SESSION);
	strcpy(id, abx__approvals_next_grant(f.all, NULL, "t", "u")->id);
	cr_assert_eq(abx__approvals_revoke(f.all, id, "t", "v"), ABX_ENOTFOUND);
	cr_assert_eq(abx__approvals_revoke(f.all, id, "t", "u"), ABX_OK);
	cr_assert_not(passes(&call));
	cr_assert_eq(abx__approvals_revoke(f.all, id, "t", "u"), ABX_ENOTFOUND);
}

Test(serve_approvals, wrong_decisions_are_refused)
{
	abx__gate_call call = call_of("{}"), once = call_of("");
	const abx__approval *q;

	once.gated = abx__gated_find("DELETE", "/v1/envs/{name}");
	q = held(&once);
	refused(q, ABX__SCOPE_SESSION, "once only");
	refused(q, ABX__SCOPE_KEY, "once only");
	call.session_id = "";
	q = held(&call);
	refused(q, ABX__SCOPE_SESSION, "no session");
	call.key_id = "";
	q = held(&call);
	refused(q, ABX__SCOPE_KEY, "without a key");
	approve(q, ABX__SCOPE_ONCE);
	refused(q, ABX__SCOPE_ONCE, "approved already");
	q = held(&once);
	f.clock.now_ms += ABX__APPROVAL_LIFE_MS;
	refused(q, ABX__SCOPE_ONCE, "expired");
}

Test(serve_approvals, a_denied_call_waits_anew)
{
	abx__gate_call call = call_of("{}");
	abx__approval *q = abx__approvals_find(f.all, held(&call)->id, "t", "u");

	cr_assert_eq(
		abx__approvals_decide(f.all, q, false, ABX__SCOPE_SESSION, "p", NULL),
		ABX_OK, "a denial needs no scope and ignores it");
	cr_assert_eq(q->status, ABX__APPROVAL_DENIED);
	cr_assert_str_neq(held(&call)->id, q->id);
}

Test(serve_approvals, expires_and_is_swept)
{
	abx__gate_call call = call_of("{}");
	char id[ABX__APPROVAL_ID_SIZE];

	strcpy(id, held(&call)->id);
	cr_assert_null(abx__approvals_find(f.all, id, "t", "v"), "somebody else's");
	f.clock.now_ms += ABX__APPROVAL_LIFE_MS;
	cr_assert_eq(abx__approvals_find(f.all, id, "t", "u")->status,
		     ABX__APPROVAL_EXPIRED);
	cr_assert_str_neq(held(&call)->id, id);
	abx__approvals_sweep(f.all);
	cr_assert_null(abx__approvals_find(f.all, id, "t", "u"));
	cr_assert_not(abx__approvals_is_empty(f.all));
	f.clock.now_ms += ABX__APPROVAL_LIFE_MS;
	abx__approvals_sweep(f.all);
	cr_assert(abx__approvals_is_empty(f.all));
}

Test(serve_approvals, a_key_has_so_many_waiting_and_no_more)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	abx__gate_call call = call_of("");
	const abx__approval *q = NULL;
	char body[16];

	for (int i = 0; i < ABX__APPROVALS_PER_KEY; i++) {
		snprintf(body, sizeof(body), "%d", i);
		call.body = body;
		call.body_len = strlen(body);
		held(&call);
	}
	call.body = "one more";
	call.body_len = 8;
	cr_assert_eq(abx__approvals_check(f.all, &call, &q, &err), ABX_EEXHAUSTED);
	cr_assert(strstr(abx_error_message(err), "100"), "%s", abx_error_message(err));
	call.key_id = "another";
	held(&call);
	call.key_id = "k";
	f.clock.now_ms += ABX__APPROVAL_LIFE_MS;
	abx__approvals_sweep(f.all);
	held(&call);
}

Test(serve_approvals, a_session_id_has_its_length)
{
	abx__gate_call call = call_of("{}");
	char longer[ABX__APPROVAL_SESSION_LEN + 2];
	const abx__approval *q = NULL;

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	call.session_id = longer;
	cr_assert_eq(abx__approvals_check(f.all, &call, &q, NULL), ABX_EINVAL);
	longer[ABX__APPROVAL_SESSION_LEN] = '\0';
	held(&call);
}
