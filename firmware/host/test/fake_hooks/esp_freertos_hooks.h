/* SPDX-License-Identifier: Apache-2.0 */
/* As much of ESP-IDF's API as agent/port/esp/idle.c uses; the test plays the idle tasks. */
#pragma once

#include <stdbool.h>

#include "esp_err.h"
#include "freertos/FreeRTOS.h"

typedef bool (*esp_freertos_idle_cb_t)(void);

esp_err_t esp_register_freertos_idle_hook_for_cpu(esp_freertos_idle_cb_t hook, UBaseType_t core);
void esp_deregister_freertos_idle_hook_for_cpu(esp_freertos_idle_cb_t hook, UBaseType_t core);
