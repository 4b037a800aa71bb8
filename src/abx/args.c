/*
 * src/abx/args.c - reading a command line.
 *
 * One table names every flag, what it takes and which commands know it.
 * getopt_long_only() reads them wherever they stand, with one dash or two, up to "--";
 * cli_args_check() then refuses those the command does not know.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum flag_kind { FLAG_SWITCH, FLAG_VALUE, FLAG_LIST };

struct flag {
	const char *name;
	char letter;
	enum flag_kind kind;
	size_t offset; /* of the bool, the pointer or the array in struct cli_args */
	size_t count_offset; /* FLAG_LIST: of its count */
	unsigned commands;
	const char *value;
	const char *text;
};

#define AT(field) offsetof(struct cli_args, field)
#define MAKES (CLI_CREATE | CLI_RUN)
#define STARTS (CLI_RUN | CLI_EXEC | CLI_SHELL)
#define SHOWS (CLI_ANY & ~(STARTS | CLI_CP | CLI_HELP | CLI_COMPLETION | CLI_UPGRADE))

static const struct flag flags[] = {
	{ "template", 't', FLAG_VALUE, AT(template_id), 0, MAKES, "NAME",
	  "env to take a sandbox from: [CLUSTER::]NAME[//IMAGE]; default for run: base" },
	{ "image", 0, FLAG_VALUE, AT(image), 0, MAKES, "IMAGE",
	  "container image instead of the env's own" },
	{ "env", 'e', FLAG_LIST, AT(env_vars), AT(n_env_vars), MAKES | STARTS,
	  "KEY=VALUE", "a variable for the processes in the sandbox; repeatable" },
	{ "metadata", 'm', FLAG_LIST, AT(metadata), AT(n_metadata), MAKES, "KEY=VALUE",
	  "kept with the sandbox; repeatable" },
	{ "timeout", 0, FLAG_VALUE, AT(timeout), 0,
	  MAKES | CLI_EXEC | CLI_RESUME | CLI_FORK, "TIME",
	  "create, resume, fork: idle time the sandbox lives; run, exec: time the "
	  "command may "
	  "take. "
	  "90, 30s, 5m, 1h" },
	{ "on-timeout", 0, FLAG_VALUE, AT(on_timeout), 0, CLI_CREATE, "WHAT",
	  "kill or pause: what happens after --timeout without traffic; default: kill" },
	{ "auto-resume", 0, FLAG_SWITCH, AT(auto_resume), 0, CLI_CREATE, NULL,
	  "traffic to it resumes it when it is paused" },
	{ "files-only", 0, FLAG_SWITCH, AT(files_only), 0, CLI_PAUSE, NULL,
	  "keep its files, not its memory" },
	{ "reboot", 0, FLAG_SWITCH, AT(reboot), 0, CLI_RESUME, NULL,
	  "begin anew, with its files but without its memory" },
	{ "name", 0, FLAG_VALUE, AT(name), 0, CLI_SNAPSHOT | CLI_SNAPSHOTS, "NAME",
	  "of the snapshot; a-z, 0-9, - and _" },
	{ "count", 0, FLAG_VALUE, AT(count), 0, CLI_FORK, "N", "forks; default: 1" },
	{ "follow", 'f', FLAG_SWITCH, AT(follow), 0, CLI_LOGS, NULL,
	  "go on with what comes, until Ctrl-C" },
	{ "user", 'u', FLAG_VALUE, AT(user), 0, STARTS | CLI_CP | CLI_LS | CLI_WATCH,
	  "NAME", "account in the sandbox" },
	{ "cwd", 0, FLAG_VALUE, AT(cwd), 0, STARTS, "PATH",
	  "working directory of the command" },
	{ "stdin", 'i', FLAG_SWITCH, AT(stdin_open), 0, CLI_RUN | CLI_EXEC, NULL,
	  "pass stdin on even when it is a terminal" },
	{ "recursive", 'r', FLAG_SWITCH, AT(recursive), 0, CLI_WATCH, NULL,
	  "everything below the directory too" },
	{ "file", 'f', FLAG_VALUE, AT(file), 0, CLI_MAKE | CLI_UPDATE, "FILE",
	  "YAML or JSON; - is stdin" },
	{ "replicas", 0, FLAG_VALUE, AT(replicas), 0, CLI_SCALE, "N",
	  "Pods to keep in the pool" },
	{ "json", 0, FLAG_SWITCH, AT(json), 0, SHOWS, NULL,
	  "compact JSON on one line, for programs" },
	{ "csv", 0, FLAG_SWITCH, AT(csv), 0, CLI_READ, NULL,
	  "comma-separated values, a heading line first" },
	{ "format", 0, FLAG_VALUE, AT(format), 0, CLI_READ, "NAME",
	  "table, json or csv" },
	{ "wide", 0, FLAG_SWITCH, AT(wide), 0, CLI_READ, NULL, "more columns" },
	{ "filter", 0, FLAG_LIST, AT(filters), AT(n_filters), CLI_READ, "KEY=VALUE",
	  "only rows of a list whose column KEY has VALUE in it; repeatable" },
	{ "limit", 0, FLAG_VALUE, AT(limit), 0, CLI_READ, "N",
	  "rows of a table; default: 200" },
	{ "watch", 0, FLAG_SWITCH, AT(watch), 0, CLI_READ, NULL,
	  "the list again every two seconds, until Ctrl-C" },
	{ "editable", 0, FLAG_SWITCH, AT(editable), 0, CLI_READ, NULL,
	  "the file that update would take, of one object" },
	{ "schema", 0, FLAG_SWITCH, AT(schema), 0, CLI_MAKE | CLI_UPDATE, NULL,
	  "what the file may hold, as JSON; needs no platform" },
	{ "check", 0, FLAG_SWITCH, AT(check_only), 0, CLI_UPGRADE, NULL,
	  "only say whether there is a newer one" },
	{ "force", 0, FLAG_SWITCH, AT(force), 0, CLI_UPGRADE, NULL,
	  "also when it is the same" },
	{ "context", 0, FLAG_VALUE, AT(context), 0, CLI_ANY, "NAME",
	  "stored deployment to use" },
	{ "cluster", 0, FLAG_VALUE, AT(cluster), 0, CLI_ANY, "ID",
	  "cluster behind a console" },
	{ "endpoint", 0, FLAG_VALUE, AT(endpoint), 0, CLI_ANY, "URL",
	  "a console's base address" },
	{ "cluster-api", 0, FLAG_VALUE, AT(cluster_api), 0, CLI_ANY, "URL",
	  "one cluster's own API" },
	{ "socket", 0, FLAG_VALUE, AT(socket_path), 0, CLI_ANY, "PATH",
	  "Unix socket of an agentboxd" },
	{ "state-dir", 0, FLAG_VALUE, AT(state_dir), 0, CLI_ANY, "DIR",
	  "state directory of the local engine" },
	{ "api-key", 0, FLAG_VALUE, AT(api_key), 0, CLI_ANY, "KEY", "credential" },
	{ "auth-scheme", 0, FLAG_VALUE, AT(auth_scheme), 0, CLI_ANY, "NAME",
	  "api-key or bearer" },
	{ "version", 0, FLAG_SWITCH, AT(version), 0, CLI_ANY, NULL, "print the version" },
	{ "help", 'h', FLAG_SWITCH, AT(help), 0, CLI_ANY, NULL, "this text" },
};
#define N_FLAGS (sizeof(flags) / sizeof(flags[0]))
_Static_assert(N_FLAGS < 64, "struct cli_args.seen has a bit for each");

