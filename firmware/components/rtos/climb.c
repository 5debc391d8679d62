/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/climb.h"

#include "agent/watch.h"

enum { REPEATS_MAX = 5 }; /* of a step */

static uint32_t larger(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* Measure a step, again while a miss is void. `own` says of it what all its tasks have in common. */
static esp_err_t measure_step(rtos_climb_t *climb, size_t step, rtos_climb_row_t *own) {
    rtos_task_set_t *set = &climb->set;
    *own = (rtos_climb_row_t){.ramp = own->ramp, .step = (uint32_t)step + 1};
    rtos_ramp_make(&climb->ramp, step, set);
    own->asked_permille = rtos_task_set_permille(set, climb->ramp.loops_per_ms);
    esp_err_t err = ESP_OK;
    for (;; own->repeats++) {
        set->random = climb->seed + own->step * RTOS_TASK_SET_MAX;
        err = rtos_task_set_run(set);
        own->host_late_us = bench_watch_late_us(set->core, set->begin_us, set->end_us);
        bool late = climb->void_late_us > 0 && own->host_late_us >= climb->void_late_us;
        bool missed = atomic_load(&set->missed);
        own->outcome = !missed ? RTOS_CLIMB_OK : (late ? RTOS_CLIMB_VOID : RTOS_CLIMB_MISSED);
        if (err != ESP_OK || own->outcome != RTOS_CLIMB_VOID || own->repeats == REPEATS_MAX) {
            return err;
        }
    }
}

static void keep_step(rtos_climb_t *climb, const rtos_climb_row_t *own) {
    for (size_t i = 0; i < climb->set.count; i++) {
        const rtos_task_t *task = &climb->set.tasks[i];
        rtos_climb_row_t row = *own;
        row.task = (uint32_t)i + 1;
        row.period_us = task->period_us;
        row.work_loops = task->work_loops;
        row.activations = task->activations;
        row.missed = task->missed;
        row.response_max_us = task->response_max_us;
        row.outcome = own->outcome == RTOS_CLIMB_MISSED && task->missed == 0 ? RTOS_CLIMB_OK : own->outcome;
        climb->rows[climb->row_count++] = row;
    }
}

static void add_step(rtos_climb_row_t *ramp, const rtos_task_set_t *set, const rtos_climb_row_t *own) {
    for (size_t i = 0; i < set->count; i++) {
        ramp->activations += set->tasks[i].activations;
        ramp->missed += set->tasks[i].missed;
        ramp->response_max_us = larger(ramp->response_max_us, set->tasks[i].response_max_us);
    }
    ramp->step = own->step;
    ramp->asked_permille = own->asked_permille;
    ramp->repeats += own->repeats;
    ramp->host_late_us = larger(ramp->host_late_us, own->host_late_us);
    if (own->outcome == RTOS_CLIMB_OK) {
        ramp->sustained_permille = own->asked_permille;
        ramp->sustained_steps = own->step;
    }
    ramp->outcome = own->outcome == RTOS_CLIMB_VOID ? RTOS_CLIMB_VOID : RTOS_CLIMB_OK;
}

size_t rtos_climb_rows_max(const rtos_ramp_t *ramp) {
    return rtos_ramp_steps(ramp) * rtos_ramp_tasks(ramp) + 1;
}

esp_err_t rtos_climb(rtos_climb_t *climb, uint32_t number) {
    rtos_climb_row_t ramp = {.ramp = number}, own = {.ramp = number};
    climb->row_count = 0;
    for (size_t step = 0; step < rtos_ramp_steps(&climb->ramp) && own.outcome == RTOS_CLIMB_OK; step++) {
        esp_err_t err = measure_step(climb, step, &own);
        if (err != ESP_OK) {
            return err;
        }
        keep_step(climb, &own);
        add_step(&ramp, &climb->set, &own);
    }
    climb->rows[climb->row_count++] = ramp;
    return ESP_OK;
}
