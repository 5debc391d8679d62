/* SPDX-License-Identifier: Apache-2.0 */
// The states of a connection: esp_tls_low_level_conn() of ESP-IDF's esp_tls.c and what is around it.
#include "esp_tls.h"

#include <errno.h>
#include <stdlib.h>

#include "esp_log.h"
#include "esp_timer.h"
#include "esp_tls_priv.h"
#include "tls_error.h"

static const char *TAG = "esp-tls";

static ssize_t send_to_socket(void *tls, const void *data, size_t len) {
    return send(((esp_tls_t *)tls)->sockfd, data, len, MSG_NOSIGNAL);
}

static ssize_t receive_from_socket(void *tls, void *buffer, size_t len) {
    return recv(((esp_tls_t *)tls)->sockfd, buffer, len, 0);
}

esp_tls_t *esp_tls_init(void) {
    esp_tls_t *tls = calloc(1, sizeof(*tls));
    if (tls == NULL) {
        return NULL;
    }
    tls->sockfd = -1;
    tls->error = tls_error_handle_create();
    if (tls->error == NULL) {
        free(tls);
        return NULL;
    }
    return tls;
}

int esp_tls_conn_destroy(esp_tls_t *tls) {
    if (tls == NULL) {
        return -1;
    }
    tls_session_delete(tls->session);
    int result = tls->sockfd >= 0 ? close(tls->sockfd) : 0;
    tls_error_handle_delete(tls->error);
    free(tls);
    return result;
}

static int fail(esp_tls_t *tls, esp_err_t err) {
    tls_error_capture(tls->error, ESP_TLS_ERR_TYPE_ESP, err);
    tls->state = ESP_TLS_FAIL;
    return -1;
}

// 1 where plain TCP is all there is to do, 0 to go on, -1. After a failure the state stays ESP_TLS_INIT.
static int start(const char *host, int hostlen, int port, const esp_tls_cfg_t *cfg, esp_tls_t *tls) {
    tls->sockfd = -1;
    tls->is_tls = !cfg->is_plain_tcp;
    esp_err_t err = esp_tls_plain_tcp_connect(host, hostlen, port, cfg, tls->error, &tls->sockfd);
    if (err != ESP_OK) {
        tls_error_capture(tls->error, ESP_TLS_ERR_TYPE_ESP, err);
        return -1;
    }
    if (!tls->is_tls) {
        return 1;
    }
    if (cfg->non_block) {
        FD_ZERO(&tls->rset);
        FD_SET(tls->sockfd, &tls->rset);
        tls->wset = tls->rset;
    }
    tls->state = ESP_TLS_CONNECTING;
    return 0;
}

// Whether the socket is connected, or failed: see esp_tls_conn_new_async() in esp_tls.h.
static int await_connected(const esp_tls_cfg_t *cfg, esp_tls_t *tls) {
    struct timeval tv = esp_tls_timeval(cfg->timeout_ms);
    if (select(tls->sockfd + 1, &tls->rset, &tls->wset, NULL, cfg->timeout_ms > 0 ? &tv : NULL) == 0) {
        return 0;
    }
    int dropped;
    socklen_t length = sizeof(dropped);
    if (getsockopt(tls->sockfd, SOL_SOCKET, SO_ERROR, &dropped, &length) < 0) {
        tls_error_capture(tls->error, ESP_TLS_ERR_TYPE_SYSTEM, errno);
        return fail(tls, ESP_ERR_ESP_TLS_SOCKET_SETOPT_FAILED);
    }
    return 1;
}

static int create_session(const char *host, int hostlen, const esp_tls_cfg_t *cfg, esp_tls_t *tls) {
    const tls_io_t io = {.send = send_to_socket, .receive = receive_from_socket, .context = tls};
    esp_err_t err = ESP_OK;
    tls->session = tls_session_create(host, (size_t)hostlen, cfg, io, tls->error, &err);
    if (tls->session == NULL) {
        ESP_LOGE(TAG, "create_ssl_handle failed");
        return fail(tls, err);
    }
    tls->state = ESP_TLS_HANDSHAKE;
    return 1;
}

static int shake_hands(const esp_tls_cfg_t *cfg, esp_tls_t *tls) {
    if (cfg->client_session != NULL && !tls_session_resume(tls->session, cfg->client_session)) {
        ESP_LOGE(TAG, "the client session was given already"); // no error code and no change of state
        return -1;
    }
    int code = tls_session_handshake(tls->session);
    if (code == 0) {
        tls->state = ESP_TLS_DONE;
        return 1;
    }
    if (code == ESP_TLS_ERR_SSL_WANT_READ || code == ESP_TLS_ERR_SSL_WANT_WRITE) {
        return 0;
    }
    tls->state = ESP_TLS_FAIL;
    return -1;
}

