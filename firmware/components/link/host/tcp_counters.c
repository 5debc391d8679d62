/* SPDX-License-Identifier: Apache-2.0 */
/* The host's TCP. Linux's own header has more of tcp_info than the C library's. */
#include "link/tcp_counters.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum {
    STATE_CLOSE = 7, /* TCP_CLOSE of the kernel's tcp_states.h */
    ATTEMPTS = 8,
};

static bool read_info(int socket_fd, struct tcp_info *info) {
    socklen_t size = sizeof(*info);
    memset(info, 0, sizeof(*info));
    return getsockopt(socket_fd, IPPROTO_TCP, TCP_INFO, info, &size) == 0;
}

static bool held_still(const struct tcp_info *a, const struct tcp_info *b) {
    return a->tcpi_bytes_acked == b->tcpi_bytes_acked && a->tcpi_bytes_sent == b->tcpi_bytes_sent &&
           a->tcpi_notsent_bytes == b->tcpi_notsent_bytes && a->tcpi_state == b->tcpi_state;
}

static void fill(link_tcp_counters_t *counters, const struct tcp_info *info, int unsent, int unacked) {
    *counters = (link_tcp_counters_t){
        .written = (uint32_t)info->tcpi_bytes_acked + (uint32_t)unacked,
        .unsent_bytes = (uint32_t)unsent,
        .unacked_bytes = (uint32_t)unacked,
        .retransmits = info->tcpi_total_retrans,
        .rto_us = info->tcpi_rto,
        .srtt_us = info->tcpi_rtt,
        .cwnd_bytes = (int64_t)info->tcpi_snd_cwnd * info->tcpi_snd_mss,
        .ended = info->tcpi_state == STATE_CLOSE,
    };
}

esp_err_t link_tcp_counters(int socket_fd, link_tcp_counters_t *counters) {
    struct tcp_info before, after;
    int unsent = 0, unacked = 0;
    for (int i = 0; i < ATTEMPTS; i++) {
        if (!read_info(socket_fd, &before) || ioctl(socket_fd, SIOCOUTQNSD, &unsent) != 0 ||
            ioctl(socket_fd, SIOCOUTQ, &unacked) != 0 || !read_info(socket_fd, &after)) {
            return ESP_ERR_NOT_FOUND;
        }
        if (held_still(&before, &after)) {
            fill(counters, &after, unsent, unacked);
            return ESP_OK;
        }
    }
    return ESP_ERR_TIMEOUT;
}

esp_err_t link_tcp_totals(link_tcp_totals_t *totals) {
    (void)totals;
    return ESP_ERR_NOT_SUPPORTED;
}
