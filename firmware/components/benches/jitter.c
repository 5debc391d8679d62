/* SPDX-License-Identifier: Apache-2.0 */
/* jitter: how late a periodic task wakes, how far its periods are from what was asked for, and how long it
 * then waits for what it shares with tasks below it. docs/explain/jitter.md
 *
 *   planned_us              when it should have woken, since t0, on a grid that no late wake moves
 *   woke_us, acquired_us    when it ran, and when it had the lock (woke_us where there is none)
 *   interval_raw_cycles, interval_corrected_ns, interval_us
 *                           from right after the wake before to this one, on three clocks (rtos/clocks.h)
 *   deviation_us            |interval_us - period_us|
 *   isr_us                  when the interrupt of source=gptimer ran, since t0; else 0
 *   start_core, end_core    where the interval began and ended
 *   host_late_us            how late the host under a virtual board was at worst meanwhile; 0 on a chip
 *   outcome                 0 ok, 1 no wake or no lock in time, 2 void: the host was late
 */
#include <stdlib.h>

#include "agent/bench.h"
#include "agent/watch.h"
#include "esp_timer.h"
#include "load/bursts.h"
#include "load/workers.h"
#include "rtos/periodic.h"
#include "trace/trace.h"

enum { PRIORITY = 20, STACK_BYTES = 4096 };

typedef struct {
    const bench_run_t *run;
    bench_samples_t *samples;
    bool shares;
    size_t capacity, rows_left;
    uint32_t stack_free_min_bytes;
    load_workers_t workers;
    rtos_periodic_t periodic;
} jitter_t;

/* ---- a burst ---- */

static void report(const jitter_t *j) {
    bench_environment_int(j->samples, "t0_us", j->periodic.t0_us);
    bench_environment_int(j->samples, "grid_error_us", j->periodic.wake.grid_error_us);
    bench_environment_stack(j->samples, "jitter", j->stack_free_min_bytes);
    if (j->shares) {
        bench_environment_int(j->samples, "low_holds_count", j->periodic.contention.holds_count);
    }
    rtos_load_environment(&j->periodic.load);
}

/* Once, before the first burst's tasks are started. */
static esp_err_t begin_run(jitter_t *j) {
    esp_err_t err = rtos_clocks_calibrate(&j->periodic.clocks, j->samples);
    j->periodic.t0_us = esp_timer_get_time();
    if (j->periodic.trace != RTOS_TRACE_OFF) {
        trace_start();
    }
    return err;
}

static esp_err_t prepare(jitter_t *j, size_t rows, size_t warmup_rows) {
    rtos_periodic_t *periodic = &j->periodic;
    esp_err_t err = bench_samples_begin(j->samples, rows, warmup_rows);
    if (err == ESP_OK && periodic->t0_us == 0) {
        err = begin_run(j);
    }
    for (size_t row = 0; row < rows; row++) {
        periodic->moments[row] = (rtos_moments_t){0};
    }
    periodic->rows = rows;
    periodic->warmup_rows = warmup_rows;
    j->rows_left -= rows;
    periodic->last = j->rows_left == 0;
    return err;
}

static esp_err_t run_tasks(jitter_t *j) {
    load_worker_t workers[1 + RTOS_LOAD_WORKERS + RTOS_CONTENTION_WORKERS] = {
        {.name = "jitter",
         .work = rtos_periodic_run,
         .context = &j->periodic,
         .core = j->periodic.core,
         .priority = PRIORITY,
         .stack_bytes = STACK_BYTES},
    };
    size_t count = 1;
    count += rtos_load_workers(&j->periodic.load, &workers[count]);
    count += rtos_contention_workers(&j->periodic.contention, &workers[count]);
    bench_watch_begin();
    esp_err_t err = load_workers_run(&j->workers, workers, count);
    bench_watch_end(j->samples);
    j->stack_free_min_bytes = workers[0].stack_free_min_bytes;
    return err != ESP_OK ? err : j->periodic.error;
}

