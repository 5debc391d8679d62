/* SPDX-License-Identifier: Apache-2.0 */
// Taking a request: its first line and headers are read whole, its body is the handler's to read.
#include <stdlib.h>
#include <string.h>

#include "esp_log.h"
#include "httpd_priv.h"

static const char *TAG = "httpd_parse";

typedef struct {
    httpd_req_t *request;
    size_t url_bytes;
    size_t url_limit;
    size_t header_limit;
    bool in_value; // the last piece was of a header's value
    bool is_complete;
    bool is_bad; // with `error`
    httpd_err_code_t error;
} parsing_t;

static int fail(parsing_t *parsing, httpd_err_code_t error) {
    parsing->is_bad = true;
    parsing->error = error;
    return 1;
}

static int on_url(http_parser *parser, const char *at, size_t length) {
    parsing_t *parsing = parser->data;
    char *uri = (char *)(uintptr_t)parsing->request->uri;
    if (parsing->url_bytes + length > parsing->url_limit) {
        ESP_LOGW(TAG, "URI length (%zu) greater than supported (%zu)", parsing->url_bytes + length,
                 parsing->url_limit);
        return fail(parsing, HTTPD_414_URI_TOO_LONG);
    }
    memcpy(uri + parsing->url_bytes, at, length);
    parsing->url_bytes += length;
    uri[parsing->url_bytes] = '\0';
    return 0;
}

// Names and values, each with its NUL, as many bytes as the limit allows for them with ": " and line ends.
static bool append(parsing_t *parsing, const char *text, size_t length) {
    httpd_aux_t *aux = parsing->request->aux;
    if (aux->headers_bytes + length > parsing->header_limit) {
        ESP_LOGW(TAG, "request header too long");
        fail(parsing, HTTPD_431_REQ_HDR_FIELDS_TOO_LARGE);
        return false;
    }
    char *grown = realloc(aux->headers, aux->headers_bytes + length);
    if (grown == NULL) {
        fail(parsing, HTTPD_500_INTERNAL_SERVER_ERROR);
        return false;
    }
    memcpy(grown + aux->headers_bytes, text, length);
    aux->headers = grown;
    aux->headers_bytes += length;
    return true;
}

static int on_header_field(http_parser *parser, const char *at, size_t length) {
    parsing_t *parsing = parser->data;
    if (parsing->in_value && !append(parsing, "", 1)) {
        return 1;
    }
    parsing->in_value = false;
    return append(parsing, at, length) ? 0 : 1;
}

static int on_header_value(http_parser *parser, const char *at, size_t length) {
    parsing_t *parsing = parser->data;
    if (!parsing->in_value && !append(parsing, "", 1)) {
        return 1;
    }
    parsing->in_value = true;
    return append(parsing, at, length) ? 0 : 1;
}

static int check(const http_parser *parser, parsing_t *parsing) {
    httpd_req_t *request = parsing->request;
    httpd_aux_t *aux = request->aux;
    if (parser->http_major != 1 || parser->http_minor > 1) {
        ESP_LOGW(TAG, "unsupported HTTP version = %d.%d", parser->http_major, parser->http_minor);
        return fail(parsing, HTTPD_505_VERSION_NOT_SUPPORTED);
    }
    http_parser_url_init(&aux->url);
    if (http_parser_parse_url(request->uri, parsing->url_bytes, parser->method == HTTP_CONNECT, &aux->url) !=
            0 ||
        parser->upgrade) {
        return fail(parsing, HTTPD_400_BAD_REQUEST);
    }
    return 0;
}

static int on_headers_complete(http_parser *parser) {
    parsing_t *parsing = parser->data;
    httpd_req_t *request = parsing->request;
    httpd_aux_t *aux = request->aux;
    request->method = (int)parser->method;
    if ((parsing->in_value && !append(parsing, "", 1)) || check(parser, parsing) != 0) {
        return -1;
    }
    // Without a length, and with chunks, there is no body for the handler.
    request->content_len = parser->content_length == UINT64_MAX ? 0 : (size_t)parser->content_length;
    aux->remaining = request->content_len;
    parsing->is_complete = true;
    httpd_event(HTTP_SERVER_EVENT_ON_HEADER, &aux->session->fd, sizeof(aux->session->fd));
    http_parser_pause(parser, 1);
    return 0;
}

// First what was read past the last request's headers. 0 and less as the socket, timeouts handled.
static int read_block(httpd_req_t *request, char block[HTTPD_BLOCK_BYTES]) {
    httpd_session_t *session = ((httpd_aux_t *)request->aux)->session;
    if (session->pending_bytes > 0) {
        const size_t bytes = session->pending_bytes;
        memcpy(block, session->pending, bytes);
        session->pending_bytes = 0;
        return (int)bytes;
    }
    int n;
    do {
        n = session->receive(session->server, session->fd, block, HTTPD_BLOCK_BYTES, 0);
    } while (n == HTTPD_SOCK_ERR_TIMEOUT && httpd_handle_error(request, HTTPD_408_REQ_TIMEOUT) == ESP_OK);
    return n;
}

static void keep_rest(httpd_session_t *session, const char *rest, size_t bytes) {
    memcpy(session->pending, rest, bytes);
    session->pending_bytes = bytes;
}

