/*
 * options.c - options structs of any age become the one this library knows.
 */
#include "client/options.h"

#include <string.h>

#include <agentbox/agentbox.h>

#include "base/error.h"

int abx__options_copy(void *dst, size_t size, const void *src, const char *name,
		      abx_error **reterr)
{
	const unsigned char *bytes = src;
	size_t given;

	memset(dst, 0, size);
	memcpy(dst, &size, sizeof(size));
	if (!src)
		return ABX_OK;
	memcpy(&given, src, sizeof(given));
	if (given < sizeof(size_t) || given > 4096) {
		abx__error_set(reterr, ABX_EINVAL,
			       "%s: size %zu is not the size of a struct", name, given);
		abx__error_hint(
			reterr,
			"start from its ..._OPTIONS_INIT macro or _init function");
		return ABX_EINVAL;
	}
	for (size_t i = size; i < given; i++)
		if (bytes[i])
			return abx__error_set(
				reterr, ABX_EINVAL,
				"%s uses options that libagentbox %s does not know", name,
				abx_version());
	memcpy((char *)dst + sizeof(size_t), bytes + sizeof(size_t),
	       (given < size ? given : size) - sizeof(size_t));
	return ABX_OK;
}

#define INIT(type)                              \
	void type##_init(type *opts)            \
	{                                       \
		memset(opts, 0, sizeof(*opts)); \
		opts->size = sizeof(*opts);     \
	}

INIT(abx_client_options)
INIT(abx_sandbox_options)
INIT(abx_sandbox_connect_options)
INIT(abx_sandbox_pause_options)
INIT(abx_sandbox_list_options)
INIT(abx_code_options)
INIT(abx_command_options)
INIT(abx_pty_options)
INIT(abx_file_options)
INIT(abx_file_url_options)
INIT(abx_watch_options)
INIT(abx_metrics_options)
INIT(abx_logs_options)
INIT(abx_snapshot_options)
INIT(abx_snapshot_list_options)
INIT(abx_fork_options)
INIT(abx_apply_options)
INIT(abx_context_options)
