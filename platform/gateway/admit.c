/*
 * admit.c - what a sandbox's network configuration says of traffic to its own ports:
 * who may come in, and which Host it is told. The runtime's port is not concerned: envd
 * has an access check of its own (e2b-control-api.md section 7).
 */
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "gateway/gateway-priv.h"

static const char placeholder[] = "${PORT}";

const char *abx__gateway_bars(const abx__sandbox_rec *rec, uint16_t port,
			      const abx__http_req *req)
{
	const char *token;

	if (!rec->traffic_token || port == rec->runtime_port)
		return NULL;
	token = abx__http_req_header(req, ABX__GATEWAY_TOKEN_HEADER);
	if (!token || !*token)
		return ABX__GATEWAY_TOKEN_MISSING;
	return abx__secret_equals(rec->traffic_token, token, strlen(token))
		       ? NULL
		       : ABX__GATEWAY_TOKEN_WRONG;
}

/* The path is /files alone; envd decodes nothing else into it. */
static bool is_signed_files(const char *target)
{
	size_t len = strcspn(target, "?");
	const char *at = target + len;

	if (len != 6 || strncmp(target, "/files", 6) != 0)
		return false;
	while (*at) {
		at++;
		if (abx__str_starts(at, "signature="))
			return true;
		at += strcspn(at, "&");
	}
	return false;
}

bool abx__gateway_has_proof(const abx__sandbox_rec *rec, const abx__route *route,
			    const abx__http_req *req)
{
	if (route->port == rec->runtime_port)
		return rec->access_token && is_signed_files(route->rest);
	return rec->traffic_token && !abx__gateway_bars(rec, route->port, req);
}

/* Envd checks its token itself, but only once it runs: whoever may not use it shall not
 * wake it. A signature is envd's to check. */
const char *abx__gateway_bars_waking(const abx__sandbox_rec *rec, const abx__route *route,
				     const abx__http_req *req)
{
	const char *token;

	if (!rec->access_token || route->port != rec->runtime_port ||
	    is_signed_files(route->rest))
		return NULL;
	token = abx__http_req_header(req, "x-access-token");
	if (token && abx__secret_equals(rec->access_token, token, strlen(token)))
		return NULL;
	return ABX__GATEWAY_WAKES_NOT;
}

bool abx__gateway_speaks_tls(const abx__sandbox_rec *rec, uint16_t port)
{
	for (size_t i = 0; rec->ingress && i < rec->ingress->https_count; i++)
		if (rec->ingress->https_ports[i] == port)
			return port != rec->runtime_port;
	return false;
}

int abx__gateway_host(const abx__sandbox_rec *rec, uint16_t port, char **ret)
{
	ABX_CLEANUP_BUF abx__buf host = ABX__BUF_INIT;
	const char *mask = rec->ingress ? rec->ingress->mask_host : "";
	int r = ABX_OK;

	if (!*mask || port == rec->runtime_port)
		return ABX_OK;
	while (r == ABX_OK && *mask) {
		if (abx__str_starts(mask, placeholder)) {
			r = abx__buf_addf(&host, "%u", port);
			mask += sizeof(placeholder) - 1;
		} else {
			r = abx__buf_addc(&host, *mask++);
		}
	}
	if (r < 0)
		return r;
	*ret = abx__buf_take(&host);
	return *ret ? ABX_OK : ABX_ENOMEM;
}
