/*
 * approvals.c - see approvals.h. Lists are short (their caps), so they are walked.
 */
#include "serve/approvals.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

#define BODY_MOST ((size_t)1 << 20) /* a longer body counts as none in a fingerprint */

struct abx__approvals {
	const abx__clock *clock;
	abx__approval *requests;
	size_t count;
	abx__approval_grant *grants;
	size_t grant_count;
};

/* ---- the catalogue ---- */

#define SANDBOX "/v1/sandboxes/{sandboxId}"
#define POOL "/v1/envs/{name}/sandboxpools/{poolName}"
#define GROUP "/v1/envs/{name}/autoscaling/groups/{groupName}"

static const abx__gated catalogue[] = {
	{ "POST", "/v1/sandboxes", "sandbox.create", "Start a sandbox", false, false },
	{ "DELETE", SANDBOX, "sandbox.delete", "Delete a sandbox", true, false },
	{ "PUT", SANDBOX "/timeout", "sandbox.update", "Change a sandbox's timeout",
	  false, false },
	{ "POST", SANDBOX "/exec", "sandbox.exec", "Run a command in a sandbox", false,
	  false },
	{ "POST", SANDBOX "/exec-token", "sandbox.execToken",
	  "Mint a terminal token for a sandbox", true, false },
	{ "POST", "/v1/envs", "env.create", "Create an environment", false, false },
	{ "PUT", "/v1/envs/{name}", "env.update", "Change an environment", false, false },
	{ "DELETE", "/v1/envs/{name}", "env.delete", "Delete an environment", true,
	  false },
	{ "POST", "/v1/envs/{name}/sandboxpools", "pool.create", "Add a warm pool", false,
	  false },
	{ "PUT", POOL, "pool.update", "Change a warm pool", false, false },
	{ "DELETE", POOL, "pool.delete", "Delete a warm pool", true, false },
	{ "PUT", GROUP, "autoscaling.update", "Change an autoscaling group", false,
	  false },
	{ "DELETE", GROUP, "autoscaling.delete", "Delete an autoscaling group", true,
	  false },
	{ "DELETE", "/v1/api-keys/{name}", "apikey.delete", "Delete an API key", true,
	  false },
	{ "POST", "/v1/api-keys", "apikey.create", "Create an API key", false, true },
};

const abx__gated *abx__gated_find(const char *method, const char *route_path)
{
	for (size_t i = 0; i < sizeof(catalogue) / sizeof(catalogue[0]); i++)
		if (strcmp(catalogue[i].method, method) == 0 &&
		    strcmp(catalogue[i].path, route_path) == 0)
			return &catalogue[i];
	return NULL;
}

/* ---- life ---- */

static int64_t mono(const abx__approvals *a)
{
	return a->clock->mono_ms(a->clock->userdata);
}

static int64_t wall(const abx__approvals *a)
{
	return a->clock->wall_ms(a->clock->userdata);
}

int abx__approvals_new(const abx__clock *clock, abx__approvals **ret, abx_error **reterr)
{
	abx__approvals *a = abx__calloc(1, sizeof(*a));

	if (!a)
		return abx__error_nomem(reterr);
	a->clock = clock;
	*ret = a;
	return ABX_OK;
}

static void request_free(abx__approval *q)
{
	if (!q)
		return;
	abx__free(q->team);
	abx__free(q->user);
	abx__free(q->key_id);
	abx__free(q->session_id);
	abx__free(q->path);
	abx__free(q->summary);
	abx__free(q->decided_by);
	abx__free(q);
}

static void grant_free(abx__approval_grant *g)
{
	if (!g)
		return;
	abx__free(g->team);
	abx__free(g->user);
	abx__free(g->key_id);
	abx__free(g->session_id);
	abx__free(g->granted_by);
	abx__free(g);
}

ABX_DEFINE_FREEP(request_freep, abx__approval, request_free)
ABX_DEFINE_FREEP(grant_freep, abx__approval_grant, grant_free)

static void drop_request(abx__approvals *a, abx__approval *q)
{
	if (q->prev)
		q->prev->next = q->next;
	else
		a->requests = q->next;
	if (q->next)
		q->next->prev = q->prev;
	a->count--;
	request_free(q);
}

static void drop_grant(abx__approvals *a, abx__approval_grant *g)
{
	if (g->prev)
		g->prev->next = g->next;
	else
		a->grants = g->next;
	if (g->next)
		g->next->prev = g->prev;
	a->grant_count--;
	grant_free(g);
}

