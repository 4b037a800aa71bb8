/*
 * envd-expect.h - one request to a real agentbox-envd, its answer compared to the byte.
 */
#ifndef ABX_TESTS_ENVD_EXPECT_H
#define ABX_TESTS_ENVD_EXPECT_H

#include "envd-child.h"

#define OCTETS "Content-Type: application/octet-stream\r\n"
#define FORM "Content-Type: multipart/form-data; boundary=XX\r\n"
#define JSON "Content-Type: application/json\r\n"

/* `s` with the scratch directory for each '@'; the caller frees it. */
char *envd_expand(const envd_child *child, const char *s);
/* A request; '@' stands for the scratch directory in `target` and in `body`. The answer
   is the caller's. */
envd_answer envd_ask(const envd_child *child, const char *method, const char *target,
		     const char *headers, const char *body);
/* The same, and the answer must have this status and exactly this body ('@' as above);
   `exact` NULL: any. */
void envd_expect(const envd_child *child, const char *method, const char *target,
		 const char *headers, const char *body, int status, const char *exact);
/* {"code":STATUS,"message":"MESSAGE"} and a newline, as every error of the plain
   endpoints is, with its two headers. */
void envd_expect_error(const envd_child *child, const char *method, const char *target,
		       const char *headers, const char *body, int status,
		       const char *message);

#endif
