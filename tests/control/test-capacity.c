/*
 * test-capacity.c - instance types, pool sizing and quotas.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "control/fields.h"
#include "model/keys.h"
#include "world.h"

#define TYPES                                                                          \
	"{\"items\":[{\"name\":\"1c8g\",\"baseResources\":{\"cpu\":\"1\",\"memory\":"  \
	"\"8Gi\"},\"maxMultiplier\":4,\"cost\":\"1 credit\",\"extensions\":{\"zone\":" \
	"\"a\"}},{\"name\":\"gpu\",\"baseResources\":{\"cpu\":\"8\",\"memory\":"       \
	"\"32Gi\","                                                                    \
	"\"nvidia.com/gpu\":\"1\"}}]}"
#define QUOTAS                                                                           \
	"{\"items\":["                                                                   \
	"{\"name\":\"q/ten\",\"shortName\":\"ten\",\"resources\":{\"total\":{\"1c8g\":"  \
	"\"10\"},\"reserved\":{\"1c8g\":\"2\"}}},"                                       \
	"{\"name\":\"q/none\",\"resources\":{\"total\":{\"1c8g\":\"0\"}}},"              \
	"{\"name\":\"q/spot\",\"resources\":{\"total\":{\"1c8g\":\"1\"}},\"metadata\":{" \
	"\"quota.scitix.ai/skip-check\":\"true\"}},"                                     \
	"{\"name\":\"q/red\",\"team\":\"red\",\"resources\":{\"total\":{\"1c8g\":\"5\"}" \
	"}}]}"

static world w;
static abx__capacity *capacity;

static void provide(const char *types, const char *quotas)
{
	json_object *t = types ? json_tokener_parse(types) : NULL;
	json_object *q = quotas ? json_tokener_parse(quotas) : NULL;
	abx_error *err = NULL;

	abx__capacity_free(capacity);
	capacity = NULL;
	cr_assert_eq(abx__capacity_docs_new(t, q, &capacity, &err), ABX_OK, "%s",
		     abx_error_message(err));
	json_object_put(t);
	json_object_put(q);
	w.capacity = capacity;
}

static void setup(void)
{
	world_init(&w);
	world_crash(&w);
	provide(TYPES, QUOTAS);
	world_boot(&w);
}

static void teardown(void)
{
	world_done(&w);
	abx__capacity_free(capacity);
	capacity = NULL;
}

TestSuite(control_capacity, .init = setup, .fini = teardown, .timeout = 60);

/* An env without members, of a template with this sizing (NULL: none said). */
static void sized_env(const char *name, const char *sizing, const char *team)
{
	json_object *doc = template_doc(name, IDLE_IMAGE);
	char text[512];
	answer a = { 0 };

	if (sizing) {
		snprintf(text, sizeof(text), "{\"" ABX__LABEL_POOL_SIZING "\":\"%s\"}",
			 sizing);
		abx__field_take(abx__field_object(doc, "metadata"), "labels",
				json_tokener_parse(text));
	}
	cr_assert_eq(abx__control_template_put(w.control, doc, true, on_object, &a, NULL),
		     ABX_OK);
	json_object_put(doc);
	world_settle(&w);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"%s\"%s%s%s},\"spec\":{\"templateRef\":{"
		 "\"name\":\"%s\"}}}",
		 name, team ? ",\"labels\":{\"" ABX__LABEL_TEAM "\":\"" : "",
		 team ? team : "", team ? "\"}" : "", name);
	a = world_apply(&w, json_tokener_parse(text), true);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
}

static answer add_pool(const char *env, const char *config, int replicas)
{
	abx_error *err = NULL;
	answer a = { 0 };
	json_object *member;
	char text[1024];
	int r;

	snprintf(text, sizeof(text), "{\"config\":%s,\"spec\":{\"replicas\":%d}}", config,
		 replicas);
	member = json_tokener_parse(text);
	cr_assert(member, "%s", text);
	r = abx__control_pool_create(w.control, "default", env, member, on_object, &a,
				     &err);
	json_object_put(member);
	if (r < 0) {
		on_done(&a, r, err);
		abx_error_free(err);
		return a;
	}
	world_pass(&w, 500);
	cr_assert_eq(a.calls, 1);
	return a;
}

static void expect_pool(const char *env, const char *config, int r, const char *text)
{
	answer a = add_pool(env, config, 1);

	cr_assert_eq(a.r, r, "%s: %d %s", config, a.r, a.message);
	if (r == ABX_OK)
		cr_assert_str_eq(
			abx__field_str(abx__field_object(a.object, "metadata"), "name"),
			text);
	else
		cr_assert(strstr(a.message, text), "%s: %s", config, a.message);
	answer_done(&a);
}

