/* SPDX-License-Identifier: Apache-2.0 */
/* What the device's own TCP says of a connection. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "esp_err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes are of the connection's stream, beneath TLS. `written` is a position in it, modulo 2^32: only
 * differences on one connection mean anything. What is not known is -1. */
typedef struct {
    uint32_t written;       /* handed to TCP so far */
    uint32_t unsent_bytes;  /* of those, never transmitted */
    uint32_t unacked_bytes; /* of those, not acknowledged; the unsent ones among them */
    int64_t retransmits;    /* segments sent again */
    int64_t rto_us, srtt_us;
    int64_t cwnd_bytes;
    bool ended; /* reset or given up: nothing of it will be transmitted any more */
} link_tcp_counters_t;

/* Of the connection of a socket, all read at one instant. From any task, not from an interrupt.
 *
 * Returns ESP_ERR_NOT_FOUND where there is none (any more), ESP_ERR_TIMEOUT where it did not hold still. */
esp_err_t link_tcp_counters(int socket_fd, link_tcp_counters_t *counters);

/* Counters of all connections since boot, of a chip. */
typedef struct {
    uint32_t xmit, drop, memerr, retransmits;
} link_tcp_totals_t;

/* Returns ESP_ERR_NOT_SUPPORTED where TCP is the host's. */
esp_err_t link_tcp_totals(link_tcp_totals_t *totals);

#ifdef __cplusplus
}
#endif
