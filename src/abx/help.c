/*
 * src/abx/help.c - the table of commands and the help pages made of it.
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "help.h"
#include "sight.h"

static int help_command(const struct cli_args *args)
{
	if (args->n_words == 1 && strcmp(args->words[0], "man") == 0)
		return cli_man();
	return cli_help(args);
}

const struct cli_command cli_commands[] = {
	{ "create", CLI_CREATE, cmd_create,
	  "create --template NAME [--env KEY=VALUE]... [--image IMAGE] [--timeout TIME]\n"
	  "       [--on-timeout kill|pause] [--auto-resume]\n"
	  "       abx create envs|templates -f FILE\n"
	  "       abx create envs NAME pools -f FILE",
	  "Claims a sandbox and prints its id; or, with a resource word, makes what the "
	  "file says." },
	{ "run", CLI_RUN, cmd_run,
	  "run [--template NAME] [--env KEY=VALUE]... -- COMMAND [ARGUMENT...]",
	  "Claims a sandbox, runs one command in it as exec does, kills it." },
	{ "exec", CLI_EXEC, cmd_exec,
	  "exec ID [--env KEY=VALUE]... -- COMMAND [ARGUMENT...]",
	  "Runs a command in a sandbox: its output, its exit code and, unless it is a "
	  "terminal, our stdin.\n"
	  "A single word with a blank or a shell's sign in it is a line for bash -l -c; "
	  "otherwise the words\n"
	  "are run as they are, without a shell." },
	{ "shell", CLI_SHELL, cmd_shell,
	  "shell ID [--env KEY=VALUE]... [-- COMMAND [ARGUMENT...]]",
	  "A terminal of a sandbox in this one: a login shell, or the command.\n"
	  "Its exit code is passed on. At the begin of a line ~. ends it, ~~ types a ~, "
	  "~? "
	  "tells." },
	{ "cp", CLI_CP, cmd_cp, "cp FILE... ID:PATH\n       abx cp ID:FILE... PATH",
	  "Copies files into a sandbox or out of it; - is stdin or stdout." },
	{ "ls", CLI_LS, cmd_ls, "ls ID [PATH]", "Lists a directory of a sandbox." },
	{ "watch", CLI_WATCH, cmd_watch, "watch ID PATH [--recursive]",
	  "What happens in a directory of a sandbox, a line each, until Ctrl-C: create, "
	  "write, remove,\nrename (the old name; the new one is a create), chmod." },
	{ "pause", CLI_PAUSE, cmd_pause, "pause ID... [--files-only]",
	  "Pauses sandboxes: files and memory are kept, nothing in them runs." },
	{ "resume", CLI_RESUME, cmd_resume, "resume ID... [--timeout TIME] [--reboot]",
	  "Makes paused sandboxes run again, where they were." },
	{ "logs", CLI_LOGS, cmd_logs, "logs [-f] ID",
	  "What a sandbox's container wrote, and what the platform did with it." },
	{ "metrics", CLI_METRICS, cmd_metrics, "metrics ID",
	  "What a sandbox used: processor, memory, disk." },
	{ "snapshot", CLI_SNAPSHOT, cmd_snapshot, "snapshot ID [--name NAME]",
	  "Keeps what a sandbox is now, and prints the snapshot's id: abx create "
	  "--template takes it." },
	{ "snapshots", CLI_SNAPSHOTS, cmd_snapshots,
	  "snapshots [SANDBOX] [--name NAME]\n       abx delete snapshots ID...",
	  "Lists snapshots." },
	{ "fork", CLI_FORK, cmd_fork, "fork ID [--count N] [--timeout TIME]",
	  "Makes more of a sandbox as it is now, and prints their ids." },
	{ "kill", CLI_KILL, cmd_kill, "kill ID...",
	  "Ends sandboxes and everything in them." },
	{ "update", CLI_UPDATE, cmd_update,
	  "update envs|templates NAME -f FILE\n       abx update envs NAME pools POOL -f "
	  "FILE",
	  "Changes one object to what the file says: what the file leaves out is "
	  "removed." },
	{ "delete", CLI_DELETE, cmd_delete,
	  "delete envs|templates NAME\n       abx delete envs NAME pools POOL\n"
	  "       abx delete snapshots ID...",
	  "Deletes one object." },
	{ "scale", CLI_SCALE, cmd_scale, "scale envs NAME pools POOL --replicas N",
	  "Sets how many Pods a pool keeps." },
	{ "approve", CLI_ACT, cmd_approve, "approve approvals ID",
	  "Lets a held write of an agent key through, once." },
	{ "deny", CLI_ACT, cmd_deny, "deny approvals ID",
	  "Refuses a held write of an agent key." },
	{ "promote", CLI_ACT, cmd_promote, "promote admin-api-keys ID",
	  "Makes a key known to all clusters." },
	{ "whoami", CLI_WHOAMI, cmd_whoami, "whoami",
	  "Whose key this is, and what it may do." },
	{ "context", CLI_CONTEXT, cmd_context,
	  "context [list]\n       abx context set NAME [--endpoint URL | --cluster-api "
	  "URL] "
	  "[--api-key KEY]\n"
	  "       [--cluster ID] [--auth-scheme NAME]\n"
	  "       abx context use NAME\n       abx context remove NAME",
	  "Deployments that are known by name, in ~/.config/abx/config.json." },
	{ "contexts", CLI_CONTEXT, cmd_context, "contexts", "The same as context." },
	{ "agent-context", CLI_AGENT_CONTEXT, cmd_agent_context, "agent-context",
	  "All of abx as one JSON document, for a program that is to use it." },
	{ "completion", CLI_COMPLETION, cmd_completion, "completion bash|zsh|fish",
	  "A script that completes abx's words: . <(abx completion bash)" },
	{ "upgrade", CLI_UPGRADE, cmd_upgrade, "upgrade [--check] [--force]",
	  "Says how abx is upgraded." },
	{ "help", CLI_HELP, help_command, "help [COMMAND]",
	  "This text, or a command's." },
	{ 0 },
};

const struct cli_command *cli_command_find(const char *word)
{
	for (const struct cli_command *c = cli_commands; c->word != NULL; c++)
		if (strcmp(c->word, word) == 0)
			return c;
	return NULL;
}

static int help_one(const struct cli_command *command)
{
	printf("usage: abx %s\n\n%s\n\n", command->usage, command->text);
	cli_args_print_flags(command->bit == CLI_CREATE ? CLI_CREATE | CLI_MAKE
							: command->bit);
	if (command->bit == CLI_CONTEXT) {
		puts("\nContexts:");
		return cli_contexts_print(false);
	}
	return 0;
}

static int help_root(const struct cli_args *args)
{
	struct cli_sight sight;

	puts("abx - sandboxes from warm pools, and the platform that keeps them\n\n"
	     "usage: abx COMMAND ...\n"
	     "       abx RESOURCE [NAME [SUB [NAME]]]\n\nCommands:");
	for (const struct cli_command *c = cli_commands; c->word != NULL; c++)
		printf("  %-13s  %.*s\n", c->word, (int)strcspn(c->text, "\n:;"),
		       c->text);
	puts("\nResources:");
	cli_sight_load(args, &sight);
	for (const struct cli_resource *r = cli_resources; r->plural != NULL; r++) {
		char name[64];

		if (!cli_sight_shows(&sight, r))
			continue;
		snprintf(name, sizeof(name), "%s%s%s", r->parent != NULL ? r->parent : "",
			 r->parent != NULL ? " NAME " : "", r->plural);
		printf("  %-20s  %.*s\n", name, (int)strcspn(r->text, ".:"), r->text);
	}
	cli_sight_done(&sight);
	puts("\nabx COMMAND --help and abx RESOURCE --help tell more. For example:\n"
	     "  abx run -- python3 -c 'print(6 * 7)'\n"
	     "  id=$(abx create --template base); abx exec $id -- uname -a; abx kill "
	     "$id\n\nGlobal flags:");
	cli_args_print_flags(CLI_HELP);
	return 0;
}

/* The deepest resource the words name, for its page; a child may stand alone. */
static const struct cli_resource *resource_of(const char *const *words, size_t n)
{
	const struct cli_resource *r = cli_resource_find(words[0], NULL);
	const struct cli_resource *sub = NULL;

	for (size_t i = 1; r != NULL && sub == NULL && i < n; i++)
		sub = cli_resource_find(words[i], r->plural);
	for (const struct cli_resource *any = cli_resources;
	     r == NULL && any->plural != NULL; any++)
		if (cli_resource_is(any, words[0]))
			r = any;
	return sub != NULL ? sub : r;
}

