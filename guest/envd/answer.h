/*
 * answer.h - the plain HTTP answers of the daemon (contract/envd.md, section 4).
 */
#ifndef ABX_ENVD_ANSWER_H
#define ABX_ENVD_ANSWER_H

#include <json-c/json.h>

#include "io/http-server.h"

/* {"code":STATUS,"message":"..."} and a newline. */
void abx__answer_error(abx__http_req *req, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void abx__answer_text(abx__http_req *req, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Prints `value`, which may be NULL for "out of memory", and gives it back. */
void abx__answer_json_take(abx__http_req *req, int status, const char *content_type,
			   json_object *value);

#endif
