/*
 * sandbox-info.c - a SandboxDetail or ListedSandbox of the control API as the public
 * struct.
 *
 * The struct and everything it points to is one object with its own storage, so that one
 * free gives it all back.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "client/sandbox.h"
#include "client/strings.h"
#include "io/json.h"

struct stored {
	abx_sandbox_info info; /* first: the public pointer is this one */
	abx__strings strings;
};

void abx_sandbox_info_free(abx_sandbox_info *info)
{
	struct stored *stored = (struct stored *)info;

	if (!stored)
		return;
	abx__strings_done(&stored->strings);
	abx__free(stored);
}

ABX_DEFINE_FREEP(info_freep, abx_sandbox_info, abx_sandbox_info_free)

static void parse_times(json_object *obj, abx_sandbox_info *info)
{
	const char *text = NULL;
	int64_t us;

	if (abx__json_get_str(obj, "startedAt", &text, NULL) > 0 &&
	    abx__rfc3339_parse(text, &us) >= 0)
		info->started_at_ms = us / 1000;
	if (abx__json_get_str(obj, "endAt", &text, NULL) > 0 &&
	    abx__rfc3339_parse(text, &us) >= 0)
		info->end_at_ms = us / 1000;
}

static uint32_t number(json_object *obj, const char *key)
{
	int64_t value = 0;

	abx__json_get_i64(obj, key, 0, UINT32_MAX, &value, NULL);
	return (uint32_t)value;
}

static int state_of(json_object *obj)
{
	const char *state = NULL;

	abx__json_get_str(obj, "state", &state, NULL);
	if (abx__str_eq(state, "running"))
		return ABX_SANDBOX_RUNNING;
	return abx__str_eq(state, "paused") ? ABX_SANDBOX_PAUSED : ABX_SANDBOX_UNKNOWN;
}

static void parse_lifecycle(json_object *obj, abx_sandbox_info *info)
{
	json_object *lifecycle = NULL;
	const char *on_timeout = NULL;
	bool auto_resume = false;

	if (abx__json_get_object(obj, "lifecycle", &lifecycle, NULL) <= 0)
		return;
	abx__json_get_str(lifecycle, "onTimeout", &on_timeout, NULL);
	abx__json_get_bool(lifecycle, "autoResume", &auto_resume, NULL);
	info->on_timeout = abx__str_eq(on_timeout, "pause") ? ABX_ON_TIMEOUT_PAUSE
							    : ABX_ON_TIMEOUT_KILL;
	info->auto_resume = auto_resume;
}

static int fill_strings(json_object *obj, struct stored *stored)
{
	abx_sandbox_info *info = &stored->info;
	abx__strings *strings = &stored->strings;
	json_object *metadata = NULL;
	char *json = abx__json_text(obj, NULL);
	int r;

	abx__json_get_object(obj, "metadata", &metadata, NULL);
	r = abx__strings_take(strings, json, &info->json);
	if (r >= 0)
		r = abx__strings_member(strings, obj, "sandboxID", "", &info->id);
	if (r >= 0)
		r = abx__strings_member(strings, obj, "templateID", "",
					&info->template_id);
	if (r >= 0)
		r = abx__strings_member(strings, obj, "alias", NULL, &info->alias);
	if (r >= 0)
		r = abx__strings_member(strings, obj, "envdVersion", "",
					&info->envd_version);
	if (r >= 0)
		r = abx__strings_pairs(strings, metadata, &info->metadata);
	return r;
}

int abx__sandbox_info_parse(json_object *obj, abx_sandbox_info **ret, abx_error **reterr)
{
	ABX_CLEANUP(info_freep) abx_sandbox_info *info = NULL;
	const char *id = NULL;
	struct stored *stored;

	if (!json_object_is_type(obj, json_type_object) ||
	    abx__json_get_str(obj, "sandboxID", &id, NULL) <= 0)
		return abx__error_set(reterr, ABX_EPROTO, "the answer has no sandboxID");
	stored = abx__calloc(1, sizeof(*stored));
	if (!stored)
		return abx__error_nomem(reterr);
	info = &stored->info;
	info->size = sizeof(*info);
	info->state = state_of(obj);
	info->cpu_count = number(obj, "cpuCount");
	info->memory_mb = number(obj, "memoryMB");
	info->disk_size_mb = number(obj, "diskSizeMB");
	parse_times(obj, info);
	parse_lifecycle(obj, info);
	if (fill_strings(obj, stored) < 0)
		return abx__error_nomem(reterr);
	*ret = abx_take(info);
	return ABX_OK;
}
