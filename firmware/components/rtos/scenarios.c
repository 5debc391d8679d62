/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/scenarios.h"

#include <stdlib.h>

#include "load/bursts.h"

enum { COLUMN_OPERATION, COLUMN_NS, COLUMN_NEXT };
enum {
    BURST_ROUNDS = 100, /* what the heap of a chip has room for, and for how long its core is kept busy */
    ONE_CORE = 0,
    NS_PER_S = 1000000000,
};

static size_t rows_of_round(const rtos_scenarios_t *s) {
    return s->count + (s->mean ? 1 : 0);
}

static void set_values(const rtos_scenarios_t *s, size_t row, uint32_t ns) {
    bench_samples_set(s->samples, row, COLUMN_NS, ns);
    if (s->rate) {
        bench_samples_set(s->samples, row, COLUMN_NEXT, ns > 0 ? NS_PER_S / ns : 0);
    }
}

/* In the task that played it. */
static void keep(void *context, size_t round_number, const rtos_round_t *round) {
    rtos_scenarios_t *s = context;
    size_t row = round_number * rows_of_round(s) + s->current;
    rtos_rows_set(&s->rows, row, round);
    if (round->done) {
        uint32_t ns = rtos_round_ns(&s->clocks, round);
        s->sum_ns[round_number] += ns;
        set_values(s, row, ns);
    }
}

static void note_stack(rtos_scenarios_t *s, uint32_t free_min_bytes) {
    s->stack_free_min_bytes =
        free_min_bytes < s->stack_free_min_bytes ? free_min_bytes : s->stack_free_min_bytes;
}

static void *solo_context(rtos_scenarios_t *s, const rtos_solo_kind_t *kind) {
    return kind == &rtos_raise ? (void *)&s->raised : (void *)&s->block_bytes;
}

static esp_err_t play_alone(rtos_scenarios_t *s, const rtos_scenario_t *scenario, size_t rounds) {
    rtos_solo_t solo = {.run = s->run,
                        .kind = scenario->solo,
                        .kind_context = solo_context(s, scenario->solo),
                        .core = ONE_CORE,
                        .priority = RTOS_PRIORITY_GIVER,
                        .measured = keep,
                        .context = s};
    esp_err_t err = rtos_solo_run(&solo, rounds);
    note_stack(s, solo.stack_free_min_bytes);
    if (err == ESP_ERR_NOT_SUPPORTED) {
        return bench_fail(s->samples, BENCH_OWNER_CONFIGURATION, err,
                          "this target has no interrupt that software can raise");
    }
    return err;
}

static esp_err_t play_together(rtos_scenarios_t *s, const rtos_scenario_t *scenario, size_t rounds) {
    rtos_exchange_t exchange = {.type = scenario->exchange, .message_bytes = s->message_bytes};
    rtos_pair_t pair = {.run = s->run,
                        .samples = s->samples,
                        .exchange = &exchange,
                        .giver_core = ONE_CORE,
                        .taker_core = ONE_CORE,
                        .giver_priority = scenario->giver_priority,
                        .taker_priority = scenario->taker_priority,
                        .middle_priority = scenario->middle_priority,
                        .timeout_ms = (uint32_t)bench_param_int(s->run, "timeout_ms"),
                        .taker_begins = scenario->taker_begins,
                        .measured = keep,
                        .context = s};
    esp_err_t err = rtos_exchange_create(&exchange);
    err = err != ESP_OK ? err : rtos_pair_run(&pair, rounds);
    rtos_exchange_delete(&exchange);
    note_stack(s, pair.stack_free_min_bytes);
    return err;
}

static esp_err_t play_all(rtos_scenarios_t *s, size_t rounds) {
    esp_err_t err = ESP_OK;
    for (s->current = 0; s->current < s->count && err == ESP_OK; s->current++) {
        const rtos_scenario_t *scenario = &s->scenarios[s->current];
        err = scenario->solo != NULL ? play_alone(s, scenario, rounds) : play_together(s, scenario, rounds);
        if (err == ESP_OK && bench_aborted(s->run)) {
            err = ESP_ERR_INVALID_STATE;
        }
    }
    return err;
}

/* The round's last row. */
static void set_mean(const rtos_scenarios_t *s, size_t round_number) {
    size_t first = round_number * rows_of_round(s), last = first + s->count;
    uint32_t late_us = 0;
    uint8_t outcome = RTOS_OUTCOME_OK; /* void is the greatest: what is void is no failure */
    for (size_t row = first; row < last; row++) {
        late_us = s->rows.row[row].late_us > late_us ? s->rows.row[row].late_us : late_us;
        outcome = s->rows.row[row].outcome > outcome ? s->rows.row[row].outcome : outcome;
    }
    if (outcome != RTOS_OUTCOME_NOT_DONE) {
        set_values(s, last, s->sum_ns[round_number] / (uint32_t)s->count);
    }
    bench_samples_set(s->samples, last, s->rows.late_column, late_us);
    bench_samples_set(s->samples, last, s->rows.late_column + 1, outcome);
}

static void finish_rows(rtos_scenarios_t *s, size_t rounds) {
    size_t of_round = rows_of_round(s);
    rtos_rows_end(&s->rows, rounds * of_round);
    for (size_t row = 0; row < rounds * of_round; row++) {
        bench_samples_set(s->samples, row, COLUMN_OPERATION, (uint32_t)(row % of_round));
    }
    for (size_t round_number = 0; s->mean && round_number < rounds; round_number++) {
        set_mean(s, round_number);
    }
    bench_environment_stack(s->samples, "scenarios", s->stack_free_min_bytes);
}

static esp_err_t measure_burst(void *context, size_t rows, size_t warmup_rows) {
    rtos_scenarios_t *s = context;
    size_t rounds = rows / rows_of_round(s);
    esp_err_t err = bench_samples_begin(s->samples, rows, warmup_rows);
    err = err != ESP_OK ? err : rtos_clocks_calibrate(&s->clocks, s->samples);
    if (err != ESP_OK) {
        return err;
    }
    for (size_t i = 0; i < rounds; i++) {
        s->sum_ns[i] = 0;
    }
    rtos_rows_begin(&s->rows, rows);
    err = play_all(s, rounds);
    finish_rows(s, rounds);
    return err;
}

esp_err_t rtos_scenarios_run(rtos_scenarios_t *s) {
    size_t of_round = rows_of_round(s);
    size_t warmup = (size_t)bench_param_int(s->run, "warmup");
    size_t rounds = warmup + (size_t)bench_param_int(s->run, "count");
    size_t capacity = load_burst_capacity(s->samples, (int64_t)(rounds * of_round)) / of_round;
    capacity = capacity > BURST_ROUNDS ? BURST_ROUNDS : capacity;
    s->stack_free_min_bytes = UINT32_MAX;
    s->rows = (rtos_rows_t){.samples = s->samples,
                            .late_column = s->rate ? COLUMN_NEXT + 1 : COLUMN_NEXT,
                            .void_late_us = (uint32_t)bench_param_int(s->run, "void_late_us")};
    s->sum_ns = calloc(capacity, sizeof(*s->sum_ns));
    esp_err_t err = s->sum_ns != NULL ? rtos_rows_create(&s->rows, capacity * of_round) : ESP_ERR_NO_MEM;
    err = err != ESP_OK ? err
                        : load_bursts_run(s->samples, capacity * of_round, rounds * of_round,
                                          warmup * of_round, measure_burst, s);
    rtos_rows_delete(&s->rows);
    free(s->sum_ns);
    return err;
}
