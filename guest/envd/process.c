/*
 * process.c - the table of commands, reaping, deadlines, the end event and its 30 s of
 * memory.
 *
 * SIGCHLD reaps whatever there is: as the Pod's first process the daemon inherits
 * orphans, too.
 */
#include "envd/process.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <envd/process.pb-c.h>

#include "base/alloc.h"
#include "base/str.h"
#include "envd/envd.h"
#include "envd/process-tree.h"
#include "io/proto-json.h"

/* ---- end events ---- */

/* "signal: killed", as Go words it: libc's text with a small first letter. */
static void describe_signal(int sig, bool core, char *text, size_t size)
{
	const char *name = sigdescr_np(sig);

	if (!name) {
		snprintf(text, size, "signal: signal %d", sig);
		return;
	}
	snprintf(text, size, "signal: %c%s%s", name[0] | 0x20, name + 1,
		 core ? " (core dumped)" : "");
}

void abx__process_describe_end(int wait_status, Process__ProcessEvent__EndEvent *end,
			       char text[ABX__PROCESS_TEXT_SIZE])
{
	process__process_event__end_event__init(end);
	end->exited = WIFEXITED(wait_status);
	end->exit_code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
	if (WIFEXITED(wait_status))
		snprintf(text, ABX__PROCESS_TEXT_SIZE, "exit status %d",
			 WEXITSTATUS(wait_status));
	else
		describe_signal(WTERMSIG(wait_status), WCOREDUMP(wait_status), text,
				ABX__PROCESS_TEXT_SIZE);
	end->status = text;
	if (wait_status != 0) {
		end->has_error_case = PROCESS__PROCESS_EVENT__END_EVENT__HAS_ERROR_ERROR;
		end->error = text;
	}
}

/* ---- the ended ones ---- */

static void free_ended(abx__ended *ended)
{
	abx__free(ended->tag);
	abx__free(ended);
}

static void unlink_ended(abx__processes *table, abx__ended **link)
{
	abx__ended *ended = *link;

	*link = ended->next;
	if (table->ended_tail == &ended->next)
		table->ended_tail = link;
	table->ended_count--;
	free_ended(ended);
}

static void on_ended_timer(uv_timer_t *timer)
{
	abx__processes *table = timer->data;
	uint64_t now = uv_now(timer->loop);

	while (table->ended && table->ended->until_ms <= now)
		unlink_ended(table, &table->ended);
	if (table->ended)
		uv_timer_start(timer, on_ended_timer, table->ended->until_ms - now, 0);
}

static void remember(abx__processes *table, const abx__process *process)
{
	abx__ended *ended = abx__calloc(1, sizeof(*ended));

	if (!ended)
		return; /* a late Connect then hears not_found */
	if (table->ended_count >= ABX__PROCESS_RETAIN_MAX)
		unlink_ended(table, &table->ended);
	ended->pid = process->pid;
	ended->tag = abx__strdup(process->tag);
	ended->wait_status = process->wait_status;
	ended->until_ms = uv_now(table->envd->loop) + ABX__PROCESS_RETAIN_MS;
	*table->ended_tail = ended;
	table->ended_tail = &ended->next;
	table->ended_count++;
	if (table->ended == ended)
		uv_timer_start(&table->ended_timer, on_ended_timer,
			       ABX__PROCESS_RETAIN_MS, 0);
}

/* A new process with the same pid or tag drops what is remembered. */
static void drop_remembered(abx__processes *table, const abx__process *process)
{
	abx__ended **link = &table->ended;

	while (*link) {
		if ((*link)->pid == process->pid ||
		    (process->tag && (*link)->tag &&
		     strcmp((*link)->tag, process->tag) == 0))
			unlink_ended(table, link);
		else
			link = &(*link)->next;
	}
}

/* ---- life ---- */

static void on_handle_closed(uv_handle_t *handle)
{
	abx__process *process = handle->data;

	if (--process->open_handles > 0)
		return;
	abx__proto_free((ProtobufCMessage *)process->request);
	abx__free(process);
}

void abx__process_close_handle(abx__process *process, uv_handle_t *handle)
{
	handle->data = process;
	uv_close(handle, on_handle_closed);
}

