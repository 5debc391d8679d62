/* SPDX-License-Identifier: Apache-2.0 */
// The connection behind esp_tls_t.
#pragma once

#include "esp_tls.h"
#include "lwip/sockets.h"
#include "tls_session.h"

struct esp_tls {
    esp_tls_conn_state_t state;
    int sockfd;
    bool is_tls;
    fd_set rset, wset; // of the select() in ESP_TLS_CONNECTING
    tls_session_t *session;
    esp_tls_error_handle_t error;
};

// Milliseconds as select() and SO_RCVTIMEO take them.
struct timeval esp_tls_timeval(int timeout_ms);
