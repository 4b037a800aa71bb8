/*
 * options.h - the daemon's command line.
 */
#ifndef ABX_ENVD_OPTIONS_H
#define ABX_ENVD_OPTIONS_H

#include <stdbool.h>

#include "envd/envd.h"

enum abx__envd_action {
	ABX__ENVD_RUN,
	ABX__ENVD_PRINT_VERSION,
	ABX__ENVD_PRINT_COMMIT,
	ABX__ENVD_PRINT_HELP
};

/* One dash or two, values behind '=' or as the next word. ABX_EINVAL names what is wrong.
 * Strings stay argv's. */
int abx__envd_options_read(int argc, char **argv, abx__envd_options *opts,
			   enum abx__envd_action *ret_action, abx_error **reterr);
extern const char abx__envd_help[];

#endif
