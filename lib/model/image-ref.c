/*
 * image-ref.c - the grammar of image references (distribution/reference, plus host: and
 * OCI layouts).
 */
#include "model/image-ref.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

#define TAG_MAX 128
#define REPOSITORY_MAX 255
#define DIGEST_HEX_MIN 32

/* Images podd makes by itself (deploy/images/README.md). */
static const struct {
	const char *name;
	enum abx__image_kind kind;
} built_in[] = {
	{ "host:", ABX__IMAGE_HOST },
	{ "runtime:", ABX__IMAGE_RUNTIME },
	{ "idle:", ABX__IMAGE_IDLE },
};

static bool is_lower_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
	return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

static int bad(abx_error **reterr, const char *s, const char *part)
{
	return abx__error_set(reterr, ABX_EINVAL, "image \"%.200s\": %s", s, part);
}

static bool is_tag(const char *s, size_t len)
{
	if (len == 0 || len > TAG_MAX || (!is_alnum(s[0]) && s[0] != '_'))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_alnum(s[i]) && !strchr("_.-", s[i]))
			return false;
	return true;
}

static bool is_digest(const char *s)
{
	size_t algorithm = strcspn(s, ":");
	size_t hex;

	if (algorithm == 0 || !s[algorithm])
		return false;
	for (size_t i = 0; i < algorithm; i++)
		if (!is_lower_alnum(s[i]) && (i == 0 || !strchr("+._-", s[i])))
			return false;
	s += algorithm + 1;
	hex = strspn(s, "0123456789abcdef");
	return hex >= DIGEST_HEX_MIN && !s[hex];
}

/* [a-z0-9]+ joined by one '.', one or two '_', or any number of '-'. */
static bool is_component(const char *s, size_t len)
{
	size_t i = 0;

	while (i < len) {
		size_t from = i, dashes;

		while (i < len && is_lower_alnum(s[i]))
			i++;
		if (i == from)
			return false;
		if (i == len)
			return true;
		for (dashes = 0; i + dashes < len && s[i + dashes] == '-'; dashes++)
			;
		if (dashes)
			i += dashes;
		else if (s[i] == '_')
			i += i + 1 < len && s[i + 1] == '_' ? 2 : 1;
		else if (s[i] == '.')
			i++;
		else
			return false;
	}
	return false;
}

static bool is_path(const char *s, size_t len)
{
	while (len) {
		const char *slash = memchr(s, '/', len);
		size_t part = slash ? (size_t)(slash - s) : len;

		if (!is_component(s, part))
			return false;
		if (!slash)
			return true;
		s += part + 1;
		len -= part + 1;
	}
	return false;
}

/* host[:port], host being labels of letters, digits and inner dashes, or an address in
 * brackets. */
static bool is_registry(const char *s, size_t len)
{
	const char *colon = memrchr(s, ':', len);
	size_t host = len, i;

	if (s[0] == '[') {
		const char *close = memchr(s, ']', len);

		if (!close || close == s + 1)
			return false;
		for (const char *p = s + 1; p < close; p++)
			if (!is_alnum(*p) && *p != ':')
				return false;
		host = (size_t)(close + 1 - s);
	} else {
		if (colon)
			host = (size_t)(colon - s);
		for (i = 0; i < host; i++)
			if (!is_alnum(s[i]) && s[i] != '.' && s[i] != '-')
				return false;
		if (host == 0 || !is_alnum(s[0]) || !is_alnum(s[host - 1]))
			return false;
	}
	if (host == len)
		return true;
	if (s[host] != ':' || host + 1 == len || len - host - 1 > 5)
		return false;
	for (i = host + 1; i < len; i++)
		if (s[i] < '0' || s[i] > '9')
			return false;
	return true;
}

static bool names_registry(const char *s, size_t len)
{
	return memchr(s, '.', len) || memchr(s, ':', len) ||
	       (len == 9 && memcmp(s, "localhost", 9) == 0);
}

static int set(char **field, const char *s, size_t len, abx_error **reterr)
{
	*field = abx__strndup(s, len);
	return *field ? ABX_OK : abx__error_nomem(reterr);
}

/* Registry and repository out of the part before tag and digest, with Docker's defaults.
 */
static int parse_repository(const char *whole, const char *s, size_t len,
			    abx__image_ref *ref, abx_error **reterr)
{
	const char *slash = memchr(s, '/', len);
	size_t head = slash ? (size_t)(slash - s) : 0;
	const char *prefix = "";
	int r;

	if (slash && names_registry(s, head)) {
		if (!is_registry(s, head))
			return bad(reterr, whole, "the registry's name is not valid");
		r = set(&ref->registry, s, head, reterr);
		if (r < 0)
			return r;
		s += head + 1;
		len -= head + 1;
	} else {
		r = set(&ref->registry, "docker.io", strlen("docker.io"), reterr);
		if (r < 0)
			return r;
		prefix = slash ? "" : "library/";
	}
	if (len == 0)
		return bad(reterr, whole, "the name is missing");
	if (len + strlen(prefix) > REPOSITORY_MAX || !is_path(s, len))
		return bad(reterr, whole,
			   "the name is not valid (lower-case letters, digits and "
			   "single separators)");
	ref->path = abx__strf("%s%.*s", prefix, (int)len, s);
	return ref->path ? ABX_OK : abx__error_nomem(reterr);
}

