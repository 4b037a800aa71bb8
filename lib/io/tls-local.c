/*
 * tls-local.c - see tls-local.h.
 */
#include "io/tls-local.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

#define DAY_S (24L * 60 * 60)
#define CA_DAYS 3650
#define SERVER_DAYS 397
#define RENEW_DAYS 30

ABX_DEFINE_FREEP(bio_freep, BIO, BIO_free_all)

/* A certificate and its key. */
struct pair {
	X509 *cert;
	EVP_PKEY *key;
};

static void pair_done(struct pair *pair)
{
	X509_free(pair->cert);
	EVP_PKEY_free(pair->key);
}

static int openssl_failed(abx_error **reterr, const char *what)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	ERR_clear_error();
	return abx__error_set(reterr, ABX_EFAIL, "%s: %s", what,
			      why ? why : "OpenSSL failed");
}

/* ---- names ---- */

static bool is_ip(const char *name)
{
	unsigned char addr[16];

	return inet_pton(AF_INET, name, addr) == 1 ||
	       inet_pton(AF_INET6, name, addr) == 1;
}

static bool is_host(const char *name)
{
	size_t len = strlen(name), label = 0;

	if (strncmp(name, "*.", 2) == 0)
		name += 2;
	if (len == 0 || len > 253)
		return false;
	for (; *name; name++) {
		bool alnum = (*name >= 'a' && *name <= 'z') ||
			     (*name >= 'A' && *name <= 'Z') ||
			     (*name >= '0' && *name <= '9') || *name == '_';

		if (*name == '.' && label > 0) {
			label = 0;
			continue;
		}
		if (!alnum && (*name != '-' || label == 0))
			return false;
		if (++label > 63)
			return false;
	}
	return label > 0;
}

/* "DNS:a, IP:b", as OpenSSL's extension reader wants it and names_of() gives it. */
static int join_names(const char *const *names, size_t count, abx__buf *ret,
		      abx_error **reterr)
{
	int r = ABX_OK;

	for (size_t i = 0; i < count && r == ABX_OK; i++) {
		bool ip = is_ip(names[i]);

		if (!ip && !is_host(names[i]))
			return abx__error_set(
				reterr, ABX_EINVAL,
				"\"%s\" is neither a host name nor an IP address",
				names[i]);
		r = abx__buf_addf(ret, "%s%s:%s", i > 0 ? "," : "", ip ? "IP" : "DNS",
				  names[i]);
	}
	return r < 0 ? abx__error_nomem(reterr) : ABX_OK;
}

/* Does the certificate hold exactly these names? */
static bool has_names(X509 *cert, const char *const *names, size_t count)
{
	GENERAL_NAMES *have = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	bool same = have && (size_t)sk_GENERAL_NAME_num(have) == count;

	for (size_t i = 0; same && i < count; i++) {
		if (is_ip(names[i]))
			same = X509_check_ip_asc(cert, names[i], 0) == 1;
		else /* a name with a star is looked for as it stands */
			same = X509_check_host(cert, names[i], 0,
					       X509_CHECK_FLAG_NO_WILDCARDS, NULL) == 1;
	}
	GENERAL_NAMES_free(have);
	return same;
}

/* ---- making ---- */

static int add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *extension;
	X509V3_CTX ctx;
	int ok;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	ok = extension && X509_add_ext(cert, extension, -1);
	X509_EXTENSION_free(extension);
	return ok;
}

static int set_serial(X509 *cert)
{
	unsigned char bytes[16];
	BIGNUM *n = NULL;
	int ok;

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return 0;
	bytes[0] = (bytes[0] & 0x7f) | 0x40; /* positive, and always as long */
	n = BN_bin2bn(bytes, sizeof(bytes), NULL);
	ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
	BN_free(n);
	return ok;
}

static int set_name(X509 *cert, const char *common_name)
{
	X509_NAME *name = X509_get_subject_name(cert);

	return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8,
					  (const unsigned char *)"agentbox", -1, -1, 0) &&
	       X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
					  (const unsigned char *)common_name, -1, -1, 0);
}

