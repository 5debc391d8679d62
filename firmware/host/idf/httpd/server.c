/* SPDX-License-Identifier: Apache-2.0 */
// The server's task: connections, requests on them, and what other tasks ask it to do.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "esp_log.h"
#include "httpd_priv.h"
#include "lwip/sockets.h"

ESP_EVENT_DEFINE_BASE(ESP_HTTP_SERVER_EVENT);

#define INTERNAL_SOCKETS 3
#define STOP_LOOK_MS 100
#define KEEP_ALIVE_S 5
#define KEEP_ALIVE_PROBES 3

#if CONFIG_HTTPD_SERVER_EVENT_POST_TIMEOUT == -1
#define POST_TICKS portMAX_DELAY
#else
#define POST_TICKS pdMS_TO_TICKS(CONFIG_HTTPD_SERVER_EVENT_POST_TIMEOUT)
#endif

typedef struct {
    enum { MESSAGE_STOP, MESSAGE_WORK, MESSAGE_LOOK_AGAIN } what;
    httpd_work_fn_t work;
    void *argument;
} message_t;

static const char *TAG = "httpd";

void httpd_event(esp_http_server_event_id_t id, const void *data, size_t size) {
    esp_err_t err = esp_event_post(ESP_HTTP_SERVER_EVENT, (int32_t)id, data, size, POST_TICKS);
    if (err != ESP_OK) {
        ESP_LOGE(TAG, "Failed to post esp_http_server event: %s", esp_err_to_name(err));
    }
}

static bool set_timeout(int fd, int option, unsigned seconds) {
    const struct timeval time = {.tv_sec = seconds};
    return setsockopt(fd, SOL_SOCKET, option, &time, sizeof(time)) == 0;
}

static bool set_int(int fd, int level, int option, int value, int standard) {
    const int set = value == 0 ? standard : value;
    return setsockopt(fd, level, option, &set, sizeof(set)) == 0;
}

static bool prepare(const httpd_config_t *config, int fd) {
    bool done = set_timeout(fd, SO_RCVTIMEO, config->recv_wait_timeout) &&
                set_timeout(fd, SO_SNDTIMEO, config->send_wait_timeout);
    if (config->keep_alive_enable) {
        done = done && set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1, 1) &&
               set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, config->keep_alive_idle, KEEP_ALIVE_S) &&
               set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, config->keep_alive_interval, KEEP_ALIVE_S) &&
               set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, config->keep_alive_count, KEEP_ALIVE_PROBES);
    }
    return done;
}

static void accept_connection(httpd_server_t *server) {
    if (!httpd_session_is_available(server)) { // with lru_purge_enable: there will be room the next time
        httpd_session_close_oldest(server);
        return;
    }
    int fd = accept(server->listen_fd, NULL, NULL);
    if (fd < 0) {
        ESP_LOGE(TAG, "error in accept (%d)", errno);
        return;
    }
    if (!prepare(&server->config, fd)) {
        ESP_LOGE(TAG, "error in setsockopt (%d)", errno);
        close(fd);
        return;
    }
    if (httpd_session_new(server, fd) == ESP_OK) {
        httpd_event(HTTP_SERVER_EVENT_ON_CONNECTED, &fd, sizeof(fd));
    }
}

static void obey(httpd_server_t *server) {
    message_t message;
    if (recv(server->control_fd, &message, sizeof(message), 0) != sizeof(message)) {
        ESP_LOGW(TAG, "error in recv (%d)", errno);
        return;
    }
    if (message.what == MESSAGE_WORK) {
        message.work(message.argument);
    }
    server->stops = server->stops || message.what == MESSAGE_STOP;
}

static bool is_pending(httpd_server_t *server, const httpd_session_t *session) {
    return session->pending_bytes > 0 ||
           (session->pending_fn != NULL && session->pending_fn(server, session->fd) > 0);
}

