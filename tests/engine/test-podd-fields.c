/*
 * test-podd-fields.c - what a Pod template asks for is what its container meets; podd
 * itself refuses the rest (each field: test-spec.c).
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <agentbox/error.h>

#include "podd-case.h"

#define FIELDS_TEST(name) PODD_CASE(podd_fields, name)

FIELDS_TEST(a_container_meets_what_its_template_asks_for)
{
	static const char more[] =
		"\"args\":[\"x\",\"{ echo args=$1 env=$B dir=$PWD id=$(id -u):$(id -g); "
		"echo host=$(hostname); "
		"dd if=/dev/zero of=/m/big bs=64k count=32 2>/dev/null || echo full; "
		"touch /ro/x 2>/dev/null || echo readonly; touch /sub/here; } "
		">/out/new 2>&1; mv /out/new /out/result; exec sleep 1000\",\"one\"],"
		"\"env\":[{\"name\":\"A\",\"value\":\"1\"},"
		"{\"name\":\"B\",\"value\":\"$(A)2\"}],\"workingDir\":\"/tmp\","
		"\"securityContext\":{\"runAsUser\":1234,\"runAsGroup\":5678}";
	static const char mounts[] =
		"\"volumeMounts\":[{\"name\":\"out\",\"mountPath\":\"/out\"},"
		"{\"name\":\"mem\",\"mountPath\":\"/m\"},"
		"{\"name\":\"out\",\"mountPath\":\"/ro\",\"readOnly\":true},"
		"{\"name\":\"out\",\"mountPath\":\"/sub\",\"subPath\":\"below\"}]";
	static const char pod[] =
		"\"hostname\":\"named\",\"volumes\":[{\"name\":\"out\",\"emptyDir\":{}},"
		"{\"name\":\"mem\",\"emptyDir\":{\"medium\":\"Memory\",\"sizeLimit\":"
		"\"1Mi\"}}],\"initContainers\":[{\"name\":\"open\",\"image\":\"runtime:"
		"\","
		"\"command\":[\"sh\",\"-c\",\"mkdir -p /out/below; chmod -R 777 /out\"],"
		"\"volumeMounts\":[{\"name\":\"out\",\"mountPath\":\"/out\"}]}]";
	static char container[4096], path[256], text[512];
	FILE *f = NULL;

	/* sh -c SCRIPT x PROGRAM one: $0 is x, so the program is $1. */
	snprintf(
		container, sizeof(container),
		"\"command\":[\"/bin/sh\",\"-c\",\"p=$1; shift; eval \\\"$p\\\"\"],%s,%s",
		more, mounts);
	cr_assert_eq(podd_peer_create(&p, "a", "runtime:", container, pod), 0, "%s",
		     podd_peer_message(&p));
	cr_assert_str_eq(podd_peer_settle(&p, "a", 1), "running", "%s",
			 podd_peer_get(&p, "a", "message"));
	snprintf(path, sizeof(path), "%s/podd/pods/t_a/vol/out/result", p.podd.dir);
	for (int i = 0; i < 4000 && !(f = fopen(path, "r")); i++)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	cr_assert(f, "the script did not end");
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	cr_assert_str_eq(text, "args=one env=12 dir=/tmp id=1234:5678\nhost=named\n"
			       "full\nreadonly\n");
	snprintf(path, sizeof(path), "%s/podd/pods/t_a/vol/out/below/here", p.podd.dir);
	cr_assert_eq(access(path, F_OK), 0, "subPath is a folder of the volume");
}

/* It does not take agentboxd's word for a template. */
FIELDS_TEST(podd_refuses_what_it_does_not_honour)
{
	cr_assert_eq(podd_peer_create(&p, "a", "runtime:", "\"livenessProbe\":{}", ""),
		     ABX_EUNSUPPORTED);
	cr_assert(strstr(podd_peer_message(&p), "spec.containers[0].livenessProbe"), "%s",
		  podd_peer_message(&p));
	podd_peer_wait_clean(&p);
}
