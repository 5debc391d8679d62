/* SPDX-License-Identifier: Apache-2.0 */
/* cyclictest: how late a thread on each core wakes, as cyclictest of rt-tests measures a Linux: every thread
 * sleeps until the next moment of an absolute grid, and counts in a histogram by how much it was late.
 * docs/explain/jitter.md
 *
 * A row is a bucket of a thread's histogram that was hit, so that a run may be as long as it likes.
 *
 *   thread, core     which one
 *   latency_us       the longest that the bucket counts: exact below 512 us, within 0.4 % above
 *   loops_count      how many loops
 *   host_late_us     of a void row, how late the host under a virtual board was; else 0
 *   outcome          0 ok, 1 never done (the run broke off, or a wake did not come), 2 void
 */
#include <stdlib.h>

#include "agent/bench.h"
#include "agent/watch.h"
#include "load/workers.h"
#include "rtos/cyclic.h"
#include "rtos/round.h"
#include "trace/trace.h"

enum { THREADS = 2, STACK_BYTES = 4096 };
enum {
    COLUMN_THREAD,
    COLUMN_CORE,
    COLUMN_LATENCY,
    COLUMN_LOOPS,
    COLUMN_HOST_LATE,
    COLUMN_OUTCOME,
    COLUMNS_COUNT
};
enum { THREADS_CORE_0, THREADS_CORE_1, THREADS_ALL };

typedef struct {
    const bench_run_t *run;
    bench_samples_t *samples;
    uint32_t void_late_us;
    size_t count; /* threads */
    rtos_cyclic_t *threads[THREADS];
    rtos_cyclic_break_t limit;
    load_workers_t workers;
    uint32_t void_loops;
    size_t row_count, row; /* in all, and next */
    esp_err_t row_error;
} cyclictest_t;

/* ---- measuring ---- */

static esp_err_t run_threads(cyclictest_t *c, UBaseType_t priority) {
    static const char *const names[THREADS] = {"cyclic_0", "cyclic_1"};
    load_worker_t workers[THREADS];
    for (size_t i = 0; i < c->count; i++) {
        workers[i] = (load_worker_t){.name = names[i],
                                     .work = rtos_cyclic_run,
                                     .context = c->threads[i],
                                     .core = c->threads[i]->core,
                                     .priority = priority,
                                     .stack_bytes = STACK_BYTES};
    }
    if (c->limit.break_us != 0) {
        trace_start();
    }
    bench_watch_begin();
    bench_cpu_load_begin();
    esp_err_t err = load_workers_run(&c->workers, workers, c->count);
    bench_cpu_load_end();
    bench_watch_end(c->samples);
    trace_stop();
    for (size_t i = 0; i < c->count && err == ESP_OK; i++) {
        bench_environment_stack(c->samples, names[i], workers[i].stack_free_min_bytes);
        err = c->threads[i]->error;
    }
    return err;
}

/* ---- the rows ---- */

static void count_row(void *context, const rtos_cyclic_t *thread, const rtos_cyclic_row_t *row) {
    cyclictest_t *c = context;
    (void)thread;
    c->row_count++;
    c->void_loops += row->outcome == RTOS_OUTCOME_VOID;
}

/* As many at a time as the sample buffer takes. */
static void send_row(void *context, const rtos_cyclic_t *thread, const rtos_cyclic_row_t *row) {
    cyclictest_t *c = context;
    const size_t capacity = bench_samples_capacity(c->samples), rest = c->row_count - c->row;
    const size_t place = c->row % capacity;
    const uint32_t cells[] = {thread->index, (uint32_t)thread->core, row->latency_us,
                              row->loops,    row->host_late_us,      row->outcome};
    if (c->row_error == ESP_OK && place == 0) {
        c->row_error = c->row > 0 ? bench_samples_burst(c->samples) : ESP_OK;
        c->row_error = c->row_error == ESP_OK
                           ? bench_samples_begin(c->samples, rest < capacity ? rest : capacity, 0)
                           : c->row_error;
    }
    for (size_t column = 0; c->row_error == ESP_OK && column < COLUMNS_COUNT; column++) {
        bench_samples_set(c->samples, place, column, cells[column]);
    }
    c->row++;
}

static void report(const cyclictest_t *c) {
    uint32_t unjudged = 0, grid_error_us = 0;
    for (size_t i = 0; i < c->count; i++) {
        const rtos_wake_t *wake = &c->threads[i]->wake;
        unjudged += c->threads[i]->unjudged;
        grid_error_us = wake->grid_error_us > grid_error_us ? wake->grid_error_us : grid_error_us;
    }
    bench_environment_int(c->samples, "grid_error_us", grid_error_us);
    bench_environment_int(c->samples, "void_loops_count", c->void_loops);
    bench_environment_int(c->samples, "unjudged_loops_count", unjudged);
    bench_environment_int(c->samples, "broken", c->limit.broken);
    if (c->limit.broken) {
        bench_environment_int(c->samples, "break_thread", c->limit.thread);
        bench_environment_int(c->samples, "break_loop", c->limit.loop);
        bench_environment_int(c->samples, "break_latency_us", c->limit.late_us);
        trace_environment(c->samples);
    }
}

