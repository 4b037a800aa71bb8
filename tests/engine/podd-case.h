/*
 * podd-case.h - a test with a podd of its own: `p`, opened before it and closed, all
 * clean, after it. A test file includes this once.
 */
#ifndef TESTS_ENGINE_PODD_CASE_H
#define TESTS_ENGINE_PODD_CASE_H

#include <criterion/criterion.h>

#include "podd-peer.h"

static podd_peer p;

static void fini(void)
{
	podd_peer_close(&p);
}

static void init(void)
{
	podd_peer_open(&p);
}

#define PODD_CASE(suite, name) \
	Test(suite, name, .init = init, .fini = fini, .timeout = 180)

/* A main container that does nothing, for podd_peer_create(). */
#define SLEEP "\"command\":[\"/bin/sleep\",\"1000\"]"

/* A path in podd's state folder; lives until the eighth call after this one. */
#define in_dir(...) podd_peer_path(&p, __VA_ARGS__)

#endif
