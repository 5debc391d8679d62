/* SPDX-License-Identifier: Apache-2.0 */
/* With a fixed seed, the long-run behaviour of every impairment is the one its parameters state. */
#include "check.h"
#include "impairment.h"

#include <math.h>

#define FRAMES 400000

static impairment_state_t seeded(uint64_t seed) {
    impairment_state_t state;
    impairment_seed(&state, seed, "b1", 0);
    return state;
}

static void loss_has_its_rate(void) {
    impairment_t impairment = {.loss_ppm = 10000};
    impairment_state_t state = seeded(1);
    int lost = 0;
    for (int i = 0; i < FRAMES; i++) {
        lost += impairment_loss(&impairment, &state) == LOSS_RANDOM;
    }
    CHECK(fabs(lost / (double)FRAMES - 0.01) < 0.0008); /* 5 standard deviations */
}

static void equal_seeds_lose_equal_frames_and_links_differ(void) {
    impairment_t impairment = {.loss_ppm = 100000}, delayed = {.loss_ppm = 100000, .jitter_us = 5};
    impairment_state_t a = seeded(3), b = seeded(3), c = seeded(4), other;
    impairment_seed(&other, 3, "b2", 0);
    int same_seed = 0, next_seed = 0, other_link = 0;
    for (int i = 0; i < 10000; i++) {
        loss_t loss = impairment_loss(&impairment, &a);
        (void)impairment_delay_ns(&delayed, &b); /* jitter must not shift the pattern of losses */
        same_seed += loss == impairment_loss(&delayed, &b);
        next_seed += loss == impairment_loss(&impairment, &c);
        other_link += loss == impairment_loss(&impairment, &other);
    }
    CHECK(same_seed == 10000);
    CHECK(next_seed < 9000 && other_link < 9000);
}

static void bursts_have_their_mean_length_and_share(void) {
    impairment_t impairment = {.burst_start_ppm = 10000, .burst_end_ppm = 250000, .burst_loss_ppm = PPM};
    impairment_state_t state = seeded(5);
    int lost = 0, bursts = 0;
    bool before = false;
    for (int i = 0; i < FRAMES; i++) {
        bool now = impairment_loss(&impairment, &state) == LOSS_BURST;
        lost += now;
        bursts += now && !before;
        before = now;
    }
    CHECK(fabs(lost / (double)FRAMES - 0.01 / 0.26) < 0.002);
    CHECK(fabs(lost / (double)bursts - 4.0) < 0.15);
}

static void jitter_keeps_mean_and_spread(distribution_t distribution, uint64_t correlation_ppm,
                                         double spread_us) {
    impairment_t impairment = {.delay_us = 10000,
                               .jitter_us = 1000,
                               .distribution = distribution,
                               .correlation_ppm = correlation_ppm};
    impairment_state_t state = seeded(9);
    double sum = 0, squares = 0, products = 0, last = 0;
    for (int i = 0; i < FRAMES; i++) {
        double x = (double)impairment_delay_ns(&impairment, &state) / 1e3 - 10000.0;
        sum += x;
        squares += x * x;
        products += x * last;
        last = x;
    }
    double deviation = sqrt(squares / FRAMES);
    CHECK(fabs(sum / FRAMES) < 25.0);
    CHECK(fabs(deviation - spread_us) < 0.04 * spread_us);
    CHECK(fabs(products / squares - (double)correlation_ppm / PPM) < 0.03);
}

static void a_delay_is_never_negative(void) {
    impairment_t impairment = {.delay_us = 10, .jitter_us = 1000, .distribution = DISTRIBUTION_NORMAL};
    impairment_state_t state = seeded(2);
    for (int i = 0; i < 10000; i++) {
        CHECK(impairment_delay_ns(&impairment, &state) < 20000000);
    }
}

static void airtime_is_bits_over_rate(void) {
    impairment_t impairment = {.rate_kbit = 10000, .overhead_bytes = 50};
    CHECK(impairment_airtime_ns(&impairment, 1200) == 1000000);
    impairment.rate_kbit = 0;
    CHECK(impairment_airtime_ns(&impairment, 1200) == 0);
}

static void gaps_have_their_lengths_and_mean_interval(void) {
    gap_parameters_t parameters = {.interval_us = 10000000, .min_us = 1000000, .max_us = 4000000};
    gap_t gap = {.random = {.state = 11}};
    gap_configure(&gap, &parameters, 0);
    uint64_t gaps = 0, silent_ms = 0, last_end_ns = 0;
    for (uint64_t at_ms = 0; at_ms < 10000000; at_ms++) {
        uint64_t end_ns = gap_end_ns(&gap, at_ms * 1000000);
        silent_ms += end_ns > 0;
        if (end_ns > 0 && end_ns != last_end_ns) {
            uint64_t length_ns = gap.end_ns - gap.start_ns;
            CHECK(length_ns >= 1000000000u && length_ns <= 4000000000u);
            gaps++;
            last_end_ns = end_ns;
        }
    }
    CHECK(fabs((double)gaps / 800.0 - 1.0) < 0.1); /* 10 s of pause and 2.5 s of gap on average */
    CHECK(fabs((double)silent_ms / 2e6 - 1.0) < 0.1);
}

static void no_interval_means_no_gap(void) {
    gap_t gap = {0};
    gap_parameters_t off = {0};
    gap_configure(&gap, &off, 5);
    CHECK(gap_end_ns(&gap, 1000000000) == 0);
}

int main(void) {
    loss_has_its_rate();
    equal_seeds_lose_equal_frames_and_links_differ();
    bursts_have_their_mean_length_and_share();
    jitter_keeps_mean_and_spread(DISTRIBUTION_UNIFORM, 0, 1000.0 / sqrt(3.0));
    jitter_keeps_mean_and_spread(DISTRIBUTION_NORMAL, 0, 1000.0);
    jitter_keeps_mean_and_spread(DISTRIBUTION_NORMAL, 800000, 1000.0);
    jitter_keeps_mean_and_spread(DISTRIBUTION_UNIFORM, 500000, 1000.0 / sqrt(3.0));
    a_delay_is_never_negative();
    airtime_is_bits_over_rate();
    gaps_have_their_lengths_and_mean_interval();
    no_interval_means_no_gap();
    return 0;
}
