/*
 * http-client.c - the client of record: curl does HTTP, this file starts its calls and
 * translates their answers.
 *
 * curl must not be called back into from its own callbacks, so cancel and resume only
 * mark the call and put it on the `marked` list; an idle handle serves that list from the
 * loop (http-client-loop.c).
 */
#include "io/http-client.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "io/http-client-priv.h"

#define MAX_HEAD_BYTES (256u << 10)
#define DEFAULT_CONNECT_MS 10000
#define DEFAULT_MAX_IDLE 256
#define KEEPALIVE_S 30L
#define BULK_BUFFER (512L << 10)
#define SMALL_BUFFER (16L << 10)

/* ---- curl's callbacks ---- */

static size_t write_cb(char *data, size_t size, size_t count, void *userdata)
{
	abx__http_call *call = userdata;
	size_t len = size * count;
	int r = ABX_OK;

	if (call->end_code < 0)
		return CURL_WRITEFUNC_ERROR;
	if (call->rx_paused) {
		call->rx_held = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	if (call->on_data && len)
		r = call->on_data(call->userdata, data, len);
	if (r < 0 && call->end_code >= 0)
		call->end_code = r;
	if (call->end_code < 0)
		return CURL_WRITEFUNC_ERROR;
	/* Resumed from inside the sink: the mark is there already and undoes this. */
	if (r == ABX_PAUSE && !call->resume_wanted) {
		call->rx_paused = true;
		abx__http_call_mark(call);
	}
	return len;
}

static size_t read_cb(char *buf, size_t size, size_t count, void *userdata)
{
	abx__http_call *call = userdata;
	size_t len = 0;
	int r;

	if (call->end_code < 0)
		return CURL_READFUNC_ABORT;
	r = call->read(call->userdata, buf, size * count, &len);
	if (r == ABX_PAUSE) {
		call->tx_paused = true;
		return CURL_READFUNC_PAUSE;
	}
	if (r < 0 || len > size * count) {
		if (call->end_code >= 0)
			call->end_code = r < 0 ? r : ABX_EINVAL;
		return CURL_READFUNC_ABORT;
	}
	return len;
}

/* Ends of heads: the last one counts, those of 1xx answers do not. */
static int head_ended(abx__http_call *call)
{
	long status = 0;
	int r;

	curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status < 200 || call->head_given)
		return ABX_OK;
	call->status = (int)status;
	call->head_given = true;
	if (!call->on_head)
		return ABX_OK;
	r = call->on_head(call->userdata, call->status);
	return r < 0 ? r : ABX_OK;
}

static size_t header_cb(char *data, size_t size, size_t count, void *userdata)
{
	abx__http_call *call = userdata;
	size_t len = size * count;
	int r = ABX_OK;

	if (call->end_code < 0)
		return 0;
	call->head_bytes += len;
	if (call->head_bytes > MAX_HEAD_BYTES)
		r = ABX_EPROTO;
	else if (len <= 2 && (data[0] == '\r' || data[0] == '\n'))
		r = head_ended(call);
	if (r < 0 && call->end_code >= 0)
		call->end_code = r;
	return call->end_code < 0 ? 0 : len;
}

/* ---- the end of a call ---- */

