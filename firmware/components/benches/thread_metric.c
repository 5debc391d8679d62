/* SPDX-License-Identifier: Apache-2.0 */
/* thread_metric: how often an operation of the kernel is done in a window of time (Thread-Metric, 2007).
 *
 * A window of the test is followed by one of the basic test, which calls no kernel: the count is scaled by
 * what the board could compute next to it, so that a drift of the clock or of a host's load falls out. One
 * row is a pair of windows:
 *
 *   window_us, operations_count       the test's window as it was, and what was done in it
 *   basic_window_us, basic_count      the basic test's, after it
 *   rate_ops                          operations a second
 *   score_count                       operations in the time of a million rounds of the basic test
 *   spread_count                      the partner that counted most less the one that counted least
 *   core                              that all of it ran on
 *   host_late_us                      of the two windows
 *   outcome                           0 ok, 1 the partners disagree, or one waited in vain, 2 void
 */
#include <stdlib.h>

#include "agent/bench.h"
#include "agent/watch.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "load/idle_watch.h"
#include "load/workers.h"
#include "rtos/round.h"
#include "rtos/thread_tests.h"

enum {
    COLUMN_WINDOW,
    COLUMN_OPERATIONS,
    COLUMN_BASIC_WINDOW,
    COLUMN_BASIC,
    COLUMN_RATE,
    COLUMN_SCORE,
    COLUMN_SPREAD,
    COLUMN_CORE,
    COLUMN_HOST_LATE,
    COLUMN_OUTCOME
};
enum {
    REST_MS = 20, /* the idle task frees what has ended, and a host's other work gets its share */
    STARTER_STACK_BYTES = 4096,
    SCORE_ROUNDS = 1000000,
};

typedef struct {
    rtos_test_window_t test, basic;
} pair_t;

typedef struct {
    const bench_run_t *run;
    rtos_test_t test;
    uint32_t window_ms, timeout_ms, void_late_us;
    BaseType_t core;
    size_t count;
    load_workers_t workers;
    pair_t *pairs;
    esp_err_t err;
} metric_t;

/* ---- in the starter's task, on the core ---- */

static esp_err_t run_window(const metric_t *m, rtos_test_t test, rtos_test_window_t *window) {
    esp_err_t err = rtos_test_run(test, m->run, m->window_ms, m->timeout_ms, window);
    vTaskDelay(pdMS_TO_TICKS(REST_MS));
    return err;
}

static void run_windows(void *context) {
    metric_t *m = context;
    for (size_t i = 0; i < m->count && m->err == ESP_OK; i++) {
        m->err = run_window(m, m->test, &m->pairs[i].test);
        if (m->err == ESP_OK) {
            m->err = run_window(m, RTOS_TEST_BASIC, &m->pairs[i].basic);
        }
    }
}

/* ---- in the run's own task ---- */

static double per_second(const rtos_test_window_t *window) {
    return window->window_us == 0 ? 0 : (double)window->count * 1e6 / window->window_us;
}

static uint32_t whole(double value) {
    return value >= (double)UINT32_MAX ? UINT32_MAX : (uint32_t)(value + 0.5);
}

static uint32_t late_us(const metric_t *m, const rtos_test_window_t *window) {
    return bench_watch_late_us(m->core, window->begin_us, window->begin_us + window->window_us);
}

static uint32_t outcome(const metric_t *m, const pair_t *pair, uint32_t host_late_us) {
    if (m->void_late_us > 0 && host_late_us >= m->void_late_us) {
        return RTOS_OUTCOME_VOID; /* also of partners that disagree: the host may have kept one of them */
    }
    bool consistent = rtos_test_is_consistent(&pair->test) && rtos_test_is_consistent(&pair->basic);
    return consistent ? RTOS_OUTCOME_OK : RTOS_OUTCOME_NOT_DONE;
}

static void set_row(const metric_t *m, bench_samples_t *samples, size_t row) {
    const pair_t *pair = &m->pairs[row];
    double rate = per_second(&pair->test), basic_rate = per_second(&pair->basic);
    uint32_t test_late_us = late_us(m, &pair->test), basic_late_us = late_us(m, &pair->basic);
    uint32_t host_late_us = test_late_us > basic_late_us ? test_late_us : basic_late_us;
    bench_samples_set(samples, row, COLUMN_WINDOW, pair->test.window_us);
    bench_samples_set(samples, row, COLUMN_OPERATIONS, pair->test.count);
    bench_samples_set(samples, row, COLUMN_BASIC_WINDOW, pair->basic.window_us);
    bench_samples_set(samples, row, COLUMN_BASIC, pair->basic.count);
    bench_samples_set(samples, row, COLUMN_RATE, whole(rate));
    bench_samples_set(samples, row, COLUMN_SCORE,
                      basic_rate > 0 ? whole(rate * SCORE_ROUNDS / basic_rate) : 0);
    bench_samples_set(samples, row, COLUMN_SPREAD, pair->test.spread_count);
    bench_samples_set(samples, row, COLUMN_CORE, (uint32_t)m->core);
    bench_samples_set(samples, row, COLUMN_HOST_LATE, host_late_us);
    bench_samples_set(samples, row, COLUMN_OUTCOME, outcome(m, pair, host_late_us));
}

