/* SPDX-License-Identifier: Apache-2.0 */
/* The control language: one textual command a message, one textual reply. See docs/explain/virtual-air.md. */
#pragma once

#include <stddef.h>

#include "link.h"

#define CONTROL_COMMAND_MAX 2048
#define CONTROL_REPLY_MAX 131072

/* Execute one command (modified while parsed). The reply starts with "ok" or "error code=…"; a command
 * with a mistake changes nothing. */
void control_execute(air_t *air, char *command, char *reply, size_t size);
