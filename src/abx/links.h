/* src/abx/links.h - what stands below a table or a detail: view:, read: and hint:. */
#ifndef ABX_CLI_LINKS_H
#define ABX_CLI_LINKS_H

#include "address.h"
#include "cli.h"

/* " · CLUSTER", or nothing. */
void cli_print_cluster(abx_client *client, const struct cli_address *address);
/* The blocks below an answer; `row_name`: of the first row of a list, or NULL; `note`: a
 * line above the hints, or NULL. */
void cli_print_links(abx_client *client, const struct cli_address *address,
		     const char *row_name, const char *note);
/* The console's page of an address; false: it has none. */
bool cli_console_page(abx_client *client, const struct cli_address *address, char *buf,
		      size_t size);
/* The address of a documentation page, or NULL: this build knows none. To be freed with
 * free(). */
char *cli_docs_url(const char *slug);

#endif
