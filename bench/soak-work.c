/*
 * soak-work.c - one client of the soak. An act checks what it gets; what fails is noted
 * with the library's own words. A client that vanishes leaves the kernel to close its
 * connections; what it leaves running has a time limit, as the runtime keeps processes
 * whose client is gone.
 */
#include "soak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library.h"

#define LEFT_BEHIND_MS 5000 /* then what a vanished client started is ended */
#define PATIENCE_MS 30000
#define OWN_IDLE_MS 30000 /* then the platform ends what a vanished client had */
#define RESIDENT_IDLE_MS 7200000

typedef struct soak_life {
	const soak_client *self;
	abx_client *client;
	abx_sandbox *sandbox;
	unsigned seed;
	char why[244]; /* of what failed last */
	char got[512]; /* the end of what a stream gave */
	size_t got_len;
	uint64_t got_bytes;
	int events;
} soak_life;

static unsigned pick(soak_life *life, unsigned below)
{
	return (unsigned)rand_r(&life->seed) % below;
}

static int failed(soak_life *life, const char *what, int r, abx_error *err)
{
	snprintf(life->why, sizeof(life->why), "%s: %s: %s", what, abx_error_name(r),
		 err ? abx_error_message(err) : "");
	abx_error_free(err);
	return -1;
}

static int wrong(soak_life *life, const char *what)
{
	snprintf(life->why, sizeof(life->why), "%s", what);
	return -1;
}

/* ---- streams ---- */

static int take_bytes(void *userdata, const char *data, size_t len)
{
	soak_life *life = userdata;
	size_t room = sizeof(life->got) - 1;

	life->got_bytes += len;
	if (len > room) {
		data += len - room;
		len = room;
	}
	if (life->got_len + len > room) {
		memmove(life->got, life->got + life->got_len + len - room, room - len);
		life->got_len = room - len;
	}
	memcpy(life->got + life->got_len, data, len);
	life->got_len += len;
	life->got[life->got_len] = '\0';
	return ABX_OK;
}

static void forget(soak_life *life)
{
	life->got_len = 0;
	life->got_bytes = 0;
	life->got[0] = '\0';
	life->events = 0;
}

static int wait_for_text(soak_life *life, const char *text)
{
	double until = rig_now_ms() + PATIENCE_MS;

	while (!strstr(life->got, text)) {
		abx_client_wait(life->client, 100, NULL);
		if (rig_now_ms() > until) {
			snprintf(life->why, sizeof(life->why),
				 "no \"%s\" within %d ms, but \"%.100s\"", text,
				 PATIENCE_MS, life->got);
			return -1;
		}
	}
	return 0;
}

/* ---- acts ---- */

/* Runs a line; what it said is in `got`. */
static int run(soak_life *life, const char *line, int want_exit)
{
	abx_command_options opts = ABX_COMMAND_OPTIONS_INIT;
	abx_command_result *result = NULL;
	abx_error *err = NULL;
	int r, exit_code;

	forget(life);
	opts.on_stdout = take_bytes;
	opts.userdata = life;
	r = abx_command_run(life->sandbox, line, &opts, &result, &err);
	if (r < 0)
		return failed(life, line, r, err);
	exit_code = result->exit_code;
	abx_command_result_free(result);
	if (exit_code == want_exit)
		return 0;
	snprintf(life->why, sizeof(life->why), "%s: exit %d", line, exit_code);
	return -1;
}

static int act_exec(soak_life *life)
{
	unsigned number = pick(life, 1000000);
	char line[64], want[32];

	snprintf(line, sizeof(line), "echo %u; exit %u", number, number % 3);
	snprintf(want, sizeof(want), "%u\n", number);
	if (run(life, line, (int)(number % 3)) < 0)
		return -1;
	return strcmp(life->got, want) == 0 ? 0 : wrong(life, "exec: another's output");
}

static int act_output(soak_life *life)
{
	if (run(life, "head -c 1000000 /dev/zero", 0) < 0)
		return -1;
	return life->got_bytes == 1000000 ? 0 : wrong(life, "output: bytes are missing");
}

static int act_deadline(soak_life *life)
{
	abx_command_options opts = ABX_COMMAND_OPTIONS_INIT;
	abx_command_result *result = NULL;
	abx_error *err = NULL;
	int r;

	opts.timeout_ms = 200;
	r = abx_command_run(life->sandbox, "sleep 60 & sleep 60", &opts, &result, &err);
	abx_command_result_free(result);
	if (r != ABX_ETIMEDOUT)
		return failed(life, "deadline: no timeout", r, err);
	abx_error_free(err);
	return 0;
}

