/* src/abx/table.h - tables for people (libsmartcols), JSON for programs (json-c). */
#ifndef ABX_CLI_TABLE_H
#define ABX_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>

struct json_object;
struct cli_table;

/* Columns two blanks apart, a heading over each; bit i of `right` puts column i to the
 * right. NULL: out of memory. */
struct cli_table *cli_table_new(const char *const *heads, size_t n, unsigned right);
/* One row; `cells` has as many texts as there are heads. */
void cli_table_add(struct cli_table *table, const char *const *cells);
void cli_table_print(struct cli_table *table);
void cli_table_free(struct cli_table *table);

/* One line of comma-separated values. */
void cli_print_csv(const char *const *cells, size_t n);
/* Over several lines, two blanks deep. */
void cli_print_pretty(struct json_object *o);
/* One compact line. */
void cli_print_json(struct json_object *o);
/* A value as a cell: "-" dash for nothing, a,b for lists, k=v for maps. To be freed with
 * free(). */
char *cli_cell(struct json_object *value);
/* The value at a path of names with dots between, or field["a.b"]; or NULL. */
struct json_object *cli_json_at(struct json_object *o, const char *path);

#endif
