/* SPDX-License-Identifier: Apache-2.0 */
/* The only printer of marked lines: numbers them, appends the CRC, writes each as one piece. */
#pragma once

#include "wire.h"

/* Create the lock. Call once before any other. */
void record_init(void);

/* Open a record of a kind (H, R, B, D, E, N). Holds a lock until record_end() or record_cancel(). */
wire_line_t *record_begin(char kind);
void record_end(wire_line_t *line);
void record_cancel(wire_line_t *line);