// The sockets to wait for; returns the highest. What is left of a request that came with another one does not
// count, as there: it is looked at with the next thing that happens.
static int gather(httpd_server_t *server, fd_set *set) {
    int highest = server->control_fd;
    FD_ZERO(set);
    FD_SET(server->control_fd, set);
    if (server->config.lru_purge_enable || httpd_session_is_available(server)) {
        FD_SET(server->listen_fd, set);
        highest = server->listen_fd > highest ? server->listen_fd : highest;
    }
    for (unsigned i = 0; i < server->config.max_open_sockets; i++) {
        const httpd_session_t *session = &server->sessions[i];
        if (session->fd >= 0 && !session->is_async) {
            FD_SET(session->fd, set);
            highest = session->fd > highest ? session->fd : highest;
        }
    }
    return highest;
}

static void serve_sessions(httpd_server_t *server, const fd_set *ready) {
    for (unsigned i = 0; i < server->config.max_open_sockets; i++) {
        httpd_session_t *session = &server->sessions[i];
        if (session->fd >= 0 && !session->is_async &&
            (FD_ISSET(session->fd, ready) || is_pending(server, session)) &&
            httpd_session_process(server, session) != ESP_OK) {
            httpd_session_delete(server, session);
        }
    }
}

static void serve(httpd_server_t *server) {
    fd_set ready;
    const int highest = gather(server, &ready);
    if (select(highest + 1, &ready, NULL, NULL, NULL) < 0) {
        ESP_LOGE(TAG, "error in select (%d)", errno);
        return;
    }
    if (FD_ISSET(server->control_fd, &ready)) {
        obey(server);
    }
    if (server->stops) {
        return;
    }
    serve_sessions(server, &ready);
    if (FD_ISSET(server->listen_fd, &ready)) {
        accept_connection(server);
    }
}

static void server_task(void *argument) {
    httpd_server_t *server = argument;
    while (!server->stops) {
        serve(server);
    }
    close(server->message_fd);
    close(server->control_fd);
    for (unsigned i = 0; i < server->config.max_open_sockets; i++) {
        httpd_session_delete(server, &server->sessions[i]);
    }
    close(server->listen_fd);
    server->stopped = true;
    vTaskDelete(NULL);
}

static bool bind_to(int fd, in_addr_t address, uint16_t port) {
    const struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(address), .sin_port = htons(port)};
    return fd >= 0 && bind(fd, (const struct sockaddr *)&name, sizeof(name)) == 0;
}

static bool connect_to_name_of(int fd, int other) {
    struct sockaddr_in name;
    socklen_t size = sizeof(name);
    return getsockname(other, (struct sockaddr *)&name, &size) == 0 &&
           connect(fd, (const struct sockaddr *)&name, size) == 0;
}

// Two datagram sockets that take from each other only, on the port that ESP-IDF has for it.
static bool open_control(httpd_server_t *server) {
    server->control_fd = socket(AF_INET, SOCK_DGRAM, IPPROTO_UDP);
    server->message_fd = socket(AF_INET, SOCK_DGRAM, IPPROTO_UDP);
    return bind_to(server->control_fd, INADDR_LOOPBACK, server->config.ctrl_port) &&
           bind_to(server->message_fd, INADDR_LOOPBACK, 0) &&
           connect_to_name_of(server->message_fd, server->control_fd) &&
           connect_to_name_of(server->control_fd, server->message_fd);
}

static bool open_listener(httpd_server_t *server) {
    server->listen_fd = socket(AF_INET, SOCK_STREAM, 0);
    return server->listen_fd >= 0 && set_int(server->listen_fd, SOL_SOCKET, SO_REUSEADDR, 1, 1) &&
           bind_to(server->listen_fd, INADDR_ANY, server->config.server_port) &&
           listen(server->listen_fd, server->config.backlog_conn) == 0;
}

static void close_if_open(int fd) {
    if (fd >= 0) {
        close(fd);
    }
}

static void server_free(httpd_server_t *server) {
    httpd_uris_free(server);
    free(server->uris);
    free(server->sessions);
    free(server->aux.answer_headers);
    free(server);
}

static httpd_server_t *create(const httpd_config_t *config) {
    httpd_server_t *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        return NULL;
    }
    server->config = *config;
    server->listen_fd = server->control_fd = server->message_fd = -1;
    server->uris = calloc(config->max_uri_handlers, sizeof(*server->uris));
    server->sessions = calloc(config->max_open_sockets, sizeof(*server->sessions));
    server->aux.answer_headers = calloc(config->max_resp_headers, sizeof(httpd_answer_header_t));
    if (server->uris == NULL || server->sessions == NULL || server->aux.answer_headers == NULL) {
        ESP_LOGE(TAG, "Failed to allocate memory for HTTP server instance");
        server_free(server);
        return NULL;
    }
    httpd_sessions_init(server);
    return server;
}

