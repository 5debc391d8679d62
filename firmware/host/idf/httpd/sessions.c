/* SPDX-License-Identifier: Apache-2.0 */
// Connections, and what a product keeps with each.
#include <stdlib.h>
#include <string.h>

#include "esp_log.h"
#include "httpd_priv.h"
#include "lwip/sockets.h"

static const char *TAG = "httpd_sess";

void httpd_sessions_init(httpd_server_t *server) {
    for (unsigned i = 0; i < server->config.max_open_sockets; i++) {
        server->sessions[i].fd = -1;
    }
}

bool httpd_session_is_available(const httpd_server_t *server) {
    return server->session_count < server->config.max_open_sockets;
}

static httpd_session_t *find(const httpd_server_t *server, int fd) {
    for (unsigned i = 0; i < server->config.max_open_sockets; i++) {
        if (server->sessions[i].fd == fd) {
            return &server->sessions[i];
        }
    }
    return NULL;
}

httpd_session_t *httpd_session_get(httpd_server_t *server, int fd) {
    return server == NULL || fd < 0 ? NULL : find(server, fd);
}

esp_err_t httpd_session_new(httpd_server_t *server, int fd) {
    httpd_session_t *session = find(server, -1);
    *session = (httpd_session_t){.fd = fd,
                                 .server = server,
                                 .send = httpd_default_send,
                                 .receive = httpd_default_receive,
                                 .last_used = server->use_counter};
    server->session_count++;
    esp_err_t err = server->config.open_fn == NULL ? ESP_OK : server->config.open_fn(server, fd);
    if (err != ESP_OK) {
        httpd_session_delete(server, session);
    }
    return err;
}

void httpd_context_free(void **ctx, httpd_free_ctx_fn_t free_fn) {
    if (*ctx != NULL) {
        (free_fn != NULL ? free_fn : free)(*ctx);
        *ctx = NULL;
    }
}

