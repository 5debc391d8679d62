/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a test, private to the component. */
#pragma once

#include "arrivals.h"
#include "intervals.h"
#include "iperf/iperf.h"
#include "lwip/sockets.h"
#include "messages.h"
#include "schedule.h"

enum {
    IPERF_SLICE_MS = 50, /* of each wait, so that an abort is seen */
    IPERF_CLOSE_MS = 2000,
    IPERF_SLOP_MS = 2000, /* what iperf, too, waits past a test's time */
    IPERF_PEER_SIZE = 24, /* "255.255.255.255:65535" */
};

struct iperf_test {
    const bench_run_t *run;
    bench_samples_t *samples;
    iperf_settings_t settings;
    iperf_outcome_t outcome;
    iperf_intervals_t intervals;
    iperf_arrivals_t arrivals;
    iperf_schedule_t schedule;
    iperf_client_header_t header; /* of the client, when serving */
    char peer[IPERF_PEER_SIZE];   /* for sentences */
    int socket;
    int64_t waiting_since_us; /* for a client, when serving */
    int64_t told_us;          /* when the host was last told that the board is ready */
    uint8_t *buffer;
    size_t buffer_bytes;
};

/* ---- test.c ---- */

/* bench_fail(), with the peer named first. */
esp_err_t iperf_fail(iperf_test_t *test, bench_owner_t owner, esp_err_t status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The sentence of a socket that failed in the middle of a test; `doing` is "sending", "receiving". */
esp_err_t iperf_fail_socket(iperf_test_t *test, const char *doing, int error);

/* Refuse a client's header that is not READ or NONE, or asks for another test than the case. */
esp_err_t iperf_check_header(iperf_test_t *test, iperf_header_verdict_t verdict);

bool iperf_sends(const iperf_settings_t *settings);

/* From the board's timer to the wall clock: read once a test, so that its time stamps are monotonic. */
int64_t iperf_wall_offset_us(void);

/* Whether nothing has moved since then for as long as the settings allow. */
bool iperf_stalled(const iperf_test_t *test, int64_t since_us);

/* Whether a stream goes on so long after its time that it will not end. A receiver does not know how much
 * waits in the sender's buffer: that has as long again as the sender may be silent. */
bool iperf_overdue(const iperf_test_t *test, int64_t now_us);

/* Note what the receiver counted up to now, at the test's end. */
void iperf_note_received(iperf_test_t *test, int64_t end_us);

/* Note what the sender sent, and how it kept its plan. */
void iperf_note_sent(iperf_test_t *test, int64_t end_us);

/* Whether a stream that ended at `end_us` is as long as was asked for; else the failure. */
esp_err_t iperf_check_length(iperf_test_t *test, int64_t end_us);

/* ---- socket.c ---- */

/* The call is to be repeated: it took too long, or a signal came. */
bool iperf_again(int error);

/* Connect, or listen and wait for the client; the socket is the test's from then on. */
esp_err_t iperf_connect(iperf_test_t *test);
esp_err_t iperf_listen(iperf_test_t *test, int *listener);
esp_err_t iperf_accept(iperf_test_t *test);
void iperf_remember_peer(iperf_test_t *test, const struct sockaddr_in *address);

/* Wait until the socket can be read, telling the host once a second that the board is ready.
 * ESP_ERR_TIMEOUT when nobody came in the settings' time since iperf_listen(). */
esp_err_t iperf_await_peer(iperf_test_t *test, int socket_fd);

/* Waits on the socket end after `ms`. */
void iperf_set_timeouts(int socket_fd, int ms);

/* Before shutdown() and close(): lwIP's try to send a FIN that it has no memory for as long as a send may
 * wait, and give the connection up then. */
void iperf_set_closing_time(int socket_fd);

/* Wait IPERF_SLICE_MS at most until the socket can be read, or written: whether it can. */
bool iperf_await_slice(int socket_fd, bool to_read);

/* ---- options.c ---- */

/* Apply -w and -M before the connection is made; ESP_ERR_NOT_SUPPORTED where the target cannot. */
esp_err_t iperf_apply_options(iperf_test_t *test, int socket_fd);

/* Apply -N to the connection, and note what is in force on it. ESP_ERR_NOT_SUPPORTED where -M is not. */
esp_err_t iperf_read_options(iperf_test_t *test);

/* ---- tcp.c, udp.c ---- */

esp_err_t iperf_run_tcp(iperf_test_t *test);
esp_err_t iperf_run_udp(iperf_test_t *test);

/* ---- tcp_stream.c ---- */

/* The `header_bytes` that a client begins with count as the stream's. */
esp_err_t iperf_tcp_send(iperf_test_t *test, size_t header_bytes);
esp_err_t iperf_tcp_receive(iperf_test_t *test, size_t header_bytes);
esp_err_t iperf_fail_silent(iperf_test_t *test, const char *what);

/* ---- udp_send.c, udp_receive.c ---- */

esp_err_t iperf_udp_send(iperf_test_t *test);

/* The first datagram, of `first_bytes`, is in the buffer. */
esp_err_t iperf_udp_receive(iperf_test_t *test, size_t first_bytes);
