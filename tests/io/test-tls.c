/*
 * test-tls.c - TLS below the HTTP server, over real sockets with OpenSSL as the client:
 * handshakes good, bad and slow, ALPN, files, and the local CA.
 */
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "io/http2.h"
#include "tls-fixture.h"

/* ---- handshakes ---- */

static const char get[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

Test(io_tls, certificate_holds_for_every_name_of_ours)
{
	static const char *const good[] = { "localhost", "box.test", "api.box.test",
					    "49983-abc.box.test" };
	static const char *const bad[] = { "a.b.box.test", "other.test", "xlocalhost" };
	struct tls_fixture f;

	tls_start(&f, tls_greet);
	for (size_t i = 0; i < 4; i++) {
		tls_call(&f);
		SSL_set1_host(f.ssl, good[i]);
		tls_shake(&f);
		tls_says(&f, get);
		UNTIL(&f, tls_got(&f, "over TLS"));
		tls_hang_up(&f);
	}
	for (size_t i = 0; i < 3; i++) {
		tls_call(&f);
		SSL_set1_host(f.ssl, bad[i]);
		UNTIL(&f, f.failed);
		cr_assert_eq(SSL_get_verify_result(f.ssl), X509_V_ERR_HOSTNAME_MISMATCH);
		tls_hang_up(&f);
	}
	for (size_t i = 1; i < 3; i++) {
		tls_call(&f);
		SSL_set1_host(f.ssl, NULL);
		cr_assert_eq(X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(f.ssl),
							   tls_names[i]),
			     1);
		tls_shake(&f);
		tls_hang_up(&f);
	}
	tls_stop(&f);
}

Test(io_tls, versions_and_ciphers_are_todays)
{
	static const struct {
		int version;
		const char *ciphers;
		bool fine;
	} table[] = {
		{ TLS1_3_VERSION, NULL, true },
		{ TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256", true },
		{ TLS1_2_VERSION, "ECDHE-ECDSA-CHACHA20-POLY1305", true },
		{ TLS1_2_VERSION, "ECDHE-ECDSA-AES128-SHA", false },
		{ TLS1_2_VERSION, "AES128-GCM-SHA256", false },
		{ TLS1_1_VERSION, "ALL:@SECLEVEL=0", false },
	};
	struct tls_fixture f;

	tls_start(&f, tls_greet);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		tls_call(&f);
		if (table[i].ciphers)
			cr_assert_eq(SSL_set_cipher_list(f.ssl, table[i].ciphers), 1);
		SSL_set_min_proto_version(f.ssl, TLS1_VERSION);
		SSL_set_max_proto_version(f.ssl, table[i].version);
		UNTIL(&f, f.failed || SSL_is_init_finished(f.ssl));
		cr_assert_eq(!f.failed, table[i].fine, "row %zu", i);
		tls_hang_up(&f);
	}
	tls_stop(&f);
}

Test(io_tls, alpn_picks_the_protocol)
{
	static const unsigned char h2[] = "\x02h2\x08http/1.1", old[] = "\x08http/1.1",
				   other[] = "\x04spdy";
	struct tls_fixture f;

	tls_start(&f, tls_greet);
	tls_call(&f);
	SSL_set_alpn_protos(f.ssl, h2, sizeof(h2) - 1);
	tls_shake(&f);
	/* The server's preface: SETTINGS. */
	UNTIL(&f, f.got.len > 9 && f.got.data[3] == 4);
	tls_hang_up(&f);
	tls_call(&f);
	SSL_set_alpn_protos(f.ssl, old, sizeof(old) - 1);
	tls_shake(&f);
	tls_says(&f, get);
	UNTIL(&f, tls_got(&f, "HTTP/1.1 200"));
	tls_hang_up(&f);
	tls_call(&f);
	SSL_set_alpn_protos(f.ssl, other, sizeof(other) - 1);
	UNTIL(&f, f.failed);
	tls_stop(&f);
}

Test(io_tls, alpn_offers_no_h2_where_it_is_not_spoken)
{
	static const unsigned char h2[] = "\x02h2\x08http/1.1";
	const unsigned char *name;
	struct tls_fixture f;
	unsigned len;

	tls_start_with(&f, (abx__http_server_options){ .on_request = tls_greet }, false);
	tls_call(&f);
	SSL_set_alpn_protos(f.ssl, h2, sizeof(h2) - 1);
	tls_shake(&f);
	SSL_get0_alpn_selected(f.ssl, &name, &len);
	cr_assert(len == 8 && memcmp(name, "http/1.1", 8) == 0);
	tls_stop(&f);
}

