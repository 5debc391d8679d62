/* SPDX-License-Identifier: Apache-2.0 */
/* components/rtos: a row during which the host was late is void, done or not; on a chip none ever is. */
#include "idf_check.h"

#include "agent/watch.h"
#include "rtos/round.h"
#include "samples_private.h"

enum { COLUMN_LATE, COLUMN_OUTCOME, COLUMNS, ROWS = 4 };

/* Linked with --wrap: how late the host was, by the row's first microsecond. */
static const uint32_t LATE_US[ROWS] = {499, 500, 0, 5000};
static int64_t s_t0_us;
static BaseType_t s_cores[ROWS];

uint32_t __wrap_bench_watch_late_us(BaseType_t core, int64_t from_us, int64_t until_us) {
    size_t row = (size_t)(from_us - s_t0_us);
    CHECK(row < ROWS);
    CHECK_EQUAL(until_us, from_us + 10);
    s_cores[row] = core;
    return LATE_US[row];
}

static bench_samples_t s_samples;

static void set(rtos_rows_t *rows, size_t row, bool done, uint8_t start_core, uint8_t end_core) {
    rtos_round_t round = {.begin = {.us = rows->t0_us + (int64_t)row, .core = start_core},
                          .end = {.us = rows->t0_us + (int64_t)row + 10, .core = end_core},
                          .done = done};
    rtos_rows_set(rows, row, &round);
}

static void judge(uint32_t void_late_us) {
    samples_reset(&s_samples, COLUMNS, NULL);
    CHECK_EQUAL(bench_samples_begin(&s_samples, ROWS, 0), ESP_OK);
    rtos_rows_t rows = {.samples = &s_samples, .late_column = COLUMN_LATE, .void_late_us = void_late_us};
    CHECK_EQUAL(rtos_rows_create(&rows, ROWS), ESP_OK);
    rtos_rows_begin(&rows, ROWS);
    s_t0_us = rows.t0_us;
    set(&rows, 0, true, 1, 1);
    set(&rows, 1, true, 1, 0);
    set(&rows, 2, false, 0, 0);
    set(&rows, 3, false, 0, 0);
    rtos_rows_end(&rows, ROWS);
    rtos_rows_delete(&rows);
}

static void check_outcomes(uint32_t first, uint32_t second, uint32_t third, uint32_t fourth) {
    const uint32_t expected[ROWS] = {first, second, third, fourth};
    for (size_t row = 0; row < ROWS; row++) {
        CHECK_EQUAL(samples_get(&s_samples, row, COLUMN_OUTCOME), expected[row]);
        CHECK_EQUAL(samples_get(&s_samples, row, COLUMN_LATE), LATE_US[row]);
    }
}

void app_main(void) {
    judge(500);
    check_outcomes(RTOS_OUTCOME_OK, RTOS_OUTCOME_VOID, RTOS_OUTCOME_NOT_DONE, RTOS_OUTCOME_VOID);
    CHECK_EQUAL(s_cores[0], 1);
    CHECK_EQUAL(s_cores[1], tskNO_AFFINITY); /* it was on both */
    judge(0);
    check_outcomes(RTOS_OUTCOME_OK, RTOS_OUTCOME_OK, RTOS_OUTCOME_NOT_DONE, RTOS_OUTCOME_NOT_DONE);
    exit(EXIT_SUCCESS);
}
