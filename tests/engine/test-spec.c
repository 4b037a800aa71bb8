/*
 * test-spec.c - every field of a Pod template: honoured, checked and without meaning on
 * one machine, or refused by its path. docs/local-engine.md has the same as a table.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "engine/podd/readiness.h"
#include "engine/podd/spec.h"

/* A template whose main container and Pod spec have `container` and `pod` besides. */
static json_object *template_of(const char *container, const char *pod)
{
	char text[4096];
	json_object *o;

	snprintf(text, sizeof(text),
		 "{\"spec\":{\"containers\":[{\"name\":\"m\",\"image\":\"i\"%s%s}]%s%s}}",
		 *container ? "," : "", container, *pod ? "," : "", pod);
	o = json_tokener_parse(text);
	cr_assert(o, "no JSON: %s", text);
	return o;
}

static int parse(json_object *o, char *message, size_t size)
{
	abx__spec *spec = NULL;
	abx_error *err = NULL;
	int r = abx__spec_parse(o, &spec, &err);

	cr_assert_eq(r == ABX_OK, spec != NULL);
	snprintf(message, size, "%s", abx_error_message(err));
	abx__spec_free(spec);
	abx_error_free(err);
	json_object_put(o);
	return r;
}

static void expect_refusal(json_object *o, int r, const char *path)
{
	char message[512];
	size_t len = strlen(path);

	cr_assert_eq(parse(o, message, sizeof(message)), r, "%s: %s", path, message);
	cr_assert(strncmp(message, path, len) == 0 && strchr(":.", message[len]),
		  "%s is not named: %s", path, message);
}

#define U ABX_EUNSUPPORTED
#define I ABX_EINVAL

struct refusal {
	const char *json; /* "key": value */
	int r;
	const char *field; /* below the container, or the Pod's spec */
};

