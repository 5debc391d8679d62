/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes by interval, on the board's timer: an interval's length is exact, it does not drift. */
#pragma once

#include "arrivals.h"

typedef struct {
    iperf_row_t *rows;
    size_t capacity, count;
    bool overflow; /* more intervals passed than there is room for */
    uint32_t interval_us;
    int64_t start_us, next_us;
    uint64_t interval_bytes, total_bytes;
    size_t steady_from, steady_until; /* the intervals that count: their CPU load is told, and their bytes */
    bool steady;
    uint64_t steady_start_bytes, steady_bytes;
    iperf_arrivals_t *arrivals; /* of a UDP receiver; else NULL */
} iperf_intervals_t;

void iperf_intervals_begin(iperf_intervals_t *intervals, int64_t now_us);

/* Close all intervals that have passed. */
void iperf_intervals_advance(iperf_intervals_t *intervals, int64_t now_us);

/* The steady stretch is over, if it is not: what follows is none of it. */
void iperf_intervals_end_steady(iperf_intervals_t *intervals);

/* Close what has passed, then count these bytes. */
void iperf_intervals_add(iperf_intervals_t *intervals, int64_t now_us, size_t bytes);
