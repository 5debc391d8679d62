/* SPDX-License-Identifier: Apache-2.0 */
/* The receiver of a UDP stream. */
#include "esp_timer.h"
#include "test.h"

enum { QUIET_US = 1000000 };

typedef struct {
    iperf_test_t *test;
    int64_t wall_offset_us; /* from the board's timer to the wall clock, one value for the whole test */
    int64_t last_us;        /* when something came last */
} receiver_t;

/* Counts a datagram. True when it is the last one. */
static bool take(receiver_t *receiver, size_t length, int64_t now_us) {
    iperf_test_t *test = receiver->test;
    if (length < IPERF_DATAGRAM_HEADER_BYTES) {
        test->arrivals.ignored_count++;
        return false;
    }
    iperf_datagram_t datagram = iperf_unpack_datagram(test->buffer, test->header.id_is_64_bit);
    bool last = datagram.id < 0;
    iperf_intervals_advance(&test->intervals, now_us);
    if (!iperf_arrivals_take(&test->arrivals, last ? -datagram.id : datagram.id, datagram.sent_us,
                             now_us + receiver->wall_offset_us)) {
        return false;
    }
    receiver->last_us = now_us;
    iperf_intervals_add(&test->intervals, now_us, length);
    return last;
}

static esp_err_t finish(receiver_t *receiver, bool ended, int64_t end_us) {
    iperf_test_t *test = receiver->test;
    test->outcome.ended = ended;
    iperf_note_received(test, end_us);
    return iperf_check_length(test, end_us);
}

/* Nothing comes: whether that is the end of a sender that does not say so, or of a lost one. */
static bool is_over(const receiver_t *receiver, int64_t now_us) {
    const iperf_test_t *test = receiver->test;
    const iperf_settings_t *settings = &test->settings;
    if (settings->amount_bytes > 0) {
        return test->intervals.total_bytes >= settings->amount_bytes &&
               now_us - receiver->last_us >= QUIET_US;
    }
    int64_t time_us = ((int64_t)settings->duration_ms + IPERF_SLOP_MS) * 1000;
    return now_us - test->intervals.start_us >= time_us && now_us - receiver->last_us >= QUIET_US;
}

static esp_err_t check_silence(receiver_t *receiver, int64_t now_us) {
    iperf_test_t *test = receiver->test;
    iperf_intervals_advance(&test->intervals, now_us);
    if (!iperf_stalled(test, receiver->last_us)) {
        return ESP_OK;
    }
    return iperf_fail(test, BENCH_OWNER_RIG, ESP_ERR_TIMEOUT, "fell silent for %u ms, after %lld datagrams",
                      (unsigned)test->settings.timeout_ms, (long long)test->arrivals.received_count);
}

static esp_err_t check_time(iperf_test_t *test, int64_t now_us) {
    return iperf_overdue(test, now_us)
               ? iperf_fail(test, BENCH_OWNER_RIG, ESP_ERR_TIMEOUT, "still sends %u ms after its time",
                            (unsigned)test->settings.timeout_ms + IPERF_SLOP_MS)
               : ESP_OK;
}

esp_err_t iperf_udp_receive(iperf_test_t *test, size_t first_bytes) {
    int64_t now_us = esp_timer_get_time();
    receiver_t receiver = {.test = test, .wall_offset_us = iperf_wall_offset_us(), .last_us = now_us};
    iperf_intervals_begin(&test->intervals, now_us);
    bool last = take(&receiver, first_bytes, now_us);
    esp_err_t err = ESP_OK;
    while (err == ESP_OK && !last && !bench_aborted(test->run) && !test->intervals.overflow) {
        ssize_t result = recv(test->socket, test->buffer, test->buffer_bytes, 0);
        now_us = esp_timer_get_time();
        if (result == (ssize_t)test->buffer_bytes) {
            return iperf_fail(test, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_SIZE,
                              "sends longer datagrams than the case's length_bytes=%u",
                              (unsigned)test->settings.length_bytes);
        }
        if (result >= 0) {
            last = take(&receiver, (size_t)result, now_us);
            err = check_time(test, now_us);
        } else if (!iperf_again(errno)) {
            err = iperf_fail_socket(test, "receiving", errno);
        } else if (is_over(&receiver, now_us)) {
            return finish(&receiver, false, receiver.last_us);
        } else {
            err = check_silence(&receiver, now_us);
        }
    }
    return err != ESP_OK || !last ? err : finish(&receiver, true, now_us);
}