#define INLINE(cpu, memory)                                                           \
	"\"inlineResources\":{\"requests\":{\"cpu\":\"" cpu "\",\"memory\":\"" memory \
	"\"}}"
#define QUOTA(url) "\"labels\":{\"quota.scitix.ai/url\":\"" url "\"}"

Test(control_capacity, which_sizing_is_accepted)
{
	static const struct {
		const char *sizing, *config;
		int r;
		const char *text; /* the pool's name, or in the error */
	} cases[] = {
		{ "billed", "{" QUOTA("q/ten") ",\"instanceType\":\"1c8g\"}", ABX_OK,
		  "e0-1c8gi-ten" },
		{ "billed", "{\"instanceType\":\"1c8g\"}", ABX_EINVAL, "quota" },
		{ "billed", "{" QUOTA("q/ten") "," INLINE("1", "2Gi") "}", ABX_EINVAL,
		  "instanceType" },
		{ "free-form", "{" INLINE("1", "2Gi") "}", ABX_OK, "e3-1c2gi" },
		{ "free-form", "{" INLINE("1", "2Gi") ",\"instanceType\":\"1c8g\"}",
		  ABX_EINVAL, "instanceType" },
		{ "free-form", "{" INLINE("1", "2Gi") ",\"multiplier\":2}", ABX_EINVAL,
		  "multiplier" },
		{ "free-form", "{" INLINE("1", "2Gi") "," QUOTA("q/ten") "}", ABX_EINVAL,
		  "quota.scitix.ai/url" },
		{ "free-form", "{}", ABX_EINVAL, "inlineResources" },
		{ "either", "{" INLINE("1", "2Gi") "}", ABX_OK, "e8-1c2gi" },
		{ "either", "{\"instanceType\":\"1c8g\",\"multiplier\":2}", ABX_OK,
		  "e9-2c16gi" },
		{ "either", "{}", ABX_EINVAL, "required" },
		{ "either", "{" INLINE("1", "2Gi") ",\"multiplier\":2}", ABX_EINVAL,
		  "multiplier" },
		{ NULL, "{\"instanceType\":\"nosuch\"}", ABX_EINVAL, "catalogue" },
		{ NULL, "{\"instanceType\":\"1c8g\",\"multiplier\":5}", ABX_EINVAL,
		  "1..4" },
		{ NULL, "{\"instanceType\":\"1c8g\"," INLINE("1", "2Gi") "}", ABX_OK,
		  "e14-1c2gi" },
		{ NULL, "{\"instanceType\":\"1c8g\"," INLINE("2", "2Gi") "}", ABX_EINVAL,
		  "requests.cpu is 2" },
		{ NULL,
		  "{\"instanceType\":\"1c8g\",\"multiplier\":2," INLINE("2", "9Gi") "}",
		  ABX_OK, "e16-2c9gi" },
		{ NULL,
		  "{\"instanceType\":\"1c8g\",\"inlineResources\":{\"limits\":{\"cpu\":"
		  "\"1\",\"nvidia.com/gpu\":\"1\"}}}",
		  ABX_EINVAL, "nvidia.com/gpu" },
		{ NULL, "{" QUOTA("q/nosuch") ",\"instanceType\":\"1c8g\"}", ABX_EINVAL,
		  "no quota q/nosuch" },
		{ NULL, "{" QUOTA("q/red") ",\"instanceType\":\"1c8g\"}", ABX_EINVAL,
		  "no quota q/red" },
		{ NULL, "{" QUOTA("q/ten") "," INLINE("1", "2Gi") "}", ABX_EINVAL,
		  "instanceType is required with a quota" },
		{ NULL, "{" QUOTA("q/none") ",\"instanceType\":\"1c8g\"}", ABX_EEXHAUSTED,
		  "q/none allows 0" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char name[16];

		snprintf(name, sizeof(name), "e%zu", i);
		sized_env(name, cases[i].sizing, NULL);
		expect_pool(name, cases[i].config, cases[i].r, cases[i].text);
	}
}

static json_object *member_config(const char *env, const char *pool)
{
	json_object *doc = NULL, *config = NULL, *members;

	cr_assert_eq(abx__control_env_get(w.control, "default", env, &doc, NULL), ABX_OK);
	members = abx__field_array(
		json_object_array_get_idx(
			abx__field_array(abx__field_object(doc, "spec"), "clusters"), 0),
		"members");
	for (size_t i = 0; i < abx__array_count(members); i++) {
		json_object *m = json_object_array_get_idx(members, i);

		if (strcmp(abx__field_str(m, "name"), pool) == 0)
			config = json_object_get(abx__field_object(m, "config"));
	}
	json_object_put(doc);
	cr_assert(config);
	return config;
}

Test(control_capacity, an_instance_type_is_resolved_when_the_pool_is_made)
{
	json_object *config;

	sized_env("demo", NULL, NULL);
	expect_pool("demo", "{\"instanceType\":\"1c8g\",\"multiplier\":2}", ABX_OK,
		    "demo-2c16gi");
	config = member_config("demo", "demo-2c16gi");
	cr_assert_str_eq(
		json_object_to_json_string_ext(abx__field(config, "inlineResources"),
					       JSON_C_TO_STRING_PLAIN),
		"{\"requests\":{\"cpu\":\"2\",\"memory\":\"16Gi\"},"
		"\"limits\":{\"cpu\":\"2\",\"memory\":\"16Gi\"}}");
	cr_assert_str_eq(abx__field_str(abx__field_object(config, "annotations"),
					ABX__ANNOTATION_RESERVATION_QUOTA),
			 "{\"1c8g\":\"2\"}");
	json_object_put(config);
}

/* The catalogue may change, and go: pools stay what they are. */
Test(control_capacity, pools_outlive_the_catalogue)
{
	answer a;

	sized_env("demo", NULL, NULL);
	expect_pool("demo", "{\"instanceType\":\"1c8g\"," QUOTA("q/ten") "}", ABX_OK,
		    "demo-1c8gi-ten");
	world_crash(&w);
	w.capacity = NULL;
	world_boot(&w);
	cr_assert_eq(world_counts(&w, "demo").idle, 1);
	a = add_pool("demo", "{" INLINE("1", "2Gi") "}", 1);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
	cr_assert_eq(world_counts(&w, "demo").idle, 2);
	expect_pool("demo", "{\"instanceType\":\"1c8g\"}", ABX_EUNSUPPORTED,
		    "no instance type catalogue");
}

Test(control_capacity, the_sizing_label_is_the_servers)
{
	json_object *doc = NULL;
	answer a;

	sized_env("demo", "free-form", NULL);
	cr_assert_eq(abx__control_env_get(w.control, "default", "demo", &doc, NULL),
		     ABX_OK);
	cr_assert_str_eq(
		abx__field_str(
			abx__field_object(abx__field_object(doc, "metadata"), "labels"),
			ABX__LABEL_POOL_SIZING),
		"free-form");
	json_object_put(doc);
	a = world_apply(&w,
			json_tokener_parse("{\"metadata\":{\"name\":\"demo\",\"labels\":{"
					   "\"" ABX__LABEL_POOL_SIZING
					   "\":\"either\"}},\"spec\":{"
					   "\"templateRef\":{\"name\":\"demo\"}}}"),
			false);
	cr_assert_eq(a.r, ABX_EINVAL);
	cr_assert(strstr(a.message, "it is free-form"), "%s", a.message);
}

Test(control_capacity, a_template_says_a_sizing_there_is)
{
	json_object *doc = template_doc("bad", IDLE_IMAGE);
	answer a = { 0 };

	abx__field_take(abx__field_object(doc, "metadata"), "labels",
			json_tokener_parse("{\"" ABX__LABEL_POOL_SIZING "\":\"x\"}"));
	cr_assert_eq(abx__control_template_put(w.control, doc, true, on_object, &a, NULL),
		     ABX_OK);
	json_object_put(doc);
	world_settle(&w);
	cr_assert_eq(a.r, ABX_EINVAL);
	cr_assert(strstr(a.message, "free-form"), "%s", a.message);
}

/* --- quotas --- */

static json_object *quota(const char *name)
{
	json_object *list = NULL, *found = NULL;

	cr_assert_eq(abx__control_quotas(w.control, NULL, NULL, &list, NULL), ABX_OK);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		json_object *q = json_object_array_get_idx(list, i);

		if (strcmp(abx__field_str(q, "name"), name) == 0)
			found = json_object_get(abx__field(q, "resources"));
	}
	json_object_put(list);
	cr_assert(found);
	return found;
}

