/* src/abx/help.h - the pages made of the registry. */
#ifndef ABX_CLI_HELP_H
#define ABX_CLI_HELP_H

#include "resources.h"

/* The man page, on stdout. */
int cli_man(void);
int cli_help_resource(const struct cli_resource *resource);
/* Of the file that `verb` takes; the resource's own page when it takes none. */
int cli_help_write(const struct cli_resource *resource, unsigned verb);

#endif