Test(io_tls, sessions_are_resumed_by_ticket)
{
	SSL_SESSION *session;
	struct tls_fixture f;

	tls_start(&f, tls_greet);
	tls_call(&f);
	tls_shake(&f);
	tls_says(&f, get);
	UNTIL(&f, tls_got(&f, "over TLS")); /* tickets came with it */
	session = SSL_get1_session(f.ssl);
	SSL_shutdown(f.ssl);
	tls_hang_up(&f);
	tls_call(&f);
	SSL_set_session(f.ssl, session);
	tls_shake(&f);
	cr_assert(SSL_session_reused(f.ssl));
	tls_says(&f, get);
	UNTIL(&f, tls_got(&f, "over TLS"));
	SSL_SESSION_free(session);
	tls_stop(&f);
}

Test(io_tls, renegotiation_is_refused)
{
	struct tls_fixture f;

	tls_start(&f, tls_greet);
	tls_call(&f);
	SSL_set_max_proto_version(f.ssl, TLS1_2_VERSION);
	tls_shake(&f);
	SSL_renegotiate(f.ssl);
	SSL_do_handshake(f.ssl);
	UNTIL(&f, f.failed || SSL_is_init_finished(f.ssl));
	tls_says(&f, get);
	UNTIL(&f, f.failed || tls_got(&f, "over TLS"));
	cr_assert_eq(SSL_num_renegotiations(f.ssl), 1);
	cr_assert_eq(SSL_total_renegotiations(f.ssl), 1);
	tls_stop(&f);
}

Test(io_tls, slow_handshake_is_closed_at_its_deadline)
{
	struct tls_fixture f;

	tls_start_with(&f,
		       (abx__http_server_options){ .on_request = tls_greet,
						   .handshake_timeout_ms = 50 },
		       true);
	wire_open(&f.w, &f.loop, f.port);
	cr_assert_eq(send(f.w.fd, "\x16\x03\x01\x02", 4, MSG_NOSIGNAL), 4);
	WIRE_UNTIL(&f.w, f.w.eof || f.w.reset);
	tls_stop(&f);
}

Test(io_tls, handshakes_at_one_time_are_capped)
{
	struct tls_fixture f;
	struct wire waits[3];

	tls_start_with(&f,
		       (abx__http_server_options){ .on_request = tls_greet,
						   .max_handshakes = 3 },
		       true);
	for (int i = 0; i < 3; i++) {
		wire_open(&waits[i], &f.loop, f.port);
		wire_turn(&waits[i]);
	}
	wire_open(&f.w, &f.loop, f.port);
	WIRE_UNTIL(&f.w, f.w.eof || f.w.reset);
	wire_done(&f.w);
	/* One that ends makes room. */
	wire_done(&waits[0]);
	for (int i = 0; i < 20; i++)
		wire_turn(&waits[1]);
	tls_call(&f);
	tls_shake(&f);
	/* Those that are through do not count. */
	wire_open(&waits[0], &f.loop, f.port);
	for (int i = 0; i < 20; i++)
		wire_turn(&waits[0]);
	cr_assert_not(waits[0].eof || waits[0].reset);
	for (int i = 0; i < 3; i++)
		wire_done(&waits[i]);
	tls_stop(&f);
}

Test(io_tls, plain_http_is_told_to_say_https)
{
	struct tls_fixture f;

	tls_start(&f, tls_greet);
	wire_open(&f.w, &f.loop, f.port);
	wire_say(&f.w, get);
	WIRE_UNTIL(&f.w, f.w.eof);
	cr_assert(wire_got(&f.w, "HTTP/1.1 400"));
	cr_assert(wire_got(&f.w, "\r\n\r\nthis port speaks TLS; say https, not http"));
	cr_assert_eq(f.calls, 0);
	tls_stop(&f);
}

Test(io_tls, garbage_is_closed_with_an_alert)
{
	struct tls_fixture f;

	tls_start(&f, tls_greet);
	wire_open(&f.w, &f.loop, f.port);
	cr_assert_eq(send(f.w.fd, "\x16\x03\x01\x00\x05hello!!", 12, MSG_NOSIGNAL), 12);
	WIRE_UNTIL(&f.w, f.w.eof || f.w.reset);
	cr_assert(f.w.got.len == 0 || f.w.got.data[0] == 21, "not an alert");
	wire_done(&f.w);
	/* And in the middle of a connection. */
	tls_call(&f);
	tls_shake(&f);
	cr_assert_eq(send(f.w.fd, "\x17\x03\x03\x00\x05hello", 10, MSG_NOSIGNAL), 10);
	UNTIL(&f, f.failed);
	cr_assert_eq(f.calls, 0);
	tls_stop(&f);
}

/* ---- files ---- */