/* Starts a process that echoes, in a pipe; NULL when it failed. */
static abx_process *start_cat(soak_life *life)
{
	static const char *const argv[] = { "cat", NULL };
	abx_command_options opts = ABX_COMMAND_OPTIONS_INIT;
	abx_process *process = NULL;
	abx_error *err = NULL;
	int r;

	forget(life);
	opts.argv = argv;
	opts.stdin_open = 1;
	opts.timeout_ms = LEFT_BEHIND_MS + PATIENCE_MS;
	opts.on_stdout = take_bytes;
	opts.userdata = life;
	r = abx_command_start(life->sandbox, NULL, &opts, &process, &err);
	if (r < 0)
		failed(life, "start", r, err);
	return process;
}

static int act_stdin(soak_life *life)
{
	abx_process *process = start_cat(life);
	abx_error *err = NULL;
	uint32_t pid;
	int r;

	if (!process)
		return -1;
	pid = abx_process_pid(process);
	r = abx_command_send_stdin(life->sandbox, pid, "to and fro\n", 11, &err);
	if (r < 0)
		r = failed(life, "stdin", r, err);
	else
		r = wait_for_text(life, "to and fro\n");
	if (r == 0 && (r = abx_command_kill(life->sandbox, pid, &err)) != 1)
		r = failed(life, "kill", r, err);
	abx_process_free(process);
	return r < 0 ? -1 : 0;
}

static int act_files(soak_life *life)
{
	size_t len = pick(life, 200000), got_len = 0;
	char *data = malloc(len + 1), *got = NULL, path[64];
	abx_file_list *list = NULL;
	abx_error *err = NULL;
	int r;

	if (!data)
		rig_die("out of memory");
	memset(data, 'a' + (int)(len % 26), len);
	snprintf(path, sizeof(path), "/tmp/soak-%d-%u/file", getpid(), pick(life, 1000));
	r = abx_file_write(life->sandbox, path, data, len, NULL, &err);
	if (r >= 0)
		r = abx_file_read(life->sandbox, path, NULL, &got, &got_len, &err);
	if (r >= 0 && (got_len != len || memcmp(got, data, len) != 0))
		r = wrong(life, "files: other bytes than were written");
	else if (r < 0)
		r = failed(life, "files", r, err);
	*strrchr(path, '/') = '\0';
	if (r >= 0 && (r = abx_file_list_dir(life->sandbox, path, NULL, &list, &err)) < 0)
		r = failed(life, "list", r, err);
	if (r >= 0 && abx_file_list_count(list) != 1)
		r = wrong(life, "list: not one entry");
	if (r >= 0 && (r = abx_file_remove(life->sandbox, path, NULL, &err)) < 0)
		r = failed(life, "remove", r, err);
	abx_file_list_free(list);
	abx_free(got);
	free(data);
	return r < 0 ? -1 : 0;
}

static int act_missing(soak_life *life)
{
	abx_file_info *info = NULL;
	abx_error *err = NULL;
	int r = abx_file_stat(life->sandbox, "/no/such/file", NULL, &info, &err);

	abx_file_info_free(info);
	if (r != ABX_ENOTFOUND)
		return failed(life, "missing file", r, err);
	abx_error_free(err);
	return 0;
}

static abx_process *start_pty(soak_life *life)
{
	static const char *const argv[] = { "/bin/sh", NULL };
	abx_pty_options opts = ABX_PTY_OPTIONS_INIT;
	abx_process *process = NULL;
	abx_error *err = NULL;
	int r;

	forget(life);
	opts.argv = argv;
	opts.timeout_ms = LEFT_BEHIND_MS + PATIENCE_MS;
	opts.on_output = take_bytes;
	opts.userdata = life;
	r = abx_pty_start(life->sandbox, &opts, &process, &err);
	if (r < 0)
		failed(life, "pty", r, err);
	return process;
}

static int act_pty(soak_life *life)
{
	static const char line[] = "stty size; echo $((6 * 7))x; exit\n";
	abx_process *process = start_pty(life);
	abx_error *err = NULL;
	uint32_t pid;
	int r;

	if (!process)
		return -1;
	pid = abx_process_pid(process);
	r = abx_pty_resize(life->sandbox, pid, 101, 33, &err);
	if (r >= 0)
		r = abx_pty_send_input(life->sandbox, pid, line, sizeof(line) - 1, &err);
	if (r >= 0)
		r = abx_process_wait(process, NULL, &err);
	if (r < 0)
		r = failed(life, "pty", r, err);
	else if (!strstr(life->got, "33 101") || !strstr(life->got, "42x"))
		r = wrong(life, "pty: not what was typed");
	abx_process_free(process);
	return r < 0 ? -1 : 0;
}

