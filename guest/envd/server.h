/*
 * server.h - the route of a request through the daemon: CORS, token, user, endpoint.
 */
#ifndef ABX_ENVD_SERVER_H
#define ABX_ENVD_SERVER_H

#include "io/http-server.h"

/* The HTTP server's handler; userdata is the abx__envd. */
void abx__server_on_request(abx__http_req *req, void *userdata);

#endif
