/* SPDX-License-Identifier: Apache-2.0 */
/* The board's own conditions: heap, stacks, scheduling, link. */
#pragma once

#include "wire.h"

/* Append ` key=value …` as of now. */
void environment_write(wire_line_t *line);
