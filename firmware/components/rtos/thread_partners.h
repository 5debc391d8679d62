/* SPDX-License-Identifier: Apache-2.0 */
/* The partners of a Thread-Metric test: who does what, and who counts. */
#pragma once

#include <stdatomic.h>

#include "freertos/FreeRTOS.h"
#include "freertos/queue.h"
#include "freertos/semphr.h"
#include "freertos/task.h"
#include "load/workers.h"
#include "rtos/thread_tests.h"

enum { PARTNERS_MAX = 5, BASIC_CELLS = 1024, MESSAGE_WORDS = 4, BLOCK_BYTES = 128 };

typedef struct partners partners_t;

typedef struct {
    partners_t *partners;
    size_t index;
} partner_t;

/* One test under way. Partners run on one core and below the clock's priority, so what it reads stands still.
 */
struct partners {
    rtos_test_t test;
    size_t count; /* tasks */
    TickType_t timeout;
    TaskHandle_t clock;        /* the task that ends them: it is told when the first of them runs */
    volatile int64_t begin_us; /* when that was */
    atomic_bool stop;
    atomic_bool timed_out;
    volatile uint32_t done[PARTNERS_MAX]; /* counted by each task */
    volatile uint32_t interrupts;         /* counted by the handler */
    TaskHandle_t volatile tasks[PARTNERS_MAX];
    partner_t partner[PARTNERS_MAX];
    QueueHandle_t queue;
    SemaphoreHandle_t semaphore;
    volatile uint32_t cells[BASIC_CELLS];
};

typedef struct {
    size_t tasks;
    void (*work)(partner_t *partner);
    bool interrupt; /* its handler counts too */
    bool rising;    /* partner 0 has the lowest priority; otherwise all have the same */
    bool sum;       /* the result is the sum of the tasks' counts, otherwise the last counter's */
} partners_kind_t;

const partners_kind_t *partners_kind(rtos_test_t test);

/* In the software interrupt. */
bool partners_on_interrupt(void *partners);

/* A partner's task, from begin to end. */
void partners_work(void *partner);