static int begin_cert(struct pair *pair, const char *common_name, long days)
{
	pair->key = EVP_EC_gen("P-256");
	pair->cert = X509_new();
	/* A clock that is a little behind must not find it too young. */
	return pair->key && pair->cert && X509_set_version(pair->cert, X509_VERSION_3) &&
	       set_serial(pair->cert) && set_name(pair->cert, common_name) &&
	       X509_gmtime_adj(X509_getm_notBefore(pair->cert), -60 * 60) &&
	       X509_time_adj_ex(X509_getm_notAfter(pair->cert), (int)days, 0, NULL) &&
	       X509_set_pubkey(pair->cert, pair->key);
}

static int make_ca(struct pair *ca, abx_error **reterr)
{
	unsigned char tag[4];
	ABX_CLEANUP(abx__freep) char *name = NULL;

	/* Two CAs of one name would confuse clients that trust both. */
	if (RAND_bytes(tag, sizeof(tag)) != 1)
		return openssl_failed(reterr, "random bytes");
	name = abx__strf("agentbox local CA %02x%02x%02x%02x", tag[0], tag[1], tag[2],
			 tag[3]);
	if (!name)
		return abx__error_nomem(reterr);
	if (!begin_cert(ca, name, CA_DAYS) ||
	    !X509_set_issuer_name(ca->cert, X509_get_subject_name(ca->cert)) ||
	    !add_extension(ca->cert, ca->cert, NID_basic_constraints,
			   "critical,CA:TRUE,pathlen:0") ||
	    !add_extension(ca->cert, ca->cert, NID_key_usage,
			   "critical,keyCertSign,cRLSign") ||
	    !add_extension(ca->cert, ca->cert, NID_subject_key_identifier, "hash") ||
	    !X509_sign(ca->cert, ca->key, EVP_sha256()))
		return openssl_failed(reterr, "make the local CA");
	return ABX_OK;
}

static int make_server(struct pair *server, const struct pair *ca,
		       const char *const *names, size_t count, abx_error **reterr)
{
	ABX_CLEANUP_BUF abx__buf list = ABX__BUF_INIT;
	int r = join_names(names, count, &list, reterr);

	if (r < 0)
		return r;
	if (!begin_cert(server, "agentboxd", SERVER_DAYS) ||
	    !X509_set_issuer_name(server->cert, X509_get_subject_name(ca->cert)) ||
	    !add_extension(server->cert, ca->cert, NID_basic_constraints,
			   "critical,CA:FALSE") ||
	    !add_extension(server->cert, ca->cert, NID_key_usage,
			   "critical,digitalSignature") ||
	    !add_extension(server->cert, ca->cert, NID_ext_key_usage, "serverAuth") ||
	    !add_extension(server->cert, ca->cert, NID_subject_key_identifier, "hash") ||
	    !add_extension(server->cert, ca->cert, NID_authority_key_identifier,
			   "keyid") ||
	    !add_extension(server->cert, ca->cert, NID_subject_alt_name,
			   abx__buf_str(&list)) ||
	    !X509_sign(server->cert, ca->key, EVP_sha256()))
		return openssl_failed(reterr, "make the server certificate");
	return ABX_OK;
}

/* ---- files ---- */

/* Beside its place, then renamed. */
static int write_file(const char *dir, const char *name, mode_t mode, BIO *content,
		      abx_error **reterr)
{
	ABX_CLEANUP(abx__freep) char *path = abx__strf("%s/%s", dir, name);
	ABX_CLEANUP(abx__freep) char *tmp = abx__strf("%s/%s.new", dir, name);
	ABX_CLEANUP(abx__closep) int fd = -1;
	char *data;
	long len = BIO_get_mem_data(content, &data);

	if (!path || !tmp)
		return abx__error_nomem(reterr);
	unlink(tmp);
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0 || fchmod(fd, mode) < 0 || write(fd, data, (size_t)len) != len ||
	    fsync(fd) < 0 || rename(tmp, path) < 0)
		return abx__error_errno(reterr, ABX_EIO, errno, "write %s", path);
	return ABX_OK;
}

