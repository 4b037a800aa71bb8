/*
 * file-info.h - envd's EntryInfo as the public struct.
 */
#ifndef ABX_CLIENT_FILE_INFO_H
#define ABX_CLIENT_FILE_INFO_H

#include <agentbox/files.h>
#include <json-c/json.h>

/* The `entry` of an answer. ABX_ENOMEM, ABX_EPROTO. */
int abx__file_info_parse(json_object *answer, abx_file_info **ret);
/* The `entries` of an answer. */
int abx__file_list_parse(json_object *answer, abx_file_list **ret);
/* A path is there and UTF-8; `what` begins the message. */
int abx__file_check_path(const char *what, const char *path, abx_error **reterr);

#endif
