/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "esp_err.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    uint32_t timeout_ms;
    uint32_t idle_core_mask; /* checked only: the host has no idle tasks */
    bool trigger_panic;
} esp_task_wdt_config_t;

typedef struct esp_task_wdt_user_handle_s *esp_task_wdt_user_handle_t;

/* Called before app_main(), as CONFIG_ESP_TASK_WDT_INIT has it. */
esp_err_t esp_task_wdt_init(const esp_task_wdt_config_t *config);
esp_err_t esp_task_wdt_reconfigure(const esp_task_wdt_config_t *config);
esp_err_t esp_task_wdt_deinit(void);
esp_err_t esp_task_wdt_add(TaskHandle_t task_handle);
esp_err_t esp_task_wdt_reset(void);
esp_err_t esp_task_wdt_delete(TaskHandle_t task_handle);
esp_err_t esp_task_wdt_status(TaskHandle_t task_handle);
/* A user is a part of a task that has its own term. The name is kept by the caller. */
esp_err_t esp_task_wdt_add_user(const char *user_name, esp_task_wdt_user_handle_t *user_handle_ret);
esp_err_t esp_task_wdt_reset_user(esp_task_wdt_user_handle_t user_handle);
esp_err_t esp_task_wdt_delete_user(esp_task_wdt_user_handle_t user_handle);

#ifdef __cplusplus
}
#endif
