/* SPDX-License-Identifier: Apache-2.0 */
/* The sender of a UDP stream: open loop, each datagram planned from the first one's time. */
#include "esp_timer.h"
#include "test.h"

enum {
    FIN_COUNT = 10,
    FIN_MS = 250,
    HEADERS_BYTES = IPERF_DATAGRAM_HEADER_BYTES + IPERF_CLIENT_HEADER_BYTES,
};

typedef struct {
    iperf_test_t *test;
    int64_t wall_offset_us; /* from the board's timer to the wall clock, one value for the whole test */
    int64_t id;             /* of the next datagram */
    int64_t last_us;        /* when the stack took a datagram last */
} sender_t;

/* The stack has no buffer free: more is offered than the link takes. */
static bool is_full(int error) {
    return error == ENOMEM || error == ENOBUFS || iperf_again(error);
}

/* Write a datagram of this number. False where it was not taken; then errno says why. */
static bool write_datagram(sender_t *sender, int64_t id, size_t length) {
    iperf_test_t *test = sender->test;
    iperf_pack_datagram(test->buffer, id, esp_timer_get_time() + sender->wall_offset_us);
    return send(test->socket, test->buffer, length, 0) >= 0;
}

/* Bytes of the next datagram; 0 when all is sent. The first one has the whole header, however short the
 * others are. */
static size_t next_length(const sender_t *sender, int64_t now_us) {
    const iperf_test_t *test = sender->test;
    const iperf_settings_t *settings = &test->settings;
    uint64_t sent_bytes = test->intervals.total_bytes;
    size_t length = settings->length_bytes;
    if (settings->amount_bytes == 0) {
        length = now_us - test->intervals.start_us >= (int64_t)settings->duration_ms * 1000 ? 0 : length;
    } else {
        uint64_t left = settings->amount_bytes > sent_bytes ? settings->amount_bytes - sent_bytes : 0;
        size_t tail =
            left > 0 && left < IPERF_DATAGRAM_HEADER_BYTES ? IPERF_DATAGRAM_HEADER_BYTES : (size_t)left;
        length = left < length ? tail : length;
    }
    bool header = sender->id == 1 && !settings->server && length > 0 && length < HEADERS_BYTES;
    return header ? HEADERS_BYTES : length;
}

static esp_err_t send_next(sender_t *sender, size_t length) {
    iperf_test_t *test = sender->test;
    bool taken = write_datagram(sender, sender->id, length);
    int error = taken ? 0 : errno;
    int64_t now_us = esp_timer_get_time();
    if (taken) {
        sender->id++;
        sender->last_us = now_us;
        iperf_intervals_add(&test->intervals, now_us, length);
        iperf_schedule_next(&test->schedule, (uint32_t)length);
        return ESP_OK;
    }
    iperf_intervals_advance(&test->intervals, now_us);
    if (!is_full(error)) {
        return iperf_fail_socket(test, "sending", error);
    }
    if (iperf_stalled(test, sender->last_us)) {
        return iperf_fail(test, BENCH_OWNER_RIG, ESP_ERR_TIMEOUT,
                          "cannot be sent to: the link took nothing for %u ms",
                          (unsigned)test->settings.timeout_ms);
    }
    test->outcome.refused_count++;
    iperf_schedule_rest(&test->schedule);
    return ESP_OK;
}

/* ---- the end ---- */

static esp_err_t check_report(iperf_test_t *test, int64_t last_id) {
    const char *problem = iperf_report_problem(&test->outcome.report, last_id);
    test->outcome.has_report = problem == NULL;
    return problem == NULL ? ESP_OK
                           : iperf_fail(test, BENCH_OWNER_RIG, ESP_ERR_INVALID_RESPONSE,
                                        "sent a report that %s (lost %lld of %lld)", problem,
                                        (long long)test->outcome.report.lost_count,
                                        (long long)test->outcome.report.datagrams_count);
}

/* Wait a quarter of a second for the report. Sets errno to EAGAIN where none came. */
static bool read_report(iperf_test_t *test) {
    const int64_t started_us = esp_timer_get_time();
    do {
        ssize_t result = recv(test->socket, test->buffer, test->buffer_bytes, 0);
        if (result < 0 && !iperf_again(errno)) {
            return false;
        }
        if (result > 0 && iperf_unpack_report(test->buffer, (size_t)result, &test->outcome.report)) {
            return true;
        }
    } while (!bench_aborted(test->run) && esp_timer_get_time() - started_us < FIN_MS * 1000);
    errno = EAGAIN;
    return false;
}

/* Say that it is over, each time with the next number, until the server reports. */
static esp_err_t await_report(sender_t *sender) {
    iperf_test_t *test = sender->test;
    int error = 0;
    for (int count = 0; count < FIN_COUNT && !bench_aborted(test->run); count++) {
        if (count > 0) {
            write_datagram(sender, -++sender->id, test->settings.length_bytes);
        }
        if (read_report(test)) {
            test->outcome.whole_us = test->outcome.report.whole_us;
            return check_report(test, sender->id);
        }
        error = iperf_again(errno) ? error : errno;
    }
    if (error != 0) {
        return iperf_fail_socket(test, "waiting for its report", error);
    }
    return iperf_fail(test, BENCH_OWNER_RIG, ESP_ERR_TIMEOUT,
                      "sent no report, though asked %d times every %d ms", FIN_COUNT, FIN_MS);
}

/* The last datagram counts as sent, as in iperf. One that finds the stack full goes with the next try. */
static void send_last(sender_t *sender) {
    iperf_test_t *test = sender->test;
    for (int count = 0;
         count < FIN_COUNT && !write_datagram(sender, -sender->id, test->settings.length_bytes); count++) {
        iperf_schedule_rest(&test->schedule);
    }
    iperf_intervals_add(&test->intervals, esp_timer_get_time(), test->settings.length_bytes);
}

static void begin(sender_t *sender) {
    iperf_test_t *test = sender->test;
    int64_t now_us = esp_timer_get_time();
    if (!test->settings.server) { /* it stays in the buffer, so each datagram carries it */
        iperf_pack_client_header(test->buffer + IPERF_DATAGRAM_HEADER_BYTES, &test->settings,
                                 bench_provision(test->run)->peer_port);
    }
    sender->last_us = now_us;
    iperf_intervals_begin(&test->intervals, now_us);
    iperf_schedule_begin(&test->schedule, test->settings.rate_bps, now_us);
}

esp_err_t iperf_udp_send(iperf_test_t *test) {
    sender_t sender = {.test = test, .wall_offset_us = iperf_wall_offset_us(), .id = 1};
    begin(&sender);
    int64_t now_us = test->intervals.start_us;
    for (size_t length = next_length(&sender, now_us);
         length > 0 && !bench_aborted(test->run) && !test->intervals.overflow;
         length = next_length(&sender, now_us)) {
        if (iperf_schedule_wait(&test->schedule)) {
            esp_err_t err = send_next(&sender, length);
            if (err != ESP_OK) {
                return err;
            }
        }
        now_us = esp_timer_get_time();
    }
    iperf_intervals_advance(&test->intervals, now_us);
    int64_t sent_us = now_us;
    send_last(&sender);
    iperf_note_sent(test, sent_us);
    test->outcome.whole_us = test->outcome.sent_us;
    return test->settings.server ? ESP_OK : await_report(&sender);
}
