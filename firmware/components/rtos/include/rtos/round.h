/* SPDX-License-Identifier: Apache-2.0 */
/* One round of a bench: a stretch between two stamps, and what is said of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/bench.h"
#include "rtos/clocks.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    rtos_stamp_t begin, end;      /* where it was not done: of the attempt */
    rtos_stamp_t paused, resumed; /* a part of it that does not count, where `split` */
    rtos_stamp_t give, given;     /* a give with nobody waiting, just before */
    bool split;
    bool done; /* false: it did not come to its end, or not as it was to */
} rtos_round_t;

/* Is called with each round, by the task that played it. */
typedef void (*rtos_measured_t)(void *context, size_t row, const rtos_round_t *round);

/* By the cycle counter, corrected, without what does not count. */
uint32_t rtos_round_ns(const rtos_clocks_t *clocks, const rtos_round_t *round);

/* Values of the column `outcome`. */
enum { RTOS_OUTCOME_OK, RTOS_OUTCOME_NOT_DONE, RTOS_OUTCOME_VOID };

/* The rows of a burst: which were done, and when, until it is known whether the host was late meanwhile. */
typedef struct {
    /* Set these before rtos_rows_create(). */
    bench_samples_t *samples;
    size_t late_column;    /* host_late_us; `outcome` is the one after it */
    uint32_t void_late_us; /* from this lateness on a row is void; 0: never */

    int64_t t0_us;
    struct rtos_row {
        uint32_t from_us, until_us;
        uint32_t late_us; /* filled in by rtos_rows_end(), as is the outcome */
        int8_t core;      /* -1: more than one */
        uint8_t outcome;
    } * row;
} rtos_rows_t;

/* Room for `capacity` rows. Returns ESP_ERR_NO_MEM. */
esp_err_t rtos_rows_create(rtos_rows_t *rows, size_t capacity);
void rtos_rows_delete(rtos_rows_t *rows);

/* Begin a burst of `count` rows, none of them done. From here on the host is watched. */
void rtos_rows_begin(rtos_rows_t *rows, size_t count);

/* What became of this row. Several tasks may tell, of different rows. */
void rtos_rows_set(rtos_rows_t *rows, size_t row, const rtos_round_t *round);

/* Fill in host_late_us and outcome of `count` rows, and tell in the environment how late the host was. A row
 * that was not done is void, too, where the host was late. From run()'s own task. */
void rtos_rows_end(rtos_rows_t *rows, size_t count);

#ifdef __cplusplus
}
#endif
