/*
 * log-source.c - see log-source.h. The container's log is a file the engine gives a
 * descriptor of; it is read off the loop's thread, and looked at again now and then while
 * it is followed. It is emptied at a megabyte, and when its container starts anew: then
 * reading begins at its beginning. A runtime's file is read by `tail` in the sandbox.
 */
#include "serve/log-source.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "serve/call.h"
#include "serve/sandbox-process.h"

#define PIECE ((size_t)64 << 10)
#define POLL_MS 200
#define TAIL_SAYS_MAX 512

struct abx__log_source {
	uv_timer_t timer; /* first; between looks */
	uv_fs_t fs;
	abx__serve *serve;
	abx__log_source_events events;
	void *userdata;
	char *id;
	bool follow, closed, paused, caught_up;
	bool busy; /* a read, or the engine's answer, is under way */
	int fd;
	off_t at;
	abx__sandbox_process *tail; /* NULL: a container's */
	char says[TAIL_SAYS_MAX];   /* what tail complains of */
	char piece[PIECE];
};

/* ---- life ---- */

static void on_timer_closed(uv_handle_t *handle)
{
	abx__log_source *s = (abx__log_source *)handle;
	abx__serve *serve = s->serve;

	if (s->fd >= 0)
		close(s->fd);
	abx__free(s->id);
	abx__free(s);
	abx__serve_release(serve);
}

/* Once nothing is under way. */
static void let_go(abx__log_source *s)
{
	if (s->closed && !s->busy && !uv_is_closing((uv_handle_t *)&s->timer))
		uv_close((uv_handle_t *)&s->timer, on_timer_closed);
}

void abx__log_source_close(abx__log_source *s)
{
	if (s->closed)
		return;
	s->closed = true;
	if (s->tail)
		abx__sandbox_process_close(s->tail, false);
	s->tail = NULL;
	let_go(s);
}

static void finish(abx__log_source *s, int r, const abx_error *err)
{
	if (!s->closed)
		s->events.done(s->userdata, r, err);
	abx__log_source_close(s);
	let_go(s);
}

static abx__log_source *source_new(abx__serve *serve, const abx__sandbox_rec *rec,
				   const abx__log_source_events *events, void *userdata)
{
	abx__log_source *s = abx__calloc(1, sizeof(*s));

	if (s)
		s->id = abx__strdup(rec->id);
	if (!s || !s->id) {
		abx__free(s);
		return NULL;
	}
	s->serve = serve;
	s->events = *events;
	s->userdata = userdata;
	s->fd = -1;
	abx__serve_retain(serve);
	uv_timer_init(serve->loop, &s->timer);
	return s;
}

static void catch_up(abx__log_source *s)
{
	if (s->caught_up)
		return;
	s->caught_up = true;
	s->events.caught_up(s->userdata);
}

/* ---- the container's ---- */

static void read_more(abx__log_source *s);
static int open_log(abx__log_source *s, abx_error **reterr);

static bool is_alive(const abx__log_source *s)
{
	const abx__sandbox_rec *rec =
		abx__sandboxes_find(abx__control_sandboxes(s->serve->control), s->id);

	return rec && rec->state != ABX__SANDBOX_STOPPING;
}

/* Its Pod is the next sandbox's soon: nothing of that may be seen here. */
static void on_look(uv_timer_t *timer)
{
	abx__log_source *s = (abx__log_source *)timer;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	struct stat st;

	if (!is_alive(s)) {
		finish(s, ABX_OK, NULL);
		return;
	}
	if (s->fd < 0) {
		if (open_log(s, &err) < 0)
			finish(s, abx_error_code(err), err);
		return;
	}
	if (fstat(s->fd, &st) == 0 && st.st_size < s->at)
		s->at = 0;
	read_more(s);
}

static void look_later(abx__log_source *s)
{
	catch_up(s);
	if (s->closed)
		return;
	if (s->follow)
		uv_timer_start(&s->timer, on_look, POLL_MS, 0);
	else
		finish(s, ABX_OK, NULL);
}

static void on_read(uv_fs_t *fs)
{
	abx__log_source *s = fs->data;
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	ssize_t n = fs->result;

	uv_fs_req_cleanup(fs);
	s->busy = false;
	if (s->closed) {
		let_go(s);
	} else if (n < 0) {
		abx__error_set(&err, ABX_EIO, "the sandbox's log cannot be read: %s",
			       uv_strerror((int)n));
		finish(s, ABX_EIO, err);
	} else if (n == 0 || (s->follow && !is_alive(s))) {
		look_later(s);
	} else {
		s->at += n;
		s->events.data(s->userdata, s->piece, (size_t)n);
		if (!s->closed && !s->paused)
			read_more(s);
	}
}

