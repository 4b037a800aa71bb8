/*
 * agentbox/version.h - which libagentbox this is.
 *
 * The macros are what a program was compiled against; the functions are what it runs
 * with.
 */
#ifndef AGENTBOX_VERSION_H
#define AGENTBOX_VERSION_H

#if defined(__GNUC__)
#define ABX_API __attribute__((visibility("default")))
#else
#define ABX_API
#endif

#define ABX_VERSION_MAJOR 0
#define ABX_VERSION_MINOR 1
#define ABX_VERSION_PATCH 0
#define ABX_VERSION_STRING "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The version of the library in use, such as "0.1.0".
 *
 * Owner: the library; never freed. Threads: any. Since: 0.1.0
 */
ABX_API const char *abx_version(void);

#ifdef __cplusplus
}
#endif
#endif
