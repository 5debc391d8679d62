/* SPDX-License-Identifier: Apache-2.0 */
#include "load/pipeline.h"

#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

#define LEAD_US 50000 /* from a burst's start to its first plan, so that the tasks are waiting by then */

void load_pipeline_read_plan(load_pipeline_t *pipeline, const bench_run_t *run) {
    pipeline->producer_core = pipeline->consumer_core = tskNO_AFFINITY;
    pipeline->plan.schedule = (load_schedule_t)bench_param_int(run, "schedule");
    pipeline->plan.interval_us = (uint32_t)bench_param_int(run, "interval_us");
    pipeline->plan.random = (uint32_t)bench_param_int(run, "seed");
}

void load_pipeline_read(load_pipeline_t *pipeline, const bench_run_t *run, const char *consumer_core_key) {
    load_pipeline_read_plan(pipeline, run);
    pipeline->producer_core = load_core_of(bench_param_int(run, "producer_core"));
    pipeline->consumer_core = load_core_of(bench_param_int(run, consumer_core_key));
    pipeline->hold_us = (uint32_t)bench_param_int(run, "hold_us");
}

const char *load_pipeline_conflict(const load_pipeline_t *pipeline, int64_t rows) {
    const char *problem = load_core_conflict(pipeline->producer_core);
    problem = problem != NULL ? problem : load_core_conflict(pipeline->consumer_core);
    return problem != NULL ? problem : load_plan_conflict(&pipeline->plan, pipeline->hold_us, rows);
}

esp_err_t load_pipeline_create(load_pipeline_t *pipeline, const bench_run_t *run, size_t capacity) {
    pipeline->pacer.plan = &pipeline->plan;
    pipeline->pacer.workers = &pipeline->workers;
    const esp_err_t errors[] = {
        load_plan_create(&pipeline->plan, capacity),
        load_ring_create(&pipeline->ring, capacity),
        load_workers_create(&pipeline->workers, run),
        load_pacer_create(&pipeline->pacer, capacity),
    };
    esp_err_t err = ESP_OK;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        err = err != ESP_OK ? err : errors[i];
    }
    return err;
}

void load_pipeline_delete(load_pipeline_t *pipeline) {
    load_pacer_delete(&pipeline->pacer);
    load_workers_delete(&pipeline->workers);
    load_ring_delete(&pipeline->ring);
    load_plan_delete(&pipeline->plan);
}

static void produce(void *context, size_t row) {
    load_pipeline_t *pipeline = context;
    if (!load_ring_push(&pipeline->ring, row, pipeline->hold_us)) {
        pipeline->overrun(pipeline->context, row);
    }
}

static void run_producer(void *context) {
    load_pipeline_t *pipeline = context;
    load_pacer_run(&pipeline->pacer, produce, pipeline);
    pipeline->produced = true;
    load_ring_end(&pipeline->ring);
}

static void run_consumer(void *context) {
    load_pipeline_t *pipeline = context;
    while (load_workers_take(&pipeline->workers, pipeline->ring.pending) &&
           (pipeline->consume(pipeline->context) || !pipeline->produced)) {
    }
}

esp_err_t load_pipeline_run(load_pipeline_t *pipeline, size_t rows) {
    load_worker_t workers[] = {
        {.name = pipeline->consumer_name,
         .work = run_consumer,
         .context = pipeline,
         .core = pipeline->consumer_core},
        {.name = "producer", .work = run_producer, .context = pipeline, .core = pipeline->producer_core},
    };
    load_plan_t *plan = &pipeline->plan;
    plan->row_count = rows;
    pipeline->produced = false; /* the counts are zero: each burst takes as many as it gives */
    load_ring_clear(&pipeline->ring);
    load_plan_make(plan, load_now_us(plan) + LEAD_US);
    esp_err_t err = load_workers_run(&pipeline->workers, workers, sizeof(workers) / sizeof(workers[0]));
    pipeline->consumer_stack_free_min_bytes = workers[0].stack_free_min_bytes;
    return err;
}
