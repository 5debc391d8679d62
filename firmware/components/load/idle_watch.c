/* SPDX-License-Identifier: Apache-2.0 */
#include "load/idle_watch.h"

#include <stdbool.h>
#include <stdint.h>

#include "esp_err.h"
#include "sdkconfig.h"

#if CONFIG_ESP_TASK_WDT_INIT

#include "esp_task_wdt.h"

enum {
#if CONFIG_ESP_TASK_WDT_CHECK_IDLE_TASK_CPU0
    WATCHED_CPU0 = 1 << 0,
#else
    WATCHED_CPU0 = 0,
#endif
#if CONFIG_ESP_TASK_WDT_CHECK_IDLE_TASK_CPU1
    WATCHED_CPU1 = 1 << 1,
#else
    WATCHED_CPU1 = 0,
#endif
#if CONFIG_ESP_TASK_WDT_PANIC
    PANIC = true,
#else
    PANIC = false,
#endif
};

static void watch(uint32_t idle_core_mask) {
    const esp_task_wdt_config_t config = {
        .timeout_ms = CONFIG_ESP_TASK_WDT_TIMEOUT_S * 1000,
        .idle_core_mask = idle_core_mask,
        .trigger_panic = PANIC,
    };
    ESP_ERROR_CHECK(esp_task_wdt_reconfigure(&config));
}

void load_idle_watch_stop(void) {
    watch(0);
}

void load_idle_watch_restore(void) {
    watch(WATCHED_CPU0 | WATCHED_CPU1);
}

#else

void load_idle_watch_stop(void) {
}

void load_idle_watch_restore(void) {
}

#endif
