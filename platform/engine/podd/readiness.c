/*
 * readiness.c - see readiness.h.
 */
#include "engine/podd/readiness.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/podd/spec-read.h"

static int read_number(const struct spec_at *at, json_object *v, int64_t min, int64_t max,
		       int64_t *ret)
{
	int64_t n = json_object_get_int64(v);

	if (!json_object_is_type(v, json_type_int) || n < min || n > max)
		return abx__error_set(at->reterr, ABX_EINVAL,
				      "%s: must be a whole number from %lld to %lld",
				      at->path, (long long)min, (long long)max);
	*ret = n;
	return ABX_OK;
}

static int p_port(const struct spec_at *at, json_object *v, void *into)
{
	int64_t n = 0;
	int r = read_number(at, v, 1, UINT16_MAX, &n);

	((abx__readiness *)into)->port = (uint16_t)n;
	return r;
}

/* It is put into a request line. */
static int p_path(const struct spec_at *at, json_object *v, void *into)
{
	abx__readiness *probe = into;
	int r = abx__spec_string(at, v, &probe->path);

	if (r < 0)
		return r;
	for (const char *p = probe->path; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f)
			return abx__spec_invalid(at, "must hold no blanks");
	return probe->path[0] == '/' && strlen(probe->path) <= ABX__READINESS_PATH_MAX
		       ? ABX_OK
		       : abx__spec_invalid(at,
					   "must begin with / and be at most 256 long");
}

static int read_count(const struct spec_at *at, json_object *v, int64_t min, int64_t max,
		      uint32_t *into)
{
	int64_t n = 0;
	int r = read_number(at, v, min, max, &n);

	*into = (uint32_t)n;
	return r;
}

static int p_delay(const struct spec_at *at, json_object *v, void *into)
{
	return read_count(at, v, 0, 86400, &((abx__readiness *)into)->initial_delay_s);
}

static int p_timeout(const struct spec_at *at, json_object *v, void *into)
{
	return read_count(at, v, 1, 3600, &((abx__readiness *)into)->timeout_s);
}

static int p_period(const struct spec_at *at, json_object *v, void *into)
{
	return read_count(at, v, 1, 86400, &((abx__readiness *)into)->period_s);
}

static int p_successes(const struct spec_at *at, json_object *v, void *into)
{
	return read_count(at, v, 1, 100, &((abx__readiness *)into)->success_threshold);
}

static int p_failures(const struct spec_at *at, json_object *v, void *into)
{
	return read_count(at, v, 1, 10000, &((abx__readiness *)into)->failure_threshold);
}

static const struct spec_field fields[] = { { "port", p_port },
					    { "path", p_path },
					    { "initialDelaySeconds", p_delay },
					    { "timeoutSeconds", p_timeout },
					    { "periodSeconds", p_period },
					    { "successThreshold", p_successes },
					    { "failureThreshold", p_failures },
					    { 0 } };

int abx__readiness_parse(json_object *o, abx__readiness *ret, abx_error **reterr)
{
	abx__readiness probe = { 0 };
	struct spec_at at = { "readiness", reterr };
	int r = abx__spec_object(&at, o, fields, &probe);

	if (r == ABX_OK && (!probe.port || !probe.path))
		r = abx__spec_invalid(&at, "needs a port and a path");
	if (r < 0) {
		abx__readiness_done(&probe);
		return r;
	}
	*ret = probe;
	return ABX_OK;
}

static bool add(json_object *o, const char *key, json_object *value)
{
	return value && json_object_object_add(o, key, value) == 0;
}

static bool add_given(json_object *o, const char *key, uint32_t n)
{
	return n == 0 || add(o, key, json_object_new_int64(n));
}

json_object *abx__readiness_print(const abx__readiness *probe)
{
	json_object *o = json_object_new_object();

	if (o && add(o, "port", json_object_new_int(probe->port)) &&
	    add(o, "path", json_object_new_string(probe->path)) &&
	    add_given(o, "initialDelaySeconds", probe->initial_delay_s) &&
	    add_given(o, "timeoutSeconds", probe->timeout_s) &&
	    add_given(o, "periodSeconds", probe->period_s) &&
	    add_given(o, "successThreshold", probe->success_threshold) &&
	    add_given(o, "failureThreshold", probe->failure_threshold))
		return o;
	json_object_put(o);
	return NULL;
}

void abx__readiness_done(abx__readiness *probe)
{
	abx__free(probe->path);
	*probe = (abx__readiness){ 0 };
}

bool abx__readiness_goes_on(const abx__readiness *probe)
{
	return probe->period_s || probe->failure_threshold;
}
