/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this component share. */
#pragma once

#include "http_link/link.h"
#include "http_parser.h"

/* A GET in progress: until when, and where its figures go. */
typedef struct {
    const http_link_t *link;
    int64_t deadline_us; /* as esp_timer counts */
    http_result_t *result;
} http_call_t;

/* Nobody waits for it any more: cancelled, or the deadline has passed. */
bool http_call_over(const http_call_t *call);

/* Until the socket is ready, or broken, or the call is over: false. */
bool http_call_wait(const http_call_t *call, int fd, bool to_write);

/* Microseconds since `start_us`. */
uint32_t http_elapsed_us(int64_t start_us);

/* Look up, connect, shake hands. Returns HTTP_OUTCOME_OK, or why not; nothing is left open then. */
http_outcome_t http_connection_open(http_link_t *link, http_call_t *call, http_connection_t *connection);
void http_connection_close(http_connection_t *connection);

/* Whether nothing has come on it since its last answer, not even its end. */
bool http_connection_is_quiet(const http_connection_t *connection);

enum { HTTP_CONNECTION_OVER = -1, HTTP_CONNECTION_CLOSED = 0 };

/* Bytes read, HTTP_CONNECTION_CLOSED for the end or an error, HTTP_CONNECTION_OVER when the call is. */
int http_connection_read(const http_call_t *call, http_connection_t *connection, char *data, size_t size);

/* > 0 when all is written, otherwise as above. */
int http_connection_write(const http_call_t *call, http_connection_t *connection, const char *data,
                          size_t length);

/* TLS on a connected socket. */
http_outcome_t http_tls_start(http_link_t *link, http_call_t *call, http_connection_t *connection);

/* A connection, `result->reused` where it is an old one. */
http_outcome_t http_pool_take(http_link_t *link, http_call_t *call, http_connection_t *connection);
void http_pool_give(http_link_t *link, http_connection_t *connection, bool reusable);

/* An answer as it is read. */
typedef struct {
    http_parser parser;
    size_t bytes; /* read, of all kinds */
    uint32_t body_bytes;
    bool complete, too_long;
    bool keep_alive; /* the server leaves the connection open */
} http_response_t;

void http_response_begin(http_response_t *response);
/* Returns HTTP_OUTCOME_OK while all is well: `complete` says whether the answer is. */
http_outcome_t http_response_feed(http_response_t *response, const char *data, size_t length);
/* The connection has ended, which may be the answer's end. */
http_outcome_t http_response_end(http_response_t *response);
