/*
 * http2-fixture.c - see http2-fixture.h.
 */
#include "http2-fixture.h"

#include <signal.h>
#include <stdio.h>

#include "base/alloc.h"
#include "io/http2.h"

void h2_on_closed(abx__http_req *req, bool answered, void *userdata)
{
	struct h2_fixture *f = userdata;

	f->closed++;
	f->answered += answered;
	if (f->req == req)
		f->req = NULL;
}

void h2_start_with(struct h2_fixture *f, abx__http_server_options opts)
{
	signal(SIGPIPE, SIG_IGN);
	memset(f, 0, sizeof(*f));
	uv_loop_init(&f->loop);
	opts.loop = &f->loop;
	opts.userdata = f;
	opts.http2 = &abx__http2;
	cr_assert_eq(abx__http_server_new(&opts, &f->server, NULL), ABX_OK);
	cr_assert_eq(
		abx__http_server_listen_tcp(f->server, "127.0.0.1", 0, &f->port, NULL),
		ABX_OK);
	h2_wire_open(&f->w, &f->loop, f->port);
}

void h2_start(struct h2_fixture *f, abx__http_handler handler)
{
	h2_start_with(f, (abx__http_server_options){ .on_request = handler });
}

void h2_on_server_closed(void *userdata)
{
	((struct h2_fixture *)userdata)->server_closed = true;
}

void h2_stop(struct h2_fixture *f)
{
	int64_t end = abx__mono_ms() + 3000;

	abx__http_server_close(f->server, h2_on_server_closed, f);
	while (!f->server_closed && abx__mono_ms() < end)
		wire_turn(&f->w.wire);
	cr_assert(f->server_closed);
	h2_wire_done(&f->w);
	abx__buf_done(&f->seen);
	abx__free(f->big);
	cr_assert_eq(uv_loop_close(&f->loop), 0, "handles were left open");
}

void h2_describe(abx__http_req *req, void *userdata)
{
	struct h2_fixture *f = userdata;
	ABX_CLEANUP_BUF abx__buf text = ABX__BUF_INIT;
	const char *name, *value;

	f->calls++;
	abx__http_req_on_closed(req, h2_on_closed, f);
	abx__buf_addf(&text, "%s %s %s %s\n", abx__http_req_method(req),
		      abx__http_req_target(req), abx__http_req_path(req),
		      abx__http_req_query(req) ? abx__http_req_query(req) : "-");
	for (size_t i = 0; abx__http_req_header_at(req, i, &name, &value); i++)
		abx__buf_addf(&text, "%s: %s\n", name, value);
	abx__buf_addf(&text, "body %d length %lld upgrade %d unix %d\n",
		      abx__http_req_has_body(req),
		      (long long)abx__http_req_content_length(req),
		      abx__http_req_is_upgrade(req), abx__http_req_is_unix(req));
	cr_assert_eq(abx__http_res_header(req, "X-Reply", "yes"), ABX_OK);
	cr_assert_eq(abx__http_res_header(req, "Upgrade", "never"), ABX_OK);
	cr_assert_eq(abx__http_res_send(req, 200, "text/plain", text.data, text.len),
		     ABX_OK);
}

void h2_keep(abx__http_req *req, void *userdata)
{
	struct h2_fixture *f = userdata;

	f->calls++;
	f->req = req;
	abx__http_req_on_closed(req, h2_on_closed, f);
}

bool h2_has(const abx__buf *buf, const char *text)
{
	return strstr(abx__buf_str(buf), text) != NULL;
}

static void sum_body(abx__http_req *req, const char *data, size_t len, int r,
		     void *userdata)
{
	struct h2_fixture *f = userdata;

	if (!data) {
		f->read_ends++;
		f->read_r = r;
		if (r == ABX_OK)
			abx__http_res_send(req, 200, "text/plain", "ok", 2);
		return;
	}
	for (size_t i = 0; i < len; i++)
		f->sum += (unsigned char)data[i];
	f->body_bytes += len;
	if (f->to_write) { /* take one piece, then rest */
		abx__http_req_pause(req);
		f->to_write = 0;
	}
}

void h2_sum(abx__http_req *req, void *userdata)
{
	struct h2_fixture *f = userdata;

	f->calls++;
	f->req = req;
	abx__http_req_on_closed(req, h2_on_closed, f);
	abx__http_req_read(req, sum_body, f);
}

struct h2_answer *h2_expect(struct h2_fixture *f, const char *method, const char *body,
			    int status)
{
	struct h2_answer *a = h2_ask(&f->w, method, "/", body);

	H2_UNTIL(&f->w, a->closed);
	cr_assert_eq(a->status, status);
	return a;
}
