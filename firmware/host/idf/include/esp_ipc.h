/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdint.h>

#include "esp_err.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*esp_ipc_func_t)(void *arg);

/* Runs func on a core in a task of priority 24; returns when it started, or (blocking) when it ended. */
esp_err_t esp_ipc_call(uint32_t cpu_id, esp_ipc_func_t func, void *arg);
esp_err_t esp_ipc_call_blocking(uint32_t cpu_id, esp_ipc_func_t func, void *arg);

#ifdef __cplusplus
}
#endif
