/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of cyclictest: it sleeps until the next moment of its grid, over and over, and counts how late it
 * was. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "agent/bench.h"
#include "rtos/histogram.h"
#include "rtos/wake.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    RTOS_CYCLIC_NOTED_US =
        50, /* a loop that was less late cannot be put down to the host: its witness starts there */
    RTOS_CYCLIC_NOTES = 512,
};

/* A loop that the host may have to answer for. */
typedef struct {
    int64_t planned_us;
    uint32_t late_us;
    uint32_t void_us; /* by how much the host was late, where that makes it void; else 0 */
} rtos_cyclic_note_t;

/* Shared by the threads: the first loop beyond break_us ends the run. */
typedef struct {
    uint32_t break_us; /* 0: never */
    atomic_flag taken;
    bool broken;
    uint32_t thread, loop, late_us;
    atomic_bool *stop;
} rtos_cyclic_break_t;

typedef struct {
    /* Set these before its task is started. */
    uint32_t index;
    BaseType_t core;
    uint32_t loops, warmup_loops;
    rtos_wake_t wake;
    rtos_cyclic_break_t *limit;

    esp_err_t error; /* why it could not be woken at all */
    uint32_t done;   /* loops, without the warm-up */
    uint32_t noted, unjudged;
    rtos_cyclic_note_t notes[RTOS_CYCLIC_NOTES];
    rtos_histogram_t histogram;
} rtos_cyclic_t;

/* A worker's work; its context is an rtos_cyclic_t. */
void rtos_cyclic_run(void *context);

/* Behind bench_watch_end(): take the loops in which the host was late by `void_late_us` out of the histogram.
 * 0 takes none out. Where there were more to look at than fit, `unjudged` counts those that stay in. */
void rtos_cyclic_judge(rtos_cyclic_t *cyclic, uint32_t void_late_us);

/* Loops that have something in common. */
typedef struct {
    uint32_t latency_us;
    uint32_t loops;
    uint32_t host_late_us;
    uint32_t outcome; /* rtos/round.h */
} rtos_cyclic_row_t;

typedef void (*rtos_cyclic_row_cb_t)(void *context, const rtos_cyclic_t *cyclic,
                                     const rtos_cyclic_row_t *row);

/* Once judged: each bucket that was hit, each void loop, and those that were never done. */
void rtos_cyclic_each_row(const rtos_cyclic_t *cyclic, rtos_cyclic_row_cb_t row, void *context);

#ifdef __cplusplus
}
#endif
