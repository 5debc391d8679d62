/* SPDX-License-Identifier: Apache-2.0 */
// Connecting and sending.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esp_log.h"
#include "esp_random.h"
#include "esp_transport_ssl.h"
#include "http_client_priv.h"

static const char *TAG = "HTTP_CLIENT";

#ifdef CONFIG_ESP_HTTP_CLIENT_ENABLE_DIGEST_AUTH
static char *digest_of(const esp_http_client_handle_t client) {
    const http_target_t *target = &client->target;
    char *uri = NULL;
    if (asprintf(&uri, "%s%s%s", target->path, target->query == NULL ? "" : "?",
                 target->query == NULL ? "" : target->query) < 0) {
        return NULL;
    }
    uint64_t cnonce = ((uint64_t)esp_random() << 32) + esp_random();
    char *value = http_auth_digest(target->username, target->password, uri, cnonce, &client->auth);
    free(uri);
    return value;
}
#endif

// Credentials that cannot be formed are left out, and the server says 401.
static esp_err_t authorize(esp_http_client_handle_t client) {
    char *value = NULL;
    if (client->target.username == NULL) {
        return ESP_OK;
    }
    if (client->target.auth_type == HTTP_AUTH_TYPE_BASIC) {
        value = http_auth_basic(client->target.username, client->target.password);
    }
#ifdef CONFIG_ESP_HTTP_CLIENT_ENABLE_DIGEST_AUTH
    if (client->target.auth_type == HTTP_AUTH_TYPE_DIGEST) {
        value = digest_of(client);
    }
#endif
    esp_err_t err =
        value == NULL ? ESP_OK : http_headers_set(&client->request.headers, "Authorization", value);
    free(value);
    return err == ESP_OK ? ESP_OK : ESP_FAIL;
}

esp_err_t esp_http_client_prepare(esp_http_client_handle_t client) {
    if (client == NULL) {
        return ESP_FAIL;
    }
    client->again = false;
    client->response.body_bytes = 0;
    client->request.first_line_prepared = false;
    free(client->response.location);
    client->response.location = NULL;
    free(client->response.auth_header);
    client->response.auth_header = NULL;
    http_parser_init(&client->parser, HTTP_RESPONSE); // keeps parser.data
    return authorize(client);
}

// 1 connected, 0 to be asked again, -1.
static int open_transport(esp_http_client_handle_t client) {
    const http_target_t *target = &client->target;
    if (client->is_async) {
        return esp_transport_connect_async(client->transport, target->host, target->port, client->timeout_ms);
    }
    return esp_transport_connect(client->transport, target->host, target->port, client->timeout_ms) == 0 ? 1
                                                                                                         : -1;
}

static void session_ticket(esp_http_client_handle_t client, bool connected) {
#ifdef CONFIG_ESP_TLS_CLIENT_SESSION_TICKETS
    if (connected && client->ticket != TICKET_UNUSED) {
        esp_transport_ssl_session_ticket_operation(client->transport, ESP_TRANSPORT_SESSION_TICKET_SAVE);
        client->ticket = TICKET_SAVED;
    } else if (!connected && client->ticket == TICKET_SAVED) {
        esp_transport_ssl_session_ticket_operation(client->transport, ESP_TRANSPORT_SESSION_TICKET_USE);
    }
#else
    (void)client;
    (void)connected;
#endif
}

static esp_err_t open_connection(esp_http_client_handle_t client) {
    client->transport = esp_transport_list_get_transport(client->transports, client->target.scheme);
    if (client->transport == NULL) {
        ESP_LOGE(TAG, "No transport found");
        return ESP_ERR_HTTP_INVALID_TRANSPORT;
    }
    session_ticket(client, false);
    int connected = open_transport(client);
    if (connected < 0) {
        ESP_LOGE(TAG, "Connection failed%s", client->is_async ? "" : ", sock < 0");
        if (client->is_async && strcasecmp(client->target.scheme, "http") == 0) {
            ESP_LOGE(TAG, "Asynchronous mode doesn't work for HTTP based connection");
            return ESP_ERR_INVALID_ARG;
        }
        return ESP_ERR_HTTP_CONNECT;
    }
    if (connected == 0) {
        return ESP_ERR_HTTP_CONNECTING;
    }
    client->state = HTTP_STATE_CONNECTED;
    http_event_both(client, HTTP_EVENT_ON_CONNECTED);
    session_ticket(client, true);
    return ESP_OK;
}

esp_err_t http_connect(esp_http_client_handle_t client) {
    if (client->state == HTTP_STATE_UNINIT) {
        ESP_LOGE(TAG, "Client has not been initialized");
        return ESP_ERR_INVALID_STATE;
    }
    esp_err_t err = esp_http_client_prepare(client);
    if (err != ESP_OK) {
        ESP_LOGE(TAG, "Failed to initialize request data");
        esp_http_client_close(client);
        return err;
    }
    return client->state < HTTP_STATE_CONNECTED ? open_connection(client) : ESP_OK;
}