static int translate(abx__http_call *call, CURLcode code, abx_error **reterr)
{
	const char *why = call->errbuf[0] ? call->errbuf : curl_easy_strerror(code);
	long errnum = 0;

	if (call->end_code < 0)
		return abx__error_set(
			reterr, call->end_code, "%s: %s", call->peer,
			call->end_code == ABX_ECANCELED ? "cancelled"
			: call->end_code == ABX_ETIMEDOUT
				? "no answer in time"
				: (call->head_bytes > MAX_HEAD_BYTES
					   ? "the answer's head is over 256 KiB"
					   : "ended by its reader"));
	curl_easy_getinfo(call->easy, CURLINFO_OS_ERRNO, &errnum);
	switch (code) {
	case CURLE_OK:
		return ABX_OK;
	case CURLE_OUT_OF_MEMORY:
		return abx__error_nomem(reterr);
	case CURLE_OPERATION_TIMEDOUT:
		return abx__error_set(reterr, ABX_ETIMEDOUT, "%s: no answer in time: %s",
				      call->peer, why);
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		abx__error_set(reterr, ABX_EUNAVAILABLE, "%s: cannot connect: %s",
			       call->peer, errnum ? strerrordesc_np((int)errnum) : why);
		abx__error_hint(reterr,
				"check the address and that the service runs there");
		return ABX_EUNAVAILABLE;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CACERT_BADFILE:
		return abx__error_set(reterr, ABX_EUNAVAILABLE,
				      "%s: no TLS connection: %s", call->peer, why);
	case CURLE_GOT_NOTHING:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_SEND_FAIL_REWIND:
	case CURLE_PARTIAL_FILE:
		return abx__error_set(reterr, ABX_EUNAVAILABLE,
				      "%s: the connection broke: %s", call->peer, why);
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_HTTP2:
		return abx__error_set(reterr, ABX_EPROTO, "%s: not an HTTP answer: %s",
				      call->peer, why);
	case CURLE_URL_MALFORMAT:
		return abx__error_set(reterr, ABX_EINVAL, "%s: not a URL: %s", call->peer,
				      why);
	default:
		return abx__error_set(reterr, ABX_EIO, "%s: %s", call->peer, why);
	}
}

static void give_easy(abx__http_client *client, CURL *easy)
{
	if (!easy)
		return;
	if (client->freed || client->spare_count == MAX_SPARE_EASY) {
		curl_easy_cleanup(easy);
		return;
	}
	curl_easy_reset(easy);
	client->spare[client->spare_count++] = easy;
}

static CURL *take_easy(abx__http_client *client)
{
	if (client->spare_count)
		return client->spare[--client->spare_count];
	return curl_easy_init();
}

static void free_call(abx__http_call *call)
{
	give_easy(call->client, call->easy);
	curl_slist_free_all(call->headers);
	abx__free(call->peer);
	abx__free(call);
}

void abx__http_call_finish(abx__http_call *call, CURLcode code)
{
	abx__http_client *client = call->client;
	abx_error *err = NULL;
	int r;

	abx__http_call_unmark(call);
	r = translate(call, code, &err);
	/* The answer's headers stay readable for on_done: curl keeps them until the easy
	 * handle is reset. */
	curl_multi_remove_handle(client->multi, call->easy);
	abx__http_call_unwatch(call);
	if (call->prev)
		call->prev->next = call->next;
	else
		client->calls = call->next;
	if (call->next)
		call->next->prev = call->prev;
	abx__http_client_guard(client);
	call->on_done(call->userdata, r, err);
	abx_error_free(err);
	free_call(call);
}

/* ---- starting one ---- */

static bool is_loopback(const char *url)
{
	static const char *const hosts[] = { "://127.", "://localhost", "://[::1]" };
	const char *at = strstr(url, "://");

	for (size_t i = 0; at && i < sizeof(hosts) / sizeof(hosts[0]); i++)
		if (abx__str_starts(at, hosts[i]))
			return true;
	return false;
}

static int add_headers(abx__http_call *call, const abx__http_call_options *opts)
{
	static const char *const plain[] = { "Expect:", "Accept-Encoding:", NULL };
	static const char *const gzip[] = { "Expect:", NULL };
	const char *const *sets[] = { opts->takes_gzip ? gzip : plain, opts->headers };

	for (size_t set = 0; set < 2; set++) {
		for (size_t i = 0; sets[set] && sets[set][i]; i++) {
			struct curl_slist *more =
				curl_slist_append(call->headers, sets[set][i]);

			if (!more)
				return ABX_ENOMEM;
			call->headers = more;
		}
	}
	return ABX_OK;
}

#define SET(option, value)                                                     \
	do {                                                                   \
		CURLcode abx__c = curl_easy_setopt(call->easy, option, value); \
		if (abx__c != CURLE_OK)                                        \
			return abx__c;                                         \
	} while (0)

