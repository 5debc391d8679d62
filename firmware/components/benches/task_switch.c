/* SPDX-License-Identifier: Apache-2.0 */
/* task_switch: how long from giving to the taker running. docs/explain/task-switching.md says what is
 * compared.
 *
 * The giver has the lower priority, the taker the higher one. `placement` same: both on core 0; cross: the
 * giver on core 1, the taker on core 0; free: no affinity. The stretch begins directly before the call that
 * gives and ends directly after the taker's call has come back:
 *
 *   raw_cycles    end less begin as the cores' own counters say; across cores it holds their offset
 *   corrected_ns  without that offset and without the cost of reading
 *   common_us     by esp_timer, which both cores share
 *   give_ns       the call that gives, with nobody waiting, timed just before
 *   start_core, end_core
 *   host_late_us  how late the host was meanwhile; 0 on a chip
 *   outcome       0 ok, 1 not done: the taker was not waiting, or did not get it in time, 2 void
 *
 * A spinlock is handed over between two cores (cross). On one core (same) nobody can wait for it: what is
 * timed is entering and leaving a critical section that is free.
 */
#include <stdlib.h>

#include "freertos/FreeRTOS.h"
#include "load/bursts.h"
#include "load/workers.h"
#include "rtos/pair.h"
#include "rtos/solo.h"

enum {
    COLUMN_RAW,
    COLUMN_CORRECTED,
    COLUMN_COMMON,
    COLUMN_GIVE,
    COLUMN_START_CORE,
    COLUMN_END_CORE,
    COLUMN_HOST_LATE
};
enum { PLACEMENT_SAME, PLACEMENT_CROSS, PLACEMENT_FREE };
enum { GIVER_PRIORITY = 8, TAKER_PRIORITY = 10 };
enum {
    BURST_ROWS = 1024
}; /* what the heap of a chip has room for, and for how long its cores are kept busy */
enum { TICK_US = 1000000 / configTICK_RATE_HZ };

typedef struct {
    const bench_run_t *run;
    bench_samples_t *samples;
    int placement;
    rtos_exchange_t exchange;
    rtos_clocks_t clocks;
    rtos_rows_t rows;
} switch_t;

/* In the task that played it. */
static void keep(void *context, size_t row, const rtos_round_t *round) {
    switch_t *s = context;
    rtos_rows_set(&s->rows, row, round);
    if (!round->done) {
        return;
    }
    bench_samples_set(s->samples, row, COLUMN_RAW, rtos_raw_cycles(round->begin, round->end));
    bench_samples_set(s->samples, row, COLUMN_CORRECTED, rtos_round_ns(&s->clocks, round));
    bench_samples_set(s->samples, row, COLUMN_COMMON, rtos_common_us(round->begin, round->end));
    bench_samples_set(s->samples, row, COLUMN_GIVE, rtos_corrected_ns(&s->clocks, round->give, round->given));
    bench_samples_set(s->samples, row, COLUMN_START_CORE, round->begin.core);
    bench_samples_set(s->samples, row, COLUMN_END_CORE, round->end.core);
}

static bool is_uncontended(const switch_t *s) {
    return s->exchange.type == RTOS_EXCHANGE_SPINLOCK && s->placement == PLACEMENT_SAME;
}

static esp_err_t play_alone(switch_t *s, size_t rows) {
    rtos_solo_t solo = {.run = s->run,
                        .kind = &rtos_critical,
                        .kind_context = &s->exchange.lock,
                        .core = 0,
                        .priority = TAKER_PRIORITY,
                        .measured = keep,
                        .context = s};
    esp_err_t err = rtos_solo_run(&solo, rows);
    bench_environment_stack(s->samples, "solo", solo.stack_free_min_bytes);
    return err;
}

static esp_err_t play_together(switch_t *s, size_t rows) {
    static const BaseType_t giver_cores[] = {0, 1, tskNO_AFFINITY}, taker_cores[] = {0, 0, tskNO_AFFINITY};
    rtos_pair_t pair = {
        .run = s->run,
        .samples = s->samples,
        .exchange = &s->exchange,
        .giver_core = giver_cores[s->placement],
        .taker_core = taker_cores[s->placement],
        .giver_priority = GIVER_PRIORITY,
        .taker_priority = TAKER_PRIORITY,
        .interval = (TickType_t)(bench_param_int(s->run, "interval_us") / TICK_US),
        .timeout_ms = (uint32_t)bench_param_int(s->run, "timeout_ms"),
        .measure_give = true,
        .measured = keep,
        .context = s,
    };
    esp_err_t err = rtos_pair_run(&pair, rows);
    bench_environment_stack(s->samples, "pair", pair.stack_free_min_bytes);
    return err;
}