static void expect_quota(const char *name, const char *resources)
{
	json_object *q = quota(name);

	cr_assert_str_eq(json_object_to_json_string_ext(q, JSON_C_TO_STRING_PLAIN),
			 resources);
	json_object_put(q);
}

#define TEN "{\"instanceType\":\"1c8g\"," QUOTA("q/ten") "}"

static const char *admitted(const char *env, const char *pool, bool *ret_value)
{
	static char reason[64];
	json_object *doc = NULL, *c;

	cr_assert_eq(abx__control_pool_get(w.control, "default", env, pool, &doc, NULL),
		     ABX_OK);
	c = condition_of(doc, "Admitted");
	cr_assert(c);
	snprintf(reason, sizeof(reason), "%s", abx__field_str(c, "reason"));
	*ret_value = strcmp(abx__field_str(c, "status"), "True") == 0;
	json_object_put(doc);
	return reason;
}

Test(control_capacity, what_is_used_reserved_and_free_is_told)
{
	answer a;

	expect_quota("q/ten", "{\"total\":{\"1c8g\":\"10\"},\"used\":{\"1c8g\":\"0\"},"
			      "\"reserved\":{\"1c8g\":\"2\"},\"free\":{\"1c8g\":\"8\"}}");
	sized_env("demo", NULL, NULL);
	a = add_pool("demo",
		     "{\"instanceType\":\"1c8g\",\"multiplier\":2," QUOTA("q/ten") "}",
		     3);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
	expect_quota("q/ten", "{\"total\":{\"1c8g\":\"10\"},\"used\":{\"1c8g\":\"6\"},"
			      "\"reserved\":{\"1c8g\":\"2\"},\"free\":{\"1c8g\":\"2\"}}");
	expect_quota("q/none",
		     "{\"total\":{\"1c8g\":\"0\"},\"used\":{\"1c8g\":\"0\"},"
		     "\"reserved\":{\"1c8g\":\"0\"},\"free\":{\"1c8g\":\"0\"}}");
}