static CURLcode set_body(abx__http_call *call, const abx__http_call_options *opts)
{
	if (opts->read) {
		SET(CURLOPT_UPLOAD, 1L);
		SET(CURLOPT_READFUNCTION, read_cb);
		SET(CURLOPT_READDATA, call);
		SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)opts->read_length);
		if (opts->is_bulk)
			SET(CURLOPT_UPLOAD_BUFFERSIZE, BULK_BUFFER);
	} else if (opts->body) {
		SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)opts->body_len);
		SET(CURLOPT_POSTFIELDS, opts->body);
		if (opts->is_bulk)
			SET(CURLOPT_UPLOAD_BUFFERSIZE, BULK_BUFFER);
	} else if (abx__str_eq(opts->method, "POST") ||
		   abx__str_eq(opts->method, "PUT")) {
		SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)0);
		SET(CURLOPT_POSTFIELDS, "");
	} else {
		SET(CURLOPT_HTTPGET, 1L);
	}
	SET(CURLOPT_CUSTOMREQUEST, opts->method);
	return CURLE_OK;
}

static CURLcode set_where(abx__http_call *call, const abx__http_call_options *opts)
{
	SET(CURLOPT_URL, opts->url);
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	if (call->client->ca_file)
		SET(CURLOPT_CAINFO, call->client->ca_file);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	if (opts->unix_path)
		SET(CURLOPT_UNIX_SOCKET_PATH, opts->unix_path);
	/* A proxy from the environment cannot reach this machine's own loopback. */
	if (opts->unix_path || is_loopback(opts->url))
		SET(CURLOPT_PROXY, "");
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)call->client->connect_timeout_ms);
	SET(CURLOPT_TIMEOUT_MS, (long)opts->timeout_ms);
	if (opts->idle_timeout_s) {
		SET(CURLOPT_LOW_SPEED_LIMIT, 1L);
		SET(CURLOPT_LOW_SPEED_TIME, (long)opts->idle_timeout_s);
	}
	return CURLE_OK;
}

static CURLcode set_easy(abx__http_call *call, const abx__http_call_options *opts)
{
	CURLcode code;

	SET(CURLOPT_PRIVATE, call);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_ERRORBUFFER, call->errbuf);
	SET(CURLOPT_TCP_NODELAY, 1L);
	/* A host that has vanished sends nothing, not even an end. */
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	SET(CURLOPT_TCP_KEEPIDLE, KEEPALIVE_S);
	SET(CURLOPT_TCP_KEEPINTVL, KEEPALIVE_S);
	SET(CURLOPT_BUFFERSIZE, opts->is_bulk ? BULK_BUFFER : SMALL_BUFFER);
	SET(CURLOPT_HTTPHEADER, call->headers);
	SET(CURLOPT_WRITEFUNCTION, write_cb);
	SET(CURLOPT_WRITEDATA, call);
	SET(CURLOPT_HEADERFUNCTION, header_cb);
	SET(CURLOPT_HEADERDATA, call);
	if (opts->takes_gzip)
		SET(CURLOPT_ACCEPT_ENCODING, "gzip");
	if (call->client->user_agent)
		SET(CURLOPT_USERAGENT, call->client->user_agent);
	code = set_where(call, opts);
	return code == CURLE_OK ? set_body(call, opts) : code;
}

static abx__http_call *new_call(abx__http_client *client,
				const abx__http_call_options *opts)
{
	abx__http_call *call = abx__calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->client = client;
	call->read = opts->read;
	call->on_head = opts->on_head;
	call->on_data = opts->on_data;
	call->on_done = opts->on_done;
	call->userdata = opts->userdata;
	if (opts->timeout_ms)
		call->deadline = abx__mono_ms() + opts->timeout_ms;
	call->peer = abx__strdup(opts->peer ? opts->peer : opts->url);
	call->easy = take_easy(client);
	if (!call->peer || !call->easy || add_headers(call, opts) < 0) {
		free_call(call);
		return NULL;
	}
	return call;
}

