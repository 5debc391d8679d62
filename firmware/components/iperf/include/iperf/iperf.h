/* SPDX-License-Identifier: Apache-2.0 */
/* An iperf 2 peer: TCP and UDP, client and server, in either direction (-R), as iperf 2.1.8 speaks it.
 *
 * One task does all of a test: it moves the bytes, keeps the intervals on the board's timer and counts, so no
 * counter is shared. docs/reference/iperf.md says what it speaks and what it was tested against.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/bench.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    IPERF_PORT = 5001, /* the board's own, when it serves */
    IPERF_TCP_LENGTH_BYTES = 16384,
    IPERF_UDP_LENGTH_BYTES = 1470,
    IPERF_UDP_RATE_BPS = 1048576,
    IPERF_UDP_LENGTH_MIN_BYTES = 16,
    IPERF_LENGTH_MAX_BYTES = 16384,
    IPERF_VERSION_SIZE = 16,
};

typedef enum { IPERF_TCP, IPERF_UDP } iperf_protocol_t;

/* What to measure. A 0 that means a default in iperf has been replaced by its value. */
typedef struct {
    iperf_protocol_t protocol;
    bool server;
    bool reverse;          /* -R: the server sends */
    uint64_t rate_bps;     /* -b; 0: as fast as it goes (TCP only) */
    uint32_t length_bytes; /* -l */
    uint64_t amount_bytes; /* -n; 0: by duration */
    uint32_t duration_ms;  /* -t */
    uint32_t omit_ms;      /* at the start: not of the steady stretch */
    uint32_t interval_us;  /* -i */
    uint32_t window_bytes; /* -w; 0: the target's own */
    uint32_t mss_bytes;    /* -M; 0: the target's own */
    bool nodelay;          /* -N */
    uint32_t timeout_ms;   /* of waiting for the peer, and of its silence */
    size_t row_capacity;   /* intervals to keep at most */
} iperf_settings_t;

/* One full interval of whoever this board is: of the receiver all, of the sender `bytes` only. */
typedef struct {
    uint32_t bytes;
    uint32_t expected_count; /* datagrams by which the highest number grew */
    uint32_t lost_count;
    uint32_t out_of_order_count;
    uint32_t jitter_us; /* RFC 3550, smoothed, at the interval's end */
    uint32_t transit_difference_mean_us;
    uint32_t transit_difference_max_us;
} iperf_row_t;

/* The server's report at the end of a UDP test. */
typedef struct {
    int64_t received_bytes;
    int64_t whole_us;
    int64_t lost_count;
    int64_t out_of_order_count;
    int64_t datagrams_count;
    int64_t jitter_us;
} iperf_report_t;

typedef struct {
    size_t row_count;
    uint32_t interval_us; /* of each row; shorter than asked for where -n was over within the first one */
    int64_t sent_bytes, received_bytes;
    int64_t sent_us;  /* from the first byte to the last, of the sender */
    int64_t whole_us; /* from the first byte to the end that both know of */
    int64_t last_partial_bytes, last_partial_us;
    int64_t steady_bytes; /* between omit_ms and duration_ms, which the CPU load on the end line is of */
    int64_t late_max_us;  /* how far behind its plan the sender was at the worst, and at the end */
    int64_t late_end_us;
    int64_t refused_count; /* UDP writes that found the stack without a buffer and were repeated */
    int64_t duplicate_count;
    int64_t ignored_count; /* datagrams that cannot be of this test */
    bool has_timestamps;   /* of the sender; without them there is no jitter */
    bool ended;            /* the receiver saw the sender's end */
    bool has_report;
    iperf_report_t report;
    int window_bytes, mss_bytes, nodelay; /* in force; -1: the target does not say */
    char peer_version[IPERF_VERSION_SIZE];
} iperf_outcome_t;

typedef struct iperf_test iperf_test_t;

/* Room for a test: a buffer of `length_bytes` and the rows. NULL without memory. */
iperf_test_t *iperf_create(const bench_run_t *run, bench_samples_t *samples,
                           const iperf_settings_t *settings);
void iperf_delete(iperf_test_t *test);

/* Run it. Returns bench_fail()'s status where it could not be measured, ESP_ERR_INVALID_STATE where the host
 * aborted it. Ends within timeout_ms of the last sign of life of the peer. Meanwhile no idle task is watched:
 * a stream may leave a core no time for its own. */
esp_err_t iperf_run(iperf_test_t *test);

const iperf_outcome_t *iperf_outcome(const iperf_test_t *test);
const iperf_row_t *iperf_row(const iperf_test_t *test, size_t index);

#ifdef __cplusplus
}
#endif
