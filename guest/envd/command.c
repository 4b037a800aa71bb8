/*
 * command.c - how a command is started.
 */
#include "envd/command.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <envd/process.pb-c.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "envd/env-vars.h"
#include "envd/envd.h"
#include "envd/path.h"
#include "envd/pty.h"
#include "envd/spawn.h"

/* Outside a Firecracker machine the command is run as it is (docs/designs/envd.md, patch
   1). Inside, this shell makes it a likelier victim of the out-of-memory killer than the
   daemon is. */
#define FC_SCRIPT "echo 100 > /proc/$$/oom_score_adj && exec \"${@}\""

/* Of a terminal whose caller names no other. */
#define DEFAULT_TERM "xterm-256color"

struct plan {
	char *cwd;
	abx__map vars;
	char **envp;
	char **argv;
	char **files; /* one allocation each, NULL-terminated */
	gid_t *groups;
	size_t group_count;
	int child_fds[3];
	int our_fds[3]; /* stdin's write end, stdout's and stderr's read ends; with a
			   terminal twice its master, nothing */
};

static void free_files(char **files)
{
	for (size_t i = 0; files && files[i]; i++)
		abx__free(files[i]);
	abx__free(files);
}

static void plan_done(struct plan *plan)
{
	for (int i = 0; i < 3; i++) {
		abx__closep(&plan->child_fds[i]);
		abx__closep(&plan->our_fds[i]);
	}
	free_files(plan->files);
	abx__free(plan->groups);
	abx__free(plan->argv);
	abx__free(plan->envp);
	abx__map_done(&plan->vars);
	abx__free(plan->cwd);
}

static int plan_cwd(struct plan *plan, const abx__envd *envd,
		    const Process__ProcessConfig *config, const abx__user *user,
		    abx_error **reterr)
{
	const char *cwd = config->has_cwd_case == PROCESS__PROCESS_CONFIG__HAS_CWD_CWD
				  ? config->cwd
				  : "";
	struct stat st;
	int r;

	r = abx__path_resolve(cwd, user, envd->default_workdir, &plan->cwd, reterr);
	if (r < 0)
		return r;
	r = stat(plan->cwd, &st);
	/* An account without a home still runs commands; a directory somebody asked for
	 * is not replaced. */
	if (r < 0 && errno == ENOENT && !*cwd && !envd->default_workdir) {
		abx__free(plan->cwd);
		plan->cwd = abx__strdup("/");
		if (!plan->cwd)
			return abx__error_nomem(reterr);
		r = stat(plan->cwd, &st);
	}
	if (r < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? abx__error_set(reterr, ABX_EINVAL,
						"cwd '%s' does not exist", plan->cwd)
			       : abx__error_errno(reterr, ABX_EINVAL, errno, "cwd '%s'",
						  plan->cwd);
	if (!S_ISDIR(st.st_mode))
		return abx__error_set(reterr, ABX_EINVAL, "cwd '%s' is not a directory",
				      plan->cwd);
	return ABX_OK;
}

static int plan_env(struct plan *plan, const abx__envd *envd,
		    const Process__ProcessConfig *config, const abx__user *user,
		    bool has_tty, abx_error **reterr)
{
	int r = has_tty ? abx__map_set(&plan->vars, "TERM", DEFAULT_TERM) : ABX_OK;

	if (r >= 0)
		r = abx__env_vars_of_user(envd, user, &plan->vars);
	for (size_t i = 0; r >= 0 && i < config->n_envs; i++) {
		if (!abx__env_var_is_name(config->envs[i]->key))
			return abx__error_set(reterr, ABX_EINVAL,
					      "envs: '%.64s' is not a name of a variable",
					      config->envs[i]->key);
		r = abx__map_set(&plan->vars, config->envs[i]->key,
				 config->envs[i]->value);
	}
	plan->envp = r < 0 ? NULL : abx__env_vars_block(&plan->vars);
	return plan->envp ? ABX_OK : abx__error_nomem(reterr);
}

static int plan_argv(struct plan *plan, const abx__envd *envd,
		     const Process__ProcessConfig *config, abx_error **reterr)
{
	size_t n = 0;

	if (!*config->cmd)
		return abx__error_set(reterr, ABX_EINVAL, "cmd is empty");
	plan->argv = abx__calloc(config->n_args + 6, sizeof(char *));
	if (!plan->argv)
		return abx__error_nomem(reterr);
	if (!envd->is_not_fc) {
		plan->argv[n++] = (char *)"/bin/sh";
		plan->argv[n++] = (char *)"-c";
		plan->argv[n++] = (char *)FC_SCRIPT;
		plan->argv[n++] = (char *)"--";
	}
	plan->argv[n++] = config->cmd;
	for (size_t i = 0; i < config->n_args; i++)
		plan->argv[n++] = config->args[i];
	return ABX_OK;
}

/* The command itself when it names a path, else the places PATH has for it. */
static int plan_files(struct plan *plan, abx_error **reterr)
{
	const char *cmd = plan->argv[0], *dirs = abx__map_get(&plan->vars, "PATH");
	size_t count = 1, n = 0;

	if (strchr(cmd, '/'))
		dirs = NULL;
	for (const char *p = dirs; p && *p; p++)
		count += *p == ':';
	plan->files = abx__calloc(count + 1, sizeof(char *));
	if (!plan->files)
		return abx__error_nomem(reterr);
	do {
		size_t len = dirs ? strcspn(dirs, ":") : 0;

		plan->files[n] = !dirs ? abx__strdup(cmd)
				 : len ? abx__strf("%.*s/%s", (int)len, dirs, cmd)
				       : abx__strf("./%s", cmd);
		if (!plan->files[n++])
			return abx__error_nomem(reterr);
		dirs = dirs && dirs[len] ? dirs + len + 1 : NULL;
	} while (dirs);
	return ABX_OK;
}

static int make_pipe(int *read_end, int *write_end)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	*read_end = fds[0];
	*write_end = fds[1];
	return 0;
}

