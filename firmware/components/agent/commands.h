/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of the console (docs/reference/console-protocol.md). */
#pragma once

#include "esp_err.h"

/* Set esp_console up and register the verbs. */
esp_err_t commands_init(void);

/* Carry out one command line and answer it. Changes `line`. */
void commands_execute(char *line);
