/*
 * podd-tools.h - programs and files around a podd under test: tools of the tree and of
 * the system, small images, free ports.
 */
#ifndef TESTS_ENGINE_PODD_TOOLS_H
#define TESTS_ENGINE_PODD_TOOLS_H

#include <stdint.h>

#include "podd-peer.h"

/* Runs a program of the tree; its output is not wanted. Fails the test when it fails. */
void run(const char *program, const char *const *args);
/* A program of the system, to its end: its status. */
int run_tool(const char *const *argv);
void write_text(const char *path, const char *text);
/* The image oci:busybox. */
void build_busybox(podd_peer *p);
/* A listener on a free port of every address. */
int listen_any(uint16_t *ret_port);

#endif
