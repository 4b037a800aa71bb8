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

#endif
