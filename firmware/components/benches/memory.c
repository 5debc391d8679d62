/* SPDX-License-Identifier: Apache-2.0 */
/* memory: how long it takes to get memory, to give it back, and to work on it.
 *
 * A round times each operation once with each size, by the cycle counter of the core that its task is pinned
 * to. One row is one operation:
 *
 *   operation       0 malloc, 1 free, 2 realloc to twice the size
 *                   3 malloc, 4 free in a heap with holes
 *                   5 memset, 6 memcpy, 7 memmove by one word
 *                   8 reading 1024 words at random places of a block
 *   size_bytes      of the block
 *   raw_cycles      between the two readings of the counter
 *   corrected_ns    the same without the cost of reading
 *   host_late_us    how late the host was meanwhile; 0 on a chip
 *   outcome         0 ok, 1 there was no memory for it, or timeout_ms had passed, 2 void
 */
#include <stdlib.h>

#include "agent/bench.h"
#include "esp_heap_caps.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "load/bursts.h"
#include "load/workers.h"
#include "rtos/clocks.h"
#include "rtos/memory.h"
#include "rtos/round.h"

enum { COLUMN_OPERATION, COLUMN_SIZE, COLUMN_RAW, COLUMN_CORRECTED, COLUMN_HOST_LATE, COLUMN_OUTCOME };
enum {
    TASK_PRIORITY = 20,
    ROUNDS_A_BURST = 8, /* what is kept of each row until its burst is over has to fit next to the blocks */
};

typedef struct {
    const bench_run_t *run;
    bench_samples_t *samples;
    BaseType_t core;
    uint32_t caps, random;
    int64_t deadline_us;
    load_workers_t workers;
    rtos_clocks_t clocks;
    rtos_rows_t rows;
    size_t row_count; /* of this burst */
    rtos_memory_holes_t holes;
} memory_t;

/* ---- in the measuring task ---- */

static void time_round(memory_t *m, size_t first_row) {
    for (size_t slot = 0; slot < RTOS_MEMORY_SLOTS; slot++) {
        if (slot == RTOS_MEMORY_FIRST_IN_HOLES) {
            rtos_memory_make_holes(&m->holes, m->caps, &m->random);
        } else if (slot == RTOS_MEMORY_FIRST_WORK) {
            rtos_memory_close_holes(&m->holes);
        }
        rtos_round_t round = rtos_memory_time(slot, m->caps);
        size_t row = first_row + slot;
        rtos_rows_set(&m->rows, row, &round);
        if (round.done) {
            uint32_t ns = rtos_corrected_ns(&m->clocks, round.begin, round.end);
            bench_samples_set(m->samples, row, COLUMN_RAW, rtos_raw_cycles(round.begin, round.end));
            bench_samples_set(m->samples, row, COLUMN_CORRECTED, ns);
        }
    }
}

/* After each round the core is the others' for a tick: a round takes some ms on a chip. */
static void time_rounds(void *context) {
    memory_t *m = context;
    for (size_t row = 0; row < m->row_count && !m->workers.stop && esp_timer_get_time() < m->deadline_us;
         row += RTOS_MEMORY_SLOTS) {
        time_round(m, row);
        vTaskDelay(1);
    }
}

/* ---- in the run's own task ---- */

static esp_err_t measure_burst(void *context, size_t rows, size_t warmup_rows) {
    memory_t *m = context;
    load_worker_t worker = {
        .name = "memory", .work = time_rounds, .context = m, .core = m->core, .priority = TASK_PRIORITY};
    esp_err_t err = bench_samples_begin(m->samples, rows, warmup_rows);
    if (err == ESP_OK && m->clocks.cpu_mhz == 0) {
        err = rtos_clocks_calibrate(&m->clocks, m->samples);
    }
    if (err != ESP_OK) {
        return err;
    }
    for (size_t row = 0; row < rows; row++) {
        bench_samples_set(m->samples, row, COLUMN_OPERATION, rtos_memory_operation(row % RTOS_MEMORY_SLOTS));
        bench_samples_set(m->samples, row, COLUMN_SIZE, rtos_memory_size(row % RTOS_MEMORY_SLOTS));
    }
    m->row_count = rows;
    rtos_rows_begin(&m->rows, rows);
    err = load_workers_run(&m->workers, &worker, 1);
    rtos_rows_end(&m->rows, rows);
    return err == ESP_OK && m->workers.stop ? ESP_ERR_INVALID_STATE : err;
}

static esp_err_t measure(memory_t *m) {
    const size_t capacity = ROUNDS_A_BURST * RTOS_MEMORY_SLOTS;
    size_t warmup = (size_t)bench_param_int(m->run, "warmup") * RTOS_MEMORY_SLOTS;
    size_t rows = warmup + (size_t)bench_param_int(m->run, "count") * RTOS_MEMORY_SLOTS;
    m->rows = (rtos_rows_t){
        .samples = m->samples,
        .late_column = COLUMN_HOST_LATE,
        .void_late_us = (uint32_t)bench_param_int(m->run, "void_late_us"),
    };
    esp_err_t err = load_workers_create(&m->workers, m->run);
    err = err == ESP_OK ? rtos_rows_create(&m->rows, capacity) : err;
    m->deadline_us = esp_timer_get_time() + bench_param_int(m->run, "timeout_ms") * 1000;
    err = err == ESP_OK ? load_bursts_run(m->samples, capacity, rows, warmup, measure_burst, m) : err;
    rtos_rows_delete(&m->rows);
    load_workers_delete(&m->workers);
    return err;
}

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    static const uint32_t CAPS[] = {MALLOC_CAP_INTERNAL, MALLOC_CAP_SPIRAM};
    memory_t *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return ESP_ERR_NO_MEM;
    }
    m->run = bench_run;
    m->samples = samples;
    m->core = (BaseType_t)bench_param_int(bench_run, "task_core");
    m->caps = CAPS[bench_param_int(bench_run, "memory")] | MALLOC_CAP_8BIT;
    m->random = (uint32_t)bench_param_int(bench_run, "seed");
    const char *problem = load_core_conflict(m->core);
    if (problem == NULL && heap_caps_get_total_size(m->caps) == 0) {
        problem = "this board has no PSRAM; leave memory=psram out";
    }
    esp_err_t err = problem == NULL ? measure(m)
                                    : bench_fail(samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_NOT_SUPPORTED,
                                                 "%s", problem);
    free(m);
    return err;
}

static const char *const MEMORIES[] = {"internal", "psram", NULL};

static const bench_parameter_t PARAMETERS[] = {
    {.key = "memory", .type = BENCH_CHOICE, .choices = MEMORIES},
    {.key = "count", .type = BENCH_INT, .def = 50, .min = 1, .max = 10000},
    {.key = "warmup", .type = BENCH_INT, .def = 2, .min = 0, .max = 8},
    {.key = "task_core", .type = BENCH_CHOICE, .choices = load_pinned_cores},
    {.key = "seed", .type = BENCH_INT, .def = 1, .min = 1, .max = 1000000},
    {.key = "void_late_us", .type = BENCH_INT, .def = 500, .min = 0, .max = 1000000},
    {.key = "timeout_ms", .type = BENCH_INT, .def = 60000, .min = 100, .max = 600000},
};

static const char *const COLUMNS[] = {"operation",    "size_bytes",   "raw_cycles",
                                      "corrected_ns", "host_late_us", "outcome"};

const bench_t bench_memory = {
    .name = "memory",
    .parameters = PARAMETERS,
    .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]),
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .run = run,
};
