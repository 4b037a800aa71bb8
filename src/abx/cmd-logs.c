/*
 * src/abx/cmd-logs.c - `abx logs` and `abx metrics`: what a sandbox's container wrote,
 * and what it uses.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "table.h"

#define FOLLOW_MS 500

/* Where a log is followed: what came last, and how many of that moment were shown. */
struct position {
	int64_t at_ms;
	size_t shown;
};

static void time_text(int64_t ms, char *buf, size_t size)
{
	time_t t = (time_t)(ms / 1000);
	struct tm tm;

	buf[0] = '\0';
	if (localtime_r(&t, &tm) != NULL)
		strftime(buf, size, "%Y-%m-%d %H:%M:%S", &tm);
}

static const char *level_name(int level)
{
	static const char *const names[] = {
		[ABX_LOG_DEBUG] = "debug",
		[ABX_LOG_INFO] = "info",
		[ABX_LOG_WARN] = "warn",
		[ABX_LOG_ERROR] = "error",
	};

	return level >= ABX_LOG_DEBUG && level <= ABX_LOG_ERROR ? names[level] : "info";
}

/* ---- logs ---- */

static json_object *entry_json(const abx_log_entry *entry)
{
	json_object *o = json_object_new_object();
	json_object *fields = json_object_new_object();

	json_object_object_add(o, "timestampMs",
			       json_object_new_int64(entry->timestamp_ms));
	json_object_object_add(o, "level",
			       json_object_new_string(level_name(entry->level)));
	json_object_object_add(o, "message", json_object_new_string(entry->message));
	for (size_t i = 0; entry->fields[i] != NULL; i++) {
		const char *equals = strchr(entry->fields[i], '=');
		char key[128];

		snprintf(key, sizeof(key), "%.*s", (int)(equals - entry->fields[i]),
			 entry->fields[i]);
		json_object_object_add(fields, key, json_object_new_string(equals + 1));
	}
	json_object_object_add(o, "fields", fields);
	return o;
}

static void print_entry(const abx_log_entry *entry)
{
	char when[32];

	time_text(entry->timestamp_ms, when, sizeof(when));
	printf("%s.%03d  %-5s  %s", when, (int)(entry->timestamp_ms % 1000),
	       level_name(entry->level), entry->message);
	for (size_t i = 0; entry->fields[i] != NULL; i++)
		printf("  %s", entry->fields[i]);
	putchar('\n');
}

/* Those that are new since `position`, which goes on. */
static size_t print_new(const struct cli_args *args, abx_logs *logs,
			struct position *position)
{
	size_t skip = position->shown, printed = 0;

	for (size_t i = 0; i < abx_logs_count(logs); i++) {
		const abx_log_entry *entry = abx_logs_at(logs, i);

		if (entry->timestamp_ms == position->at_ms && skip > 0) {
			skip--;
			continue;
		}
		if (entry->timestamp_ms != position->at_ms) {
			position->at_ms = entry->timestamp_ms;
			position->shown = 0;
		}
		position->shown++;
		printed++;
		if (!args->json) {
			print_entry(entry);
			continue;
		}
		json_object *o = entry_json(entry);
		cli_print_json(o);
		json_object_put(o);
	}
	return printed;
}

/* One look from `position` on: how many were new, or negative. */
static int look(const struct cli_args *args, abx_sandbox *sandbox,
		struct position *position, abx_error **err)
{
	abx_logs_options opts = ABX_LOGS_OPTIONS_INIT;
	abx_logs *logs = NULL;
	int r;

	opts.cursor_ms = position->at_ms;
	r = abx_sandbox_get_logs(sandbox, &opts, &logs, err);
	if (r < 0)
		return r;
	r = (int)print_new(args, logs, position);
	abx_logs_free(logs);
	fflush(stdout);
	return r;
}

static int follow(const struct cli_args *args, abx_client *client, abx_sandbox *sandbox)
{
	struct position position = { 0, 0 };
	abx_error *err = NULL;
	int r;

	do {
		r = look(args, sandbox, &position, &err);
		if (r < 0)
			return cli_fail_error(NULL, err);
		if (r > 0)
			continue; /* there may be more than one answer held */
		if (!args->follow)
			return 0;
		abx_client_wait(client, FOLLOW_MS, NULL);
	} while (cli_signal_caught() == 0);
	return 128 + cli_signal_caught();
}

