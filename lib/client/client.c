/*
 * client.c - making and freeing a client, and its loop inside a caller's.
 */
#include "client/client.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/id.h"
#include "base/str.h"
#include "client/options.h"

static bool checked(const abx_client *client)
{
	return client && !client->is_closed;
}

abx_client *abx__client_ref(abx_client *client)
{
	client->refs++;
	return client;
}

void abx__client_unref(abx_client *client)
{
	if (--client->refs)
		return;
	abx__settings_done(&client->settings);
	abx__free(client);
}

static void on_wakeup(uv_async_t *async)
{
	(void)async;
}

static void on_wait_timer(uv_timer_t *timer)
{
	(void)timer;
}

/* Nothing is left to wait for, so this does not block. */
static void close_loop(abx_client *client)
{
	abx__http_client_free(client->http);
	client->http = NULL;
	uv_close((uv_handle_t *)&client->async, NULL);
	uv_close((uv_handle_t *)&client->wait_timer, NULL);
	while (uv_loop_close(&client->loop) == UV_EBUSY)
		uv_run(&client->loop, UV_RUN_NOWAIT);
}

static int open_loop(abx_client *client, abx_error **reterr)
{
	abx__http_client_options http = {
		.loop = &client->loop,
		.connect_timeout_ms = client->settings.connect_timeout_ms,
		.user_agent = "libagentbox/" ABX_VERSION_STRING,
		.ca_file = client->settings.ca_file,
	};
	int r;

	r = uv_loop_init(&client->loop);
	if (r < 0)
		return abx__error_errno(reterr, r == UV_ENOMEM ? ABX_ENOMEM : ABX_EIO, -r,
					"make an event loop");
	r = uv_async_init(&client->loop, &client->async, on_wakeup);
	if (r < 0) {
		uv_loop_close(&client->loop);
		return abx__error_errno(reterr, ABX_EIO, -r, "make an event loop");
	}
	uv_timer_init(&client->loop, &client->wait_timer);
	r = abx__http_client_new(&http, &client->http, reterr);
	if (r < 0)
		close_loop(client);
	return r;
}

static int configure(abx_client *client, const abx_client_options *opts,
		     abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *socket = NULL;
	int r;

	r = abx__settings_load(&client->settings, opts, reterr);
	if (r < 0 || !client->settings.state_dir)
		return r;
	r = abx__local_find(client->settings.state_dir,
			    !(opts->flags & ABX_CLIENT_NO_START), &client->log, &socket,
			    reterr);
	if (r < 0)
		return r;
	return abx__settings_use_socket(&client->settings, socket) < 0
		       ? abx__error_nomem(reterr)
		       : ABX_OK;
}

int abx_client_new(const abx_client_options *user_opts, abx_client **ret,
		   abx_error **reterr)
{
	abx_client_options opts;
	abx_client *client;
	int r;

	if (!ret)
		return abx__error_set(reterr, ABX_EINVAL, "abx_client_new: ret is NULL");
	r = abx__options_copy(&opts, sizeof(opts), user_opts, "abx_client_options",
			      reterr);
	if (r < 0)
		return r;
	client = abx__calloc(1, sizeof(*client));
	if (!client)
		return abx__error_nomem(reterr);
	client->refs = 1;
	client->log = (abx__log){ .write = opts.log,
				  .userdata = opts.log_userdata,
				  .level = opts.log_level };
	r = configure(client, &opts, reterr);
	if (r >= 0)
		r = open_loop(client, reterr);
	if (r < 0) {
		abx__client_unref(client);
		return r;
	}
	*ret = client;
	return ABX_OK;
}

void abx_client_free(abx_client *client)
{
	if (!client || client->is_closed)
		return;
	if (client->is_busy) {
		client->free_wanted = true;
		return;
	}
	client->is_closed = true;
	client->is_busy = true;
	close_loop(client); /* ends the HTTP calls, and with them most operations */
	do
		abx__op_cancel_all(client);
	while (abx__op_deliver(client));
	client->is_busy = false;
	abx__client_unref(client);
}

