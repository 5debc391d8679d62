/* SPDX-License-Identifier: Apache-2.0 */
/* A ramp of task sets, each asking for more of a core than the one before (in the manner of Hartstone,
 * Weiderman and Kamenoff 1992). docs/explain/rtos-suites.md says what the series are, and what differs from
 * the original.
 */
#pragma once

#include "rtos/task_set.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    RTOS_SERIES_PH, /* periodic tasks, each frequency a multiple of the one before */
    RTOS_SERIES_PN, /* periodic tasks, frequencies as the primes 2, 3, 5, 7 and 11 */
    RTOS_SERIES_AH, /* PH, and events that a task below all others works on */
    RTOS_SERIES_SH, /* PH, and a lock that the slowest, the middle and the fastest task share */
    RTOS_SERIES_SA, /* all of it */
} rtos_series_t;

typedef enum {
    RTOS_RAISE_FASTEST, /* the fastest task's frequency */
    RTOS_RAISE_ALL,     /* all frequencies */
    RTOS_RAISE_WORK,    /* the work of all */
    RTOS_RAISE_TASKS,   /* the number of tasks: one more like the middle one */
} rtos_raise_t;

/* Choices of parameters, in the order of the enumerations. */
extern const char *const rtos_series[];
extern const char *const rtos_raises[];

typedef struct {
    rtos_series_t series;
    rtos_raise_t raise;
    uint32_t base_us;                                     /* period of the slowest task */
    uint32_t base_permille, raise_permille, cap_permille; /* of the core: at first, each step, at most */
    uint32_t loops_per_ms;                                /* rtos_work_calibrate() */
} rtos_ramp_t;

size_t rtos_ramp_steps(const rtos_ramp_t *ramp);

/* Tasks in the largest set. */
size_t rtos_ramp_tasks(const rtos_ramp_t *ramp);

/* Why there cannot be such a ramp, as a sentence; NULL where there can. Needs no loops_per_ms. */
const char *rtos_ramp_conflict(const rtos_ramp_t *ramp);

/* Fill in the tasks of a step, which counts from 0: the slowest first, with priorities that rise with the
 * frequency; what works on events last. */
void rtos_ramp_make(const rtos_ramp_t *ramp, size_t step, rtos_task_set_t *set);

#ifdef __cplusplus
}
#endif
