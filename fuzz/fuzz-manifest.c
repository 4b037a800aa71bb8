/* Manifests as JSON: every document is either refused with a message or becomes calls
   with bodies; and the revision hash takes whatever a pool spec may hold. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/manifest.h"
#include "model/revision.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_revision(json_object *manifest)
{
	char revision[ABX__REVISION_SIZE], again[ABX__REVISION_SIZE];
	json_object *spec = json_object_object_get(manifest, "spec");

	if (!json_object_is_type(spec, json_type_object) ||
	    abx__revision(spec, revision, NULL) < 0)
		return;
	if (abx__revision(spec, again, NULL) < 0 || strcmp(revision, again) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const abx__manifest_context context = { .cluster = "local",
						.namespace_ = "default" };
	json_tokener *tokener = json_tokener_new_ex(64);
	json_object *manifest =
		json_tokener_parse_ex(tokener, (const char *)data, (int)size);
	abx__calls calls = { 0 };
	abx_error *err = NULL;

	if (manifest && abx__manifest_calls(manifest, &context, &calls, &err) < 0 &&
	    !*abx_error_message(err))
		abort();
	for (size_t i = 0; i < calls.count; i++)
		if (!calls.items[i].path || !calls.items[i].body)
			abort();
	if (json_object_is_type(manifest, json_type_object))
		fuzz_revision(manifest);
	abx__calls_done(&calls);
	abx_error_free(err);
	json_object_put(manifest);
	json_tokener_free(tokener);
	return 0;
}
