/*
 * metrics.h - GET /metrics: processor, memory and disk of the Pod.
 */
#ifndef ABX_ENVD_METRICS_H
#define ABX_ENVD_METRICS_H

#include "io/http-server.h"

struct abx__envd;

void abx__metrics_handle(struct abx__envd *envd, abx__http_req *req);

#endif
