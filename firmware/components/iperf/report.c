/* SPDX-License-Identifier: Apache-2.0 */
/* The server's report at the end of a UDP test: a datagram header of zeros, a first part with the lower
 * halves of the counts, transit times (only for --enhanced, here zeros), the upper halves. */
#include <string.h>

#include "bytes.h"
#include "messages.h"

#define FLAGS_VALID 0x80000000U
#define FLAGS_64_BIT 0x08000000U

/* Offsets. */
enum {
    FLAGS = 16,
    BYTES_UPPER = 20,
    BYTES_LOWER = 24,
    STOP_SECONDS = 28,
    STOP_MICROSECONDS = 32,
    LOST = 36,
    OUT_OF_ORDER = 40,
    DATAGRAMS = 44,
    JITTER_SECONDS = 48,
    JITTER_MICROSECONDS = 52,
    LOST_UPPER = 116,
    OUT_OF_ORDER_UPPER = 120,
    DATAGRAMS_UPPER = 124,
};

static void put_count(uint8_t *out, size_t lower, size_t upper, int64_t count) {
    put32(out, lower, (uint32_t)count);
    put32(out, upper, (uint32_t)((uint64_t)count >> 32));
}

static void put_time(uint8_t *out, size_t seconds, size_t microseconds, int64_t time_us) {
    put32(out, seconds, (uint32_t)(time_us / 1000000));
    put32(out, microseconds, (uint32_t)(time_us % 1000000));
}

void iperf_pack_report(uint8_t *out, const iperf_report_t *report) {
    memset(out, 0, IPERF_REPORT_BYTES);
    put32(out, FLAGS, FLAGS_VALID | FLAGS_64_BIT);
    put_count(out, BYTES_LOWER, BYTES_UPPER, report->received_bytes);
    put_time(out, STOP_SECONDS, STOP_MICROSECONDS, report->whole_us);
    put_count(out, LOST, LOST_UPPER, report->lost_count);
    put_count(out, OUT_OF_ORDER, OUT_OF_ORDER_UPPER, report->out_of_order_count);
    put_count(out, DATAGRAMS, DATAGRAMS_UPPER, report->datagrams_count);
    put_time(out, JITTER_SECONDS, JITTER_MICROSECONDS, report->jitter_us);
}

static int64_t get_count(const uint8_t *in, size_t length, size_t lower, size_t upper) {
    bool whole = (get32(in, FLAGS) & FLAGS_64_BIT) != 0 && length >= IPERF_REPORT_BYTES;
    return whole ? join(get32(in, upper), get32(in, lower)) : (int32_t)get32(in, lower);
}

/* Signed, so that a negative one shows as such. */
static int64_t get_time_us(const uint8_t *in, size_t seconds, size_t microseconds) {
    return (int64_t)(int32_t)get32(in, seconds) * 1000000 + (int32_t)get32(in, microseconds);
}

bool iperf_unpack_report(const uint8_t *in, size_t length, iperf_report_t *report) {
    if (length < IPERF_REPORT_MIN_BYTES || (get32(in, FLAGS) & FLAGS_VALID) == 0) {
        return false;
    }
    *report = (iperf_report_t){
        .received_bytes = join(get32(in, BYTES_UPPER), get32(in, BYTES_LOWER)),
        .whole_us = get_time_us(in, STOP_SECONDS, STOP_MICROSECONDS),
        .lost_count = get_count(in, length, LOST, LOST_UPPER),
        .out_of_order_count = get_count(in, length, OUT_OF_ORDER, OUT_OF_ORDER_UPPER),
        .datagrams_count = get_count(in, length, DATAGRAMS, DATAGRAMS_UPPER),
        .jitter_us = get_time_us(in, JITTER_SECONDS, JITTER_MICROSECONDS),
    };
    return true;
}

const char *iperf_report_problem(const iperf_report_t *report, int64_t last_id) {
    if (report->received_bytes < 0 || report->whole_us < 0 || report->lost_count < 0 ||
        report->out_of_order_count < 0 || report->datagrams_count < 0 || report->jitter_us < 0) {
        return "has negative counts or times";
    }
    if (report->datagrams_count > last_id) {
        return "counts more datagrams than were sent: it is another test's";
    }
    if (report->lost_count > report->datagrams_count) {
        return "lost more datagrams than it expected";
    }
    return NULL;
}
