/* SPDX-License-Identifier: Apache-2.0 */
/* Climbing a ramp: one step after the other until the first deadline is missed. */
#pragma once

#include "rtos/ramp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values of the column `outcome`. */
enum { RTOS_CLIMB_OK, RTOS_CLIMB_MISSED, RTOS_CLIMB_VOID };

/* A task in a step, or with task 0 a whole ramp: the columns of the bench `hartstone`, in their order. */
typedef struct {
    uint32_t ramp, step, task, period_us, work_loops, activations, missed, response_max_us, asked_permille,
        sustained_permille, sustained_steps, repeats, host_late_us, outcome;
} rtos_climb_row_t;

typedef struct {
    /* Set these. */
    rtos_ramp_t ramp;
    rtos_task_set_t set; /* core, duration_us, timeout_ms, lock, workers */
    uint32_t seed;
    uint32_t void_late_us;  /* a miss while the host was so late is void; 0: never */
    rtos_climb_row_t *rows; /* rtos_climb_rows_max() of them */

    size_t row_count; /* filled in by rtos_climb() */
} rtos_climb_t;

size_t rtos_climb_rows_max(const rtos_ramp_t *ramp);

/* Climb the ramp with this number, which counts from 1, and fill in the rows; the ramp's own comes last. The
 * host is being watched (agent/watch.h). Returns what rtos_task_set_run() does. */
esp_err_t rtos_climb(rtos_climb_t *climb, uint32_t number);

#ifdef __cplusplus
}
#endif
