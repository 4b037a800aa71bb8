/*
 * abx - the command line of libagentbox.
 *
 * The first word is a command, or a resource of the platform that is to be read. Exit
 * codes: 0, 1 for every error; exec and run pass the command's own on.
 */
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

/* Former spellings and what they are now. */
static int fail_former(const char *word)
{
	static const char *const former[][2] = {
		{ "apply", "abx create RESOURCE -f FILE makes it, abx update RESOURCE "
			   "NAME -f FILE changes it" },
		{ "patch", "there is no partial write: abx update RESOURCE NAME -f FILE "
			   "puts the whole object" },
		{ "post", "abx create RESOURCE -f FILE" },
		{ "get", "without a verb: abx envs, abx envs NAME" },
	};

	for (size_t i = 0; i < sizeof(former) / sizeof(former[0]); i++)
		if (strcmp(former[i][0], word) == 0)
			return cli_fail(former[i][1], "abx has no \"%s\"", word);
	return 0;
}

/* `abx envs create -f FILE`: a verb behind its address. */
static int fail_misplaced(const struct cli_args *args)
{
	char line[512];
	size_t used;

	if (args->n_words < 2 || (args->file == NULL && args->replicas == NULL))
		return 0;
	const char *last = args->words[args->n_words - 1];
	if (cli_command_find(last) == NULL)
		return 0;
	used = (size_t)snprintf(line, sizeof(line), "abx %s", last);
	for (size_t i = 0; i + 1 < args->n_words && used < sizeof(line); i++)
		used += (size_t)snprintf(line + used, sizeof(line) - used, " %s",
					 args->words[i]);
	if (args->file != NULL && used < sizeof(line))
		snprintf(line + used, sizeof(line) - used, " -f %s", args->file);
	else if (used < sizeof(line))
		snprintf(line + used, sizeof(line) - used, " --replicas %s",
			 args->replicas);
	return cli_fail(line, "the verb comes first");
}

static void shift(struct cli_args *args)
{
	memmove(args->words, args->words + 1, args->n_words * sizeof(args->words[0]));
	args->n_words--;
	if (args->n_before > 0)
		args->n_before--;
}

static int dispatch(struct cli_args *args)
{
	const struct cli_command *command = cli_command_find(args->words[0]);
	int r;

	if (command == NULL) {
		if (fail_former(args->words[0]) != 0 || fail_misplaced(args) != 0)
			return 1;
		r = cli_args_check(args, CLI_READ, args->words[0]);
		return r != 0 ? r : cmd_read(args);
	}
	/* With a resource word, create is another command: one of the platform. */
	bool makes = command->bit == CLI_CREATE && args->n_words > 1;
	r = cli_args_check(args, makes ? CLI_MAKE : command->bit, command->word);
	if (r != 0)
		return r;
	shift(args);
	return command->run(args);
}

static int finish(int r)
{
	if (fflush(stdout) != 0 && r == 0)
		return cli_fail(NULL, "stdout could not be written");
	return r;
}

int main(int argc, char **argv)
{
	static struct cli_args args;
	int r;

	setlocale(LC_ALL, "");
	if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		setlocale(LC_CTYPE, "C.UTF-8");
	r = cli_args_parse(argc, argv, &args);
	if (r != 0)
		return r;
	if (args.version ||
	    (args.n_words == 1 && strcmp(args.words[0], "version") == 0)) {
		printf("%s\n", abx_version());
		return 0;
	}
	if (args.schema && !args.help)
		return finish(cmd_schema(&args));
	if (args.n_words == 0 || args.help)
		return finish(cli_help(&args));
	return finish(dispatch(&args));
}
