/*
 * docs.c - see docs.h.
 */
#include "serve/docs.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

#define E2B_PATH "/agent-sandbox/api/e2b"
#define DATA_PATH "/agent-sandbox/api/data"

typedef struct values {
	char *e2b, *data, *pool, *ip;
	const char *host; /* with its port, as clients write it */
	const char *https;
} values;

static void values_done(values *v)
{
	abx__free(v->e2b);
	abx__free(v->data);
	abx__free(v->pool);
	abx__free(v->ip);
}

/* HOST of "HOST:PORT" when it is an address and no name. */
static char *address_of(const char *host)
{
	size_t len;

	if (*host == '[')
		return abx__strndup(host + 1, strcspn(host + 1, "]"));
	len = strcspn(host, ":/");
	if (strspn(host, "0123456789.") != len)
		return NULL;
	return abx__strndup(host, len);
}

static int fill(const abx__docs_names *n, values *v)
{
	const char *scheme_end = strstr(n->base_url, "://");

	v->host = scheme_end ? scheme_end + 3 : n->base_url;
	v->https = abx__str_starts(n->base_url, "https:") ? "true" : "false";
	v->ip = address_of(v->host);
	v->e2b = abx__strf("%s" E2B_PATH, n->base_url);
	v->data = abx__strf("%s" DATA_PATH, n->base_url);
	v->pool = n->pool  ? abx__strdup(n->pool)
		  : n->env ? abx__strf("%s-pool-name", n->env)
			   : abx__strdup("YOUR_POOL_NAME");
	return v->e2b && v->data && v->pool ? ABX_OK : ABX_ENOMEM;
}

/* The value of a placeholder of that name; NULL leaves it. */
static const char *value_of(const abx__docs_names *n, const values *v, const char *name,
			    size_t len)
{
	const char *const table[][2] = {
		{ "AGBX_ENV_NAME", n->env ? n->env : "YOUR_ENV_NAME" },
		{ "AGBX_POOL_NAME", v->pool },
		{ "AGBX_CLUSTER_ID", n->cluster },
		{ "AGBX_NATIVE_URL", n->base_url },
		{ "AGBX_E2B_URL", v->e2b },
		{ "AGBX_DATA_URL", v->data },
		{ "AGBX_DATA_DOMAIN", strstr(v->data, v->host) },
		{ "AGBX_HOST", v->host },
		{ "AGBX_INNER_IP", v->ip },
		{ "AGBX_HTTPS", v->https },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strlen(table[i][0]) == len && strncmp(table[i][0], name, len) == 0)
			return table[i][1];
	return NULL;
}

static int replace(const char *text, const abx__docs_names *n, const values *v,
		   abx__buf *out)
{
	const char *mark;
	int r = ABX_OK;

	while (r == ABX_OK && (mark = strstr(text, "${"))) {
		size_t len = strcspn(mark + 2, "}$\n");
		const char *value =
			mark[2 + len] == '}' ? value_of(n, v, mark + 2, len) : NULL;
		size_t skip = value ? 2 + len + 1 : 2;

		r = abx__buf_add(out, text, (size_t)(mark - text));
		if (r == ABX_OK)
			r = value ? abx__buf_adds(out, value)
				  : abx__buf_add(out, mark, skip);
		text = mark + skip;
	}
	return r == ABX_OK ? abx__buf_adds(out, text) : r;
}

int abx__docs_render(const char *text, const abx__docs_names *names, abx__buf *out)
{
	values v = { 0 };
	int r = fill(names, &v);

	if (r == ABX_OK)
		r = replace(text, names, &v, out);
	values_done(&v);
	return r;
}
