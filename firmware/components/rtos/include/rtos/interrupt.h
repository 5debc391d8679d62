/* SPDX-License-Identifier: Apache-2.0 */
/* An interrupt that software raises on its own core: what interrupt latency and interrupt processing are
 * measured with. On Xtensa the software interrupt of the core, on RISC-V the interrupt from CPU; on a host a
 * thread above all tasks. */
#pragma once

#include "esp_err.h"
#include "freertos/FreeRTOS.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In interrupt context: only calls that may be made there. Returns true where a task of higher priority was
 * woken, as callbacks of ESP-IDF's drivers do. */
typedef bool (*rtos_interrupt_handler_t)(void *context);

/* Install the handler on the core that the caller runs on; the caller must be pinned to it. One at a time.
 * Returns ESP_ERR_NOT_SUPPORTED where this target has none (ESP-IDF's linux), ESP_ERR_INVALID_STATE where one
 * is installed, or what esp_intr_alloc() returns. */
esp_err_t rtos_interrupt_install(rtos_interrupt_handler_t handler, void *context);

/* Raise it, on the core that it is installed on, by a task of that core. The handler has run when this
 * returns, unless interrupts are masked. */
void rtos_interrupt_raise(void);

/* From the same core. */
void rtos_interrupt_remove(void);

#ifdef __cplusplus
}
#endif
