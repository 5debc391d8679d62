/* SPDX-License-Identifier: Apache-2.0 */
#include "statistics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static size_t bucket_of(uint64_t value_us) {
    if (value_us < HISTOGRAM_LINEAR) {
        return (size_t)value_us;
    }
    if (value_us > UINT32_MAX) {
        return HISTOGRAM_BUCKETS - 1;
    }
    unsigned octave = 63u - (unsigned)__builtin_clzll(value_us) - 10u; /* 1 for 2048..4095 µs */
    return HISTOGRAM_LINEAR + (octave - 1) * HISTOGRAM_STEPS +
           (size_t)((value_us >> octave) - HISTOGRAM_STEPS);
}

static uint64_t highest_of(size_t bucket) {
    if (bucket < HISTOGRAM_LINEAR) {
        return bucket;
    }
    size_t beyond = bucket - HISTOGRAM_LINEAR;
    unsigned octave = (unsigned)(beyond / HISTOGRAM_STEPS) + 1;
    return ((beyond % HISTOGRAM_STEPS + HISTOGRAM_STEPS + 1) << octave) - 1;
}

void histogram_add(histogram_t *histogram, uint64_t value_ns) {
    if (histogram->count == 0 || value_ns < histogram->min_ns) {
        histogram->min_ns = value_ns;
    }
    if (value_ns > histogram->max_ns) {
        histogram->max_ns = value_ns;
    }
    histogram->count++;
    histogram->sum_ns += value_ns;
    histogram->buckets[bucket_of(value_ns / 1000)]++;
}

uint64_t histogram_quantile_us(const histogram_t *histogram, unsigned permille) {
    uint64_t rank = (histogram->count * permille + 999) / 1000;
    uint64_t seen = 0;
    for (size_t bucket = 0; bucket < HISTOGRAM_BUCKETS && rank > 0; bucket++) {
        seen += histogram->buckets[bucket];
        if (seen >= rank) {
            uint64_t highest_us = highest_of(bucket);
            uint64_t max_us = histogram->max_ns / 1000;
            return highest_us < max_us ? highest_us : max_us;
        }
    }
    return 0;
}

double histogram_mean_us(const histogram_t *histogram) {
    return histogram->count ? (double)histogram->sum_ns / 1e3 / (double)histogram->count : 0.0;
}

void statistics_reset(statistics_t *statistics) {
    memset(statistics, 0, sizeof(*statistics));
}

static size_t format_histogram(const histogram_t *h, const char *name, char *text, size_t size) {
    int length = snprintf(text, size,
                          " %s_count=%" PRIu64 " %s_mean_us=%.3f %s_min_us=%.3f %s_p50_us=%" PRIu64
                          " %s_p95_us=%" PRIu64 " %s_p99_us=%" PRIu64 " %s_max_us=%.3f",
                          name, h->count, name, histogram_mean_us(h), name, (double)h->min_ns / 1e3, name,
                          histogram_quantile_us(h, 500), name, histogram_quantile_us(h, 950), name,
                          histogram_quantile_us(h, 990), name, (double)h->max_ns / 1e3);
    return length < 0 || (size_t)length >= size ? size : (size_t)length;
}

size_t statistics_format(const statistics_t *s, char *text, size_t size) {
    int counters = snprintf(
        text, size,
        "read_frames=%" PRIu64 " read_bytes=%" PRIu64 " delivered_frames=%" PRIu64 " delivered_bytes=%" PRIu64
        " drop_loss=%" PRIu64 " drop_burst=%" PRIu64 " drop_queue=%" PRIu64 " drop_gap=%" PRIu64
        " drop_down=%" PRIu64 " drop_memory=%" PRIu64 " duplicated_frames=%" PRIu64
        " reordered_frames=%" PRIu64 " write_errors=%" PRIu64 " backlog_max_bytes=%" PRIu64,
        s->read_frames, s->read_bytes, s->delivered_frames, s->delivered_bytes, s->drop_loss, s->drop_burst,
        s->drop_queue, s->drop_gap, s->drop_down, s->drop_memory, s->duplicated_frames, s->reordered_frames,
        s->write_errors, s->backlog_max_bytes);
    size_t length = counters < 0 || (size_t)counters >= size ? size : (size_t)counters;
    length += format_histogram(&s->delay, "delay", text + length, size - length);
    return length + format_histogram(&s->lateness, "lateness", text + length, size - length);
}
