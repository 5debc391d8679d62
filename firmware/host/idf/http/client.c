/* SPDX-License-Identifier: Apache-2.0 */
// A client's life, and what is asked of it and set.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esp_log.h"
#include "esp_tls.h"
#include "http_client_priv.h"

static const char *TAG = "HTTP_CLIENT";

static esp_err_t set_up(esp_http_client_handle_t client, const esp_http_client_config_t *config) {
    client->parser.data = client;
    client->response.keep_early = true;
    esp_err_t err = http_set_transports(client, config);
    if (err == ESP_OK) {
        err = http_set_basics(client, config);
        if (err != ESP_OK) {
            ESP_LOGE(TAG, "Error set configurations");
        }
    }
    return err == ESP_OK ? http_set_target(client, config) : err;
}

esp_http_client_handle_t esp_http_client_init(const esp_http_client_config_t *config) {
    esp_http_client_handle_t client = calloc(1, sizeof(*client));
    if (client == NULL) {
        ESP_LOGE(TAG, "Error allocate memory");
        return NULL;
    }
    if (set_up(client, config) != ESP_OK) {
        esp_http_client_cleanup(client);
        return NULL;
    }
    client->state = HTTP_STATE_INIT;
    return client;
}

esp_err_t esp_http_client_close(esp_http_client_handle_t client) {
    if (client->state <= HTTP_STATE_INIT) {
        return ESP_OK;
    }
    http_event(client, HTTP_EVENT_DISCONNECTED, esp_transport_get_error_handle(client->transport), 0);
    http_event_post(HTTP_EVENT_DISCONNECTED, &client, sizeof(client));
    client->state = HTTP_STATE_INIT;
    return esp_transport_close(client->transport);
}

esp_err_t esp_http_client_cleanup(esp_http_client_handle_t client) {
    if (client == NULL) {
        return ESP_FAIL;
    }
    esp_http_client_close(client);
    esp_transport_list_destroy(client->transports);
    http_headers_clear(&client->request.headers);
    http_drop_early_body(&client->response);
    http_target_free(&client->target);
    http_auth_clear(&client->auth);
    free(client->request.buffer);
    free(client->response.buffer);
    free(client->response.location);
    free(client->response.auth_header);
    free(client->response.key);
    free(client->response.value);
    free(client);
    return ESP_OK;
}

