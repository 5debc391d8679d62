/* SPDX-License-Identifier: Apache-2.0 */
// ESP-IDF's HTTP server on the host's sockets: one task that serves all connections. Names, values, answers
// and return codes are those of ESP-IDF v5.5. Without WebSockets; docs/explain/host-network.md.
#pragma once

#include <http_parser.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "esp_err.h"
#include "esp_event.h"
#include "esp_heap_caps.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "sdkconfig.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ESP_HTTPD_DEF_CTRL_PORT (32768)

// On the default event loop; data is the socket's number, or one of the structures below.
ESP_EVENT_DECLARE_BASE(ESP_HTTP_SERVER_EVENT);

typedef enum {
    HTTP_SERVER_EVENT_ERROR = 0, // httpd_err_code_t
    HTTP_SERVER_EVENT_START,
    HTTP_SERVER_EVENT_ON_CONNECTED,
    HTTP_SERVER_EVENT_ON_HEADER,
    HTTP_SERVER_EVENT_HEADERS_SENT,
    HTTP_SERVER_EVENT_ON_DATA,   // esp_http_server_event_data
    HTTP_SERVER_EVENT_SENT_DATA, // esp_http_server_event_data
    HTTP_SERVER_EVENT_DISCONNECTED,
    HTTP_SERVER_EVENT_STOP,
} esp_http_server_event_id_t;

typedef struct {
    int fd;
    int data_len;
} esp_http_server_event_data;

#define HTTPD_DEFAULT_CONFIG()                                                                               \
    {                                                                                                        \
        .task_priority = tskIDLE_PRIORITY + 5, .stack_size = 4096, .core_id = tskNO_AFFINITY,                \
        .task_caps = (MALLOC_CAP_INTERNAL | MALLOC_CAP_8BIT),                                                \
        .max_req_hdr_len = CONFIG_HTTPD_MAX_REQ_HDR_LEN, .max_uri_len = CONFIG_HTTPD_MAX_URI_LEN,            \
        .server_port = 80, .ctrl_port = ESP_HTTPD_DEF_CTRL_PORT, .max_open_sockets = 7,                      \
        .max_uri_handlers = 8, .max_resp_headers = 8, .backlog_conn = 5, .lru_purge_enable = false,          \
        .recv_wait_timeout = 5, .send_wait_timeout = 5, .global_user_ctx = NULL,                             \
        .global_user_ctx_free_fn = NULL, .global_transport_ctx = NULL, .global_transport_ctx_free_fn = NULL, \
        .enable_so_linger = false, .linger_timeout = 0, .keep_alive_enable = false, .keep_alive_idle = 0,    \
        .keep_alive_interval = 0, .keep_alive_count = 0, .open_fn = NULL, .close_fn = NULL,                  \
        .uri_match_fn = NULL                                                                                 \
    }

#define ESP_ERR_HTTPD_BASE (0xb000)
#define ESP_ERR_HTTPD_HANDLERS_FULL (ESP_ERR_HTTPD_BASE + 1)
#define ESP_ERR_HTTPD_HANDLER_EXISTS (ESP_ERR_HTTPD_BASE + 2)
#define ESP_ERR_HTTPD_INVALID_REQ (ESP_ERR_HTTPD_BASE + 3)
#define ESP_ERR_HTTPD_RESULT_TRUNC (ESP_ERR_HTTPD_BASE + 4)
#define ESP_ERR_HTTPD_RESP_HDR (ESP_ERR_HTTPD_BASE + 5)
#define ESP_ERR_HTTPD_RESP_SEND (ESP_ERR_HTTPD_BASE + 6)
#define ESP_ERR_HTTPD_ALLOC_MEM (ESP_ERR_HTTPD_BASE + 7)
#define ESP_ERR_HTTPD_TASK (ESP_ERR_HTTPD_BASE + 8)

#define HTTPD_RESP_USE_STRLEN -1

typedef void *httpd_handle_t;
typedef enum http_method httpd_method_t;
#define HTTP_ANY INT_MAX

typedef void (*httpd_free_ctx_fn_t)(void *ctx);
typedef esp_err_t (*httpd_open_func_t)(httpd_handle_t hd, int sockfd);
typedef void (*httpd_close_func_t)(httpd_handle_t hd, int sockfd); // closes the socket itself
typedef bool (*httpd_uri_match_func_t)(const char *reference_uri, const char *uri_to_match,
                                       size_t match_upto);

