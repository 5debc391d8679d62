/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/histogram.h"

enum { PER_DOUBLING = 256, EXACT_BITS = 9 };

size_t rtos_histogram_bucket(uint32_t latency_us) {
    if (latency_us < RTOS_HISTOGRAM_EXACT_US) {
        return latency_us;
    }
    if (latency_us > RTOS_HISTOGRAM_MAX_US) {
        latency_us = RTOS_HISTOGRAM_MAX_US;
    }
    const uint32_t shift = 32 - EXACT_BITS - (uint32_t)__builtin_clz(latency_us); /* 1 from 512 us on */
    return RTOS_HISTOGRAM_EXACT_US + (shift - 1) * PER_DOUBLING + ((latency_us >> shift) - PER_DOUBLING);
}

uint32_t rtos_histogram_us(size_t bucket) {
    if (bucket < RTOS_HISTOGRAM_EXACT_US) {
        return (uint32_t)bucket;
    }
    const size_t beyond = bucket - RTOS_HISTOGRAM_EXACT_US;
    const size_t shift = beyond / PER_DOUBLING + 1;
    return (uint32_t)(((PER_DOUBLING + beyond % PER_DOUBLING + 1) << shift) - 1);
}
