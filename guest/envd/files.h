/*
 * files.h - GET and POST /files and POST /files/compose: files over HTTP, streamed at
 * constant memory (contract/envd.md, 4.1 to 4.3).
 */
#ifndef ABX_ENVD_FILES_H
#define ABX_ENVD_FILES_H

#include <stdbool.h>

#include "envd/signing.h"
#include "envd/users.h"
#include "io/http-server.h"

struct abx__envd;

void abx__files_handle_get(struct abx__envd *envd, abx__http_req *req);
void abx__files_handle_post(struct abx__envd *envd, abx__http_req *req);
void abx__files_handle_compose(struct abx__envd *envd, abx__http_req *req);

/* Reads the query and checks token or signature; answers 400 or 401 when that fails. Give
 *ret back in either case. */
bool abx__files_authorize(struct abx__envd *envd, abx__http_req *req,
			  const char *operation, abx__signing *ret);
/* The name a request gives, or the default; borrowed. Answers 400 when there is none. */
const char *abx__files_username(struct abx__envd *envd, abx__http_req *req,
				const char *given);
/* Answers 401 when there is no such account. */
bool abx__files_find_user(struct abx__envd *envd, abx__http_req *req, const char *name,
			  abx__user *ret);

#endif