int cmd_logs(const struct cli_args *args)
{
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	CLI_CLEANUP(cli_sandbox_freep) abx_sandbox *sandbox = NULL;
	abx_error *err = NULL;
	int r;

	if (args->n_words != 1)
		return cli_fail("abx logs [-f] ID", "logs needs one sandbox");
	if (cli_client(args, &client) != 0)
		return 1;
	if (abx_sandbox_open(client, args->words[0], &sandbox, &err) < 0)
		return cli_fail_error(NULL, err);
	cli_signals_catch(client);
	r = follow(args, client, sandbox);
	cli_signals_release();
	return r;
}

/* ---- metrics ---- */

static json_object *metric_json(const abx_metric *m)
{
	json_object *o = json_object_new_object();
	const struct {
		const char *key;
		uint64_t value;
	} numbers[] = {
		{ "cpuCount", m->cpu_count },
		{ "memoryUsedBytes", m->memory_used_bytes },
		{ "memoryTotalBytes", m->memory_total_bytes },
		{ "memoryCacheBytes", m->memory_cache_bytes },
		{ "diskUsedBytes", m->disk_used_bytes },
		{ "diskTotalBytes", m->disk_total_bytes },
	};

	json_object_object_add(o, "timestampMs", json_object_new_int64(m->timestamp_ms));
	json_object_object_add(o, "cpuUsedPct", json_object_new_double(m->cpu_used_pct));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		json_object_object_add(o, numbers[i].key,
				       json_object_new_int64((int64_t)numbers[i].value));
	return o;
}

static void mib_text(uint64_t used, uint64_t total, char *buf, size_t size)
{
	snprintf(buf, size, "%llu / %llu MiB", (unsigned long long)(used >> 20),
		 (unsigned long long)(total >> 20));
}

static void metric_row(struct cli_table *table, const abx_metric *m)
{
	char when[32], cpu[48], memory[64], disk[64];

	time_text(m->timestamp_ms, when, sizeof(when));
	snprintf(cpu, sizeof(cpu), "%.1f %% of %u", m->cpu_used_pct, m->cpu_count);
	mib_text(m->memory_used_bytes, m->memory_total_bytes, memory, sizeof(memory));
	mib_text(m->disk_used_bytes, m->disk_total_bytes, disk, sizeof(disk));
	const char *cells[] = { when, cpu, memory, disk };
	cli_table_add(table, cells);
}

int cmd_metrics(const struct cli_args *args)
{
	static const char *const heads[] = { "time", "cpu", "memory", "disk" };
	CLI_CLEANUP(cli_client_freep) abx_client *client = NULL;
	CLI_CLEANUP(cli_sandbox_freep) abx_sandbox *sandbox = NULL;
	abx_metrics *metrics = NULL;
	abx_error *err = NULL;

	if (args->n_words != 1)
		return cli_fail("abx metrics ID", "metrics needs one sandbox");
	if (cli_client(args, &client) != 0)
		return 1;
	if (abx_sandbox_open(client, args->words[0], &sandbox, &err) < 0 ||
	    abx_sandbox_get_metrics(sandbox, NULL, &metrics, &err) < 0)
		return cli_fail_error(NULL, err);
	json_object *all = args->json ? json_object_new_array() : NULL;
	struct cli_table *table = args->json ? NULL : cli_table_new(heads, 4, 0);
	for (size_t i = 0; i < abx_metrics_count(metrics); i++) {
		if (args->json)
			json_object_array_add(all,
					      metric_json(abx_metrics_at(metrics, i)));
		else
			metric_row(table, abx_metrics_at(metrics, i));
	}
	if (args->json)
		cli_print_json(all);
	else if (abx_metrics_count(metrics) > 0)
		cli_table_print(table);
	else
		fprintf(stderr,
			"no sample of %s yet: the first is taken within ten seconds\n",
			args->words[0]);
	json_object_put(all);
	cli_table_free(table);
	abx_metrics_free(metrics);
	return 0;
}
