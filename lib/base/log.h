/*
 * log.h - one event a line, text plus key=value fields.
 *
 * The library never prints: a log is a callback and a level, unset means silence. Daemons
 * use abx__log_json_line(), which writes JSON lines to a descriptor. There is no field
 * for secrets on purpose.
 */
#ifndef ABX_BASE_LOG_H
#define ABX_BASE_LOG_H

#include <stdint.h>

enum abx__log_level { ABX__LOG_DEBUG, ABX__LOG_INFO, ABX__LOG_WARN, ABX__LOG_ERROR };

typedef struct abx__log {
	/* `fields` is "key=value key=value", or "". */
	void (*write)(void *userdata, int level, const char *text, const char *fields);
	void *userdata;
	int level; /* events below it are dropped before formatting */
} abx__log;

/* `fields_fmt` may be NULL. A NULL log is silence. Example: abx__log(log, ABX__LOG_INFO,
   "sandbox claimed", "sandbox=%s pool=%s", id, pool) */
void abx__log_event(const abx__log *log, int level, const char *text,
		    const char *fields_fmt, ...) __attribute__((format(printf, 4, 5)));

/* A `write` for daemons: JSON lines to the descriptor (int)(intptr_t)userdata. */
void abx__log_json_line(void *userdata, int level, const char *text, const char *fields);

#define abx__log_debug(log, ...) abx__log_event((log), ABX__LOG_DEBUG, __VA_ARGS__)
#define abx__log_info(log, ...) abx__log_event((log), ABX__LOG_INFO, __VA_ARGS__)
#define abx__log_warn(log, ...) abx__log_event((log), ABX__LOG_WARN, __VA_ARGS__)
#define abx__log_error(log, ...) abx__log_event((log), ABX__LOG_ERROR, __VA_ARGS__)

#endif