static int on_event(void *userdata, const abx_watch_event *event)
{
	soak_life *life = userdata;

	if (event->type == ABX_WATCH_CREATE && strcmp(event->name, "seen") == 0)
		life->events++;
	return ABX_OK;
}

/* A new directory that is watched; NULL when it failed. */
static abx_watch *start_watch(soak_life *life, char *path, size_t size)
{
	abx_watch_options opts = ABX_WATCH_OPTIONS_INIT;
	abx_watch *watch = NULL;
	abx_error *err = NULL;
	int r;

	forget(life);
	snprintf(path, size, "/tmp/watched-%d-%u", getpid(), pick(life, 1000));
	r = abx_file_make_dir(life->sandbox, path, NULL, &err);
	opts.on_event = on_event;
	opts.userdata = life;
	opts.recursive = 1;
	if (r >= 0)
		r = abx_watch_start(life->sandbox, path, &opts, &watch, &err);
	if (r < 0)
		failed(life, "watch", r, err);
	return watch;
}

static int act_watch(soak_life *life)
{
	char folder[64], path[80];
	abx_watch *watch = start_watch(life, folder, sizeof(folder));
	double until = rig_now_ms() + PATIENCE_MS;
	abx_error *err = NULL;
	int r;

	if (!watch)
		return -1;
	snprintf(path, sizeof(path), "%s/seen", folder);
	r = abx_file_write(life->sandbox, path, "x", 1, NULL, &err);
	if (r < 0)
		r = failed(life, "watch: write", r, err);
	while (r >= 0 && !life->events && rig_now_ms() < until)
		abx_client_wait(life->client, 100, NULL);
	if (r >= 0 && !life->events)
		r = wrong(life, "watch: nothing was seen");
	abx_watch_free(watch);
	if (r >= 0 && (r = abx_file_remove(life->sandbox, folder, NULL, &err)) < 0)
		r = failed(life, "watch: remove", r, err);
	return r < 0 ? -1 : 0;
}

static int act_look(soak_life *life)
{
	abx_sandbox_info *info = NULL;
	abx_process_list *list = NULL;
	abx_error *err = NULL;
	int r = abx_sandbox_get_info(life->sandbox, &info, &err);

	if (r >= 0)
		r = abx_command_list(life->sandbox, &list, &err);
	abx_sandbox_info_free(info);
	abx_process_list_free(list);
	return r < 0 ? failed(life, "look", r, err) : 0;
}

static int act_pause(soak_life *life)
{
	abx_sandbox_connect_options opts = ABX_SANDBOX_CONNECT_OPTIONS_INIT;
	abx_error *err = NULL;
	int r = abx_sandbox_pause(life->sandbox, NULL, &err);

	opts.timeout_ms = OWN_IDLE_MS;
	if (r >= 0)
		r = abx_sandbox_resume(life->sandbox, &opts, &err);
	return r < 0 ? failed(life, "pause", r, err) : act_exec(life);
}

/* In the middle of something: never returns. */
static int act_vanish(soak_life *life)
{
	static const char *const argv[] = {
		"sh", "-c",
		"for i in $(seq 50); do head -c 20000 /dev/zero; "
		"sleep 0.05; done",
		NULL
	};
	abx_command_options opts = ABX_COMMAND_OPTIONS_INIT;
	abx_sandbox_options create = ABX_SANDBOX_OPTIONS_INIT;
	char path[64];

	opts.argv = argv;
	opts.timeout_ms = LEFT_BEHIND_MS;
	opts.on_stdout = take_bytes;
	opts.userdata = life;
	create.template_id = life->self->env;
	create.timeout_ms = OWN_IDLE_MS;
	switch (pick(life, 5)) {
	case 0:
		start_pty(life);
		break;
	case 1:
		start_watch(life, path, sizeof(path));
		break;
	case 2:
		start_cat(life);
		break;
	case 3:
		abx_command_run_async(life->sandbox, NULL, &opts, NULL, NULL, NULL, NULL,
				      NULL);
		break;
	default:
		abx_sandbox_create_async(life->client, &create, NULL, NULL, NULL, NULL,
					 NULL);
	}
	for (unsigned i = pick(life, 10); i; i--)
		abx_client_wait(life->client, 20, NULL);
	_exit(0);
}

/* ---- a life ---- */

enum { OF_ALL, NOT_IN_VISITS, NOT_OF_RESIDENTS };