static void finish_waits(abx__process *process)
{
	abx__exit_wait *wait, *next = process->exit_waits;

	process->exit_waits = NULL;
	while ((wait = next)) {
		next = wait->next;
		wait->done(wait->userdata);
		abx__free(wait);
	}
}

static void on_wait_over(uv_timer_t *timer)
{
	finish_waits(timer->data);
}

int abx__process_wait_exit(abx__process *process, void (*done)(void *userdata),
			   void *userdata)
{
	abx__exit_wait *wait = abx__calloc(1, sizeof(*wait));

	if (!wait)
		return ABX_ENOMEM;
	wait->done = done;
	wait->userdata = userdata;
	wait->next = process->exit_waits;
	process->exit_waits = wait;
	uv_timer_start(&process->grace, on_wait_over, ABX__PROCESS_KILL_WAIT_MS, 0);
	return ABX_OK;
}

static void end_process(abx__process *process)
{
	abx__processes *table = &process->envd->processes;

	process->is_ended = true;
	abx__deadline_disarm(&table->deadlines, &process->deadline);
	HASH_DEL(table->by_pid, process);
	remember(table, process);
	abx__subscribers_end(process);
	abx__outputs_update(process);
	abx__input_abort(&process->in);
	abx__process_close_handle(process, (uv_handle_t *)&process->grace);
	abx__process_close_handle(process, (uv_handle_t *)&process->stall);
}

static void on_grace(uv_timer_t *timer)
{
	abx__process_check_end(timer->data);
}

void abx__process_check_end(abx__process *process)
{
	uint64_t now = uv_now(process->envd->loop), last;

	if (!process->has_exited || process->is_ended)
		return;
	if (!abx__outputs_are_open(process)) {
		end_process(process);
		return;
	}
	last = process->output_ms > process->exited_ms ? process->output_ms
						       : process->exited_ms;
	if (abx__outputs_are_stalled(process)) {
		process->exited_ms =
			now; /* time that a slow reader takes does not count */
		last = now;
	} else if (now >= process->exited_ms + ABX__PROCESS_GRACE_MAX_MS ||
		   (now >= last + ABX__PROCESS_GRACE_MS &&
		    !abx__outputs_have_data(process))) {
		end_process(process);
		return;
	}
	uv_timer_start(&process->grace, on_grace,
		       last + ABX__PROCESS_GRACE_MS > now
			       ? last + ABX__PROCESS_GRACE_MS - now
			       : 1,
		       0);
}

static void on_exit_status(abx__process *process, int wait_status)
{
	process->has_exited = true;
	process->wait_status = wait_status;
	process->exited_ms = uv_now(process->envd->loop);
	abx__deadline_disarm(&process->envd->processes.deadlines, &process->deadline);
	uv_timer_stop(&process->grace);
	finish_waits(process);
	abx__input_abort(&process->in);
	abx__process_check_end(process);
}

static void on_sigchld(uv_signal_t *handle, int signum)
{
	abx__processes *table = handle->data;
	int status;
	pid_t pid;

	(void)signum;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		uint32_t key = (uint32_t)pid;
		abx__process *process;

		HASH_FIND(hh, table->by_pid, &key, sizeof(key), process);
		if (process && !process->has_exited)
			on_exit_status(process, status);
		else
			abx__interpreter_on_exit(&table->envd->interpreter, pid, status);
	}
}

static abx__process *process_of(abx__deadline *deadline)
{
	return (abx__process *)((char *)deadline - offsetof(abx__process, deadline));
}

/* Sleeps where no signal reaches it: its end is not waited for. */
static void on_unkillable(abx__deadline *deadline)
{
	abx__subscribers_fail_starter(process_of(deadline),
				      ABX__CONNECT_DEADLINE_EXCEEDED,
				      "deadline exceeded");
}

static void on_deadline(abx__deadline *deadline)
{
	abx__process *process = process_of(deadline);

	process->is_overdue = true;
	abx__process_tree_signal((pid_t)process->pid, SIGKILL);
	abx__deadline_arm(&process->envd->processes.deadlines, deadline,
			  ABX__PROCESS_GRACE_MAX_MS, on_unkillable);
}

void abx__process_set_deadline(abx__process *process, uint64_t timeout_ms)
{
	abx__deadline_arm(&process->envd->processes.deadlines, &process->deadline,
			  timeout_ms, on_deadline);
}

