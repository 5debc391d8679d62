/* SPDX-License-Identifier: Apache-2.0 */
/* TCP: send() of one payload to a task that reads it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lwip/sockets.h"
#include "private.h"

typedef struct {
    int fd;
    size_t payload_bytes;
    SemaphoreHandle_t received; /* given for each payload */
    cost_peer_t peer;
} tcp_t;

static void serve_sink(int fd, void *context) {
    tcp_t *tcp = context;
    static char bytes[COST_MAX_PAYLOAD_BYTES];
    size_t have = 0;
    for (;;) {
        ssize_t got = recv(fd, bytes, tcp->payload_bytes - have, 0);
        if (got <= 0) {
            return;
        }
        have += (size_t)got;
        if (have == tcp->payload_bytes) {
            have = 0;
            xSemaphoreGive(tcp->received);
        }
    }
}

static esp_err_t connect_tcp(cost_t *cost, tcp_t *tcp) {
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(COST_SINK_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int yes = 1;
    tcp->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (tcp->fd < 0 || connect(tcp->fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        setsockopt(tcp->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) != 0) {
        return bench_fail(cost->samples, BENCH_OWNER_FIRMWARE, ESP_FAIL,
                          "no connection over the loopback: %s", strerror(errno));
    }
    return ESP_OK;
}

static esp_err_t open_tcp(cost_t *cost) {
    tcp_t *tcp = calloc(1, sizeof(*tcp));
    cost->own = tcp;
    if (tcp == NULL) {
        return ESP_ERR_NO_MEM;
    }
    *tcp = (tcp_t){.fd = -1, .payload_bytes = cost->payload_bytes, .received = xSemaphoreCreateBinary()};
    tcp->peer = (cost_peer_t){.port = COST_SINK_PORT, .serve = serve_sink, .context = tcp, .listener = -1};
    esp_err_t err = tcp->received != NULL ? cost_loopback() : ESP_ERR_NO_MEM;
    err = err == ESP_OK ? cost_peer_start(&tcp->peer, cost->samples) : err;
    return err == ESP_OK ? connect_tcp(cost, tcp) : err;
}

static bool repeat_tcp(cost_t *cost) {
    tcp_t *tcp = cost->own;
    cost_mark(&cost->begin);
    ssize_t sent = send(tcp->fd, cost->payload, cost->payload_bytes, 0);
    cost_mark(&cost->end);
    return sent == (ssize_t)cost->payload_bytes && cost_await(tcp->received);
}

static void close_tcp(cost_t *cost) {
    tcp_t *tcp = cost->own;
    if (tcp == NULL) {
        return;
    }
    if (tcp->fd >= 0) {
        close(tcp->fd);
    }
    cost_peer_stop(&tcp->peer);
    if (tcp->received != NULL) {
        vSemaphoreDelete(tcp->received);
    }
    free(tcp);
}

const cost_part_t cost_tcp_out = {.open = open_tcp, .repeat = repeat_tcp, .close = close_tcp};
