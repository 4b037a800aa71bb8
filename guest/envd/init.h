/*
 * init.h - POST /init: the platform arms the sandbox (contract/envd.md, section 5).
 */
#ifndef ABX_ENVD_INIT_H
#define ABX_ENVD_INIT_H

#include "io/http-server.h"

struct abx__envd;

void abx__init_handle(struct abx__envd *envd, abx__http_req *req);

#endif