static const struct {
	const char *name;
	int (*act)(soak_life *life); /* NULL: no act of its own, but counted */
	unsigned weight;
	int limits;
} acts[] = {
	{ "exec", act_exec, 30, OF_ALL },
	{ "output", act_output, 8, OF_ALL },
	{ "deadline", act_deadline, 3, OF_ALL },
	{ "stdin", act_stdin, 10, OF_ALL },
	{ "files", act_files, 20, OF_ALL },
	{ "missing", act_missing, 3, OF_ALL },
	{ "pty", act_pty, 8, OF_ALL },
	{ "watch", act_watch, 8, OF_ALL },
	{ "look", act_look, 5, OF_ALL },
	{ "pause", act_pause, 3, NOT_IN_VISITS },
	{ "vanish", act_vanish, 6, NOT_OF_RESIDENTS },
	{ "create", NULL, 0, OF_ALL },
	{ "kill", NULL, 0, OF_ALL },
};
enum { ACT_COUNT = sizeof(acts) / sizeof(acts[0]) };
enum { ACT_VANISH = ACT_COUNT - 3, ACT_CREATE, ACT_KILL };

int soak_act_count(void)
{
	return ACT_COUNT;
}

const char *soak_act_name(int act)
{
	return acts[act].name;
}

static void note(const soak_life *life, int act, int r)
{
	soak_note n = { .act = act, .has_failed = r < 0 };

	if (r < 0)
		snprintf(n.text, sizeof(n.text), "%s", life->why);
	if (write(life->self->notes_fd, &n, sizeof(n)) != (ssize_t)sizeof(n))
		_exit(1); /* nobody listens any more */
}

static int is_resident(const soak_life *life)
{
	return life->self->number < SOAK_RESIDENTS;
}

static int is_visitor(const soak_life *life)
{
	return !is_resident(life) && life->self->number % 2 == 0;
}

static int pick_act(soak_life *life)
{
	unsigned sum = 0;

	for (int i = 0; i < ACT_COUNT; i++)
		sum += acts[i].weight;
	for (;;) {
		unsigned at = pick(life, sum);
		int i = 0;

		while (at >= acts[i].weight)
			at -= acts[i++].weight;
		if (acts[i].limits == NOT_OF_RESIDENTS && is_resident(life))
			continue;
		/* A resident's sandbox is not the visitors' to pause, nor to be paused
		 * while they work in it. */
		if (acts[i].limits == NOT_IN_VISITS &&
		    (is_visitor(life) || is_resident(life)))
			continue;
		return i;
	}
}

static int take_sandbox(soak_life *life)
{
	abx_sandbox_options opts = ABX_SANDBOX_OPTIONS_INIT;
	abx_error *err = NULL;
	char *id = is_resident(life)
			   ? life->self->shared->resident_ids[life->self->number]
			   : life->self->shared->resident_ids[pick(life, SOAK_RESIDENTS)];
	int r;

	opts.template_id = life->self->env;
	opts.timeout_ms = is_resident(life) ? RESIDENT_IDLE_MS : OWN_IDLE_MS;
	r = is_visitor(life)
		    ? abx_sandbox_connect(life->client, id, NULL, &life->sandbox, &err)
		    : abx_sandbox_create(life->client, &opts, &life->sandbox, &err);
	if (r < 0)
		return failed(life, "create", r, err);
	if (is_resident(life)) {
		if (run(life, "touch /tmp/soak-resident", 0) < 0)
			return -1;
		snprintf(id, SOAK_ID_SIZE, "%s", abx_sandbox_id(life->sandbox));
	}
	return 0;
}

static void end_life(soak_life *life)
{
	abx_error *err = NULL;
	int r = 0;

	if (!is_visitor(life) && life->sandbox) {
		r = abx_sandbox_kill(life->sandbox, &err);
		if (r < 0)
			failed(life, "kill", r, err);
		note(life, ACT_KILL, r < 0 ? -1 : 0);
	}
	abx_sandbox_free(life->sandbox);
	abx_client_free(life->client);
}

static void live(const soak_client *self, unsigned seed)
{
	soak_life life = { .self = self, .seed = seed };
	unsigned left = 5 + pick(&life, 30);
	int r;

	life.client = library_client(self->rig);
	r = take_sandbox(&life);
	note(&life, ACT_CREATE, r);
	while (r == 0 && !self->shared->is_ending && (is_resident(&life) || left--)) {
		int act = pick_act(&life);

		if (act == ACT_VANISH)
			note(&life, act, 0);
		note(&life, act, acts[act].act(&life));
		usleep(self->pause_ms * (500 + pick(&life, 1000)));
	}
	end_life(&life);
}

void soak_client_run(const soak_client *self)
{
	unsigned seed = self->seed;

	while (!self->shared->is_ending)
		live(self, seed++);
	_exit(0);
}