static void flag_list(unsigned commands, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < N_FLAGS; i++) {
		if ((flags[i].commands & commands) == 0)
			continue;
		int n = snprintf(buf + used, size - used, "%s--%s", used > 0 ? " " : "",
				 flags[i].name);
		if (n < 0 || (size_t)n >= size - used)
			return;
		used += (size_t)n;
	}
}

static int fail_unknown(const char *flag, unsigned commands, const char *word)
{
	char known[1024], hint[1200];

	flag_list(commands, known, sizeof(known));
	snprintf(hint, sizeof(hint), "known flags%s%s: %s", word != NULL ? " of " : "",
		 word != NULL ? word : "", known);
	return cli_fail(hint, "unknown flag %s", flag);
}

static bool name_has_blank(const char *pair)
{
	for (; *pair != '='; pair++)
		if ((unsigned char)*pair <= ' ' || *pair == 0x7f)
			return true;
	return false;
}

/* Values may be secrets: no message shows more than a name. */
static int take_list(struct cli_args *args, const struct flag *flag, const char *value)
{
	const char **list = (const char **)((char *)args + flag->offset);
	size_t *count = (size_t *)((char *)args + flag->count_offset);

	if (list == args->filters && (value[0] == '=' || strchr(value, '=') == NULL))
		return cli_fail("the key is a column's heading: --filter name=base",
				"--filter needs KEY=VALUE, not \"%s\"", value);
	if (value[0] == '=')
		return cli_fail("for example --env GREETING=hello",
				"--%s: the name before the \"=\" is empty", flag->name);
	if (strchr(value, '=') == NULL)
		return cli_fail("for example --env GREETING=hello",
				"--%s needs %s, not \"%s\"", flag->name, flag->value,
				value);
	if (list == args->env_vars && name_has_blank(value))
		return cli_fail("quotes go around NAME=VALUE as a whole",
				"--%s: the name \"%.*s\" has a blank or a control "
				"character in it",
				flag->name, (int)strcspn(value, "="), value);
	if (*count >= CLI_MAX_ENV)
		return cli_fail(NULL, "more than %d times --%s", CLI_MAX_ENV, flag->name);
	list[(*count)++] = value;
	return 0;
}

