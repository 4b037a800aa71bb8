/*
 * src/abx/man.c - the man page, made of the same tables as help: `abx help man` prints it
 * when the package is built.
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "help.h"

/* Text of a man page: no line begins a request, and a dash is a dash. */
static void print_text(const char *text)
{
	bool begins = true;

	for (; *text != '\0'; text++) {
		if (begins && (*text == '.' || *text == '\''))
			fputs("\\&", stdout);
		if (*text == '\\' || *text == '-')
			putchar('\\');
		if (*text == '\\')
			putchar('e');
		else
			putchar(*text);
		begins = *text == '\n';
	}
	putchar('\n');
}

static void print_term(const char *term, const char *text)
{
	puts(".TP");
	fputs(".B ", stdout);
	print_text(term);
	print_text(text);
}

static void print_commands(void)
{
	puts(".SH COMMANDS");
	for (const struct cli_command *c = cli_commands; c->word != NULL; c++) {
		puts(".TP\n.nf");
		fputs("abx ", stdout);
		print_text(c->usage);
		puts(".fi");
		print_text(c->text);
	}
}

static void print_columns(const struct cli_resource *r)
{
	fputs("Columns: ", stdout);
	for (const struct cli_column *c = r->columns; c->id != NULL; c++)
		printf("%s%s%s%s", c == r->columns ? "" : ", ", c->id,
		       (c->flags & CLI_COL_FILTER) != 0 ? "*" : "",
		       (c->flags & CLI_COL_WIDE) != 0 ? " (wide)" : "");
	puts(".");
}

static void print_resources(void)
{
	puts(".SH RESOURCES\nA column with a star is a key of \\-\\-filter.");
	for (const struct cli_resource *r = cli_resources; r->plural != NULL; r++) {
		char at[128];

		snprintf(at, sizeof(at), "%s%s%s%s", r->parent != NULL ? r->parent : "",
			 r->parent != NULL ? " NAME " : "", r->plural,
			 (r->flags & CLI_RES_GET) != 0 ? " [NAME]" : "");
		print_term(at, r->text);
		print_columns(r);
	}
}

int cli_man(void)
{
	printf(".\\\" Made of the tables of src/abx.\n.TH ABX 1 \"\" \"libagentbox %s\" "
	       "\"User Commands\"\n",
	       abx_version());
	puts(".SH NAME\nabx \\- sandboxes from warm pools, and the platform that keeps "
	     "them\n.SH SYNOPSIS\n.B abx\n.I COMMAND\n[...]\n.br\n.B abx\n.I RESOURCE\n"
	     "[\\fINAME\\fR [\\fISUB\\fR [\\fINAME\\fR]]] [\\fIFLAG\\fR...]");
	print_commands();
	print_resources();
	puts(".SH FLAGS\nWhich command knows which, \\fBabx COMMAND \\-\\-help\\fR "
	     "tells.");
	cli_args_each(print_term);
	puts(".SH EXIT STATUS\n0; 1 for every error, with what to do on stderr. exec, "
	     "run and shell pass the command's own on, 128 + its number for a "
	     "signal.\n.SH FILES\n.TP\n.I ~/.config/abx/config.json\nThe known "
	     "deployments, with their keys: mode 0600.\n.SH SEE ALSO\n"
	     "The library's documentation, docs/abx.md, and agentboxd.");
	return 0;
}
