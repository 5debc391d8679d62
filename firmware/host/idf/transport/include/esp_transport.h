/* SPDX-License-Identifier: Apache-2.0 */
// ESP-IDF's esp_transport.h on POSIX sockets and OpenSSL: the subset esp-mqtt and the benchmarks use.
// Return values are those of ESP-IDF v5.5 (components/tcp_transport); what differs is in
// docs/explain/host-mqtt.md.
#pragma once

#include <stdbool.h>

#include "esp_err.h"

#ifdef __cplusplus
extern "C" {
#endif

// TCP's keep-alive, in seconds and probes.
typedef struct esp_transport_keepalive {
    bool keep_alive_enable;
    int keep_alive_idle;
    int keep_alive_interval;
    int keep_alive_count;
} esp_transport_keep_alive_t;

typedef struct esp_transport_list_t *esp_transport_list_handle_t;
typedef struct esp_transport_item_t *esp_transport_handle_t;
typedef struct esp_tls_last_error *esp_tls_error_handle_t;

// What a read returns when it returns no bytes.
enum esp_tcp_transport_err_t {
    ERR_TCP_TRANSPORT_NO_MEM = -3,
    ERR_TCP_TRANSPORT_CONNECTION_FAILED = -2,
    ERR_TCP_TRANSPORT_CONNECTION_CLOSED_BY_FIN = -1,
    ERR_TCP_TRANSPORT_CONNECTION_TIMEOUT = 0,
};

#define ESP_ERR_TCP_TRANSPORT_BASE 0xe000
#define ESP_ERR_TCP_TRANSPORT_CONNECTION_TIMEOUT (ESP_ERR_TCP_TRANSPORT_BASE + 1)
#define ESP_ERR_TCP_TRANSPORT_CONNECTION_CLOSED_BY_FIN (ESP_ERR_TCP_TRANSPORT_BASE + 2)
#define ESP_ERR_TCP_TRANSPORT_CONNECTION_FAILED (ESP_ERR_TCP_TRANSPORT_BASE + 3)
#define ESP_ERR_TCP_TRANSPORT_NO_MEM (ESP_ERR_TCP_TRANSPORT_BASE + 4)

esp_transport_list_handle_t esp_transport_list_init(void);
esp_err_t esp_transport_list_destroy(esp_transport_list_handle_t list);
esp_err_t esp_transport_list_add(esp_transport_list_handle_t list, esp_transport_handle_t t,
                                 const char *scheme);
esp_transport_handle_t esp_transport_list_get_transport(esp_transport_list_handle_t list, const char *scheme);

esp_err_t esp_transport_destroy(esp_transport_handle_t t);
int esp_transport_get_default_port(esp_transport_handle_t t);
esp_err_t esp_transport_set_default_port(esp_transport_handle_t t, int port);

// 0 when connected, -1 otherwise; timeout_ms covers each of TCP connect and TLS handshake.
int esp_transport_connect(esp_transport_handle_t t, const char *host, int port, int timeout_ms);
// A step: 1 connected, 0 to be called again, -1. With TLS it waits up to timeout_ms until TCP is connected.
int esp_transport_connect_async(esp_transport_handle_t t, const char *host, int port, int timeout_ms);
// Bytes read, 0 on time-out, negative as in esp_tcp_transport_err_t.
int esp_transport_read(esp_transport_handle_t t, char *buffer, int len, int timeout_ms);
// Bytes written (may be fewer than len), 0 on time-out, -1 on error.
int esp_transport_write(esp_transport_handle_t t, const char *buffer, int len, int timeout_ms);
// Positive when ready, 0 on time-out, -1 on error. timeout_ms -1 waits for ever.
int esp_transport_poll_read(esp_transport_handle_t t, int timeout_ms);
int esp_transport_poll_write(esp_transport_handle_t t, int timeout_ms);
int esp_transport_close(esp_transport_handle_t t);

// The socket, or -1 when there is no connection.
int esp_transport_get_socket(esp_transport_handle_t t);
// The errno of the last failed operation; reading clears it.
int esp_transport_get_errno(esp_transport_handle_t t);
esp_tls_error_handle_t esp_transport_get_error_handle(esp_transport_handle_t t);
// What a read returned, as an esp_err_t.
esp_err_t esp_transport_translate_error(enum esp_tcp_transport_err_t error);

#ifdef __cplusplus
}
#endif
