/*
 * record.c - the record of a sandbox that ended, as a document.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/claim.h"
#include "control/fields.h"
#include "control/history-priv.h"

static const struct {
	const char *key;
	size_t offset;
	bool required;
} texts[] = {
	{ "env", offsetof(abx__ended, env), true },
	{ "pool", offsetof(abx__ended, pool), true },
	{ "pod", offsetof(abx__ended, pod), true },
	{ "template", offsetof(abx__ended, template_), false },
	{ "image", offsetof(abx__ended, image), false },
	{ "team", offsetof(abx__ended, team), false },
	{ "user", offsetof(abx__ended, user), false },
	{ "failureReason", offsetof(abx__ended, failure_reason), false },
	{ "failureMessage", offsetof(abx__ended, failure_message), false },
};

static const struct {
	const char *key;
	size_t offset;
} numbers[] = {
	{ "claimedMs", offsetof(abx__ended, claimed_ms) },
	{ "startedMs", offsetof(abx__ended, started_ms) },
	{ "endedMs", offsetof(abx__ended, ended_ms) },
	{ "idleTimeoutMs", offsetof(abx__ended, idle_timeout_ms) },
	{ "cpuMilli", offsetof(abx__ended, cpu_milli) },
	{ "memoryBytes", offsetof(abx__ended, memory_bytes) },
};
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

json_object *abx__record_document(const abx__ended *e)
{
	json_object *doc = json_object_new_object();
	int r = doc ? ABX_OK : ABX_ENOMEM;

	for (size_t i = 0; r == ABX_OK && i < COUNT(texts); i++) {
		const char *text =
			*(const char *const *)((const char *)e + texts[i].offset);

		if (text)
			r = abx__field_set_str(doc, texts[i].key, text);
	}
	for (size_t i = 0; r == ABX_OK && i < COUNT(numbers); i++) {
		int64_t number = *(const int64_t *)((const char *)e + numbers[i].offset);

		if (number)
			r = abx__field_set_int(doc, numbers[i].key, number);
	}
	if (r == ABX_OK)
		r = abx__field_set_str(doc, "status",
				       abx__sandbox_status_name(e->status));
	if (r == ABX_OK && e->exit_code >= 0)
		r = abx__field_set_int(doc, "exitCode", e->exit_code);
	if (r == ABX_OK && e->metadata.count)
		r = abx__field_take(doc, "metadata", abx__claim_map_json(&e->metadata));
	if (r == ABX_OK)
		return doc;
	json_object_put(doc);
	return NULL;
}

static int read_metadata(json_object *map, abx__map *ret)
{
	if (!map)
		return ABX_OK;
	json_object_object_foreach(map, key, value)
	{
		if (json_object_is_type(value, json_type_string) &&
		    abx__map_set(ret, key, json_object_get_string(value)) < 0)
			return ABX_ENOMEM;
	}
	return ABX_OK;
}

int abx__record_read(json_object *doc, const char *namespace_, const char *id,
		     abx__ended *ret)
{
	const char *status = abx__field_str(doc, "status");
	abx__ended e = { .id = id, .namespace_ = namespace_ };

	if (strlen(id) > ABX__SANDBOX_ID_LEN || !status ||
	    !abx__sandbox_status_parse(status, &e.status) ||
	    e.status < ABX__STATUS_FAILED || e.status >= ABX__STATUS_COUNT)
		return ABX_EPROTO;
	for (size_t i = 0; i < COUNT(texts); i++) {
		const char *text = abx__field_str(doc, texts[i].key);

		if (!text && texts[i].required)
			return ABX_EPROTO;
		*(const char **)((char *)&e + texts[i].offset) = text;
	}
	for (size_t i = 0; i < COUNT(numbers); i++)
		*(int64_t *)((char *)&e + numbers[i].offset) =
			abx__field_int(doc, numbers[i].key, 0);
	e.exit_code = (int)abx__field_int(doc, "exitCode", -1);
	if (read_metadata(abx__field_object(doc, "metadata"), &e.metadata) < 0) {
		abx__map_done(&e.metadata);
		return ABX_ENOMEM;
	}
	*ret = e;
	return ABX_OK;
}