void abx__approvals_free(abx__approvals *a)
{
	if (!a)
		return;
	while (a->requests)
		drop_request(a, a->requests);
	while (a->grants)
		drop_grant(a, a->grants);
	abx__free(a);
}

static void expire(const abx__approvals *a, abx__approval *q)
{
	if (q->status == ABX__APPROVAL_PENDING && mono(a) >= q->until_ms)
		q->status = ABX__APPROVAL_EXPIRED;
}

void abx__approvals_sweep(abx__approvals *a)
{
	int64_t now = mono(a);

	for (abx__approval *q = a->requests, *next; q; q = next) {
		next = q->next;
		if (now >= q->until_ms)
			drop_request(a, q);
	}
	for (abx__approval_grant *g = a->grants, *next; g; g = next) {
		next = g->next;
		if (now >= g->until_ms)
			drop_grant(a, g);
	}
}

bool abx__approvals_is_empty(const abx__approvals *a)
{
	return !a->requests && !a->grants;
}

/* ---- the gate ---- */

/* SHA-256 over method, NUL, path, NUL, body: the same call again is the same request. */
static int fingerprint(const abx__gate_call *call, uint8_t out[ABX__SHA256_LEN])
{
	ABX_CLEANUP_BUF abx__buf text = ABX__BUF_INIT_CAP(BODY_MOST + 65536);
	size_t body_len = call->body_len > BODY_MOST ? 0 : call->body_len;

	if (abx__buf_add(&text, call->gated->method, strlen(call->gated->method) + 1) <
		    0 ||
	    abx__buf_add(&text, call->path, strlen(call->path) + 1) < 0 ||
	    (body_len > 0 && abx__buf_add(&text, call->body, body_len) < 0))
		return ABX_ENOMEM;
	return abx__sha256(text.data, text.len, out) < 0 ? ABX_ENOMEM : ABX_OK;
}

static bool is_the_persons(const abx__approval *q, const char *team, const char *user)
{
	return strcmp(q->team, team) == 0 && strcmp(q->user, user) == 0;
}

static bool has_session_grant(const abx__approvals *a, const abx__gate_call *call)
{
	if (!call->session_id || !*call->session_id)
		return false;
	for (const abx__approval_grant *g = a->grants; g; g = g->next)
		if (g->gated == call->gated && mono(a) < g->until_ms &&
		    strcmp(g->session_id, call->session_id) == 0 &&
		    strcmp(g->team, call->team) == 0 && strcmp(g->user, call->user) == 0)
			return true;
	return false;
}

/* The first one is used up. */
static bool spend_once(abx__approvals *a, const abx__gate_call *call,
		       const uint8_t print[ABX__SHA256_LEN])
{
	for (abx__approval *q = a->requests; q; q = q->next)
		if (q->status == ABX__APPROVAL_APPROVED && q->scope == ABX__SCOPE_ONCE &&
		    !q->spent && mono(a) < q->until_ms &&
		    is_the_persons(q, call->team, call->user) &&
		    memcmp(q->fingerprint, print, ABX__SHA256_LEN) == 0) {
			q->spent = true;
			return true;
		}
	return false;
}

static abx__approval *find_pending(abx__approvals *a, const abx__gate_call *call,
				   const uint8_t print[ABX__SHA256_LEN])
{
	const char *session = call->session_id ? call->session_id : "";

	for (abx__approval *q = a->requests; q; q = q->next)
		if (q->status == ABX__APPROVAL_PENDING && mono(a) < q->until_ms &&
		    is_the_persons(q, call->team, call->user) &&
		    strcmp(q->key_id, call->key_id) == 0 &&
		    strcmp(q->session_id, session) == 0 &&
		    memcmp(q->fingerprint, print, ABX__SHA256_LEN) == 0)
			return q;
	return NULL;
}

static int check_room(const abx__approvals *a, const abx__gate_call *call,
		      abx_error **reterr)
{
	size_t own = 0;

	for (const abx__approval *q = a->requests; q; q = q->next)
		own += strcmp(q->key_id, call->key_id) == 0;
	if (own >= ABX__APPROVALS_PER_KEY || a->count >= ABX__APPROVALS_MAX)
		return abx__error_set(reterr, ABX_EEXHAUSTED,
				      "no more than %d writes of a key are kept for "
				      "approval at a time, and %d of all; the oldest go "
				      "after 15 minutes",
				      ABX__APPROVALS_PER_KEY, ABX__APPROVALS_MAX);
	return ABX_OK;
}

