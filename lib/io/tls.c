/*
 * tls.c - see tls.h: OpenSSL over two buffers. The source BIO reads what feed() was
 * given, in place; the sink appends to the caller's buffer.
 */
#include "io/tls.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

/* TLS 1.2: forward secrecy and AEAD alone. TLS 1.3 has nothing else. */
#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"

struct context {
	abx__tls_context base; /* first */
	SSL_CTX *ctx;
	BIO_METHOD *method;
	bool h2;
	char *cert_file, *key_file;
};

struct session {
	abx__tls base; /* first */
	SSL *ssl;
	const char *in; /* what feed() gave and OpenSSL has not taken */
	size_t in_len;
	abx__buf *out; /* within a call */
	bool ended;
	bool failed;
};

/* ---- the BIO ---- */

static int bio_read(BIO *bio, char *data, int size)
{
	struct session *s = BIO_get_data(bio);
	size_t n = s->in_len < (size_t)size ? s->in_len : (size_t)size;

	BIO_clear_retry_flags(bio);
	if (n == 0) {
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(data, s->in, n);
	s->in += n;
	s->in_len -= n;
	return (int)n;
}

static int bio_write(BIO *bio, const char *data, int len)
{
	struct session *s = BIO_get_data(bio);

	if (!s->out || abx__buf_add(s->out, data, (size_t)len) < 0)
		return -1;
	return len;
}

static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
	(void)bio;
	(void)num;
	(void)ptr;
	return cmd == BIO_CTRL_FLUSH; /* what else is asked for is not there */
}

static int bio_create(BIO *bio)
{
	BIO_set_init(bio, 1);
	return 1;
}

static BIO_METHOD *new_method(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "agentbox wire");

	if (!m)
		return NULL;
	BIO_meth_set_read(m, bio_read);
	BIO_meth_set_write(m, bio_write);
	BIO_meth_set_ctrl(m, bio_ctrl);
	BIO_meth_set_create(m, bio_create);
	return m;
}

/* ---- sessions ---- */

static abx__tls *tls_accept(abx__tls_context *context)
{
	struct context *c = (struct context *)context;
	struct session *s = abx__calloc(1, sizeof(*s));
	BIO *bio = s ? BIO_new(c->method) : NULL;

	if (bio)
		s->ssl = SSL_new(c->ctx);
	if (!bio || !s->ssl) {
		BIO_free(bio);
		abx__free(s);
		ERR_clear_error();
		return NULL;
	}
	BIO_set_data(bio, s);
	SSL_set_bio(s->ssl, bio, bio);
	SSL_set_accept_state(s->ssl);
	s->base.ops = context->ops;
	return &s->base;
}

static void tls_free(abx__tls *tls)
{
	struct session *s = (struct session *)tls;

	SSL_free(s->ssl);
	abx__free(s);
}

static void tls_feed(abx__tls *tls, const char *data, size_t len)
{
	struct session *s = (struct session *)tls;

	s->in = data;
	s->in_len = len;
}

static const char *last_reason(void)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	ERR_clear_error();
	return why ? why : "broken TLS";
}

static ssize_t tls_read(abx__tls *tls, char *data, size_t size, abx__buf *out,
			const char **why)
{
	struct session *s = (struct session *)tls;
	size_t total = 0, n;
	int ok = 1;

	if (s->failed) {
		*why = "broken TLS";
		return ABX_EPROTO;
	}
	s->out = out;
	ERR_clear_error();
	while (total < size && !s->ended) {
		ok = SSL_read_ex(s->ssl, data + total, size - total, &n);
		if (!ok)
			break;
		total += n;
	}
	s->out = NULL;
	if (!ok) {
		int error = SSL_get_error(s->ssl, 0);

		s->ended = error == SSL_ERROR_ZERO_RETURN;
		s->failed = !s->ended && error != SSL_ERROR_WANT_READ;
	}
	if (s->failed || s->ended)
		s->in_len = 0;
	if (total > 0 || !s->failed)
		return (ssize_t)total;
	*why = last_reason();
	return ABX_EPROTO;
}

static int tls_write(abx__tls *tls, const void *data, size_t len, abx__buf *out)
{
	struct session *s = (struct session *)tls;
	size_t n;
	int ok;

	if (s->failed)
		return ABX_EIO;
	s->out = out;
	ERR_clear_error();
	ok = SSL_write_ex(s->ssl, data, len, &n);
	s->out = NULL;
	if (ok)
		return ABX_OK;
	s->failed = true;
	ERR_clear_error();
	return ABX_EIO;
}

static int tls_end(abx__tls *tls, abx__buf *out)
{
	struct session *s = (struct session *)tls;
	int r;

	if (s->failed || !SSL_is_init_finished(s->ssl))
		return ABX_OK; /* there is nobody to tell */
	s->out = out;
	ERR_clear_error();
	r = SSL_shutdown(s->ssl);
	s->out = NULL;
	ERR_clear_error();
	return r < 0 ? ABX_EIO : ABX_OK;
}

