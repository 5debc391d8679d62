/* SPDX-License-Identifier: Apache-2.0 */
/* A test of components/iperf that sends to a listener of this program, which accepts only when it is told to;
 * what the agent would say is played. Linked with
 * --wrap=bench_provision,--wrap=bench_aborted,--wrap=bench_fail.
 */
#pragma once

#include "idf_check.h"

#include <stdarg.h>

#include "iperf/iperf.h"
#include "lwip/sockets.h"
#include "samples_private.h"

static agent_provision_t s_provision = {.peer_host = "127.0.0.1"};
static bool s_aborted;
static char s_sentence[256];
static bench_owner_t s_owner;
static bench_samples_t s_samples;

const agent_provision_t *__wrap_bench_provision(const bench_run_t *run) {
    (void)run;
    return &s_provision;
}

bool __wrap_bench_aborted(const bench_run_t *run) {
    (void)run;
    return s_aborted;
}

esp_err_t __wrap_bench_fail(bench_samples_t *samples, bench_owner_t owner, esp_err_t status,
                            const char *format, ...) {
    (void)samples;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(s_sentence, sizeof(s_sentence), format, arguments);
    va_end(arguments);
    s_owner = owner;
    return status;
}

/* Connections are made, and so many bytes taken, before anybody accepts them. */
static inline int listen_on_loopback(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(bind(listener, (struct sockaddr *)&address, size), 0);
    CHECK_EQUAL(listen(listener, 4), 0);
    CHECK_EQUAL(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    s_provision.peer_port = ntohs(address.sin_port);
    return listener;
}

/* The status of a test as a TCP client that sends; `window_bytes` as asked for, and what was in force. */
static inline esp_err_t run_client(uint64_t amount_bytes, uint32_t window_bytes, bool reverse,
                                   int *in_force) {
    const iperf_settings_t settings = {
        .protocol = IPERF_TCP,
        .reverse = reverse,
        .length_bytes = 4000,
        .amount_bytes = amount_bytes,
        .interval_us = 100000,
        .window_bytes = window_bytes,
        .timeout_ms = 400,
        .row_capacity = 100,
    };
    s_sentence[0] = '\0';
    iperf_test_t *test = iperf_create(NULL, &s_samples, &settings);
    CHECK(test != NULL);
    esp_err_t err = iperf_run(test);
    *in_force = iperf_outcome(test)->window_bytes;
    iperf_delete(test);
    return err;
}
