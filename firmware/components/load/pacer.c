/* SPDX-License-Identifier: Apache-2.0 */
#include "load/pacer.h"

#include "freertos/task.h"

#define EDGE_TICKS 8

static void arm_timer(load_pacer_t *pacer) {
    const load_plan_t *plan = pacer->plan;
    int64_t left_us = plan->t0_us + plan->planned_us[pacer->timer_row] - esp_timer_get_time();
    atomic_fetch_add(&pacer->armed, 1);
    esp_timer_start_once(pacer->timer, left_us > 1 ? (uint64_t)left_us : 1);
}

/* The timer's task may be anywhere between the alarm and arming the next one: until it has come to its end,
 * another alarm may follow, and what it uses has to stay. */
static void settle_timer(load_pacer_t *pacer) {
    atomic_store(&pacer->ended, true);
    for (;;) {
        if (esp_timer_stop(pacer->timer) == ESP_OK) {
            atomic_fetch_add(&pacer->settled, 1);
        }
        if (atomic_load(&pacer->settled) == atomic_load(&pacer->armed)) {
            return;
        }
        vTaskDelay(1);
    }
}

/* Timer task: one count for each plan, and the next plan is armed from its absolute time. */
static void on_timer(void *argument) {
    load_pacer_t *pacer = argument;
    xSemaphoreGive(pacer->due);
    if (++pacer->timer_row < pacer->plan->row_count && !atomic_load(&pacer->ended)) {
        arm_timer(pacer);
    }
    atomic_fetch_add(&pacer->settled, 1);
}

esp_err_t load_pacer_create(load_pacer_t *pacer, size_t capacity) {
    const esp_timer_create_args_t timer = {.callback = on_timer, .arg = pacer, .name = "plan"};
    pacer->due = xSemaphoreCreateCounting((UBaseType_t)capacity, 0);
    return pacer->due == NULL ? ESP_ERR_NO_MEM : esp_timer_create(&timer, &pacer->timer);
}

void load_pacer_delete(load_pacer_t *pacer) {
    if (pacer->timer != NULL) {
        esp_timer_delete(pacer->timer);
    }
    if (pacer->due != NULL) {
        vSemaphoreDelete(pacer->due);
    }
    pacer->timer = NULL;
    pacer->due = NULL;
}

/* A tick's edge on the plan's clock. Waking takes a little longer each time, so the earliest of a few counts.
 */
static uint32_t find_tick_edge_us(const load_plan_t *plan, TickType_t *wake) {
    const uint32_t tick_us = portTICK_PERIOD_MS * 1000;
    uint32_t edge_us = UINT32_MAX;
    vTaskDelay(1);
    *wake = xTaskGetTickCount();
    for (uint32_t i = 1; i <= EDGE_TICKS; i++) {
        vTaskDelayUntil(wake, 1);
        uint32_t first_us = load_now_us(plan) - i * tick_us;
        edge_us = first_us < edge_us ? first_us : edge_us;
    }
    return edge_us + EDGE_TICKS * tick_us;
}

static void delay_until(const load_pacer_t *pacer, TickType_t *wake, TickType_t period) {
    const TickType_t check = pdMS_TO_TICKS(LOAD_CHECK_MS);
    while (period > 0 && !pacer->workers->stop) {
        TickType_t part = period < check ? period : check;
        vTaskDelayUntil(wake, part);
        period -= part;
    }
}

/* The first plan is a tick's edge, because vTaskDelayUntil can wake at nothing else. */
static void run_on_ticks(load_pacer_t *pacer, void (*produce)(void *, size_t), void *context) {
    load_plan_t *plan = pacer->plan;
    const TickType_t period = (TickType_t)(plan->interval_us / (portTICK_PERIOD_MS * 1000));
    TickType_t wake;
    uint32_t edge_us = find_tick_edge_us(plan, &wake);
    load_plan_make(plan, edge_us + plan->interval_us);
    for (size_t row = 0; row < plan->row_count && !pacer->workers->stop; row++) {
        delay_until(pacer, &wake, period);
        produce(context, row);
    }
}

static void run_on_timer(load_pacer_t *pacer, void (*produce)(void *, size_t), void *context) {
    pacer->timer_row = 0;
    atomic_store(&pacer->ended, false);
    arm_timer(pacer);
    for (size_t row = 0; row < pacer->plan->row_count && load_workers_take(pacer->workers, pacer->due);
         row++) {
        produce(context, row);
    }
    settle_timer(pacer); /* still armed where the run was stopped */
}

void load_pacer_run(load_pacer_t *pacer, void (*produce)(void *context, size_t row), void *context) {
    if (pacer->plan->schedule == LOAD_PERIODIC) {
        run_on_ticks(pacer, produce, context);
    } else {
        run_on_timer(pacer, produce, context);
    }
}
