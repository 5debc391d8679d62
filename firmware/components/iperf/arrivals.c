/* SPDX-License-Identifier: Apache-2.0 */
#include "arrivals.h"

#include <string.h>

static bool mark_seen(iperf_arrivals_t *arrivals, int64_t id) {
    uint64_t *word = &arrivals->seen[id % IPERF_SEEN_DATAGRAMS / 64];
    uint64_t bit = (uint64_t)1 << id % 64;
    bool before = (*word & bit) != 0;
    *word |= bit;
    return before;
}

/* Nothing between the highest number and `id` has been seen. */
static void forget_up_to(iperf_arrivals_t *arrivals, int64_t id) {
    if (id - arrivals->highest >= IPERF_SEEN_DATAGRAMS) {
        memset(arrivals->seen, 0, sizeof(arrivals->seen));
        return;
    }
    for (int64_t gone = arrivals->highest + 1; gone <= id; gone++) {
        arrivals->seen[gone % IPERF_SEEN_DATAGRAMS / 64] &= ~((uint64_t)1 << gone % 64);
    }
}

static void take_next(iperf_arrivals_t *arrivals, int64_t id) {
    forget_up_to(arrivals, id);
    arrivals->expected_count += (uint32_t)(id - arrivals->highest);
    arrivals->lost_count += id - arrivals->highest - 1;
    arrivals->highest = id;
    arrivals->received_count++;
    mark_seen(arrivals, id);
}

static void take_earlier(iperf_arrivals_t *arrivals, int64_t id) {
    bool known = arrivals->highest - id < IPERF_SEEN_DATAGRAMS;
    if (known && mark_seen(arrivals, id)) {
        arrivals->duplicate_count++;
        return;
    }
    arrivals->received_count++;
    arrivals->lost_count--;
    arrivals->out_of_order_count++;
    arrivals->interval_out_of_order_count++;
}

/* The two clocks need not agree: only the difference of two transit times counts. The first datagram has
 * none, so that the clocks' distance does not get into the jitter. */
static void take_transit(iperf_arrivals_t *arrivals, int64_t transit_us) {
    int64_t difference_us = transit_us - arrivals->last_transit_us;
    bool first = !arrivals->has_timestamps;
    arrivals->last_transit_us = transit_us;
    arrivals->has_timestamps = true;
    if (first) {
        return;
    }
    uint64_t size_us = (uint64_t)(difference_us < 0 ? -difference_us : difference_us);
    size_us = size_us > UINT32_MAX ? UINT32_MAX : size_us;
    arrivals->jitter_x16 += size_us - ((arrivals->jitter_x16 + 8) >> 4);
    arrivals->difference_sum_us += size_us;
    arrivals->difference_count++;
    if (size_us > arrivals->difference_max_us) {
        arrivals->difference_max_us = (uint32_t)size_us;
    }
}

bool iperf_arrivals_take(iperf_arrivals_t *arrivals, int64_t id, int64_t sent_us, int64_t arrived_us) {
    if (id < 1 || id - arrivals->highest > IPERF_JUMP_MAX) {
        arrivals->ignored_count++;
        return false;
    }
    if (id > arrivals->highest) {
        take_next(arrivals, id);
    } else {
        take_earlier(arrivals, id);
    }
    if (sent_us >= 0) {
        take_transit(arrivals, arrived_us - sent_us);
    }
    return true;
}

void iperf_arrivals_close(iperf_arrivals_t *arrivals, iperf_row_t *row) {
    uint64_t count = arrivals->difference_count;
    row->expected_count = arrivals->expected_count;
    row->lost_count = arrivals->lost_count > 0 ? (uint32_t)arrivals->lost_count : 0;
    row->out_of_order_count = arrivals->interval_out_of_order_count;
    row->jitter_us = iperf_arrivals_jitter_us(arrivals);
    row->transit_difference_mean_us = count > 0 ? (uint32_t)(arrivals->difference_sum_us / count) : 0;
    row->transit_difference_max_us = arrivals->difference_max_us;
    arrivals->expected_count = 0;
    arrivals->lost_count = arrivals->lost_count < 0 ? arrivals->lost_count : 0; /* so that the sum is right */
    arrivals->interval_out_of_order_count = 0;
    arrivals->difference_sum_us = 0;
    arrivals->difference_count = 0;
    arrivals->difference_max_us = 0;
}

int64_t iperf_arrivals_lost(const iperf_arrivals_t *arrivals) {
    return arrivals->highest - arrivals->received_count;
}

uint32_t iperf_arrivals_jitter_us(const iperf_arrivals_t *arrivals) {
    uint64_t jitter_us = arrivals->jitter_x16 >> 4;
    return jitter_us > UINT32_MAX ? UINT32_MAX : (uint32_t)jitter_us;
}
