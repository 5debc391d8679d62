/* SPDX-License-Identifier: Apache-2.0 */
/* Making the connection, in slices of time that let an abort be seen. */
#include <stdio.h>
#include <string.h>

#include "esp_timer.h"
#include "test.h"

enum { READY_EVERY_US = 1000000 };

bool iperf_again(int error) {
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

void iperf_set_timeouts(int socket_fd, int ms) {
    const struct timeval timeout = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    setsockopt(socket_fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    setsockopt(socket_fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
}

void iperf_remember_peer(iperf_test_t *test, const struct sockaddr_in *address) {
    char text[INET_ADDRSTRLEN] = "?";
    inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text));
    snprintf(test->peer, sizeof(test->peer), "%s:%u", text, (unsigned)ntohs(address->sin_port));
}

static esp_err_t open_socket(iperf_test_t *test, int *socket_fd) {
    bool udp = test->settings.protocol == IPERF_UDP;
    *socket_fd = socket(AF_INET, udp ? SOCK_DGRAM : SOCK_STREAM, 0);
    if (*socket_fd < 0) {
        return bench_fail(test->samples, BENCH_OWNER_FIRMWARE, ESP_ERR_NO_MEM,
                          "the board has no %s socket free for iperf: %s", udp ? "UDP" : "TCP",
                          strerror(errno));
    }
    return iperf_apply_options(test, *socket_fd);
}

void iperf_set_closing_time(int socket_fd) {
    const struct timeval timeout = {.tv_sec = IPERF_CLOSE_MS / 1000};
    setsockopt(socket_fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
}

bool iperf_await_slice(int socket_fd, bool to_read) {
    struct timeval timeout = {.tv_usec = IPERF_SLICE_MS * 1000};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(socket_fd, &set);
    return select(socket_fd + 1, to_read ? &set : NULL, to_read ? NULL : &set, NULL, &timeout) > 0;
}

static void tell_ready(iperf_test_t *test, int64_t now_us) {
    if (now_us - test->told_us >= READY_EVERY_US) {
        test->told_us = now_us;
        bench_note(test->run, "ready", "port=%u", (unsigned)IPERF_PORT);
    }
}

static esp_err_t fail_nobody(iperf_test_t *test) {
    bool udp = test->settings.protocol == IPERF_UDP;
    if (test->arrivals.ignored_count > 0) {
        return iperf_fail(test, BENCH_OWNER_RIG, ESP_ERR_INVALID_RESPONSE,
                          "sends, but none of its %lld datagrams is the start of an iperf stream",
                          (long long)test->arrivals.ignored_count);
    }
    return bench_fail(test->samples, BENCH_OWNER_RIG, ESP_ERR_TIMEOUT,
                      "no iperf client came to the board's %s port %u in %u ms", udp ? "UDP" : "TCP",
                      (unsigned)IPERF_PORT, (unsigned)test->settings.timeout_ms);
}

esp_err_t iperf_await_peer(iperf_test_t *test, int socket_fd) {
    while (!iperf_stalled(test, test->waiting_since_us)) {
        tell_ready(test, esp_timer_get_time());
        if (iperf_await_slice(socket_fd, true)) {
            return ESP_OK;
        }
        if (bench_aborted(test->run)) {
            return ESP_ERR_INVALID_STATE;
        }
    }
    return fail_nobody(test);
}

/* ---- client ---- */

static esp_err_t read_address(iperf_test_t *test, struct sockaddr_in *address) {
    const agent_provision_t *provision = bench_provision(test->run);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(provision->peer_port)};
    if (provision->peer_host[0] == '\0' || provision->peer_port == 0) {
        return bench_fail(test->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_STATE,
                          "the iperf peer (peer_host, peer_port) was not provisioned");
    }
    if (inet_pton(AF_INET, provision->peer_host, &address->sin_addr) != 1) {
        return bench_fail(test->samples, BENCH_OWNER_CONFIGURATION, ESP_ERR_INVALID_ARG,
                          "peer_host=%s is not an IPv4 address", provision->peer_host);
    }
    iperf_remember_peer(test, address);
    return ESP_OK;
}

/* 0 when it is made, else errno. */
static int await_connection(iperf_test_t *test) {
    const int64_t started_us = esp_timer_get_time();
    while (!iperf_stalled(test, started_us)) {
        if (iperf_await_slice(test->socket, false)) {
            int error = 0;
            socklen_t size = sizeof(error);
            getsockopt(test->socket, SOL_SOCKET, SO_ERROR, &error, &size);
            return error;
        }
        if (bench_aborted(test->run)) {
            break;
        }
    }
    return ETIMEDOUT;
}

static esp_err_t make_connection(iperf_test_t *test, const struct sockaddr_in *address) {
    int flags = fcntl(test->socket, F_GETFL, 0);
    fcntl(test->socket, F_SETFL, flags | O_NONBLOCK);
    int error = 0;
    if (connect(test->socket, (const struct sockaddr *)address, sizeof(*address)) != 0) {
        error = errno == EINPROGRESS || errno == EINTR ? await_connection(test) : errno;
    }
    fcntl(test->socket, F_SETFL, flags);
    if (error == 0) {
        iperf_set_timeouts(test->socket, IPERF_SLICE_MS);
        return ESP_OK;
    }
    bool silent = error == ETIMEDOUT;
    return iperf_fail(test, BENCH_OWNER_RIG, silent ? ESP_ERR_TIMEOUT : ESP_ERR_NOT_FOUND,
                      "cannot be reached: %s", silent ? "no answer to the connection" : strerror(error));
}

esp_err_t iperf_connect(iperf_test_t *test) {
    struct sockaddr_in address;
    esp_err_t err = read_address(test, &address);
    err = err != ESP_OK ? err : open_socket(test, &test->socket);
    err = err != ESP_OK ? err : make_connection(test, &address);
    return err != ESP_OK ? err : iperf_read_options(test);
}

/* ---- server ---- */

esp_err_t iperf_listen(iperf_test_t *test, int *listener) {
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(IPERF_PORT)};
    esp_err_t err = open_socket(test, listener);
    if (err != ESP_OK) {
        return err;
    }
    bool tcp = test->settings.protocol == IPERF_TCP;
    int on = 1;
    if (tcp) { /* a connection of the last test may still be in TIME-WAIT */
        setsockopt(*listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    }
    if (bind(*listener, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        (tcp && listen(*listener, 1) != 0)) {
        return bench_fail(test->samples, BENCH_OWNER_FIRMWARE, ESP_ERR_INVALID_STATE,
                          "the board's %s port %u cannot be listened on: %s", tcp ? "TCP" : "UDP",
                          (unsigned)IPERF_PORT, strerror(errno));
    }
    test->waiting_since_us = esp_timer_get_time();
    test->told_us = test->waiting_since_us - READY_EVERY_US;
    return ESP_OK;
}

static esp_err_t take_client(iperf_test_t *test, int listener) {
    struct sockaddr_in address = {0};
    socklen_t size = sizeof(address);
    test->socket = accept(listener, (struct sockaddr *)&address, &size);
    if (test->socket < 0) {
        return bench_fail(test->samples, BENCH_OWNER_FIRMWARE, ESP_FAIL,
                          "the board could not accept an iperf client on TCP port %u: %s (errno %d)",
                          (unsigned)IPERF_PORT, strerror(errno), errno);
    }
    iperf_remember_peer(test, &address);
    iperf_set_timeouts(test->socket, IPERF_SLICE_MS);
    return iperf_read_options(test);
}

esp_err_t iperf_accept(iperf_test_t *test) {
    int listener = -1;
    esp_err_t err = iperf_listen(test, &listener);
    err = err != ESP_OK ? err : iperf_await_peer(test, listener);
    err = err != ESP_OK ? err : take_client(test, listener);
    if (listener >= 0) {
        close(listener);
    }
    return err;
}
