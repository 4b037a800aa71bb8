/*
 * options.c - flags as Go's flag package reads them, since that is what callers of envd
 * write.
 */
#include "envd/options.h"

#include <string.h>

#include "base/str.h"

const char abx__envd_help[] =
	"agentbox-envd: the daemon inside a sandbox; serves the E2B runtime interface.\n"
	"  -port N           listen on this port (49983; 0 picks one)\n"
	"  -bind IP          listen on this address (0.0.0.0)\n"
	"  -isnotfc          not in a Firecracker machine: run commands directly\n"
	"  -await-init       refuse process and filesystem calls until the first /init\n"
	"  -prepare-image ROOT  first make what the image at ROOT lacks: the account "
	"`user`\n"
	"  -image-env FILE   write the environment of this process to FILE, for login "
	"shells\n"
	"  -interpreter FILE the code interpreter, started when somebody connects, in "
	"images\n"
	"                    whose python3 has ipykernel\n"
	"  -interpreter-port N  where it is reached (49999)\n"
	"  -interpreter-warm start it at once, and its first kernel\n"
	"  -run-dir DIR      where .E2B_SANDBOX is put (/run/e2b)\n"
	"  -no-cgroups       do not place commands in cgroups (this daemon never does)\n"
	"  -cgroup-root DIR  accepted with -no-cgroups only\n"
	"  -verbose          log every request to stderr\n"
	"  -version, -commit, -help\n";

enum kind { FLAG, STRING, PORT, ACTION };

struct option {
	const char *name;
	enum kind kind;
	size_t offset; /* in struct parsed */
	enum abx__envd_action action;
};

struct parsed {
	abx__envd_options opts;
	bool no_cgroups;
	const char *cgroup_root;
};

#define AT(field) offsetof(struct parsed, field)

static const struct option options[] = {
	{ "port", PORT, AT(opts.port), 0 },
	{ "bind", STRING, AT(opts.bind_ip), 0 },
	{ "isnotfc", FLAG, AT(opts.is_not_fc), 0 },
	{ "await-init", FLAG, AT(opts.await_init), 0 },
	{ "prepare-image", STRING, AT(opts.image_root), 0 },
	{ "image-env", STRING, AT(opts.profile_file), 0 },
	{ "interpreter", STRING, AT(opts.interpreter), 0 },
	{ "interpreter-port", PORT, AT(opts.interpreter_port), 0 },
	{ "interpreter-warm", FLAG, AT(opts.interpreter_warm), 0 },
	{ "run-dir", STRING, AT(opts.run_dir), 0 },
	{ "verbose", FLAG, AT(opts.verbose), 0 },
	{ "no-cgroups", FLAG, AT(no_cgroups), 0 },
	{ "cgroup-root", STRING, AT(cgroup_root), 0 },
	{ "version", ACTION, 0, ABX__ENVD_PRINT_VERSION },
	{ "commit", ACTION, 0, ABX__ENVD_PRINT_COMMIT },
	{ "help", ACTION, 0, ABX__ENVD_PRINT_HELP },
};

static const struct option *find(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (strlen(options[i].name) == len &&
		    memcmp(options[i].name, name, len) == 0)
			return &options[i];
	return NULL;
}

static int set_flag(bool *flag, const char *value, const char *word, abx_error **reterr)
{
	if (!value || strcmp(value, "true") == 0 || strcmp(value, "1") == 0)
		*flag = true;
	else if (strcmp(value, "false") == 0 || strcmp(value, "0") == 0)
		*flag = false;
	else
		return abx__error_set(reterr, ABX_EINVAL, "%s: expected true or false",
				      word);
	return ABX_OK;
}

static int set_value(const struct option *option, const char *value,
		     struct parsed *parsed, const char *word, abx_error **reterr)
{
	void *field = (char *)parsed + option->offset;
	uint64_t number;

	if (option->kind == FLAG || option->kind == ACTION) {
		bool ignored;

		return set_flag(option->kind == FLAG ? field : &ignored, value, word,
				reterr);
	}
	if (!value)
		return abx__error_set(reterr, ABX_EINVAL, "%s: a value is missing", word);
	if (option->kind == STRING) {
		*(const char **)field = value;
		return ABX_OK;
	}
	if (abx__parse_u64(value, 0, 65535, &number) < 0)
		return abx__error_set(reterr, ABX_EINVAL, "%s: %s is not a port", word,
				      value);
	*(uint16_t *)field = (uint16_t)number;
	return ABX_OK;
}

int abx__envd_options_read(int argc, char **argv, abx__envd_options *opts,
			   enum abx__envd_action *ret_action, abx_error **reterr)
{
	struct parsed parsed = { .opts = { .port = ABX__ENVD_PORT,
					   .interpreter_port = ABX__INTERPRETER_PORT } };

	*ret_action = ABX__ENVD_RUN;
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i], *name = word, *equals, *value;
		const struct option *option;
		int r;

		name += *name == '-';
		name += name > word && *name == '-';
		equals = strchr(name, '=');
		option = find(name, equals ? (size_t)(equals - name) : strlen(name));
		if (name == word || !option)
			return abx__error_set(
				reterr, ABX_EINVAL,
				"%s: unknown option; -help lists what there is", word);
		value = equals ? equals + 1 : NULL;
		if (!value && (option->kind == STRING || option->kind == PORT) &&
		    i + 1 < argc)
			value = argv[++i];
		r = set_value(option, value, &parsed, word, reterr);
		if (r < 0)
			return r;
		if (option->kind == ACTION)
			*ret_action = option->action;
	}
	if (parsed.cgroup_root && !parsed.no_cgroups)
		return abx__error_set(reterr, ABX_EINVAL,
				      "-cgroup-root: placing commands in cgroups is not "
				      "supported; give "
				      "-no-cgroups, too, or leave it out");
	*opts = parsed.opts;
	return ABX_OK;
}
