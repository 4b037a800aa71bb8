/*
 * src/abx/terminal.h - our own terminal while it shows another: raw, and put back as it
 * was on every way out.
 */
#ifndef ABX_CLI_TERMINAL_H
#define ABX_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include <agentbox/agentbox.h>

/* Makes the terminal on stdin raw and catches the signals that concern it; they wake
   `client`. Prints why not and returns 1. */
int cli_terminal_raw(abx_client *client);
/* Puts it back as it was. Any number of times; async-signal-safe. */
void cli_terminal_restore(void);
/* The signal that asked to end, or 0. A second one ends the program at once. */
int cli_terminal_signal(void);
/* Whether its size may have changed since the last question; once true. */
bool cli_terminal_was_resized(void);
/* Its size, 0 and 0 when it does not tell. */
void cli_terminal_size(uint32_t *cols, uint32_t *rows);

#endif