static esp_err_t measure_burst(void *context, size_t rows, size_t warmup_rows) {
    switch_t *s = context;
    esp_err_t err = bench_samples_begin(s->samples, rows, warmup_rows);
    err = err != ESP_OK ? err : rtos_clocks_calibrate(&s->clocks, s->samples);
    if (err != ESP_OK) {
        return err;
    }
    rtos_rows_begin(&s->rows, rows);
    err = is_uncontended(s) ? play_alone(s, rows) : play_together(s, rows);
    rtos_rows_end(&s->rows, rows);
    bench_environment_int(s->samples, "giver_priority", GIVER_PRIORITY);
    bench_environment_int(s->samples, "taker_priority", TAKER_PRIORITY);
    return err == ESP_OK && bench_aborted(s->run) ? ESP_ERR_INVALID_STATE : err;
}

/* Why this cannot be measured, as a sentence; NULL where it can. */
static const char *conflict(const switch_t *s) {
    int64_t interval_us = bench_param_int(s->run, "interval_us");
    if (s->placement == PLACEMENT_CROSS && load_core_conflict(1) != NULL) {
        return load_core_conflict(1);
    }
    if (s->exchange.type == RTOS_EXCHANGE_SPINLOCK && s->placement == PLACEMENT_FREE) {
        return "a spinlock is handed over between two cores (placement=cross) or entered on one (same), so "
               "placement=free has no meaning";
    }
    if (s->exchange.type == RTOS_EXCHANGE_SPINLOCK && interval_us != 0) {
        return "who waits for a spinlock has interrupts masked, which lasts no interval: interval_us=0";
    }
    if (interval_us % TICK_US != 0) {
        return "interval_us is no whole number of ticks";
    }
    if (interval_us >= bench_param_int(s->run, "timeout_ms") * 1000) {
        return "the taker gives up before it is given to: timeout_ms is to be longer than interval_us";
    }
    return NULL;
}

static esp_err_t measure(switch_t *s) {
    int64_t warmup = bench_param_int(s->run, "warmup"), rows = bench_param_int(s->run, "count") + warmup;
    size_t capacity = load_burst_capacity(s->samples, rows);
    capacity = capacity > BURST_ROWS ? BURST_ROWS : capacity;
    esp_err_t err = rtos_rows_create(&s->rows, capacity);
    err = err != ESP_OK ? err : rtos_exchange_create(&s->exchange);
    err = err != ESP_OK
              ? err
              : load_bursts_run(s->samples, capacity, (size_t)rows, (size_t)warmup, measure_burst, s);
    rtos_exchange_delete(&s->exchange);
    rtos_rows_delete(&s->rows);
    return err;
}

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    switch_t *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return ESP_ERR_NO_MEM;
    }
    s->run = bench_run;
    s->samples = samples;
    s->placement = (int)bench_param_int(bench_run, "placement");
    s->exchange.type = (rtos_exchange_type_t)bench_param_int(bench_run, "primitive");
    s->rows = (rtos_rows_t){.samples = samples,
                            .late_column = COLUMN_HOST_LATE,
                            .void_late_us = (uint32_t)bench_param_int(bench_run, "void_late_us")};
    const char *problem = conflict(s);
    esp_err_t err = problem == NULL
                        ? measure(s)
                        : bench_fail(samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_ARG, "%s", problem);
    free(s);
    return err;
}

static const char *const PLACEMENTS[] = {"same", "cross", "free", NULL};

static const bench_parameter_t PARAMETERS[] = {
    {.key = "primitive", .type = BENCH_CHOICE, .choices = rtos_exchange_primitives},
    {.key = "placement", .type = BENCH_CHOICE, .choices = PLACEMENTS},
    {.key = "interval_us", .type = BENCH_INT, .def = 0, .min = 0, .max = 100000},
    {.key = "count", .type = BENCH_INT, .def = 200, .min = 1, .max = 100000},
    {.key = "warmup", .type = BENCH_INT, .def = 10, .min = 0, .max = 1000},
    {.key = "void_late_us", .type = BENCH_INT, .def = 500, .min = 0, .max = 1000000},
    {.key = "timeout_ms", .type = BENCH_INT, .def = 1000, .min = 100, .max = 10000},
};

static const char *const COLUMNS[] = {"raw_cycles", "corrected_ns", "common_us",    "give_ns",
                                      "start_core", "end_core",     "host_late_us", "outcome"};

const bench_t bench_task_switch = {
    .name = "task_switch",
    .parameters = PARAMETERS,
    .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]),
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .clock = "cycle_counter",
    .run = run,
};
