/* SPDX-License-Identifier: Apache-2.0 */
/* TCP: a stream of which the first bytes are the client's header. */
#include <string.h>

#include "esp_timer.h"
#include "test.h"

/* ---- the exchange at the start ---- */

static esp_err_t send_all(iperf_test_t *test, const uint8_t *bytes, size_t length) {
    const int64_t started_us = esp_timer_get_time();
    for (size_t sent = 0; sent < length;) {
        ssize_t result = send(test->socket, bytes + sent, length - sent, 0);
        if (result > 0) {
            sent += (size_t)result;
        } else if (result < 0 && !iperf_again(errno)) {
            return iperf_fail_socket(test, "sending the header", errno);
        } else if (bench_aborted(test->run)) {
            return ESP_ERR_INVALID_STATE;
        } else if (iperf_stalled(test, started_us)) {
            return iperf_fail_silent(test, "took no header");
        }
    }
    return ESP_OK;
}

static esp_err_t send_header(iperf_test_t *test) {
    uint8_t header[IPERF_CLIENT_HEADER_BYTES];
    iperf_pack_client_header(header, &test->settings, bench_provision(test->run)->peer_port);
    return send_all(test, header, sizeof(header));
}

/* Read up to `length` bytes, fewer where the peer closes. */
static esp_err_t read_all(iperf_test_t *test, uint8_t *bytes, size_t length, size_t *read) {
    const int64_t started_us = esp_timer_get_time();
    while (*read < length) {
        ssize_t result = recv(test->socket, bytes + *read, length - *read, 0);
        if (result > 0) {
            *read += (size_t)result;
        } else if (result == 0) {
            break;
        } else if (!iperf_again(errno)) {
            return iperf_fail_socket(test, "waiting for the header", errno);
        } else if (bench_aborted(test->run)) {
            return ESP_ERR_INVALID_STATE;
        } else if (iperf_stalled(test, started_us)) {
            return iperf_fail_silent(test, "connected and sent no header");
        }
    }
    return ESP_OK;
}

/* The header's length stands in its first four bytes. What was read counts as received, as in iperf. */
static esp_err_t read_header(iperf_test_t *test, size_t *read) {
    uint8_t header[IPERF_CLIENT_HEADER_MAX_BYTES];
    esp_err_t err = read_all(test, header, 4, read);
    int length = *read == 4 ? iperf_client_header_bytes(header, IPERF_TCP) : -1;
    if (err == ESP_OK && length > 4) {
        err = read_all(test, header, (size_t)length, read);
    }
    if (err != ESP_OK) {
        return err;
    }
    if (*read < 4) {
        return iperf_fail(test, BENCH_OWNER_RIG, ESP_ERR_INVALID_RESPONSE, "connected and closed");
    }
    err = iperf_check_header(test, iperf_unpack_client_header(header, *read, IPERF_TCP, &test->header));
    if (err == ESP_OK && test->header.wants_ack) {
        uint8_t ack[IPERF_ACK_BYTES];
        iperf_pack_ack(ack);
        err = send_all(test, ack, sizeof(ack));
    }
    return err;
}

/* ---- the two roles ---- */

static esp_err_t run_client(iperf_test_t *test) {
    esp_err_t err = iperf_connect(test);
    err = err != ESP_OK ? err : send_header(test);
    if (err != ESP_OK) {
        return err;
    }
    return test->settings.reverse ? iperf_tcp_receive(test, 0)
                                  : iperf_tcp_send(test, IPERF_CLIENT_HEADER_BYTES);
}

static esp_err_t run_server(iperf_test_t *test) {
    size_t header_bytes = 0;
    esp_err_t err = iperf_accept(test);
    err = err != ESP_OK ? err : read_header(test, &header_bytes);
    if (err != ESP_OK) {
        return err;
    }
    return test->settings.reverse ? iperf_tcp_send(test, 0) : iperf_tcp_receive(test, header_bytes);
}

esp_err_t iperf_run_tcp(iperf_test_t *test) {
    return test->settings.server ? run_server(test) : run_client(test);
}
