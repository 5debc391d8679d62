/* SPDX-License-Identifier: Apache-2.0 */
/* A periodic task under measurement: what it notes of each wake, and what is made of that afterwards. */
#pragma once

#include "agent/bench.h"
#include "rtos/clocks.h"
#include "rtos/contention.h"
#include "rtos/load.h"
#include "rtos/round.h"
#include "rtos/wake.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Columns of its rows; values of the last one are rtos/round.h's. */
typedef enum {
    RTOS_PERIODIC_PLANNED,
    RTOS_PERIODIC_WOKE,
    RTOS_PERIODIC_ACQUIRED,
    RTOS_PERIODIC_RAW,
    RTOS_PERIODIC_CORRECTED,
    RTOS_PERIODIC_INTERVAL,
    RTOS_PERIODIC_DEVIATION,
    RTOS_PERIODIC_ISR,
    RTOS_PERIODIC_START_CORE,
    RTOS_PERIODIC_END_CORE,
    RTOS_PERIODIC_HOST_LATE,
    RTOS_PERIODIC_OUTCOME
} rtos_periodic_column_t;

typedef enum { RTOS_TRACE_OFF, RTOS_TRACE_OUTLIER, RTOS_TRACE_END } rtos_trace_t;

/* Choices of a parameter `trace`, in the order of rtos_trace_t. */
extern const char *const rtos_traces[];

enum { RTOS_TRACE_EVENTS_AFTER = 64 }; /* that the trace keeps after what it froze for */

/* A row's moments on esp_timer; 0: it never was. */
typedef struct {
    int64_t woke_us, acquired_us;
} rtos_moments_t;

typedef struct {
    /* Set these before its task is started. */
    bench_samples_t *samples;
    rtos_clocks_t clocks;
    rtos_wake_t wake; /* its source, period, timeout and stop */
    rtos_load_t load;
    rtos_contention_t contention;
    rtos_trace_t trace;
    uint32_t break_us;  /* RTOS_TRACE_OUTLIER: beyond it the trace freezes */
    size_t warmup_rows; /* of the burst: however late they are, they freeze nothing */
    uint32_t void_late_us;
    BaseType_t core;
    int64_t t0_us;
    size_t rows;             /* of this burst */
    bool last;               /* burst of the run */
    rtos_moments_t *moments; /* of each row, all 0 */

    bool frozen;
    esp_err_t error; /* why it could not be woken at all */
} rtos_periodic_t;

/* A worker's work; its context is an rtos_periodic_t. Tells load and contention when it is done. */
void rtos_periodic_run(void *context);

/* Afterwards, in run()'s own task, behind bench_watch_end(): the plan of each row, and whether the host was
 * late. */
void rtos_periodic_judge(const rtos_periodic_t *periodic);

#ifdef __cplusplus
}
#endif
