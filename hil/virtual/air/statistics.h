/* SPDX-License-Identifier: Apache-2.0 */
/* What a direction did: counters, and histograms of delivered delay and lateness. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* HDR-like: 1 µs steps up to 2047 µs, above that 1024 steps an octave (within 0.1 %), up to 71 minutes. */
#define HISTOGRAM_LINEAR 2048u
#define HISTOGRAM_STEPS 1024u
#define HISTOGRAM_OCTAVES 21u
#define HISTOGRAM_BUCKETS (HISTOGRAM_LINEAR + HISTOGRAM_OCTAVES * HISTOGRAM_STEPS)

typedef struct {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t min_ns;
    uint64_t max_ns;
    uint32_t buckets[HISTOGRAM_BUCKETS];
} histogram_t;

typedef struct {
    uint64_t read_frames, read_bytes;
    uint64_t delivered_frames, delivered_bytes;
    uint64_t drop_loss, drop_burst, drop_queue, drop_gap, drop_down, drop_memory;
    uint64_t duplicated_frames, reordered_frames, write_errors;
    uint64_t backlog_max_bytes;
    histogram_t delay;
    histogram_t lateness;
} statistics_t;

void histogram_add(histogram_t *histogram, uint64_t value_ns);
/* The value, in µs, that at least `permille` of 1000 values do not exceed; 0 when empty. */
uint64_t histogram_quantile_us(const histogram_t *histogram, unsigned permille);
double histogram_mean_us(const histogram_t *histogram);
void statistics_reset(statistics_t *statistics);
/* Append `key=value …` to text; returns the length written, cut at size. */
size_t statistics_format(const statistics_t *statistics, char *text, size_t size);