static esp_err_t parse(httpd_server_t *server, httpd_session_t *session) {
    static const http_parser_settings settings = {.on_url = on_url,
                                                  .on_header_field = on_header_field,
                                                  .on_header_value = on_header_value,
                                                  .on_headers_complete = on_headers_complete};
    const httpd_config_t *config = &server->config;
    const size_t url_limit = config->max_uri_len > 0 ? config->max_uri_len : CONFIG_HTTPD_MAX_URI_LEN;
    parsing_t parsing = {
        .request = &server->request,
        .url_limit = url_limit < CONFIG_HTTPD_MAX_URI_LEN ? url_limit : CONFIG_HTTPD_MAX_URI_LEN,
        .header_limit = config->max_req_hdr_len > 0 ? config->max_req_hdr_len : CONFIG_HTTPD_MAX_REQ_HDR_LEN};
    http_parser parser;
    http_parser_init(&parser, HTTP_REQUEST);
    parser.data = &parsing;
    while (!parsing.is_complete) {
        char block[HTTPD_BLOCK_BYTES];
        const int bytes = read_block(&server->request, block);
        if (bytes <= 0) {
            return ESP_FAIL;
        }
        const size_t parsed = http_parser_execute(&parser, &settings, block, (size_t)bytes);
        if (parsing.is_complete) { // paused at the last line's end
            keep_rest(session, block + parsed + 1, (size_t)bytes - parsed - 1);
        } else if (parsing.is_bad || parsed != (size_t)bytes) {
            return httpd_handle_error(&server->request,
                                      parsing.is_bad ? parsing.error : HTTPD_400_BAD_REQUEST);
        }
    }
    return httpd_handle_uri(server);
}

// The context that a handler has set is the connection's from now on.
static void clean_up(httpd_req_t *request) {
    httpd_aux_t *aux = request->aux;
    httpd_session_t *session = aux->session;
    if (!request->ignore_sess_ctx_changes && session->ctx != request->sess_ctx) {
        httpd_context_free(&session->ctx, session->free_ctx);
    }
    session->ctx = request->sess_ctx;
    session->free_ctx = request->free_ctx;
    session->ignores_ctx_changes = request->ignore_sess_ctx_changes;
    free(aux->headers);
    aux->headers = NULL;
    aux->headers_bytes = 0;
    aux->session = NULL;
}

esp_err_t httpd_request_take(httpd_server_t *server, httpd_session_t *session) {
    httpd_req_t *request = &server->request;
    httpd_aux_t *aux = &server->aux;
    memset(request, 0, sizeof(*request));
    request->handle = server;
    request->aux = aux;
    request->sess_ctx = session->ctx;
    request->free_ctx = session->free_ctx;
    request->ignore_sess_ctx_changes = session->ignores_ctx_changes;
    *aux = (httpd_aux_t){.session = session,
                         .status = HTTPD_200,
                         .content_type = HTTPD_TYPE_TEXT,
                         .answer_headers = aux->answer_headers};
    esp_err_t err = parse(server, session);
    if (err != ESP_OK) {
        clean_up(request);
    }
    return err;
}

// What the handler left of the body is in the way of the next request.
esp_err_t httpd_request_end(httpd_server_t *server) {
    httpd_req_t *request = &server->request;
    esp_err_t err = ESP_OK;
    while (err == ESP_OK && server->aux.remaining > 0) {
        char dropped[CONFIG_HTTPD_PURGE_BUF_LEN];
        err = httpd_req_recv(request, dropped, sizeof(dropped)) > 0 ? ESP_OK : ESP_FAIL;
    }
    clean_up(request);
    return err;
}

static int receive(httpd_session_t *session, char *buf, size_t buf_len) {
    size_t taken = session->pending_bytes < buf_len ? session->pending_bytes : buf_len;
    memcpy(buf, session->pending, taken);
    session->pending_bytes -= taken;
    memmove(session->pending, session->pending + taken, session->pending_bytes);
    if (taken == buf_len) {
        return (int)taken;
    }
    int n = session->receive(session->server, session->fd, buf + taken, buf_len - taken, 0);
    if (n > 0) {
        return (int)taken + n;
    }
    return n == HTTPD_SOCK_ERR_TIMEOUT && taken > 0 ? (int)taken : n;
}

int httpd_req_recv(httpd_req_t *r, char *buf, size_t buf_len) {
    if (r == NULL || buf == NULL) {
        return HTTPD_SOCK_ERR_INVALID;
    }
    httpd_aux_t *aux = r->aux;
    buf_len = buf_len < aux->remaining ? buf_len : aux->remaining;
    if (buf_len == 0) {
        return 0;
    }
    int n = receive(aux->session, buf, buf_len);
    if (n < 0) {
        return n;
    }
    aux->remaining -= (size_t)n;
    const esp_http_server_event_data data = {.fd = aux->session->fd, .data_len = n};
    httpd_event(HTTP_SERVER_EVENT_ON_DATA, &data, sizeof(data));
    return n;
}

esp_err_t httpd_req_async_handler_begin(httpd_req_t *r, httpd_req_t **out) {
    if (r == NULL || out == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    httpd_server_t *server = r->handle;
    httpd_aux_t *aux = r->aux;
    const size_t answer_bytes = server->config.max_resp_headers * sizeof(httpd_answer_header_t);
    httpd_req_t *request = malloc(sizeof(*request));
    httpd_aux_t *copy = malloc(sizeof(*copy));
    char *headers = malloc(aux->headers_bytes + 1);
    httpd_answer_header_t *answer_headers = malloc(answer_bytes + 1);
    if (request == NULL || copy == NULL || headers == NULL || answer_headers == NULL) {
        free(request);
        free(copy);
        free(headers);
        free(answer_headers);
        return ESP_ERR_NO_MEM;
    }
    memcpy(request, r, sizeof(*request));
    *copy = *aux;
    copy->headers = aux->headers_bytes > 0 ? memcpy(headers, aux->headers, aux->headers_bytes) : headers;
    copy->answer_headers = memcpy(answer_headers, aux->answer_headers, answer_bytes);
    request->aux = copy;
    aux->remaining = 0; // the other task reads it
    aux->session->is_async = true;
    *out = request;
    return ESP_OK;
}
