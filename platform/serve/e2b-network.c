/*
 * e2b-network.c - a sandbox's network configuration: of what is let in all is honoured;
 * of what goes out nothing is filtered here yet, so only what filters nothing is taken.
 */
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "control/ingress.h"
#include "serve/e2b.h"

int abx__e2b_egress_check(json_object *network, abx_error **reterr)
{
	static const char *const fields[] = { "allowOut", "denyOut", "egressProxy",
					      "rules", "dnsServers" };
	int r = ABX_OK;

	for (size_t i = 0; r == ABX_OK && i < sizeof(fields) / sizeof(fields[0]); i++) {
		char name[64] = "network.";

		abx__str_copy(name + 8, sizeof(name) - 8, fields[i]);
		r = abx__e2b_only_empty(network, fields[i], name, reterr);
	}
	return r;
}

static int parse_https_ports(json_object *network, abx__ingress *ret, abx_error **reterr)
{
	json_object *ports = NULL;
	int r = abx__json_get_array(network, "httpsPorts", &ports, reterr);

	if (r < 0)
		return abx__error_prefix(reterr, "network");

	for (size_t i = 0; r == 1 && i < json_object_array_length(ports); i++) {
		json_object *port = json_object_array_get_idx(ports, i);

		if (ret->https_count == ABX__INGRESS_HTTPS_MAX)
			return abx__error_set(reterr, ABX_EINVAL,
					      "network.httpsPorts has over %d ports",
					      ABX__INGRESS_HTTPS_MAX);
		if (!json_object_is_type(port, json_type_int))
			return abx__error_set(reterr, ABX_EINVAL,
					      "network.httpsPorts must be integers");
		if (abx__ingress_check_https_port(json_object_get_int64(port), reterr) <
		    0)
			return ABX_EINVAL;
		ret->https_ports[ret->https_count++] =
			(uint16_t)json_object_get_int64(port);
	}
	return ABX_OK;
}

static int parse_ingress(json_object *network, bool secure, abx__ingress *ret,
			 abx_error **reterr)
{
	const char *mask = NULL;
	bool is_public = true;
	int r = abx__json_get_bool(network, "allowPublicTraffic", &is_public, reterr);

	if (r < 0)
		return abx__error_prefix(reterr, "network");
	if (!is_public && !secure)
		return abx__error_set(reterr, ABX_EINVAL,
				      "You cannot create a sandbox without public access "
				      "unless you enable secure envd access via 'secure' "
				      "flag.");
	ret->closed = !is_public;
	r = abx__json_get_str(network, "maskRequestHost", &mask, reterr);
	if (r < 0)
		return abx__error_prefix(reterr, "network");
	if (mask && abx__ingress_check_mask(mask, reterr) < 0)
		return ABX_EINVAL;
	if (mask)
		abx__str_copy(ret->mask_host, sizeof(ret->mask_host), mask);
	return parse_https_ports(network, ret, reterr);
}

int abx__e2b_network_parse(json_object *body, bool secure, abx__ingress *ret,
			   abx_error **reterr)
{
	static const char *const known[] = {
		"allowPublicTraffic", "allowOut",        "denyOut",
		"egressProxy",        "maskRequestHost", "rules",
		"httpsPorts",         "dnsServers",      NULL
	};
	json_object *network = NULL;
	int r = abx__json_get_object(body, "network", &network, reterr);

	if (r <= 0)
		return r;
	r = abx__json_only(network, known, reterr);
	if (r < 0)
		return abx__error_prefix(reterr, "network");
	r = abx__e2b_egress_check(network, reterr);
	return r < 0 ? r : parse_ingress(network, secure, ret, reterr);
}