static esp_err_t launch(httpd_server_t *server) {
    const httpd_config_t *config = &server->config;
    esp_err_t err = ESP_OK;
    if (!open_listener(server) || !open_control(server)) {
        ESP_LOGE(TAG, "error in opening port %u or control port %u (%d)", config->server_port,
                 config->ctrl_port, errno);
        err = ESP_FAIL;
    } else if (xTaskCreatePinnedToCore(server_task, "httpd", config->stack_size, server,
                                       config->task_priority, &server->task, config->core_id) != pdPASS) {
        err = ESP_ERR_HTTPD_TASK;
    }
    if (err != ESP_OK) {
        close_if_open(server->listen_fd);
        close_if_open(server->control_fd);
        close_if_open(server->message_fd);
    }
    return err;
}

esp_err_t httpd_start(httpd_handle_t *handle, const httpd_config_t *config) {
    if (handle == NULL || config == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (CONFIG_LWIP_MAX_SOCKETS < config->max_open_sockets + INTERNAL_SOCKETS) {
        ESP_LOGE(TAG,
                 "Config option max_open_sockets is too large (max allowed %d, 3 sockets used by HTTP server "
                 "internally)\n\tEither decrease this or configure LWIP_MAX_SOCKETS to a larger value",
                 CONFIG_LWIP_MAX_SOCKETS - INTERNAL_SOCKETS);
        return ESP_ERR_INVALID_ARG;
    }
    httpd_server_t *server = create(config);
    if (server == NULL) {
        return ESP_ERR_HTTPD_ALLOC_MEM;
    }
    esp_err_t err = launch(server);
    if (err != ESP_OK) {
        server_free(server);
        return err;
    }
    *handle = server;
    httpd_event(HTTP_SERVER_EVENT_START, NULL, 0);
    return ESP_OK;
}

static esp_err_t tell(httpd_server_t *server, const message_t *message) {
    return send(server->message_fd, message, sizeof(*message), 0) == sizeof(*message) ? ESP_OK : ESP_FAIL;
}

esp_err_t httpd_stop(httpd_handle_t handle) {
    httpd_server_t *server = handle;
    if (server == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    const message_t message = {.what = MESSAGE_STOP};
    if (tell(server, &message) != ESP_OK) {
        ESP_LOGE(TAG, "Failed to send shutdown signal err=%d", errno);
        return ESP_FAIL;
    }
    while (!server->stopped) {
        vTaskDelay(pdMS_TO_TICKS(STOP_LOOK_MS));
    }
    httpd_context_free(&server->config.global_user_ctx, server->config.global_user_ctx_free_fn);
    httpd_context_free(&server->config.global_transport_ctx, server->config.global_transport_ctx_free_fn);
    server_free(server);
    httpd_event(HTTP_SERVER_EVENT_STOP, NULL, 0);
    return ESP_OK;
}

esp_err_t httpd_queue_work(httpd_handle_t handle, httpd_work_fn_t work, void *arg) {
    if (handle == NULL || work == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    const message_t message = {.what = MESSAGE_WORK, .work = work, .argument = arg};
    esp_err_t err = tell(handle, &message);
    if (err != ESP_OK) {
        ESP_LOGW(TAG, "failed to queue work");
    }
    return err;
}

esp_err_t httpd_req_async_handler_complete(httpd_req_t *r) {
    if (r == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    httpd_server_t *server = r->handle;
    httpd_aux_t *aux = r->aux;
    aux->session->is_async = false;
    free(aux->headers);
    free(aux->answer_headers);
    free(aux);
    free(r);
    const message_t message = {.what = MESSAGE_LOOK_AGAIN}; // its socket is to be waited for again
    return tell(server, &message);
}

void *httpd_get_global_user_ctx(httpd_handle_t handle) {
    return ((httpd_server_t *)handle)->config.global_user_ctx;
}

void *httpd_get_global_transport_ctx(httpd_handle_t handle) {
    return ((httpd_server_t *)handle)->config.global_transport_ctx;
}
