/* SPDX-License-Identifier: Apache-2.0 */
/* The stream itself, to one side or the other. */
#include "esp_timer.h"
#include "test.h"

esp_err_t iperf_fail_silent(iperf_test_t *test, const char *what) {
    return iperf_fail(test, BENCH_OWNER_RIG, ESP_ERR_TIMEOUT, "%s for %u ms, after %lld bytes", what,
                      (unsigned)test->settings.timeout_ms, (long long)test->intervals.total_bytes);
}

esp_err_t iperf_tcp_receive(iperf_test_t *test, size_t header_bytes) {
    iperf_intervals_t *intervals = &test->intervals;
    int64_t now_us = esp_timer_get_time(), last_us = now_us;
    bool begun = header_bytes > 0;
    iperf_intervals_begin(intervals, now_us);
    iperf_intervals_add(intervals, now_us, header_bytes);
    while (!bench_aborted(test->run) && !intervals->overflow) {
        ssize_t result = recv(test->socket, test->buffer, test->settings.length_bytes, 0);
        now_us = esp_timer_get_time();
        if (result > 0) {
            if (!begun) {
                iperf_intervals_begin(intervals, now_us);
            }
            begun = true;
            last_us = now_us;
            iperf_intervals_add(intervals, now_us, (size_t)result);
        } else if (result == 0) {
            test->outcome.ended = true;
            iperf_note_received(test, now_us);
            return iperf_check_length(test, now_us);
        } else if (!iperf_again(errno)) {
            return iperf_fail_socket(test, "receiving", errno);
        } else if (iperf_stalled(test, last_us)) {
            return iperf_fail_silent(test, "fell silent");
        }
        if (iperf_overdue(test, now_us)) {
            return iperf_fail(test, BENCH_OWNER_RIG, ESP_ERR_TIMEOUT, "still sends %lld ms after its time",
                              (long long)((now_us - intervals->start_us) / 1000) -
                                  test->settings.duration_ms);
        }
    }
    return ESP_OK;
}

/* ---- sending ---- */

typedef struct {
    int64_t last_us; /* when the stack took something last */
    bool blocked;    /* it took nothing in a whole wait */
} stream_t;

/* Bytes of the next block; 0 when all is sent. */
static size_t next_block(const iperf_test_t *test, int64_t now_us) {
    const iperf_settings_t *settings = &test->settings;
    if (settings->amount_bytes == 0) {
        bool over = now_us - test->intervals.start_us >= (int64_t)settings->duration_ms * 1000;
        return over ? 0 : settings->length_bytes;
    }
    uint64_t left = settings->amount_bytes > test->intervals.total_bytes
                        ? settings->amount_bytes - test->intervals.total_bytes
                        : 0;
    return left < settings->length_bytes ? (size_t)left : settings->length_bytes;
}

/* Sends one block or a part of it.
 *
 * It blocks, so that lwIP goes on by itself as acknowledgements come in: a task that waits with select() is
 * not woken before half the buffer is free, which would be measured. But lwIP looks at the time-out of a
 * blocked send about once a second only, so a peer that has once taken nothing is waited for in slices. */
static esp_err_t send_block(iperf_test_t *test, size_t length, stream_t *stream) {
    bool ready = !stream->blocked || iperf_await_slice(test->socket, false);
    errno = EAGAIN;
    ssize_t result =
        ready ? send(test->socket, test->buffer, length, stream->blocked ? MSG_DONTWAIT : 0) : -1;
    int64_t now_us = esp_timer_get_time();
    stream->blocked = result <= 0;
    if (result > 0) {
        stream->last_us = now_us;
        iperf_intervals_add(&test->intervals, now_us, (size_t)result);
        iperf_schedule_next(&test->schedule, (uint32_t)result);
        return ESP_OK;
    }
    if (result < 0 && !iperf_again(errno)) {
        return iperf_fail_socket(test, "sending", errno);
    }
    iperf_intervals_advance(&test->intervals, now_us);
    return iperf_stalled(test, stream->last_us) ? iperf_fail_silent(test, "took no data") : ESP_OK;
}

/* Wait for the peer's close: it has read everything then. On the way may come its acknowledgement. */
static esp_err_t await_close(iperf_test_t *test) {
    const int64_t started_us = esp_timer_get_time();
    uint8_t ack[IPERF_ACK_BYTES];
    size_t read = 0;
    iperf_set_closing_time(test->socket);
    if (shutdown(test->socket, SHUT_WR) != 0) {
        return iperf_fail_socket(test, "ending the stream", errno);
    }
    while (!bench_aborted(test->run)) {
        bool whole = read == sizeof(ack);
        ssize_t result = whole ? recv(test->socket, test->buffer, test->buffer_bytes, 0)
                               : recv(test->socket, ack + read, sizeof(ack) - read, 0);
        if (result > 0) {
            read += whole ? 0 : (size_t)result;
        } else if (result == 0) {
            break;
        } else if (!iperf_again(errno)) {
            return iperf_fail_socket(test, "waiting for its close", errno);
        } else if (iperf_stalled(test, started_us)) {
            return iperf_fail_silent(test, "did not close at the end");
        }
    }
    iperf_unpack_ack(ack, read, test->outcome.peer_version);
    return ESP_OK;
}

esp_err_t iperf_tcp_send(iperf_test_t *test, size_t header_bytes) {
    iperf_intervals_t *intervals = &test->intervals;
    int64_t now_us = esp_timer_get_time();
    stream_t stream = {.last_us = now_us};
    iperf_intervals_begin(intervals, now_us);
    iperf_intervals_add(intervals, now_us, header_bytes);
    iperf_schedule_begin(&test->schedule, test->settings.rate_bps, now_us);
    for (size_t length = next_block(test, now_us);
         length > 0 && !bench_aborted(test->run) && !intervals->overflow; length = next_block(test, now_us)) {
        if (iperf_schedule_wait(&test->schedule)) {
            esp_err_t err = send_block(test, length, &stream);
            if (err != ESP_OK) {
                return err;
            }
        }
        now_us = esp_timer_get_time();
    }
    iperf_intervals_advance(intervals, now_us);
    iperf_note_sent(test, now_us);
    esp_err_t err = await_close(test);
    test->outcome.whole_us = esp_timer_get_time() - intervals->start_us;
    return err;
}
