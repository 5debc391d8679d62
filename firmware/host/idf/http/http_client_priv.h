/* SPDX-License-Identifier: Apache-2.0 */
// The client as its own sources see it.
#pragma once

#include <http_parser.h>

#include "esp_http_client.h"
#include "esp_transport.h"
#include "http_auth.h"
#include "http_headers.h"

// In the order of a request: code asks whether a state is reached.
typedef enum {
    HTTP_STATE_UNINIT = 0,
    HTTP_STATE_INIT,
    HTTP_STATE_CONNECTED,
    HTTP_STATE_HEADERS_SENT,
    HTTP_STATE_REQUEST_SENT,
    HTTP_STATE_HEADERS_RECEIVED,
    HTTP_STATE_BODY,
} http_state_t;

typedef struct {
    char *scheme;
    char *host;
    int port;
    char *username;
    char *password;
    char *path;
    char *query;
    esp_http_client_method_t method;
    esp_http_client_auth_type_t auth_type;
} http_target_t;

typedef struct {
    http_headers_t headers;
    char *buffer;
    int buffer_bytes;
    char *post_data; // the caller's
    int post_length;
    bool first_line_prepared;
    int next_header; // of those that did not fit the buffer before
    const char *unsent;
    int unsent_bytes;
    int post_sent;
} http_request_t;

typedef struct {
    char *buffer;
    int buffer_bytes;
    int status_code;
    int64_t content_length;
    int64_t body_bytes; // received so far
    int chunk_length;
    bool is_chunked;  // or ends with the connection
    bool is_complete; // of is_chunked
    char *location;
    char *auth_header;
    char *key; // the header that is being received
    char *value;
    char *output; // where esp_http_client_read() wants the body, NULL: nowhere
    int output_bytes;
    char *early; // body that came with the headers, for esp_http_client_read()
    int early_bytes;
    int early_read;
    bool keep_early;
} http_response_t;

typedef enum { TICKET_UNUSED = 0, TICKET_NOT_SAVED, TICKET_SAVED } http_ticket_t;

struct esp_http_client {
    http_state_t state;
    http_target_t target;
    http_request_t request;
    http_response_t response;
    http_parser parser;
    http_auth_t auth;
    esp_transport_list_handle_t transports;
    esp_transport_handle_t transport;
    esp_transport_keep_alive_t keep_alive;
    http_ticket_t ticket;
    int redirects; // retries after a 401 count as well
    int redirects_max;
    int authorizations_max;
    bool disable_auto_redirect;
    bool again; // there is another request to make: the redirect's, or that with credentials
    bool is_async;
    int timeout_ms;
    http_event_handle_cb handler;
    esp_http_client_event_t event;
    void *user_data;
};

// events.c; the handler runs in the caller's task.
void http_event(esp_http_client_handle_t client, esp_http_client_event_id_t id, void *data, int length);
void http_event_post(int32_t id, const void *data, size_t size);
void http_event_both(esp_http_client_handle_t client, esp_http_client_event_id_t id);
void http_event_error(esp_http_client_handle_t client);

// texts.c; false without memory.
bool http_text_set(char **text, const char *value, int length); // length -1: all
bool http_text_append(char **text, const char *value, size_t length);
void http_text_trim(char *text);
// What is between two texts, whatever the case; NULL where it is not there.
char *http_text_between(const char *text, const char *begin, const char *end);

// settings.c
extern const char *const http_method_names[];
esp_err_t http_set_basics(esp_http_client_handle_t client, const esp_http_client_config_t *config);
esp_err_t http_set_transports(esp_http_client_handle_t client, const esp_http_client_config_t *config);
esp_err_t http_set_target(esp_http_client_handle_t client, const esp_http_client_config_t *config);
void http_target_free(http_target_t *target);

// request.c
esp_err_t http_connect(esp_http_client_handle_t client);
esp_err_t http_send_post_data(esp_http_client_handle_t client);

// response.c
void http_parse(esp_http_client_handle_t client, int bytes); // of response.buffer
int http_receive_body(esp_http_client_handle_t client);
void http_drop_early_body(http_response_t *response);
