/* SPDX-License-Identifier: Apache-2.0 */
/* A hardware timer that interrupts on a fixed grid: GPTimer, by the core that starts it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "esp_err.h"
#include "freertos/FreeRTOS.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    /* Set these before rtos_alarm_start(). */
    uint32_t period_us;
    /* In interrupt context, once for each moment of the grid, also where one was missed. Returns true where a
     * task of higher priority was woken. */
    bool (*on_alarm)(void *context, int64_t now_us);
    void *context;

    void *timer;         /* the driver's handle */
    uint64_t next_count; /* of the next alarm */
} rtos_alarm_t;

/* Start it. `first_us` is when the first alarm is due as esp_timer counts, known to within `error_us`.
 * Returns ESP_ERR_NOT_SUPPORTED where this target has no such timer (ESP-IDF's linux), ESP_ERR_NOT_FOUND
 * where all are in use, or what the driver returns; rtos_alarm_stop() afterwards all the same. */
esp_err_t rtos_alarm_start(rtos_alarm_t *alarm, int64_t *first_us, uint32_t *error_us);

/* By the task that started it. */
void rtos_alarm_stop(rtos_alarm_t *alarm);

#ifdef __cplusplus
}
#endif
