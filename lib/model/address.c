/*
 * address.c - addresses of Envs and spellings of sandbox ids.
 */
#include "model/address.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "model/image-ref.h"
#include "model/names.h"

#define ADDRESS_MAX 2048

static char *trimmed(const char *s, size_t len)
{
	while (len && strchr(" \t\r\n", s[0])) {
		s++;
		len--;
	}
	while (len && strchr(" \t\r\n", s[len - 1]))
		len--;
	return abx__strndup(s, len);
}

static int check(const char *s, const abx__address *address, abx_error **reterr)
{
	int r;

	if (address->cluster && !*address->cluster)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"address \"%.200s\": the cluster before \"::\" is empty", s);
	if (address->cluster && !abx__dns_label_is_valid(address->cluster))
		return abx__error_set(
			reterr, ABX_EINVAL,
			"address \"%.200s\": cluster \"%.64s\" is not valid", s,
			address->cluster);
	if (!*address->name)
		return abx__error_set(reterr, ABX_EINVAL,
				      "address \"%.200s\": the name is empty", s);
	if (!abx__dns_label_is_valid(address->name))
		return abx__error_set(reterr, ABX_EINVAL,
				      "address \"%.200s\": name \"%.80s\" is not valid",
				      s, address->name);
	if (!address->image)
		return ABX_OK;
	if (!*address->image)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"address \"%.200s\": the image behind \"//\" is empty", s);
	r = abx__image_ref_check(address->image, reterr);
	if (r < 0)
		abx__error_prefix(reterr, "address \"%.200s\"", s);
	return r;
}

int abx__address_parse(const char *s, abx__address *ret, abx_error **reterr)
{
	ABX__CLEANUP_ADDRESS abx__address address = { 0 };
	size_t len = strnlen(s, ADDRESS_MAX + 1);
	const char *image, *colons;
	int r;

	if (len > ADDRESS_MAX)
		return abx__error_set(reterr, ABX_EINVAL,
				      "address \"%.64s...\" is longer than %d characters",
				      s, ADDRESS_MAX);
	image = strstr(s, "//");
	if (image) {
		address.image = trimmed(image + 2, strlen(image + 2));
		if (!address.image)
			return abx__error_nomem(reterr);
		len = (size_t)(image - s);
	}
	colons = memmem(s, len, "::", 2);
	if (colons) {
		address.cluster = trimmed(s, (size_t)(colons - s));
		if (!address.cluster)
			return abx__error_nomem(reterr);
	}
	address.name = colons ? trimmed(colons + 2, len - (size_t)(colons + 2 - s))
			      : trimmed(s, len);
	if (!address.name)
		return abx__error_nomem(reterr);
	r = check(s, &address, reterr);
	if (r < 0)
		return r;
	*ret = address;
	address = (abx__address){ 0 };
	return ABX_OK;
}

void abx__address_done(abx__address *address)
{
	abx__free(address->cluster);
	abx__free(address->name);
	abx__free(address->image);
	*address = (abx__address){ 0 };
}

char *abx__address_print(const abx__address *address)
{
	return abx__strf("%s%s%s%s%s", address->cluster ? address->cluster : "",
			 address->cluster ? "::" : "", address->name,
			 address->image ? "//" : "",
			 address->image ? address->image : "");
}

static bool is_id(const char *s, size_t len)
{
	if (len != ABX__SANDBOX_ID_LEN || s[0] < 'a' || s[0] > 'z')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!(s[i] >= 'a' && s[i] <= 'z') && !(s[i] >= '0' && s[i] <= '9'))
			return false;
	return true;
}

bool abx__sandbox_id_is_valid(const char *s)
{
	return is_id(s, strnlen(s, ABX__SANDBOX_ID_LEN + 1));
}

/* A cluster id has no dot, so a dot decides between CLUSTER.ID and ID-CLUSTER. */
static int split(const char *s, abx__sandbox_name *name)
{
	size_t len = strnlen(s, ABX__SANDBOX_ID_LEN + 1 + ABX__CLUSTER_ID_SIZE);
	const char *dot = memchr(s, '.', len);
	const char *id = dot ? dot + 1 : s;
	const char *cluster = dot ? s : s + ABX__SANDBOX_ID_LEN + 1;
	size_t cluster_len;

	if (!dot && (len == ABX__SANDBOX_ID_LEN || len <= ABX__SANDBOX_ID_LEN + 1)) {
		cluster_len = 0;
	} else {
		cluster_len = len - ABX__SANDBOX_ID_LEN - 1;
		if (len <= ABX__SANDBOX_ID_LEN + 1 || cluster_len >= ABX__CLUSTER_ID_SIZE)
			return ABX_EINVAL;
		if (dot ? (size_t)(dot - s) != cluster_len
			: s[ABX__SANDBOX_ID_LEN] != '-')
			return ABX_EINVAL;
	}
	if (!is_id(id, cluster_len ? ABX__SANDBOX_ID_LEN : len))
		return ABX_EINVAL;
	memcpy(name->id, id, ABX__SANDBOX_ID_LEN);
	name->id[ABX__SANDBOX_ID_LEN] = '\0';
	memcpy(name->cluster, cluster_len ? cluster : "", cluster_len);
	name->cluster[cluster_len] = '\0';
	return cluster_len && !abx__dns_label_is_valid(name->cluster) ? ABX_EINVAL
								      : ABX_OK;
}

int abx__sandbox_name_parse(const char *s, abx__sandbox_name *ret, abx_error **reterr)
{
	abx__sandbox_name name;

	if (split(s, &name) < 0) {
		abx__error_set(reterr, ABX_EINVAL, "sandbox id \"%.100s\" is not valid",
			       s);
		abx__error_hint(
			reterr,
			"write ID, ID-CLUSTER or CLUSTER.ID; an ID has %d letters "
			"and digits",
			ABX__SANDBOX_ID_LEN);
		return ABX_EINVAL;
	}
	*ret = name;
	return ABX_OK;
}

void abx__sandbox_name_print(const abx__sandbox_name *name,
			     char out[ABX__SANDBOX_ID_LEN + 1 + ABX__CLUSTER_ID_SIZE])
{
	snprintf(out, ABX__SANDBOX_ID_LEN + 1 + ABX__CLUSTER_ID_SIZE, "%s%s%s", name->id,
		 *name->cluster ? "-" : "", name->cluster);
}
