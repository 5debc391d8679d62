/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/task_set.h"

#include <stdlib.h>

#include "esp_timer.h"
#include "freertos/task.h"
#include "load/plan.h"
#include "rtos/work.h"

enum {
    LEAD_US = 5000, /* from making the tasks to their first release */
    STACK_BYTES = 3072,
};

typedef struct {
    rtos_task_set_t *set;
    rtos_task_t *task;
    TaskHandle_t handle;
    esp_timer_handle_t timer;
    uint32_t random;
} member_t;

static uint32_t next_interval_us(member_t *member) {
    uint32_t period_us = member->task->period_us;
    return member->task->aperiodic ? period_us / 2 + load_random(&member->random) % (period_us + 1)
                                   : period_us;
}

static void on_release(void *context) {
    const member_t *member = context;
    xTaskNotifyGive(member->handle);
}

static bool goes_on(const rtos_task_set_t *set) {
    return !atomic_load(&set->missed) && !atomic_load(&set->timed_out) && !set->workers->stop;
}

static bool give_up(rtos_task_set_t *set) {
    atomic_store(&set->timed_out, true);
    return false;
}

/* The timer is armed anew from the absolute time: releases do not drift. */
static bool await_release(member_t *member, int64_t release_us) {
    int64_t ahead_us = release_us - esp_timer_get_time();
    if (ahead_us <= 0) {
        return true;
    }
    ulTaskNotifyTake(pdTRUE, 0);
    if (esp_timer_start_once(member->timer, (uint64_t)ahead_us) != ESP_OK) {
        return give_up(member->set);
    }
    TickType_t limit = pdMS_TO_TICKS((uint32_t)(ahead_us / 1000) + member->set->timeout_ms);
    return ulTaskNotifyTake(pdTRUE, limit) != 0 || give_up(member->set);
}

static bool do_work(const member_t *member) {
    const rtos_task_t *task = member->task;
    rtos_task_set_t *set = member->set;
    rtos_work(task->work_loops - task->locked_loops);
    if (task->locked_loops == 0) {
        return true;
    }
    if (xSemaphoreTake(set->lock, pdMS_TO_TICKS(set->timeout_ms)) != pdTRUE) {
        return give_up(set);
    }
    rtos_work(task->locked_loops);
    xSemaphoreGive(set->lock);
    return true;
}

static void note_response(member_t *member, int64_t release_us) {
    rtos_task_t *task = member->task;
    uint32_t response_us = (uint32_t)(esp_timer_get_time() - release_us);
    task->activations++;
    task->response_max_us = response_us > task->response_max_us ? response_us : task->response_max_us;
    if (!task->aperiodic && response_us > task->period_us) {
        task->missed++;
        atomic_store(&member->set->missed, true);
    }
}

static void work(void *context) {
    member_t *member = context;
    rtos_task_set_t *set = member->set;
    member->handle = xTaskGetCurrentTaskHandle();
    const int64_t end_us = set->begin_us + set->duration_us;
    for (int64_t release_us = set->begin_us; release_us < end_us && goes_on(set);
         release_us += next_interval_us(member)) {
        if (!await_release(member, release_us) || !goes_on(set) || !do_work(member)) {
            break;
        }
        note_response(member, release_us);
    }
}

static bool create_timer(member_t *member) {
    const esp_timer_create_args_t args = {.callback = on_release, .arg = member, .name = "release"};
    return esp_timer_create(&args, &member->timer) == ESP_OK;
}

static esp_err_t run_members(rtos_task_set_t *set, member_t *members, load_worker_t *workers) {
    for (size_t i = 0; i < set->count; i++) {
        rtos_task_t *task = &set->tasks[i];
        task->activations = task->missed = task->response_max_us = 0;
        members[i] = (member_t){.set = set, .task = task, .random = set->random + (uint32_t)i};
        workers[i] = (load_worker_t){
            .name = "periodic",
            .work = work,
            .context = &members[i],
            .core = set->core,
            .priority = task->priority,
            .stack_bytes = STACK_BYTES,
        };
        if (!create_timer(&members[i])) {
            return ESP_ERR_NO_MEM;
        }
    }
    atomic_store(&set->missed, false);
    atomic_store(&set->timed_out, false);
    set->begin_us = esp_timer_get_time() + LEAD_US;
    esp_err_t err = load_workers_run(set->workers, workers, set->count);
    set->end_us = esp_timer_get_time();
    return err;
}

esp_err_t rtos_task_set_run(rtos_task_set_t *set) {
    member_t *members = calloc(set->count, sizeof(*members));
    load_worker_t *workers = calloc(set->count, sizeof(*workers));
    esp_err_t err = members != NULL && workers != NULL ? run_members(set, members, workers) : ESP_ERR_NO_MEM;
    for (size_t i = 0; members != NULL && i < set->count; i++) {
        if (members[i].timer != NULL) {
            esp_timer_stop(members[i].timer);
            esp_timer_delete(members[i].timer);
        }
    }
    free(workers);
    free(members);
    if (err == ESP_OK && set->workers->stop) {
        return ESP_ERR_INVALID_STATE;
    }
    return err == ESP_OK && atomic_load(&set->timed_out) ? ESP_ERR_TIMEOUT : err;
}

uint32_t rtos_task_set_permille(const rtos_task_set_t *set, uint32_t loops_per_ms) {
    uint64_t permille = 0;
    for (size_t i = 0; i < set->count; i++) {
        const rtos_task_t *task = &set->tasks[i];
        permille += (uint64_t)task->work_loops * 1000000 * 1000 / loops_per_ms / task->period_us;
    }
    return (uint32_t)((permille + 500) / 1000);
}