void httpd_session_delete(httpd_server_t *server, httpd_session_t *session) {
    if (session->fd < 0) {
        return;
    }
    if (server->config.enable_so_linger) {
        const struct linger linger = {.l_onoff = 1, .l_linger = server->config.linger_timeout};
        setsockopt(session->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    }
    if (server->config.close_fn != NULL) {
        server->config.close_fn(server, session->fd);
    } else {
        close(session->fd);
    }
    httpd_event(HTTP_SERVER_EVENT_DISCONNECTED, &session->fd, sizeof(session->fd));
    httpd_context_free(&session->ctx, session->free_ctx);
    httpd_context_free(&session->transport_ctx, session->free_transport_ctx);
    session->fd = -1;
    server->session_count--;
    if (server->session_count == 0) {
        server->use_counter = 0;
    }
}

esp_err_t httpd_session_process(httpd_server_t *server, httpd_session_t *session) {
    esp_err_t err = httpd_request_take(server, session);
    err = err == ESP_OK ? httpd_request_end(server) : err;
    if (err == ESP_OK) {
        session->last_used = ++server->use_counter;
    }
    return err;
}

// In the server's task. A session that was never used, and is not to make room, is one that came meanwhile.
static void close_session(void *argument) {
    httpd_session_t *session = argument;
    if (session->last_used == 0 && !session->closes) {
        return;
    }
    session->closes = false;
    httpd_session_delete(session->server, session);
}

esp_err_t httpd_session_close_oldest(httpd_server_t *server) {
    httpd_session_t *oldest = NULL;
    for (unsigned i = 0; i < server->config.max_open_sockets; i++) {
        httpd_session_t *session = &server->sessions[i];
        if (session->fd >= 0 && !session->is_async &&
            (oldest == NULL || session->last_used < oldest->last_used)) {
            oldest = session;
        }
    }
    if (oldest == NULL) {
        return ESP_OK;
    }
    oldest->closes = true;
    return httpd_queue_work(server, close_session, oldest);
}

esp_err_t httpd_sess_trigger_close(httpd_handle_t handle, int sockfd) {
    httpd_session_t *session = httpd_session_get(handle, sockfd);
    return session == NULL ? ESP_ERR_NOT_FOUND : httpd_queue_work(handle, close_session, session);
}

esp_err_t httpd_sess_update_lru_counter(httpd_handle_t handle, int sockfd) {
    if (handle == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    httpd_server_t *server = handle;
    httpd_session_t *session = httpd_session_get(server, sockfd);
    if (session == NULL) {
        return ESP_ERR_NOT_FOUND;
    }
    session->last_used = ++server->use_counter;
    return ESP_OK;
}

esp_err_t httpd_get_client_list(httpd_handle_t handle, size_t *fds, int *client_fds) {
    const httpd_server_t *server = handle;
    if (server == NULL || fds == NULL || *fds == 0 || client_fds == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    const size_t room = *fds;
    *fds = 0;
    for (unsigned i = 0; i < server->config.max_open_sockets; i++) {
        if (server->sessions[i].fd < 0) {
            continue;
        }
        if (*fds == room) {
            return ESP_ERR_INVALID_ARG;
        }
        client_fds[(*fds)++] = server->sessions[i].fd;
    }
    return ESP_OK;
}

// In a handler the context of its connection is the request's, until the handler returns.
static bool is_served(const httpd_server_t *server, const httpd_session_t *session) {
    return server->aux.session == session;
}

void *httpd_sess_get_ctx(httpd_handle_t handle, int sockfd) {
    const httpd_server_t *server = handle;
    const httpd_session_t *session = httpd_session_get(handle, sockfd);
    if (session == NULL) {
        return NULL;
    }
    return is_served(server, session) ? server->request.sess_ctx : session->ctx;
}

void httpd_sess_set_ctx(httpd_handle_t handle, int sockfd, void *ctx, httpd_free_ctx_fn_t free_fn) {
    httpd_server_t *server = handle;
    httpd_session_t *session = httpd_session_get(handle, sockfd);
    if (session == NULL) {
        ESP_LOGD(TAG, "no session %d", sockfd);
        return;
    }
    if (is_served(server, session)) {
        httpd_req_t *request = &server->request;
        if (request->sess_ctx != ctx && request->sess_ctx != session->ctx) {
            httpd_context_free(&request->sess_ctx, request->free_ctx);
        }
        request->sess_ctx = ctx;
        request->free_ctx = free_fn;
        return;
    }
    if (session->ctx != ctx) {
        httpd_context_free(&session->ctx, session->free_ctx);
        session->ctx = ctx;
    }
    session->free_ctx = free_fn;
}

void *httpd_sess_get_transport_ctx(httpd_handle_t handle, int sockfd) {
    const httpd_session_t *session = httpd_session_get(handle, sockfd);
    return session == NULL ? NULL : session->transport_ctx;
}

void httpd_sess_set_transport_ctx(httpd_handle_t handle, int sockfd, void *ctx, httpd_free_ctx_fn_t free_fn) {
    httpd_session_t *session = httpd_session_get(handle, sockfd);
    if (session == NULL) {
        return;
    }
    if (session->transport_ctx != ctx) {
        httpd_context_free(&session->transport_ctx, session->free_transport_ctx);
        session->transport_ctx = ctx;
    }
    session->free_transport_ctx = free_fn;
}

esp_err_t httpd_sess_set_recv_override(httpd_handle_t hd, int sockfd, httpd_recv_func_t recv_func) {
    httpd_session_t *session = httpd_session_get(hd, sockfd);
    if (session == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    session->receive = recv_func;
    return ESP_OK;
}

esp_err_t httpd_sess_set_send_override(httpd_handle_t hd, int sockfd, httpd_send_func_t send_func) {
    httpd_session_t *session = httpd_session_get(hd, sockfd);
    if (session == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    session->send = send_func;
    return ESP_OK;
}

esp_err_t httpd_sess_set_pending_override(httpd_handle_t hd, int sockfd, httpd_pending_func_t pending_func) {
    httpd_session_t *session = httpd_session_get(hd, sockfd);
    if (session == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    session->pending_fn = pending_func;
    return ESP_OK;
}
