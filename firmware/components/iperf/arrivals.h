/* SPDX-License-Identifier: Apache-2.0 */
/* What arrived of a UDP stream: lost, out of order, twice, and the jitter of RFC 3550. */
#pragma once

#include "iperf/iperf.h"

enum {
    IPERF_SEEN_DATAGRAMS = 256,        /* how far back a datagram that came twice is told from a late one */
    IPERF_JUMP_MAX = 16 * 1024 * 1024, /* a number further ahead is none of this stream */
};

typedef struct {
    int64_t highest;        /* number seen so far; numbers start at 1 */
    int64_t received_count; /* without those that came twice */
    int64_t out_of_order_count;
    int64_t duplicate_count;
    int64_t ignored_count;
    bool has_timestamps;
    int64_t last_transit_us;
    uint64_t jitter_x16; /* in 1/16 us, as RFC 3550, A.8 has it */
    uint64_t seen[IPERF_SEEN_DATAGRAMS / 64];

    /* Of the running interval. */
    uint32_t expected_count, interval_out_of_order_count, difference_count, difference_max_us;
    int64_t lost_count; /* negative: what an earlier interval counted as lost has come */
    uint64_t difference_sum_us;
} iperf_arrivals_t;

/* Count a datagram; `sent_us` is the sender's wall clock, -1 where unknown. False where its number cannot be
 * of this stream: it counts as ignored. */
bool iperf_arrivals_take(iperf_arrivals_t *arrivals, int64_t id, int64_t sent_us, int64_t arrived_us);

/* Fill in all of a row but its bytes, and begin the next interval. */
void iperf_arrivals_close(iperf_arrivals_t *arrivals, iperf_row_t *row);

int64_t iperf_arrivals_lost(const iperf_arrivals_t *arrivals);
uint32_t iperf_arrivals_jitter_us(const iperf_arrivals_t *arrivals);
