/*
 * passage-head.c - the head a request has for the sandbox, and an answer for the client.
 *
 * The connection's own headers are dropped both ways (RFC 9110 section 7.6.1), what is
 * the platform's before it reaches the sandbox; an upgrade is put together anew. Trailers
 * pass.
 */
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "gateway/passage-priv.h"

static bool is_hop_by_hop(const char *name)
{
	static const char *const names[] = {
		"connection", "keep-alive", "proxy-connection", "te", "transfer-encoding",
		"upgrade",    NULL
	};

	for (const char *const *n = names; *n; n++) {
		if (strcasecmp(*n, name) == 0)
			return true;
	}
	return false;
}

static bool is_ours(const passage *p, const char *name)
{
	if (strcasecmp(name, "content-length") == 0 || strcasecmp(name, "expect") == 0)
		return true;
	if (p->host &&
	    (strcasecmp(name, "host") == 0 || strcasecmp(name, "x-forwarded-host") == 0))
		return true;
	/* Keys and tokens are the platform's: a sandbox must not see them. */
	return strcasecmp(name, "agentbox-api-key") == 0 ||
	       strcasecmp(name, ABX__GATEWAY_TOKEN_HEADER) == 0 ||
	       (p->gateway->opts.check_key && strcasecmp(name, "x-api-key") == 0);
}

static int put_framing(const passage *p, abx__buf *head)
{
	int64_t length = abx__http_req_content_length(p->req);

	if (length < 0)
		return abx__buf_adds(head, "Transfer-Encoding: chunked\r\n");
	if (length > 0 || abx__http_req_header(p->req, "content-length"))
		return abx__buf_addf(head, "Content-Length: %lld\r\n", (long long)length);
	return ABX_OK;
}

static int put_connection(const passage *p, abx__buf *head)
{
	if (p->upgrade)
		return abx__buf_addf(head, "Connection: Upgrade\r\nUpgrade: %s\r\n",
				     abx__http_req_header(p->req, "upgrade"));
	return p->keeps ? ABX_OK : abx__buf_adds(head, "Connection: close\r\n");
}

static int put_fields(const passage *p, abx__buf *head)
{
	const char *name, *value;
	bool lists = abx__http_req_header(p->req, "connection") != NULL;
	int r = ABX_OK;

	for (size_t i = 0;
	     r == ABX_OK && abx__http_req_header_at(p->req, i, &name, &value); i++) {
		if (is_hop_by_hop(name) || is_ours(p, name) ||
		    (lists && abx__http_req_header_has(p->req, "connection", name)))
			continue;
		r = abx__buf_adds(head, name);
		if (r == ABX_OK)
			r = abx__buf_add(head, ": ", 2);
		if (r == ABX_OK)
			r = abx__buf_adds(head, value);
		if (r == ABX_OK)
			r = abx__buf_add(head, "\r\n", 2);
	}
	return r;
}

static int put_host(const passage *p, abx__buf *head)
{
	const char *given = abx__http_req_header(p->req, "host");

	if (p->host && given)
		return abx__buf_addf(head, "Host: %s\r\nX-Forwarded-Host: %s\r\n",
				     p->host, given);
	if (p->host)
		return abx__buf_addf(head, "Host: %s\r\n", p->host);
	return given ? ABX_OK : abx__buf_addf(head, "Host: localhost:%u\r\n", p->port);
}

int abx__passage_request_head(const passage *p, abx__buf *head)
{
	int r;

	r = abx__buf_reserve(head, 1024);
	if (r == ABX_OK)
		r = abx__buf_addf(head, "%s %s HTTP/1.1\r\n",
				  abx__http_req_method(p->req), p->target);
	if (r == ABX_OK)
		r = put_host(p, head);
	if (r == ABX_OK)
		r = put_fields(p, head);
	if (r == ABX_OK)
		r = put_framing(p, head);
	if (r == ABX_OK)
		r = put_connection(p, head);
	return r == ABX_OK ? abx__buf_add(head, "\r\n", 2) : r;
}

int abx__passage_answer_fields(passage *p, const abx__http_head *head)
{
	bool lists = abx__http_head_get(head, "connection") != NULL;
	int r = ABX_OK;

	for (size_t i = 0; r == ABX_OK && i < head->count; i++) {
		const char *name = head->fields[i].name;

		if (is_hop_by_hop(name) || strcasecmp(name, "content-length") == 0 ||
		    (lists && abx__http_head_has_token(head, "connection", name)))
			continue;
		r = abx__http_res_header(p->req, name, head->fields[i].value);
	}
	return r;
}

int abx__passage_switching_head(const passage *p, const abx__http_head *head,
				abx__buf *text)
{
	const char *protocol = abx__http_head_get(head, "upgrade");
	int r = abx__buf_addf(text,
			      "HTTP/1.1 101 Switching Protocols\r\nConnection: "
			      "Upgrade\r\nUpgrade: %s\r\n",
			      protocol ? protocol
				       : abx__http_req_header(p->req, "upgrade"));

	for (size_t i = 0; r == ABX_OK && i < head->count; i++) {
		const char *name = head->fields[i].name;

		if (!is_hop_by_hop(name) && strcasecmp(name, "content-length") != 0)
			r = abx__buf_addf(text, "%s: %s\r\n", name,
					  head->fields[i].value);
	}
	return r == ABX_OK ? abx__buf_adds(text, "\r\n") : r;
}
