/* SPDX-License-Identifier: Apache-2.0 */
// The server as its own sources see it.
#pragma once

#include "esp_http_server.h"

#define HTTPD_BLOCK_BYTES 128 // read at a time, until the headers are whole

typedef struct httpd_server httpd_server_t;

typedef struct {
    int fd; // -1: free
    httpd_server_t *server;
    void *ctx;
    httpd_free_ctx_fn_t free_ctx;
    bool ignores_ctx_changes;
    void *transport_ctx;
    httpd_free_ctx_fn_t free_transport_ctx;
    httpd_send_func_t send;
    httpd_recv_func_t receive;
    httpd_pending_func_t pending_fn;
    uint64_t last_used;
    bool closes; // as the one that was not used for longest
    bool is_async;
    char pending[HTTPD_BLOCK_BYTES]; // what was read past the headers
    size_t pending_bytes;
} httpd_session_t;

typedef struct {
    const char *field;
    const char *value;
} httpd_answer_header_t;

typedef struct {
    httpd_session_t *session;
    size_t remaining; // of the body
    const char *status;
    const char *content_type;
    bool first_chunk_sent;
    char *headers; // "name\0value\0", one after another
    size_t headers_bytes;
    httpd_answer_header_t *answer_headers;
    unsigned answer_header_count;
    struct http_parser_url url;
} httpd_aux_t;

struct httpd_server {
    httpd_config_t config;
    int listen_fd;
    int control_fd; // of the server's task
    int message_fd; // of who sends to it
    TaskHandle_t task;
    volatile bool stops;
    volatile bool stopped;
    httpd_session_t *sessions;
    int session_count;
    uint64_t use_counter;
    httpd_uri_t **uris;
    httpd_err_handler_func_t error_handlers[HTTPD_ERR_CODE_MAX];
    httpd_req_t request;
    httpd_aux_t aux;
};

// server.c
void httpd_event(esp_http_server_event_id_t id, const void *data, size_t size);

// sessions.c
void httpd_sessions_init(httpd_server_t *server);
bool httpd_session_is_available(const httpd_server_t *server);
esp_err_t httpd_session_new(httpd_server_t *server, int fd);
void httpd_session_delete(httpd_server_t *server, httpd_session_t *session);
esp_err_t httpd_session_close_oldest(httpd_server_t *server);
httpd_session_t *httpd_session_get(httpd_server_t *server, int fd);
// Another value than ESP_OK: the connection is of no more use.
esp_err_t httpd_session_process(httpd_server_t *server, httpd_session_t *session);
void httpd_context_free(void **ctx, httpd_free_ctx_fn_t free_fn);

// request.c
esp_err_t httpd_request_take(httpd_server_t *server, httpd_session_t *session);
esp_err_t httpd_request_end(httpd_server_t *server);

// response.c
esp_err_t httpd_handle_error(httpd_req_t *request, httpd_err_code_t error);
int httpd_default_send(httpd_handle_t hd, int sockfd, const char *buf, size_t buf_len, int flags);
int httpd_default_receive(httpd_handle_t hd, int sockfd, char *buf, size_t buf_len, int flags);

// uris.c: runs the handler of the request's URI and method, or that of the error.
esp_err_t httpd_handle_uri(httpd_server_t *server);
void httpd_uris_free(httpd_server_t *server);
