/* SPDX-License-Identifier: Apache-2.0 */
/* Replies to commands, and the memory of them that makes a repeated command harmless.
 *
 * A host that misses a reply sends the same line with the same tag again; it is answered again, not
 * executed again. One reply of the console task and one deferred reply of the run task are remembered.
 */
#pragma once

#include "wire.h"

typedef struct reply reply_t;

/* Take up a command. Returns false if it is a repetition: then it has been answered, or its answer is
 * still to come. Console task only. */
bool reply_start(const wire_command_t *command);

/* The reply to the command at hand. */
reply_t *reply_current(void);

/* Let the run task answer the command at hand later. One at a time. */
reply_t *reply_defer(void);

/* Open `R <tag> ok`; add fields, then reply_end(). */
wire_line_t *reply_ok(reply_t *reply);
/* Open `R <tag> err <code>`; add fields, then reply_end(). */
wire_line_t *reply_error(reply_t *reply, const char *code);
void reply_end(reply_t *reply, wire_line_t *line);

/* Answer a line that was no command, so that its tag cannot be trusted: `R - err <code>`. */
void reply_to_damaged(const char *code);

/* How many replies since boot were `err`. */
uint32_t reply_errors(void);
