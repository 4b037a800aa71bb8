/*
 * connect-code.c - one list, four views of it.
 */
#include "io/connect-code.h"

#include <stddef.h>
#include <string.h>

#include <agentbox/error.h>

static const struct row {
	enum abx__connect_code code;
	const char *name;
	int http;
	int error;
} rows[] = {
#define ROW(n, number, text, status, err) { ABX__CONNECT_##n, text, status, err },
	ABX__CONNECT_CODE_MAP(ROW)
#undef ROW
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static const struct row *find(enum abx__connect_code code)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
		if (rows[i].code == code)
			return &rows[i];
	return &rows[1]; /* unknown */
}

const char *abx__connect_code_name(enum abx__connect_code code)
{
	return find(code)->name;
}

int abx__connect_code_http(enum abx__connect_code code)
{
	return find(code)->http;
}

int abx__connect_code_error(enum abx__connect_code code)
{
	return find(code)->error;
}

enum abx__connect_code abx__connect_code_from_name(const char *name)
{
	for (size_t i = 0; name && i < ROW_COUNT; i++)
		if (strcmp(rows[i].name, name) == 0)
			return rows[i].code;
	return ABX__CONNECT_UNKNOWN;
}

enum abx__connect_code abx__connect_code_from_error(int abx_code)
{
	if (abx_code == ABX_ENOMEM || abx_code == ABX_ETOOBIG)
		return ABX__CONNECT_RESOURCE_EXHAUSTED;
	if (abx_code == ABX_EFAIL || abx_code == ABX_EIO || abx_code == ABX_EPROTO)
		return ABX__CONNECT_INTERNAL;
	for (size_t i = 0; i < ROW_COUNT; i++)
		if (rows[i].error == abx_code)
			return rows[i].code;
	return ABX__CONNECT_UNKNOWN;
}
