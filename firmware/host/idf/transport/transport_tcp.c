/* SPDX-License-Identifier: Apache-2.0 */
// Plain TCP.
#include "esp_transport_tcp.h"

#include <errno.h>
#include <string.h>

#include "esp_log.h"
#include "transport_priv.h"

static const char *TAG = "transport_tcp";

static int tcp_read(esp_transport_handle_t t, char *buffer, int len) {
    ssize_t n = tcp_socket_receive(t->socket, buffer, (size_t)len);
    if (n > 0) {
        return (int)n;
    }
    if (n == 0) {
        return transport_fail_read(t, ERR_TCP_TRANSPORT_CONNECTION_CLOSED_BY_FIN, 0);
    }
    return transport_fail_read(
        t, errno == EAGAIN ? ERR_TCP_TRANSPORT_CONNECTION_TIMEOUT : ERR_TCP_TRANSPORT_CONNECTION_FAILED,
        errno);
}

static int tcp_write(esp_transport_handle_t t, const char *buffer, int len) {
    ssize_t n = tcp_socket_send(t->socket, buffer, (size_t)len);
    if (n < 0) {
        t->sock_errno = errno;
        ESP_LOGE(TAG, "tcp_write error, errno=%s", strerror(errno));
    }
    return (int)n;
}

static const transport_ops_t TCP_OPS = {.read = tcp_read, .write = tcp_write};

esp_transport_handle_t esp_transport_tcp_init(void) {
    return transport_create(&TCP_OPS, NULL);
}