static int plan_pipes(struct plan *plan, const Process__StartRequest *request,
		      abx_error **reterr)
{
	bool wants_stdin =
		request->has_stdin_case != PROCESS__START_REQUEST__HAS_STDIN_STDIN ||
		request->stdin;

	if (wants_stdin) {
		if (make_pipe(&plan->child_fds[0], &plan->our_fds[0]) < 0)
			goto fail;
	} else {
		plan->child_fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (plan->child_fds[0] < 0)
			return abx__error_errno(reterr, ABX_EIO, errno, "open /dev/null");
	}
	if (make_pipe(&plan->our_fds[1], &plan->child_fds[1]) < 0 ||
	    make_pipe(&plan->our_fds[2], &plan->child_fds[2]) < 0)
		goto fail;
	return ABX_OK;
fail:
	return abx__error_errno(reterr, ABX_EEXHAUSTED, errno,
				"make pipes for the process");
}

/* The size is set before anybody runs on it. */
static int plan_pty(struct plan *plan, const Process__PTY *wanted, const abx__user *user,
		    abx_error **reterr)
{
	abx__pty pty;
	int r = abx__pty_open(&pty, user->uid, reterr);

	if (r < 0)
		return r;
	plan->our_fds[1] = pty.master;
	plan->child_fds[0] = pty.slave;
	r = abx__pty_resize(pty.master, wanted->size ? wanted->size->cols : 0,
			    wanted->size ? wanted->size->rows : 0, reterr);
	if (r < 0)
		return r;
	plan->our_fds[0] = fcntl(pty.master, F_DUPFD_CLOEXEC, 3);
	plan->child_fds[1] = fcntl(pty.slave, F_DUPFD_CLOEXEC, 3);
	plan->child_fds[2] = fcntl(pty.slave, F_DUPFD_CLOEXEC, 3);
	if (plan->our_fds[0] < 0 || plan->child_fds[1] < 0 || plan->child_fds[2] < 0)
		return abx__error_errno(reterr, ABX_EEXHAUSTED, errno,
					"make descriptors for the terminal");
	return ABX_OK;
}

static int plan_fds(struct plan *plan, const Process__StartRequest *request,
		    const abx__user *user, abx_error **reterr)
{
	return request->pty ? plan_pty(plan, request->pty, user, reterr)
			    : plan_pipes(plan, request, reterr);
}

