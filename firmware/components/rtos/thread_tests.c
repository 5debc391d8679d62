/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/thread_tests.h"

#include <stdlib.h>

#include "esp_timer.h"
#include "rtos/interrupt.h"
#include "thread_partners.h"

enum {
    LOWEST_PRIORITY = 1,
    STACK_BYTES = 3072,
    CLOCK_PRIORITY = RTOS_TEST_STARTER_PRIORITY + 1,
};

const char *const rtos_tests[] = {
    "basic",   "cooperative",     "preemptive", "interrupt", "interrupt_preemption",
    "message", "synchronization", "memory",     NULL,
};

/* A window: the partners, and the clock that ends it. */
typedef struct {
    partners_t partners;
    load_workers_t workers;
    uint32_t window_ms;
    rtos_test_window_t *result;
    uint32_t ticks;
} window_t;

bool rtos_test_is_consistent(const rtos_test_window_t *window) {
    return !window->timed_out && window->count > 0 && window->spread_count <= window->spread_max_count;
}

/* ---- in the clock's task, above the partners ---- */

static void sleep_through(const window_t *window) {
    TickType_t left = pdMS_TO_TICKS(window->window_ms), slice = pdMS_TO_TICKS(LOAD_CHECK_MS);
    while (left > 0 && !window->workers.stop) {
        TickType_t now = left < slice ? left : slice;
        vTaskDelay(now);
        left -= now;
    }
}

static void take_counts(const partners_t *p, rtos_test_window_t *result) {
    const partners_kind_t *kind = partners_kind(p->test);
    uint32_t sum = 0, least = kind->interrupt ? p->interrupts : p->done[0], most = least;
    for (size_t i = 0; i < p->count; i++) {
        sum += p->done[i];
        least = p->done[i] < least ? p->done[i] : least;
        most = p->done[i] > most ? p->done[i] : most;
    }
    result->count = kind->sum ? sum : p->interrupts;
    result->spread_count = most - least;
    result->timed_out = atomic_load(&p->timed_out);
}

/* A partner goes before those that it resumes, so that it never resumes one that has gone. It may be on its
 * way into suspending itself: again until it is gone. */
static void end_partners(partners_t *p) {
    atomic_store(&p->stop, true);
    for (size_t i = 0; i < p->count;) {
        TaskHandle_t task = p->tasks[i];
        if (task == NULL) {
            i++;
            continue;
        }
        vTaskResume(task);
        vTaskDelay(1);
    }
}

static bool await_first(window_t *window) {
    window->partners.clock = xTaskGetCurrentTaskHandle(); /* before there is a partner */
    while (ulTaskNotifyTake(pdTRUE, pdMS_TO_TICKS(LOAD_CHECK_MS)) == 0) {
        if (window->workers.stop) {
            return false;
        }
    }
    return true;
}

static void keep_time(void *context) {
    window_t *window = context;
    if (!await_first(window)) {
        atomic_store(&window->partners.stop, true);
        return;
    }
    TickType_t first_tick = xTaskGetTickCount();
    sleep_through(window);
    window->result->window_us = (uint32_t)(esp_timer_get_time() - window->partners.begin_us);
    window->result->begin_us = window->partners.begin_us;
    take_counts(&window->partners, window->result);
    window->ticks = xTaskGetTickCount() - first_tick;
    end_partners(&window->partners);
}

/* ---- in the starter's task ---- */

/* The clock comes first: where a partner cannot be made it ends the others. Then the partners, the highest
 * first: it suspends itself before a lower one begins. */
static void fill_workers(window_t *window, load_worker_t *workers) {
    partners_t *p = &window->partners;
    BaseType_t core = xPortGetCoreID();
    workers[0] = (load_worker_t){
        .name = "clock",
        .work = keep_time,
        .context = window,
        .core = core,
        .priority = CLOCK_PRIORITY,
        .stack_bytes = STACK_BYTES,
    };
    for (size_t i = 0; i < p->count; i++) {
        bool rising = partners_kind(p->test)->rising;
        p->partner[i] = (partner_t){.partners = p, .index = i};
        workers[p->count - i] = (load_worker_t){
            .name = "partner",
            .work = partners_work,
            .context = &p->partner[i],
            .core = core,
            .priority = LOWEST_PRIORITY + (rising ? (UBaseType_t)i : 0),
            .stack_bytes = STACK_BYTES,
        };
    }
}

static esp_err_t run_partners(window_t *window) {
    load_worker_t workers[PARTNERS_MAX + 1];
    partners_t *p = &window->partners;
    bool interrupt = partners_kind(p->test)->interrupt;
    fill_workers(window, workers);
    esp_err_t err = interrupt ? rtos_interrupt_install(partners_on_interrupt, p) : ESP_OK;
    if (err != ESP_OK) {
        return err;
    }
    err = load_workers_run(&window->workers, workers, p->count + 1);
    if (interrupt) {
        rtos_interrupt_remove();
    }
    return err != ESP_OK ? err : (window->workers.stop ? ESP_ERR_INVALID_STATE : ESP_OK);
}

/* Where ticks share the core out between tasks of one priority, each tick may cost one of them a turn. */
static uint32_t spread_allowed(const window_t *window) {
    bool sliced = window->partners.test == RTOS_TEST_COOPERATIVE && configUSE_TIME_SLICING;
    return RTOS_TEST_SPREAD_COUNT + (sliced ? window->ticks : 0);
}

esp_err_t rtos_test_run(rtos_test_t test, const bench_run_t *run, uint32_t window_ms, uint32_t timeout_ms,
                        rtos_test_window_t *result) {
    window_t *window = calloc(1, sizeof(*window));
    if (window == NULL) {
        return ESP_ERR_NO_MEM;
    }
    *result = (rtos_test_window_t){0};
    window->window_ms = window_ms;
    window->result = result;
    partners_t *p = &window->partners;
    p->test = test;
    p->count = partners_kind(test)->tasks;
    p->timeout = pdMS_TO_TICKS(timeout_ms);
    p->queue = xQueueCreate(1, MESSAGE_WORDS * sizeof(uint32_t));
    p->semaphore = xSemaphoreCreateBinary();
    esp_err_t err = load_workers_create(&window->workers, run);
    if (err == ESP_OK) {
        err = p->queue != NULL && p->semaphore != NULL ? run_partners(window) : ESP_ERR_NO_MEM;
    }
    result->spread_max_count = spread_allowed(window);
    load_workers_delete(&window->workers);
    if (p->queue != NULL) {
        vQueueDelete(p->queue);
    }
    if (p->semaphore != NULL) {
        vSemaphoreDelete(p->semaphore);
    }
    free(window);
    return err;
}
