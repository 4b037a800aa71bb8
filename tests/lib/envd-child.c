/*
 * envd-child.c - the daemon as a child process, spoken to over plain sockets.
 */
#include "envd-child.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/alloc.h"
#include "base/id.h"
#include "base/str.h"
#include "io/connect-frame.h"

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
}

static uint16_t read_port(const char *log)
{
	char text[4096] = "";
	FILE *f = fopen(log, "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	char *at;

	if (f)
		fclose(f);
	text[n] = '\0';
	at = strstr(text, "port=");
	return at && strchr(at, '\n') ? (uint16_t)strtol(at + 5, NULL, 10) : 0;
}

static void exec_envd(envd_child *child, const char *const *args)
{
	const char *top = getenv("top_builddir");
	char program[4096], run_dir[128];
	const char *argv[32] = { program,     "-port",    "0",        "-bind",
				 "127.0.0.1", "-verbose", "-run-dir", run_dir };
	int n = 8, fd = open(child->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	snprintf(program, sizeof(program), "%s/agentbox-envd", top ? top : ".");
	snprintf(run_dir, sizeof(run_dir), "%s/run", child->dir);
	while (args && *args && n < 31)
		argv[n++] = *args++;
	dup2(fd, STDERR_FILENO);
	if (child->root) {
		snprintf(program, sizeof(program), "/envd");
		snprintf(run_dir, sizeof(run_dir), "/run");
		if (chroot(child->root) < 0 || chdir("/") < 0)
			_exit(126);
	}
	execv(program, (char *const *)(uintptr_t)argv);
	_exit(127);
}

void envd_child_start(envd_child *child, const char *const *args)
{
	snprintf(child->dir, sizeof(child->dir), "/tmp/abx-envd-test-XXXXXX");
	cr_assert(mkdtemp(child->dir));
	chmod(child->dir, 0755);
	snprintf(child->log, sizeof(child->log), "%s/log", child->dir);
	child->port = 0;
	child->pid = fork();
	if (child->pid == 0)
		exec_envd(child, args);
	for (int i = 0; i < 2000 && child->port == 0; i++) {
		nap();
		child->port = read_port(child->log);
	}
	cr_assert(child->port != 0, "agentbox-envd did not start");
}

static int remove_entry(const char *path, const struct stat *st, int type,
			struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void envd_child_stop(envd_child *child)
{
	int status = -1;
	pid_t pid = 0;

	kill(child->pid, SIGTERM);
	for (int i = 0; i < 2000 && pid == 0; i++) {
		pid = waitpid(child->pid, &status, WNOHANG);
		if (pid == 0)
			nap();
	}
	if (pid == 0) {
		kill(child->pid, SIGKILL);
		waitpid(child->pid, &status, 0);
	}
	if (status != 0) { /* a sanitizer's report, most likely */
		char text[8192] = "";
		FILE *f = fopen(child->log, "r");

		if (f) {
			while (fgets(text, sizeof(text), f))
				if (text[0] != '{')
					fputs(text, stderr);
			fclose(f);
		}
	}
	nftw(child->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	cr_assert(pid != 0, "agentbox-envd did not end on SIGTERM");
	cr_assert(status == 0, "agentbox-envd ended with wait status %d", status);
}

bool envd_pid_is_gone(int pid)
{
	char path[40], state = 'X';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return true;
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 'X';
	fclose(f);
	return state == 'Z' || state == 'X';
}

void envd_expect_gone(int pid)
{
	for (int i = 0; i < 1000 && !envd_pid_is_gone(pid); i++)
		nap();
	cr_assert(envd_pid_is_gone(pid), "process %d lives on", pid);
}

int envd_child_connect(const envd_child *child)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(child->port) };
	struct timeval limit = { .tv_sec = 30 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	cr_assert(connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0,
		  "connect to envd");
	return fd;
}

static void send_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

		if (n <= 0)
			return; /* it may have answered early */
		p += n;
		len -= (size_t)n;
	}
}

/* ---- answers ---- */

static void dechunk(envd_answer *answer, const char *p, size_t len)
{
	for (;;) {
		char *end;
		size_t size = strtoul(p, &end, 16);

		if (len < 3 || (size_t)(end - p) + 2 > len)
			return;
		len -= (size_t)(end - p) + 2;
		p = end + 2;
		if (size == 0) {
			answer->is_whole = true;
			return;
		}
		if (size + 2 > len)
			return;
		abx__buf_add(&answer->body, p, size);
		p += size + 2;
		len -= size + 2;
	}
}

static const char *find_header(const envd_answer *answer, const char *name)
{
	size_t len = strlen(name);

	const char *line = answer->head, *end;

	for (; line; line = end ? end + 2 : NULL) {
		end = strstr(line, "\r\n");
		if (strncasecmp(line, name, len) == 0 && line[len] == ':')
			return line + len + 1 + strspn(line + len + 1, " ");
	}
	return NULL;
}

bool envd_answer_has(const envd_answer *answer, const char *header, const char *value)
{
	const char *found = find_header(answer, header);

	return found && strncmp(found, value, strlen(value)) == 0 &&
	       found[strlen(value)] == '\r';
}

envd_answer envd_read_answer(int fd)
{
	envd_answer answer = { .body = { .cap = (size_t)1 << 30 } };
	ABX_CLEANUP_BUF abx__buf all = { .cap = (size_t)1 << 30 };
	char piece[65536], *body;
	const char *length;
	ssize_t n;

	while ((n = read(fd, piece, sizeof(piece))) > 0)
		abx__buf_add(&all, piece, (size_t)n);
	close(fd);
	body = all.data ? memmem(all.data, all.len, "\r\n\r\n", 4) : NULL;
	if (!body)
		return answer;
	answer.head = strndup(all.data, (size_t)(body - all.data) + 2);
	answer.status = (int)strtol(answer.head + 9, NULL, 10);
	body += 4;
	if (find_header(&answer, "Transfer-Encoding")) {
		dechunk(&answer, body, all.len - (size_t)(body - all.data));
		return answer;
	}
	abx__buf_add(&answer.body, body, all.len - (size_t)(body - all.data));
	length = find_header(&answer, "Content-Length");
	answer.is_whole = length ? strtoul(length, NULL, 10) == answer.body.len
				 : answer.body.len == 0;
	return answer;
}

void envd_answer_done(envd_answer *answer)
{
	free(answer->head);
	abx__buf_done(&answer->body);
}

/* ---- requests ---- */

static void send_head(int fd, const char *method, const char *target, const char *headers,
		      const char *more)
{
	ABX_CLEANUP(abx__freep)
	char *head =
		abx__strf("%s %s HTTP/1.1\r\nHost: envd\r\nConnection: close\r\n%s%s\r\n",
			  method, target, headers ? headers : "", more);

	send_all(fd, head, strlen(head));
}

envd_answer envd_child_request(const envd_child *child, const char *method,
			       const char *target, const char *headers, const void *body,
			       size_t len)
{
	int fd = envd_child_connect(child);
	char length[64] = "";

	if (body)
		snprintf(length, sizeof(length), "Content-Length: %zu\r\n", len);
	send_head(fd, method, target, headers, length);
	if (body)
		send_all(fd, body, len);
	return envd_read_answer(fd);
}

envd_answer envd_child_call(const envd_child *child, const char *method, const char *json)
{
	return envd_child_request(child, "POST", method,
				  "Content-Type: application/json\r\n", json,
				  strlen(json));
}

int envd_child_open_stream(const envd_child *child, const char *method,
			   const char *headers, const char *json)
{
	ABX_CLEANUP_BUF abx__buf frame = ABX__BUF_INIT;
	char more[128];
	int fd = envd_child_connect(child);

	abx__connect_frame_add(&frame, 0, json, strlen(json));
	snprintf(more, sizeof(more),
		 "Content-Type: application/connect+json\r\nContent-Length: %zu\r\n",
		 frame.len);
	send_head(fd, "POST", method, headers, more);
	send_all(fd, frame.data, frame.len);
	return fd;
}

envd_answer envd_child_stream(const envd_child *child, const char *method,
			      const char *headers, const char *json)
{
	return envd_read_answer(envd_child_open_stream(child, method, headers, json));
}

/* ---- runs ---- */

static json_object *member(json_object *obj, const char *key)
{
	json_object *value = NULL;

	return obj && json_object_object_get_ex(obj, key, &value) ? value : NULL;
}

static void add_base64(abx__buf *buf, json_object *value)
{
	uint8_t *bytes;
	size_t len;

	if (!value)
		return;
	cr_assert(abx__base64_decode(json_object_get_string(value),
				     (size_t)json_object_get_string_len(value), &bytes,
				     &len) == 0);
	abx__buf_add(buf, bytes, len);
	abx__free(bytes);
}

static void read_event(envd_run *run, json_object *event)
{
	json_object *end = member(event, "end"), *start = member(event, "start");

	if (start)
		run->pid = (uint32_t)json_object_get_int64(member(start, "pid"));
	add_base64(&run->out, member(member(event, "data"), "stdout"));
	add_base64(&run->err, member(member(event, "data"), "stderr"));
	add_base64(&run->pty, member(member(event, "data"), "pty"));
	run->keepalives += member(event, "keepalive") != NULL;
	if (!end)
		return;
	run->has_end = true;
	run->exit_code = json_object_get_int(member(end, "exitCode"));
	run->exited = json_object_get_boolean(member(end, "exited"));
	snprintf(run->status, sizeof(run->status), "%s",
		 json_object_get_string(member(end, "status")));
}

static int on_frame(void *userdata, unsigned flags, const char *data, size_t len)
{
	envd_run *run = userdata;
	ABX_CLEANUP(abx__freep) char *text = abx__strndup(data, len);
	json_object *obj = json_tokener_parse(text), *error = member(obj, "error");

	cr_assert(obj, "not JSON: %s", text);
	if (!(flags & ABX__CONNECT_END_STREAM)) {
		read_event(run, member(obj, "event"));
	} else if (error) {
		snprintf(run->error_code, sizeof(run->error_code), "%s",
			 json_object_get_string(member(error, "code")));
		snprintf(run->error_message, sizeof(run->error_message), "%s",
			 json_object_get_string(member(error, "message")));
	}
	json_object_put(obj);
	return 0;
}

void envd_run_read(envd_run *run, const envd_answer *answer)
{
	abx__connect_parser parser = { .max_bytes = (size_t)16 << 20 };

	run->out.cap = run->err.cap = run->pty.cap = (size_t)1 << 30;
	cr_assert(answer->status == 200, "stream answered %d", answer->status);
	cr_assert(answer->is_whole, "the stream was cut");
	cr_assert(abx__connect_parser_feed(&parser, answer->body.data, answer->body.len,
					   on_frame, run) == 0);
	cr_assert(abx__connect_parser_finish(&parser) == 0);
	abx__connect_parser_done(&parser);
}

envd_run envd_child_run(const envd_child *child, const char *json)
{
	envd_answer answer =
		envd_child_stream(child, "/process.Process/Start", NULL, json);
	envd_run run = { 0 };

	envd_run_read(&run, &answer);
	envd_answer_done(&answer);
	return run;
}

void envd_run_done(envd_run *run)
{
	abx__buf_done(&run->out);
	abx__buf_done(&run->err);
	abx__buf_done(&run->pty);
}

/* ---- streams as they come ---- */

void envd_stream_open(envd_stream *stream, const envd_child *child, const char *method,
		      const char *headers, const char *json)
{
	memset(stream, 0, sizeof(*stream));
	stream->raw.cap = stream->text.cap = (size_t)1 << 30;
	stream->run.out.cap = stream->run.err.cap = stream->run.pty.cap = (size_t)1 << 30;
	stream->parser = abx__calloc(1, sizeof(*stream->parser));
	stream->parser->max_bytes = (size_t)16 << 20;
	stream->fd = envd_child_open_stream(child, method, headers, json);
}

static int on_stream_frame(void *userdata, unsigned flags, const char *data, size_t len)
{
	envd_stream *stream = userdata;

	abx__buf_add(&stream->text, data, len);
	abx__buf_addc(&stream->text, '\n');
	return on_frame(&stream->run, flags, data, len);
}

/* Takes one chunk off the front; false when it is not there whole. */
static bool take_chunk(envd_stream *stream)
{
	char *line = stream->raw.data, *end;
	size_t size, head;

	if (stream->raw.len < 3 || !memmem(line, stream->raw.len, "\r\n", 2))
		return false;
	size = strtoul(line, &end, 16);
	head = (size_t)(end - line) + 2;
	if (stream->raw.len < head + size + 2)
		return false;
	stream->is_over = size == 0;
	cr_assert(abx__connect_parser_feed(stream->parser, line + head, size,
					   on_stream_frame, stream) == 0);
	abx__buf_consume(&stream->raw, head + size + 2);
	return !stream->is_over;
}

bool envd_stream_read(envd_stream *stream)
{
	char piece[65536];
	ssize_t n = stream->is_over ? 0 : read(stream->fd, piece, sizeof(piece));
	char *end;

	if (n <= 0)
		return false;
	abx__buf_add(&stream->raw, piece, (size_t)n);
	end = stream->has_head ? stream->raw.data
			       : memmem(stream->raw.data, stream->raw.len, "\r\n\r\n", 4);
	if (!end)
		return true;
	if (!stream->has_head)
		abx__buf_consume(&stream->raw, (size_t)(end - stream->raw.data) + 4);
	stream->has_head = true;
	while (take_chunk(stream))
		;
	return true;
}

static void read_until(envd_stream *stream, const abx__buf *buf, const char *text)
{
	while (!buf->data || !memmem(buf->data, buf->len, text, strlen(text)))
		cr_assert(envd_stream_read(stream), "no \"%s\" in: %s", text,
			  abx__buf_str(buf));
}

void envd_stream_until(envd_stream *stream, const char *text)
{
	read_until(stream, &stream->text, text);
}

void envd_stream_until_pty(envd_stream *stream, const char *text)
{
	read_until(stream, &stream->run.pty, text);
}

void envd_stream_to_end(envd_stream *stream)
{
	while (envd_stream_read(stream))
		;
	cr_assert(stream->is_over, "the stream was cut: %s", abx__buf_str(&stream->text));
}

void envd_stream_close(envd_stream *stream)
{
	close(stream->fd);
	abx__buf_done(&stream->raw);
	abx__buf_done(&stream->text);
	abx__connect_parser_done(stream->parser);
	abx__free(stream->parser);
	envd_run_done(&stream->run);
}
