/* SPDX-License-Identifier: Apache-2.0 */
/* iperf/tcp_stream.c: a peer that takes nothing is waited for in slices, and a stream that cannot be ended is
 * a failure. */
#include "iperf_rig.h"

enum { CLOSE_S = 2 };

/* Linked with --wrap: how often a send could have blocked after one had, and how shutdown() ends. */
ssize_t __real_lwip_send(int fd, const void *data, size_t size, int flags);
int __real_lwip_shutdown(int fd, int how);
static int s_refused_count, s_blocking_again_count;
static int s_shutdown_error;

ssize_t __wrap_lwip_send(int fd, const void *data, size_t size, int flags) {
    s_blocking_again_count += s_refused_count > 0 && (flags & MSG_DONTWAIT) == 0;
    ssize_t result = __real_lwip_send(fd, data, size, flags);
    s_refused_count += result < 0;
    return result;
}

int __wrap_lwip_shutdown(int fd, int how) {
    struct timeval patience = {0};
    socklen_t size = sizeof(patience);
    CHECK_EQUAL(getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, &size), 0);
    CHECK_EQUAL(patience.tv_sec, CLOSE_S);
    errno = s_shutdown_error;
    return s_shutdown_error == 0 ? __real_lwip_shutdown(fd, how) : -1;
}

static void a_mute_peer_is_waited_for_without_blocking(void) {
    int window_bytes = 0;
    s_refused_count = 0;
    CHECK_EQUAL(run_client(10000000, 0, false, &window_bytes), ESP_ERR_TIMEOUT);
    CHECK(strstr(s_sentence, "took no data for 400 ms") != NULL);
    CHECK_EQUAL(s_refused_count, 1);
    CHECK_EQUAL(s_blocking_again_count, 0);
}

static void a_stream_that_cannot_be_ended_is_a_failure(void) {
    int window_bytes = 0;
    s_shutdown_error = ENOMEM;
    CHECK_EQUAL(run_client(100, 0, false, &window_bytes), ESP_FAIL);
    CHECK(strstr(s_sentence, "ending the stream failed after 100 bytes") != NULL);
    CHECK_EQUAL(s_owner, BENCH_OWNER_FIRMWARE);
}

void app_main(void) {
    listen_on_loopback();
    a_mute_peer_is_waited_for_without_blocking();
    a_stream_that_cannot_be_ended_is_a_failure();
    exit(EXIT_SUCCESS);
}
