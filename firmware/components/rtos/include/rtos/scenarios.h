/* SPDX-License-Identifier: Apache-2.0 */
/* A benchmark that is a list of operations: each is played in rounds, and a row is one operation of one
 * round. All tasks are on core 0.
 *
 * Columns: the operation's number, corrected_ns, per_second_count where `rate` asks for it, host_late_us,
 * outcome. With `mean` a round has one row more, whose operation is the number of operations: the mean of
 * them all; it is as good as the worst of them.
 */
#pragma once

#include "rtos/exchange.h"
#include "rtos/pair.h"
#include "rtos/solo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Priorities of the tasks: above run()'s own, the giver below the taker. */
enum { RTOS_PRIORITY_LOW = 6, RTOS_PRIORITY_GIVER = 8, RTOS_PRIORITY_TAKER = 10 };

typedef struct {
    const rtos_solo_kind_t *solo; /* NULL: it takes two */
    rtos_exchange_type_t exchange;
    UBaseType_t giver_priority, taker_priority, middle_priority;
    bool taker_begins;
} rtos_scenario_t;

typedef struct {
    /* Set these before rtos_scenarios_run(). The parameters are count and warmup, both of rounds,
     * void_late_us and timeout_ms. */
    const bench_run_t *run;
    bench_samples_t *samples;
    const rtos_scenario_t *scenarios;
    size_t count;
    bool mean;
    bool rate;
    size_t message_bytes; /* of queues; 0: 4 */
    size_t block_bytes;   /* of rtos_allocate */

    rtos_clocks_t clocks;
    rtos_rows_t rows;
    rtos_raise_t raised;
    uint32_t *sum_ns; /* of each round of the burst */
    size_t current;   /* the scenario being played */
    uint32_t stack_free_min_bytes;
} rtos_scenarios_t;

/* The whole run. */
esp_err_t rtos_scenarios_run(rtos_scenarios_t *scenarios);

#ifdef __cplusplus
}
#endif
