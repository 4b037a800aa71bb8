/* A Pod template: fields or an error that says something; never both, never neither. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/podd/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const abx__spec *spec)
{
	if (!spec->main.name || spec->init_count > ABX__SPEC_INIT_MAX ||
	    spec->volume_count > ABX__SPEC_VOLUME_MAX ||
	    spec->main.mount_count > ABX__SPEC_MOUNT_MAX || spec->main.cpu_milli < 0)
		abort();
	for (size_t i = 0; i < spec->main.mount_count; i++)
		if (!abx__spec_path_is_clean(spec->main.mounts[i].path) ||
		    !abx__spec_find_volume(spec, spec->main.mounts[i].volume))
			abort();
	for (size_t i = 0; i < spec->volume_count; i++)
		if (strchr(spec->volumes[i].name, '/') || spec->volumes[i].name[0] == '.')
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_tokener *tok = json_tokener_new_ex(32);
	json_object *o = json_tokener_parse_ex(tok, (const char *)data, (int)size);
	abx__spec *spec = NULL;
	abx_error *err = NULL;

	if (o) {
		int r = abx__spec_parse(o, &spec, &err);

		if (r == ABX_OK && spec && !err)
			check(spec);
		else if (r == ABX_OK || spec || !err || !*abx_error_message(err))
			abort();
	}
	abx__spec_free(spec);
	abx_error_free(err);
	json_object_put(o);
	json_tokener_free(tok);
	return 0;
}
