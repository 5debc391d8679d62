/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/wake.h"
#include "trace/trace.h"

enum {
    EDGES = 4,
    STARTS = 8,
    EXACT_US = 1,
    CHECK_MS = 100, /* how often a wait looks whether it is to stop */
    TICK_US = 1000000 / configTICK_RATE_HZ,
};

const char *const rtos_wake_sources[] = {"delay_until", "esp_timer", "gptimer", NULL};

const char *rtos_wake_conflict(rtos_wake_source_t source, uint32_t period_us) {
    if (source == RTOS_WAKE_DELAY_UNTIL && period_us % TICK_US != 0) {
        return "source=delay_until wakes on ticks: the period must be a whole number of them";
    }
    return NULL;
}

/* ---- vTaskDelayUntil ---- */

/* When the tick count changed, on esp_timer. It is looked at without sleeping, for a wake would come late by
 * the very latency that is to be measured; the earliest of a few, as any of them may be looked at late. */
static void find_tick_edge(rtos_wake_t *wake) {
    const TickType_t start = xTaskGetTickCount();
    int64_t earliest_us = INT64_MAX;
    wake->tick = start;
    for (int i = 0; i < EDGES; i++) {
        TickType_t tick = wake->tick;
        while (tick == wake->tick) {
            tick = xTaskGetTickCount();
        }
        int64_t start_us = esp_timer_get_time() - (int64_t)(tick - start) * TICK_US;
        earliest_us = start_us < earliest_us ? start_us : earliest_us;
        wake->tick = tick;
    }
    wake->first_us = earliest_us + (int64_t)(wake->tick - start) * TICK_US + wake->period_us;
    wake->grid_error_us = EXACT_US;
}

/* ---- esp_timer ---- */

/* In the timer task. */
static void on_timer(void *argument) {
    rtos_wake_t *wake = argument;
    xTaskNotifyGive(wake->task);
}

/* The first alarm is a period after a moment between `before_us` and `after_us`: exactly known where it is
 * the next of all timers. */
static void find_first_alarm(rtos_wake_t *wake, int64_t before_us, int64_t after_us) {
    const int64_t next_us = esp_timer_get_next_alarm();
    const bool ours = next_us >= before_us + wake->period_us && next_us <= after_us + wake->period_us;
    wake->first_us = ours ? next_us : before_us + wake->period_us;
    wake->grid_error_us = ours ? 0 : (uint32_t)(after_us - before_us);
}

static esp_err_t start_timer(rtos_wake_t *wake) {
    const esp_timer_create_args_t arguments = {.callback = on_timer, .arg = wake, .name = "wake"};
    esp_err_t err = esp_timer_create(&arguments, &wake->timer);
    wake->grid_error_us = UINT32_MAX;
    for (int i = 0; err == ESP_OK && i < STARTS && wake->grid_error_us > EXACT_US; i++) {
        (void)esp_timer_stop(wake->timer); /* refused where it does not run */
        (void)ulTaskNotifyTake(pdTRUE, 0); /* the grid before it may have begun */
        int64_t before_us = esp_timer_get_time();
        err = esp_timer_start_periodic(wake->timer, wake->period_us);
        find_first_alarm(wake, before_us, esp_timer_get_time());
    }
    return err;
}

/* ---- GPTimer ---- */

static bool on_alarm(void *context, int64_t now_us) {
    rtos_wake_t *wake = context;
    BaseType_t woken = pdFALSE;
    trace_isr_enter();
    wake->isr_us[wake->isr_count % RTOS_WAKE_ISR_TIMES] = now_us;
    __atomic_store_n(&wake->isr_count, wake->isr_count + 1, __ATOMIC_RELEASE);
    vTaskNotifyGiveFromISR(wake->task, &woken);
    trace_isr_exit();
    return woken == pdTRUE;
}

static esp_err_t start_alarm(rtos_wake_t *wake) {
    wake->alarm = (rtos_alarm_t){.period_us = wake->period_us, .on_alarm = on_alarm, .context = wake};
    return rtos_alarm_start(&wake->alarm, &wake->first_us, &wake->grid_error_us);
}

int64_t rtos_wake_isr_us(const rtos_wake_t *wake) {
    uint32_t seen = __atomic_load_n(&wake->isr_count, __ATOMIC_ACQUIRE);
    if (wake->source != RTOS_WAKE_GPTIMER || seen - wake->count >= RTOS_WAKE_ISR_TIMES) {
        return 0;
    }
    return wake->isr_us[(wake->count - 1) % RTOS_WAKE_ISR_TIMES];
}

/* ---- all of them ---- */

esp_err_t rtos_wake_start(rtos_wake_t *wake) {
    wake->task = xTaskGetCurrentTaskHandle();
    wake->count = 0;
    wake->isr_count = 0;
    wake->timer = NULL;
    wake->alarm.timer = NULL;
    switch (wake->source) {
    case RTOS_WAKE_ESP_TIMER:
        return start_timer(wake);
    case RTOS_WAKE_GPTIMER:
        return start_alarm(wake);
    default:
        find_tick_edge(wake);
        return ESP_OK;
    }
}

void rtos_wake_stop(rtos_wake_t *wake) {
    if (wake->timer != NULL) {
        (void)esp_timer_stop(wake->timer);
        vTaskDelay(2); /* a callback that has begun on the other core names a task that is about to end */
        (void)esp_timer_delete(wake->timer);
        wake->timer = NULL;
    }
    rtos_alarm_stop(&wake->alarm);
}

static rtos_wake_result_t wait_for_notification(rtos_wake_t *wake) {
    const int64_t deadline_us = rtos_wake_planned_us(wake) + wake->period_us + wake->timeout_us;
    while (ulTaskNotifyTake(pdFALSE, pdMS_TO_TICKS(CHECK_MS)) == 0) {
        if (*wake->stop) {
            return RTOS_WAKE_STOPPED;
        }
        if (esp_timer_get_time() > deadline_us) {
            return RTOS_WAKE_MISSING;
        }
    }
    return RTOS_WAKE_OK;
}

rtos_wake_result_t rtos_wake_wait(rtos_wake_t *wake) {
    rtos_wake_result_t result = RTOS_WAKE_OK;
    if (wake->source == RTOS_WAKE_DELAY_UNTIL) {
        vTaskDelayUntil(&wake->tick, (TickType_t)(wake->period_us / TICK_US));
    } else {
        result = wait_for_notification(wake);
    }
    wake->count += result == RTOS_WAKE_OK;
    return result == RTOS_WAKE_OK && *wake->stop ? RTOS_WAKE_STOPPED : result;
}
