/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of a bench: started together, waited for, stopped when the host aborts the run. */
#pragma once

#include <stdatomic.h>

#include "agent/bench.h"
#include "freertos/FreeRTOS.h"
#include "freertos/event_groups.h"
#include "freertos/semphr.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LOAD_CHECK_MS = 100 }; /* how often a wait looks for an abort: rare, it runs on the board under test */

/* Choices of a core parameter, and the core that a choice means. */
extern const char *const load_cores[];
extern const char *const load_pinned_cores[]; /* without "none": a choice is the core */
BaseType_t load_core_of(int64_t choice);
/* Why a task cannot be on this core, as a sentence; NULL where it can. */
const char *load_core_conflict(BaseType_t core);

typedef struct {
    const bench_run_t *run;
    EventGroupHandle_t ended; /* a bit each */
    atomic_bool stop;
} load_workers_t;

typedef struct {
    const char *name;
    void (*work)(void *context); /* comes back when its work is done, or soon after `stop` */
    void *context;
    BaseType_t core;
    UBaseType_t priority;          /* 0: 1 */
    uint32_t stack_bytes;          /* 0: 6144 */
    uint32_t stack_free_min_bytes; /* filled in when it has ended */
    load_workers_t *group;         /* filled in when it is started */
    EventBits_t bit;
} load_worker_t;

esp_err_t load_workers_create(load_workers_t *group, const bench_run_t *run);
void load_workers_delete(load_workers_t *group);

/* Start them in this order and wait until all have ended. `workers` must last that long.
 * Returns ESP_ERR_NO_MEM, with none left running, where one could not be started. */
esp_err_t load_workers_run(load_workers_t *group, load_worker_t *workers, size_t count);

/* In a worker: true when one was counted, false when the run is being stopped. */
bool load_workers_take(const load_workers_t *group, SemaphoreHandle_t semaphore);

#ifdef __cplusplus
}
#endif