static esp_err_t measure_burst(void *context, size_t rows, size_t warmup_rows) {
    jitter_t *j = context;
    esp_err_t err = prepare(j, rows, warmup_rows);
    err = err != ESP_OK ? err : run_tasks(j);
    if (err == ESP_ERR_NOT_SUPPORTED || err == ESP_ERR_NOT_FOUND) {
        return bench_fail(j->samples, BENCH_OWNER_CONFIGURATION, err,
                          "source=%s: this board has no such timer free", bench_param_text(j->run, "source"));
    }
    if (err != ESP_OK) {
        return err;
    }
    rtos_periodic_judge(&j->periodic);
    report(j);
    return bench_aborted(j->run) ? ESP_ERR_INVALID_STATE : ESP_OK;
}

/* ---- set-up and parameters ---- */

static void set_up(jitter_t *j) {
    const BaseType_t core = load_core_of(bench_param_int(j->run, "task_core"));
    j->shares = bench_param_int(j->run, "resource") != 0;
    j->periodic = (rtos_periodic_t){
        .samples = j->samples,
        .core = core,
        .trace = (rtos_trace_t)bench_param_int(j->run, "trace"),
        .break_us = (uint32_t)bench_param_int(j->run, "break_us"),
        .void_late_us = (uint32_t)bench_param_int(j->run, "void_late_us"),
        .wake = {.source = (rtos_wake_source_t)bench_param_int(j->run, "source"),
                 .period_us = (uint32_t)bench_param_int(j->run, "period_us"),
                 .timeout_us = (uint32_t)bench_param_int(j->run, "timeout_ms") * 1000,
                 .stop = &j->workers.stop},
        .load = {.kind = (rtos_load_kind_t)bench_param_int(j->run, "load"),
                 .run = j->run,
                 .samples = j->samples,
                 .task_core = core,
                 .task_priority = PRIORITY,
                 .workers = &j->workers},
        .contention = {.core = core, .workers = &j->workers},
    };
}

/* Why it cannot be measured, as a sentence; NULL where it can. */
static const char *conflict(const jitter_t *j, int64_t rows) {
    const rtos_periodic_t *periodic = &j->periodic;
    const char *problem = load_core_conflict(periodic->core);
    problem = problem != NULL ? problem : rtos_wake_conflict(periodic->wake.source, periodic->wake.period_us);
    problem = problem != NULL ? problem : rtos_load_conflict(&periodic->load);
    if (problem == NULL && j->shares && periodic->core == tskNO_AFFINITY) {
        problem = "resource=mutex needs all its tasks on one core: task_core=0 or 1";
    }
    if (problem == NULL && periodic->trace == RTOS_TRACE_OUTLIER && periodic->break_us == 0) {
        problem = "trace=outlier freezes at what is later than break_us, which is 0";
    }
    if (problem == NULL && rows * periodic->wake.period_us > (int64_t)UINT32_MAX / 10 * 9) {
        problem = "count * period_us is more than 32-bit microseconds hold";
    }
    return problem;
}

static esp_err_t check(const jitter_t *j, int64_t rows, int64_t warmup) {
    const uint32_t tick_hz = (uint32_t)atoi(bench_param_text(j->run, "tick_hz"));
    if (tick_hz != configTICK_RATE_HZ) {
        return bench_fail(
            j->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_ARG,
            "tick_hz=%u, and this image has CONFIG_FREERTOS_HZ=%u: flash the variant of that tick",
            (unsigned)tick_hz, (unsigned)configTICK_RATE_HZ);
    }
    const char *problem = conflict(j, rows);
    if (problem == NULL && warmup > (int64_t)j->capacity) {
        problem = "warmup does not fit the first burst";
    }
    return problem == NULL
               ? ESP_OK
               : bench_fail(j->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_ARG, "%s", problem);
}

