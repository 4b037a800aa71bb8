/*
 * agentbox/files.h - files in a sandbox.
 *
 * Paths are absolute, or relative to the home of the user the call names (else the
 * sandbox's default user). Contents are bytes. Every call can fail as sandbox.h says at
 * its top, and with ABX_ENOTFOUND when the sandbox has ended; the message says whether it
 * was that or the path.
 */
#ifndef AGENTBOX_FILES_H
#define AGENTBOX_FILES_H

#include <stddef.h>
#include <stdint.h>

#include <agentbox/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How to work on files. Strings are borrowed for the call. */
typedef struct abx_file_options {
	size_t size;      /* set by ABX_FILE_OPTIONS_INIT */
	const char *user; /* whose home, and who owns what is made; NULL: the default */
	uint32_t depth;   /* of a list; 0: 1, the directory itself */
	size_t max_bytes; /* most a whole read gives; 0: 256 MiB; then ABX_ETOOBIG */
	uint32_t request_timeout_ms; /* 0: the client's; for contents: without progress */
	int64_t content_length; /* of a streamed write, in bytes; 0 or less: not known */
	const char *const *metadata; /* of a write: "KEY=VALUE", NULL at the end; kept
					with the file, whose former metadata goes */
	int64_t offset_bytes;        /* of a read: begins so far into the file */
	int64_t length_bytes;        /* of a read: at most so many; 0: to its end */
	int gzip;                    /* not 0: contents travel packed */
} abx_file_options;
#define ABX_FILE_OPTIONS_INIT ABX_OPTIONS_INIT(abx_file_options)
/** Does what ABX_FILE_OPTIONS_INIT does. Since: 0.1.0 */
ABX_API void abx_file_options_init(abx_file_options *opts);

/** A completion with contents: `data` (a NUL behind it) is the completion's, abx_free().
 */
typedef void (*abx_file_data_fn)(void *userdata, int r, char *data, size_t len,
				 const abx_error *err);

/**
 * Reads a whole file, or the part `opts` names; behind the file's end there are 0 bytes.
 * A NUL follows the bytes that `*ret_len` counts; `ret_len` may be NULL.
 *
 * Errors: ABX_ENOTFOUND (no such file), ABX_EINVAL (a directory), ABX_ETOOBIG (over
 * max_bytes). Owner: the caller, abx_free(). Since: 0.1.0
 */
ABX_API int abx_file_read(abx_sandbox *sandbox, const char *path,
			  const abx_file_options *opts, char **ret, size_t *ret_len,
			  abx_error **reterr);
/** abx_file_read() as an operation (op.h). */
ABX_API int abx_file_read_async(abx_sandbox *sandbox, const char *path,
				const abx_file_options *opts, abx_file_data_fn done,
				void *userdata, abx_free_fn free_userdata,
				abx_op **ret_op, abx_error **reterr);

/**
 * Writes a whole file, and the directories above it; what was there is replaced.
 * Metadata is at most 64 keys and 4096 bytes of ASCII; keys become lower case.
 *
 * Errors: ABX_EINVAL (a directory, metadata that cannot be kept), ABX_EEXHAUSTED (no
 * space left in the sandbox). Since: 0.1.0
 */
ABX_API int abx_file_write(abx_sandbox *sandbox, const char *path, const char *data,
			   size_t len, const abx_file_options *opts, abx_error **reterr);
/** abx_file_write() as an operation (op.h). `data` must live until its completion. */
ABX_API int abx_file_write_async(abx_sandbox *sandbox, const char *path, const char *data,
				 size_t len, const abx_file_options *opts,
				 abx_done_fn done, void *userdata,
				 abx_free_fn free_userdata, abx_op **ret_op,
				 abx_error **reterr);

/**
 * Reads a file piece by piece into `sink` (op.h), at constant memory. ABX_PAUSE in a
 * blocking call is ABX_EINVAL. `sink_userdata` must live until the end.
 *
 * Errors: as abx_file_read(), and what `sink` answered. Since: 0.1.0
 */
ABX_API int abx_file_read_stream(abx_sandbox *sandbox, const char *path,
				 const abx_file_options *opts, abx_sink_fn sink,
				 void *sink_userdata, abx_error **reterr);
/** abx_file_read_stream() as an operation (op.h). */
ABX_API int abx_file_read_stream_async(abx_sandbox *sandbox, const char *path,
				       const abx_file_options *opts, abx_sink_fn sink,
				       void *sink_userdata, abx_done_fn done,
				       void *userdata, abx_free_fn free_userdata,
				       abx_op **ret_op, abx_error **reterr);

