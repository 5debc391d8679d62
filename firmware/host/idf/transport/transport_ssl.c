/* SPDX-License-Identifier: Apache-2.0 */
// TLS: the session that esp-tls has, over the transport's socket.
#include "esp_transport_ssl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tls_session.h"
#include "transport_priv.h"

typedef struct ssl_transport {
    esp_tls_cfg_t cfg;
    tls_session_t *session;
} ssl_transport_t;

static ssize_t send_to_socket(void *socket, const void *data, size_t len) {
    return tcp_socket_send(socket, data, len);
}

static ssize_t receive_from_socket(void *socket, void *buffer, size_t len) {
    return tcp_socket_receive(socket, buffer, len);
}

static void ssl_close(esp_transport_handle_t t) {
    ssl_transport_t *tls = t->context;
    tls_session_delete(tls->session);
    tls->session = NULL;
}

static int ssl_connect(esp_transport_handle_t t, const char *host, int timeout_ms) {
    (void)timeout_ms; // the socket's own receive and send time-outs bound the handshake
    ssl_transport_t *tls = t->context;
    const tls_io_t io = {.send = send_to_socket, .receive = receive_from_socket, .context = t->socket};
    tls->session = tls_session_create(host, strlen(host), &tls->cfg, io, &t->error, &t->error.last_error);
    if (tls->session == NULL) {
        return -1;
    }
    int code = tls_session_handshake(tls->session);
    t->sock_errno = errno;
    if (code == ESP_TLS_ERR_SSL_WANT_READ || code == ESP_TLS_ERR_SSL_WANT_WRITE) {
        t->error.last_error = ESP_ERR_ESP_TLS_CONNECTION_TIMEOUT;
    }
    return code == 0 ? 0 : -1;
}

static int ssl_read(esp_transport_handle_t t, char *buffer, int len) {
    ssl_transport_t *tls = t->context;
    ssize_t n = tls_session_read(tls->session, buffer, (size_t)len);
    int sock_errno = errno;
    atomic_store(&t->buffered, (int)tls_session_bytes_available(tls->session));
    if (n > 0) {
        return (int)n;
    }
    if (n == 0) {
        return ERR_TCP_TRANSPORT_CONNECTION_CLOSED_BY_FIN;
    }
    if (n == ESP_TLS_ERR_SSL_WANT_READ) {
        return ERR_TCP_TRANSPORT_CONNECTION_TIMEOUT;
    }
    t->sock_errno = sock_errno;
    return ERR_TCP_TRANSPORT_CONNECTION_FAILED;
}

static int ssl_write(esp_transport_handle_t t, const char *buffer, int len) {
    ssl_transport_t *tls = t->context;
    ssize_t n = tls_session_write(tls->session, buffer, (size_t)len);
    t->sock_errno = n > 0 ? t->sock_errno : errno;
    return n > 0 ? (int)n : -1;
}

static void ssl_destroy(esp_transport_handle_t t) {
    free(t->context);
}

static const transport_ops_t SSL_OPS = {
    .connect = ssl_connect,
    .read = ssl_read,
    .write = ssl_write,
    .close = ssl_close,
    .destroy = ssl_destroy,
};

esp_transport_handle_t esp_transport_ssl_init(void) {
    ssl_transport_t *tls = calloc(1, sizeof(*tls));
    esp_transport_handle_t t = tls == NULL ? NULL : transport_create(&SSL_OPS, tls);
    if (t == NULL) {
        free(tls);
    }
    return t;
}

static ssl_transport_t *options(esp_transport_handle_t t) {
    return t->context;
}

void esp_transport_ssl_set_cert_data(esp_transport_handle_t t, const char *data, int len) {
    (void)len; // PEM ends with its NUL
    options(t)->cfg.cacert_pem_buf = (const unsigned char *)data;
}

void esp_transport_ssl_set_client_cert_data(esp_transport_handle_t t, const char *data, int len) {
    (void)len;
    options(t)->cfg.clientcert_pem_buf = (const unsigned char *)data;
}

void esp_transport_ssl_set_client_key_data(esp_transport_handle_t t, const char *data, int len) {
    (void)len;
    options(t)->cfg.clientkey_pem_buf = (const unsigned char *)data;
}

void esp_transport_ssl_skip_common_name_check(esp_transport_handle_t t) {
    options(t)->cfg.skip_common_name = true;
}

void esp_transport_ssl_set_common_name(esp_transport_handle_t t, const char *common_name) {
    options(t)->cfg.common_name = common_name;
}
