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
    bool connect_timed_out;
    esp_tls_client_session_t *saved; // what the next connection may resume
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
    tls->connect_timed_out = false;
}

static int create_session(esp_transport_handle_t t, const char *host) {
    ssl_transport_t *tls = t->context;
    const tls_io_t io = {.send = send_to_socket, .receive = receive_from_socket, .context = t->socket};
    tls->session = tls_session_create(host, strlen(host), &tls->cfg, io, &t->error, &t->error.last_error);
    if (tls->session == NULL) {
        return -1;
    }
    if (tls->cfg.client_session != NULL) {
        tls_session_resume(tls->session, tls->cfg.client_session);
    }
    return 0;
}

static int ssl_connect(esp_transport_handle_t t, const char *host, int timeout_ms) {
    (void)timeout_ms; // the socket's own receive and send time-outs bound the handshake
    ssl_transport_t *tls = t->context;
    if (create_session(t, host) != 0) {
        return -1;
    }
    int code = tls_session_handshake(tls->session);
    t->sock_errno = errno;
    if (code == ESP_TLS_ERR_SSL_WANT_READ || code == ESP_TLS_ERR_SSL_WANT_WRITE) {
        t->error.last_error = ESP_ERR_ESP_TLS_CONNECTION_TIMEOUT;
    }
    return code == 0 ? 0 : -1;
}

// As esp_tls_conn_new_async(): once the wait for TCP timed out, it never connects.
static bool tcp_is_connected(esp_transport_handle_t t, int timeout_ms) {
    ssl_transport_t *tls = t->context;
    tls->connect_timed_out =
        tls->connect_timed_out || tcp_socket_poll_write(t->socket, timeout_ms > 0 ? timeout_ms : -1) == 0;
    return !tls->connect_timed_out;
}

static int ssl_connect_async(esp_transport_handle_t t, const char *host, int timeout_ms) {
    ssl_transport_t *tls = t->context;
    if (tls->session == NULL && (!tcp_is_connected(t, timeout_ms) || create_session(t, host) != 0)) {
        return tls->connect_timed_out ? 0 : -1;
    }
    int code = tls_session_handshake(tls->session);
    t->sock_errno = errno;
    bool again = code == ESP_TLS_ERR_SSL_WANT_READ || code == ESP_TLS_ERR_SSL_WANT_WRITE;
    return code == 0 ? 1 : again ? 0 : -1;
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
        return transport_fail_read(t, ERR_TCP_TRANSPORT_CONNECTION_CLOSED_BY_FIN, 0);
    }
    if (n == ESP_TLS_ERR_SSL_WANT_READ) {
        return ERR_TCP_TRANSPORT_CONNECTION_TIMEOUT;
    }
    return transport_fail_read(t, ERR_TCP_TRANSPORT_CONNECTION_FAILED, sock_errno);
}

static int ssl_write(esp_transport_handle_t t, const char *buffer, int len) {
    ssl_transport_t *tls = t->context;
    ssize_t n = tls_session_write(tls->session, buffer, (size_t)len);
    t->sock_errno = n > 0 ? t->sock_errno : errno;
    return n > 0 ? (int)n : -1;
}

static void ssl_destroy(esp_transport_handle_t t) {
    esp_tls_free_client_session(((ssl_transport_t *)t->context)->saved);
    free(t->context);
}

static const transport_ops_t SSL_OPS = {
    .connect = ssl_connect,
    .connect_async = ssl_connect_async,
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

void esp_transport_ssl_crt_bundle_attach(esp_transport_handle_t t,
                                         esp_err_t (*crt_bundle_attach)(void *conf)) {
    options(t)->cfg.crt_bundle_attach = crt_bundle_attach;
}

void esp_transport_ssl_enable_global_ca_store(esp_transport_handle_t t) {
    options(t)->cfg.use_global_ca_store = true;
}

static void save_session(ssl_transport_t *tls) {
    esp_tls_free_client_session(tls->saved);
    tls->saved = tls->session == NULL ? NULL : tls_session_save(tls->session);
    tls->cfg.client_session = NULL; // until it is to be used
}

esp_err_t esp_transport_ssl_session_ticket_operation(esp_transport_handle_t t,
                                                     esp_transport_session_ticket_operation_t operation) {
    if (t == NULL || t->ops != &SSL_OPS) {
        return ESP_FAIL;
    }
    ssl_transport_t *tls = t->context;
    switch (operation) {
    case ESP_TRANSPORT_SESSION_TICKET_INIT:
        break;
    case ESP_TRANSPORT_SESSION_TICKET_SAVE:
        save_session(tls);
        break;
    case ESP_TRANSPORT_SESSION_TICKET_USE:
        if (tls->saved == NULL) {
            return ESP_ERR_INVALID_STATE;
        }
        tls->cfg.client_session = tls->saved;
        break;
    case ESP_TRANSPORT_SESSION_TICKET_FREE:
        esp_tls_free_client_session(tls->saved);
        tls->saved = NULL;
        tls->cfg.client_session = NULL;
        break;
    }
    return ESP_OK;
}
