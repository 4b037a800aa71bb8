/*
 * fake-runtime.h - the runtime port: answers an arming in a later step, remembers the
 * last body, fails on demand.
 */
#ifndef TESTS_LIB_FAKE_RUNTIME_H
#define TESTS_LIB_FAKE_RUNTIME_H

#include <stdbool.h>

#include "control/port-runtime.h"

typedef struct fake_arming {
	struct fake_arming *next;
	void (*done)(void *userdata, int r, const abx_error *err);
	void *userdata;
	char pod[64];
} fake_arming;

typedef struct fake_runtime {
	abx__runtime base;
	fake_arming *armings, **tail;
	bool hold;           /* armings wait until this is off */
	unsigned fail_count; /* the next ones fail */
	int fail_code;
	unsigned armed, forgotten;
	char last_body[1024], last_pod[64];
	unsigned last_port;
} fake_runtime;

void fake_runtime_init(fake_runtime *rt);
bool fake_runtime_step(fake_runtime *rt);
void fake_runtime_detach(fake_runtime *rt);

#endif
