/*
 * pages.c - the data plane's refusals, as JSON for programs and as a page for people.
 *
 * Who gets which (e2b-control-api.md section 7): a page when the User-Agent looks like a
 * browser's, unless the request was made by a script (Sec-Fetch-Mode, X-Requested-With)
 * or asks for JSON. A page begins with "<html" and ends with "</html>".
 */
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "gateway/gateway-priv.h"
#include "io/json.h"

#define JSON_TYPE "application/json; charset=utf-8"
#define HTML_TYPE "text/html; charset=utf-8"

/* ---- who asks ---- */

static bool contains(const char *text, const char *word)
{
	return text && strcasestr(text, word);
}

/* 1: by a script of a page, 0: by going to the address, -1: the browser does not say. */
static int script_made(const abx__http_req *req)
{
	static const char *const modes[] = { "cors", "no-cors", "same-origin",
					     "websocket" };
	const char *mode = abx__http_req_header(req, "sec-fetch-mode");

	for (size_t i = 0; mode && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcasecmp(mode, modes[i]) == 0)
			return 1;
	return mode && strcasecmp(mode, "navigate") == 0 ? 0 : -1;
}

static bool is_person(const abx__http_req *req)
{
	static const char *const browsers[] = { "mozilla", "chrome", "safari", "firefox",
						"edge",    "opera",  "msie" };
	const char *accept = abx__http_req_header(req, "accept");
	const char *agent = abx__http_req_header(req, "user-agent");
	const char *with = abx__http_req_header(req, "x-requested-with");
	int script = script_made(req);

	if (contains(accept, "application/json") && !contains(accept, "text/html"))
		return false;
	if (script == 1 || (script < 0 && with && *with))
		return false;
	for (size_t i = 0; i < sizeof(browsers) / sizeof(browsers[0]); i++)
		if (contains(agent, browsers[i]))
			return true;
	return false;
}

/* ---- pages ---- */

/* What a page says instead of the program's message; others get their message. */
static const struct page {
	const char *message, *title, *text;
} pages[] = {
	{ ABX__GATEWAY_NOT_FOUND, "Sandbox Not Found",
	  "It has ended, or there never was one of this name." },
	{ ABX__GATEWAY_NOT_RUNNING, "Sandbox Not Running",
	  "It is starting or on its way out." },
	{ ABX__GATEWAY_PORT_CLOSED, "Port Closed",
	  "The sandbox is running, but there is no service running on port" },
	{ ABX__GATEWAY_TOKEN_MISSING, "Missing Traffic Access Token",
	  "Its ports are reached with the header " ABX__GATEWAY_TOKEN_HEADER "." },
	{ ABX__GATEWAY_TOKEN_WRONG, "Invalid Traffic Access Token",
	  "The value of the header " ABX__GATEWAY_TOKEN_HEADER " is another sandbox's or "
	  "none." },
};

static int put_escaped(abx__buf *out, const char *text)
{
	int r = ABX_OK;

	for (; r == ABX_OK && *text; text++) {
		switch (*text) {
		case '<':
			r = abx__buf_adds(out, "&lt;");
			break;
		case '>':
			r = abx__buf_adds(out, "&gt;");
			break;
		case '&':
			r = abx__buf_adds(out, "&amp;");
			break;
		case '"':
			r = abx__buf_adds(out, "&quot;");
			break;
		default:
			r = abx__buf_addc(out, *text);
		}
	}
	return r;
}

static int put_page(abx__buf *out, const struct page *page, int status, const char *id,
		    uint16_t port)
{
	int r = abx__buf_addf(
		out,
		"<html lang=\"en\"><head><meta charset=\"utf-8\">"
		"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
		"<title>%s</title><style>body{font:1rem/1.5 system-ui,sans-serif;"
		"max-width:36rem;margin:15vh auto;padding:0 1rem;color:#222;"
		"background:#fafafa}code{font-size:1.1em}small{color:#777}"
		"@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}}"
		"</style></head><body><h1>%s</h1><p>Sandbox <code>",
		page->title, page->title);

	if (r == ABX_OK)
		r = put_escaped(out, id);
	if (r == ABX_OK)
		r = abx__buf_adds(out, "</code>: ");
	if (r == ABX_OK)
		r = put_escaped(out, page->text);
	if (r == ABX_OK && port)
		r = abx__buf_addf(out, " <code>%u</code>", port);
	return r == ABX_OK
		       ? abx__buf_addf(out, "</p><small>HTTP %d</small></body></html>",
				       status)
		       : r;
}