static int take(struct cli_args *args, size_t index, const char *value)
{
	const struct flag *flag = &flags[index];

	args->seen |= UINT64_C(1) << index;
	switch (flag->kind) {
	case FLAG_SWITCH:
		*(bool *)((char *)args + flag->offset) = true;
		return 0;
	case FLAG_VALUE:
		*(const char **)((char *)args + flag->offset) = value;
		return 0;
	case FLAG_LIST:
		return take_list(args, flag, value);
	}
	return 0;
}

static const struct flag *flag_named(const char *text)
{
	text += text[0] == '-';
	text += text[0] == '-';
	for (size_t i = 0; i < N_FLAGS; i++)
		if (strcmp(flags[i].name, text) == 0 ||
		    (flags[i].letter == text[0] && text[1] == '\0'))
			return &flags[i];
	return NULL;
}

/* The command the line is for, before it is read: a letter may stand for one flag here
 * and for another there. */
static unsigned command_of(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const struct flag *flag;

		if (argv[i][0] != '-') {
			const struct cli_command *command = cli_command_find(argv[i]);
			return command != NULL ? (unsigned)command->bit : CLI_READ;
		}
		flag = flag_named(argv[i]);
		i += flag != NULL && flag->kind != FLAG_SWITCH;
	}
	return 0;
}

/* Whether another flag of the same letter has it here. */
static bool has_letter(size_t index, unsigned command)
{
	for (size_t i = 0; i < N_FLAGS; i++) {
		if (i == index || flags[i].letter != flags[index].letter)
			continue;
		if ((flags[i].commands & command) != 0 ||
		    ((flags[index].commands & command) == 0 && i > index))
			return false;
	}
	return flags[index].letter != '\0';
}

/* The tables getopt wants: long ones give 256 and their index, so that they meet no
 * letter. */
static void getopt_tables(struct option *longs, char *letters, unsigned command)
{
	*letters++ = ':';
	for (size_t i = 0; i < N_FLAGS; i++) {
		longs[i] =
			(struct option){ flags[i].name,
					 flags[i].kind == FLAG_SWITCH ? no_argument
								      : required_argument,
					 NULL, 256 + (int)i };
		if (!has_letter(i, command))
			continue;
		*letters++ = flags[i].letter;
		if (flags[i].kind != FLAG_SWITCH)
			*letters++ = ':';
	}
	*letters = '\0';
	longs[N_FLAGS] = (struct option){ 0 };
}

static size_t flag_index(int option, unsigned command)
{
	if (option >= 256)
		return (size_t)(option - 256);
	for (size_t i = 0; i < N_FLAGS; i++)
		if (flags[i].letter == option && has_letter(i, command))
			return i;
	return N_FLAGS;
}

static int take_words(int argc, char **argv, struct cli_args *args)
{
	if (argc - optind > CLI_MAX_WORDS)
		return cli_fail(NULL, "more than %d words", CLI_MAX_WORDS);
	for (int i = optind; i < argc; i++)
		args->words[args->n_words++] = argv[i];
	return 0;
}

/* getopt moves words about, so those behind "--" are counted on the line as it was. */
static size_t words_after_dashes(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return (size_t)(argc - i - 1);
	return 0;
}

/* What is wrong in any command. */
static int check_values(struct cli_args *args)
{
	const char *format = args->format;

	if (args->limit != NULL &&
	    (args->limit[0] == '\0' || strlen(args->limit) > 6 ||
	     args->limit[strspn(args->limit, "0123456789")] != '\0'))
		return cli_fail("a number; without it: 200",
				"--limit \"%s\" is not a number of rows", args->limit);
	if (format != NULL && strcmp(format, "table") != 0 &&
	    strcmp(format, "json") != 0 && strcmp(format, "csv") != 0)
		return cli_fail("--format table, --format json, --format csv",
				"there is no format \"%s\"", format);
	/* --json wins over --csv, and both over --format. */
	if (format != NULL && !args->json && !args->csv) {
		args->json = strcmp(format, "json") == 0;
		args->csv = strcmp(format, "csv") == 0;
	}
	args->csv = args->csv && !args->json;
	return 0;
}

