/*
 * src/abx/cli.h - what the files of abx share.
 *
 * abx is a user of the library like any other: only <agentbox/...> headers. Results go to
 * stdout, all else to stderr. Every command returns the exit code; every failure has gone
 * through cli_fail*(), which returns 1.
 */
#ifndef ABX_CLI_H
#define ABX_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <agentbox/agentbox.h>

/* Command words; a flag names the commands that know it by these bits. */
enum cli_command_bit {
	CLI_READ = 1 << 0,   /* a resource address: list or get */
	CLI_CREATE = 1 << 1, /* create --template: a sandbox */
	CLI_UPDATE = 1 << 2,
	CLI_DELETE = 1 << 3,
	CLI_SCALE = 1 << 4,
	CLI_RUN = 1 << 5,
	CLI_EXEC = 1 << 6,
	CLI_CP = 1 << 7,
	CLI_LS = 1 << 8,
	CLI_KILL = 1 << 9,
	CLI_WHOAMI = 1 << 10,
	CLI_HELP = 1 << 11,
	CLI_MAKE = 1 << 12, /* create RESOURCE -f */
	CLI_SHELL = 1 << 13,
	CLI_WATCH = 1 << 14,
	CLI_LOGS = 1 << 15,
	CLI_PAUSE = 1 << 16,
	CLI_RESUME = 1 << 17,
	CLI_SNAPSHOT = 1 << 18,
	CLI_SNAPSHOTS = 1 << 19,
	CLI_FORK = 1 << 20,
	CLI_METRICS = 1 << 21,
	CLI_ACT = 1 << 22, /* approve, deny, promote */
	CLI_CONTEXT = 1 << 23,
	CLI_AGENT_CONTEXT = 1 << 24,
	CLI_UPGRADE = 1 << 25,
	CLI_COMPLETION = 1 << 26,
	CLI_ANY = (1 << 27) - 1
};

#define CLI_MAX_WORDS 1024
#define CLI_MAX_ENV 256

/* A command line, read: every pointer is into argv. */
struct cli_args {
	/* where to */
	const char *context, *cluster, *endpoint, *cluster_api, *api_key, *auth_scheme;
	const char *socket_path, *state_dir;
	/* what */
	const char *file, *replicas, *template_id, *image, *timeout, *user, *cwd;
	const char *env_vars[CLI_MAX_ENV + 1], *metadata[CLI_MAX_ENV + 1];
	size_t n_env_vars, n_metadata;
	bool stdin_open, recursive;
	/* what a timeout does, what a pause keeps */
	const char *on_timeout;
	bool auto_resume, files_only, reboot;
	const char *name, *count;
	bool follow;
	/* how it is shown */
	bool json, csv, wide, help, version;
	const char *format, *limit;
	const char *filters[CLI_MAX_ENV + 1];
	size_t n_filters;
	bool editable, schema, watch;
	/* upgrade */
	bool check_only, force;
	/* which flags were there: one bit for each row of the flag table */
	uint64_t seen;
	/* the words that are no flags; `n_before` of them stood before "--" */
	const char *words[CLI_MAX_WORDS + 1];
	size_t n_words, n_before;
};

/* A command of the first word. */
struct cli_command {
	const char *word;
	enum cli_command_bit bit;
	int (*run)(const struct cli_args *args);
	const char *usage; /* what follows "abx " */
	const char *text;
};

/* args.c */
int cli_args_parse(int argc, char **argv, struct cli_args *ret);
int cli_args_check(const struct cli_args *args, enum cli_command_bit bit,
		   const char *word);
void cli_args_print_flags(unsigned commands);
/* Calls `print` with every flag, "-f, --file FILE", and its text. */
void cli_args_each(void (*print)(const char *flag, const char *text));
/* What a flag is for; "" when there is none of that name. */
const char *cli_args_flag_text(const char *name);
/* Flags of these commands that begin so, one a line, for completion. */
void cli_args_offer(unsigned commands, const char *begun);
/* "90", "30s", "5m", "1h", "1h30m" to milliseconds; 0 and less are refused. */
int cli_args_timeout(const char *text, uint32_t *ret_ms);

