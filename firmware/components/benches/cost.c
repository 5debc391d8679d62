/* SPDX-License-Identifier: Apache-2.0 */
/* cost: what a message costs the processor, part by part, in instructions.
 *
 * One part a run, again and again; each time it begins right after a tick, so that none comes in between
 * where it is shorter. Whatever is on the other end of a connection is on this chip too (cost/part.h).
 *
 *   cost_instructions   from the beginning of the part to its end, those of other tasks included; 0 where it
 *                       did not end
 *   outcome             0 ok, 1 it did not end in time
 */
#include <stdlib.h>

#include "agent/bench.h"
#include "cost/part.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "load/message.h"

enum { COLUMN_INSTRUCTIONS, COLUMN_OUTCOME };
enum { OUTCOME_OK, OUTCOME_TIMEOUT };
enum { TICKS_BETWEEN = 3 }; /* in which the other end comes to rest */

static void repeat_once(cost_t *cost, const cost_part_t *part) {
    vTaskDelay(TICKS_BETWEEN);
    cost_background_resume(cost);
    bool done = part->repeat(cost);
    cost_background_suspend(cost);
    uint32_t instructions = done ? cost_instructions(cost) : 0;
    bench_samples_set(cost->samples, cost->number, COLUMN_INSTRUCTIONS, instructions);
    bench_samples_set(cost->samples, cost->number, COLUMN_OUTCOME, done ? OUTCOME_OK : OUTCOME_TIMEOUT);
}

static esp_err_t repeat(cost_t *cost, const cost_part_t *part, size_t rows) {
    esp_err_t err = part->open != NULL ? part->open(cost) : ESP_OK;
    for (cost->number = 0; cost->number < rows && err == ESP_OK; cost->number++) {
        repeat_once(cost, part);
        err = bench_aborted(cost->run) ? ESP_ERR_INVALID_STATE : ESP_OK;
    }
    if (part->close != NULL) {
        part->close(cost);
    }
    return err;
}

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    const cost_part_t *part = cost_part(bench_param_int(bench_run, "part"));
    size_t warmup = part->once_a_boot ? 0 : (size_t)bench_param_int(bench_run, "warmup");
    size_t rows = part->once_a_boot ? 1 : warmup + (size_t)bench_param_int(bench_run, "count");
    cost_t *cost = calloc(1, sizeof(*cost));
    if (cost == NULL) {
        return ESP_ERR_NO_MEM;
    }
    cost->run = bench_run;
    cost->samples = samples;
    cost->payload_bytes = (size_t)bench_param_int(bench_run, "payload_bytes");
    esp_err_t err = bench_samples_begin(samples, rows, warmup);
    err = err == ESP_OK ? cost_background_start(cost) : err;
    err = err == ESP_OK ? repeat(cost, part, rows) : err;
    cost_background_stop(cost);
    free(cost);
    return err;
}

static const bench_parameter_t PARAMETERS[] = {
    {.key = "part", .type = BENCH_CHOICE, .choices = cost_part_names},
    {.key = "payload_bytes",
     .type = BENCH_INT,
     .def = 128,
     .min = LOAD_MESSAGE_MIN_BYTES,
     .max = COST_MAX_PAYLOAD_BYTES},
    {.key = "count", .type = BENCH_INT, .def = 32, .min = 1, .max = 1000},
    {.key = "warmup", .type = BENCH_INT, .def = 8, .min = 0, .max = 100},
};

static const char *const COLUMNS[] = {"cost_instructions", "outcome"};

const bench_t bench_cost = {
    .name = "cost",
    .parameters = PARAMETERS,
    .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]),
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .clock = "instructions",
    .run = run,
};