Test(io_tls, reload_takes_new_files_and_keeps_the_old_when_they_are_bad)
{
	static const char *const other[] = { "renamed.test" };
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ABX_CLEANUP(abx__freep) char *cert = NULL;
	struct tls_fixture f;
	bool changed = false;

	tls_start(&f, tls_greet);
	cert = tls_path(&f, "server.crt");
	cr_assert_eq(abx__tls_local_make(f.dir, other, 1, &changed, NULL), ABX_OK);
	cr_assert(changed);
	cr_assert_eq(abx__tls_context_reload(f.context, NULL), ABX_OK);
	tls_call(&f);
	SSL_set1_host(f.ssl, "renamed.test");
	tls_shake(&f);
	tls_hang_up(&f);
	cr_assert_eq(truncate(cert, 10), 0);
	cr_assert_eq(abx__tls_context_reload(f.context, &err), ABX_EINVAL);
	cr_assert(strstr(abx_error_message(err), cert), "%s", abx_error_message(err));
	tls_call(&f);
	SSL_set1_host(f.ssl, "renamed.test");
	tls_shake(&f);
	tls_stop(&f);
}

Test(io_tls, files_that_are_not_right_are_named)
{
	ABX_CLEANUP(abx__freep) char *cert = NULL;
	ABX_CLEANUP(abx__freep) char *key = NULL;
	ABX_CLEANUP(abx__freep) char *ca_key = NULL;
	abx__tls_context *context = NULL;
	abx_error *err = NULL;
	struct tls_fixture f;

	tls_start(&f, tls_greet);
	cert = tls_path(&f, "server.crt");
	key = tls_path(&f, "server.key");
	ca_key = tls_path(&f, "ca.key");
	cr_assert_eq(abx__tls_context_new("/nowhere.crt", key, true, &context, &err),
		     ABX_EIO);
	cr_assert(strstr(abx_error_message(err), "/nowhere.crt"));
	abx_error_free(err);
	err = NULL;
	cr_assert_eq(abx__tls_context_new(key, key, true, &context, &err), ABX_EINVAL);
	cr_assert(strstr(abx_error_message(err), "no certificate in PEM form"));
	abx_error_free(err);
	err = NULL;
	cr_assert_eq(abx__tls_context_new(cert, ca_key, true, &context, &err),
		     ABX_EINVAL);
	cr_assert(strstr(abx_error_message(err), "is not the key of"));
	abx_error_free(err);
	cr_assert_null(context);
	tls_stop(&f);
}

/* ---- the local CA ---- */

static unsigned mode_of(const struct tls_fixture *f, const char *name)
{
	ABX_CLEANUP(abx__freep) char *path = tls_path(f, name);
	struct stat st;

	cr_assert_eq(stat(path, &st), 0);
	return st.st_mode & 07777;
}

Test(io_tls, local_ca_is_made_once_and_kept)
{
	struct tls_fixture f;
	bool changed = true;

	tls_start(&f, tls_greet);
	cr_assert_eq(mode_of(&f, "ca.key"), 0600);
	cr_assert_eq(mode_of(&f, "server.key"), 0600);
	cr_assert_eq(mode_of(&f, "ca.crt"), 0644);
	cr_assert_eq(mode_of(&f, "server.crt"), 0644);
	cr_assert_eq(
		abx__tls_local_make(f.dir, tls_names, TLS_NAME_COUNT, &changed, NULL),
		ABX_OK);
	cr_assert_not(changed);
	/* A name less, and the CA stays. */
	cr_assert_eq(
		abx__tls_local_make(f.dir, tls_names, TLS_NAME_COUNT - 1, &changed, NULL),
		ABX_OK);
	cr_assert(changed);
	cr_assert_eq(abx__tls_context_reload(f.context, NULL), ABX_OK);
	tls_call(&f);
	SSL_set1_host(f.ssl, "box.test");
	tls_shake(&f);
	tls_stop(&f);
}

Test(io_tls, local_ca_that_is_broken_is_made_anew)
{
	ABX_CLEANUP(abx__freep) char *key = NULL;
	struct tls_fixture f;
	bool changed = false;

	tls_start(&f, tls_greet);
	key = tls_path(&f, "ca.key");
	cr_assert_eq(truncate(key, 20), 0);
	cr_assert_eq(
		abx__tls_local_make(f.dir, tls_names, TLS_NAME_COUNT, &changed, NULL),
		ABX_OK);
	cr_assert(changed);
	cr_assert_eq(mode_of(&f, "ca.key"), 0600);
	cr_assert_eq(abx__tls_context_reload(f.context, NULL), ABX_OK);
	tls_call(&f);
	tls_shake(&f);
	tls_stop(&f);
}

Test(io_tls, names_that_are_none_are_refused)
{
	static const char *const bad[] = { "",        "a b",      "a,DNS:evil", "*",
					   "*.*.x",   "a..b",     ".a",         "a.",
					   "-a.test", "1.2.3.4/5" };
	struct tls_fixture f;

	tls_start(&f, tls_greet);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		abx_error *err = NULL;

		cr_assert_eq(abx__tls_local_make(f.dir, &bad[i], 1, NULL, &err),
			     ABX_EINVAL, "\"%s\" was taken", bad[i]);
		cr_assert(strstr(abx_error_message(err), "neither a host name nor"));
		abx_error_free(err);
	}
	tls_stop(&f);
}