static esp_err_t explain(const metric_t *m, bench_samples_t *samples, esp_err_t err) {
    if (err == ESP_ERR_NOT_SUPPORTED) {
        return bench_fail(samples, BENCH_OWNER_CONFIGURATION, err,
                          "test=%s needs a software interrupt, which this target has not",
                          rtos_tests[m->test]);
    }
    if (err == ESP_ERR_NO_MEM) {
        return bench_fail(samples, BENCH_OWNER_FIRMWARE, err, "no memory for the tasks of test=%s",
                          rtos_tests[m->test]);
    }
    return err;
}

static esp_err_t measure(metric_t *m, bench_samples_t *samples) {
    load_worker_t starter = {
        .name = "starter",
        .work = run_windows,
        .context = m,
        .core = m->core,
        .priority = RTOS_TEST_STARTER_PRIORITY,
        .stack_bytes = STARTER_STACK_BYTES,
    };
    bench_watch_begin();
    load_idle_watch_stop();
    esp_err_t err = load_workers_run(&m->workers, &starter, 1);
    load_idle_watch_restore();
    bench_watch_end(samples);
    err = err != ESP_OK ? err : m->err;
    if (err != ESP_OK) {
        return explain(m, samples, err);
    }
    for (size_t row = 0; row < m->count; row++) {
        set_row(m, samples, row);
    }
    bench_environment_int(samples, "spread_max_count", m->pairs[m->count - 1].test.spread_max_count);
    return ESP_OK;
}

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    size_t warmup = (size_t)bench_param_int(bench_run, "warmup");
    metric_t m = {
        .run = bench_run,
        .test = (rtos_test_t)bench_param_int(bench_run, "test"),
        .window_ms = (uint32_t)bench_param_int(bench_run, "window_ms"),
        .timeout_ms = (uint32_t)bench_param_int(bench_run, "timeout_ms"),
        .void_late_us = (uint32_t)bench_param_int(bench_run, "void_late_us"),
        .core = (BaseType_t)bench_param_int(bench_run, "task_core"),
        .count = warmup + (size_t)bench_param_int(bench_run, "windows"),
    };
    const char *problem = load_core_conflict(m.core);
    if (problem != NULL) {
        return bench_fail(samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_ARG, "%s", problem);
    }
    m.pairs = calloc(m.count, sizeof(*m.pairs));
    esp_err_t err = m.pairs != NULL ? load_workers_create(&m.workers, bench_run) : ESP_ERR_NO_MEM;
    err = err == ESP_OK ? bench_samples_begin(samples, m.count, warmup) : err;
    err = err == ESP_OK ? measure(&m, samples) : err;
    load_workers_delete(&m.workers);
    free(m.pairs);
    return err;
}

static const bench_parameter_t PARAMETERS[] = {
    {.key = "test", .type = BENCH_CHOICE, .choices = rtos_tests},
    {.key = "window_ms", .type = BENCH_INT, .def = 30000, .min = 100, .max = 60000},
    {.key = "windows", .type = BENCH_INT, .def = 10, .min = 1, .max = 100},
    {.key = "warmup", .type = BENCH_INT, .def = 1, .min = 0, .max = 10},
    {.key = "task_core", .type = BENCH_CHOICE, .choices = load_pinned_cores},
    {.key = "void_late_us", .type = BENCH_INT, .def = 10000, .min = 0, .max = 1000000},
    {.key = "timeout_ms", .type = BENCH_INT, .def = 1000, .min = 100, .max = 60000},
};

static const char *const COLUMNS[] = {"window_us",    "operations_count", "basic_window_us", "basic_count",
                                      "rate_ops",     "score_count",      "spread_count",    "core",
                                      "host_late_us", "outcome"};

const bench_t bench_thread_metric = {
    .name = "thread_metric",
    .parameters = PARAMETERS,
    .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]),
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .run = run,
};