typedef struct httpd_config {
    unsigned task_priority;
    size_t stack_size;
    BaseType_t core_id;
    uint32_t task_caps;
    size_t max_req_hdr_len;
    size_t max_uri_len;
    uint16_t server_port; // below 1024 a program needs root on the host
    uint16_t ctrl_port;   // UDP, on the loopback: another one for each server
    uint16_t max_open_sockets;
    uint16_t max_uri_handlers;
    uint16_t max_resp_headers;
    uint16_t backlog_conn;
    bool lru_purge_enable;
    uint16_t recv_wait_timeout; // s
    uint16_t send_wait_timeout; // s
    void *global_user_ctx;
    httpd_free_ctx_fn_t global_user_ctx_free_fn;
    void *global_transport_ctx;
    httpd_free_ctx_fn_t global_transport_ctx_free_fn;
    bool enable_so_linger;
    int linger_timeout;
    bool keep_alive_enable;
    int keep_alive_idle;
    int keep_alive_interval;
    int keep_alive_count;
    httpd_open_func_t open_fn;
    httpd_close_func_t close_fn;
    httpd_uri_match_func_t uri_match_fn;
} httpd_config_t;

esp_err_t httpd_start(httpd_handle_t *handle, const httpd_config_t *config);
esp_err_t httpd_stop(httpd_handle_t handle);

typedef struct httpd_req {
    httpd_handle_t handle;
    int method;
    const char uri[CONFIG_HTTPD_MAX_URI_LEN + 1];
    size_t content_len;
    void *aux;
    void *user_ctx;
    void *sess_ctx; // of the connection, freed with it
    httpd_free_ctx_fn_t free_ctx;
    bool ignore_sess_ctx_changes;
} httpd_req_t;

typedef struct httpd_uri {
    const char *uri;
    httpd_method_t method;
    esp_err_t (*handler)(httpd_req_t *r); // another value than ESP_OK closes the connection
    void *user_ctx;
} httpd_uri_t;

esp_err_t httpd_register_uri_handler(httpd_handle_t handle, const httpd_uri_t *uri_handler);
esp_err_t httpd_unregister_uri_handler(httpd_handle_t handle, const char *uri, httpd_method_t method);
esp_err_t httpd_unregister_uri(httpd_handle_t handle, const char *uri);
// As uri_match_fn: a template may end in *, ? (the character before it is optional) or both.
bool httpd_uri_match_wildcard(const char *uri_template, const char *uri_to_match, size_t match_upto);

typedef enum {
    HTTPD_500_INTERNAL_SERVER_ERROR = 0,
    HTTPD_501_METHOD_NOT_IMPLEMENTED,
    HTTPD_505_VERSION_NOT_SUPPORTED,
    HTTPD_400_BAD_REQUEST,
    HTTPD_401_UNAUTHORIZED,
    HTTPD_403_FORBIDDEN,
    HTTPD_404_NOT_FOUND,
    HTTPD_405_METHOD_NOT_ALLOWED,
    HTTPD_408_REQ_TIMEOUT,
    HTTPD_411_LENGTH_REQUIRED,
    HTTPD_413_CONTENT_TOO_LARGE,
    HTTPD_414_URI_TOO_LONG,
    HTTPD_431_REQ_HDR_FIELDS_TOO_LARGE,
    HTTPD_ERR_CODE_MAX
} httpd_err_code_t;

// ESP_OK keeps the connection, but after a 500.
typedef esp_err_t (*httpd_err_handler_func_t)(httpd_req_t *req, httpd_err_code_t error);
esp_err_t httpd_register_err_handler(httpd_handle_t handle, httpd_err_code_t error,
                                     httpd_err_handler_func_t handler_fn);

#define HTTPD_SOCK_ERR_FAIL -1
#define HTTPD_SOCK_ERR_INVALID -2
#define HTTPD_SOCK_ERR_TIMEOUT -3

typedef int (*httpd_send_func_t)(httpd_handle_t hd, int sockfd, const char *buf, size_t buf_len, int flags);
typedef int (*httpd_recv_func_t)(httpd_handle_t hd, int sockfd, char *buf, size_t buf_len, int flags);
typedef int (*httpd_pending_func_t)(httpd_handle_t hd, int sockfd);

esp_err_t httpd_sess_set_recv_override(httpd_handle_t hd, int sockfd, httpd_recv_func_t recv_func);
esp_err_t httpd_sess_set_send_override(httpd_handle_t hd, int sockfd, httpd_send_func_t send_func);
esp_err_t httpd_sess_set_pending_override(httpd_handle_t hd, int sockfd, httpd_pending_func_t pending_func);

// A copy of the request for another task; the connection is left alone until that has completed it.
esp_err_t httpd_req_async_handler_begin(httpd_req_t *r, httpd_req_t **out);
esp_err_t httpd_req_async_handler_complete(httpd_req_t *r);

