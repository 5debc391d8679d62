/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of the console (docs/reference/console-protocol.md). */
#pragma once

/* Carry out one command line and answer it. Changes `line`. */
void commands_execute(char *line);
