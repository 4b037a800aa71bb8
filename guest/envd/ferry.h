/*
 * ferry.h - the body of a POST /files on its way from the connection to the worker that
 * writes it.
 */
#ifndef ABX_ENVD_FERRY_H
#define ABX_ENVD_FERRY_H

#include "envd/upload.h"
#include "io/http-server.h"

/* Reads the whole body into the upload, and answers. Takes the upload over, which is
 * abx__calloc()'s. */
void abx__ferry_start(abx__http_req *req, abx__upload *upload);

#endif
