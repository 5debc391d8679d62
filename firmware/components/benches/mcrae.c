/* SPDX-License-Identifier: Apache-2.0 */
/* mcrae: the six scenarios of E. McRae, "Benchmarking Real-Time Operating Systems", Dr. Dobb's Journal 21(5),
 * 1996, each reduced to its operation. docs/explain/task-switching.md says where this differs.
 *
 *   scenario      0 round robin: the turn passes between two tasks of one priority, by taskYIELD
 *                 1 priority preemption: a task notifies one of higher priority, which runs
 *                 2 semaphore: a task gives a binary semaphore that one of higher priority waits for
 *                 3 memory: a block of `block_bytes` is allocated and freed, by one task
 *                 4 interrupt latency: from raising an interrupt to its handler's first statement
 *                 5 message passing: `message_bytes` through a queue to a task of higher priority
 *   corrected_ns  what it took, by the cycle counter, without the cost of reading it
 *   host_late_us  how late the host was meanwhile; 0 on a chip
 *   outcome       0 ok, 1 not done, 2 void
 */
#include <stdlib.h>

#include "rtos/scenarios.h"

static const rtos_scenario_t SCENARIOS[] = {
    {.exchange = RTOS_EXCHANGE_YIELD,
     .giver_priority = RTOS_PRIORITY_GIVER,
     .taker_priority = RTOS_PRIORITY_GIVER},
    {.exchange = RTOS_EXCHANGE_NOTIFICATION,
     .giver_priority = RTOS_PRIORITY_GIVER,
     .taker_priority = RTOS_PRIORITY_TAKER},
    {.exchange = RTOS_EXCHANGE_SEMAPHORE,
     .giver_priority = RTOS_PRIORITY_GIVER,
     .taker_priority = RTOS_PRIORITY_TAKER},
    {.solo = &rtos_allocate},
    {.solo = &rtos_raise},
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
                            .scenarios = SCENARIOS,
                            .count = sizeof(SCENARIOS) / sizeof(SCENARIOS[0]),
                            .message_bytes = (size_t)bench_param_int(bench_run, "message_bytes"),
                            .block_bytes = (size_t)bench_param_int(bench_run, "block_bytes")};
    esp_err_t err = rtos_scenarios_run(s);
    free(s);
    return err;
}

static const bench_parameter_t PARAMETERS[] = {
    {.key = "message_bytes", .type = BENCH_INT, .def = 16, .min = 1, .max = RTOS_MESSAGE_MAX_BYTES},
    {.key = "block_bytes", .type = BENCH_INT, .def = 128, .min = 1, .max = 16384},
    {.key = "count", .type = BENCH_INT, .def = 100, .min = 1, .max = 10000},
    {.key = "warmup", .type = BENCH_INT, .def = 5, .min = 0, .max = 50},
    {.key = "void_late_us", .type = BENCH_INT, .def = 500, .min = 0, .max = 1000000},
    {.key = "timeout_ms", .type = BENCH_INT, .def = 1000, .min = 100, .max = 10000},
};

static const char *const COLUMNS[] = {"scenario", "corrected_ns", "host_late_us", "outcome"};

const bench_t bench_mcrae = {
    .name = "mcrae",
    .parameters = PARAMETERS,
    .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]),
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .clock = "cycle_counter_corrected",
    .run = run,
};