/* output.c */
int cli_fail(const char *hint, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Prints an error of the library, frees it; `what` goes before its message unless NULL.
 */
int cli_fail_error(const char *what, abx_error *err);
/* The same of a request of the native API: what the platform said, and what to do now.
 * `doing` is the verb, NULL for a read; `address` may be NULL. */
struct cli_address;
int cli_fail_platform(abx_client *client, const struct cli_address *address,
		      const char *doing, abx_error *err);

/* All of it, whatever write(2) takes at once; ABX_EIO. */
int cli_write_all(int fd, const char *data, size_t len);
/* What a shell would give: the command's own code, or 128 + the signal that ended it. */
int cli_exit_code(const abx_command_result *result);

/* connect.c */
int cli_client(const struct cli_args *args, abx_client **ret);
/* The same for a question that may stay unanswered: no engine is started, nothing is
 * printed, at most `timeout_ms`; a console's first cluster. Negative: there is none. */
int cli_client_briefly(const struct cli_args *args, uint32_t timeout_ms,
		       abx_client **ret);
/* The same for a request of the native API: with the cluster chosen behind a console, and
 * checked where an address serves one alone. */
int cli_platform(const struct cli_args *args, abx_client **ret);
/* A GET, read as JSON; prints what fails. */
struct json_object;
int cli_fetch(abx_client *client, const struct cli_address *address, const char *path,
	      struct json_object **ret);
int cli_sandbox(const struct cli_args *args, const char *id, abx_client **ret_client,
		abx_sandbox **ret);
int cli_sandbox_create(const struct cli_args *args, abx_client *client,
		       abx_sandbox **ret);
/* Whether SIGINT, SIGTERM or SIGHUP came since cli_signals_catch(); its number, or 0. */
void cli_signals_catch(abx_client *client);
int cli_signal_caught(void);
void cli_signals_release(void);

/* the commands */
int cmd_read(const struct cli_args *args);
int cmd_create(const struct cli_args *args);
int cmd_update(const struct cli_args *args);
int cmd_delete(const struct cli_args *args);
int cmd_scale(const struct cli_args *args);
int cmd_whoami(const struct cli_args *args);
int cmd_context(const struct cli_args *args);
int cmd_agent_context(const struct cli_args *args);
int cmd_upgrade(const struct cli_args *args);
int cmd_completion(const struct cli_args *args);
/* The known deployments, one a line; or as JSON. */
int cli_contexts_print(bool as_json);
int cmd_approve(const struct cli_args *args);
int cmd_deny(const struct cli_args *args);
int cmd_promote(const struct cli_args *args);
int cmd_schema(const struct cli_args *args);
int cmd_create_sandbox(const struct cli_args *args);
int cmd_run(const struct cli_args *args);
int cmd_exec(const struct cli_args *args);
int cmd_cp(const struct cli_args *args);
int cmd_ls(const struct cli_args *args);
int cmd_kill(const struct cli_args *args);
int cmd_shell(const struct cli_args *args);
int cmd_watch(const struct cli_args *args);
int cmd_pause(const struct cli_args *args);
int cmd_resume(const struct cli_args *args);
int cmd_logs(const struct cli_args *args);
int cmd_metrics(const struct cli_args *args);
int cmd_snapshot(const struct cli_args *args);
int cmd_snapshots(const struct cli_args *args);
int cmd_delete_snapshots(const struct cli_args *args);
int cmd_fork(const struct cli_args *args);
/* A file as `ls --json` and `watch --json` show it. */
struct json_object *cli_file_json(const abx_file_info *info);

/* help.c */
extern const struct cli_command cli_commands[];
const struct cli_command *cli_command_find(const char *word);
int cli_help(const struct cli_args *args);

#define CLI_CLEANUP(f) __attribute__((cleanup(f)))
void cli_client_freep(abx_client **p);
void cli_sandbox_freep(abx_sandbox **p);
void cli_textp(char **p);

#endif