static void read_more(abx__log_source *s)
{
	ABX_CLEANUP(abx__error_freep) abx_error *err = NULL;
	uv_buf_t buf = uv_buf_init(s->piece, PIECE);

	if (s->paused || s->busy)
		return;
	s->busy = true;
	s->fs.data = s;
	if (uv_fs_read(s->serve->loop, &s->fs, s->fd, &buf, 1, s->at, on_read) < 0) {
		s->busy = false;
		abx__error_nomem(&err);
		finish(s, ABX_ENOMEM, err);
	}
}

static void on_log(void *userdata, int r, int fd, const abx_error *err)
{
	abx__log_source *s = userdata;

	s->busy = false;
	if (r == ABX_OK)
		s->fd = fd;
	if (s->closed)
		let_go(s);
	else if (r == ABX_OK)
		read_more(s);
	else if (r == ABX_ENOTFOUND)
		look_later(s); /* nothing was written yet */
	else
		finish(s, r, err);
}

static int open_log(abx__log_source *s, abx_error **reterr)
{
	int r;

	s->busy = true;
	r = abx__control_open_log(s->serve->control, s->id, on_log, s, reterr);
	if (r < 0)
		s->busy = false;
	return r;
}

int abx__log_source_container(abx__serve *serve, const abx__sandbox_rec *rec, bool follow,
			      const abx__log_source_events *events, void *userdata,
			      abx__log_source **ret, abx_error **reterr)
{
	abx__log_source *s = source_new(serve, rec, events, userdata);
	int r;

	if (!s)
		return abx__error_nomem(reterr);
	s->follow = follow;
	r = open_log(s, reterr);
	if (r < 0)
		abx__log_source_close(s);
	else
		*ret = s;
	return r;
}

/* ---- a runtime's file ---- */

static void on_tail_output(void *userdata, enum abx__output which, const char *data,
			   size_t len)
{
	abx__log_source *s = userdata;
	size_t have = strlen(s->says);

	if (s->closed)
		return;
	catch_up(s);
	if (which != ABX__STDERR) {
		s->events.data(s->userdata, data, len);
	} else if (have + 1 < sizeof(s->says)) {
		size_t n = sizeof(s->says) - 1 - have;

		memcpy(s->says + have, data, len < n ? len : n);
	}
}

static void on_tail_done(void *userdata, int r, int exit_code, const abx_error *err)
{
	abx__log_source *s = userdata;
	ABX_CLEANUP(abx__error_freep) abx_error *own = NULL;

	s->tail = NULL;
	if (s->closed)
		return;
	catch_up(s);
	if (r == ABX_OK && exit_code != 0) {
		s->says[strcspn(s->says, "\n")] = '\0';
		r = abx__error_set(&own, ABX_EIO, "the runtime's log cannot be read: %s",
				   *s->says ? s->says : "tail failed");
		err = own;
	}
	finish(s, r, err);
}

int abx__log_source_file(abx__serve *serve, const abx__sandbox_rec *rec, const char *path,
			 unsigned lines, bool follow,
			 const abx__log_source_events *events, void *userdata,
			 abx__log_source **ret, abx_error **reterr)
{
	static const abx__sandbox_process_events tail_events = { .output = on_tail_output,
								 .done = on_tail_done };
	abx__log_source *s = source_new(serve, rec, events, userdata);
	char count[16], bytes[16];
	const char *const followed[] = { "-n", count, "-F", "--", path, NULL };
	const char *const once[] = { "-c", bytes, "--", path, NULL };
	const abx__sandbox_command command = { .cmd = "tail",
					       .args = follow ? followed : once };
	int r;

	if (!s)
		return abx__error_nomem(reterr);
	snprintf(count, sizeof(count), lines ? "%u" : "+1", lines);
	snprintf(bytes, sizeof(bytes), "%zu", ABX__LOG_FILE_MAX);
	r = abx__sandbox_process_start(serve, rec, &command, &tail_events, s, &s->tail,
				       reterr);
	if (r < 0)
		abx__log_source_close(s);
	else
		*ret = s;
	return r;
}

/* ---- back pressure ---- */

void abx__log_source_pause(abx__log_source *s)
{
	s->paused = true;
	if (s->tail)
		abx__sandbox_process_pause(s->tail);
}

void abx__log_source_resume(abx__log_source *s)
{
	if (!s->paused || s->closed)
		return;
	s->paused = false;
	if (s->tail)
		abx__sandbox_process_resume(s->tail);
	else if (s->fd >= 0 && !s->busy && !uv_is_active((uv_handle_t *)&s->timer))
		read_more(s);
}
