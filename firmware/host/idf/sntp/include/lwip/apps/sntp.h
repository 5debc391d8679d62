/* SPDX-License-Identifier: Apache-2.0 */
// lwIP's own names.
#pragma once

#include "esp_sntp.h"

static inline void sntp_stop(void) {
    esp_sntp_stop();
}

static inline u8_t sntp_enabled(void) {
    return esp_sntp_enabled();
}

static inline void sntp_setserver(u8_t idx, const ip_addr_t *addr) {
    esp_sntp_setserver(idx, addr);
}
