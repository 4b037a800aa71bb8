/* The revision hash of crds.md, section 5. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "model/revision.h"

static const char *revision(const char *json)
{
	static char results[4][ABX__REVISION_SIZE];
	static unsigned next;
	char *out = results[next++ % 4];
	json_object *spec = json_tokener_parse(json);

	cr_assert(spec, "%s", json);
	cr_assert_eq(abx__revision(spec, out, NULL), ABX_OK);
	cr_assert_eq(strlen(out), 8);
	json_object_put(spec);
	return out;
}

#define TEMPLATE "'template':{'spec':{'containers':[{'name':'m','image':'a'}]}}"

Test(model_revision, some_fields_do_not_count)
{
	const char *base = "{'replicas':1," TEMPLATE ",'idleImage':'i'}";
	static const char *const same[] = {
		"{'replicas':7," TEMPLATE ",'idleImage':'i'}",
		"{'idleImage':'i','replicas':1," TEMPLATE "}",
		"{'replicas':1," TEMPLATE ",'idleImage':'i','templateName':'t',"
		"'defaultStartupTimeout':'2m','defaultIdleTimeout':'1h','maxUnavailable':"
		"'20%'}",
		"{'replicas':1," TEMPLATE
		",'idleImage':'i','podCreationImagePolicy':'IdleImage'}",
		"{'replicas':1," TEMPLATE ",'idleImage':'i','gateway':{'enabled':false}}",
		"{'replicas':1," TEMPLATE ",'idleImage':'i','runtimes':null}",
		"{'idleImage':'i','template':{'metadata':{'labels':"
		"{'agentbox.navix.sh/template-hash':'x'}},"
		"'spec':{'containers':[{'image':'a','name':'m'}]}}}",
		"{'idleImage':'i','template':{'spec':{'containers':[{'image':'b','name':'"
		"m'}]}}}",
	};
	char want[ABX__REVISION_SIZE];

	memcpy(want, revision(base), sizeof(want));
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		cr_expect_str_eq(revision(same[i]), want, "%s", same[i]);
}

Test(model_revision, the_idle_pods_identity_counts)
{
	const char *base = "{" TEMPLATE ",'idleImage':'i'}";
	static const char *const other[] = {
		"{" TEMPLATE ",'idleImage':'j'}",
		"{" TEMPLATE "}",
		"{" TEMPLATE
		",'idleImage':'i','podCreationImagePolicy':'PoolDefaultImage'}",
		"{" TEMPLATE ",'idleImage':'i','gateway':{'enabled':true}}",
		"{" TEMPLATE ",'idleImage':'i','runtimes':[{'name':'envd'}]}",
		"{'idleImage':'i','template':{'spec':{'containers':[{'name':'n','image':'"
		"a'}]}}}",
		"{'idleImage':'i','template':{'metadata':{'labels':{'x':'y'}},"
		"'spec':{'containers':[{'name':'m','image':'a'}]}}}",
		"{'idleImage':'i','template':{'spec':{'containers':[{'name':'m','image':'"
		"a'},"
		"{'name':'s','image':'b'}]}}}",
	};
	char want[ABX__REVISION_SIZE];

	memcpy(want, revision(base), sizeof(want));
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		cr_expect_str_neq(revision(other[i]), want, "%s", other[i]);
}

Test(model_revision, a_sidecars_image_counts)
{
	cr_assert_str_neq(
		revision(
			"{'idleImage':'i','template':{'spec':{'containers':[{'name':'m'},"
			"{'name':'s','image':'b'}]}}}"),
		revision(
			"{'idleImage':'i','template':{'spec':{'containers':[{'name':'m'},"
			"{'name':'s','image':'c'}]}}}"));
}

Test(model_revision, the_main_image_counts_under_pool_default)
{
	const char *a =
		"{'podCreationImagePolicy':'PoolDefaultImage','idleImage':'i'," TEMPLATE
		"}";
	const char *b = "{'podCreationImagePolicy':'PoolDefaultImage','idleImage':'i',"
			"'template':{'spec':{'containers':[{'name':'m','image':'b'}]}}}";

	cr_assert_str_neq(revision(a), revision(b));
}

Test(model_revision, the_value_is_stable)
{
	/* Stored on Pods: another value would roll every pool at an upgrade. */
	cr_assert_str_eq(revision("{'replicas':1," TEMPLATE ",'idleImage':'i'}"),
			 "ead9cdd5");
}

Test(model_revision, nothing_has_no_revision_and_depth_has_an_end)
{
	char out[ABX__REVISION_SIZE] = "x";
	json_object *spec = json_object_new_object(), *at = spec;

	cr_assert_eq(abx__revision(NULL, out, NULL), ABX_OK);
	cr_assert_str_eq(out, "");
	for (int i = 0; i < 100; i++) {
		json_object *next = json_object_new_object();

		json_object_object_add(at, "template", next);
		at = next;
	}
	cr_assert_eq(abx__revision(spec, out, NULL), ABX_EINVAL);
	json_object_put(spec);
}

Test(model_revision, every_failed_allocation_is_reported)
{
	json_object *spec = json_tokener_parse("{" TEMPLATE ",'idleImage':'i'}");
	char out[ABX__REVISION_SIZE];
	int r = ABX_ENOMEM;

	for (unsigned n = 0; r != ABX_OK; n++) {
		abx__test_fail_alloc_after(n);
		r = abx__revision(spec, out, NULL);
		abx__test_alloc_reset();
		cr_assert(r == ABX_OK || r == ABX_ENOMEM, "allocation %u gave %d", n, r);
	}
	json_object_put(spec);
}
