/*
 * route.c - see route.h.
 */
#include "gateway/route.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include <agentbox/error.h>

static const char data_prefix[] = "/agent-sandbox/api/data";
static const char path_prefix[] = "/sandboxes/";

static bool is_digits(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
	}
	return len > 0;
}

static bool is_id(const char *s, size_t len)
{
	if (len == 0 || len > ABX__ROUTE_ID_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = s[i];
		bool alnum = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
			     (c >= 'A' && c <= 'Z');

		if (!alnum && (i == 0 || (c != '-' && c != '.')))
			return false;
	}
	return true;
}

static void set_id(abx__route *route, const char *s, size_t len, const char *wrong)
{
	if (!is_id(s, len)) {
		route->wrong = wrong;
		return;
	}
	memcpy(route->id, s, len);
	route->id[len] = '\0';
}

static void set_port(abx__route *route, const char *s, size_t len, const char *wrong)
{
	char text[6];
	uint64_t port;

	if (len == 0 || len >= sizeof(text)) {
		route->wrong = wrong;
		return;
	}
	memcpy(text, s, len);
	text[len] = '\0';
	if (abx__parse_u64(text, 1, UINT16_MAX, &port) < 0)
		route->wrong = wrong;
	else
		route->port = (uint16_t)port;
}

/* Behind the data plane's prefix, or the target itself. */
static const char *skip_data_prefix(const char *target)
{
	size_t len = strlen(data_prefix);

	if (strncmp(target, data_prefix, len) != 0 ||
	    (target[len] && !strchr("/?", target[len])))
		return target;
	return target + len;
}

static void set_rest(abx__route *route, const char *rest)
{
	route->rest = rest;
	route->add_slash = *rest != '/' && *rest != '*';
}

static bool parse_path(const abx__route_input *in, abx__route *route)
{
	const char *target = skip_data_prefix(in->target), *id, *port;
	size_t id_len, port_len;

	if (!abx__str_starts(target, path_prefix))
		return false;
	id = target + strlen(path_prefix);
	id_len = strcspn(id, "/?");
	if (id[id_len] != '/')
		return false;
	port = id + id_len + 1;
	port_len = strcspn(port, "/?");
	if (!is_digits(port, port_len))
		return false;
	route->form = ABX__ROUTE_PATH;
	set_id(route, id, id_len, "missing or invalid sandbox id");
	set_port(route, port, port_len, "missing or invalid sandbox port");
	set_rest(route, port + port_len);
	return true;
}

static void parse_headers(const char *id, const char *port, abx__route *route)
{
	bool e2b = route->form == ABX__ROUTE_E2B_HEADERS;

	if (!id || !port) {
		route->wrong = e2b ? "missing header" : "missing sandbox id or port";
		return;
	}
	set_id(route, id, strlen(id), e2b ? "Invalid sandbox ID" : "invalid sandbox id");
	set_port(route, port, strlen(port),
		 e2b ? "Invalid sandbox port" : "invalid sandbox port");
}

/* PORT-ID.anything or PORT-ID-anything.anything: a left-most label of digits, a dash and
 * an id, and at least one dot. */
static bool parse_host(const char *host, abx__route *route)
{
	size_t label, digits;

	label = strcspn(host, ".");
	digits = strspn(host, "0123456789");
	if (host[label] != '.' || digits == 0 || host[digits] != '-')
		return false;
	route->form = ABX__ROUTE_HOST;
	set_port(route, host, digits, "Invalid sandbox port");
	set_id(route, host + digits + 1, label - digits - 1, "Invalid sandbox ID");
	for (char *c = route->id; *c; c++) { /* host names know no case */
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	}
	return true;
}

/* The path names a sandbox; do the headers name another one? */
static bool headers_disagree(const abx__route_input *in, const abx__route *route)
{
	const char *id = in->e2b_id ? in->e2b_id : in->x_id;

	return id && strcmp(id, route->id) != 0;
}

/* Older E2B SDKs (2.24) name the sandbox in headers of the API's own connect call too. A
   path below the API's prefix, or that call without one, is never a sandbox's. */
