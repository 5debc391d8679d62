/* SPDX-License-Identifier: Apache-2.0 */
/* A pump that turns at the speed that its component says, and logs how often it did. */
#include <inttypes.h>

#include "esp_err.h"
#include "esp_event.h"
#include "esp_hil.h"
#include "esp_log.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "network.h"
#include "pump.h"

static const char *TAG = "pump";

enum { PERIOD_MS = 100 };

ESP_EVENT_DEFINE_BASE(PUMP_EVENT);
enum { PUMP_TURNED };

/* Names that the agent has too: a product's own are its own. */
int record_begin = 7;

esp_err_t link_up(void) {
    network_start();
    return ESP_OK;
}

static void on_turn(void *unused, esp_event_base_t base, int32_t id, void *data) {
    (void)unused, (void)base, (void)id;
    const uint32_t turns = *(const uint32_t *)data;
    ESP_LOGI(TAG, "turned %" PRIu32 " times at %s", turns, network_address());
}

void app_main(void) {
    esp_event_loop_handle_t loop = NULL;
    const esp_event_loop_args_t own = {
        .queue_size = 4, .task_name = "pump_events", .task_priority = 4, .task_stack_size = 3072};
    ESP_ERROR_CHECK(link_up());
    ESP_ERROR_CHECK(esp_hil_start(NULL));
    ESP_ERROR_CHECK(esp_event_loop_create(&own, &loop));
    ESP_ERROR_CHECK(esp_event_handler_register_with(loop, PUMP_EVENT, PUMP_TURNED, on_turn, NULL));
    for (uint32_t turns = 1;; turns++) {
        pump_turn();
        ESP_ERROR_CHECK(
            esp_event_post_to(loop, PUMP_EVENT, PUMP_TURNED, &turns, sizeof(turns), portMAX_DELAY));
        vTaskDelay(pdMS_TO_TICKS(PERIOD_MS));
    }
}