esp_err_t esp_http_client_set_header(esp_http_client_handle_t client, const char *key, const char *value) {
    if (client == NULL || key == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    return http_headers_set(&client->request.headers, key, value);
}

esp_err_t esp_http_client_get_header(esp_http_client_handle_t client, const char *key, char **value) {
    if (client == NULL || key == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    *value = http_headers_get(&client->request.headers, key);
    return ESP_OK;
}

esp_err_t esp_http_client_delete_header(esp_http_client_handle_t client, const char *key) {
    if (client == NULL || key == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    return http_headers_delete(&client->request.headers, key);
}

esp_err_t esp_http_client_delete_all_headers(esp_http_client_handle_t client) {
    if (client == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    http_headers_clear(&client->request.headers);
    return ESP_OK;
}

static esp_err_t replace(char **text, const char *value) {
    free(*text);
    *text = value == NULL ? NULL : strdup(value);
    return ESP_OK;
}

esp_err_t esp_http_client_set_username(esp_http_client_handle_t client, const char *username) {
    return client == NULL ? ESP_ERR_INVALID_ARG : replace(&client->target.username, username);
}

esp_err_t esp_http_client_set_password(esp_http_client_handle_t client, const char *password) {
    return client == NULL ? ESP_ERR_INVALID_ARG : replace(&client->target.password, password);
}

esp_err_t esp_http_client_get_username(esp_http_client_handle_t client, char **value) {
    if (client == NULL || value == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    *value = client->target.username;
    return ESP_OK;
}

esp_err_t esp_http_client_get_password(esp_http_client_handle_t client, char **value) {
    if (client == NULL || value == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    *value = client->target.password;
    return ESP_OK;
}

esp_err_t esp_http_client_set_authtype(esp_http_client_handle_t client,
                                       esp_http_client_auth_type_t auth_type) {
    if (client == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    client->target.auth_type = auth_type;
    return ESP_OK;
}

esp_err_t esp_http_client_set_auth_data(esp_http_client_handle_t client, const char *auth_data, int len) {
    if (client == NULL || auth_data == NULL || len <= 0) {
        return ESP_ERR_INVALID_ARG;
    }
    return http_text_append(&client->response.auth_header, auth_data, (size_t)len) ? ESP_OK : ESP_ERR_NO_MEM;
}

esp_err_t esp_http_client_get_user_data(esp_http_client_handle_t client, void **data) {
    if (client == NULL || data == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    *data = client->user_data;
    return ESP_OK;
}

esp_err_t esp_http_client_set_user_data(esp_http_client_handle_t client, void *data) {
    if (client == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    client->user_data = data;
    return ESP_OK;
}

esp_err_t esp_http_client_set_method(esp_http_client_handle_t client, esp_http_client_method_t method) {
    client->target.method = method;
    return ESP_OK;
}

esp_err_t esp_http_client_set_timeout_ms(esp_http_client_handle_t client, int timeout_ms) {
    if (client == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    client->timeout_ms = timeout_ms;
    return ESP_OK;
}

esp_err_t esp_http_client_set_post_field(esp_http_client_handle_t client, const char *data, int len) {
    static const char *const type = "Content-Type";
    http_headers_t *headers = &client->request.headers;
    client->request.post_data = (char *)(uintptr_t)data;
    client->request.post_length = data == NULL ? 0 : len;
    if (data == NULL) {
        return http_headers_delete(headers, type);
    }
    return http_headers_get(headers, type) != NULL
               ? ESP_OK
               : http_headers_set(headers, type, "application/x-www-form-urlencoded");
}

int esp_http_client_get_post_field(esp_http_client_handle_t client, char **data) {
    if (client->request.post_data == NULL) {
        return 0;
    }
    *data = client->request.post_data;
    return client->request.post_length;
}

esp_err_t esp_http_client_get_url(esp_http_client_handle_t client, char *url, const int len) {
    if (client == NULL || url == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    const http_target_t *target = &client->target;
    if (target->host == NULL || target->scheme == NULL || target->path == NULL) {
        ESP_LOGE(TAG, "Failed to get URL");
        return ESP_FAIL;
    }
    snprintf(url, (size_t)len, "%s://%s:%d%s", target->scheme, target->host, target->port, target->path);
    return ESP_OK;
}

int esp_http_client_get_status_code(esp_http_client_handle_t client) {
    return client->response.status_code;
}

int64_t esp_http_client_get_content_length(esp_http_client_handle_t client) {
    return client->response.content_length;
}

bool esp_http_client_is_chunked_response(esp_http_client_handle_t client) {
    return client->response.is_chunked;
}

esp_err_t esp_http_client_get_chunk_length(esp_http_client_handle_t client, int *len) {
    if (client == NULL || len == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (!client->response.is_chunked) {
        ESP_LOGE(TAG, "Response is not chunked");
        return ESP_FAIL;
    }
    *len = client->response.chunk_length;
    return ESP_OK;
}

bool esp_http_client_is_persistent_connection(esp_http_client_handle_t client) {
    return client != NULL && http_should_keep_alive(&client->parser);
}

esp_http_client_transport_t esp_http_client_get_transport_type(esp_http_client_handle_t client) {
    const char *scheme = client->target.scheme;
    return strcasecmp(scheme, "https") == 0  ? HTTP_TRANSPORT_OVER_SSL
           : strcasecmp(scheme, "http") == 0 ? HTTP_TRANSPORT_OVER_TCP
                                             : HTTP_TRANSPORT_UNKNOWN;
}

int esp_http_client_get_socket(esp_http_client_handle_t client) {
    return client == NULL ? -1 : esp_transport_get_socket(client->transport);
}

int esp_http_client_get_errno(esp_http_client_handle_t client) {
    if (client == NULL) {
        ESP_LOGE(TAG, "Invalid client handle");
        return -1;
    }
    return esp_transport_get_errno(client->transport);
}

esp_err_t esp_http_client_get_and_clear_last_tls_error(esp_http_client_handle_t client,
                                                       int *esp_tls_error_code, int *esp_tls_flags) {
    if (client == NULL) {
        ESP_LOGE(TAG, "Invalid client handle");
        return ESP_FAIL;
    }
    return esp_tls_get_and_clear_last_error(esp_transport_get_error_handle(client->transport),
                                            esp_tls_error_code, esp_tls_flags);
}