static const struct refusal container_refusals[] = {
	{ "\"readinessProbe\":{}", U, "readinessProbe" },
	{ "\"livenessProbe\":{}", U, "livenessProbe" },
	{ "\"startupProbe\":{}", U, "startupProbe" },
	{ "\"lifecycle\":{\"preStop\":{}}", U, "lifecycle" },
	{ "\"envFrom\":[]", U, "envFrom" },
	{ "\"stdin\":true", U, "stdin" },
	{ "\"stdinOnce\":true", U, "stdinOnce" },
	{ "\"tty\":true", U, "tty" },
	{ "\"volumeDevices\":[]", U, "volumeDevices" },
	{ "\"restartPolicy\":\"Always\"", U, "restartPolicy" },
	{ "\"resizePolicy\":[]", U, "resizePolicy" },
	{ "\"terminationMessagePath\":\"/x\"", U, "terminationMessagePath" },
	{ "\"terminationMessagePolicy\":\"File\"", U, "terminationMessagePolicy" },
	{ "\"nosuch\":1", U, "nosuch" },
	{ "\"imagePullPolicy\":\"Sometimes\"", I, "imagePullPolicy" },
	{ "\"workingDir\":\"here\"", I, "workingDir" },
	{ "\"command\":\"sh\"", I, "command" },
	{ "\"env\":[{\"name\":\"A\",\"valueFrom\":{}}]", U, "env[0].valueFrom" },
	{ "\"env\":[{\"name\":\"A=B\"}]", I, "env[0].name" },
	{ "\"resources\":{\"claims\":[]}", U, "resources.claims" },
	{ "\"resources\":{\"limits\":{\"ephemeral-storage\":\"1Gi\"}}", U,
	  "resources.limits.ephemeral-storage" },
	{ "\"resources\":{\"requests\":{\"ephemeral-storage\":\"1Gi\"}}", U,
	  "resources.requests.ephemeral-storage" },
	{ "\"resources\":{\"limits\":{\"nvidia.com/gpu\":1}}", U,
	  "resources.limits.nvidia.com/gpu" },
	{ "\"resources\":{\"limits\":{\"hugepages-2Mi\":\"2Mi\"}}", U,
	  "resources.limits.hugepages-2Mi" },
	{ "\"resources\":{\"limits\":{\"cpu\":\"-1\"}}", I, "resources.limits.cpu" },
	{ "\"resources\":{\"requests\":{\"memory\":\"much\"}}", I,
	  "resources.requests.memory" },
	{ "\"ports\":[{\"containerPort\":80,\"hostPort\":80}]", U, "ports[0].hostPort" },
	{ "\"ports\":[{\"containerPort\":80,\"hostIP\":\"::\"}]", U, "ports[0].hostIP" },
	{ "\"ports\":[{\"containerPort\":0}]", I, "ports[0].containerPort" },
	{ "\"ports\":[{\"containerPort\":80,\"protocol\":\"TLS\"}]", I,
	  "ports[0].protocol" },
	{ "\"securityContext\":{\"capabilities\":{}}", U,
	  "securityContext.capabilities" },
	{ "\"securityContext\":{\"readOnlyRootFilesystem\":true}", U,
	  "securityContext.readOnlyRootFilesystem" },
	{ "\"securityContext\":{\"allowPrivilegeEscalation\":false}", U,
	  "securityContext.allowPrivilegeEscalation" },
	{ "\"securityContext\":{\"runAsNonRoot\":true}", U,
	  "securityContext.runAsNonRoot" },
	{ "\"securityContext\":{\"seccompProfile\":{}}", U,
	  "securityContext.seccompProfile" },
	{ "\"securityContext\":{\"appArmorProfile\":{}}", U,
	  "securityContext.appArmorProfile" },
	{ "\"securityContext\":{\"seLinuxOptions\":{}}", U,
	  "securityContext.seLinuxOptions" },
	{ "\"securityContext\":{\"procMount\":\"Default\"}", U,
	  "securityContext.procMount" },
	{ "\"securityContext\":{\"runAsUser\":65536}", I, "securityContext.runAsUser" },
	{ "\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/v\",\"subPathExpr\":\"x\"}"
	  "]",
	  U, "volumeMounts[0].subPathExpr" },
	{ "\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/v\","
	  "\"mountPropagation\":\"None\"}]",
	  U, "volumeMounts[0].mountPropagation" },
	{ "\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/v\","
	  "\"recursiveReadOnly\":\"Enabled\"}]",
	  U, "volumeMounts[0].recursiveReadOnly" },
	{ "\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/proc/x\"}]", I,
	  "volumeMounts[0].mountPath" },
	{ "\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/a/../b\"}]", I,
	  "volumeMounts[0].mountPath" },
	{ "\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/v\",\"subPath\":\"../x\"}]",
	  I, "volumeMounts[0].subPath" },
};

