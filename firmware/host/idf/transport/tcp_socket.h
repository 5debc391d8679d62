/* SPDX-License-Identifier: Apache-2.0 */
// A TCP socket that several tasks hold, connected and blocking unless asked for otherwise. Its sizes are
// those of every socket (idf/lwip).
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "esp_err.h"
#include "esp_tls.h"

typedef struct tcp_socket tcp_socket_t;

// Resolves and connects within cfg->timeout_ms, which bounds each later send and receive as well; with
// cfg->non_block it only begins to. On failure NULL, *error a code of esp_tls_errors.h, *sock_errno set.
tcp_socket_t *tcp_socket_connect(const char *host, int port, const esp_tls_cfg_t *cfg, esp_err_t *error,
                                 int *sock_errno);

// A task may be polling while another closes: the descriptor lives until the last holder lets go.
tcp_socket_t *tcp_socket_hold(tcp_socket_t *s);
void tcp_socket_release(tcp_socket_t *s);
// Ends the connection and wakes whoever polls it; the caller's own hold stays.
void tcp_socket_shutdown(tcp_socket_t *s);

int tcp_socket_fd(const tcp_socket_t *s);
// >0 ready, 0 time-out, -1 error (errno set). timeout_ms -1 waits for ever.
int tcp_socket_poll_read(tcp_socket_t *s, int timeout_ms);
int tcp_socket_poll_write(tcp_socket_t *s, int timeout_ms);
// As recv and send; EAGAIN after the time-out.
ssize_t tcp_socket_receive(tcp_socket_t *s, void *buffer, size_t len);
ssize_t tcp_socket_send(tcp_socket_t *s, const void *data, size_t len);
