/* SPDX-License-Identifier: Apache-2.0 */
/* How often each latency was seen. Up to 511 us to the microsecond, beyond that to less than 0.4 % (256
 * buckets for each doubling), so that a long run needs no more room than a short one and nothing overflows.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    RTOS_HISTOGRAM_EXACT_US = 512,
    RTOS_HISTOGRAM_MAX_US = (1 << 24) - 1, /* 16.8 s; what is longer counts there */
    RTOS_HISTOGRAM_BUCKETS = 512 + 15 * 256,
};

typedef struct {
    uint32_t counts[RTOS_HISTOGRAM_BUCKETS];
} rtos_histogram_t;

size_t rtos_histogram_bucket(uint32_t latency_us);

/* The longest latency that a bucket counts. */
uint32_t rtos_histogram_us(size_t bucket);

#ifdef __cplusplus
}
#endif