static const struct refusal pod_refusals[] = {
	{ "\"ephemeralContainers\":[]", U, "ephemeralContainers" },
	{ "\"affinity\":{}", U, "affinity" },
	{ "\"nodeSelector\":{}", U, "nodeSelector" },
	{ "\"nodeName\":\"n\"", U, "nodeName" },
	{ "\"tolerations\":[]", U, "tolerations" },
	{ "\"topologySpreadConstraints\":[]", U, "topologySpreadConstraints" },
	{ "\"schedulerName\":\"s\"", U, "schedulerName" },
	{ "\"schedulingGates\":[]", U, "schedulingGates" },
	{ "\"priority\":1", U, "priority" },
	{ "\"priorityClassName\":\"p\"", U, "priorityClassName" },
	{ "\"preemptionPolicy\":\"Never\"", U, "preemptionPolicy" },
	{ "\"overhead\":{}", U, "overhead" },
	{ "\"resources\":{}", U, "resources" },
	{ "\"resourceClaims\":[]", U, "resourceClaims" },
	{ "\"securityContext\":{\"fsGroup\":1}", U, "securityContext" },
	{ "\"imagePullSecrets\":[]", U, "imagePullSecrets" },
	{ "\"serviceAccount\":\"a\"", U, "serviceAccount" },
	{ "\"serviceAccountName\":\"a\"", U, "serviceAccountName" },
	{ "\"automountServiceAccountToken\":true", U, "automountServiceAccountToken" },
	{ "\"dnsPolicy\":\"Default\"", U, "dnsPolicy" },
	{ "\"dnsConfig\":{}", U, "dnsConfig" },
	{ "\"hostAliases\":[]", U, "hostAliases" },
	{ "\"subdomain\":\"s\"", U, "subdomain" },
	{ "\"setHostnameAsFQDN\":true", U, "setHostnameAsFQDN" },
	{ "\"hostname\":\"a.b\"", I, "hostname" },
	{ "\"hostNetwork\":true", U, "hostNetwork" },
	{ "\"hostPID\":true", U, "hostPID" },
	{ "\"hostIPC\":true", U, "hostIPC" },
	{ "\"hostUsers\":true", U, "hostUsers" },
	{ "\"shareProcessNamespace\":true", U, "shareProcessNamespace" },
	{ "\"os\":{\"name\":\"linux\"}", U, "os" },
	{ "\"readinessGates\":[]", U, "readinessGates" },
	{ "\"activeDeadlineSeconds\":1", U, "activeDeadlineSeconds" },
	{ "\"terminationGracePeriodSeconds\":-1", I, "terminationGracePeriodSeconds" },
	{ "\"terminationGracePeriodSeconds\":3601", I, "terminationGracePeriodSeconds" },
	{ "\"restartPolicy\":\"Always\"", U, "restartPolicy" },
	{ "\"restartPolicy\":\"OnFailure\"", U, "restartPolicy" },
	{ "\"volumes\":[{\"name\":\"v\",\"hostPath\":{\"path\":\"/\"}}]", U,
	  "volumes[0].hostPath" },
	{ "\"volumes\":[{\"name\":\"v\",\"configMap\":{}}]", U, "volumes[0].configMap" },
	{ "\"volumes\":[{\"name\":\"v\",\"secret\":{}}]", U, "volumes[0].secret" },
	{ "\"volumes\":[{\"name\":\"v\",\"projected\":{}}]", U, "volumes[0].projected" },
	{ "\"volumes\":[{\"name\":\"v\",\"downwardAPI\":{}}]", U,
	  "volumes[0].downwardAPI" },
	{ "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{}}]", U,
	  "volumes[0].persistentVolumeClaim" },
	{ "\"volumes\":[{\"name\":\"v\",\"emptyDir\":{\"sizeLimit\":\"1Gi\"}}]", U,
	  "volumes[0].emptyDir" },
	{ "\"volumes\":[{\"name\":\"v\",\"emptyDir\":{\"medium\":\"HugePages\"}}]", I,
	  "volumes[0].emptyDir.medium" },
	{ "\"volumes\":[{\"name\":\"v\"}]", I, "volumes[0]" },
	{ "\"initContainers\":[{\"name\":\"a\",\"image\":\"i\",\"restartPolicy\":"
	  "\"Always\"}]",
	  U, "initContainers[0].restartPolicy" },
	{ "\"initContainers\":[{\"name\":\"a\",\"image\":\"i\",\"resources\":{"
	  "\"limits\":{\"memory\":\"1Gi\"}}}]",
	  U, "initContainers[0]" },
	{ "\"initContainers\":[{\"name\":\"a\",\"image\":\"i\",\"securityContext\":{"
	  "\"privileged\":true}}]",
	  U, "initContainers[0].securityContext.privileged" },
};

Test(engine_spec, what_is_not_honoured_is_refused_by_its_path)
{
	char path[256];

	for (size_t i = 0; i < sizeof(container_refusals) / sizeof(container_refusals[0]);
	     i++) {
		const struct refusal *c = &container_refusals[i];

		snprintf(path, sizeof(path), "spec.containers[0].%s", c->field);
		expect_refusal(template_of(c->json, ""), c->r, path);
	}
	for (size_t i = 0; i < sizeof(pod_refusals) / sizeof(pod_refusals[0]); i++) {
		const struct refusal *c = &pod_refusals[i];

		snprintf(path, sizeof(path), "spec.%s", c->field);
		expect_refusal(template_of("", c->json), c->r, path);
	}
}

