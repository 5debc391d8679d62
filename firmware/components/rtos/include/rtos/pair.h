/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds of a giver and a taker: the taker waits, the giver gives, the time until the taker runs is measured.
 *
 * A round begins when the giver lets the taker go and surely waits: a taker that was not waiting when it was
 * given to is a round not done. Where `taker_begins` the round begins with the taker's asking instead, while
 * the giver holds what it asks for; that the giver looks whether the taker waits does not count. With a
 * `middle_priority` a third task of that priority runs on the giver's core from before the taker asks until
 * it has what it asked for: only inheritance lets the giver go on.
 */
#pragma once

#include <stdatomic.h>

#include "load/workers.h"
#include "rtos/exchange.h"
#include "rtos/round.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    /* Set these before rtos_pair_run(). */
    const bench_run_t *run;
    bench_samples_t *samples;
    rtos_exchange_t *exchange; /* created */
    BaseType_t giver_core, taker_core;
    UBaseType_t giver_priority, taker_priority, middle_priority; /* no middle: 0 */
    TickType_t interval; /* the giver's delay before it gives; 0: none */
    uint32_t timeout_ms; /* of a wait within a round */
    bool taker_begins;
    bool measure_give; /* fill in `give` and `given` of the rounds */
    rtos_measured_t measured;
    void *context;

    uint32_t stack_free_min_bytes; /* filled in: the least that one of its tasks had */

    load_workers_t workers;
    SemaphoreHandle_t go, middle_go, done;
    size_t rows;
    rtos_round_t round;
    atomic_bool arrived, taken, over, ended;
    bool stuck;
} rtos_pair_t;

/* Play `rows` rounds, or fewer where the host aborts. From run()'s own task. Returns ESP_ERR_NO_MEM, or
 * ESP_ERR_TIMEOUT where the taker did not come back; bench_fail() has said so. */
esp_err_t rtos_pair_run(rtos_pair_t *pair, size_t rows);

#ifdef __cplusplus
}
#endif
