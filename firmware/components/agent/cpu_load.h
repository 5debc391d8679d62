/* SPDX-License-Identifier: Apache-2.0 */
/* How busy the cores are over the measured stretch, from what FreeRTOS gave the idle tasks.
 *
 * A core's idle time grows when its idle task is switched away from: at every tick of 1 ms where there are
 * two cores, and where there is one whenever a task runs, as the one that asks does. Time in interrupts is
 * the task's that was interrupted. */
#pragma once

#include "wire.h"

/* There is none, until the next one begins. */
void cpu_load_reset(void);
/* The stretch begins: now, unless the bench has set its own. */
void cpu_load_begin(void);
/* It ends: now, unless it has ended. */
void cpu_load_end(void);

/* Append cpu_wall_us, cpu_busy_core<n>_us and cpu_mhz; of a stretch that has not ended, until now. Nothing
 * before the first, nor without CONFIG_FREERTOS_GENERATE_RUN_TIME_STATS. */
void cpu_load_write(wire_line_t *line);
