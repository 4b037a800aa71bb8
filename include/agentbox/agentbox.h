/*
 * agentbox/agentbox.h - everything of libagentbox.
 *
 * A program that wants one sandbox needs three calls: abx_client_new(),
 * abx_sandbox_create(), abx_command_run(). examples/ has a starter for the blocking
 * calls, for a caller's own event loop and for many sandboxes at once.
 */
#ifndef AGENTBOX_AGENTBOX_H
#define AGENTBOX_AGENTBOX_H

#include <agentbox/client.h>
#include <agentbox/code.h>
#include <agentbox/commands.h>
#include <agentbox/context.h>
#include <agentbox/doc.h>
#include <agentbox/error.h>
#include <agentbox/files.h>
#include <agentbox/logs.h>
#include <agentbox/metrics.h>
#include <agentbox/op.h>
#include <agentbox/platform.h>
#include <agentbox/pty.h>
#include <agentbox/sandbox.h>
#include <agentbox/snapshot.h>
#include <agentbox/version.h>
#include <agentbox/watch.h>

#endif
