/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of FreeRTOS's scheduler, each as a check that uses its API only. The same sources run on the host's
 * kernel and on ESP-IDF's own (tools/idf_check), so that what is asked of the host is what FreeRTOS
 * does. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "freertos/FreeRTOS.h"
#include "freertos/queue.h"
#include "freertos/semphr.h"
#include "freertos/task.h"
#include "freertos/timers.h"

typedef struct {
    const char *name;
    const char *says;
    bool (*holds)(void);
    int cores;    /* that it needs */
    int attempts; /* of which one must hold, where a slice or a tick may come between two steps; 0: 1 */
} rule_t;

extern const rule_t rules_of_tasks[], rules_of_cores[], rules_of_waiting[], rules_of_time[];
extern const size_t rules_of_tasks_count, rules_of_cores_count, rules_of_waiting_count, rules_of_time_count;

/* Why this platform does not promise a rule; NULL where it does. */
const char *platform_excuse(const char *rule);

/* Checks run in app_main's task, pinned to core 0, at this priority: it outranks what a check starts there.
 */
enum { CHECK_PRIORITY = 20, STACK_BYTES = 4096 };

/* Start a task; it ends by end_task(), and await_tasks() waits for all that were started. False where they
 * did not end in time. */
TaskHandle_t start_task(TaskFunction_t code, void *argument, UBaseType_t priority, BaseType_t core);
void end_task(void);
bool await_tasks(void);

/* What happened in which order: up to 16 letters. */
void note(char letter);
const char *noted(void);
bool noted_is(const char *wanted);

/* Compute, without giving way, for some ticks. */
void compute_ticks(TickType_t ticks);
