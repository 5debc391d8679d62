/* SPDX-License-Identifier: Apache-2.0 */
/* Threads above all tasks: interrupts, and the witness of the host's lateness. */
#pragma once

#include <pthread.h>

#include "freertos/FreeRTOS.h"

/* As a task's priority, in whose scale there are configMAX_PRIORITIES. A task that suspended the scheduler
 * has configMAX_PRIORITIES: interrupts come all the same, as on a chip. */
#define INTERRUPT_PRIORITY (configMAX_PRIORITIES + 1)
#define WITNESS_PRIORITY (configMAX_PRIORITIES + 2)

/* A thread that is no task, on one core, to be joined by whoever starts it. `code` calls
 * port_started() first. A host that has no thread left ends the program. */
pthread_t interrupt_start_thread(UBaseType_t priority, BaseType_t core, void *(*code)(void *),
                                 void *argument);
