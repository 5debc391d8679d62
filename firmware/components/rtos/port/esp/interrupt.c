/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/interrupt.h"

#include <stdatomic.h>

#include <stddef.h>
#include <stdint.h>

#include "esp_attr.h"
#include "esp_intr_alloc.h"
#include "freertos/task.h"
#include "sdkconfig.h"

#if CONFIG_IDF_TARGET_ARCH_XTENSA

#include "xtensa_api.h"

/* The core's own software interrupt. */
#define SOURCE ETS_INTERNAL_SW0_INTR_SOURCE

static intr_handle_t s_handle;
static uint32_t s_line; /* of the core, as a mask */

static void find_line(void) {
    s_line = 1U << esp_intr_get_intno(s_handle);
}

static inline void raise_line(void) {
    xt_set_intset(s_line);
}

static inline void clear_line(void) {
    xt_set_intclear(s_line);
}

#else

#include "soc/soc.h"
#include "soc/system_intr.h"
#include "soc/system_reg.h"

/* The third of four interrupts from CPU. ESP-IDF's scheduler has the first, and the second where there is a
 * second core; the others are esp_ipc_isr's, which a chip with one core does not have. */
#define SOURCE SYS_CPU_INTR_FROM_CPU_2_SOURCE

static intr_handle_t s_handle;

static void find_line(void) {
}

static inline void raise_line(void) {
    WRITE_PERI_REG(SYSTEM_CPU_INTR_FROM_CPU_2_REG, SYSTEM_CPU_INTR_FROM_CPU_2);
}

static inline void clear_line(void) {
    WRITE_PERI_REG(SYSTEM_CPU_INTR_FROM_CPU_2_REG, 0);
}

#endif

enum {
    MAX_TURNS = 100
}; /* some instructions lie between raising and being interrupted; more, and it is masked */

static rtos_interrupt_handler_t s_handler;
static atomic_bool s_pending;

static void IRAM_ATTR on_interrupt(void *context) {
    clear_line();
    s_pending = false;
    if (s_handler(context)) {
        portYIELD_FROM_ISR();
    }
}

esp_err_t rtos_interrupt_install(rtos_interrupt_handler_t handler, void *context) {
    if (s_handle != NULL) {
        return ESP_ERR_INVALID_STATE;
    }
    s_handler = handler;
    esp_err_t result = esp_intr_alloc(SOURCE, ESP_INTR_FLAG_LEVEL1 | ESP_INTR_FLAG_INTRDISABLED, on_interrupt,
                                      context, &s_handle);
    if (result != ESP_OK) {
        s_handle = NULL;
        return result;
    }
    find_line();
    clear_line();
    return esp_intr_enable(s_handle);
}

void rtos_interrupt_raise(void) {
    s_pending = true;
    raise_line();
    for (int turn = 0; s_pending && turn < MAX_TURNS; turn++) {
    }
}

void rtos_interrupt_remove(void) {
    clear_line();
    (void)esp_intr_free(s_handle);
    s_handle = NULL;
}
