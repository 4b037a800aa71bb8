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
/* Options that only some calls know, as bits. */
enum abx__file_option {
	ABX__FILE_METADATA = 1 << 0,
	ABX__FILE_RANGE = 1 << 1,
	ABX__FILE_GZIP = 1 << 2,
};
/* Refuses those that are set and not `known`. */
int abx__file_check_options(const char *what, const abx_file_options *opts,
			    unsigned known, abx_error **reterr);
/* A path is there and UTF-8; `what` begins the message. */
int abx__file_check_path(const char *what, const char *path, abx_error **reterr);

#endif