void abx__kick_add(abx_client *client, abx__kick *kick)
{
	if (kick->is_queued || client->is_closed)
		return;
	kick->is_queued = true;
	kick->next = client->kicks;
	client->kicks = kick;
}

void abx__kick_cancel(abx_client *client, abx__kick *kick)
{
	abx__kick **at = &client->kicks;

	if (!kick->is_queued)
		return;
	while (*at != kick)
		at = &(*at)->next;
	*at = kick->next;
	kick->is_queued = false;
}

void abx__client_happened(abx_client *client)
{
	if (!client->is_closed)
		uv_stop(&client->loop);
}

static void run_kicks(abx_client *client)
{
	abx__kick *kick;

	while ((kick = client->kicks)) {
		abx__kick_cancel(client, kick);
		kick->fn(kick);
	}
}

void abx__client_turn(abx_client *client, uv_run_mode mode)
{
	client->is_busy = true;
	run_kicks(client);
	uv_run(&client->loop, client->first_done ? UV_RUN_NOWAIT : mode);
	abx__op_deliver(client);
	client->is_busy = false;
}

static int check_turn(abx_client *client, abx_error **reterr)
{
	if (!checked(client))
		return abx__error_set(reterr, ABX_ESTATE, "the client was freed");
	if (client->is_busy)
		return abx__error_set(reterr, ABX_ESTATE,
				      "abx_client_process() inside a callback");
	return ABX_OK;
}

static int turned(abx_client *client)
{
	int pending = (int)client->op_count;

	if (!client->free_wanted)
		return pending;
	abx_client_free(client);
	return 0;
}

int abx_client_process(abx_client *client, abx_error **reterr)
{
	int r = check_turn(client, reterr);

	if (r < 0)
		return r;
	abx__client_turn(client, UV_RUN_NOWAIT);
	return turned(client);
}

int abx_client_wait(abx_client *client, uint32_t timeout_ms, abx_error **reterr)
{
	int r = check_turn(client, reterr);

	if (r < 0)
		return r;
	if (timeout_ms != ABX_NO_TIMEOUT)
		uv_timer_start(&client->wait_timer, on_wait_timer, timeout_ms, 0);
	abx__client_turn(client, UV_RUN_ONCE);
	uv_timer_stop(&client->wait_timer);
	return turned(client);
}

void abx_client_wakeup(abx_client *client)
{
	if (checked(client))
		uv_async_send(&client->async);
}

int abx_client_fd(abx_client *client)
{
	return checked(client) ? uv_backend_fd(&client->loop) : -1;
}

int abx_client_timeout_ms(abx_client *client)
{
	if (!checked(client))
		return -1;
	if (client->first_done || client->kicks)
		return 0;
	uv_update_time(&client->loop);
	return uv_backend_timeout(&client->loop);
}

const char *abx_client_address(abx_client *client)
{
	return checked(client) ? client->settings.address : "";
}

const char *abx_client_console(abx_client *client)
{
	return client && client->settings.console_base ? client->settings.address : NULL;
}

char *abx_client_identity(abx_client *client)
{
	ABX_CLEANUP(abx__freep) char *both = NULL;
	uint8_t hash[ABX__SHA256_LEN];
	const char *key;
	int r;

	if (!client || !client->settings.address)
		return NULL;
	key = client->settings.key ? abx__secret_reveal(client->settings.key) : "";
	both = abx__strf("%s\n%s", client->settings.address, key);
	if (!both)
		return NULL;
	r = abx__sha256(both, strlen(both), hash);
	abx__wipe(both, strlen(both));
	if (r < 0)
		return NULL;
	return abx__strf("%s:%02x%02x%02x%02x",
			 client->settings.context ? client->settings.context : "default",
			 hash[0], hash[1], hash[2], hash[3]);
}

const char *abx_client_cluster(abx_client *client)
{
	return checked(client) ? client->settings.cluster : NULL;
}

const char *abx_client_context(abx_client *client)
{
	return checked(client) ? client->settings.context : NULL;
}
