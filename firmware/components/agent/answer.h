/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that several verbs give, and the verbs that have files of their own. */
#pragma once

#include "reply.h"

void answer_ok(void);
/* `R <tag> err <code>`, with one field unless `key` is NULL. Returns 1, as a command that failed. */
int answer_error(const char *code, const char *key, const char *value);
int answer_usage(const char *usage);
int answer_busy(void);
int answer_unknown_bench(void);

/* Append ` benches=a,b`. */
void write_benches(wire_line_t *line);

/* commands_provision.c */
int do_provision(int argc, char **argv);
int do_provision_end(int argc, char **argv);
int do_net(int argc, char **argv);

/* commands_run.c */
int do_run(int argc, char **argv);
int do_ack(int argc, char **argv);
int do_resend(int argc, char **argv);
int do_abort(int argc, char **argv);
