/* SPDX-License-Identifier: Apache-2.0 */
// Receiving: what the parser finds, and reading it in pieces.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "esp_log.h"
#include "http_client_priv.h"

static const char *TAG = "HTTP_CLIENT";

static int on_message_begin(http_parser *parser) {
    http_response_t *response = &((esp_http_client_handle_t)parser->data)->response;
    response->is_chunked = false;
    response->is_complete = false;
    return 0;
}

static void header_is_whole(esp_http_client_handle_t client) {
    http_response_t *response = &client->response;
    if (response->key == NULL || response->value == NULL) {
        return;
    }
    client->event.header_key = response->key;
    client->event.header_value = response->value;
    http_event_both(client, HTTP_EVENT_ON_HEADER);
    free(response->key);
    free(response->value);
    response->key = NULL;
    response->value = NULL;
}

// A name or a value may come in pieces.
static int on_header_field(http_parser *parser, const char *at, size_t length) {
    esp_http_client_handle_t client = parser->data;
    header_is_whole(client);
    return http_text_append(&client->response.key, at, length) ? 0 : -1;
}

static int on_header_value(http_parser *parser, const char *at, size_t length) {
    http_response_t *response = &((esp_http_client_handle_t)parser->data)->response;
    bool kept = true;
    if (response->key == NULL) {
        return 0;
    }
    if (strcasecmp(response->key, "Location") == 0) {
        kept = http_text_append(&response->location, at, length);
    } else if (strcasecmp(response->key, "WWW-Authenticate") == 0) {
        kept = http_text_append(&response->auth_header, at, length);
    } else if (strcasecmp(response->key, "Transfer-Encoding") == 0 &&
               strncmp("chunked", at, length) == 0) { // a piece of it, too
        response->is_chunked = true;
    }
    return kept && http_text_append(&response->value, at, length) ? 0 : -1;
}

static int on_headers_complete(http_parser *parser) {
    esp_http_client_handle_t client = parser->data;
    header_is_whole(client);
    client->response.status_code = (int)parser->status_code;
    client->response.content_length = (int64_t)parser->content_length; // none: all ones, which is -1
    client->response.body_bytes = 0;
    client->state = HTTP_STATE_HEADERS_RECEIVED;
    return client->target.method == HTTP_METHOD_HEAD; // 1: no body follows, whatever the headers say
}

static bool keep_early(http_response_t *response, const char *at, size_t length) {
    char *grown = realloc(response->early, (size_t)response->early_bytes + length);
    if (grown == NULL) {
        ESP_LOGE(TAG, "Failed to allocate memory for storing decoded data");
        return false;
    }
    memcpy(grown + response->early_bytes, at, length);
    response->early = grown;
    response->early_bytes += (int)length;
    return true;
}

static int on_body(http_parser *parser, const char *at, size_t length) {
    esp_http_client_handle_t client = parser->data;
    http_response_t *response = &client->response;
    if (response->output != NULL) {
        memcpy(response->output + response->output_bytes, at, length);
        response->output_bytes += (int)length;
    } else if (client->state < HTTP_STATE_BODY && response->keep_early && !keep_early(response, at, length)) {
        return -1;
    }
    response->body_bytes += (int64_t)length;
    http_event(client, HTTP_EVENT_ON_DATA, (void *)(uintptr_t)at, (int)length);
    const esp_http_client_on_data_t data = {.client = client, .data_process = response->body_bytes};
    http_event_post(HTTP_EVENT_ON_DATA, &data, sizeof(data));
    return 0;
}

static int on_message_complete(http_parser *parser) {
    ((esp_http_client_handle_t)parser->data)->response.is_complete = true;
    return 0;
}

static int on_chunk_header(http_parser *parser) {
    ((esp_http_client_handle_t)parser->data)->response.chunk_length = (int)parser->content_length;
    return 0;
}

void http_parse(esp_http_client_handle_t client, int bytes) {
    static const http_parser_settings settings = {
        .on_message_begin = on_message_begin,
        .on_header_field = on_header_field,
        .on_header_value = on_header_value,
        .on_headers_complete = on_headers_complete,
        .on_body = on_body,
        .on_message_complete = on_message_complete,
        .on_chunk_header = on_chunk_header,
    };
    http_parser_execute(&client->parser, &settings, client->response.buffer, (size_t)bytes);
}

void http_drop_early_body(http_response_t *response) {
    free(response->early);
    response->early = NULL;
    response->early_bytes = 0;
    response->early_read = 0;
}