Test(control_capacity, a_pool_gets_what_there_is_and_the_rest_when_it_comes_free)
{
	answer a;
	bool value;

	sized_env("demo", NULL, NULL);
	sized_env("more", NULL, NULL);
	a = add_pool("demo", TEN, 6);
	answer_done(&a);
	a = add_pool("more", TEN, 5);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
	cr_assert_eq(world_counts(&w, "demo").idle, 6);
	cr_assert_eq(world_counts(&w, "more").idle, 2, "8 are not reserved");
	cr_assert_str_eq(admitted("more", "more-1c8gi-ten", &value),
			 "ResourceQuotaExhausted");
	cr_assert_not(value);
	cr_assert_str_eq(admitted("demo", "demo-1c8gi-ten", &value), "AdmissionGranted");
	cr_assert(value);
	a = (answer){ 0 };
	cr_assert_eq(abx__control_pool_delete(w.control, "default", "demo",
					      "demo-1c8gi-ten", on_done, &a, NULL),
		     ABX_OK);
	world_pass(&w, 500);
	cr_assert_eq(world_counts(&w, "more").idle, 5);
	cr_assert_str_eq(admitted("more", "more-1c8gi-ten", &value), "AdmissionGranted");
}

static answer resize(const char *env, const char *pool, const char *config, int replicas)
{
	abx_error *err = NULL;
	answer a = { 0 };
	char text[1024];
	json_object *member, *stored = member_config(env, pool);

	snprintf(text, sizeof(text), "{\"spec\":{\"replicas\":%d}}", replicas);
	member = json_tokener_parse(text);
	abx__field_take(member, "config",
			config ? json_tokener_parse(config) : json_object_get(stored));
	json_object_put(stored);
	cr_assert_eq(abx__control_pool_update(w.control, "default", env, pool, member,
					      on_object, &a, &err),
		     ABX_OK);
	json_object_put(member);
	world_pass(&w, 500);
	cr_assert_eq(a.calls, 1);
	return a;
}

Test(control_capacity, a_pool_may_not_be_made_larger_than_its_quota)
{
	answer a;

	sized_env("demo", NULL, NULL);
	a = add_pool("demo", TEN, 4);
	answer_done(&a);
	a = resize("demo", "demo-1c8gi-ten", NULL, 9);
	cr_assert_eq(a.r, ABX_EEXHAUSTED);
	cr_assert(strstr(a.message, "room for 8 of 9"), "%s", a.message);
	cr_assert(strstr(a.message, "ResourceQuotaExhausted"), "%s", a.message);
	cr_assert_eq(world_counts(&w, "demo").replicas, 4, "as it was");
	a = resize("demo", "demo-1c8gi-ten", NULL, 8);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
	cr_assert_eq(world_counts(&w, "demo").idle, 8);
	a = resize("demo", "demo-1c8gi-ten", NULL, 3);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
	expect_quota("q/ten", "{\"total\":{\"1c8g\":\"10\"},\"used\":{\"1c8g\":\"3\"},"
			      "\"reserved\":{\"1c8g\":\"2\"},\"free\":{\"1c8g\":\"5\"}}");
}

