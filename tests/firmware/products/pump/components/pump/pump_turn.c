/* SPDX-License-Identifier: Apache-2.0 */
/* pump_turn: how long the pump takes to turn, in the product's own program.
 *
 *   began_us, done_us   since the run began
 *   moves               of the pistons
 *   outcome             0: there is none that fails
 */
#include "esp_hil.h"
#include "esp_timer.h"
#include "pump.h"

enum { COLUMN_BEGAN, COLUMN_DONE, COLUMN_MOVES, COLUMN_OUTCOME };

static esp_err_t run(const hil_bench_run_t *bench_run, hil_bench_samples_t *samples) {
    const size_t warmup = (size_t)hil_bench_param_int(bench_run, "warmup");
    const size_t rows = (size_t)hil_bench_param_int(bench_run, "count") + warmup;
    esp_err_t err = hil_bench_samples_begin(samples, rows, warmup);
    const int64_t t0_us = esp_timer_get_time();
    for (size_t row = 0; row < rows && err == ESP_OK; row++) {
        const int64_t began_us = esp_timer_get_time();
        const uint32_t moves = pump_turn();
        const int64_t done_us = esp_timer_get_time();
        hil_bench_samples_set(samples, row, COLUMN_BEGAN, (uint32_t)(began_us - t0_us));
        hil_bench_samples_set(samples, row, COLUMN_DONE, (uint32_t)(done_us - t0_us));
        hil_bench_samples_set(samples, row, COLUMN_MOVES, moves);
        hil_bench_samples_set(samples, row, COLUMN_OUTCOME, 0);
        err = hil_bench_aborted(bench_run) ? ESP_ERR_INVALID_STATE : ESP_OK;
    }
    return err;
}

static const hil_bench_parameter_t PARAMETERS[] = {
    {.key = "count", .type = HIL_BENCH_INT, .def = 100, .min = 1, .max = 5000},
    {.key = "warmup", .type = HIL_BENCH_INT, .def = 5, .min = 0, .max = 100},
};

static const char *const COLUMNS[] = {"began_us", "done_us", "moves", "outcome"};

HIL_BENCH(pump_turn, .parameters = PARAMETERS, .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]),
          .columns = COLUMNS, .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]), .run = run);
