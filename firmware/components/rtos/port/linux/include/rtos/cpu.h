/* SPDX-License-Identifier: Apache-2.0 */
/* ESP-IDF's esp_cpu.h is for chips only. Here there is one core, and its counter counts nanoseconds. */
#pragma once

#include <stdint.h>
#include <time.h>

#define RTOS_CPU_MHZ 1000

static inline int esp_cpu_get_core_id(void) {
    return 0;
}

static inline uint32_t esp_cpu_get_cycle_count(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)((uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec);
}