static bool is_api(const abx__route_input *in)
{
	static const char *const prefixes[] = { "/agent-sandbox/api/e2b", "/e2b" };
	const char *id = in->e2b_id ? in->e2b_id : in->x_id;
	const char *target = in->target;
	size_t len;

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		len = strlen(prefixes[i]);
		if (strncmp(target, prefixes[i], len) == 0 && strchr("/?", target[len]))
			return true;
	}
	if (abx__str_starts(target, "/v2/"))
		target += strlen("/v2");
	if (!id || !abx__str_starts(target, path_prefix))
		return false;
	target += strlen(path_prefix);
	len = strlen(id);
	return strncmp(target, id, len) == 0 && strcmp(target + len, "/connect") == 0;
}

/* The length of the one label before ".DOMAIN" or ".DOMAIN:PORT"; 0: it is none of ours.
 */
static size_t own_label(const abx__route_input *in)
{
	size_t label, len = in->domain ? strlen(in->domain) : 0;
	const char *rest;

	if (!in->host || len == 0)
		return 0;
	label = strcspn(in->host, ".");
	rest = in->host + label;
	if (*rest != '.' || strncasecmp(rest + 1, in->domain, len) != 0 ||
	    (rest[1 + len] && rest[1 + len] != ':'))
		return 0;
	return label;
}

/* True: the host has decided. */
static bool parse_own_host(const abx__route_input *in, abx__route *ret)
{
	size_t label = own_label(in);

	if (label == 3 && strncasecmp(in->host, "api", 3) == 0)
		return true;
	if (label == 0 || !parse_host(in->host, ret))
		return false;
	set_rest(ret, in->target);
	return true;
}

void abx__route_parse(const abx__route_input *in, abx__route *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (parse_own_host(in, ret))
		return;
	if (is_api(in))
		return;
	if (parse_path(in, ret) && !headers_disagree(in, ret))
		return;
	memset(ret, 0, sizeof(*ret));
	set_rest(ret, skip_data_prefix(in->target));
	if (in->e2b_id || in->e2b_port) {
		ret->form = ABX__ROUTE_E2B_HEADERS;
		parse_headers(in->e2b_id, in->e2b_port, ret);
	} else if (in->x_id || in->x_port) {
		ret->form = ABX__ROUTE_X_HEADERS;
		parse_headers(in->x_id, in->x_port, ret);
	} else if (!in->host || !parse_host(in->host, ret)) {
		if (ret->rest != in->target) {
			ret->form = ABX__ROUTE_PATH;
			ret->wrong = "missing sandbox id or port";
		}
		return;
	}
	/* The prefix belongs to a path form; a host of its own has none. */
	if (ret->form == ABX__ROUTE_HOST)
		set_rest(ret, in->target);
}

/* path.Clean: one slash between segments, no "." and no "..". In place. */
static void clean(char *path)
{
	char *out = path;
	const char *in = path;

	while (*in) {
		size_t len;

		in += strspn(in, "/");
		len = strcspn(in, "/");
		if (len == 2 && in[0] == '.' && in[1] == '.') {
			while (out > path && *--out != '/')
				;
		} else if (len > 0 && !(len == 1 && in[0] == '.')) {
			*out++ = '/';
			memmove(out, in, len);
			out += len;
		}
		in += len;
	}
	*out = '\0';
}

int abx__route_is_control(const char *target)
{
	static const char *const routes[] = { "/init",     "/freeze", "/unfreeze",
					      "/fsfreeze", "/fsthaw", "/collapse",
					      "/upgrade" };
	ABX_CLEANUP(abx__freep) char *path = NULL;
	ABX_CLEANUP(abx__freep) char *padded = NULL;
	int r;

	r = abx__url_decode(target, strcspn(target, "?"), false, &path);
	if (r < 0)
		return r;
	padded = abx__strf("/%s", path); /* room for the first slash */
	if (!padded)
		return ABX_ENOMEM;
	clean(padded);
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (strcmp(padded, routes[i]) == 0)
			return 1;
	}
	return 0;
}
