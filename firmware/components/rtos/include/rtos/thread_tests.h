/* SPDX-License-Identifier: Apache-2.0 */
/* The eight tests of Thread-Metric (Express Logic, 2007), written anew for FreeRTOS from their definitions.
 *
 * Each counts how often one thing is done while a window lasts. Partners that count the same thing must agree
 * when it ends. docs/explain/rtos-suites.md says what is done, and what differs from the original.
 */
#pragma once

#include "agent/bench.h"
#include "freertos/FreeRTOS.h"
#include "load/workers.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    RTOS_TEST_BASIC,
    RTOS_TEST_COOPERATIVE,
    RTOS_TEST_PREEMPTIVE,
    RTOS_TEST_INTERRUPT,
    RTOS_TEST_INTERRUPT_PREEMPTION,
    RTOS_TEST_MESSAGE,
    RTOS_TEST_SYNCHRONIZATION,
    RTOS_TEST_MEMORY,
} rtos_test_t;

/* Choices of a parameter `test`, in the order of rtos_test_t. */
extern const char *const rtos_tests[];

enum {
    /* The partners have 1 to 5, below the console's task: an abort is heard although they never wait. */
    RTOS_TEST_STARTER_PRIORITY = 7,
    RTOS_TEST_SPREAD_COUNT = 2, /* each partner's count is within one of the average */
};

typedef struct {
    int64_t begin_us;
    uint32_t window_us;    /* as it was, by esp_timer */
    uint32_t count;        /* what was done in it; of partners that each do a part, the sum of the tasks' */
    uint32_t spread_count; /* the partner that counted most less the one that counted least */
    uint32_t spread_max_count;
    bool timed_out; /* what a partner waited for did not come */
} rtos_test_window_t;

/* Whether the partners agree, and did anything. */
bool rtos_test_is_consistent(const rtos_test_window_t *window);

/* Run one window of a test on the core that the caller is pinned to. Call it from a task of
 * RTOS_TEST_STARTER_PRIORITY; `stop`, looked at every 100 ms, ends the window early. `timeout_ms` is how long
 * a partner waits for an interrupt's semaphore. Returns ESP_ERR_NO_MEM, what rtos_interrupt_install()
 * returns, and ESP_ERR_INVALID_STATE where it was stopped; none of its tasks is left then either. */
esp_err_t rtos_test_run(rtos_test_t test, const bench_run_t *run, uint32_t window_ms, uint32_t timeout_ms,
                        rtos_test_window_t *window);

#ifdef __cplusplus
}
#endif
