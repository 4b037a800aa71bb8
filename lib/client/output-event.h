/*
 * output-event.h - output of a command in the one spelling envd gives it, read without a
 * JSON parser: nearly all bytes of a stream are such, and parsing them as JSON cost more
 * than all else. Pure.
 */
#ifndef ABX_CLIENT_OUTPUT_EVENT_H
#define ABX_CLIENT_OUTPUT_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * {"event":{"data":{"stdout":"BASE64"}}}, or "stderr" or "pty", without a blank.
 *
 * Returns 1 with the bytes in a new buffer, abx__free(); 0 when the message is another,
 * or is spelt another way, and JSON has to say; ABX_ENOMEM.
 */
int abx__output_event_read(const char *text, size_t len, bool *ret_is_stderr,
			   uint8_t **ret, size_t *ret_len);

#endif
