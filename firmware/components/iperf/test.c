/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esp_timer.h"
#include "load/idle_watch.h"

/* A datagram longer than the buffer would be cut unseen: one byte more tells. */
enum { RECEIVE_MIN_BYTES = 2048, SENTENCE_SIZE = 220 };

bool iperf_sends(const iperf_settings_t *settings) {
    return settings->server == settings->reverse;
}

int64_t iperf_wall_offset_us(void) {
    return bench_wall_clock_us() - esp_timer_get_time();
}

bool iperf_stalled(const iperf_test_t *test, int64_t since_us) {
    return esp_timer_get_time() - since_us >= (int64_t)test->settings.timeout_ms * 1000;
}

bool iperf_overdue(const iperf_test_t *test, int64_t now_us) {
    const iperf_settings_t *settings = &test->settings;
    int64_t limit_ms = (int64_t)settings->duration_ms + IPERF_SLOP_MS + settings->timeout_ms;
    return settings->amount_bytes == 0 && now_us - test->intervals.start_us >= limit_ms * 1000;
}

static bool allocate(iperf_test_t *test) {
    size_t wanted = test->settings.length_bytes + 1;
    test->buffer_bytes = wanted > RECEIVE_MIN_BYTES ? wanted : RECEIVE_MIN_BYTES;
    test->buffer = malloc(test->buffer_bytes);
    test->intervals.capacity = test->settings.row_capacity;
    test->intervals.rows = calloc(test->intervals.capacity, sizeof(iperf_row_t));
    return test->buffer != NULL && test->intervals.rows != NULL &&
           iperf_schedule_create(&test->schedule) == ESP_OK;
}

iperf_test_t *iperf_create(const bench_run_t *run, bench_samples_t *samples,
                           const iperf_settings_t *settings) {
    iperf_test_t *test = calloc(1, sizeof(*test));
    if (test == NULL) {
        return NULL;
    }
    test->run = run;
    test->samples = samples;
    test->settings = *settings;
    test->socket = -1;
    if (!allocate(test)) {
        iperf_delete(test);
        return NULL;
    }
    for (size_t i = 0; i < test->buffer_bytes; i++) {
        test->buffer[i] = (uint8_t)('0' + i % 10); /* iperf's own pattern */
    }
    test->intervals.interval_us = settings->interval_us;
    test->intervals.steady_from = settings->omit_ms * 1000 / settings->interval_us;
    if (settings->amount_bytes == 0) {
        test->intervals.steady_until =
            (size_t)((uint64_t)settings->duration_ms * 1000 / settings->interval_us);
    }
    test->outcome = (iperf_outcome_t){.window_bytes = -1, .mss_bytes = -1, .nodelay = -1};
    return test;
}

void iperf_delete(iperf_test_t *test) {
    if (test != NULL) {
        iperf_schedule_delete(&test->schedule);
        free(test->intervals.rows);
        free(test->buffer);
        free(test);
    }
}

const iperf_outcome_t *iperf_outcome(const iperf_test_t *test) {
    return &test->outcome;
}

const iperf_row_t *iperf_row(const iperf_test_t *test, size_t index) {
    return &test->intervals.rows[index];
}

