/* SPDX-License-Identifier: Apache-2.0 */
/* wake_up: how late a task runs that asked to be woken on a tick.
 *
 *   planned_us, woken_us   since the tick on which the task began, as the most punctual wake-up shows it
 *   outcome                0: there is none that fails
 */
#include "agent/bench.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

enum { COLUMN_PLANNED, COLUMN_WOKEN, COLUMN_OUTCOME };
enum { COUNT_MAX = 2000, WARMUP_MAX = 100 };

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    const size_t warmup = (size_t)bench_param_int(bench_run, "warmup");
    const size_t rows = (size_t)bench_param_int(bench_run, "count") + warmup;
    const TickType_t period = pdMS_TO_TICKS(bench_param_int(bench_run, "period_ms"));
    const int64_t period_us = (int64_t)pdTICKS_TO_MS(period) * 1000;
    static int64_t s_late_us[COUNT_MAX + WARMUP_MAX];
    int64_t least_us = INT64_MAX; /* the first tick was read late itself, by nobody knows how much */
    esp_err_t err = bench_samples_begin(samples, rows, warmup);
    vTaskDelay(1);
    TickType_t wake = xTaskGetTickCount();
    const int64_t t0_us = esp_timer_get_time();
    for (size_t row = 0; row < rows && err == ESP_OK; row++) {
        vTaskDelayUntil(&wake, period);
        s_late_us[row] = esp_timer_get_time() - t0_us - (int64_t)(row + 1) * period_us;
        least_us = s_late_us[row] < least_us ? s_late_us[row] : least_us;
        err = bench_aborted(bench_run) ? ESP_ERR_INVALID_STATE : ESP_OK;
    }
    for (size_t row = 0; row < rows && err == ESP_OK; row++) {
        const int64_t planned_us = (int64_t)(row + 1) * period_us;
        bench_samples_set(samples, row, COLUMN_PLANNED, (uint32_t)planned_us);
        bench_samples_set(samples, row, COLUMN_WOKEN, (uint32_t)(planned_us + s_late_us[row] - least_us));
        bench_samples_set(samples, row, COLUMN_OUTCOME, 0);
    }
    return err;
}

static const bench_parameter_t PARAMETERS[] = {
    {.key = "period_ms", .type = BENCH_INT, .def = 10, .min = 1, .max = 1000},
    {.key = "count", .type = BENCH_INT, .def = 200, .min = 1, .max = COUNT_MAX},
    {.key = "warmup", .type = BENCH_INT, .def = 5, .min = 0, .max = WARMUP_MAX},
};

static const char *const COLUMNS[] = {"planned_us", "woken_us", "outcome"};

const bench_t bench_wake_up = {
    .name = "wake_up",
    .parameters = PARAMETERS,
    .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]),
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .run = run,
};
