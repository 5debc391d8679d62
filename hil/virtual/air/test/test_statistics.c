/* SPDX-License-Identifier: Apache-2.0 */
/* The histogram is exact to 1 µs up to 2 ms and within 0.1 % above. */
#include "check.h"
#include "statistics.h"

#include <string.h>

static histogram_t s_histogram;

static void small_values_are_exact(void) {
    memset(&s_histogram, 0, sizeof(s_histogram));
    for (uint64_t us = 1; us <= 1000; us++) {
        histogram_add(&s_histogram, us * 1000 + 999);
    }
    CHECK(histogram_quantile_us(&s_histogram, 500) == 500);
    CHECK(histogram_quantile_us(&s_histogram, 990) == 990);
    CHECK(histogram_quantile_us(&s_histogram, 1000) == 1000);
    CHECK(s_histogram.min_ns == 1999 && s_histogram.count == 1000);
}

static void large_values_are_within_a_thousandth(void) {
    for (uint64_t us = 2047; us < 3000000000; us = us * 17 / 16 + 1) {
        memset(&s_histogram, 0, sizeof(s_histogram));
        histogram_add(&s_histogram, us * 1000);
        histogram_add(&s_histogram, UINT64_C(4000000000) * 1000);
        uint64_t got = histogram_quantile_us(&s_histogram, 500);
        CHECK(got >= us && got - us <= us / 1000);
    }
}

static void beyond_the_range_is_counted_in_the_last_bucket(void) {
    memset(&s_histogram, 0, sizeof(s_histogram));
    histogram_add(&s_histogram, UINT64_C(10000000000) * 1000);
    CHECK(s_histogram.buckets[HISTOGRAM_BUCKETS - 1] == 1);
    CHECK(s_histogram.max_ns == UINT64_C(10000000000) * 1000);
}

static void an_empty_histogram_is_all_zero(void) {
    memset(&s_histogram, 0, sizeof(s_histogram));
    CHECK(histogram_quantile_us(&s_histogram, 990) == 0);
    CHECK(histogram_mean_us(&s_histogram) <= 0.0);
}

int main(void) {
    small_values_are_exact();
    large_values_are_within_a_thousandth();
    beyond_the_range_is_counted_in_the_last_bucket();
    an_empty_histogram_is_all_zero();
    return 0;
}