static int explain_failure(const struct plan *plan, const char *cmd,
			   const abx__user *user, enum abx__spawn_step step, int error,
			   abx_error **reterr)
{
	switch (step) {
	case ABX__SPAWN_CLONE:
		return abx__error_errno(reterr, ABX_EEXHAUSTED, error, "start a process");
	case ABX__SPAWN_USER:
		return abx__error_errno(reterr, ABX_EINVAL, error, "become user '%s'",
					user->name);
	case ABX__SPAWN_CWD:
		return abx__error_errno(reterr, ABX_EINVAL, error, "cwd '%s'", plan->cwd);
	case ABX__SPAWN_STDIO:
		return abx__error_errno(reterr, ABX_EIO, error,
					"set up stdin, stdout and stderr");
	case ABX__SPAWN_EXEC:
		break;
	}
	if (error == E2BIG)
		return abx__error_set(reterr, ABX_EINVAL,
				      "cannot run '%.256s': its arguments and "
				      "environment are longer than "
				      "the kernel takes",
				      cmd);
	if (error == ENOENT && access(cmd, F_OK) == 0)
		return abx__error_set(reterr, ABX_EINVAL,
				      "cannot run '%.256s': the interpreter it names is "
				      "not in this image",
				      cmd);
	if (error == ENOENT || error == ENOTDIR)
		return abx__error_set(reterr, ABX_EINVAL,
				      "cannot run '%.256s': no such file in this image%s",
				      cmd, strchr(cmd, '/') ? "" : "'s PATH");
	return abx__error_errno(reterr, ABX_EINVAL, error, "cannot run '%.256s'", cmd);
}

static int make_plan(struct plan *plan, abx__envd *envd,
		     const Process__StartRequest *request, const abx__user *user,
		     abx_error **reterr)
{
	int r;

	if (!request->process)
		return abx__error_set(reterr, ABX_EINVAL, "process is missing");
	r = plan_cwd(plan, envd, request->process, user, reterr);
	if (r >= 0)
		r = plan_env(plan, envd, request->process, user, request->pty != NULL,
			     reterr);
	if (r >= 0)
		r = plan_argv(plan, envd, request->process, reterr);
	if (r >= 0)
		r = plan_files(plan, reterr);
	if (r >= 0 &&
	    abx__users_groups(&envd->users, user, &plan->groups, &plan->group_count) < 0)
		r = abx__error_nomem(reterr);
	return r < 0 ? r : plan_fds(plan, request, user, reterr);
}

static void adopt(abx__process *process, abx__envd *envd, Process__StartRequest *request,
		  pid_t pid, struct plan *plan)
{
	process->envd = envd;
	process->pid = (uint32_t)pid;
	process->request = request;
	process->has_tty = request->pty != NULL;
	if (request->has_tag_case == PROCESS__START_REQUEST__HAS_TAG_TAG)
		process->tag = request->tag;
	abx__processes_add(&envd->processes, process);
	abx__input_open(&process->in, process, abx_take_fd(plan->our_fds[0]));
	abx__output_open(&process->out[0], process, abx_take_fd(plan->our_fds[1]));
	if (plan->our_fds[2] >= 0)
		abx__output_open(&process->out[1], process,
				 abx_take_fd(plan->our_fds[2]));
}

int abx__command_start(abx__envd *envd, Process__StartRequest *request,
		       const abx__user *user, abx__process **ret, abx_error **reterr)
{
	ABX_CLEANUP(plan_done)
	struct plan plan = { .child_fds = { -1, -1, -1 }, .our_fds = { -1, -1, -1 } };
	ABX_CLEANUP(abx__freep) abx__process *process = abx__calloc(1, sizeof(*process));
	enum abx__spawn_step step = ABX__SPAWN_EXEC;
	abx__spawn spawn;
	pid_t pid;
	int r;

	if (!process)
		return abx__error_nomem(reterr);
	r = make_plan(&plan, envd, request, user, reterr);
	if (r < 0)
		return r;
	spawn = (abx__spawn){
		.files = (const char *const *)plan.files,
		.argv = plan.argv,
		.envp = plan.envp,
		.cwd = plan.cwd,
		.uid = user->uid,
		.gid = user->gid,
		.groups = plan.groups,
		.group_count = plan.group_count,
		.nofile = envd->processes.has_nofile ? &envd->processes.nofile : NULL,
		.fds = { plan.child_fds[0], plan.child_fds[1], plan.child_fds[2] },
		.has_tty = request->pty != NULL,
	};
	pid = abx__spawn_run(&spawn, &step);
	if (pid < 0)
		return explain_failure(&plan, plan.argv[0], user, step, -pid, reterr);
	*ret = process;
	adopt(abx_take(process), envd, request, pid, &plan);
	return ABX_OK;
}