/* "Delete an environment (demo)". NULL when out of memory. */
static char *summary_of(const abx__gate_call *call)
{
	ABX_CLEANUP_BUF abx__buf text = ABX__BUF_INIT;
	const char *const *name = call->names;

	if (abx__buf_adds(&text, call->gated->summary) < 0)
		return NULL;
	for (size_t i = 0; name && name[i]; i++)
		if (abx__buf_addf(&text, "%s%s", i ? "/" : " (", name[i]) < 0)
			return NULL;
	if (name && name[0] && abx__buf_addc(&text, ')') < 0)
		return NULL;
	return abx__buf_take(&text);
}

static int make_id(const char *prefix, char out[ABX__APPROVAL_ID_SIZE])
{
	char hex[17];
	uint8_t bytes[8];

	if (abx__random(bytes, sizeof(bytes)) < 0)
		return ABX_ENOMEM;
	abx__hex(bytes, sizeof(bytes), hex);
	snprintf(out, ABX__APPROVAL_ID_SIZE, "%s%s", prefix, hex);
	return ABX_OK;
}

static abx__approval *request_new(const abx__approvals *a, const abx__gate_call *call)
{
	ABX_CLEANUP(request_freep) abx__approval *q = abx__calloc(1, sizeof(*q));

	if (!q || make_id("apr_", q->id) < 0)
		return NULL;
	q->team = abx__strdup(call->team);
	q->user = abx__strdup(call->user);
	q->key_id = abx__strdup(call->key_id);
	q->session_id = abx__strdup(call->session_id ? call->session_id : "");
	q->path = abx__strdup(call->path);
	q->summary = summary_of(call);
	if (!q->team || !q->user || !q->key_id || !q->session_id || !q->path ||
	    !q->summary)
		return NULL;
	q->gated = call->gated;
	q->created_ms = wall(a);
	q->expires_ms = q->created_ms + ABX__APPROVAL_LIFE_MS;
	q->until_ms = mono(a) + ABX__APPROVAL_LIFE_MS;
	return abx_take(q);
}

int abx__approvals_check(abx__approvals *a, const abx__gate_call *call,
			 const abx__approval **ret, abx_error **reterr)
{
	uint8_t print[ABX__SHA256_LEN];
	abx__approval *q;
	int r;

	if (call->session_id && strlen(call->session_id) > ABX__APPROVAL_SESSION_LEN)
		return abx__error_set(reterr, ABX_EINVAL,
				      "X-AgentBox-Session-Id has at most %d bytes",
				      ABX__APPROVAL_SESSION_LEN);
	if (fingerprint(call, print) < 0)
		return abx__error_nomem(reterr);
	if (has_session_grant(a, call) || spend_once(a, call, print))
		return 1;
	q = find_pending(a, call, print);
	if (!q) {
		r = check_room(a, call, reterr);
		if (r < 0)
			return r;
		q = request_new(a, call);
		if (!q)
			return abx__error_nomem(reterr);
		memcpy(q->fingerprint, print, sizeof(print));
		q->next = a->requests;
		if (q->next)
			q->next->prev = q;
		a->requests = q;
		a->count++;
	}
	*ret = q;
	return 0;
}

/* ---- looking ---- */

abx__approval *abx__approvals_find(abx__approvals *a, const char *id, const char *team,
				   const char *user)
{
	for (abx__approval *q = a->requests; q; q = q->next)
		if (strcmp(q->id, id) == 0 && is_the_persons(q, team, user)) {
			expire(a, q);
			return q;
		}
	return NULL;
}

const abx__approval *abx__approvals_next(const abx__approvals *a,
					 const abx__approval *after, const char *team,
					 const char *user)
{
	for (abx__approval *q = after ? after->next : a->requests; q; q = q->next)
		if (is_the_persons(q, team, user)) {
			expire(a, q);
			return q;
		}
	return NULL;
}

const abx__approval_grant *abx__approvals_next_grant(const abx__approvals *a,
						     const abx__approval_grant *after,
						     const char *team, const char *user)
{
	for (const abx__approval_grant *g = after ? after->next : a->grants; g;
	     g = g->next)
		if (strcmp(g->team, team) == 0 && strcmp(g->user, user) == 0 &&
		    mono(a) < g->until_ms)
			return g;
	return NULL;
}