int cli_args_parse(int argc, char **argv, struct cli_args *ret)
{
	struct option longs[N_FLAGS + 1];
	char letters[3 * N_FLAGS + 2];
	size_t after = words_after_dashes(argc, argv);
	unsigned command = command_of(argc, argv);
	int option;

	getopt_tables(longs, letters, command);
	opterr = 0;
	while ((option = getopt_long_only(argc, argv, letters, longs, NULL)) != -1) {
		if (option == '?')
			return fail_unknown(argv[optind - 1], CLI_ANY, NULL);
		if (option == ':')
			return cli_fail(NULL, "%s needs a value", argv[optind - 1]);
		size_t i = flag_index(option, command);
		if (optarg != NULL && optarg == argv[optind - 1] && optarg[0] == '-' &&
		    optarg[1] != '\0')
			return cli_fail(
				"a value that begins with a dash is written --flag=VALUE",
				"--%s needs a value", flags[i].name);
		int r = take(ret, i, optarg);
		if (r != 0)
			return r;
	}
	int r = check_values(ret);
	if (r == 0)
		r = take_words(argc, argv, ret);
	if (r != 0)
		return r;
	ret->n_before = after <= ret->n_words ? ret->n_words - after : 0;
	return 0;
}

int cli_args_check(const struct cli_args *args, enum cli_command_bit bit,
		   const char *word)
{
	for (size_t i = 0; i < N_FLAGS; i++) {
		char name[64];

		if ((args->seen & (UINT64_C(1) << i)) == 0 ||
		    (flags[i].commands & bit) != 0)
			continue;
		snprintf(name, sizeof(name), "--%s", flags[i].name);
		return fail_unknown(name, bit, word);
	}
	return 0;
}

void cli_args_print_flags(unsigned commands)
{
	for (size_t i = 0; i < N_FLAGS; i++) {
		char left[64];

		if ((flags[i].commands & commands) == 0)
			continue;
		snprintf(left, sizeof(left), "--%s%s%s", flags[i].name,
			 flags[i].value != NULL ? " " : "",
			 flags[i].value != NULL ? flags[i].value : "");
		if (flags[i].letter != '\0')
			printf("  -%c, %-22s  %s\n", flags[i].letter, left,
			       flags[i].text);
		else
			printf("      %-22s  %s\n", left, flags[i].text);
	}
}

void cli_args_each(void (*print)(const char *flag, const char *text))
{
	for (size_t i = 0; i < N_FLAGS; i++) {
		char letter[8] = "", flag[96];

		if (flags[i].letter != '\0')
			snprintf(letter, sizeof(letter), "-%c, ", flags[i].letter);
		snprintf(flag, sizeof(flag), "%s--%s%s%s", letter, flags[i].name,
			 flags[i].value != NULL ? " " : "",
			 flags[i].value != NULL ? flags[i].value : "");
		print(flag, flags[i].text);
	}
}

const char *cli_args_flag_text(const char *name)
{
	for (size_t i = 0; i < N_FLAGS; i++)
		if (strcmp(flags[i].name, name) == 0)
			return flags[i].text;
	return "";
}

void cli_args_offer(unsigned commands, const char *begun)
{
	for (size_t i = 0; i < N_FLAGS; i++) {
		char name[64];

		snprintf(name, sizeof(name), "--%s", flags[i].name);
		if ((flags[i].commands & commands) != 0 &&
		    strncmp(name, begun, strlen(begun)) == 0)
			puts(name);
	}
}

static int64_t unit_ms(const char **at)
{
	const char *s = *at;

	if (s[0] == 'm' && s[1] == 's')
		return (*at += 2, 1);
	switch (*s) {
	case '\0':
		return 1000;
	case 's':
		return (*at += 1, 1000);
	case 'm':
		return (*at += 1, 60 * 1000);
	case 'h':
		return (*at += 1, 3600 * 1000);
	default:
		return 0;
	}
}

int cli_args_timeout(const char *text, uint32_t *ret_ms)
{
	const char *at = text;
	int64_t total = 0;

	do {
		char *end;

		if (!isdigit((unsigned char)*at))
			goto wrong;
		errno = 0;
		long n = strtol(at, &end, 10);
		if (errno != 0 || n > INT_MAX)
			goto wrong;
		at = end;
		int64_t unit = unit_ms(&at);
		if (unit == 0)
			goto wrong;
		total += n * unit;
	} while (*at != '\0' && total < UINT32_MAX);
	if (total <= 0 || total >= UINT32_MAX)
		goto wrong;
	*ret_ms = (uint32_t)total;
	return 0;
wrong:
	return cli_fail("seconds as a number, or like 30s, 5m, 1h30m; more than 0, at "
			"most 49 days",
			"--timeout \"%s\" is not a time", text);
}
