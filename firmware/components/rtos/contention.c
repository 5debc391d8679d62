/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/contention.h"

#include "esp_timer.h"
#include "freertos/task.h"
#include "rtos/load.h"
#include "rtos/resource.h"

enum {
    STACK_BYTES = 3072,
    TICK_US = 1000000 / configTICK_RATE_HZ,
    BURST_US = TICK_US * 3 / 2 > RTOS_MIDDLE_BURST_US ? TICK_US * 3 / 2 : RTOS_MIDDLE_BURST_US,
    BETWEEN_BURSTS_MS = 6, /* with the burst no whole number of common periods */
    STRETCH_US = 8000,     /* of low's work; then the core's idle task has its turn */
};

esp_err_t rtos_contention_create(rtos_contention_t *contention) {
    contention->lock = rtos_resource_create();
    return contention->lock != NULL ? ESP_OK : ESP_ERR_NO_MEM;
}

void rtos_contention_delete(rtos_contention_t *contention) {
    if (contention->lock != NULL) {
        vSemaphoreDelete(contention->lock);
        contention->lock = NULL;
    }
}

static bool is_over(const rtos_contention_t *contention) {
    return contention->over || contention->workers->stop;
}

/* At least a tick, which a number of milliseconds may be less than. */
static void sleep_ms(uint32_t ms) {
    TickType_t ticks = pdMS_TO_TICKS(ms);
    vTaskDelay(ticks > 0 ? ticks : 1);
}

static void be_low(void *context) {
    rtos_contention_t *contention = context;
    while (!is_over(contention)) {
        const int64_t end_us = esp_timer_get_time() + STRETCH_US;
        while (esp_timer_get_time() < end_us && !is_over(contention)) {
            xSemaphoreTake(contention->lock, portMAX_DELAY);
            rtos_compute_us(RTOS_HOLD_US);
            xSemaphoreGive(contention->lock);
            contention->holds_count++;
            rtos_compute_us(RTOS_HOLD_US / 10);
        }
        sleep_ms(1);
    }
}

static void be_middle(void *context) {
    rtos_contention_t *contention = context;
    while (!is_over(contention)) {
        rtos_compute_us(BURST_US);
        sleep_ms(BETWEEN_BURSTS_MS);
    }
}

size_t rtos_contention_workers(rtos_contention_t *contention, load_worker_t *workers) {
    contention->over = false;
    if (contention->lock == NULL) {
        return 0;
    }
    const load_worker_t low = {.name = "low",
                               .work = be_low,
                               .context = contention,
                               .core = contention->core,
                               .priority = RTOS_LOW_PRIORITY,
                               .stack_bytes = STACK_BYTES};
    workers[0] = low;
    workers[1] = low;
    workers[1].name = "middle";
    workers[1].work = be_middle;
    workers[1].priority = RTOS_MIDDLE_PRIORITY;
    return RTOS_CONTENTION_WORKERS;
}
