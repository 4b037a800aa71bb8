/*
 * stub-connect.h - an engine that can do one thing: connect to a port on loopback, as if
 * that were inside the Pod.
 */
#ifndef TESTS_LIB_STUB_CONNECT_H
#define TESTS_LIB_STUB_CONNECT_H

#include <uv.h>

#include "control/port-engine.h"

struct stub_connect {
	abx__engine engine; /* first */
	uv_loop_t *loop;
	uint16_t to;    /* where every port leads; 0: to the port asked for */
	int fail_first; /* so many connects find nobody listening */
	int fail_code;  /* 0; or what every connect fails with */
	bool silent;    /* a connect never completes until stub_connect_flush() */
	int connects;
	int pending;
	struct stub_connecting *kept;
};

void stub_connect_init(struct stub_connect *stub, uv_loop_t *loop);
/* Completes what a silent stub was asked, as failed. */
void stub_connect_flush(struct stub_connect *stub);

#endif