esp_err_t iperf_fail(iperf_test_t *test, bench_owner_t owner, esp_err_t status, const char *format, ...) {
    char sentence[SENTENCE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    return bench_fail(test->samples, owner, status, "iperf peer %s %s", test->peer, sentence);
}

esp_err_t iperf_fail_socket(iperf_test_t *test, const char *doing, int error) {
    int64_t bytes = (int64_t)test->intervals.total_bytes;
    switch (error) {
    case ECONNRESET:
    case EPIPE:
    case ENOTCONN:
    case ECONNABORTED:
    case ETIMEDOUT:
        return iperf_fail(test, BENCH_OWNER_RIG, ESP_ERR_INVALID_RESPONSE,
                          "broke the connection off, %s, after %lld bytes: %s", doing, (long long)bytes,
                          strerror(error));
    case ECONNREFUSED:
        return iperf_fail(test, BENCH_OWNER_RIG, ESP_ERR_NOT_FOUND,
                          "refused, %s, after %lld bytes: nobody listens there", doing, (long long)bytes);
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
        return iperf_fail(test, BENCH_OWNER_RIG, ESP_ERR_NOT_FOUND,
                          "is unreachable, %s, after %lld bytes: %s", doing, (long long)bytes,
                          strerror(error));
    default:
        return iperf_fail(test, BENCH_OWNER_FIRMWARE, ESP_FAIL, "%s failed after %lld bytes: %s (errno %d)",
                          doing, (long long)bytes, strerror(error), error);
    }
}

esp_err_t iperf_check_header(iperf_test_t *test, iperf_header_verdict_t verdict) {
    const iperf_client_header_t *header = &test->header;
    if (verdict == IPERF_HEADER_GARBAGE) {
        return iperf_fail(test, BENCH_OWNER_RIG, ESP_ERR_INVALID_RESPONSE, "%s", header->problem);
    }
    if (verdict == IPERF_HEADER_NONE) {
        return test->settings.reverse ? iperf_fail(test, BENCH_OWNER_CONFIGURATION, ESP_ERR_NOT_SUPPORTED,
                                                   "did not ask for -R, the case has reverse=1")
                                      : ESP_OK;
    }
    memcpy(test->outcome.peer_version, header->version, sizeof(header->version));
    const char *problem =
        verdict == IPERF_HEADER_REFUSED ? header->problem : iperf_disagreement(header, &test->settings);
    return problem == NULL
               ? ESP_OK
               : iperf_fail(test, BENCH_OWNER_CONFIGURATION, ESP_ERR_NOT_SUPPORTED, "%s", problem);
}

void iperf_note_received(iperf_test_t *test, int64_t end_us) {
    iperf_outcome_t *outcome = &test->outcome;
    iperf_intervals_t *intervals = &test->intervals;
    iperf_intervals_advance(intervals, end_us);
    iperf_intervals_end_steady(intervals);
    outcome->received_bytes = (int64_t)intervals->total_bytes;
    outcome->whole_us = end_us - intervals->start_us;
    outcome->duplicate_count = test->arrivals.duplicate_count;
    outcome->ignored_count = test->arrivals.ignored_count;
    outcome->has_timestamps = test->arrivals.has_timestamps;
}

void iperf_note_sent(iperf_test_t *test, int64_t end_us) {
    iperf_outcome_t *outcome = &test->outcome;
    iperf_intervals_end_steady(&test->intervals);
    outcome->sent_bytes = (int64_t)test->intervals.total_bytes;
    outcome->sent_us = end_us - test->intervals.start_us;
    outcome->late_max_us = test->schedule.late_max_us;
    outcome->late_end_us = test->schedule.late_us;
}

/* A tenth and half a second are left to the peer: its clock starts a little later or earlier than this one.
 */
esp_err_t iperf_check_length(iperf_test_t *test, int64_t end_us) {
    const iperf_settings_t *settings = &test->settings;
    int64_t bytes = (int64_t)test->intervals.total_bytes,
            length_ms = (end_us - test->intervals.start_us) / 1000;
    if (settings->amount_bytes > 0 && settings->protocol == IPERF_TCP &&
        (uint64_t)bytes < settings->amount_bytes) {
        return iperf_fail(test, BENCH_OWNER_RIG, ESP_ERR_INVALID_SIZE, "closed after %lld bytes of %lld",
                          (long long)bytes, (long long)settings->amount_bytes);
    }
    if (settings->amount_bytes == 0 && length_ms < (int64_t)settings->duration_ms * 9 / 10 - 500) {
        return iperf_fail(test, BENCH_OWNER_RIG, ESP_ERR_INVALID_SIZE, "ended after %lld ms of %u ms",
                          (long long)length_ms, (unsigned)settings->duration_ms);
    }
    return ESP_OK;
}

/* What -n was done with within one interval is a row of its own length, not only a rest. */
static void keep_short_test(iperf_test_t *test) {
    iperf_intervals_t *intervals = &test->intervals;
    iperf_row_t *row = &intervals->rows[0];
    row->bytes = (uint32_t)intervals->interval_bytes;
    if (intervals->arrivals != NULL) {
        iperf_arrivals_close(intervals->arrivals, row);
    }
    test->outcome.row_count = 1;
    test->outcome.interval_us = (uint32_t)test->outcome.last_partial_us;
    test->outcome.last_partial_bytes = 0;
    test->outcome.last_partial_us = 0;
}

static void note_rows(iperf_test_t *test) {
    iperf_outcome_t *outcome = &test->outcome;
    const iperf_intervals_t *intervals = &test->intervals;
    int64_t length_us = iperf_sends(&test->settings) ? outcome->sent_us : outcome->whole_us;
    int64_t full_us = (int64_t)intervals->count * intervals->interval_us;
    outcome->row_count = intervals->count;
    outcome->steady_bytes = (int64_t)intervals->steady_bytes;
    outcome->interval_us = intervals->interval_us;
    outcome->last_partial_bytes = (int64_t)intervals->interval_bytes;
    outcome->last_partial_us = length_us > full_us ? length_us - full_us : 0;
    if (intervals->count == 0 && test->settings.amount_bytes > 0 && length_us > 0) {
        keep_short_test(test);
    }
}

esp_err_t iperf_run(iperf_test_t *test) {
    bool udp = test->settings.protocol == IPERF_UDP;
    test->intervals.arrivals = udp && !iperf_sends(&test->settings) ? &test->arrivals : NULL;
    load_idle_watch_stop();
    esp_err_t err = udp ? iperf_run_udp(test) : iperf_run_tcp(test);
    load_idle_watch_restore();
    if (test->socket >= 0) {
        iperf_set_closing_time(test->socket);
        close(test->socket);
        test->socket = -1;
    }
    if (bench_aborted(test->run)) {
        return ESP_ERR_INVALID_STATE;
    }
    if (err == ESP_OK && test->intervals.overflow) {
        return iperf_fail(test, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_SIZE,
                          "took longer than %u intervals; choose a longer interval_ms",
                          (unsigned)test->intervals.capacity);
    }
    if (err == ESP_OK) {
        note_rows(test);
    }
    return err;
}
