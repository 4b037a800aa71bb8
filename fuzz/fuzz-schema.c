/*
 * Bodies: the first byte picks a schema and the flags, the rest is JSON. What parses
 * keeps to its schema and prints to something that parses and prints the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/gen/crds.h"
#include "model/gen/e2b.h"
#include "model/gen/native.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const abx__schema *const schemas[] = {
	&abx__m_sandbox_env_schema,
	&abx__m_sandbox_template_schema,
	&abx__m_sandbox_pool_schema,
	&abx__m_native_create_sandbox_request_schema,
	&abx__m_native_upsert_sandbox_env_request_schema,
	&abx__m_native_upsert_sandbox_pool_request_schema,
	&abx__m_native_update_env_autoscaling_group_request_schema,
	&abx__m_e2b_new_sandbox_schema,
	&abx__m_e2b_listed_sandbox_schema,
};

static void check(const abx__schema *schema, const void *object)
{
	json_object *printed = abx__schema_print(schema, object, 0), *twice;
	void *again = NULL;

	if (!printed || abx__schema_validate(schema, object, NULL) < 0 ||
	    abx__schema_parse(schema, printed, 0, &again, NULL) < 0)
		abort();
	twice = abx__schema_print(schema, again, 0);
	if (!json_object_equal(printed, twice))
		abort();
	json_object_put(printed);
	json_object_put(twice);
	abx__schema_free(schema, again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const abx__schema *schema;
	abx_error *err = NULL;
	void *object = NULL;

	if (size < 1)
		return 0;
	schema = schemas[(data[0] & 0x3f) % (sizeof(schemas) / sizeof(schemas[0]))];
	if (abx__schema_parse_text(schema, (const char *)data + 1, size - 1, data[0] >> 6,
				   &object, &err) == ABX_OK)
		check(schema, object);
	else if (!*abx_error_message(err))
		abort();
	abx__schema_free(schema, object);
	abx_error_free(err);
	return 0;
}
