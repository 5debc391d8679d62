/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/round.h"

#include <stdlib.h>

#include "agent/watch.h"
#include "freertos/task.h"

uint32_t rtos_round_ns(const rtos_clocks_t *clocks, const rtos_round_t *round) {
    if (!round->split) {
        return rtos_corrected_ns(clocks, round->begin, round->end);
    }
    return rtos_corrected_ns(clocks, round->begin, round->paused) +
           rtos_corrected_ns(clocks, round->resumed, round->end);
}

esp_err_t rtos_rows_create(rtos_rows_t *rows, size_t capacity) {
    rows->row = calloc(capacity, sizeof(*rows->row));
    return rows->row != NULL ? ESP_OK : ESP_ERR_NO_MEM;
}

void rtos_rows_delete(rtos_rows_t *rows) {
    free(rows->row);
    rows->row = NULL;
}

void rtos_rows_begin(rtos_rows_t *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        rows->row[i] = (struct rtos_row){.outcome = RTOS_OUTCOME_NOT_DONE};
    }
    bench_watch_begin();
    rows->t0_us = esp_timer_get_time();
}

void rtos_rows_set(rtos_rows_t *rows, size_t row, const rtos_round_t *round) {
    rows->row[row] = (struct rtos_row){
        .from_us = (uint32_t)(round->begin.us - rows->t0_us),
        .until_us = (uint32_t)(round->end.us - rows->t0_us),
        .core = round->begin.core == round->end.core ? (int8_t)round->end.core : -1,
        .outcome = round->done ? RTOS_OUTCOME_OK : RTOS_OUTCOME_NOT_DONE,
    };
}

static uint32_t late_us_of(const rtos_rows_t *rows, const struct rtos_row *row) {
    return bench_watch_late_us(row->core < 0 ? tskNO_AFFINITY : row->core, rows->t0_us + row->from_us,
                               rows->t0_us + row->until_us);
}

void rtos_rows_end(rtos_rows_t *rows, size_t count) {
    bench_watch_end(rows->samples);
    for (size_t i = 0; i < count; i++) {
        struct rtos_row *row = &rows->row[i];
        row->late_us = late_us_of(rows, row);
        if (rows->void_late_us != 0 && row->late_us >= rows->void_late_us) {
            row->outcome = RTOS_OUTCOME_VOID;
        }
        bench_samples_set(rows->samples, i, rows->late_column, row->late_us);
        bench_samples_set(rows->samples, i, rows->late_column + 1, row->outcome);
    }
}