Test(control_capacity, the_check_may_be_skipped)
{
	answer a;

	sized_env("demo", NULL, NULL);
	a = add_pool("demo", "{\"instanceType\":\"1c8g\"," QUOTA("q/spot") "}", 20);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
	world_pass(&w, 2000);
	cr_assert_eq(world_counts(&w, "demo").idle, 20);
	expect_quota("q/spot", "{\"total\":{},\"used\":{\"1c8g\":\"20\"},\"reserved\":{"
			       "\"1c8g\":\"0\"},\"free\":{}}");
}

Test(control_capacity, an_owner_sees_and_uses_his_own)
{
	json_object *list = NULL;

	cr_assert_eq(abx__control_quotas(w.control, "blue", "u", &list, NULL), ABX_OK);
	cr_assert_eq(json_object_array_length(list), 3);
	json_object_put(list);
	cr_assert_eq(abx__control_quotas(w.control, "red", "u", &list, NULL), ABX_OK);
	cr_assert_eq(json_object_array_length(list), 4);
	json_object_put(list);
	sized_env("demo", NULL, "red");
	expect_pool("demo", "{\"instanceType\":\"1c8g\"," QUOTA("q/red") "}", ABX_OK,
		    "demo-1c8gi");
}

/* Running sandboxes are nobody's to take. */
Test(control_capacity, a_quota_that_shrinks_takes_idle_pods_only)
{
	answer a;
	int running = 0;

	sized_env("demo", NULL, NULL);
	a = add_pool("demo", TEN, 6);
	answer_done(&a);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(world_claim(&w, "demo").r, ABX_OK);
	world_crash(&w);
	provide(TYPES, "{\"items\":[{\"name\":\"q/ten\",\"shortName\":\"ten\","
		       "\"resources\":{\"total\":{\"1c8g\":\"2\"}}}]}");
	world_boot(&w);
	world_pass(&w, 1000);
	running = world_counts(&w, "demo").running;
	cr_assert_eq(running, 4);
	cr_assert_eq(world_counts(&w, "demo").idle, 0);
	expect_quota("q/ten", "{\"total\":{\"1c8g\":\"2\"},\"used\":{\"1c8g\":\"4\"},"
			      "\"reserved\":{\"1c8g\":\"0\"},\"free\":{\"1c8g\":\"0\"}}");
}

static const char *scaling_field(const char *key)
{
	static char text[256];
	json_object *doc = NULL;
	const char *value;

	cr_assert_eq(abx__control_pool_get(w.control, "default", "demo", "demo-1c8gi-ten",
					   &doc, NULL),
		     ABX_OK);
	value = abx__field_str(
		abx__field_object(abx__field_object(doc, "status"), "autoscaling"), key);
	snprintf(text, sizeof(text), "%s", value ? value : "");
	json_object_put(doc);
	return text;
}

static void enable_group(const char *mode)
{
	json_object *policy;
	char text[256];
	answer a = { 0 };

	snprintf(text, sizeof(text),
		 "{\"enabled\":true,\"maxReplicas\":50,\"scaleUpPolicy\":{\"mode\":"
		 "\"%s\",\"cooldownSeconds\":1,\"saturationCooldownSeconds\":60}}",
		 mode);
	policy = json_tokener_parse(text);
	cr_assert_eq(abx__control_group_put(w.control, "default", "demo", "1c8gi", policy,
					    on_object, &a, NULL),
		     ABX_OK);
	json_object_put(policy);
	world_settle(&w);
	cr_assert_eq(a.r, ABX_OK, "%s", a.message);
	answer_done(&a);
}

