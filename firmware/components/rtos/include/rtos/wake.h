/* SPDX-License-Identifier: Apache-2.0 */
/* What wakes a periodic task, on an absolute grid: the k-th wake is due at first_us + k * period_us, however
 * late the ones before were. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "esp_err.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "rtos/alarm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    RTOS_WAKE_DELAY_UNTIL, /* vTaskDelayUntil: on the ticks */
    RTOS_WAKE_ESP_TIMER,   /* esp_timer, periodic: its callback, in the timer task, notifies the task */
    RTOS_WAKE_GPTIMER,     /* GPTimer: its interrupt notifies the task */
} rtos_wake_source_t;

/* Choices of a parameter `source`, in the order of rtos_wake_source_t. */
extern const char *const rtos_wake_sources[];

enum { RTOS_WAKE_ISR_TIMES = 512 }; /* of 1 ms: erasing a sector of the flash may keep the task for 0.4 s */

typedef struct {
    /* Set these before rtos_wake_start(). */
    rtos_wake_source_t source;
    uint32_t period_us;
    uint32_t timeout_us;     /* a wake that is later than this is missing */
    const atomic_bool *stop; /* ends a wait within 100 ms, or a period */

    int64_t first_us;       /* on esp_timer; set by rtos_wake_start() */
    uint32_t grid_error_us; /* first_us is known to within this */
    uint32_t count;         /* wakes so far */
    TickType_t tick;
    TaskHandle_t task;
    esp_timer_handle_t timer;
    rtos_alarm_t alarm;
    uint32_t isr_count;
    int64_t isr_us[RTOS_WAKE_ISR_TIMES]; /* a ring */
} rtos_wake_t;

typedef enum {
    RTOS_WAKE_OK,
    RTOS_WAKE_MISSING, /* none came within the timeout */
    RTOS_WAKE_STOPPED,
} rtos_wake_result_t;

/* Why this source cannot wake at this period, as a sentence; NULL where it can. */
const char *rtos_wake_conflict(rtos_wake_source_t source, uint32_t period_us);

/* By the task that is to be woken: begin the grid, and end it, also where it did not start. Looking for the
 * tick's edge keeps the core busy for up to five ticks. Returns ESP_ERR_NO_MEM, or as rtos_alarm_start(). */
esp_err_t rtos_wake_start(rtos_wake_t *wake);
void rtos_wake_stop(rtos_wake_t *wake);

/* Sleep until the next wake. */
rtos_wake_result_t rtos_wake_wait(rtos_wake_t *wake);

/* When the last wake was due, on esp_timer. */
static inline int64_t rtos_wake_planned_us(const rtos_wake_t *wake) {
    return wake->first_us + ((int64_t)wake->count - 1) * wake->period_us;
}

/* When the interrupt of the last wake ran; 0 where the source has none, or the task is too far behind. */
int64_t rtos_wake_isr_us(const rtos_wake_t *wake);

#ifdef __cplusplus
}
#endif
