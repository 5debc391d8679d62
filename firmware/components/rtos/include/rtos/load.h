/* SPDX-License-Identifier: Apache-2.0 */
/* What runs beside a measured task: hogs of the processor, traffic of the network, the flash or the PSRAM.
 *
 *   none        nothing
 *   same_core   a hog below the measured task, on its core: each wake preempts it
 *   other_core  a hog on the other core: what the cores share, caches and bus
 *   both        one on each
 *   migrate     two hogs above the measured task, one a core, of which one runs: it pushes the task to the
 *               other core, and the task, once awake, lets the other one run
 *   network     a task publishes 200 messages a second of 1 KB at QoS 0
 *   flash       a task erases and writes a sector of the partition "scratch" ten times a second; meanwhile
 *               the cache of the flash is off, on both cores
 *   psram       a task copies PSRAM to PSRAM
 *
 * The tasks of the last three are on the other core than the measured task, where there is one. A hog
 * computes for 87 of 97 ms: the idle tasks, and what is below it, have the rest.
 */
#pragma once

#include <stdatomic.h>

#include "agent/bench.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "load/workers.h"
#include "mqtt_link/link.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    RTOS_LOAD_NONE,
    RTOS_LOAD_SAME_CORE,
    RTOS_LOAD_OTHER_CORE,
    RTOS_LOAD_BOTH,
    RTOS_LOAD_MIGRATE,
    RTOS_LOAD_NETWORK,
    RTOS_LOAD_FLASH,
    RTOS_LOAD_PSRAM,
} rtos_load_kind_t;

/* Choices of a parameter `load`, in the order of rtos_load_kind_t. */
extern const char *const rtos_loads[];

enum { RTOS_LOAD_WORKERS = 2 };

typedef struct rtos_load rtos_load_t;

typedef struct {
    rtos_load_t *load;
    BaseType_t core;
    TaskHandle_t volatile task; /* known once it has begun */
    uint64_t rounds_count;      /* a host does 2^32 within a minute */
} rtos_hog_t;

struct rtos_load {
    /* Set these before rtos_load_open(). */
    rtos_load_kind_t kind;
    const bench_run_t *run;
    bench_samples_t *samples;
    BaseType_t task_core;      /* of the measured task, or tskNO_AFFINITY */
    UBaseType_t task_priority; /* of the measured task */
    load_workers_t *workers;   /* whose `stop` ends it */

    atomic_bool over; /* the measured task is done */
    atomic_bool migrating;
    rtos_hog_t hogs[RTOS_LOAD_WORKERS];
    mqtt_link_t link;
    uint8_t *memory; /* a message, a sector, or the PSRAM's block */
    uint32_t done_count, failed_count;
};

/* Why it cannot be there, as a sentence; NULL where it can. */
const char *rtos_load_conflict(const rtos_load_t *load);

/* Make ready what it needs: a connection, a partition, memory. From run()'s own task, as is
 * rtos_load_close(), which is called afterwards all the same. Returns what bench_fail() was told where
 * something is not there. */
esp_err_t rtos_load_open(rtos_load_t *load);
void rtos_load_close(rtos_load_t *load);

/* Its tasks, for load_workers_run(), behind the measured one. Returns how many: up to RTOS_LOAD_WORKERS. */
size_t rtos_load_workers(rtos_load_t *load, load_worker_t *workers);

/* By the measured task: before the first wake, after each, and when it is done. */
void rtos_load_begin(rtos_load_t *load);
void rtos_load_after_wake(rtos_load_t *load);
void rtos_load_end(rtos_load_t *load);

/* Add to the end line what it did: load_hog_rounds_count, load_messages_count, load_messages_failed_count,
 * load_sectors_count, load_sectors_failed_count, load_copied_kbytes. Since rtos_load_open(). */
void rtos_load_environment(const rtos_load_t *load);

/* Compute for so long: what a hog does, and what stands for work. */
void rtos_compute_us(uint32_t duration_us);

#ifdef __cplusplus
}
#endif