static esp_err_t allocate(jitter_t *j) {
    j->periodic.moments = calloc(j->capacity, sizeof(*j->periodic.moments));
    esp_err_t err = j->periodic.moments != NULL ? ESP_OK : ESP_ERR_NO_MEM;
    err = err != ESP_OK ? err : load_workers_create(&j->workers, j->run);
    if (err == ESP_OK && j->shares) {
        err = rtos_contention_create(&j->periodic.contention);
    }
    return err != ESP_OK ? err : rtos_load_open(&j->periodic.load);
}

static void clean_up(jitter_t *j) {
    rtos_load_close(&j->periodic.load);
    rtos_contention_delete(&j->periodic.contention);
    load_workers_delete(&j->workers);
    free(j->periodic.moments);
    free(j);
}

static esp_err_t run_case(jitter_t *j) {
    const int64_t warmup = bench_param_int(j->run, "warmup"),
                  rows = bench_param_int(j->run, "count") + warmup;
    j->capacity = load_burst_capacity(j->samples, rows);
    j->rows_left = (size_t)rows;
    esp_err_t err = check(j, rows, warmup);
    err = err != ESP_OK ? err : allocate(j);
    if (err != ESP_OK) {
        return err;
    }
    err = load_bursts_run(j->samples, j->capacity, (size_t)rows, (size_t)warmup, measure_burst, j);
    trace_stop();
    if (j->periodic.frozen) {
        trace_environment(j->samples);
    }
    return err;
}

static esp_err_t run(const bench_run_t *bench_run, bench_samples_t *samples) {
    jitter_t *j = calloc(1, sizeof(*j));
    if (j == NULL) {
        return ESP_ERR_NO_MEM;
    }
    j->run = bench_run;
    j->samples = samples;
    set_up(j);
    esp_err_t err = run_case(j);
    clean_up(j);
    return err;
}

static const char *const TICKS[] = {"1000", "100", NULL};
static const char *const RESOURCES[] = {"none", "mutex", NULL};

static const bench_parameter_t PARAMETERS[] = {
    {.key = "source", .type = BENCH_CHOICE, .choices = rtos_wake_sources},
    {.key = "period_us", .type = BENCH_INT, .def = 10000, .min = 1000, .max = 100000},
    {.key = "count", .type = BENCH_INT, .def = 100, .min = 1, .max = 1000000},
    {.key = "warmup", .type = BENCH_INT, .def = 10, .min = 0, .max = 1000},
    {.key = "load", .type = BENCH_CHOICE, .choices = rtos_loads},
    {.key = "task_core", .type = BENCH_CHOICE, .choices = load_cores, .def = 1}, /* core 0 */
    {.key = "tick_hz", .type = BENCH_CHOICE, .choices = TICKS},
    {.key = "resource", .type = BENCH_CHOICE, .choices = RESOURCES},
    {.key = "trace", .type = BENCH_CHOICE, .choices = rtos_traces},
    {.key = "break_us", .type = BENCH_INT, .def = 0, .min = 0, .max = 1000000},
    {.key = "void_late_us", .type = BENCH_INT, .def = 500, .min = 0, .max = 1000000},
    {.key = "timeout_ms", .type = BENCH_INT, .def = 1000, .min = 100, .max = 60000},
};

static const char *const COLUMNS[] = {
    "planned_us",   "woke_us",      "acquired_us", "interval_raw_cycles", "interval_corrected_ns",
    "interval_us",  "deviation_us", "isr_us",      "start_core",          "end_core",
    "host_late_us", "outcome"};

const bench_t bench_jitter = {
    .name = "jitter",
    .parameters = PARAMETERS,
    .parameter_count = sizeof(PARAMETERS) / sizeof(PARAMETERS[0]),
    .columns = COLUMNS,
    .column_count = sizeof(COLUMNS) / sizeof(COLUMNS[0]),
    .run = run,
};