static int parse_registry(const char *s, abx__image_ref *ref, abx_error **reterr)
{
	size_t len = strcspn(s, "@");
	const char *colon;
	int r;

	ref->kind = ABX__IMAGE_REGISTRY;
	if (strstr(s, "://"))
		return bad(reterr, s, "write it without a scheme");
	if (s[len]) {
		if (!is_digest(s + len + 1))
			return bad(reterr, s, "the digest is not valid (sha256:HEX)");
		r = set(&ref->digest, s + len + 1, strlen(s + len + 1), reterr);
		if (r < 0)
			return r;
	}
	colon = memrchr(s, ':', len);
	if (colon && !memchr(colon, '/', len - (size_t)(colon - s))) {
		size_t tag = len - (size_t)(colon - s) - 1;

		if (!is_tag(colon + 1, tag))
			return bad(reterr, s,
				   "the tag is not valid (1 to 128 letters, digits, "
				   "'_', '.', '-')");
		r = set(&ref->tag, colon + 1, tag, reterr);
		len = (size_t)(colon - s);
	} else {
		r = ref->digest ? ABX_OK
				: set(&ref->tag, "latest", strlen("latest"), reterr);
	}
	return r < 0 ? r : parse_repository(s, s, len, ref, reterr);
}

/* A path with a ".." among its segments. */
static bool climbs(const char *s, size_t len)
{
	while (len) {
		const char *slash = memchr(s, '/', len);
		size_t part = slash ? (size_t)(slash - s) : len;

		if (part == 2 && s[0] == '.' && s[1] == '.')
			return true;
		part += slash ? 1 : 0;
		s += part;
		len -= part;
	}
	return false;
}

static int parse_file(const char *whole, const char *s, enum abx__image_kind kind,
		      abx__image_ref *ref, abx_error **reterr)
{
	const char *colon = strrchr(s, ':');
	size_t len = colon ? (size_t)(colon - s) : strlen(s);
	int r;

	ref->kind = kind;
	if (len == 0)
		return bad(reterr, whole, "the name is missing");
	if (climbs(s, len) || (colon && strchr(colon, '/')))
		return bad(reterr, whole, "the path is not valid");
	if (colon) {
		if (!is_tag(colon + 1, strlen(colon + 1)))
			return bad(reterr, whole,
				   "the tag is not valid (1 to 128 letters, "
				   "digits, '_', '.', '-')");
		r = set(&ref->tag, colon + 1, strlen(colon + 1), reterr);
		if (r < 0)
			return r;
	}
	return set(&ref->path, s, len, reterr);
}

static int parse(const char *s, abx__image_ref *ref, abx_error **reterr)
{
	size_t len = strnlen(s, ABX__IMAGE_REF_MAX + 1);

	if (len == 0)
		return abx__error_set(reterr, ABX_EINVAL, "image reference is empty");
	if (len > ABX__IMAGE_REF_MAX)
		return bad(reterr, s, "longer than 1024 characters");
	for (const char *p = s; *p; p++)
		if (*p <= ' ' || *p == 0x7f)
			return bad(reterr, s,
				   "blanks and control characters are not allowed");
	for (size_t i = 0; i < sizeof(built_in) / sizeof(built_in[0]); i++) {
		if (strcmp(s, built_in[i].name) == 0) {
			ref->kind = built_in[i].kind;
			return ABX_OK;
		}
	}
	if (abx__str_starts(s, "oci:"))
		return parse_file(s, s + strlen("oci:"), ABX__IMAGE_OCI, ref, reterr);
	if (abx__str_starts(s, "snapshot:"))
		return abx__error_set(
			reterr, ABX_EINVAL,
			"image \"%s\": a snapshot is named by its id in the "
			"place of the env, not as an image",
			s);
	if (abx__str_starts(s, "oci-archive:"))
		return parse_file(s, s + strlen("oci-archive:"), ABX__IMAGE_OCI_ARCHIVE,
				  ref, reterr);
	return parse_registry(s, ref, reterr);
}

int abx__image_ref_parse(const char *s, abx__image_ref *ret, abx_error **reterr)
{
	abx__image_ref ref = { 0 };
	int r = parse(s, &ref, reterr);

	if (r < 0) {
		abx__image_ref_done(&ref);
		return r;
	}
	*ret = ref;
	return ABX_OK;
}

int abx__image_ref_check(const char *s, abx_error **reterr)
{
	ABX__CLEANUP_IMAGE_REF abx__image_ref ref = { 0 };

	return abx__image_ref_parse(s, &ref, reterr);
}

void abx__image_ref_done(abx__image_ref *ref)
{
	abx__free(ref->registry);
	abx__free(ref->path);
	abx__free(ref->tag);
	abx__free(ref->digest);
	*ref = (abx__image_ref){ 0 };
}

char *abx__image_ref_print(const abx__image_ref *ref)
{
	const char *colon = ref->tag ? ":" : "", *tag = ref->tag ? ref->tag : "";
	const char *at = ref->digest ? "@" : "", *digest = ref->digest ? ref->digest : "";

	switch (ref->kind) {
	case ABX__IMAGE_HOST:
		return abx__strdup("host:");
	case ABX__IMAGE_RUNTIME:
		return abx__strdup("runtime:");
	case ABX__IMAGE_IDLE:
		return abx__strdup("idle:");
	case ABX__IMAGE_OCI:
		return abx__strf("oci:%s%s%s", ref->path, colon, tag);
	case ABX__IMAGE_OCI_ARCHIVE:
		return abx__strf("oci-archive:%s%s%s", ref->path, colon, tag);
	case ABX__IMAGE_REGISTRY:
		break;
	}
	return abx__strf("%s/%s%s%s%s%s", ref->registry, ref->path, colon, tag, at,
			 digest);
}
