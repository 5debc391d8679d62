/* SPDX-License-Identifier: Apache-2.0 */
/* How busy the cores are over the measured stretch: what their idle tasks did not get (port_idle_count()).
 *
 * On a chip the time of interrupts is busy, on a host it is the task's that was interrupted. */
#pragma once

#include "wire.h"

/* There is none, until the next one begins. */
void cpu_load_reset(void);
/* The stretch begins: now, unless the bench has set its own. */
void cpu_load_begin(void);
/* It ends: now, unless it has ended. */
void cpu_load_end(void);

/* Append cpu_mhz, then cpu_wall_us and cpu_busy_core<n>_us; of a stretch that has not ended, until now. No
 * load before the first, nor where idle time is not counted. */
void cpu_load_write(wire_line_t *line);
