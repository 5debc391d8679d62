/* SPDX-License-Identifier: Apache-2.0 */
/* The interrupt watchdog, and the task watchdog's look at the idle tasks: by the CPU time of threads, so that
 * a host that has no time for the board is never taken for firmware that hogs a core. */
#pragma once

#include "../kernel/kernel.h"

void watchdogs_start(void);

/* Interrupts, which are no tasks: from their thread's start to its end. */
void watchdogs_add(task_t *interrupt);
void watchdogs_remove(task_t *interrupt);
