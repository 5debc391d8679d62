/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing is measured on ESP-IDF's linux target. */
#include "port/port.h"

bool port_idle_count(bool wanted) {
    (void)wanted;
    return false;
}

uint32_t port_idle_us(int core) {
    (void)core;
    return 0;
}
