/* SPDX-License-Identifier: Apache-2.0 */
/* footprint, traced: two tasks meet at a mutex, and the sizes are made up, as there is no flash. Linked with
 * -Wl,--wrap=agent_image_sizes. */
#include "agent/agent.h"
#include "freertos/FreeRTOS.h"
#include "freertos/idf_additions.h"
#include "freertos/semphr.h"
#include "freertos/task.h"
#include "trace/trace.h"

enum { LOW_PRIORITY = 6, HIGH_PRIORITY = 20, STACK_BYTES = 4096, WAIT_MS = 5 };

esp_err_t __wrap_agent_image_sizes(uint32_t *image_bytes, uint32_t *slot_bytes);

static SemaphoreHandle_t s_mutex;
static SemaphoreHandle_t s_done;

static void take_and_hold(void *wait_ms) {
    vTaskDelay(pdMS_TO_TICKS((uintptr_t)wait_ms));
    xSemaphoreTake(s_mutex, portMAX_DELAY);
    vTaskDelay(pdMS_TO_TICKS(2 * WAIT_MS));
    trace_mark(TRACE_MARK_ACQUIRED, (uint32_t)(uintptr_t)wait_ms);
    xSemaphoreGive(s_mutex);
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

static void trace_two_tasks(void) {
    trace_start();
    s_mutex = xSemaphoreCreateMutex();
    s_done = xSemaphoreCreateCounting(2, 0);
    xTaskCreatePinnedToCore(take_and_hold, "low", STACK_BYTES, (void *)0, LOW_PRIORITY, NULL, 0);
    xTaskCreatePinnedToCore(take_and_hold, "high", STACK_BYTES, (void *)WAIT_MS, HIGH_PRIORITY, NULL, 0);
    for (int i = 0; i < 2; i++) {
        xSemaphoreTake(s_done, portMAX_DELAY);
    }
    trace_stop();
    vSemaphoreDelete(s_mutex);
    vSemaphoreDelete(s_done);
}

esp_err_t __wrap_agent_image_sizes(uint32_t *image_bytes, uint32_t *slot_bytes) {
    trace_two_tasks();
    *image_bytes = 1;
    *slot_bytes = 2;
    return ESP_OK;
}
