/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a producer at each planned time of a burst, from the producer's own task. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "load/plan.h"
#include "load/workers.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    load_plan_t *plan;
    load_workers_t *workers; /* whose `stop` ends the pacing */
    SemaphoreHandle_t due;   /* counts plans that have come */
    esp_timer_handle_t timer;
    size_t timer_row;
    atomic_bool ended;          /* arm no more */
    atomic_uint armed, settled; /* alarms set; of them, those that were called to their end or cancelled */
} load_pacer_t;

/* `plan` and `workers` are set; `capacity` is the longest burst. Returns ESP_ERR_NO_MEM. */
esp_err_t load_pacer_create(load_pacer_t *pacer, size_t capacity);
void load_pacer_delete(load_pacer_t *pacer);

/* Call `produce` for each row when it is due, or at once where that has passed.
 *
 * LOAD_RANDOM is paced by esp_timer, each alarm armed from its absolute time. LOAD_PERIODIC is paced by
 * vTaskDelayUntil, as firmware that reads a sensor is, and the plan is made anew from a tick's edge.
 */
void load_pacer_run(load_pacer_t *pacer, void (*produce)(void *context, size_t row), void *context);

#ifdef __cplusplus
}
#endif
