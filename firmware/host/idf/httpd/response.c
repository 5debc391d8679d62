/* SPDX-License-Identifier: Apache-2.0 */
// Answering.
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esp_log.h"
#include "httpd_priv.h"
#include "lwip/sockets.h"

static const char *TAG = "httpd_txrx";

static int socket_error(const char *what) {
    ESP_LOGW(TAG, "error in %s : %d", what, errno);
    switch (errno) {
    case EAGAIN:
    case EINTR:
        return HTTPD_SOCK_ERR_TIMEOUT;
    case EINVAL:
    case EBADF:
    case EFAULT:
    case ENOTSOCK:
        return HTTPD_SOCK_ERR_INVALID;
    default:
        return HTTPD_SOCK_ERR_FAIL;
    }
}

int httpd_default_send(httpd_handle_t hd, int sockfd, const char *buf, size_t buf_len, int flags) {
    (void)hd;
    if (buf == NULL) {
        return HTTPD_SOCK_ERR_INVALID;
    }
    ssize_t n = send(sockfd, buf, buf_len, flags);
    return n < 0 ? socket_error("send") : (int)n;
}

int httpd_default_receive(httpd_handle_t hd, int sockfd, char *buf, size_t buf_len, int flags) {
    (void)hd;
    if (buf == NULL) {
        return HTTPD_SOCK_ERR_INVALID;
    }
    ssize_t n = recv(sockfd, buf, buf_len, flags);
    return n < 0 ? socket_error("recv") : (int)n;
}

int httpd_send(httpd_req_t *r, const char *buf, size_t buf_len) {
    if (r == NULL || buf == NULL) {
        return HTTPD_SOCK_ERR_INVALID;
    }
    const httpd_session_t *session = ((httpd_aux_t *)r->aux)->session;
    return session->send(session->server, session->fd, buf, buf_len, 0);
}

int httpd_socket_send(httpd_handle_t hd, int sockfd, const char *buf, size_t buf_len, int flags) {
    const httpd_session_t *session = httpd_session_get(hd, sockfd);
    return session == NULL || session->send == NULL ? HTTPD_SOCK_ERR_INVALID
                                                    : session->send(hd, sockfd, buf, buf_len, flags);
}

int httpd_socket_recv(httpd_handle_t hd, int sockfd, char *buf, size_t buf_len, int flags) {
    const httpd_session_t *session = httpd_session_get(hd, sockfd);
    return session == NULL || session->receive == NULL ? HTTPD_SOCK_ERR_INVALID
                                                       : session->receive(hd, sockfd, buf, buf_len, flags);
}

int httpd_req_to_sockfd(httpd_req_t *r) {
    return r == NULL ? -1 : ((httpd_aux_t *)r->aux)->session->fd;
}

