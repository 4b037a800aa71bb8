/* Checked and derived names: every example of crds.md, section 6. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "model/names.h"

static char *derive(const char *resources, const char *quota_short, char *key)
{
	json_object *object = json_tokener_parse(resources);
	int64_t cpu, memory;
	char *name = NULL;

	cr_assert(object);
	cr_assert_eq(abx__resources_shape(object, &cpu, &memory, NULL), ABX_OK);
	cr_assert_eq(abx__resource_key(cpu, memory, key, NULL), ABX_OK);
	cr_assert_eq(abx__pool_name("demo", key, quota_short, &name, NULL), ABX_OK);
	json_object_put(object);
	return name;
}

Test(model_names, pools_are_named_as_documented)
{
	static const struct {
		const char *resources, *quota, *key, *pool;
	} cases[] = {
		{ "{'requests':{'cpu':'2','memory':'8Gi'}}", NULL, "2c8gi",
		  "demo-2c8gi" },
		{ "{'requests':{'cpu':'2','memory':'8Gi'}}", "", "2c8gi", "demo-2c8gi" },
		{ "{'requests':{'cpu':'2','memory':'8Gi'}}", "q1", "2c8gi",
		  "demo-2c8gi-q1" },
		{ "{'requests':{'cpu':'500m','memory':'2Gi'}}", NULL, "500mc2gi",
		  "demo-500mc2gi" },
		{ "{'requests':{'cpu':'20m','memory':'128Mi'}}", NULL, "20mc128mi",
		  "demo-20mc128mi" },
		{ "{'requests':{'cpu':'2','memory':'1536Mi'}}", NULL, "2c1536mi",
		  "demo-2c1536mi" },
		{ "{'requests':{'cpu':'2','memory':'16Gi'}}", NULL, "2c16gi",
		  "demo-2c16gi" },
		{ "{'requests':{'cpu':'1','memory':'2Gi'}}", NULL, "1c2gi",
		  "demo-1c2gi" },
		{ "{'requests':{'cpu':'2'}}", NULL, "2c0gi", "demo-2c0gi" },
		{ "{'requests':{'cpu':'1','memory':'1500M'}}", NULL, "1c1431mi",
		  "demo-1c1431mi" },
		{ "{'limits':{'cpu':'1','memory':'512Mi'}}", NULL, "1c512mi",
		  "demo-1c512mi" },
		{ "{'requests':{},'limits':{'memory':'512Mi'}}", NULL, "0c512mi",
		  "demo-0c512mi" },
		{ "{'requests':{'cpu':1,'memory':1073741824}}", NULL, "1c1gi",
		  "demo-1c1gi" },
		{ "{'requests':{'cpu':0.5}}", NULL, "500mc0gi", "demo-500mc0gi" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char key[ABX__RESOURCE_KEY_SIZE];
		char *pool = derive(cases[i].resources, cases[i].quota, key);

		cr_expect_str_eq(key, cases[i].key);
		cr_expect_str_eq(pool, cases[i].pool);
		abx__free(pool);
	}
}

Test(model_names, no_resources_make_no_key)
{
	char key[ABX__RESOURCE_KEY_SIZE];
	int64_t cpu = 1, memory = 1;
	abx_error *err = NULL;

	cr_assert_eq(abx__resources_shape(NULL, &cpu, &memory, NULL), ABX_OK);
	cr_assert_eq(abx__resource_key(cpu, memory, key, &err), ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err),
			 "no pool can be named without a CPU or memory size");
	abx_error_free(err);
}

Test(model_names, a_bad_quantity_is_named_with_its_path)
{
	json_object *object = json_tokener_parse("{'requests':{'cpu':'2x'}}");
	json_object *wrong = json_tokener_parse("{'limits':{'memory':[]}}");
	abx_error *err = NULL;
	int64_t cpu, memory;

	cr_assert_eq(abx__resources_shape(object, &cpu, &memory, &err), ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err),
			 "requests.cpu: \"2x\" is not a quantity");
	cr_assert_eq(abx__resources_shape(wrong, &cpu, &memory, &err), ABX_EINVAL);
	cr_assert_str_eq(abx_error_message(err), "limits.memory: expected a quantity");
	abx_error_free(err);
	json_object_put(object);
	json_object_put(wrong);
}

Test(model_names, env_names_follow_the_rule)
{
	static const char *const good[] = { "a",   "base", "e2b",
					    "a-b", "a--b", "a23456789012345678901234" };
	static const char *const bad[] = { "",    "1a",  "-a",
					   "a-",  "A",   "aB",
					   "a_b", "a.b", "a b",
					   "a/b", "a\n", "a234567890123456789012345" };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_expect_eq(abx__env_name_check(good[i], NULL), ABX_OK, "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		abx_error *err = NULL;

		cr_expect_eq(abx__env_name_check(bad[i], &err), ABX_EINVAL, "%s", bad[i]);
		cr_expect(strstr(abx_error_message(err), bad[i]));
		cr_expect(abx_error_hint(err));
		abx_error_free(err);
	}
}

Test(model_names, labels_and_subdomains_follow_rfc_1123)
{
	char label[65];

	memset(label, 'a', 64);
	label[64] = '\0';
	cr_expect_not(abx__dns_label_is_valid(label));
	label[63] = '\0';
	cr_expect(abx__dns_label_is_valid(label));
	cr_expect(abx__dns_label_is_valid("0a-9"));
	cr_expect_not(abx__dns_label_is_valid("a.b"));
	cr_expect(abx__dns_subdomain_is_valid("a.b-c.0"));
	cr_expect_not(abx__dns_subdomain_is_valid("a..b"));
	cr_expect_not(abx__dns_subdomain_is_valid(".a"));
	cr_expect_not(abx__dns_subdomain_is_valid("a."));
	cr_expect_not(abx__dns_subdomain_is_valid(""));
}

Test(model_names, a_pool_name_past_a_label_is_refused)
{
	char quota[64];
	char *name = NULL;
	abx_error *err = NULL;

	memset(quota, 'q', 63);
	quota[63] = '\0';
	cr_assert_eq(abx__pool_name("demo", "2c8gi", quota, &name, &err), ABX_EINVAL);
	cr_assert(strstr(abx_error_message(err), "pool name \"demo-2c8gi-qqq"));
	cr_assert_null(name);
	abx_error_free(err);
}