void abx__processes_add(abx__processes *table, abx__process *process)
{
	abx__process *old;

	HASH_FIND(hh, table->by_pid, &process->pid, sizeof(process->pid), old);
	if (old) /* reaped, and its pid given out again, while its end waited */
		end_process(old);
	drop_remembered(table, process);
	uv_timer_init(table->envd->loop, &process->grace);
	process->grace.data = process;
	uv_timer_init(table->envd->loop, &process->stall);
	process->stall.data = process;
	process->open_handles += 2;
	HASH_ADD(hh, table->by_pid, pid, sizeof(process->pid), process);
}

/* ---- lookups ---- */

static bool selects(const Process__ProcessSelector *selector, uint32_t pid,
		    const char *tag)
{
	if (selector->selector_case == PROCESS__PROCESS_SELECTOR__SELECTOR_PID)
		return selector->pid == pid;
	return tag && strcmp(tag, selector->tag) == 0;
}

abx__process *abx__processes_find(abx__processes *table,
				  const Process__ProcessSelector *selector)
{
	abx__process *process, *next;

	if (selector->selector_case == PROCESS__PROCESS_SELECTOR__SELECTOR_PID) {
		HASH_FIND(hh, table->by_pid, &selector->pid, sizeof(selector->pid),
			  process);
		return process;
	}
	HASH_ITER(hh, table->by_pid, process, next)
	if (selects(selector, process->pid, process->tag))
		return process;
	return NULL;
}

const abx__ended *abx__processes_find_ended(abx__processes *table,
					    const Process__ProcessSelector *selector)
{
	for (const abx__ended *ended = table->ended; ended; ended = ended->next)
		if (selects(selector, ended->pid, ended->tag))
			return ended;
	return NULL;
}

/* ---- the table ---- */

/* Each command holds up to three descriptors here; what commands inherit stays as it was.
 */
static void raise_nofile(abx__processes *table)
{
	struct rlimit more;

	table->has_nofile = getrlimit(RLIMIT_NOFILE, &table->nofile) == 0;
	more = table->nofile;
	more.rlim_cur = more.rlim_max < 65536 ? more.rlim_max : 65536;
	if (table->has_nofile && more.rlim_cur > table->nofile.rlim_cur)
		setrlimit(RLIMIT_NOFILE, &more);
}

int abx__processes_init(abx__processes *table, struct abx__envd *envd, abx_error **reterr)
{
	int r;

	memset(table, 0, sizeof(*table));
	table->envd = envd;
	table->ended_tail = &table->ended;
	raise_nofile(table);
	uv_timer_init(envd->loop, &table->ended_timer);
	table->ended_timer.data = table;
	abx__deadlines_init(&table->deadlines, envd->loop);
	uv_signal_init(envd->loop, &table->sigchld);
	table->sigchld.data = table;
	r = uv_signal_start(&table->sigchld, on_sigchld, SIGCHLD);
	if (r < 0)
		return abx__error_set(reterr, ABX_EIO, "watch for SIGCHLD: %s",
				      uv_strerror(r));
	return ABX_OK;
}

static void close_process(abx__process *process)
{
	abx__deadline_disarm(&process->envd->processes.deadlines, &process->deadline);
	while (process->subscribers)
		abx__subscribers_end(process);
	finish_waits(process);
	process->is_ended = true;
	for (int i = 0; i < 2; i++)
		if (process->out[i].is_open) {
			process->out[i].is_open = false;
			abx__process_close_handle(process,
						  (uv_handle_t *)&process->out[i].pipe);
		}
	abx__input_abort(&process->in);
	abx__process_close_handle(process, (uv_handle_t *)&process->grace);
	abx__process_close_handle(process, (uv_handle_t *)&process->stall);
}

void abx__processes_close(abx__processes *table)
{
	abx__process *process, *next;

	HASH_ITER(hh, table->by_pid, process, next)
	{
		HASH_DEL(table->by_pid, process);
		close_process(process);
	}
	while (table->ended)
		unlink_ended(table, &table->ended);
	uv_close((uv_handle_t *)&table->ended_timer, NULL);
	abx__deadlines_close(&table->deadlines);
	uv_close((uv_handle_t *)&table->sigchld, NULL);
}