/* ---- deciding ---- */

static const char *status_name(enum abx__approval_status status)
{
	static const char *const names[] = { "pending", "approved", "denied", "expired" };

	return names[status];
}

int abx__approvals_may(abx__approvals *a, const abx__approval *q, bool approve,
		       enum abx__approval_scope scope, abx_error **reterr)
{
	if (q->status == ABX__APPROVAL_EXPIRED || mono(a) >= q->until_ms)
		return abx__error_set(reterr, ABX_EINVAL,
				      "approval %s has expired; the write must be asked "
				      "for again",
				      q->id);
	if (q->status != ABX__APPROVAL_PENDING)
		return abx__error_set(reterr, ABX_EINVAL, "approval %s is %s already",
				      q->id, status_name(q->status));
	if (!approve)
		return ABX_OK;
	if (q->gated->once_only && scope != ABX__SCOPE_ONCE)
		return abx__error_set(reterr, ABX_EINVAL,
				      "%s can be approved once only: use scope once",
				      q->gated->operation);
	if (scope == ABX__SCOPE_SESSION && !*q->session_id)
		return abx__error_set(reterr, ABX_EINVAL,
				      "approval %s came without X-AgentBox-Session-Id: "
				      "there is no session to approve it for",
				      q->id);
	if (scope == ABX__SCOPE_KEY && !*q->key_id)
		return abx__error_set(reterr, ABX_EINVAL,
				      "approval %s came without a key to approve it for",
				      q->id);
	return ABX_OK;
}

static abx__approval_grant *grant_new(const abx__approvals *a, const abx__approval *q,
				      const char *by)
{
	ABX_CLEANUP(grant_freep) abx__approval_grant *g = abx__calloc(1, sizeof(*g));

	if (!g || make_id("grn_", g->id) < 0)
		return NULL;
	g->team = abx__strdup(q->team);
	g->user = abx__strdup(q->user);
	g->key_id = abx__strdup(q->key_id);
	g->session_id = abx__strdup(q->session_id);
	g->granted_by = abx__strdup(by);
	if (!g->team || !g->user || !g->key_id || !g->session_id || !g->granted_by)
		return NULL;
	g->gated = q->gated;
	g->created_ms = wall(a);
	g->expires_ms = g->created_ms + ABX__APPROVAL_SESSION_MS;
	g->until_ms = mono(a) + ABX__APPROVAL_SESSION_MS;
	return abx_take(g);
}

static int add_grant(abx__approvals *a, const abx__approval *q, const char *by,
		     abx_error **reterr)
{
	abx__approval_grant *g;

	if (a->grant_count >= ABX__APPROVAL_GRANTS_MAX)
		return abx__error_set(reterr, ABX_EEXHAUSTED,
				      "no more than %d grants at a time: revoke one",
				      ABX__APPROVAL_GRANTS_MAX);
	g = grant_new(a, q, by);
	if (!g)
		return abx__error_nomem(reterr);
	g->next = a->grants;
	if (g->next)
		g->next->prev = g;
	a->grants = g;
	a->grant_count++;
	return ABX_OK;
}

int abx__approvals_decide(abx__approvals *a, abx__approval *q, bool approve,
			  enum abx__approval_scope scope, const char *by,
			  abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *decided_by = abx__strdup(by);
	int r = decided_by ? abx__approvals_may(a, q, approve, scope, reterr)
			   : abx__error_nomem(reterr);

	if (r == ABX_OK && approve && scope == ABX__SCOPE_SESSION)
		r = add_grant(a, q, by, reterr);
	if (r < 0)
		return r;
	q->status = approve ? ABX__APPROVAL_APPROVED : ABX__APPROVAL_DENIED;
	q->scope = approve ? scope : ABX__SCOPE_NONE;
	q->decided_ms = wall(a);
	q->decided_by = abx_take(decided_by);
	return ABX_OK;
}

int abx__approvals_revoke(abx__approvals *a, const char *id, const char *team,
			  const char *user)
{
	for (abx__approval_grant *g = a->grants; g; g = g->next)
		if (strcmp(g->id, id) == 0 && strcmp(g->team, team) == 0 &&
		    strcmp(g->user, user) == 0) {
			drop_grant(a, g);
			return ABX_OK;
		}
	return ABX_ENOTFOUND;
}
