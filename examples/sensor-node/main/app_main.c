/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "console.h"
#include "esp_app_desc.h"
#include "esp_ota_ops.h"
#include "esp_system.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "net.h"
#include "node_clock.h"
#include "node_log.h"
#include "screen.h"
#include "sdkconfig.h"
#include "settings.h"
#include "uplink.h"

static const char *reset_reason(void) {
    switch (esp_reset_reason()) {
    case ESP_RST_POWERON:
        return "POWERON";
    case ESP_RST_SW:
        return "SW";
    case ESP_RST_PANIC:
        return "PANIC";
    case ESP_RST_INT_WDT:
        return "INT_WDT";
    case ESP_RST_TASK_WDT:
        return "TASK_WDT";
    case ESP_RST_WDT:
        return "WDT";
    case ESP_RST_BROWNOUT:
        return "BROWNOUT";
    default:
        return "OTHER";
    }
}

static void report_memory(void *arg) {
    TickType_t last = xTaskGetTickCount();
    (void)arg;
    for (;;) {
        vTaskDelayUntil(&last, pdMS_TO_TICKS(1000));
        node_log("mem", "free=%" PRIu32 " min=%" PRIu32, esp_get_free_heap_size(),
                 esp_get_minimum_free_heap_size());
    }
}

void app_main(void) {
    settings_init();
#if CONFIG_NODE_SLOW_BOOT_MS > 0
    vTaskDelay(pdMS_TO_TICKS(CONFIG_NODE_SLOW_BOOT_MS));
#endif
    console_start();
    node_log("node", "boot ok reason=%s", reset_reason());
    node_log("node", "version=%s slot=%s", esp_app_get_description()->version,
             esp_ota_get_running_partition()->label);
    net_start();
    screen_start();
    xTaskCreate(report_memory, "memory", 3072, NULL, 1, NULL);
    net_wait();
    clock_start();
    uplink_start();
}
