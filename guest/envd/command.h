/*
 * command.h - from a StartRequest to a running process: working directory, environment,
 * search along PATH, pipes.
 */
#ifndef ABX_ENVD_COMMAND_H
#define ABX_ENVD_COMMAND_H

#include "base/error.h"
#include "envd/process.h"
#include "envd/users.h"

/* Takes `request` over on success. The process is in the table, its outputs are not read
   yet. ABX_EINVAL for what the caller can mend, with a message for him. */
int abx__command_start(struct abx__envd *envd, struct Process__StartRequest *request,
		       const abx__user *user, abx__process **ret, abx_error **reterr);

#endif