static int write_certs(const char *dir, const char *name, X509 *cert, X509 *issuer,
		       abx_error **reterr)
{
	ABX_CLEANUP(bio_freep) BIO *bio = BIO_new(BIO_s_mem());

	if (!bio || !PEM_write_bio_X509(bio, cert) ||
	    (issuer && !PEM_write_bio_X509(bio, issuer)))
		return openssl_failed(reterr, name);
	return write_file(dir, name, 0644, bio, reterr);
}

static int write_key(const char *dir, const char *name, EVP_PKEY *key, abx_error **reterr)
{
	ABX_CLEANUP(bio_freep) BIO *bio = BIO_new(BIO_s_secmem());

	if (!bio || !PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL))
		return openssl_failed(reterr, name);
	return write_file(dir, name, 0600, bio, reterr);
}

static FILE *open_file(const char *dir, const char *name)
{
	ABX_CLEANUP(abx__freep) char *path = abx__strf("%s/%s", dir, name);

	return path ? fopen(path, "re") : NULL;
}

/* Both files, when they are there, whole, and belong together. */
static bool read_pair(const char *dir, const char *cert, const char *key,
		      struct pair *ret)
{
	FILE *cert_file = open_file(dir, cert), *key_file = open_file(dir, key);

	if (cert_file)
		ret->cert = PEM_read_X509(cert_file, NULL, NULL, NULL);
	if (key_file)
		ret->key = PEM_read_PrivateKey(key_file, NULL, NULL, NULL);
	if (cert_file)
		fclose(cert_file);
	if (key_file)
		fclose(key_file);
	if (ret->cert && ret->key && X509_check_private_key(ret->cert, ret->key) == 1)
		return true;
	ERR_clear_error();
	pair_done(ret);
	*ret = (struct pair){ 0 };
	return false;
}

static bool lives_on(X509 *cert)
{
	time_t then = time(NULL) + RENEW_DAYS * DAY_S;

	return X509_cmp_time(X509_get0_notAfter(cert), &then) > 0;
}

/* ---- the directory ---- */

static int get_ca(const char *dir, struct pair *ret, bool *changed, abx_error **reterr)
{
	int r;

	if (read_pair(dir, "ca.crt", "ca.key", ret) && lives_on(ret->cert))
		return ABX_OK;
	pair_done(ret);
	*ret = (struct pair){ 0 };
	*changed = true;
	r = make_ca(ret, reterr);
	if (r == ABX_OK)
		r = write_key(dir, "ca.key", ret->key, reterr);
	if (r == ABX_OK)
		r = write_certs(dir, "ca.crt", ret->cert, NULL, reterr);
	return r;
}

static bool is_right(X509 *cert, const struct pair *ca, const char *const *names,
		     size_t count)
{
	return lives_on(cert) && X509_verify(cert, ca->key) == 1 &&
	       has_names(cert, names, count);
}

static int get_server(const char *dir, const struct pair *ca, const char *const *names,
		      size_t count, bool *changed, abx_error **reterr)
{
	struct pair pair = { 0 };
	int r = ABX_OK;

	if (!read_pair(dir, "server.crt", "server.key", &pair) ||
	    !is_right(pair.cert, ca, names, count)) {
		ERR_clear_error();
		pair_done(&pair);
		pair = (struct pair){ 0 };
		*changed = true;
		r = make_server(&pair, ca, names, count, reterr);
		if (r == ABX_OK)
			r = write_key(dir, "server.key", pair.key, reterr);
		if (r == ABX_OK)
			r = write_certs(dir, "server.crt", pair.cert, ca->cert, reterr);
	}
	pair_done(&pair);
	return r;
}

int abx__tls_local_make(const char *dir, const char *const *names, size_t count,
			bool *ret_changed, abx_error **reterr)
{
	struct pair ca = { 0 };
	bool changed = false;
	int r;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return abx__error_errno(reterr, ABX_EIO, errno, "make %s", dir);
	r = get_ca(dir, &ca, &changed, reterr);
	if (r == ABX_OK)
		r = get_server(dir, &ca, names, count, &changed, reterr);
	pair_done(&ca);
	if (r == ABX_OK && ret_changed)
		*ret_changed = changed;
	return r;
}
