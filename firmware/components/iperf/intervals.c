/* SPDX-License-Identifier: Apache-2.0 */
#include "intervals.h"

#include "agent/samples.h"

static void begin_steady(iperf_intervals_t *intervals) {
    intervals->steady = true;
    intervals->steady_start_bytes = intervals->total_bytes;
    bench_cpu_load_want();
    bench_cpu_load_begin();
}

void iperf_intervals_end_steady(iperf_intervals_t *intervals) {
    if (intervals->steady) {
        bench_cpu_load_end();
        intervals->steady = false;
        intervals->steady_bytes = intervals->total_bytes - intervals->steady_start_bytes;
    }
}

/* Whether the stretch begins or ends with the intervals that are closed by now. Several may be at once, after
 * a wait: it is late then by as much, with its bytes. */
static void note_steady(iperf_intervals_t *intervals, size_t closed_before) {
    size_t closed = intervals->count;
    if (closed_before < intervals->steady_until && closed >= intervals->steady_until) {
        iperf_intervals_end_steady(intervals);
    } else if (closed_before < intervals->steady_from && closed >= intervals->steady_from) {
        begin_steady(intervals);
    }
}

void iperf_intervals_begin(iperf_intervals_t *intervals, int64_t now_us) {
    intervals->count = 0;
    intervals->overflow = false;
    intervals->start_us = now_us;
    intervals->next_us = now_us + intervals->interval_us;
    intervals->interval_bytes = 0;
    intervals->total_bytes = 0;
    intervals->steady = false;
    intervals->steady_bytes = 0;
    if (intervals->steady_from == 0) {
        begin_steady(intervals);
    }
}

static void close_interval(iperf_intervals_t *intervals) {
    iperf_row_t row = {.bytes = intervals->interval_bytes > UINT32_MAX ? UINT32_MAX
                                                                       : (uint32_t)intervals->interval_bytes};
    if (intervals->arrivals != NULL) {
        iperf_arrivals_close(intervals->arrivals, &row);
    }
    intervals->rows[intervals->count++] = row;
    intervals->interval_bytes = 0;
    intervals->next_us += intervals->interval_us;
}

void iperf_intervals_advance(iperf_intervals_t *intervals, int64_t now_us) {
    const size_t closed_before = intervals->count;
    while (now_us >= intervals->next_us && !intervals->overflow) {
        if (intervals->count < intervals->capacity) {
            close_interval(intervals);
        } else {
            intervals->overflow = true;
        }
    }
    if (intervals->count > closed_before) {
        note_steady(intervals, closed_before);
    }
}

void iperf_intervals_add(iperf_intervals_t *intervals, int64_t now_us, size_t bytes) {
    iperf_intervals_advance(intervals, now_us);
    intervals->interval_bytes += bytes;
    intervals->total_bytes += bytes;
}
