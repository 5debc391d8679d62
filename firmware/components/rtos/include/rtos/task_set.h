/* SPDX-License-Identifier: Apache-2.0 */
/* Periodic tasks with deadlines, as a real-time system has them, and one that works when events come.
 *
 * All are released together at first (the critical instant). A task's deadline is its next release. What was
 * late is counted; the first miss ends the set. It is seen when the late work is done, so an overload lasts a
 * period or two of who misses, and what has no deadline may be behind until the set's time is over.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "agent/bench.h"
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "load/workers.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RTOS_TASK_SET_MAX = 14 };

typedef struct {
    uint32_t period_us;  /* of aperiodic events the mean: 0.5 to 1.5 of it */
    uint32_t work_loops; /* an activation, what is done under the lock included (rtos/work.h) */
    uint32_t locked_loops;
    UBaseType_t priority;
    bool aperiodic; /* no deadline */

    uint32_t activations, missed, response_max_us; /* filled in by rtos_task_set_run() */
} rtos_task_t;

typedef struct {
    /* Set these. */
    rtos_task_t tasks[RTOS_TASK_SET_MAX];
    size_t count;
    BaseType_t core;
    uint32_t duration_us; /* nothing is released after it */
    uint32_t timeout_ms;  /* how long a task waits for the lock, or for a release beyond its time */
    uint32_t random;      /* state of the generator of events: not 0 */
    SemaphoreHandle_t lock;
    load_workers_t *workers;

    /* Filled in. */
    int64_t begin_us, end_us;
    atomic_bool missed;
    atomic_bool timed_out; /* a lock or a release did not come */
} rtos_task_set_t;

/* Run the set until duration_us has passed, a deadline was missed, or the host aborts. Returns
 * ESP_ERR_NO_MEM, ESP_ERR_TIMEOUT where `timed_out`, ESP_ERR_INVALID_STATE on an abort. */
esp_err_t rtos_task_set_run(rtos_task_set_t *set);

/* What the set asks for of a core, in thousandths. */
uint32_t rtos_task_set_permille(const rtos_task_set_t *set, uint32_t loops_per_ms);

#ifdef __cplusplus
}
#endif
