/*
 * version.c - the version the library was built as.
 */
#include <agentbox/version.h>

const char *abx_version(void)
{
	return ABX_VERSION_STRING;
}