static const struct {
	enum cli_command_bit bit;
	unsigned verb;
} write_verbs[] = {
	{ CLI_CREATE, CLI_VERB_CREATE },
	{ CLI_UPDATE, CLI_VERB_UPDATE },
	{ CLI_DELETE, CLI_VERB_DELETE },
	{ CLI_SCALE, CLI_VERB_SCALE },
};

/* `abx create envs --help`: the file it takes. NULL: no such page. */
static const struct cli_resource *write_page(const struct cli_command *command,
					     const char *const *words, size_t n,
					     unsigned *ret_verb)
{
	for (size_t i = 0; n > 0 && i < sizeof(write_verbs) / sizeof(write_verbs[0]); i++)
		if (write_verbs[i].bit == command->bit) {
			*ret_verb = write_verbs[i].verb;
			return resource_of(words, n);
		}
	return NULL;
}

int cli_help(const struct cli_args *args)
{
	const struct cli_command *command;
	const char *const *words = args->words;
	size_t n = args->n_words;
	unsigned verb = 0;

	if (n > 1 && strcmp(words[0], "help") == 0) {
		words++;
		n--;
	}
	if (n == 0 || (n == 1 && strcmp(words[0], "help") == 0 && !args->help))
		return help_root(args);
	command = cli_command_find(words[0]);
	if (command != NULL) {
		const struct cli_resource *r =
			write_page(command, words + 1, n - 1, &verb);

		return r != NULL ? cli_help_write(r, verb) : help_one(command);
	}
	const struct cli_resource *resource = resource_of(words, n);
	if (resource != NULL)
		return cli_help_resource(resource);
	return cli_fail("abx --help lists them", "no command or resource \"%s\"",
			words[0]);
}
