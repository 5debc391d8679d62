/* SPDX-License-Identifier: Apache-2.0 */
/* One moment on the clocks that a task can read, and what is between two moments.
 *
 * The cycle counter (CCOUNT, mcycle) is the finest and a core's own: the cores leave reset at different
 * times, so the counters of two cores differ by an offset of its own in each boot (esp_cpu.h: "each CPU core
 * maintains an internal counter"). A difference that was begun on one core and ended on the other holds that
 * offset, modulo 2^32 cycles. Here the offset is measured by a handshake between the cores, so that
 * differences can be told on three clocks side by side: raw, corrected, and esp_timer, which both cores
 * share.
 */
#pragma once

#include <stdint.h>

#include "agent/bench.h"
#include "esp_attr.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "rtos/cpu.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    uint32_t cycles;
    int64_t us; /* esp_timer */
    uint8_t core;
} rtos_stamp_t;

/* The moment that a stretch begins: the cycle counter is read last. */
static inline rtos_stamp_t rtos_stamp_begin(void) {
    rtos_stamp_t stamp;
    stamp.us = esp_timer_get_time();
    stamp.core = (uint8_t)esp_cpu_get_core_id();
    stamp.cycles = esp_cpu_get_cycle_count();
    return stamp;
}

/* The moment that a stretch ends: the cycle counter is read first. A task without affinity must not move to
 * the other core between the two reads; rtos_stamp_end() is so short that it hardly ever does. */
static inline rtos_stamp_t rtos_stamp_end(void) {
    rtos_stamp_t stamp;
    stamp.cycles = esp_cpu_get_cycle_count();
    stamp.core = (uint8_t)esp_cpu_get_core_id();
    stamp.us = esp_timer_get_time();
    return stamp;
}

typedef struct {
    uint32_t cpu_mhz;
    uint32_t read_cycles; /* what reading the counter twice in a row shows at least */
    uint32_t
        stamp_us; /* what rtos_stamp_begin() directly before rtos_stamp_end() shows on esp_timer, median */
    int32_t core1_offset_cycles;  /* core 1's counter less core 0's; 0 with one core */
    uint32_t offset_error_cycles; /* the offset is known to within this: half the quickest handshake */
} rtos_clocks_t;

/* Measure all of it. Takes a few ms, with tasks of the highest priority on both cores. Tells it in the
 * environment of the burst being filled: clock_read_cycles, clock_stamp_us, core1_offset_cycles,
 * core1_offset_error_cycles. Call it from run()'s own task, after bench_samples_begin(). Returns
 * ESP_ERR_NO_MEM, ESP_ERR_TIMEOUT where the cores did not meet, ESP_ERR_NOT_SUPPORTED in an image that scales
 * its clock. */
esp_err_t rtos_clocks_calibrate(rtos_clocks_t *clocks, bench_samples_t *samples);

/* end - begin as the counters say, modulo 2^32: what a program shows that takes the counter for a clock. */
static inline uint32_t rtos_raw_cycles(rtos_stamp_t begin, rtos_stamp_t end) {
    return end.cycles - begin.cycles;
}

/* The same without the offset of the cores, and without the cost of reading; never below 0, and UINT32_MAX
 * from 4.29 s on. Good for stretches below 2^31 cycles (8.9 s at 240 MHz). */
uint32_t rtos_corrected_ns(const rtos_clocks_t *clocks, rtos_stamp_t begin, rtos_stamp_t end);

/* By esp_timer, to 1 us, the cost of reading included. */
static inline uint32_t rtos_common_us(rtos_stamp_t begin, rtos_stamp_t end) {
    return (uint32_t)(end.us - begin.us);
}

#ifdef __cplusplus
}
#endif
