/* SPDX-License-Identifier: Apache-2.0 */
/* ESP-IDF's linux target has no interrupts. */
#include "rtos/interrupt.h"

esp_err_t rtos_interrupt_install(rtos_interrupt_handler_t handler, void *context) {
    (void)handler;
    (void)context;
    return ESP_ERR_NOT_SUPPORTED;
}

void rtos_interrupt_raise(void) {
}

void rtos_interrupt_remove(void) {
}
