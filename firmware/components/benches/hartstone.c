/* SPDX-License-Identifier: Apache-2.0 */
/* hartstone: how much of a core periodic tasks can ask for before one of them misses a deadline.
 *
 * A ramp raises one thing step by step (rtos/ramp.h) until the first miss, or until cap_permille. A miss
 * while the host under a virtual board was late says nothing: the step is measured again. One row is a task
 * in a step, and at a ramp's end one row for all of it, whose task is 0:
 *
 *   ramp, step, task                  each from 1; step is the last one that was measured in a ramp's own row
 *   period_us, work_loops             of the task in this step; 0 in a ramp's own row
 *   activations_count, missed_count   of the task in this step; in a ramp's own row of all its steps
 *   response_max_us                   from a release to the end of its work
 *   asked_permille                    what the step asked of the core, by the work's calibration
 *   sustained_permille                a ramp's own row: what was asked in the last step without a miss
 *   sustained_steps_count             a ramp's own row: steps without a miss
 *   repeats_count                     how often the step, or all steps, were measured again
 *   host_late_us                      of the step, or the worst
 *   outcome                           0 ok, 1 a deadline was missed, 2 void; a ramp that ended so is ok
 */
#include <stdlib.h>

#include "agent/bench.h"
#include "agent/watch.h"
#include "load/idle_watch.h"
#include "load/workers.h"
#include "rtos/climb.h"
#include "rtos/resource.h"
#include "rtos/work.h"

enum {
    CALIBRATION_PRIORITY = 20,
    ROW_COLUMNS = sizeof(rtos_climb_row_t) / sizeof(uint32_t),
};

typedef struct {
    const bench_run_t *run;
    bench_samples_t *samples;
    load_workers_t workers;
    rtos_climb_t climb;
} hartstone_t;

static esp_err_t send_rows(hartstone_t *h, bool last) {
    esp_err_t err = bench_samples_begin(h->samples, h->climb.row_count, 0);
    for (size_t row = 0; row < h->climb.row_count && err == ESP_OK; row++) {
        const uint32_t *cells = &h->climb.rows[row].ramp;
        for (size_t column = 0; column < ROW_COLUMNS; column++) {
            bench_samples_set(h->samples, row, column, cells[column]);
        }
    }
    return err == ESP_OK && !last ? bench_samples_burst(h->samples) : err;
}

/* A ramp is a burst: nothing is sent within it. */
static esp_err_t measure_ramp(hartstone_t *h, uint32_t number, bool last) {
    bench_cpu_load_begin();
    bench_watch_begin();
    load_idle_watch_stop();
    esp_err_t err = rtos_climb(&h->climb, number);
    load_idle_watch_restore();
    bench_watch_end(h->samples);
    bench_cpu_load_end();
    bench_environment_int(h->samples, "work_loops_per_ms", h->climb.ramp.loops_per_ms);
    return err == ESP_OK ? send_rows(h, last) : err;
}

/* ---- the run ---- */

static void calibrate(void *context) {
    rtos_ramp_t *ramp = context;
    ramp->loops_per_ms = rtos_work_calibrate();
}

static esp_err_t measure(hartstone_t *h) {
    load_worker_t calibration = {
        .name = "calibration",
        .work = calibrate,
        .context = &h->climb.ramp,
        .core = h->climb.set.core,
        .priority = CALIBRATION_PRIORITY,
    };
    esp_err_t err = load_workers_run(&h->workers, &calibration, 1);
    uint32_t ramps = (uint32_t)bench_param_int(h->run, "ramps");
    for (uint32_t number = 1; number <= ramps && err == ESP_OK; number++) {
        err = measure_ramp(h, number, number == ramps);
    }
    if (err == ESP_ERR_TIMEOUT) {
        return bench_fail(h->samples, BENCH_OWNER_FIRMWARE, err,
                          "a task waited more than timeout_ms for its release or for the lock");
    }
    return err;
}

