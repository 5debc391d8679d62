/* SPDX-License-Identifier: Apache-2.0 */
// Shared by the transports: the item behind esp_transport_handle_t.
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "esp_tls.h"
#include "esp_transport.h"
#include "tcp_socket.h"

typedef struct transport_ops {
    int (*connect)(esp_transport_handle_t t, const char *host, int timeout_ms); // socket is already connected
    // A step on a socket that may not be connected yet: 1, 0 to be called again, -1.
    int (*connect_async)(esp_transport_handle_t t, const char *host, int timeout_ms);
    int (*read)(esp_transport_handle_t t, char *buffer, int len);        // socket is readable
    int (*write)(esp_transport_handle_t t, const char *buffer, int len); // socket is writable
    void (*close)(esp_transport_handle_t t);                             // before the socket goes
    void (*destroy)(esp_transport_handle_t t);
} transport_ops_t;

struct esp_transport_item_t {
    const transport_ops_t *ops;
    const char *scheme;
    int default_port;
    esp_tls_addr_family_t addr_family;
    esp_transport_keep_alive_t *keep_alive;
    pthread_mutex_t lock; // guards `socket` only
    tcp_socket_t *socket; // NULL when there is no connection
    atomic_int buffered;  // bytes already decrypted and not yet read
    struct esp_tls_last_error error;
    int sock_errno;
    void *context; // of the TLS transport
    struct esp_transport_item_t *next;
};

esp_transport_handle_t transport_create(const transport_ops_t *ops, void *context);
// What a read came to: its errno is kept, an end by the peer is noted as ESP-IDF notes it.
int transport_fail_read(esp_transport_handle_t t, int result, int sock_errno);
// Notes what went wrong for esp_transport_get_error_handle / _get_errno; returns -1.
int transport_fail(esp_transport_handle_t t, esp_err_t error, int tls_code, int tls_flags, int sock_errno);
