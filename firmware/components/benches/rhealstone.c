/* SPDX-License-Identifier: Apache-2.0 */
/* rhealstone: the six operations of R. P. Kar and K. Porter, "Rhealstone: a Real-Time Benchmarking Proposal",
 * Dr. Dobb's Journal 14(2), 1989. docs/explain/task-switching.md says where this differs.
 *
 * Each operation is timed by itself, so that there is no loop to take off. A row is one operation, or the
 * mean:
 *
 *   operation         0 task switch: taskYIELD, between two tasks of one priority
 *                     1 preemption: a task resumes one of higher priority
 *                     2 interrupt latency: from raising an interrupt to its handler's first statement
 *                     3 semaphore shuffle: a task asks for a semaphore whose holder lets go at once
 *                     4 deadlock break: the same with a mutex, and a task between the two that has the core
 *                     5 message latency: from sending until the receiver, of higher priority, has it
 *                     6 the mean of a round's six
 *   corrected_ns      what it took, by the cycle counter, without the cost of reading it
 *   per_second_count  how often that fits a second; of operation 6: Rhealstones per second
 *   host_late_us      how late the host was meanwhile; 0 on a chip
 *   outcome           0 ok, 1 not done, 2 void
 */
#include <stdlib.h>

#include "rtos/scenarios.h"

static const rtos_scenario_t OPERATIONS[] = {
    {.exchange = RTOS_EXCHANGE_YIELD,
     .giver_priority = RTOS_PRIORITY_GIVER,
     .taker_priority = RTOS_PRIORITY_GIVER},
    {.exchange = RTOS_EXCHANGE_RESUME,
     .giver_priority = RTOS_PRIORITY_GIVER,
     .taker_priority = RTOS_PRIORITY_TAKER},
    {.solo = &rtos_raise},
    {.exchange = RTOS_EXCHANGE_SEMAPHORE,
     .giver_priority = RTOS_PRIORITY_GIVER,
     .taker_priority = RTOS_PRIORITY_TAKER,
     .taker_begins = true},
    {.exchange = RTOS_EXCHANGE_MUTEX,
     .giver_priority = RTOS_PRIORITY_LOW,
     .middle_priority = RTOS_PRIORITY_GIVER,
     .taker_priority = RTOS_PRIORITY_TAKER,
     .taker_begins = true},
    {.exchange = RTOS_EXCHANGE_QUEUE,
     .giver_priority = RTOS_PRIORITY_GIVER,
     .taker_priority = RTOS_PRIORITY_TAKER},
};

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    rtos_scenarios_t *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return ESP_ERR_NO_MEM;
    }
    *s = (rtos_scenarios_t){.run = bench_run,
                            .samples = samples,
                            .scenarios = OPERATIONS,
                            .count = sizeof(OPERATIONS) / sizeof(OPERATIONS[0]),
                            .mean = true,
                            .rate = true};
    esp_err_t err = rtos_scenarios_run(s);
    free(s);
    return err;
}

static const bench_parameter_t PARAMETERS[] = {
    {.key = "count", .type = BENCH_INT, .def = 100, .min = 1, .max = 10000},
    {.key = "warmup", .type = BENCH_INT, .def = 5, .min = 0, .max = 50},
    {.key = "void_late_us", .type = BENCH_INT, .def = 500, .min = 0, .max = 1000000},
    {.key = "timeout_ms", .type = BENCH_INT, .def = 1000, .min = 100, .max = 10000},
};

static const char *const COLUMNS[] = {"operation", "corrected_ns", "per_second_count", "host_late_us",
                                      "outcome"};

const bench_t bench_rhealstone = {
    .name = "rhealstone",
    .parameters = PARAMETERS,
    .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]),
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .clock = "cycle_counter_corrected",
    .run = run,
};
