/*
 * files.h - GET and POST /files: whole files over HTTP, streamed at constant memory
 * (contract/envd.md, 4.1 and 4.2).
 */
#ifndef ABX_ENVD_FILES_H
#define ABX_ENVD_FILES_H

#include <stdbool.h>

#include "envd/users.h"
#include "io/http-server.h"

struct abx__envd;

void abx__files_handle_get(struct abx__envd *envd, abx__http_req *req);
void abx__files_handle_post(struct abx__envd *envd, abx__http_req *req);

/* The user a request names, or the default one. Answers 400 or 401 when there is none. */
bool abx__files_find_user(struct abx__envd *envd, abx__http_req *req, abx__user *ret);
/* The `path` parameter, decoded; NULL in *ret when there is none. Answers 400 when it is
 * broken. */
bool abx__files_read_path(abx__http_req *req, char **ret);

#endif