static int step(const char *host, int hostlen, int port, const esp_tls_cfg_t *cfg, esp_tls_t *tls) {
    if (tls->state == ESP_TLS_INIT) {
        int started = start(host, hostlen, port, cfg, tls);
        if (started != 0) {
            return started;
        }
    }
    if (tls->state == ESP_TLS_CONNECTING) {
        int going_on = cfg->non_block ? await_connected(cfg, tls) : 1;
        going_on = going_on == 1 ? create_session(host, hostlen, cfg, tls) : going_on;
        if (going_on != 1) {
            return going_on;
        }
    }
    if (tls->state == ESP_TLS_HANDSHAKE) {
        return shake_hands(cfg, tls);
    }
    ESP_LOGE(TAG, "failed to open a new connection");
    return -1;
}

int esp_tls_conn_new_async(const char *hostname, int hostlen, int port, const esp_tls_cfg_t *cfg,
                           esp_tls_t *tls) {
    if (cfg == NULL || tls == NULL || hostname == NULL || hostlen < 0) {
        return -1;
    }
    return step(hostname, hostlen, port, cfg, tls);
}

int esp_tls_conn_new_sync(const char *hostname, int hostlen, int port, const esp_tls_cfg_t *cfg,
                          esp_tls_t *tls) {
    int64_t started_us = esp_timer_get_time();
    for (;;) {
        int result = esp_tls_conn_new_async(hostname, hostlen, port, cfg, tls);
        if (result != 0) {
            return result;
        }
        if (cfg->timeout_ms >= 0 && esp_timer_get_time() - started_us >= (int64_t)cfg->timeout_ms * 1000) {
            ESP_LOGW(TAG, "Failed to open new connection in specified timeout");
            tls_error_capture(tls->error, ESP_TLS_ERR_TYPE_ESP, ESP_ERR_ESP_TLS_CONNECTION_TIMEOUT);
            return 0;
        }
    }
}

ssize_t esp_tls_conn_read(esp_tls_t *tls, void *data, size_t datalen) {
    if (tls == NULL || (tls->is_tls && tls->session == NULL)) {
        return -1;
    }
    return tls->session != NULL ? tls_session_read(tls->session, data, datalen)
                                : receive_from_socket(tls, data, datalen);
}

ssize_t esp_tls_conn_write(esp_tls_t *tls, const void *data, size_t datalen) {
    if (tls == NULL || data == NULL || (tls->is_tls && tls->session == NULL)) {
        return -1;
    }
    return tls->session != NULL ? tls_session_write(tls->session, data, datalen)
                                : send_to_socket(tls, data, datalen);
}

ssize_t esp_tls_get_bytes_avail(esp_tls_t *tls) {
    if (tls == NULL) {
        return ESP_FAIL;
    }
    return tls->session == NULL ? 0 : (ssize_t)tls_session_bytes_available(tls->session);
}

esp_err_t esp_tls_get_conn_sockfd(esp_tls_t *tls, int *sockfd) {
    if (tls == NULL || sockfd == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    *sockfd = tls->sockfd;
    return ESP_OK;
}

esp_err_t esp_tls_set_conn_sockfd(esp_tls_t *tls, int sockfd) {
    if (tls == NULL || sockfd < 0) {
        return ESP_ERR_INVALID_ARG;
    }
    tls->sockfd = sockfd;
    return ESP_OK;
}

esp_err_t esp_tls_get_conn_state(esp_tls_t *tls, esp_tls_conn_state_t *conn_state) {
    if (tls == NULL || conn_state == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    *conn_state = tls->state;
    return ESP_OK;
}

esp_err_t esp_tls_set_conn_state(esp_tls_t *tls, esp_tls_conn_state_t conn_state) {
    if (tls == NULL || conn_state > ESP_TLS_DONE) {
        return ESP_ERR_INVALID_ARG;
    }
    tls->state = conn_state;
    return ESP_OK;
}

esp_err_t esp_tls_get_error_handle(esp_tls_t *tls, esp_tls_error_handle_t *error_handle) {
    if (tls == NULL || error_handle == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    *error_handle = tls->error;
    return ESP_OK;
}

esp_tls_client_session_t *esp_tls_get_client_session(esp_tls_t *tls) {
    return tls == NULL || tls->session == NULL ? NULL : tls_session_save(tls->session);
}