static void send_page(abx__http_req *req, int status, const char *id, uint16_t port,
		      const char *message)
{
	ABX_CLEANUP_BUF abx__buf out = ABX__BUF_INIT;
	struct page page = { message, "Sandbox Not Reachable", message };
	int r;

	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
		if (strcmp(pages[i].message, message) == 0)
			page = pages[i];
	r = put_page(&out, &page, status, id, port);
	if (r == ABX_OK)
		r = abx__http_res_send(req, status, HTML_TYPE, abx__buf_str(&out),
				       out.len);
	if (r < 0)
		abx__http_res_abort(req);
}

/* ---- JSON ---- */

static int put_body(json_object *body, enum abx__route_form form, int status,
		    const char *id, uint16_t port, const char *message)
{
	int r = ABX_OK;

	/* Agent-Sandbox's own forms carry its "error" too. */
	if (form == ABX__ROUTE_PATH || form == ABX__ROUTE_X_HEADERS)
		r = abx__json_set_str(body, "error", message);
	if (r == ABX_OK)
		r = abx__json_set_str(body, "sandboxId", id);
	if (r == ABX_OK)
		r = abx__json_set_str(body, "message", message);
	if (r == ABX_OK && port)
		r = abx__json_set_i64(body, "port", port);
	return r == ABX_OK ? abx__json_set_i64(body, "code", status) : r;
}

static void send_json(abx__http_req *req, int status, json_object *body, int r)
{
	ABX_CLEANUP_BUF abx__buf text = ABX__BUF_INIT;

	if (r == ABX_OK)
		r = abx__json_print(body, &text);
	if (r == ABX_OK)
		r = abx__http_res_send(req, status, JSON_TYPE, abx__buf_str(&text),
				       text.len);
	if (r < 0)
		abx__http_res_abort(req);
}

void abx__gateway_refuse(abx__http_req *req, enum abx__route_form form, int status,
			 const char *id, uint16_t port, const char *message)
{
	ABX_CLEANUP_JSON json_object *body = NULL;

	if (is_person(req)) {
		send_page(req, status, id, port, message);
		return;
	}
	body = json_object_new_object();
	send_json(req, status, body,
		  body ? put_body(body, form, status, id, port, message) : ABX_ENOMEM);
}

void abx__gateway_refuse_route(abx__http_req *req, const abx__route *route)
{
	ABX_CLEANUP_JSON json_object *body = NULL;

	if (route->form == ABX__ROUTE_E2B_HEADERS || route->form == ABX__ROUTE_HOST) {
		abx__http_res_send(req, 400, "text/plain; charset=utf-8", route->wrong,
				   strlen(route->wrong));
		return;
	}
	body = json_object_new_object();
	send_json(req, 400, body,
		  body ? abx__json_set_str(body, "error", route->wrong) : ABX_ENOMEM);
}

void abx__gateway_refuse_control(abx__http_req *req, const char *target)
{
	ABX_CLEANUP_JSON json_object *body = json_object_new_object();
	ABX_CLEANUP(abx__freep) char *path = abx__strndup(target, strcspn(target, "?"));
	int r = body && path ? ABX_OK : ABX_ENOMEM;

	if (r == ABX_OK)
		r = abx__json_set_str(body, "message", ABX__GATEWAY_RESERVED);
	if (r == ABX_OK)
		r = abx__json_set_str(body, "path", path);
	if (r == ABX_OK)
		r = abx__json_set_i64(body, "code", 404);
	send_json(req, 404, body, r);
}
