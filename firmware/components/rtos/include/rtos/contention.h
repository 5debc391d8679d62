/* SPDX-License-Identifier: Apache-2.0 */
/* Two tasks that a periodic task of higher priority has to do with, all on one core: "low" shares a lock with
 * it, "middle" shares nothing but the core. Without priority inheritance "middle" keeps "low" from giving the
 * lock back: the periodic task then waits for a task that it outranks and owes nothing to. */
#pragma once

#include <stdatomic.h>

#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "load/workers.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    RTOS_CONTENTION_WORKERS = 2,
    RTOS_LOW_PRIORITY = 6,
    RTOS_MIDDLE_PRIORITY = 10,
    RTOS_HOLD_US = 200,          /* low computes so long with the lock, and a tenth of it without */
    RTOS_MIDDLE_BURST_US = 5000, /* at least; beyond a tick's length, so that it is running when one comes */
};

typedef struct {
    SemaphoreHandle_t lock; /* rtos_resource_create()'s, or NULL where nothing is shared */
    BaseType_t core;
    load_workers_t *workers; /* whose `stop` ends them */
    atomic_bool over;        /* set by the periodic task when it is done */
    uint32_t holds_count;    /* how often low had the lock */
} rtos_contention_t;

/* Returns ESP_ERR_NO_MEM; rtos_contention_delete() afterwards all the same. */
esp_err_t rtos_contention_create(rtos_contention_t *contention);
void rtos_contention_delete(rtos_contention_t *contention);

/* Its tasks, for load_workers_run(), behind the periodic one. Returns how many. */
size_t rtos_contention_workers(rtos_contention_t *contention, load_worker_t *workers);

#ifdef __cplusplus
}
#endif
