/* SPDX-License-Identifier: Apache-2.0 */
/* UDP: the two roles, and the report at the end. */
#include "esp_timer.h"
#include "test.h"

enum {
    ASK_MS = 20,       /* a client that wants to receive says so again until something comes */
    REPORT_COUNT = 10, /* as often as iperf sends its report while the client still asks */
    SILENCE_MS = 250,
};

/* ---- server ---- */

static bool begins_stream(const uint8_t *bytes, size_t length) {
    if (length < IPERF_DATAGRAM_HEADER_BYTES) {
        return false;
    }
    int64_t id = iperf_unpack_datagram(bytes, false).id;
    return id >= 1 && id <= IPERF_JUMP_MAX;
}

/* Take the first datagram that begins a stream, whoever it is from; what is left of an earlier test (a
 * negative number) and what is no iperf's is passed over. */
static esp_err_t take_first(iperf_test_t *test, size_t *first_bytes) {
    struct sockaddr_in address = {0};
    while (*first_bytes == 0) {
        esp_err_t err = iperf_await_peer(test, test->socket);
        if (err != ESP_OK) {
            return err;
        }
        socklen_t size = sizeof(address);
        ssize_t result =
            recvfrom(test->socket, test->buffer, test->buffer_bytes, 0, (struct sockaddr *)&address, &size);
        if (result < 0) {
            continue;
        }
        iperf_remember_peer(test, &address);
        bool begins = begins_stream(test->buffer, (size_t)result);
        *first_bytes = begins ? (size_t)result : 0;
        test->arrivals.ignored_count += begins ? 0 : 1;
    }
    /* From here on only this client is heard. */
    return connect(test->socket, (const struct sockaddr *)&address, sizeof(address)) == 0
               ? ESP_OK
               : iperf_fail_socket(test, "connecting", errno);
}

/* A header that cannot be understood is the payload of a client that writes none. */
static esp_err_t read_header(iperf_test_t *test, size_t first_bytes) {
    iperf_header_verdict_t verdict =
        iperf_unpack_client_header(test->buffer + IPERF_DATAGRAM_HEADER_BYTES,
                                   first_bytes - IPERF_DATAGRAM_HEADER_BYTES, IPERF_UDP, &test->header);
    if (verdict == IPERF_HEADER_GARBAGE) {
        test->header = (iperf_client_header_t){0};
        verdict = IPERF_HEADER_NONE;
    }
    return iperf_check_header(test, verdict);
}

/* Send the report until the client is silent, which it is when it has got it. */
static void send_report(iperf_test_t *test) {
    uint8_t message[IPERF_REPORT_BYTES];
    iperf_pack_report(message, &test->outcome.report);
    iperf_set_timeouts(test->socket, SILENCE_MS);
    for (int count = 0; count < REPORT_COUNT && !bench_aborted(test->run); count++) {
        send(test->socket, message, sizeof(message), 0);
        if (recv(test->socket, test->buffer, test->buffer_bytes, 0) < 0) {
            break;
        }
    }
}

/* iperf counts what came twice as out of order. */
static void make_report(iperf_test_t *test) {
    const iperf_arrivals_t *arrivals = &test->arrivals;
    test->outcome.has_report = true;
    test->outcome.report = (iperf_report_t){
        .received_bytes = test->outcome.received_bytes,
        .whole_us = test->outcome.whole_us,
        .lost_count = iperf_arrivals_lost(arrivals),
        .out_of_order_count = arrivals->out_of_order_count + arrivals->duplicate_count,
        .datagrams_count = arrivals->highest,
        .jitter_us = iperf_arrivals_jitter_us(arrivals),
    };
}

static esp_err_t run_server(iperf_test_t *test) {
    size_t first_bytes = 0;
    esp_err_t err = iperf_listen(test, &test->socket);
    if (err == ESP_OK) {
        iperf_set_timeouts(test->socket, IPERF_SLICE_MS);
        err = take_first(test, &first_bytes);
    }
    err = err != ESP_OK ? err : read_header(test, first_bytes);
    err = err != ESP_OK ? err : iperf_read_options(test);
    if (err != ESP_OK) {
        return err;
    }
    if (test->settings.reverse) {
        return iperf_udp_send(test);
    }
    err = iperf_udp_receive(test, first_bytes);
    if (err == ESP_OK) {
        make_report(test);
        if (test->outcome.ended) {
            send_report(test);
        }
    }
    return err;
}

/* ---- client ---- */

static bool send_request(iperf_test_t *test) {
    const uint32_t header_bytes = IPERF_DATAGRAM_HEADER_BYTES + IPERF_CLIENT_HEADER_BYTES;
    uint32_t length = test->settings.length_bytes;
    iperf_pack_datagram(test->buffer, 1, esp_timer_get_time() + iperf_wall_offset_us());
    iperf_pack_client_header(test->buffer + IPERF_DATAGRAM_HEADER_BYTES, &test->settings,
                             bench_provision(test->run)->peer_port);
    return send(test->socket, test->buffer, length > header_bytes ? length : header_bytes, 0) >= 0;
}

/* Ask the server to send, until it does. */
static esp_err_t ask_for_stream(iperf_test_t *test, size_t *first_bytes) {
    const int64_t started_us = esp_timer_get_time();
    iperf_set_timeouts(test->socket, ASK_MS);
    while (!bench_aborted(test->run)) {
        bool asked = send_request(test);
        ssize_t result = asked ? recv(test->socket, test->buffer, test->buffer_bytes, 0) : -1;
        if (result >= IPERF_DATAGRAM_HEADER_BYTES) {
            *first_bytes = (size_t)result;
            break;
        }
        if (result < 0 && !iperf_again(errno)) {
            return iperf_fail_socket(test, "asking for -R", errno);
        }
        if (iperf_stalled(test, started_us)) {
            return iperf_fail(test, BENCH_OWNER_RIG, ESP_ERR_TIMEOUT,
                              "was asked to send (-R) and sent nothing in %u ms",
                              (unsigned)test->settings.timeout_ms);
        }
    }
    iperf_set_timeouts(test->socket, IPERF_SLICE_MS);
    return ESP_OK;
}

static esp_err_t run_client(iperf_test_t *test) {
    esp_err_t err = iperf_connect(test);
    if (err != ESP_OK || !test->settings.reverse) {
        return err != ESP_OK ? err : iperf_udp_send(test);
    }
    size_t first_bytes = 0;
    err = ask_for_stream(test, &first_bytes);
    if (err == ESP_OK && first_bytes > 0) {
        err = iperf_udp_receive(test, first_bytes);
    }
    return err;
}

esp_err_t iperf_run_udp(iperf_test_t *test) {
    return test->settings.server ? run_server(test) : run_client(test);
}