static esp_err_t set_length(esp_http_client_handle_t client, int write_length) {
    http_headers_t *headers = &client->request.headers;
    if (write_length < 0) {
        return http_headers_set(headers, "Transfer-Encoding", "chunked");
    }
    esp_http_client_method_t method = client->target.method;
    bool optional = method == HTTP_METHOD_GET || method == HTTP_METHOD_HEAD || method == HTTP_METHOD_DELETE;
    if (write_length == 0 && optional) {
        http_headers_delete(headers, "Content-Length");
        return ESP_OK;
    }
    char text[16];
    snprintf(text, sizeof(text), "%d", write_length);
    return http_headers_set(headers, "Content-Length", text);
}

// The request's first line, in the buffer; its length, -1 where that is too small.
static int write_first_line(esp_http_client_handle_t client, int write_length) {
    const http_target_t *target = &client->target;
    http_request_t *request = &client->request;
    set_length(client, write_length);
    int length = snprintf(request->buffer, (size_t)request->buffer_bytes, "%s %s%s%s HTTP/1.1\r\n",
                          http_method_names[target->method], target->path, target->query == NULL ? "" : "?",
                          target->query == NULL ? "" : target->query);
    if (length >= request->buffer_bytes) {
        ESP_LOGE(TAG, "Out of buffer");
        return -1;
    }
    return length;
}

static esp_err_t write_lines(esp_http_client_handle_t client) {
    http_request_t *request = &client->request;
    while (request->unsent_bytes > 0) {
        int n = esp_transport_write(client->transport, request->unsent, request->unsent_bytes,
                                    client->timeout_ms);
        if (n <= 0) {
            ESP_LOGE(TAG, "Error write request");
            esp_http_client_close(client);
            return ESP_ERR_HTTP_WRITE_DATA;
        }
        request->unsent += n;
        request->unsent_bytes -= n;
    }
    return ESP_OK;
}

// First line and headers, as many at a time as the buffer holds.
static esp_err_t send_headers(esp_http_client_handle_t client, int first_line) {
    http_request_t *request = &client->request;
    for (;;) {
        int bytes = request->buffer_bytes - first_line;
        request->next_header =
            http_headers_write(&request->headers, request->next_header, request->buffer + first_line, &bytes);
        if (request->next_header == 0 || bytes <= 0) {
            return ESP_OK;
        }
        request->unsent = request->buffer;
        request->unsent_bytes = first_line + bytes;
        first_line = 0;
        esp_err_t err = write_lines(client);
        if (err != ESP_OK) {
            return err;
        }
    }
}

esp_err_t esp_http_client_request_send(esp_http_client_handle_t client, int write_len) {
    if (client == NULL) {
        return ESP_FAIL;
    }
    http_request_t *request = &client->request;
    int first_line = 0;
    if (!request->first_line_prepared) {
        first_line = write_first_line(client, write_len);
        if (first_line < 0) {
            return ESP_FAIL;
        }
        request->first_line_prepared = true;
        request->next_header = 0;
    }
    esp_err_t err = send_headers(client, first_line);
    if (err != ESP_OK) {
        return err;
    }
    request->post_sent = 0;
    client->state = HTTP_STATE_HEADERS_SENT;
    http_event_both(client, HTTP_EVENT_HEADERS_SENT);
    return ESP_OK;
}

int esp_http_client_write(esp_http_client_handle_t client, const char *buffer, int len) {
    if (client->state < HTTP_STATE_HEADERS_SENT) {
        return ESP_FAIL;
    }
    int written = 0;
    while (written < len) {
        int n = esp_transport_write(client->transport, buffer + written, len - written, client->timeout_ms);
        if (client->is_async || n <= 0) {
            return n;
        }
        written += n;
    }
    return written;
}

esp_err_t http_send_post_data(esp_http_client_handle_t client) {
    http_request_t *request = &client->request;
    if (client->state != HTTP_STATE_HEADERS_SENT) {
        ESP_LOGE(TAG, "Invalid state");
        return ESP_ERR_INVALID_STATE;
    }
    if (request->post_data != NULL && request->post_length > 0) {
        int n = esp_http_client_write(client, request->post_data + request->post_sent,
                                      request->post_length - request->post_sent);
        if (n < 0) {
            return n;
        }
        request->post_sent += n;
        if (request->post_sent < request->post_length) {
            return ESP_ERR_HTTP_WRITE_DATA;
        }
    }
    client->state = HTTP_STATE_REQUEST_SENT;
    return ESP_OK;
}

esp_err_t esp_http_client_open(esp_http_client_handle_t client, int write_len) {
    client->request.post_length = write_len;
    esp_err_t err = http_connect(client);
    if (err == ESP_ERR_HTTP_CONNECTING) {
        return ESP_ERR_HTTP_EAGAIN;
    }
    if (err == ESP_OK) {
        err = esp_http_client_request_send(client, write_len);
        if (err != ESP_OK && client->is_async && errno == EAGAIN) {
            return ESP_ERR_HTTP_EAGAIN;
        }
    }
    if (err != ESP_OK) {
        http_event_error(client);
    }
    return err;
}

esp_err_t esp_http_client_cancel_request(esp_http_client_handle_t client) {
    if (client == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (client->state < HTTP_STATE_CONNECTED) {
        return ESP_ERR_INVALID_STATE;
    }
    if (esp_transport_close(client->transport) != 0) {
        return ESP_FAIL;
    }
    esp_err_t err = http_connect(client);
    if (err == ESP_OK || err == ESP_ERR_HTTP_CONNECTING) {
        client->response.body_bytes = client->response.content_length;
        return ESP_OK;
    }
    return ESP_FAIL;
}