int64_t esp_http_client_fetch_headers(esp_http_client_handle_t client) {
    if (client->state < HTTP_STATE_HEADERS_SENT) {
        return ESP_FAIL;
    }
    http_response_t *response = &client->response;
    client->state = HTTP_STATE_REQUEST_SENT;
    response->status_code = -1;
    while (client->state < HTTP_STATE_HEADERS_RECEIVED) {
        errno = 0;
        int n = esp_transport_read(client->transport, response->buffer, response->buffer_bytes,
                                   client->timeout_ms);
        if (n == ERR_TCP_TRANSPORT_CONNECTION_TIMEOUT) {
            ESP_LOGW(TAG, "Connection timed out before data was ready!");
            return -ESP_ERR_HTTP_EAGAIN;
        }
        if (n < 0) {
            return ESP_FAIL;
        }
        http_parse(client, n);
    }
    client->state = HTTP_STATE_BODY;
    if (response->content_length <= 0) {
        response->is_chunked = true;
        return 0;
    }
    return response->content_length;
}

// To the events alone. What esp_transport_read() returned.
int http_receive_body(esp_http_client_handle_t client) {
    if (client->state < HTTP_STATE_BODY) {
        return ESP_FAIL;
    }
    if (client->target.method == HTTP_METHOD_HEAD) {
        return 0;
    }
    errno = 0;
    int n = esp_transport_read(client->transport, client->response.buffer, client->response.buffer_bytes,
                               client->timeout_ms);
    if (n > 0 || (n == 0 && !client->is_async)) {
        http_parse(client, n);
    }
    return n;
}

bool esp_http_client_is_complete_data_received(esp_http_client_handle_t client) {
    const http_response_t *response = &client->response;
    return response->is_chunked ? response->is_complete : response->body_bytes == response->content_length;
}

static int take_early(http_response_t *response, char *buffer, int len) {
    int left = response->early_bytes - response->early_read;
    int taken = left < len ? left : len;
    if (taken > 0) {
        memcpy(buffer, response->early + response->early_read, (size_t)taken);
        response->early_read += taken;
    }
    if (response->early_read == response->early_bytes) {
        http_drop_early_body(response);
    }
    return taken;
}

static bool remains(const http_response_t *response) {
    return response->is_chunked ? !response->is_complete : response->body_bytes < response->content_length;
}

// What esp_http_client_read() returns after a read of the transport without bytes; `got` are those from
// before.
static int end_reading(esp_http_client_handle_t client, int result, int got) {
    bool closed = result == ERR_TCP_TRANSPORT_CONNECTION_CLOSED_BY_FIN;
    bool expected = closed && client->response.is_chunked;
    int read_errno = errno;
    if (expected) {
        http_parse(client, 0); // a body without a length ends with the connection
    }
    if (read_errno != 0 && !expected) {
        ESP_LOGW(TAG, "esp_transport_read returned:%d and errno:%d ", result, read_errno);
    }
    if (result == ERR_TCP_TRANSPORT_CONNECTION_TIMEOUT) {
        return got > 0 ? got : -ESP_ERR_HTTP_EAGAIN;
    }
    if (!closed) {
        esp_err_t err = esp_transport_translate_error((enum esp_tcp_transport_err_t)result);
        ESP_LOGE(TAG, "transport_read: error - %d | %s", err, esp_err_to_name(err));
    }
    if (got == 0 && !esp_http_client_is_complete_data_received(client)) {
        http_event_error(client);
        return ESP_FAIL;
    }
    return got;
}

int esp_http_client_read(esp_http_client_handle_t client, char *buffer, int len) {
    http_response_t *response = &client->response;
    int got = take_early(response, buffer, len);
    while (got < len && remains(response)) {
        int wanted = len - got < response->buffer_bytes ? len - got : response->buffer_bytes;
        errno = 0;
        int n = esp_transport_read(client->transport, response->buffer, wanted, client->timeout_ms);
        if (n <= 0) {
            return end_reading(client, n, got);
        }
        response->output = buffer + got;
        response->output_bytes = 0;
        http_parse(client, n);
        got += response->output_bytes;
        response->output = NULL;
    }
    return got;
}

int esp_http_client_read_response(esp_http_client_handle_t client, char *buffer, int len) {
    int got = 0;
    while (got < len) {
        int n = esp_http_client_read(client, buffer + got, len - got);
        if (n <= 0) {
            break;
        }
        got += n;
    }
    return got;
}

esp_err_t esp_http_client_flush_response(esp_http_client_handle_t client, int *len) {
    if (client == NULL) {
        ESP_LOGE(TAG, "client must not be NULL");
        return ESP_ERR_INVALID_ARG;
    }
    int flushed = 0;
    while (!esp_http_client_is_complete_data_received(client)) {
        int n = http_receive_body(client);
        if (n < 0) {
            return ESP_FAIL;
        }
        flushed += n;
    }
    if (len != NULL) {
        *len = flushed;
    }
    return ESP_OK;
}

esp_err_t esp_http_client_clear_response_buffer(esp_http_client_handle_t client) {
    if (client == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    http_drop_early_body(&client->response);
    return ESP_OK;
}
