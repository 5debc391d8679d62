/* SPDX-License-Identifier: Apache-2.0 */
/* reading_published: the product's own readings, from where one is logged as on its way until its
 * acknowledgement is there, by the board's clock. The product goes on as ever; its two calls are all that is
 * added to its path.
 *
 *   seq                 the reading's number, by which console and broker know it too
 *   began_us, done_us   since the run began; done_us of a reading that was not acknowledged is its timeout
 *   outcome             0, or 1: not acknowledged within timeout_ms
 */
#include "esp_hil.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "reading_watch.h"

enum { COLUMN_SEQ, COLUMN_BEGAN, COLUMN_DONE, COLUMN_OUTCOME, COLUMNS_COUNT };
enum { OUTCOME_OK, OUTCOME_TIMED_OUT };
enum { ROWS_MAX = 520 };

typedef struct {
    uint32_t seq;
    int64_t began_us;
    int64_t done_us; /* 0: not yet */
} reading_row_t;

static portMUX_TYPE s_lock = portMUX_INITIALIZER_UNLOCKED;
static reading_row_t s_rows[ROWS_MAX];
static size_t s_wanted; /* 0: nobody watches */
static size_t s_begun;
static size_t s_done;

void reading_began(uint32_t seq) {
    const int64_t now_us = esp_timer_get_time();
    portENTER_CRITICAL(&s_lock);
    if (s_begun < s_wanted) {
        s_rows[s_begun++] = (reading_row_t){.seq = seq, .began_us = now_us};
    }
    portEXIT_CRITICAL(&s_lock);
}

void reading_acknowledged(uint32_t seq) {
    const int64_t now_us = esp_timer_get_time();
    portENTER_CRITICAL(&s_lock);
    for (size_t row = s_begun; row-- > 0;) { /* the latest first */
        if (s_rows[row].seq == seq && s_rows[row].done_us == 0) {
            s_rows[row].done_us = now_us;
            s_done++;
            break;
        }
    }
    portEXIT_CRITICAL(&s_lock);
}

static void watch(size_t rows) {
    portENTER_CRITICAL(&s_lock);
    s_begun = 0;
    s_done = 0;
    s_wanted = rows;
    portEXIT_CRITICAL(&s_lock);
}

/* Waits until all rows have begun and are done, or the last of them had its time. */
static esp_err_t wait(const hil_bench_run_t *run, size_t rows, int64_t timeout_us) {
    int64_t last_us = 0;
    while (s_done < rows && (last_us == 0 || esp_timer_get_time() - last_us < timeout_us)) {
        vTaskDelay(pdMS_TO_TICKS(20));
        if (hil_bench_aborted(run)) {
            return ESP_ERR_INVALID_STATE;
        }
        if (last_us == 0 && s_begun == rows) {
            last_us = esp_timer_get_time();
        }
    }
    return ESP_OK;
}

static esp_err_t run(const hil_bench_run_t *run, hil_bench_samples_t *samples) {
    const size_t warmup = (size_t)hil_bench_param_int(run, "warmup");
    const size_t rows = (size_t)hil_bench_param_int(run, "count") + warmup;
    const int64_t timeout_us = hil_bench_param_int(run, "timeout_ms") * 1000;
    esp_err_t err = hil_bench_samples_begin(samples, rows, warmup);
    const int64_t t0_us = esp_timer_get_time();
    if (err == ESP_OK) {
        watch(rows);
        err = wait(run, rows, timeout_us);
    }
    s_wanted = 0; /* rows stay as they are from here on, but for acknowledgements that are late */
    for (size_t row = 0; row < rows && err == ESP_OK; row++) {
        const reading_row_t *reading = &s_rows[row];
        const int64_t took_us = reading->done_us - reading->began_us;
        const bool in_time = reading->done_us != 0 && took_us <= timeout_us;
        const int64_t done_us = in_time ? reading->done_us : reading->began_us + timeout_us;
        hil_bench_samples_set(samples, row, COLUMN_SEQ, reading->seq);
        hil_bench_samples_set(samples, row, COLUMN_BEGAN, (uint32_t)(reading->began_us - t0_us));
        hil_bench_samples_set(samples, row, COLUMN_DONE, (uint32_t)(done_us - t0_us));
        hil_bench_samples_set(samples, row, COLUMN_OUTCOME, in_time ? OUTCOME_OK : OUTCOME_TIMED_OUT);
    }
    return err;
}

static const hil_bench_parameter_t PARAMETERS[] = {
    {.key = "count", .type = HIL_BENCH_INT, .def = 100, .min = 1, .max = 500},
    {.key = "warmup", .type = HIL_BENCH_INT, .def = 5, .min = 0, .max = 20},
    {.key = "timeout_ms", .type = HIL_BENCH_INT, .def = 1000, .min = 1, .max = 60000},
};

static const char *const COLUMNS[COLUMNS_COUNT] = {"seq", "began_us", "done_us", "outcome"};

HIL_BENCH(reading_published, .parameters = PARAMETERS,
          .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]), .columns = COLUMNS,
          .column_count = COLUMNS_COUNT, .run = run);
