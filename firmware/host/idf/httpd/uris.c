/* SPDX-License-Identifier: Apache-2.0 */
// Handlers, by path and method. They are looked at in the order of registering.
#include <stdlib.h>
#include <string.h>

#include "esp_log.h"
#include "httpd_priv.h"

static const char *TAG = "httpd_uri";

static bool matches_exactly(const char *reference, const char *uri, size_t length) {
    return strlen(reference) == length && strncmp(reference, uri, length) == 0;
}

bool httpd_uri_match_wildcard(const char *uri_template, const char *uri_to_match, size_t match_upto) {
    const size_t length = strlen(uri_template);
    const char last = length > 0 ? uri_template[length - 1] : '\0';
    const char before = length > 1 ? uri_template[length - 2] : '\0';
    const bool any = last == '*' || (last == '?' && before == '*');
    const bool optional = last == '?' || (last == '*' && before == '?');
    const size_t special = (any ? 1 : 0) + (optional ? 2 : 0); // "?" stands with the character before it
    if (length < special) {
        return false;
    }
    const size_t fixed = length - special;
    if (match_upto < fixed || strncmp(uri_template, uri_to_match, fixed) != 0) {
        return false;
    }
    if (!optional) {
        return any || match_upto == fixed;
    }
    if (match_upto > fixed && uri_template[fixed] != uri_to_match[fixed]) {
        return false;
    }
    return any || match_upto <= fixed + 1;
}

// NULL, and *error says whether path or method is unknown.
static httpd_uri_t *find(const httpd_server_t *server, const char *path, size_t length, httpd_method_t method,
                         httpd_err_code_t *error) {
    const httpd_uri_match_func_t matches =
        server->config.uri_match_fn != NULL ? server->config.uri_match_fn : matches_exactly;
    *error = HTTPD_404_NOT_FOUND;
    for (unsigned i = 0; i < server->config.max_uri_handlers && server->uris[i] != NULL; i++) {
        httpd_uri_t *uri = server->uris[i];
        if (!matches(uri->uri, path, length)) {
            continue;
        }
        if (uri->method == method || (int)uri->method == HTTP_ANY) {
            return uri;
        }
        *error = HTTPD_405_METHOD_NOT_ALLOWED;
    }
    return NULL;
}

esp_err_t httpd_register_uri_handler(httpd_handle_t handle, const httpd_uri_t *uri_handler) {
    httpd_server_t *server = handle;
    httpd_err_code_t unused;
    if (server == NULL || uri_handler == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (find(server, uri_handler->uri, strlen(uri_handler->uri), uri_handler->method, &unused) != NULL) {
        ESP_LOGW(TAG, "handler %s with method %d already registered", uri_handler->uri,
                 (int)uri_handler->method);
        return ESP_ERR_HTTPD_HANDLER_EXISTS;
    }
    unsigned i = 0;
    while (i < server->config.max_uri_handlers && server->uris[i] != NULL) {
        i++;
    }
    if (i == server->config.max_uri_handlers) {
        ESP_LOGW(TAG, "no slots left for registering handler");
        return ESP_ERR_HTTPD_HANDLERS_FULL;
    }
    httpd_uri_t *uri = malloc(sizeof(*uri));
    char *path = strdup(uri_handler->uri);
    if (uri == NULL || path == NULL) {
        free(uri);
        free(path);
        return ESP_ERR_HTTPD_ALLOC_MEM;
    }
    *uri = *uri_handler;
    uri->uri = path;
    server->uris[i] = uri;
    return ESP_OK;
}

// Those with this path, and this method unless any will do; the others close ranks.
static unsigned remove_uris(httpd_server_t *server, const char *path, const httpd_method_t *method) {
    unsigned kept = 0, removed = 0;
    for (unsigned i = 0; i < server->config.max_uri_handlers && server->uris[i] != NULL; i++) {
        httpd_uri_t *uri = server->uris[i];
        server->uris[i] = NULL;
        if ((path == NULL || strcmp(uri->uri, path) == 0) && (method == NULL || uri->method == *method)) {
            free((char *)(uintptr_t)uri->uri);
            free(uri);
            removed++;
        } else {
            server->uris[kept++] = uri;
        }
    }
    return removed;
}

esp_err_t httpd_unregister_uri_handler(httpd_handle_t handle, const char *uri, httpd_method_t method) {
    if (handle == NULL || uri == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (remove_uris(handle, uri, &method) == 0) {
        ESP_LOGW(TAG, "handler %s with method %d not found", uri, (int)method);
        return ESP_ERR_NOT_FOUND;
    }
    return ESP_OK;
}

esp_err_t httpd_unregister_uri(httpd_handle_t handle, const char *uri) {
    if (handle == NULL || uri == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (remove_uris(handle, uri, NULL) == 0) {
        ESP_LOGW(TAG, "no handler found for URI %s", uri);
        return ESP_ERR_NOT_FOUND;
    }
    return ESP_OK;
}

void httpd_uris_free(httpd_server_t *server) {
    if (server->uris != NULL) {
        (void)remove_uris(server, NULL, NULL);
    }
}

esp_err_t httpd_handle_uri(httpd_server_t *server) {
    httpd_req_t *request = &server->request;
    const struct http_parser_url *url = &server->aux.url;
    if (!(url->field_set & (1U << UF_PATH))) {
        return ESP_FAIL;
    }
    httpd_err_code_t error;
    httpd_uri_t *uri = find(server, request->uri + url->field_data[UF_PATH].off, url->field_data[UF_PATH].len,
                            (httpd_method_t)request->method, &error);
    if (uri == NULL && error == HTTPD_404_NOT_FOUND) {
        ESP_LOGW(TAG, "URI '%s' not found", request->uri);
    } else if (uri == NULL) {
        ESP_LOGW(TAG, "Method '%d' not allowed for URI '%s'", request->method, request->uri);
    }
    if (uri == NULL) {
        return httpd_handle_error(request, error);
    }
    request->user_ctx = uri->user_ctx;
    if (uri->handler(request) != ESP_OK) {
        ESP_LOGW(TAG, "uri handler execution failed");
        return ESP_FAIL;
    }
    return ESP_OK;
}
