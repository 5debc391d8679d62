/* SPDX-License-Identifier: Apache-2.0 */
// esp_transport: a list of transports by scheme, and what all transports share: a TCP socket, time-outs,
// errors.
#include "esp_transport.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "esp_log.h"
#include "esp_transport_ssl.h"
#include "esp_transport_tcp.h"
#include "transport_priv.h"

static const char *TAG = "transport_base";

struct esp_transport_list_t {
    struct esp_transport_item_t *first;
};

esp_transport_list_handle_t esp_transport_list_init(void) {
    return calloc(1, sizeof(struct esp_transport_list_t));
}

esp_err_t esp_transport_list_destroy(esp_transport_list_handle_t list) {
    if (list == NULL) {
        return ESP_FAIL;
    }
    while (list->first != NULL) {
        esp_transport_handle_t t = list->first;
        list->first = t->next;
        esp_transport_destroy(t);
    }
    free(list);
    return ESP_OK;
}

esp_err_t esp_transport_list_add(esp_transport_list_handle_t list, esp_transport_handle_t t,
                                 const char *scheme) {
    if (list == NULL || t == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    t->scheme = scheme;
    t->next = list->first;
    list->first = t;
    return ESP_OK;
}

esp_transport_handle_t esp_transport_list_get_transport(esp_transport_list_handle_t list,
                                                        const char *scheme) {
    if (list == NULL || scheme == NULL) {
        return NULL;
    }
    esp_transport_handle_t t = list->first;
    while (t != NULL && strcasecmp(t->scheme, scheme) != 0) {
        t = t->next;
    }
    return t;
}

esp_transport_handle_t transport_create(const transport_ops_t *ops, void *context) {
    esp_transport_handle_t t = calloc(1, sizeof(*t));
    if (t != NULL) {
        t->ops = ops;
        t->context = context;
        pthread_mutex_init(&t->lock, NULL);
    }
    return t;
}

int transport_fail(esp_transport_handle_t t, esp_err_t error, int tls_code, int tls_flags, int sock_errno) {
    t->error = (struct esp_tls_last_error){error, tls_code, tls_flags};
    t->sock_errno = sock_errno;
    return -1;
}

int transport_fail_read(esp_transport_handle_t t, int result, int sock_errno) {
    if (result == ERR_TCP_TRANSPORT_CONNECTION_CLOSED_BY_FIN) {
        t->error.last_error = ESP_ERR_ESP_TLS_TCP_CLOSED_FIN;
    } else {
        t->sock_errno = sock_errno;
    }
    return result;
}

esp_err_t esp_transport_destroy(esp_transport_handle_t t) {
    if (t == NULL) {
        return ESP_FAIL;
    }
    esp_transport_close(t);
    if (t->ops->destroy != NULL) {
        t->ops->destroy(t);
    }
    pthread_mutex_destroy(&t->lock);
    free(t);
    return ESP_OK;
}

int esp_transport_get_default_port(esp_transport_handle_t t) {
    return t == NULL ? -1 : t->default_port;
}

esp_err_t esp_transport_set_default_port(esp_transport_handle_t t, int port) {
    if (t == NULL) {
        return ESP_FAIL;
    }
    t->default_port = port;
    return ESP_OK;
}

static int open_socket(esp_transport_handle_t t, const char *host, int port, int timeout_ms, bool non_block) {
    tls_keep_alive_cfg_t keep_alive = {0};
    const esp_tls_cfg_t cfg = {.timeout_ms = timeout_ms,
                               .non_block = non_block,
                               .addr_family = t->addr_family,
                               .keep_alive_cfg = &keep_alive};
    if (t->keep_alive != NULL) {
        keep_alive =
            (tls_keep_alive_cfg_t){t->keep_alive->keep_alive_enable, t->keep_alive->keep_alive_idle,
                                   t->keep_alive->keep_alive_interval, t->keep_alive->keep_alive_count};
    }
    esp_err_t error = ESP_OK;
    int sock_errno = 0;
    t->error = (struct esp_tls_last_error){0};
    tcp_socket_t *socket = tcp_socket_connect(host, port, &cfg, &error, &sock_errno);
    if (socket == NULL) {
        ESP_LOGE(TAG, "Failed to open a connection to %s:%d: %s", host, port, strerror(sock_errno));
        return transport_fail(t, error, 0, 0, sock_errno);
    }
    pthread_mutex_lock(&t->lock);
    t->socket = socket;
    pthread_mutex_unlock(&t->lock);
    return 0;
}

int esp_transport_connect(esp_transport_handle_t t, const char *host, int port, int timeout_ms) {
    if (t == NULL) {
        return -1;
    }
    esp_transport_close(t);
    if (open_socket(t, host, port, timeout_ms, false) != 0) {
        return -1;
    }
    if (t->ops->connect != NULL && t->ops->connect(t, host, timeout_ms) != 0) {
        esp_transport_close(t);
        return -1;
    }
    return 0;
}

int esp_transport_connect_async(esp_transport_handle_t t, const char *host, int port, int timeout_ms) {
    if (t == NULL || (t->socket == NULL && open_socket(t, host, port, timeout_ms, true) != 0)) {
        return -1;
    }
    return t->ops->connect_async != NULL ? t->ops->connect_async(t, host, timeout_ms) : 1;
}

// Connecting, reading, writing and closing happen under the caller's lock, polling does not: so polling holds
// the socket, and a close that comes meanwhile wakes it.
static tcp_socket_t *hold_socket(esp_transport_handle_t t) {
    pthread_mutex_lock(&t->lock);
    tcp_socket_t *socket = t->socket == NULL ? NULL : tcp_socket_hold(t->socket);
    pthread_mutex_unlock(&t->lock);
    if (socket == NULL) {
        errno = ENOTCONN;
    }
    return socket;
}

// Lets go of what hold_socket gave; -1 instead of `ready` when the connection was closed meanwhile.
static int end_poll(esp_transport_handle_t t, tcp_socket_t *socket, int ready) {
    pthread_mutex_lock(&t->lock);
    bool closed = t->socket != socket;
    pthread_mutex_unlock(&t->lock);
    tcp_socket_release(socket);
    if (closed) {
        errno = ENOTCONN;
    }
    return closed ? -1 : ready;
}

int esp_transport_poll_read(esp_transport_handle_t t, int timeout_ms) {
    tcp_socket_t *socket = hold_socket(t);
    if (socket == NULL) {
        return -1;
    }
    int buffered = atomic_load(&t->buffered);
    return end_poll(t, socket, buffered > 0 ? buffered : tcp_socket_poll_read(socket, timeout_ms));
}

int esp_transport_poll_write(esp_transport_handle_t t, int timeout_ms) {
    tcp_socket_t *socket = hold_socket(t);
    return socket == NULL ? -1 : end_poll(t, socket, tcp_socket_poll_write(socket, timeout_ms));
}

int esp_transport_read(esp_transport_handle_t t, char *buffer, int len, int timeout_ms) {
    int ready = esp_transport_poll_read(t, timeout_ms);
    if (ready < 0) {
        t->sock_errno = errno;
        return ERR_TCP_TRANSPORT_CONNECTION_FAILED;
    }
    return ready == 0 ? ERR_TCP_TRANSPORT_CONNECTION_TIMEOUT : t->ops->read(t, buffer, len);
}

int esp_transport_write(esp_transport_handle_t t, const char *buffer, int len, int timeout_ms) {
    int ready = esp_transport_poll_write(t, timeout_ms);
    if (ready <= 0) {
        ESP_LOGW(TAG, "Poll timeout or error, errno=%s, timeout_ms=%d", strerror(errno), timeout_ms);
        t->sock_errno = ready < 0 ? errno : 0;
        return ready;
    }
    return t->ops->write(t, buffer, len);
}

int esp_transport_close(esp_transport_handle_t t) {
    if (t->socket == NULL) {
        return -1;
    }
    if (t->ops->close != NULL) {
        t->ops->close(t);
    }
    pthread_mutex_lock(&t->lock);
    tcp_socket_t *socket = t->socket;
    t->socket = NULL;
    pthread_mutex_unlock(&t->lock);
    atomic_store(&t->buffered, 0);
    tcp_socket_shutdown(socket);
    tcp_socket_release(socket);
    return 0;
}

int esp_transport_get_socket(esp_transport_handle_t t) {
    if (t == NULL) {
        return -1;
    }
    pthread_mutex_lock(&t->lock);
    int fd = t->socket == NULL ? -1 : tcp_socket_fd(t->socket);
    pthread_mutex_unlock(&t->lock);
    return fd;
}

int esp_transport_get_errno(esp_transport_handle_t t) {
    if (t == NULL) {
        return -1;
    }
    int captured = t->sock_errno;
    t->sock_errno = 0;
    return captured;
}

esp_tls_error_handle_t esp_transport_get_error_handle(esp_transport_handle_t t) {
    return t == NULL ? NULL : &t->error;
}

esp_err_t esp_transport_translate_error(enum esp_tcp_transport_err_t error) {
    switch (error) {
    case ERR_TCP_TRANSPORT_CONNECTION_TIMEOUT:
        return ESP_ERR_TCP_TRANSPORT_CONNECTION_TIMEOUT;
    case ERR_TCP_TRANSPORT_CONNECTION_CLOSED_BY_FIN:
        return ESP_ERR_TCP_TRANSPORT_CONNECTION_CLOSED_BY_FIN;
    case ERR_TCP_TRANSPORT_CONNECTION_FAILED:
        return ESP_ERR_TCP_TRANSPORT_CONNECTION_FAILED;
    case ERR_TCP_TRANSPORT_NO_MEM:
        return ESP_ERR_TCP_TRANSPORT_NO_MEM;
    }
    return ESP_FAIL;
}

void esp_transport_tcp_set_keep_alive(esp_transport_handle_t t, esp_transport_keep_alive_t *keep_alive_cfg) {
    t->keep_alive = keep_alive_cfg;
}

void esp_transport_ssl_set_addr_family(esp_transport_handle_t t, esp_tls_addr_family_t addr_family) {
    t->addr_family = addr_family;
}