int abx__http_call_start(abx__http_client *client, const abx__http_call_options *opts,
			 abx__http_call **ret, abx_error **reterr)
{
	abx__http_call *call;
	CURLcode code;
	int r;

	if (client->closing)
		return abx__error_set(reterr, ABX_ESTATE, "the client is being freed");
	call = new_call(client, opts);
	if (!call)
		return abx__error_nomem(reterr);
	code = set_easy(call, opts);
	if (code == CURLE_OK &&
	    curl_multi_add_handle(client->multi, call->easy) != CURLM_OK)
		code = CURLE_OUT_OF_MEMORY;
	if (code != CURLE_OK) {
		r = translate(call, code, reterr);
		free_call(call);
		return r;
	}
	call->next = client->calls;
	if (call->next)
		call->next->prev = call;
	client->calls = call;
	abx__http_client_guard(client);
	if (ret)
		*ret = call;
	return ABX_OK;
}

void abx__http_call_cancel(abx__http_call *call, int code)
{
	if (!call || call->end_code < 0)
		return;
	call->end_code = code;
	abx__http_call_mark(call);
}

void abx__http_call_resume(abx__http_call *call)
{
	if (!call || call->end_code < 0)
		return;
	call->resume_wanted = true;
	abx__http_call_mark(call);
}

int abx__http_call_status(const abx__http_call *call)
{
	return call->status;
}

const char *abx__http_call_header(abx__http_call *call, const char *name)
{
	struct curl_header *header = NULL;
	CURLHcode code = curl_easy_header(call->easy, name, 0, CURLH_HEADER, -1, &header);

	/* Index 0 is the first; the last one wins in the rare case of several. */
	if (code == CURLHE_OK && header->amount > 1)
		code = curl_easy_header(call->easy, name, header->amount - 1,
					CURLH_HEADER, -1, &header);
	return code == CURLHE_OK ? header->value : NULL;
}

/* ---- the client ---- */

static void free_client(abx__http_client *client)
{
	abx__free(client->user_agent);
	abx__free(client->ca_file);
	abx__free(client);
	curl_global_cleanup();
}

int abx__http_client_new(const abx__http_client_options *opts, abx__http_client **ret,
			 abx_error **reterr)
{
	abx__http_client *client;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return abx__error_set(reterr, ABX_EFAIL, "libcurl does not initialise");
	client = abx__calloc(1, sizeof(*client));
	if (!client) {
		curl_global_cleanup();
		return abx__error_nomem(reterr);
	}
	client->loop = opts->loop;
	client->connect_timeout_ms =
		opts->connect_timeout_ms ? opts->connect_timeout_ms : DEFAULT_CONNECT_MS;
	client->guard_ms = opts->guard_ms;
	client->user_agent = abx__strdup(opts->user_agent);
	client->ca_file = abx__strdup(opts->ca_file);
	if ((opts->user_agent && !client->user_agent) ||
	    (opts->ca_file && !client->ca_file) ||
	    abx__http_client_join(client, opts->max_idle ? opts->max_idle
							 : DEFAULT_MAX_IDLE) < 0) {
		free_client(client);
		return abx__error_nomem(reterr);
	}
	*ret = client;
	return ABX_OK;
}

static void on_handle_closed(uv_handle_t *handle)
{
	abx__http_client *client = handle->data;

	if (--client->open_handles == 0)
		free_client(client);
}

void abx__http_client_free(abx__http_client *client)
{
	if (!client || client->freed)
		return;
	client->closing = true;
	while (client->calls) {
		client->calls->end_code = ABX_ECANCELED;
		abx__http_call_finish(client->calls, CURLE_ABORTED_BY_CALLBACK);
	}
	client->freed = true;
	while (client->spare_count)
		curl_easy_cleanup(client->spare[--client->spare_count]);
	abx__http_client_leave(client, on_handle_closed);
}
