/* SPDX-License-Identifier: Apache-2.0 */
/* A producer task that puts rows into a ring as planned, and a consumer task that takes them out. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "agent/bench.h"
#include "load/pacer.h"
#include "load/plan.h"
#include "load/ring.h"
#include "load/workers.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    /* Set these before load_pipeline_create(). */
    const char *consumer_name;              /* of the task */
    bool (*consume)(void *context);         /* handle the oldest row of the ring; false when there is none */
    void (*overrun)(void *context, size_t); /* this row found the ring full */
    void *context;

    /* Read from the run's parameters. */
    BaseType_t producer_core, consumer_core;
    uint32_t hold_us; /* how long the producer keeps the mutex for each row */

    load_plan_t plan;
    load_ring_t ring;
    load_workers_t workers;
    load_pacer_t pacer;
    atomic_bool produced; /* nothing will be put into the ring any more */
    uint32_t consumer_stack_free_min_bytes;
} load_pipeline_t;

/* Read the parameters schedule, interval_us and seed; the tasks go where there is room, and hold nothing. */
void load_pipeline_read_plan(load_pipeline_t *pipeline, const bench_run_t *run);

/* Those, and hold_us, producer_core and `consumer_core_key`. */
void load_pipeline_read(load_pipeline_t *pipeline, const bench_run_t *run, const char *consumer_core_key);

/* Why this many rows cannot be run, as a sentence; NULL where they can. */
const char *load_pipeline_conflict(const load_pipeline_t *pipeline, int64_t rows);

/* `capacity` is the longest burst. Returns ESP_ERR_NO_MEM; load_pipeline_delete() afterwards all the same. */
esp_err_t load_pipeline_create(load_pipeline_t *pipeline, const bench_run_t *run, size_t capacity);
void load_pipeline_delete(load_pipeline_t *pipeline);

/* Plan a burst of `rows` rows and run it, until all are consumed or the host aborts. Returns ESP_ERR_NO_MEM.
 */
esp_err_t load_pipeline_run(load_pipeline_t *pipeline, size_t rows);

#ifdef __cplusplus
}
#endif