Test(engine_spec, what_is_no_template_is_refused_by_its_path)
{
	static const struct {
		const char *text;
		int r;
		const char *path;
	} cases[] = {
		{ "{\"status\":{}}", U, "status" },
		{ "{\"spec\":[]}", I, "spec" },
		{ "{\"spec\":{}}", I, "spec.containers" },
		{ "{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}", I,
		  "spec.containers[0]" },
		{ "{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"i\"},"
		  "{\"name\":\"b\",\"image\":\"i\"}]}}",
		  U, "spec.containers" },
		{ "{\"metadata\":{\"name\":\"a\"}}", U, "metadata.name" },
		{ "{\"metadata\":{\"labels\":{\"a\":1}}}", I, "metadata.labels" },
		{ "{\"metadata\":{\"labels\":{\"agentbox.navix.sh/sandbox-id\":\"x\"}}}",
		  I, "metadata.labels" },
		{ "{\"metadata\":{\"annotations\":{\"agentbox.navix.sh/x\":\"x\"}}}", I,
		  "metadata.annotations" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_refusal(json_tokener_parse(cases[i].text), cases[i].r,
			       cases[i].path);
}

Test(engine_spec, what_means_nothing_on_one_machine_is_taken)
{
	static const char container[] =
		"\"ports\":[{\"containerPort\":80,\"name\":\"a\",\"protocol\":\"UDP\"}],"
		"\"resources\":{\"requests\":{\"memory\":\"1Gi\"}}";
	static const char pod[] =
		"\"automountServiceAccountToken\":false,\"enableServiceLinks\":true,"
		"\"shareProcessNamespace\":false,\"hostNetwork\":false,\"hostPID\":false,"
		"\"hostIPC\":false,\"restartPolicy\":\"Never\","
		"\"initContainers\":[{\"name\":\"a\",\"image\":\"i\",\"resources\":{"
		"\"requests\":{\"cpu\":1}}}]";
	char message[512];

	cr_assert_eq(parse(template_of(container, pod), message, sizeof(message)), ABX_OK,
		     "%s", message);
}

Test(engine_spec, what_is_honoured_is_read)
{
	static const char container[] =
		"\"imagePullPolicy\":\"Always\",\"command\":[\"a\"],\"args\":[\"b\"],"
		"\"env\":[{\"name\":\"A\",\"value\":\"1\"},{\"name\":\"B\",\"value\":"
		"\"$(A)2\"}],\"workingDir\":\"/w\",\"securityContext\":{\"runAsUser\":7,"
		"\"runAsGroup\":8,\"privileged\":true},\"volumeMounts\":[{\"name\":\"v\","
		"\"mountPath\":\"/v\",\"readOnly\":true,\"subPath\":\"s\"}],"
		"\"resources\":{\"limits\":{\"cpu\":\"500m\",\"memory\":\"1Gi\"},"
		"\"requests\":{\"cpu\":\"250m\"}}";
	static const char pod[] =
		"\"volumes\":[{\"name\":\"v\",\"emptyDir\":{\"medium\":\"Memory\","
		"\"sizeLimit\":\"1Mi\"}}],\"runtimeClassName\":\"c\",\"hostname\":\"h\","
		"\"terminationGracePeriodSeconds\":30";
	json_object *o = template_of(container, pod);
	abx__spec *spec = NULL;
	const abx__spec_container *c;

	cr_assert_eq(abx__spec_parse(o, &spec, NULL), ABX_OK);
	c = &spec->main;
	cr_assert(c->pull_always && c->privileged && c->uid == 7 && c->gid == 8);
	cr_assert_str_eq(c->command[0], "a");
	cr_assert_str_eq(c->args[0], "b");
	cr_assert_str_eq(c->env[1], "B=12");
	cr_assert_str_eq(c->working_dir, "/w");
	cr_assert_eq(c->cpu_milli, 500);
	cr_assert_eq(c->cpu_request_milli, 250);
	cr_assert_eq(c->memory_bytes, (uint64_t)1 << 30);
	cr_assert(c->mount_count == 1 && c->mounts[0].read_only);
	cr_assert_str_eq(c->mounts[0].sub_path, "s");
	cr_assert(spec->volumes[0].memory && spec->volumes[0].size_bytes == 1 << 20);
	cr_assert_str_eq(spec->runtime_class, "c");
	cr_assert_str_eq(spec->hostname, "h");
	cr_assert_eq(spec->grace_s, 30);
	abx__spec_free(spec);
	json_object_put(o);
}

/* ---- readiness ---- */

Test(engine_spec, a_readiness_is_read_and_printed)
{
	static const char text[] =
		"{\"port\":80,\"path\":\"\\/h?a=b\",\"initialDelaySeconds\":1,"
		"\"timeoutSeconds\":2,\"periodSeconds\":3,\"successThreshold\":4,"
		"\"failureThreshold\":5}";
	json_object *o = json_tokener_parse(text), *printed;
	abx__readiness probe = { 0 };

	cr_assert_eq(abx__readiness_parse(o, &probe, NULL), ABX_OK);
	cr_assert(probe.port == 80 && probe.initial_delay_s == 1 &&
		  probe.timeout_s == 2 && probe.period_s == 3 &&
		  probe.success_threshold == 4 && probe.failure_threshold == 5);
	cr_assert(abx__readiness_goes_on(&probe));
	printed = abx__readiness_print(&probe);
	cr_assert_str_eq(json_object_to_json_string_ext(printed, JSON_C_TO_STRING_PLAIN),
			 text);
	json_object_put(printed);
	json_object_put(o);
	abx__readiness_done(&probe);
}

Test(engine_spec, a_readiness_that_cannot_be_asked_is_refused)
{
	static const struct {
		const char *text;
		int r;
		const char *path;
	} cases[] = {
		{ "{}", I, "readiness" },
		{ "{\"port\":80}", I, "readiness" },
		{ "{\"path\":\"/\"}", I, "readiness" },
		{ "{\"port\":0,\"path\":\"/\"}", I, "readiness.port" },
		{ "{\"port\":80,\"path\":\"x\"}", I, "readiness.path" },
		{ "{\"port\":80,\"path\":\"/ HTTP/1.0\\r\\n\"}", I, "readiness.path" },
		{ "{\"port\":80,\"path\":\"/\",\"host\":\"x\"}", U, "readiness.host" },
		{ "{\"port\":80,\"path\":\"/\",\"initialDelaySeconds\":-1}", I,
		  "readiness.initialDelaySeconds" },
		{ "{\"port\":80,\"path\":\"/\",\"timeoutSeconds\":0}", I,
		  "readiness.timeoutSeconds" },
		{ "{\"port\":80,\"path\":\"/\",\"periodSeconds\":0}", I,
		  "readiness.periodSeconds" },
		{ "{\"port\":80,\"path\":\"/\",\"successThreshold\":101}", I,
		  "readiness.successThreshold" },
		{ "{\"port\":80,\"path\":\"/\",\"failureThreshold\":\"3\"}", I,
		  "readiness.failureThreshold" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_object *o = json_tokener_parse(cases[i].text);
		abx__readiness probe = { 0 };
		abx_error *err = NULL;
		size_t len = strlen(cases[i].path);

		cr_assert(o, "%s", cases[i].text);
		cr_assert_eq(abx__readiness_parse(o, &probe, &err), cases[i].r, "%s",
			     cases[i].text);
		cr_assert(strncmp(abx_error_message(err), cases[i].path, len) == 0 &&
				  abx_error_message(err)[len] == ':',
			  "%s: %s", cases[i].path, abx_error_message(err));
		cr_assert_null(probe.path);
		abx_error_free(err);
		json_object_put(o);
	}
}