/**
 * Writes a file piece by piece from `source` (op.h), at constant memory. ABX_PAUSE in a
 * blocking call is ABX_EINVAL. When it fails, part of the file may be there. With
 * `content_length` set, the source must give exactly as many bytes (else ABX_EINVAL).
 *
 * Errors: as abx_file_write(), and what `source` answered. Since: 0.1.0
 */
ABX_API int abx_file_write_stream(abx_sandbox *sandbox, const char *path,
				  const abx_file_options *opts, abx_source_fn source,
				  void *source_userdata, abx_error **reterr);
/** abx_file_write_stream() as an operation (op.h). */
ABX_API int abx_file_write_stream_async(abx_sandbox *sandbox, const char *path,
					const abx_file_options *opts,
					abx_source_fn source, void *source_userdata,
					abx_done_fn done, void *userdata,
					abx_free_fn free_userdata, abx_op **ret_op,
					abx_error **reterr);

/**
 * Makes one file of several, in their order, and removes those; directories above it are
 * made, a file that is there is replaced. `sources` ends with NULL.
 *
 * Errors: ABX_ENOTFOUND (no such file), ABX_EINVAL (no sources, one that is no file or is
 * the destination), ABX_EEXHAUSTED (no space left in the sandbox). Since: 0.1.0
 */
ABX_API int abx_file_compose(abx_sandbox *sandbox, const char *const *sources,
			     const char *destination, const abx_file_options *opts,
			     abx_error **reterr);
/** abx_file_compose() as an operation (op.h). */
ABX_API int abx_file_compose_async(abx_sandbox *sandbox, const char *const *sources,
				   const char *destination, const abx_file_options *opts,
				   abx_done_fn done, void *userdata,
				   abx_free_fn free_userdata, abx_op **ret_op,
				   abx_error **reterr);

/** How to make a file's URL. Strings are borrowed for the call. */
typedef struct abx_file_url_options {
	size_t size;      /* set by ABX_FILE_URL_OPTIONS_INIT */
	const char *user; /* whose home, and who owns what is made; NULL: the default */
	uint32_t expires_in_ms; /* good for so long, rounded up to a second; 0: as long as
				   the sandbox's token */
} abx_file_url_options;
#define ABX_FILE_URL_OPTIONS_INIT ABX_OPTIONS_INIT(abx_file_url_options)
/** Does what ABX_FILE_URL_OPTIONS_INIT does. Since: 0.1.0 */
ABX_API void abx_file_url_options_init(abx_file_url_options *opts);

/**
 * An address others GET a file from without a key or a token, signed for this one path.
 * Sends nothing; the file need not exist.
 *
 * Errors: ABX_EINVAL (it is to expire, but no token of the sandbox is known; or the
 * path), ABX_EUNSUPPORTED (the platform is known by a Unix socket only; the hint says
 * what to set). Owner: the caller, abx_free(). Since: 0.1.0
 *
 *     o.expires_in_ms = 600000;
 *     r = abx_file_get_download_url(sandbox, "/home/user/plot.png", &o, &url, &err);
 */
ABX_API int abx_file_get_download_url(abx_sandbox *sandbox, const char *path,
				      const abx_file_url_options *opts, char **ret,
				      abx_error **reterr);
/**
 * An address others POST a file to: as multipart/form-data with a part named "file", or
 * as application/octet-stream. Otherwise as abx_file_get_download_url(). Since: 0.1.0
 */
ABX_API int abx_file_get_upload_url(abx_sandbox *sandbox, const char *path,
				    const abx_file_url_options *opts, char **ret,
				    abx_error **reterr);

enum abx_file_type {
	ABX_FILE_UNKNOWN = 0, /* a dangling link, a device, a socket */
	ABX_FILE_REGULAR = 1,
	ABX_FILE_DIRECTORY = 2,
	ABX_FILE_SYMLINK = 3
};

/** One file. Strings belong to the struct. */
typedef struct abx_file_info {
	size_t size; /* what this library filled */
	const char *name;
	const char *path;
	int type; /* enum abx_file_type; of a link: its target's */
	int64_t length_bytes;
	uint32_t mode;           /* permission bits */
	const char *permissions; /* such as "-rw-r--r--" */
	const char *owner;
	const char *group;
	int64_t modified_at_ms;
	const char *symlink_target;  /* or NULL when it is no link */
	const char *const *metadata; /* "KEY=VALUE", NULL at the end; never NULL itself */
} abx_file_info;
/** Frees an info. NULL is fine. Since: 0.1.0 */
ABX_API void abx_file_info_free(abx_file_info *info);
/** A completion with an info, which is the completion's: abx_file_info_free(). */
typedef void (*abx_file_info_fn)(void *userdata, int r, abx_file_info *info,
				 const abx_error *err);