static esp_err_t make_rows(cyclictest_t *c) {
    for (size_t i = 0; i < c->count; i++) {
        rtos_cyclic_judge(c->threads[i], c->void_late_us);
        rtos_cyclic_each_row(c->threads[i], count_row, c);
    }
    report(c);
    for (size_t i = 0; i < c->count; i++) {
        rtos_cyclic_each_row(c->threads[i], send_row, c);
    }
    return c->row_error;
}

/* ---- set-up and parameters ---- */

static uint32_t number(const cyclictest_t *c, const char *key) {
    return (uint32_t)bench_param_int(c->run, key);
}

static esp_err_t add_cyclic(cyclictest_t *c, BaseType_t core) {
    rtos_cyclic_t *thread = calloc(1, sizeof(*thread));
    if (thread == NULL) {
        return ESP_ERR_NO_MEM;
    }
    thread->index = (uint32_t)c->count;
    thread->core = core;
    thread->loops = number(c, "loops");
    thread->warmup_loops = number(c, "warmup");
    thread->limit = &c->limit;
    thread->wake = (rtos_wake_t){
        .source = (rtos_wake_source_t)bench_param_int(c->run, "source"),
        .period_us = number(c, "interval_us") + thread->index * number(c, "distance_us"),
        .timeout_us = number(c, "timeout_ms") * 1000,
        .stop = &c->workers.stop,
    };
    c->threads[c->count++] = thread;
    return ESP_OK;
}

static esp_err_t set_up(cyclictest_t *c) {
    const int64_t choice = bench_param_int(c->run, "threads");
    c->void_late_us = number(c, "void_late_us");
    c->limit.break_us = number(c, "break_us");
    c->limit.stop = &c->workers.stop;
    esp_err_t err = load_workers_create(&c->workers, c->run);
    if (err == ESP_OK) {
        err = add_cyclic(c, choice == THREADS_CORE_1 ? 1 : 0);
    }
    return err == ESP_OK && choice == THREADS_ALL ? add_cyclic(c, 1) : err;
}

static esp_err_t check(const cyclictest_t *c) {
    const char *problem = NULL;
    for (size_t i = 0; i < c->count && problem == NULL; i++) {
        problem = load_core_conflict(c->threads[i]->core);
        problem = problem != NULL
                      ? problem
                      : rtos_wake_conflict(c->threads[i]->wake.source, c->threads[i]->wake.period_us);
    }
    return problem == NULL
               ? ESP_OK
               : bench_fail(c->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_ARG, "%s", problem);
}

static esp_err_t run_case(cyclictest_t *c) {
    esp_err_t err = set_up(c);
    err = err != ESP_OK ? err : check(c);
    err = err != ESP_OK ? err : run_threads(c, number(c, "priority"));
    if (err == ESP_ERR_NOT_SUPPORTED || err == ESP_ERR_NOT_FOUND) {
        return bench_fail(c->samples, BENCH_OWNER_CONFIGURATION, err,
                          "source=%s: this board has no such timer free", bench_param_text(c->run, "source"));
    }
    if (err == ESP_OK && bench_aborted(c->run)) {
        err = ESP_ERR_INVALID_STATE;
    }
    return err != ESP_OK ? err : make_rows(c);
}

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    cyclictest_t c = {.run = bench_run, .samples = samples, .limit = {.taken = ATOMIC_FLAG_INIT}};
    esp_err_t err = run_case(&c);
    for (size_t i = 0; i < c.count; i++) {
        free(c.threads[i]);
    }
    load_workers_delete(&c.workers);
    return err;
}

static const char *const WHICH_THREADS[] = {"core0", "core1", "all", NULL};

static const bench_parameter_t PARAMETERS[] = {
    {.key = "threads", .type = BENCH_CHOICE, .choices = WHICH_THREADS},
    {.key = "source", .type = BENCH_CHOICE, .choices = rtos_wake_sources, .def = RTOS_WAKE_ESP_TIMER},
    {.key = "interval_us", .type = BENCH_INT, .def = 1000, .min = 200, .max = 100000},
    {.key = "distance_us", .type = BENCH_INT, .def = 500, .min = 0, .max = 100000},
    {.key = "priority", .type = BENCH_INT, .def = 20, .min = 1, .max = configMAX_PRIORITIES - 1},
    {.key = "loops", .type = BENCH_INT, .def = 1000, .min = 1, .max = 10000000},
    {.key = "warmup", .type = BENCH_INT, .def = 10, .min = 0, .max = 1000},
    {.key = "break_us", .type = BENCH_INT, .def = 0, .min = 0, .max = 1000000},
    {.key = "void_late_us", .type = BENCH_INT, .def = 500, .min = 0, .max = 1000000},
    {.key = "timeout_ms", .type = BENCH_INT, .def = 1000, .min = 100, .max = 60000},
};

static const char *const COLUMNS[] = {"thread",      "core",         "latency_us",
                                      "loops_count", "host_late_us", "outcome"};

const bench_t bench_cyclictest = {
    .name = "cyclictest",
    .parameters = PARAMETERS,
    .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]),
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .run = run,
};
