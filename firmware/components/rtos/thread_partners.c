/* SPDX-License-Identifier: Apache-2.0 */
#include "thread_partners.h"

#include "esp_heap_caps.h"
#include "esp_timer.h"
#include "rtos/interrupt.h"

static bool goes_on(const partner_t *partner) {
    return !atomic_load_explicit(&partner->partners->stop, memory_order_relaxed);
}

static void count_one(partner_t *partner) {
    partner->partners->done[partner->index]++;
}

/* Until a partner, the interrupt, or at the end the clock resumes it. */
static void suspend_self(void) {
    vTaskSuspend(NULL);
}

static void give_up(partner_t *partner) {
    atomic_store(&partner->partners->timed_out, true);
}

/* The original's sum and exclusive or over 1024 words; no call of the kernel. */
static void compute(partner_t *partner) {
    partners_t *p = partner->partners;
    while (goes_on(partner)) {
        for (size_t i = 0; i < BASIC_CELLS; i++) {
            p->cells[i] = (p->cells[i] + p->done[0]) ^ p->cells[i];
        }
        count_one(partner);
    }
}

static void yield_in_turn(partner_t *partner) {
    while (goes_on(partner)) {
        taskYIELD();
        count_one(partner);
    }
}

/* Each resumes the next, which has a higher priority and runs at once; all but the lowest suspend themselves.
 */
static void resume_next(partner_t *partner) {
    partners_t *p = partner->partners;
    bool lowest = partner->index == 0, highest = partner->index + 1 == p->count;
    if (!lowest && goes_on(partner)) {
        suspend_self();
    }
    while (goes_on(partner)) {
        TaskHandle_t next = highest ? NULL : p->tasks[partner->index + 1];
        if (next != NULL) {
            vTaskResume(next);
        }
        count_one(partner);
        if (!lowest) {
            suspend_self();
        }
    }
}

static void interrupt_itself(partner_t *partner) {
    partners_t *p = partner->partners;
    while (goes_on(partner)) {
        rtos_interrupt_raise();
        if (xSemaphoreTake(p->semaphore, p->timeout) != pdTRUE) {
            give_up(partner);
            return;
        }
        count_one(partner);
    }
}

/* The handler resumes partner 1, which preempts partner 0 on the way out of the interrupt. */
static void be_preempted(partner_t *partner) {
    while (goes_on(partner)) {
        if (partner->index == 0) {
            rtos_interrupt_raise();
            count_one(partner);
        } else {
            suspend_self();
            if (goes_on(partner)) {
                count_one(partner);
            }
        }
    }
}

bool partners_on_interrupt(void *context) {
    partners_t *p = context;
    BaseType_t woken = pdFALSE;
    p->interrupts++;
    if (p->test == RTOS_TEST_INTERRUPT) {
        xSemaphoreGiveFromISR(p->semaphore, &woken);
    } else if (p->tasks[1] != NULL) {
        woken = xTaskResumeFromISR(p->tasks[1]);
    }
    return woken == pdTRUE;
}

static void pass_message(partner_t *partner) {
    partners_t *p = partner->partners;
    uint32_t sent[MESSAGE_WORDS] = {0x11112222, 0x33334444, 0x55556666, 0x77778888}, received[MESSAGE_WORDS];
    while (goes_on(partner)) {
        if (xQueueSend(p->queue, sent, p->timeout) != pdTRUE ||
            xQueueReceive(p->queue, received, p->timeout) != pdTRUE ||
            received[MESSAGE_WORDS - 1] != sent[MESSAGE_WORDS - 1]) {
            give_up(partner);
            return;
        }
        sent[MESSAGE_WORDS - 1]++;
        count_one(partner);
    }
}

static void take_and_give(partner_t *partner) {
    partners_t *p = partner->partners;
    xSemaphoreGive(p->semaphore);
    while (goes_on(partner)) {
        if (xSemaphoreTake(p->semaphore, p->timeout) != pdTRUE || xSemaphoreGive(p->semaphore) != pdTRUE) {
            give_up(partner);
            return;
        }
        count_one(partner);
    }
}

static void allocate_and_free(partner_t *partner) {
    while (goes_on(partner)) {
        void *block = heap_caps_malloc(BLOCK_BYTES, MALLOC_CAP_8BIT | MALLOC_CAP_INTERNAL);
        if (block == NULL) {
            give_up(partner);
            return;
        }
        heap_caps_free(block);
        count_one(partner);
    }
}

static const partners_kind_t KINDS[] = {
    [RTOS_TEST_BASIC] = {.tasks = 1, .work = compute, .sum = true},
    [RTOS_TEST_COOPERATIVE] = {.tasks = 5, .work = yield_in_turn, .sum = true},
    [RTOS_TEST_PREEMPTIVE] = {.tasks = 5, .work = resume_next, .rising = true, .sum = true},
    [RTOS_TEST_INTERRUPT] = {.tasks = 1, .work = interrupt_itself, .interrupt = true},
    [RTOS_TEST_INTERRUPT_PREEMPTION] = {.tasks = 2, .work = be_preempted, .interrupt = true, .rising = true},
    [RTOS_TEST_MESSAGE] = {.tasks = 1, .work = pass_message, .sum = true},
    [RTOS_TEST_SYNCHRONIZATION] = {.tasks = 1, .work = take_and_give, .sum = true},
    [RTOS_TEST_MEMORY] = {.tasks = 1, .work = allocate_and_free, .sum = true},
};

const partners_kind_t *partners_kind(rtos_test_t test) {
    return &KINDS[test];
}

void partners_work(void *context) {
    partner_t *partner = context;
    partners_t *p = partner->partners;
    if (p->begin_us == 0) { /* none runs before all are there */
        p->begin_us = esp_timer_get_time();
        xTaskNotifyGive(p->clock);
    }
    p->tasks[partner->index] = xTaskGetCurrentTaskHandle();
    partners_kind(p->test)->work(partner);
    p->tasks[partner->index] = NULL; /* the clock resumes it no more */
}