/** What a directory holds. */
typedef struct abx_file_list abx_file_list;
/** How many entries. Since: 0.1.0 */
ABX_API size_t abx_file_list_count(abx_file_list *list);
/** The one at `index`, or NULL past the end. Owner: the list. Since: 0.1.0 */
ABX_API const abx_file_info *abx_file_list_at(abx_file_list *list, size_t index);
/** Frees a list. NULL is fine. Since: 0.1.0 */
ABX_API void abx_file_list_free(abx_file_list *list);
/** A completion with a list, which is the completion's: abx_file_list_free(). */
typedef void (*abx_file_list_fn)(void *userdata, int r, abx_file_list *list,
				 const abx_error *err);

/**
 * Lists a directory, `opts->depth` levels deep.
 *
 * Errors: ABX_ENOTFOUND (no such directory), ABX_EINVAL (not a directory).
 * Owner: the caller, abx_file_list_free(). Since: 0.1.0
 */
ABX_API int abx_file_list_dir(abx_sandbox *sandbox, const char *path,
			      const abx_file_options *opts, abx_file_list **ret,
			      abx_error **reterr);
/** abx_file_list_dir() as an operation (op.h). */
ABX_API int abx_file_list_dir_async(abx_sandbox *sandbox, const char *path,
				    const abx_file_options *opts, abx_file_list_fn done,
				    void *userdata, abx_free_fn free_userdata,
				    abx_op **ret_op, abx_error **reterr);

/**
 * Looks at one file.
 *
 * Errors: ABX_ENOTFOUND (no such file). Owner: the caller, abx_file_info_free(). Since:
 * 0.1.0
 */
ABX_API int abx_file_stat(abx_sandbox *sandbox, const char *path,
			  const abx_file_options *opts, abx_file_info **ret,
			  abx_error **reterr);
/** abx_file_stat() as an operation (op.h). */
ABX_API int abx_file_stat_async(abx_sandbox *sandbox, const char *path,
				const abx_file_options *opts, abx_file_info_fn done,
				void *userdata, abx_free_fn free_userdata,
				abx_op **ret_op, abx_error **reterr);

/**
 * Whether there is such a file or directory.
 *
 * Returns 1 or 0. Since: 0.1.0
 */
ABX_API int abx_file_exists(abx_sandbox *sandbox, const char *path,
			    const abx_file_options *opts, abx_error **reterr);
/** abx_file_exists() as an operation (op.h). */
ABX_API int abx_file_exists_async(abx_sandbox *sandbox, const char *path,
				  const abx_file_options *opts, abx_done_fn done,
				  void *userdata, abx_free_fn free_userdata,
				  abx_op **ret_op, abx_error **reterr);

/**
 * Makes a directory, and those above it.
 *
 * Returns 1 when it was made, 0 when it was there. Errors: ABX_EINVAL (a file is in the
 * way). Since: 0.1.0
 */
ABX_API int abx_file_make_dir(abx_sandbox *sandbox, const char *path,
			      const abx_file_options *opts, abx_error **reterr);
/** abx_file_make_dir() as an operation (op.h). */
ABX_API int abx_file_make_dir_async(abx_sandbox *sandbox, const char *path,
				    const abx_file_options *opts, abx_done_fn done,
				    void *userdata, abx_free_fn free_userdata,
				    abx_op **ret_op, abx_error **reterr);

/**
 * Moves a file or directory; a file that is there is replaced, directories above are
 * made. `ret` may be NULL.
 *
 * Errors: ABX_ENOTFOUND (no such file). Owner of `*ret`: the caller,
 * abx_file_info_free(). Since: 0.1.0
 */
ABX_API int abx_file_move(abx_sandbox *sandbox, const char *from, const char *to,
			  const abx_file_options *opts, abx_file_info **ret,
			  abx_error **reterr);
/** abx_file_move() as an operation (op.h). */
ABX_API int abx_file_move_async(abx_sandbox *sandbox, const char *from, const char *to,
				const abx_file_options *opts, abx_file_info_fn done,
				void *userdata, abx_free_fn free_userdata,
				abx_op **ret_op, abx_error **reterr);

/**
 * Removes a file, or a directory with everything in it. Nothing there is success. Since:
 * 0.1.0
 */
ABX_API int abx_file_remove(abx_sandbox *sandbox, const char *path,
			    const abx_file_options *opts, abx_error **reterr);
/** abx_file_remove() as an operation (op.h). */
ABX_API int abx_file_remove_async(abx_sandbox *sandbox, const char *path,
				  const abx_file_options *opts, abx_done_fn done,
				  void *userdata, abx_free_fn free_userdata,
				  abx_op **ret_op, abx_error **reterr);

#ifdef __cplusplus
}
#endif
#endif
