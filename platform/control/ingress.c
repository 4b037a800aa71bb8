/*
 * ingress.c - see ingress.h.
 */
#include "control/ingress.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/fields.h"
#include "control/internal.h"

static const char placeholder[] = "${PORT}";

/* How much of `s` one character or one placeholder of a host name takes; 0: neither. */
static size_t host_step(const char *s)
{
	if (strncmp(s, placeholder, sizeof(placeholder) - 1) == 0)
		return sizeof(placeholder) - 1;
	return (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
			       (*s >= '0' && *s <= '9') || *s == '-' || *s == '.' ||
			       *s == '_'
		       ? 1
		       : 0;
}

/* The length of the host in front; 0: there is none. */
static size_t host_length(const char *s)
{
	size_t n = 0, step;

	if (*s == '[') {
		n = 1 + strspn(s + 1, "0123456789abcdefABCDEF:.");
		return n > 1 && s[n] == ']' ? n + 1 : 0;
	}
	if (*s == '-' || *s == '.')
		return 0;
	while ((step = host_step(s + n)) > 0)
		n += step;
	return n;
}

static bool is_port(const char *s)
{
	uint64_t port;

	return strcmp(s, placeholder) == 0 ||
	       abx__parse_u64(s, 1, UINT16_MAX, &port) == 0;
}

int abx__ingress_check_mask(const char *mask, abx_error **reterr)
{
	size_t n;

	for (const char *p = mask; *p; p++)
		if ((unsigned char)*p >= 0x80)
			return abx__error_set(reterr, ABX_EINVAL,
					      "mask request host '%s' is not ASCII. "
					      "Please use ASCII characters only.",
					      mask);
	n = host_length(mask);
	if (n > 0 && n <= ABX__INGRESS_MASK_MAX &&
	    strlen(mask) <= ABX__INGRESS_MASK_MAX &&
	    (!mask[n] || (mask[n] == ':' && is_port(mask + n + 1))))
		return ABX_OK;
	return abx__error_set(reterr, ABX_EINVAL, "mask request host is not valid: %s",
			      mask);
}

int abx__ingress_check_https_port(int64_t port, abx_error **reterr)
{
	if (port == ABX__RUNTIME_PORT)
		return abx__error_set(reterr, ABX_EINVAL,
				      "network.httpsPorts: port %d is envd's and does "
				      "not speak TLS",
				      ABX__RUNTIME_PORT);
	if (port < 1 || port > UINT16_MAX)
		return abx__error_set(
			reterr, ABX_EINVAL,
			"network.httpsPorts: a port is 1 to 65535, not %lld",
			(long long)port);
	return ABX_OK;
}

bool abx__ingress_is_set(const abx__ingress *ingress)
{
	return ingress->closed || ingress->mask_host[0] || ingress->https_count > 0;
}

static json_object *ports_json(const abx__ingress *ingress)
{
	json_object *ports = json_object_new_array();

	for (size_t i = 0; ports && i < ingress->https_count; i++) {
		json_object *port = json_object_new_int(ingress->https_ports[i]);

		if (!port || json_object_array_add(ports, port) < 0) {
			json_object_put(port);
			json_object_put(ports);
			return NULL;
		}
	}
	return ports;
}

json_object *abx__ingress_json(const abx__ingress *ingress)
{
	json_object *obj = json_object_new_object();
	int r = obj ? abx__field_set_bool(obj, "allowPublicTraffic", !ingress->closed)
		    : ABX_ENOMEM;

	if (r == ABX_OK && ingress->mask_host[0])
		r = abx__field_set_str(obj, "maskRequestHost", ingress->mask_host);
	if (r == ABX_OK && ingress->https_count)
		r = abx__field_take(obj, "httpsPorts", ports_json(ingress));
	if (r < 0) {
		json_object_put(obj);
		return NULL;
	}
	return obj;
}

void abx__ingress_read(json_object *obj, abx__ingress *ret)
{
	const char *mask = abx__field_str(obj, "maskRequestHost");
	json_object *ports = abx__field_array(obj, "httpsPorts");

	memset(ret, 0, sizeof(*ret));
	ret->closed = !abx__field_bool(obj, "allowPublicTraffic", false);
	if (mask && abx__ingress_check_mask(mask, NULL) == ABX_OK)
		abx__str_copy(ret->mask_host, sizeof(ret->mask_host), mask);
	for (size_t i = 0;
	     i < abx__array_count(ports) && ret->https_count < ABX__INGRESS_HTTPS_MAX;
	     i++) {
		int64_t port = json_object_get_int64(json_object_array_get_idx(ports, i));

		if (abx__ingress_check_https_port(port, NULL) == ABX_OK)
			ret->https_ports[ret->https_count++] = (uint16_t)port;
	}
}
