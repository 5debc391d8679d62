/* SPDX-License-Identifier: Apache-2.0 */
/* One GET: a connection, a request, an answer. */
#include <errno.h>
#include <stdio.h>

#include "esp_timer.h"
#include "private.h"

enum { REQUEST_SIZE = 320, READ_SIZE = 512 };

/* Bytes, or 0 where it does not fit. */
static size_t write_request(const http_link_t *link, const char *path, const char *id,
                            char request[REQUEST_SIZE]) {
    int length = snprintf(request, REQUEST_SIZE,
                          "GET %s HTTP/1.1\r\nHost: %s:%u\r\nConnection: %s\r\nAccept: */*\r\n%s%s%s\r\n",
                          path, link->config.host, (unsigned)link->config.port,
                          link->config.free_max > 0 ? "keep-alive" : "close",
                          id != NULL ? "X-Request-Id: " : "", id != NULL ? id : "", id != NULL ? "\r\n" : "");
    return length > 0 && length < REQUEST_SIZE ? (size_t)length : 0;
}

static http_outcome_t read_response(const http_call_t *call, http_connection_t *connection,
                                    http_response_t *response) {
    char data[READ_SIZE];
    http_outcome_t outcome = HTTP_OUTCOME_OK;
    while (outcome == HTTP_OUTCOME_OK && !response->complete) {
        int n = http_connection_read(call, connection, data, sizeof(data));
        if (n > 0) {
            outcome = http_response_feed(response, data, (size_t)n);
        } else if (n == HTTP_CONNECTION_CLOSED) {
            outcome = http_response_end(response);
        } else {
            outcome = response->bytes > 0 ? HTTP_OUTCOME_ENDLESS : HTTP_OUTCOME_TIMEOUT;
        }
    }
    return outcome;
}

/* Fills in http_us, status and body. */
static http_outcome_t exchange(const http_call_t *call, http_connection_t *connection, const char *request,
                               size_t length, http_response_t *response) {
    http_result_t *result = call->result;
    int64_t start_us = esp_timer_get_time();
    http_response_begin(response);
    int written = http_connection_write(call, connection, request, length);
    http_outcome_t outcome = HTTP_OUTCOME_TRUNCATED;
    if (written > 0) {
        outcome = read_response(call, connection, response);
    } else if (written == HTTP_CONNECTION_OVER) {
        outcome = HTTP_OUTCOME_TIMEOUT;
    }
    result->http_us = http_elapsed_us(start_us);
    result->status = (uint16_t)response->parser.status_code;
    result->body_bytes = response->body_bytes;
    return outcome == HTTP_OUTCOME_OK && result->status != 200 ? HTTP_OUTCOME_STATUS : outcome;
}

/* The server may close a connection while the request is on its way: RFC 9112, 9.3.1 lets a client try a GET
 * again. */
static http_outcome_t exchange_again(http_link_t *link, http_call_t *call, http_connection_t *connection,
                                     const char *request, size_t length, http_response_t *response) {
    call->result->retried = true;
    call->result->reused = false;
    call->result->http_us = 0;
    http_connection_close(connection);
    http_outcome_t outcome = http_connection_open(link, call, connection);
    return outcome == HTTP_OUTCOME_OK ? exchange(call, connection, request, length, response) : outcome;
}

void http_link_get(http_link_t *link, const char *path, const char *id, uint32_t timeout_ms,
                   http_result_t *result) {
    char request[REQUEST_SIZE];
    http_response_t response = {0};
    http_connection_t connection;
    *result = (http_result_t){0};
    http_call_t call = {
        .link = link, .deadline_us = esp_timer_get_time() + (int64_t)timeout_ms * 1000, .result = result};
    size_t length = write_request(link, path, id, request);
    if (length == 0) {
        result->outcome = HTTP_OUTCOME_UNREACHABLE;
        result->error = EMSGSIZE;
        return;
    }
    result->outcome = http_pool_take(link, &call, &connection);
    if (result->outcome != HTTP_OUTCOME_OK) {
        return;
    }
    result->outcome = exchange(&call, &connection, request, length, &response);
    if (result->outcome == HTTP_OUTCOME_TRUNCATED && result->reused && response.bytes == 0) {
        result->outcome = exchange_again(link, &call, &connection, request, length, &response);
    }
    bool whole = result->outcome == HTTP_OUTCOME_OK || result->outcome == HTTP_OUTCOME_STATUS;
    http_pool_give(link, &connection, whole && response.keep_alive);
}