int httpd_req_to_sockfd(httpd_req_t *r);
// Bytes of the body, 0 at its end, HTTPD_SOCK_ERR_…
int httpd_req_recv(httpd_req_t *r, char *buf, size_t buf_len);
// Until an answer is begun.
size_t httpd_req_get_hdr_value_len(httpd_req_t *r, const char *field);
esp_err_t httpd_req_get_hdr_value_str(httpd_req_t *r, const char *field, char *val, size_t val_size);
size_t httpd_req_get_url_query_len(httpd_req_t *r);
esp_err_t httpd_req_get_url_query_str(httpd_req_t *r, char *buf, size_t buf_len);
esp_err_t httpd_query_key_value(const char *qry, const char *key, char *val, size_t val_size);
esp_err_t httpd_req_get_cookie_val(httpd_req_t *req, const char *cookie_name, char *val, size_t *val_size);

esp_err_t httpd_resp_send(httpd_req_t *r, const char *buf, ssize_t buf_len);
// NULL or no bytes end the answer.
esp_err_t httpd_resp_send_chunk(httpd_req_t *r, const char *buf, ssize_t buf_len);

static inline esp_err_t httpd_resp_sendstr(httpd_req_t *r, const char *str) {
    return httpd_resp_send(r, str, (str == NULL) ? 0 : HTTPD_RESP_USE_STRLEN);
}

static inline esp_err_t httpd_resp_sendstr_chunk(httpd_req_t *r, const char *str) {
    return httpd_resp_send_chunk(r, str, (str == NULL) ? 0 : HTTPD_RESP_USE_STRLEN);
}

#define HTTPD_200 "200 OK"
#define HTTPD_204 "204 No Content"
#define HTTPD_207 "207 Multi-Status"
#define HTTPD_400 "400 Bad Request"
#define HTTPD_404 "404 Not Found"
#define HTTPD_408 "408 Request Timeout"
#define HTTPD_500 "500 Internal Server Error"

#define HTTPD_TYPE_JSON "application/json"
#define HTTPD_TYPE_TEXT "text/html"
#define HTTPD_TYPE_OCTET "application/octet-stream"

// Not copied: they must last until the answer is sent.
esp_err_t httpd_resp_set_status(httpd_req_t *r, const char *status);
esp_err_t httpd_resp_set_type(httpd_req_t *r, const char *type);
esp_err_t httpd_resp_set_hdr(httpd_req_t *r, const char *field, const char *value);

esp_err_t httpd_resp_send_err(httpd_req_t *req, httpd_err_code_t error, const char *msg);
esp_err_t httpd_resp_send_custom_err(httpd_req_t *req, const char *status, const char *msg);

static inline esp_err_t httpd_resp_send_404(httpd_req_t *r) {
    return httpd_resp_send_err(r, HTTPD_404_NOT_FOUND, NULL);
}

static inline esp_err_t httpd_resp_send_408(httpd_req_t *r) {
    return httpd_resp_send_err(r, HTTPD_408_REQ_TIMEOUT, NULL);
}

static inline esp_err_t httpd_resp_send_500(httpd_req_t *r) {
    return httpd_resp_send_err(r, HTTPD_500_INTERNAL_SERVER_ERROR, NULL);
}

int httpd_send(httpd_req_t *r, const char *buf, size_t buf_len);
int httpd_socket_send(httpd_handle_t hd, int sockfd, const char *buf, size_t buf_len, int flags);
int httpd_socket_recv(httpd_handle_t hd, int sockfd, char *buf, size_t buf_len, int flags);

void *httpd_sess_get_ctx(httpd_handle_t handle, int sockfd);
void httpd_sess_set_ctx(httpd_handle_t handle, int sockfd, void *ctx, httpd_free_ctx_fn_t free_fn);
void *httpd_sess_get_transport_ctx(httpd_handle_t handle, int sockfd);
void httpd_sess_set_transport_ctx(httpd_handle_t handle, int sockfd, void *ctx, httpd_free_ctx_fn_t free_fn);
void *httpd_get_global_user_ctx(httpd_handle_t handle);
void *httpd_get_global_transport_ctx(httpd_handle_t handle);
esp_err_t httpd_sess_trigger_close(httpd_handle_t handle, int sockfd);
esp_err_t httpd_sess_update_lru_counter(httpd_handle_t handle, int sockfd);
esp_err_t httpd_get_client_list(httpd_handle_t handle, size_t *fds, int *client_fds);

// In the server's task, after what it is at.
typedef void (*httpd_work_fn_t)(void *arg);
esp_err_t httpd_queue_work(httpd_handle_t handle, httpd_work_fn_t work, void *arg);

#ifdef __cplusplus
}
#endif
