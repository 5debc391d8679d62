/* SPDX-License-Identifier: Apache-2.0 */
/* lwIP's time; its threads and mailboxes are the host's kernel's, and nobody's to call. */
#pragma once
#include <stdint.h>

#include "esp_timer.h"
#include "lwip/err.h"

/* Milliseconds since reset. */
static inline uint32_t sys_now(void) {
    return (uint32_t)(esp_timer_get_time() / 1000);
}