static esp_err_t prepare_and_measure(hartstone_t *h) {
    size_t rows = rtos_climb_rows_max(&h->climb.ramp);
    if (rows > bench_samples_capacity(h->samples)) {
        return bench_fail(
            h->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_ARG,
            "a ramp of %u rows is longer than the sample buffer; choose a larger raise_permille",
            (unsigned)rows);
    }
    h->climb.rows = calloc(rows, sizeof(*h->climb.rows));
    h->climb.set.lock = rtos_resource_create();
    esp_err_t err = load_workers_create(&h->workers, h->run);
    if (err == ESP_OK) {
        err = h->climb.rows != NULL && h->climb.set.lock != NULL ? measure(h) : ESP_ERR_NO_MEM;
    }
    load_workers_delete(&h->workers);
    if (h->climb.set.lock != NULL) {
        vSemaphoreDelete(h->climb.set.lock);
    }
    free(h->climb.rows);
    return err;
}

static uint32_t param(const bench_run_t *run, const char *key) {
    return (uint32_t)bench_param_int(run, key);
}

static void read_parameters(hartstone_t *h) {
    const bench_run_t *run = h->run;
    h->climb.ramp.series = (rtos_series_t)bench_param_int(run, "series");
    h->climb.ramp.raise = (rtos_raise_t)bench_param_int(run, "raise");
    h->climb.ramp.base_us = param(run, "base_ms") * 1000;
    h->climb.ramp.base_permille = param(run, "base_permille");
    h->climb.ramp.raise_permille = param(run, "raise_permille");
    h->climb.ramp.cap_permille = param(run, "cap_permille");
    h->climb.set.core = (BaseType_t)bench_param_int(run, "task_core");
    h->climb.set.duration_us = param(run, "step_ms") * 1000;
    h->climb.set.timeout_ms = param(run, "timeout_ms");
    h->climb.set.workers = &h->workers;
    h->climb.void_late_us = param(run, "void_late_us");
    h->climb.seed = param(run, "seed");
}

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    hartstone_t *h = calloc(1, sizeof(*h));
    if (h == NULL) {
        return ESP_ERR_NO_MEM;
    }
    h->run = bench_run;
    h->samples = samples;
    read_parameters(h);
    const char *problem = load_core_conflict(h->climb.set.core);
    problem = problem != NULL ? problem : rtos_ramp_conflict(&h->climb.ramp);
    esp_err_t err = problem == NULL
                        ? prepare_and_measure(h)
                        : bench_fail(samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_ARG, "%s", problem);
    free(h);
    return err;
}

static const bench_parameter_t PARAMETERS[] = {
    {.key = "series", .type = BENCH_CHOICE, .choices = rtos_series},
    {.key = "raise", .type = BENCH_CHOICE, .choices = rtos_raises},
    {.key = "ramps", .type = BENCH_INT, .def = 3, .min = 1, .max = 100},
    {.key = "base_ms", .type = BENCH_INT, .def = 64, .min = 8, .max = 1000},
    {.key = "step_ms", .type = BENCH_INT, .def = 512, .min = 50, .max = 10000},
    {.key = "base_permille", .type = BENCH_INT, .def = 300, .min = 100, .max = 1000},
    {.key = "raise_permille", .type = BENCH_INT, .def = 50, .min = 10, .max = 500},
    {.key = "cap_permille", .type = BENCH_INT, .def = 900, .min = 100, .max = 1000},
    {.key = "task_core", .type = BENCH_CHOICE, .choices = load_pinned_cores},
    {.key = "seed", .type = BENCH_INT, .def = 1, .min = 1, .max = 1000000},
    {.key = "void_late_us", .type = BENCH_INT, .def = 500, .min = 0, .max = 1000000},
    {.key = "timeout_ms", .type = BENCH_INT, .def = 1000, .min = 100, .max = 60000},
};

static const char *const COLUMNS[] = {"ramp",
                                      "step",
                                      "task",
                                      "period_us",
                                      "work_loops",
                                      "activations_count",
                                      "missed_count",
                                      "response_max_us",
                                      "asked_permille",
                                      "sustained_permille",
                                      "sustained_steps_count",
                                      "repeats_count",
                                      "host_late_us",
                                      "outcome"};

_Static_assert(sizeof(COLUMNS) / sizeof(COLUMNS[0]) == ROW_COLUMNS, "a row has a cell for each column");

const bench_t bench_hartstone = {
    .name = "hartstone",
    .parameters = PARAMETERS,
    .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]),
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .run = run,
};
