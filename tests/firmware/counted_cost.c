/* SPDX-License-Identifier: Apache-2.0 */
/* The firmware with a counter of instructions, which a host has not: tens of nanoseconds. */
#include <time.h>

#include "rtos/instructions.h"

enum { STEPS = 10 };

esp_err_t __wrap_rtos_instructions_calibrate(uint32_t *ticks, bench_samples_t *samples);
esp_err_t __wrap_rtos_instructions_calibrate(uint32_t *ticks, bench_samples_t *samples) {
    (void)samples;
    *ticks = STEPS;
    return ESP_OK;
}

uint64_t __wrap_rtos_instructions_read(void);
uint64_t __wrap_rtos_instructions_read(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
