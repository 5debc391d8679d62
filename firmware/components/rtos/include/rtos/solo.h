/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds that one task plays alone: what a call, or an interrupt of its own core, takes. */
#pragma once

#include <stdatomic.h>

#include "agent/bench.h"
#include "load/workers.h"
#include "rtos/round.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All of it in the task that plays, which stays on one core. */
typedef struct {
    esp_err_t (*prepare)(void *context);              /* NULL: nothing to prepare */
    void (*play)(void *context, rtos_round_t *round); /* sets begin, end and done */
    void (*clean_up)(void *context);                  /* NULL: nothing; not called where prepare() failed */
} rtos_solo_kind_t;

typedef struct {
    /* Set these before rtos_solo_run(). */
    const bench_run_t *run;
    const rtos_solo_kind_t *kind;
    void *kind_context;
    BaseType_t core;
    UBaseType_t priority;
    rtos_measured_t measured;
    void *context;

    uint32_t stack_free_min_bytes; /* filled in */

    load_workers_t workers;
    size_t rows;
    esp_err_t err;
} rtos_solo_t;

/* Play `rows` rounds, or fewer where the host aborts. From run()'s own task. Returns ESP_ERR_NO_MEM, or what
 * prepare() did. */
esp_err_t rtos_solo_run(rtos_solo_t *solo, size_t rows);

/* From raising a software interrupt to its handler. The context is an rtos_raise_t. */
typedef struct {
    atomic_bool handled;
    rtos_stamp_t handled_at; /* written by the handler before `handled` */
} rtos_raise_t;

extern const rtos_solo_kind_t rtos_raise;

/* An uncontended critical section: entered and left. The context is a portMUX_TYPE. */
extern const rtos_solo_kind_t rtos_critical;

/* A block from the heap: allocated and freed. The context is its size_t, in bytes. */
extern const rtos_solo_kind_t rtos_allocate;

#ifdef __cplusplus
}
#endif
