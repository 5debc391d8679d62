/* SPDX-License-Identifier: Apache-2.0 */
/* The task watchdog's part in idle tasks, for who finds them starved. */
#pragma once

#include <stdint.h>

#include "freertos/FreeRTOS.h"

typedef struct {
    int64_t timeout_ms;
    uint32_t core_mask; /* whose idle task is watched; 0 of a watchdog that is not there */
} idle_watch_t;

idle_watch_t task_wdt_idle_watch(void);
/* From any thread: the watchdog's lines of a core's idle task, and the panic where it is set to. */
void task_wdt_trigger_idle(BaseType_t core, const char *running);
