/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/interrupt.h"

#include <stddef.h>
#include <stdint.h>

#include "freertos/task.h"
#include "vboard.h"

static vboard_interrupt_t *s_interrupt;
static rtos_interrupt_handler_t s_handler;

static int64_t serve(void *context) {
    (void)s_handler(context); /* whom it woke runs without being asked to */
    return INT64_MAX;
}

esp_err_t rtos_interrupt_install(rtos_interrupt_handler_t handler, void *context) {
    if (s_interrupt != NULL) {
        return ESP_ERR_INVALID_STATE;
    }
    s_handler = handler;
    s_interrupt = vboard_interrupt_new(xPortGetCoreID(), serve, context);
    return s_interrupt != NULL ? ESP_OK : ESP_ERR_NO_MEM;
}

void rtos_interrupt_raise(void) {
    vboard_interrupt_raise(s_interrupt);
    vboard_interrupt_wait(s_interrupt);
}

void rtos_interrupt_remove(void) {
    vboard_interrupt_delete(s_interrupt);
    s_interrupt = NULL;
}
