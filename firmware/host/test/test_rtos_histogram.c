/* SPDX-License-Identifier: Apache-2.0 */
/* The histogram of latencies: which bucket counts what, and what a bucket says of it. */
#include "expect.h"
#include "rtos/histogram.h"

/* Each latency is in one bucket, whose longest is no shorter, and within 0.4 % of it. */
static void every_latency_has_its_bucket(void) {
    size_t before = 0;
    for (uint32_t us = 0; us <= 1 << 20; us++) {
        size_t bucket = rtos_histogram_bucket(us);
        uint32_t longest_us = rtos_histogram_us(bucket);
        EXPECT(bucket == before || bucket == before + 1);
        EXPECT(longest_us >= us && longest_us - us <= us / 256);
        EXPECT(us >= RTOS_HISTOGRAM_EXACT_US || longest_us == us);
        EXPECT(rtos_histogram_bucket(longest_us) == bucket);
        before = bucket;
    }
}

/* The last bucket is the last there is room for, and takes whatever is longer. */
static void nothing_overflows(void) {
    EXPECT(rtos_histogram_bucket(RTOS_HISTOGRAM_MAX_US) == RTOS_HISTOGRAM_BUCKETS - 1);
    EXPECT(rtos_histogram_bucket(UINT32_MAX) == RTOS_HISTOGRAM_BUCKETS - 1);
    EXPECT(rtos_histogram_us(RTOS_HISTOGRAM_BUCKETS - 1) == RTOS_HISTOGRAM_MAX_US);
}

int main(void) {
    every_latency_has_its_bucket();
    nothing_overflows();
    return 0;
}
