/*
 * auth.h - who is asking: the access token and the Basic user (contract/envd.md, section
 * 2).
 */
#ifndef ABX_ENVD_AUTH_H
#define ABX_ENVD_AUTH_H

#include <stdbool.h>

#include "envd/signing.h"
#include "io/http-server.h"

struct abx__envd;

/* The user name of an Authorization header: 1 with a new string, 0 when it is not a
   readable Basic one (it then counts as absent), ABX_ENOMEM. */
int abx__auth_basic_user(const char *header, char **ret);
/* Whether the request carries the token, or needs none. Answers 401 when not. */
bool abx__auth_check_token(const struct abx__envd *envd, abx__http_req *req);
/* The file endpoints' rule: the token's header, or a signature for `operation`. Answers
   401 when there is neither. */
bool abx__auth_check_file_token(const struct abx__envd *envd, abx__http_req *req,
				const abx__signing *signing, const char *operation);

#endif
