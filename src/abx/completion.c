/*
 * src/abx/completion.c - completion of bash, zsh and fish.
 *
 * The shells ask abx itself: `abx completion words WORD...` prints what the last WORD may
 * become, from the registry and the table of flags. Nothing is asked of a platform.
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "resources.h"

static const char bash_script[] =
	"_abx() {\n"
	"	local IFS=$'\\n'\n"
	"	COMPREPLY=($(abx completion words -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" "
	"2>/dev/null))\n"
	"}\n"
	"complete -o default -F _abx abx\n";

static const char zsh_script[] =
	"#compdef abx\n"
	"_abx() {\n"
	"	local -a found\n"
	"	found=(${(f)\"$(abx completion words -- ${words[2,CURRENT]} "
	"2>/dev/null)\"})\n"
	"	if (( $#found )); then compadd -- $found; else _files; fi\n"
	"}\n"
	"compdef _abx abx\n";

static const char fish_script[] =
	"complete -c abx -f -a "
	"'(abx completion words -- (commandline -opc)[2..-1] (commandline -ct) "
	"2>/dev/null)'\n"
	"complete -c abx -s f -l file -r -F\n";

static void offer(const char *word, const char *begun)
{
	if (strncmp(word, begun, strlen(begun)) == 0)
		puts(word);
}

static void offer_resources(const char *parent, const char *begun)
{
	for (const struct cli_resource *r = cli_resources; r->plural != NULL; r++)
		if (parent == NULL ? r->parent == NULL
				   : r->parent != NULL && strcmp(r->parent, parent) == 0)
			offer(r->plural, begun);
}

static void offer_subs(const struct cli_resource *above, const char *begun)
{
	if (above->parent == NULL)
		offer_resources(above->plural, begun);
	for (const struct cli_view *v = above->views; v != NULL && v->segment != NULL;
	     v++)
		offer(v->segment, begun);
}

/* Words of an address before the one that is typed: RESOURCE NAME SUB NAME. */
static void offer_address(const char *const *words, size_t n, const char *begun)
{
	const struct cli_resource *r, *sub;

	if (n == 0) {
		offer_resources(NULL, begun);
		return;
	}
	r = cli_resource_find(words[0], NULL);
	if (r != NULL && n == 2)
		offer_subs(r, begun);
	sub = r != NULL && n == 4 ? cli_resource_find(words[2], r->plural) : NULL;
	if (sub != NULL)
		offer_subs(sub, begun);
}

static bool is_address_verb(unsigned bit)
{
	return bit == CLI_CREATE || bit == CLI_UPDATE || bit == CLI_DELETE ||
	       bit == CLI_SCALE || bit == CLI_ACT;
}

static void offer_words(const char *const *words, size_t n)
{
	static const char *const of_context[] = { "list", "set", "use", "remove" };
	static const char *const shells[] = { "bash", "zsh", "fish" };
	const char *begun = words[n - 1], *bare[8];
	const struct cli_command *command;
	size_t k = 0;

	for (size_t i = 0; i + 1 < n && k < 8; i++)
		if (words[i][0] != '-')
			bare[k++] = words[i];
	command = k > 0 ? cli_command_find(bare[0]) : NULL;
	if (begun[0] == '-') {
		cli_args_offer(command != NULL ? command->bit : CLI_READ, begun);
		return;
	}
	if (k == 0) {
		for (const struct cli_command *c = cli_commands; c->word != NULL; c++)
			offer(c->word, begun);
		offer_resources(NULL, begun);
	} else if (command == NULL) {
		offer_address(bare, k, begun);
	} else if (is_address_verb(command->bit)) {
		offer_address(bare + 1, k - 1, begun);
	} else if (command->bit == CLI_CONTEXT && k == 1) {
		for (size_t i = 0; i < 4; i++)
			offer(of_context[i], begun);
	} else if (command->bit == CLI_COMPLETION && k == 1) {
		for (size_t i = 0; i < 3; i++)
			offer(shells[i], begun);
	}
}

int cmd_completion(const struct cli_args *args)
{
	static const struct {
		const char *shell, *script;
	} scripts[] = { { "bash", bash_script },
			{ "zsh", zsh_script },
			{ "fish", fish_script } };
	const char *what = args->n_words > 0 ? args->words[0] : "";

	if (strcmp(what, "words") == 0) {
		if (args->n_words > 1)
			offer_words(args->words + 1, args->n_words - 1);
		return 0;
	}
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
		if (args->n_words == 1 && strcmp(scripts[i].shell, what) == 0) {
			fputs(scripts[i].script, stdout);
			return 0;
		}
	return cli_fail("abx completion bash|zsh|fish", "completion needs a shell");
}