static bool send_all(httpd_req_t *request, const char *data, size_t bytes) {
    while (bytes > 0) {
        int n = httpd_send(request, data, bytes);
        if (n < 0) {
            return false;
        }
        data += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool send_text(httpd_req_t *request, const char *text) {
    return send_all(request, text, strlen(text));
}

// The header lines: `first` is the status line and those that are always there.
static esp_err_t send_headers(httpd_req_t *request, const char *first, size_t first_bytes) {
    const httpd_server_t *server = request->handle;
    httpd_aux_t *aux = request->aux;
    const size_t limit =
        server->config.max_req_hdr_len > 0 ? server->config.max_req_hdr_len : CONFIG_HTTPD_MAX_REQ_HDR_LEN;
    if (first_bytes + 1 > limit) {
        return ESP_ERR_HTTPD_RESP_HDR;
    }
    bool sent = send_text(request, first);
    for (unsigned i = 0; sent && i < aux->answer_header_count; i++) {
        sent = send_text(request, aux->answer_headers[i].field) && send_text(request, ": ") &&
               send_text(request, aux->answer_headers[i].value) && send_text(request, "\r\n");
    }
    return sent && send_text(request, "\r\n") ? ESP_OK : ESP_ERR_HTTPD_RESP_SEND;
}

static size_t length_of(const char *buf, ssize_t buf_len) {
    return buf_len == HTTPD_RESP_USE_STRLEN ? strlen(buf) : (size_t)buf_len;
}

static void tell_of_data(const httpd_aux_t *aux, size_t bytes) {
    const esp_http_server_event_data data = {.fd = aux->session->fd, .data_len = (int)bytes};
    httpd_event(HTTP_SERVER_EVENT_SENT_DATA, &data, sizeof(data));
}

// No more is known of the request's headers once an answer has begun.
static void forget_headers(httpd_aux_t *aux) {
    aux->headers_bytes = 0;
}

__attribute__((format(printf, 1, 2))) static char *print(const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) {
        text = NULL;
    }
    va_end(arguments);
    return text;
}

esp_err_t httpd_resp_send(httpd_req_t *r, const char *buf, ssize_t buf_len) {
    if (r == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    httpd_aux_t *aux = r->aux;
    const size_t bytes = length_of(buf, buf_len);
    forget_headers(aux);
    char *first = print("HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n", aux->status,
                        aux->content_type, bytes);
    if (first == NULL) {
        return ESP_ERR_HTTPD_ALLOC_MEM;
    }
    esp_err_t err = send_headers(r, first, strlen(first));
    free(first);
    if (err != ESP_OK) {
        return err;
    }
    httpd_event(HTTP_SERVER_EVENT_HEADERS_SENT, &aux->session->fd, sizeof(aux->session->fd));
    if (buf != NULL && bytes > 0 && !send_all(r, buf, bytes)) {
        return ESP_ERR_HTTPD_RESP_SEND;
    }
    tell_of_data(aux, bytes);
    return ESP_OK;
}

static esp_err_t begin_chunks(httpd_req_t *request) {
    httpd_aux_t *aux = request->aux;
    char *first = print("HTTP/1.1 %s\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n", aux->status,
                        aux->content_type);
    if (first == NULL) {
        return ESP_ERR_HTTPD_ALLOC_MEM;
    }
    esp_err_t err = send_headers(request, first, strlen(first));
    free(first);
    aux->first_chunk_sent = err == ESP_OK;
    return err;
}

esp_err_t httpd_resp_send_chunk(httpd_req_t *r, const char *buf, ssize_t buf_len) {
    if (r == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    httpd_aux_t *aux = r->aux;
    const size_t bytes = length_of(buf, buf_len);
    forget_headers(aux);
    if (!aux->first_chunk_sent) {
        esp_err_t err = begin_chunks(r);
        if (err != ESP_OK) {
            return err;
        }
    }
    char size[24];
    snprintf(size, sizeof(size), "%zx\r\n", bytes);
    if (!send_text(r, size) || (buf != NULL && !send_all(r, buf, bytes)) || !send_text(r, "\r\n")) {
        return ESP_ERR_HTTPD_RESP_SEND;
    }
    tell_of_data(aux, bytes);
    return ESP_OK;
}

esp_err_t httpd_resp_set_status(httpd_req_t *r, const char *status) {
    if (r == NULL || status == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    ((httpd_aux_t *)r->aux)->status = status;
    return ESP_OK;
}

esp_err_t httpd_resp_set_type(httpd_req_t *r, const char *type) {
    if (r == NULL || type == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    ((httpd_aux_t *)r->aux)->content_type = type;
    return ESP_OK;
}

esp_err_t httpd_resp_set_hdr(httpd_req_t *r, const char *field, const char *value) {
    if (r == NULL || field == NULL || value == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    const httpd_server_t *server = r->handle;
    httpd_aux_t *aux = r->aux;
    if (aux->answer_header_count >= server->config.max_resp_headers) {
        return ESP_ERR_HTTPD_RESP_HDR;
    }
    aux->answer_headers[aux->answer_header_count++] = (httpd_answer_header_t){field, value};
    return ESP_OK;
}

static const struct {
    const char *status;
    const char *message;
} s_errors[HTTPD_ERR_CODE_MAX] = {
    [HTTPD_500_INTERNAL_SERVER_ERROR] = {"500 Internal Server Error",
                                         "Server has encountered an unexpected error"},
    [HTTPD_501_METHOD_NOT_IMPLEMENTED] = {"501 Method Not Implemented",
                                          "Server does not support this method"},
    [HTTPD_505_VERSION_NOT_SUPPORTED] = {"505 Version Not Supported", "HTTP version not supported by server"},
    [HTTPD_400_BAD_REQUEST] = {"400 Bad Request", "Bad request syntax"},
    [HTTPD_401_UNAUTHORIZED] = {"401 Unauthorized", "No permission -- see authorization schemes"},
    [HTTPD_403_FORBIDDEN] = {"403 Forbidden", "Request forbidden -- authorization will not help"},
    [HTTPD_404_NOT_FOUND] = {"404 Not Found", "Nothing matches the given URI"},
    [HTTPD_405_METHOD_NOT_ALLOWED] = {"405 Method Not Allowed",
                                      "Specified method is invalid for this resource"},
    [HTTPD_408_REQ_TIMEOUT] = {"408 Request Timeout", "Server closed this connection"},
    [HTTPD_411_LENGTH_REQUIRED] = {"411 Length Required", "Client must specify Content-Length"},
    [HTTPD_413_CONTENT_TOO_LARGE] = {"413 Content Too Large", "Content is too large"},
    [HTTPD_414_URI_TOO_LONG] = {"414 URI Too Long", "URI is too long"},
    [HTTPD_431_REQ_HDR_FIELDS_TOO_LARGE] = {"431 Request Header Fields Too Large",
                                            "Header fields are too long"},
};

static void set_no_delay(httpd_req_t *request, int on) {
#ifdef CONFIG_HTTPD_ERR_RESP_NO_DELAY
    int fd = httpd_req_to_sockfd(request);
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0) {
        ESP_LOGW(TAG, "error calling setsockopt : %d", errno);
    }
#else
    (void)request;
    (void)on;
#endif
}

esp_err_t httpd_resp_send_custom_err(httpd_req_t *req, const char *status, const char *msg) {
    ESP_LOGW(TAG, "%s - %s", status, msg);
    httpd_resp_set_status(req, status);
    httpd_resp_set_type(req, HTTPD_TYPE_TEXT);
    set_no_delay(req, 1);
    esp_err_t err = httpd_resp_send(req, msg, HTTPD_RESP_USE_STRLEN);
    set_no_delay(req, 0);
    return err;
}

esp_err_t httpd_resp_send_err(httpd_req_t *req, httpd_err_code_t error, const char *msg) {
    const httpd_err_code_t known = error < HTTPD_ERR_CODE_MAX ? error : HTTPD_500_INTERNAL_SERVER_ERROR;
    esp_err_t err =
        httpd_resp_send_custom_err(req, s_errors[known].status, msg != NULL ? msg : s_errors[known].message);
    httpd_event(HTTP_SERVER_EVENT_ERROR, &error, sizeof(error));
    return err;
}

esp_err_t httpd_register_err_handler(httpd_handle_t handle, httpd_err_code_t error,
                                     httpd_err_handler_func_t handler_fn) {
    if (handle == NULL || error >= HTTPD_ERR_CODE_MAX) {
        return ESP_ERR_INVALID_ARG;
    }
    ((httpd_server_t *)handle)->error_handlers[error] = handler_fn;
    return ESP_OK;
}

esp_err_t httpd_handle_error(httpd_req_t *request, httpd_err_code_t error) {
    const httpd_server_t *server = request->handle;
    if (server->error_handlers[error] == NULL) {
        httpd_resp_send_err(request, error, NULL);
        return ESP_FAIL;
    }
    esp_err_t err = server->error_handlers[error](request, error);
    return error == HTTPD_500_INTERNAL_SERVER_ERROR ? ESP_FAIL : err;
}