Test(control_capacity, the_autoscaler_takes_what_is_granted)
{
	static answer a[20];
	answer pool;

	sized_env("demo", NULL, NULL);
	pool = add_pool("demo", TEN, 0);
	answer_done(&pool);
	enable_group("Aggressive");
	for (int i = 0; i < 20; i++)
		cr_assert_eq(claim_start(&w, "demo", &a[i], NULL, NULL), ABX_OK);
	world_pass(&w, 3000);
	cr_assert_eq(world_counts(&w, "demo").replicas, 8);
	cr_assert_eq(world_counts(&w, "demo").running, 8);
	cr_assert_str_eq(scaling_field("lastScaleUpAttemptResult"), "JustRight");
	cr_assert(strstr(scaling_field("scaleUpErrorMessage"), "q/ten"));
	/* Saturated: no attempt for a minute; the next finds nothing left. */
	world_pass(&w, 61000);
	cr_assert_str_eq(scaling_field("lastScaleUpAttemptResult"), "Insufficient");
	cr_assert_eq(world_counts(&w, "demo").replicas, 8);
}

/* --- the documents --- */

Test(control_capacity, lists_show_what_the_files_say)
{
	json_object *list = NULL;

	cr_assert(abx__control_has_instance_types(w.control));
	cr_assert(abx__control_has_quotas(w.control));
	cr_assert_eq(abx__control_instance_types(w.control, &list, NULL), ABX_OK);
	cr_assert_eq(json_object_array_length(list), 2);
	cr_assert_str_eq(
		json_object_to_json_string_ext(json_object_array_get_idx(list, 0),
					       JSON_C_TO_STRING_PLAIN),
		"{\"name\":\"1c8g\",\"baseResources\":{\"cpu\":\"1\",\"memory\":"
		"\"8Gi\"},\"maxMultiplier\":4,\"cost\":\"1 credit\","
		"\"extensions\":{\"zone\":\"a\"}}");
	json_object_put(list);
}

Test(control_capacity, without_a_provider_there_is_nothing)
{
	json_object *list = NULL;

	world_crash(&w);
	w.capacity = NULL;
	world_boot(&w);
	cr_assert_not(abx__control_has_instance_types(w.control));
	cr_assert_not(abx__control_has_quotas(w.control));
	cr_assert_eq(abx__control_instance_types(w.control, &list, NULL), ABX_OK);
	cr_assert_eq(json_object_array_length(list), 0);
	json_object_put(list);
	cr_assert_eq(abx__control_quotas(w.control, NULL, NULL, &list, NULL), ABX_OK);
	cr_assert_eq(json_object_array_length(list), 0);
	json_object_put(list);
}

Test(control_capacity, documents_that_do_not_hold_together_are_refused)
{
	static const struct {
		const char *types, *quotas, *text;
	} cases[] = {
		{ "{}", NULL, "items" },
		{ "{\"items\":[{}]}", NULL, "name is required" },
		{ "{\"items\":[{\"name\":\"a\"}]}", NULL, "baseResources" },
		{ "{\"items\":[{\"name\":\"a\",\"baseResources\":{\"cpu\":\"x\"}}]}",
		  NULL, "baseResources.cpu" },
		{ "{\"items\":[{\"name\":\"a\",\"baseResources\":{\"gpu\":\"1\"}}]}",
		  NULL, "neither cpu nor memory" },
		{ "{\"items\":[{\"name\":\"a\",\"baseResources\":{\"cpu\":\"1\"},"
		  "\"maxMultiplier\":-1}]}",
		  NULL, "maxMultiplier" },
		{ "{\"items\":[{\"name\":\"a\",\"baseResources\":{\"cpu\":\"1\"}},"
		  "{\"name\":\"a\",\"baseResources\":{\"cpu\":\"1\"}}]}",
		  NULL, "twice" },
		{ NULL, "{\"items\":[{}]}", "name is required" },
		{ NULL,
		  "{\"items\":[{\"name\":\"q\",\"resources\":{\"total\":{\"a\":\"-1\"}}}]"
		  "}",
		  "total.a" },
		{ NULL,
		  "{\"items\":[{\"name\":\"q\",\"resources\":{\"reserved\":{\"a\":1}}}]}",
		  "reserved.a" },
		{ NULL, "{\"items\":[{\"name\":\"q\"},{\"name\":\"q\"}]}", "twice" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_object *t =
			cases[i].types ? json_tokener_parse(cases[i].types) : NULL;
		json_object *q =
			cases[i].quotas ? json_tokener_parse(cases[i].quotas) : NULL;
		abx__capacity *made = NULL;
		abx_error *err = NULL;

		cr_assert_eq(abx__capacity_docs_new(t, q, &made, &err), ABX_EINVAL,
			     "case %zu", i);
		cr_assert(strstr(abx_error_message(err), cases[i].text), "%zu: %s", i,
			  abx_error_message(err));
		abx_error_free(err);
		json_object_put(t);
		json_object_put(q);
	}
}