static bool tls_is_ready(const abx__tls *tls)
{
	return SSL_is_init_finished(((const struct session *)tls)->ssl);
}

static bool tls_is_h2(const abx__tls *tls)
{
	const unsigned char *name;
	unsigned len;

	SSL_get0_alpn_selected(((const struct session *)tls)->ssl, &name, &len);
	return len == 2 && memcmp(name, "h2", 2) == 0;
}

static bool tls_has_ended(const abx__tls *tls)
{
	return ((const struct session *)tls)->ended;
}

static const abx__tls_ops ops = {
	.accept = tls_accept,
	.free = tls_free,
	.feed = tls_feed,
	.read = tls_read,
	.write = tls_write,
	.end = tls_end,
	.is_ready = tls_is_ready,
	.is_h2 = tls_is_h2,
	.has_ended = tls_has_ended,
};

/* ---- contexts ---- */

static int select_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
			   const unsigned char *offered, unsigned len, void *arg)
{
	static const unsigned char both[] = "\x02h2\x08http/1.1";
	const struct context *c = arg;
	const unsigned char *ours = c->h2 ? both : both + 3;
	unsigned ours_len = (unsigned)(both + sizeof(both) - 1 - ours);
	unsigned char *chosen;

	(void)ssl;
	if (SSL_select_next_proto(&chosen, ret_len, ours, ours_len, offered, len) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*ret = chosen;
	return SSL_TLSEXT_ERR_OK;
}

/* A key under a pass phrase: nobody is there to be asked. */
static int no_pass_phrase(char *buf, int size, int rwflag, void *userdata)
{
	(void)buf;
	(void)size;
	(void)rwflag;
	(void)userdata;
	return -1;
}

static int load_files(SSL_CTX *ctx, const struct context *c, abx_error **reterr)
{
	const char *files[] = { c->cert_file, c->key_file };

	for (size_t i = 0; i < 2; i++) {
		if (access(files[i], R_OK) < 0)
			return abx__error_errno(reterr, ABX_EIO, errno, "read %s",
						files[i]);
	}
	ERR_clear_error();
	if (SSL_CTX_use_certificate_chain_file(ctx, c->cert_file) != 1)
		return abx__error_set(reterr, ABX_EINVAL,
				      "%s is no certificate in PEM form: %s",
				      c->cert_file, last_reason());
	if (SSL_CTX_use_PrivateKey_file(ctx, c->key_file, SSL_FILETYPE_PEM) != 1)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"%s is not the key of %s in PEM form without pass phrase: %s",
			c->key_file, c->cert_file, last_reason());
	return ABX_OK;
}

static int new_ctx(struct context *c, SSL_CTX **ret, abx_error **reterr)
{
	static const unsigned char id[] = "agentbox";
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	int r;

	if (!ctx)
		return abx__error_nomem(reterr);
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					 SSL_OP_CIPHER_SERVER_PREFERENCE |
					 SSL_OP_PRIORITIZE_CHACHA);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* tickets do */
	SSL_CTX_set_session_id_context(ctx, id, sizeof(id) - 1);
	SSL_CTX_set_default_passwd_cb(ctx, no_pass_phrase);
	SSL_CTX_set_alpn_select_cb(ctx, select_protocol, c);
	if (SSL_CTX_set_cipher_list(ctx, CIPHERS) != 1)
		r = abx__error_set(reterr, ABX_EINVAL, "TLS ciphers: %s", last_reason());
	else
		r = load_files(ctx, c, reterr);
	if (r < 0)
		SSL_CTX_free(ctx);
	else
		*ret = ctx;
	return r;
}

int abx__tls_context_new(const char *cert_file, const char *key_file, bool h2,
			 abx__tls_context **ret, abx_error **reterr)
{
	struct context *c = abx__calloc(1, sizeof(*c));
	int r = ABX_OK;

	if (!c)
		return abx__error_nomem(reterr);
	c->base.ops = &ops;
	c->h2 = h2;
	c->method = new_method();
	c->cert_file = abx__strdup(cert_file);
	c->key_file = abx__strdup(key_file);
	if (!c->method || !c->cert_file || !c->key_file)
		r = abx__error_nomem(reterr);
	if (r == ABX_OK)
		r = new_ctx(c, &c->ctx, reterr);
	if (r < 0) {
		abx__tls_context_free(&c->base);
		return r;
	}
	*ret = &c->base;
	return ABX_OK;
}

int abx__tls_context_reload(abx__tls_context *context, abx_error **reterr)
{
	struct context *c = (struct context *)context;
	SSL_CTX *ctx;
	int r = new_ctx(c, &ctx, reterr);

	if (r < 0)
		return r;
	SSL_CTX_free(c->ctx); /* sessions hold theirs */
	c->ctx = ctx;
	return ABX_OK;
}

void abx__tls_context_free(abx__tls_context *context)
{
	struct context *c = (struct context *)context;

	if (!c)
		return;
	SSL_CTX_free(c->ctx);
	BIO_meth_free(c->method);
	abx__free(c->cert_file);
	abx__free(c->key_file);
	abx__free(c);
}
