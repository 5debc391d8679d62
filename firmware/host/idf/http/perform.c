/* SPDX-License-Identifier: Apache-2.0 */
// A whole request, with those that redirects and authorization lead to.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "esp_log.h"
#include "http_client_priv.h"

static const char *TAG = "HTTP_CLIENT";

esp_err_t esp_http_client_set_redirection(esp_http_client_handle_t client) {
    if (client == NULL || client->response.location == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    esp_err_t err = esp_http_client_set_url(client, client->response.location);
    if (err == ESP_OK) {
        client->redirects++;
        client->again = true;
    }
    return err;
}

esp_err_t esp_http_client_reset_redirect_counter(esp_http_client_handle_t client) {
    if (client == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    client->redirects = 0;
    return ESP_OK;
}

static bool is_scheme(const char *header, const char *scheme) {
    return strncasecmp(header, scheme, strlen(scheme)) == 0;
}

static esp_err_t choose_scheme(esp_http_client_handle_t client, const char *header) {
    esp_http_client_auth_type_t *type = &client->target.auth_type;
#ifdef CONFIG_ESP_HTTP_CLIENT_ENABLE_DIGEST_AUTH
    if (is_scheme(header, "Digest")) {
        *type = HTTP_AUTH_TYPE_DIGEST;
        return ESP_OK;
    }
#endif
#ifdef CONFIG_ESP_HTTP_CLIENT_ENABLE_BASIC_AUTH
    if (is_scheme(header, "Basic")) {
        *type = HTTP_AUTH_TYPE_BASIC;
        return ESP_OK;
    }
#endif
    (void)is_scheme;
    *type = HTTP_AUTH_TYPE_NONE;
    ESP_LOGE(TAG, "This authentication method is not supported: %s", header);
    return ESP_ERR_NOT_SUPPORTED;
}

static void read_challenge(http_auth_t *auth, const char *header, const char *method) {
    http_auth_clear(auth);
    auth->method = strdup(method);
    auth->nonce_count = 1;
    auth->realm = http_text_between(header, "realm=\"", "\"");
    auth->algorithm = http_text_between(header, "algorithm=", ",");
    if (auth->algorithm == NULL) {
        auth->algorithm = http_text_between(header, "algorithm=", "");
    }
    if (auth->algorithm == NULL) {
        auth->algorithm = strdup("MD5");
    }
    auth->qop = http_text_between(header, "qop=\"", "\"");
    auth->nonce = http_text_between(header, "nonce=\"", "\"");
    auth->opaque = http_text_between(header, "opaque=\"", "\"");
}

esp_err_t esp_http_client_add_auth(esp_http_client_handle_t client) {
    if (client == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (client->state != HTTP_STATE_BODY) {
        return ESP_OK;
    }
    if (client->redirects >= client->authorizations_max) {
        ESP_LOGE(TAG, "Error, reached max_authorization_retries count=%d", client->redirects);
        return ESP_FAIL;
    }
    char *header = client->response.auth_header;
    if (header == NULL) {
        client->target.auth_type = HTTP_AUTH_TYPE_NONE;
        ESP_LOGW(TAG,
                 "This request requires authentication, but does not provide header information for that");
        return ESP_ERR_NOT_SUPPORTED;
    }
    http_text_trim(header);
    client->redirects++;
    esp_err_t err = choose_scheme(client, header);
    if (err == ESP_OK) {
        read_challenge(&client->auth, header, http_method_names[client->target.method]);
        client->again = true;
    }
    return err;
}

static esp_err_t redirect(esp_http_client_handle_t client) {
    if (client->disable_auto_redirect) {
        http_event(client, HTTP_EVENT_REDIRECT, NULL, 0);
    } else if (esp_http_client_set_redirection(client) != ESP_OK) {
        return ESP_FAIL;
    }
    const esp_http_client_redirect_event_data_t data = {.client = client,
                                                        .status_code = client->response.status_code};
    http_event_post(HTTP_EVENT_REDIRECT, &data, sizeof(data));
    return ESP_OK;
}

static esp_err_t check_status(esp_http_client_handle_t client) {
    int status = client->response.status_code;
    if (status >= HttpStatus_Ok && status < HttpStatus_MultipleChoices) {
        client->redirects = 0;
        return ESP_OK;
    }
    if (client->redirects >= client->redirects_max) {
        ESP_LOGE(TAG, "Error, reach max_redirection_count count=%d", client->redirects);
        return ESP_ERR_HTTP_MAX_REDIRECT;
    }
    switch (status) {
    case HttpStatus_MovedPermanently:
    case HttpStatus_Found:
    case HttpStatus_SeeOther:
    case HttpStatus_TemporaryRedirect:
    case HttpStatus_PermanentRedirect:
        return redirect(client);
    case HttpStatus_Unauthorized:
        return esp_http_client_add_auth(client);
    default:
        return ESP_OK;
    }
}

// `err`, told to the handler; ESP_ERR_HTTP_EAGAIN where the call is to be made again.
static esp_err_t failed(esp_http_client_handle_t client, esp_err_t err) {
    if (client->is_async && (err == ESP_ERR_HTTP_CONNECTING || errno == EAGAIN)) {
        return ESP_ERR_HTTP_EAGAIN;
    }
    http_event_error(client);
    return err;
}

static esp_err_t send_request(esp_http_client_handle_t client) {
    esp_err_t err = ESP_OK;
    if (client->state == HTTP_STATE_INIT) {
        err = http_connect(client);
    }
    if (err == ESP_OK && client->state == HTTP_STATE_CONNECTED) {
        errno = 0;
        err = esp_http_client_request_send(client, client->request.post_length);
    }
    if (err == ESP_OK && client->state == HTTP_STATE_HEADERS_SENT) {
        err = http_send_post_data(client);
    }
    return err == ESP_OK ? ESP_OK : failed(client, err);
}

static esp_err_t receive_headers(esp_http_client_handle_t client) {
    client->response.keep_early = false; // the body goes to the handler
    int64_t result = esp_http_client_fetch_headers(client);
    if (result >= 0) {
        return ESP_OK;
    }
    if ((client->is_async && errno == EAGAIN) || result == -ESP_ERR_HTTP_EAGAIN) {
        return ESP_ERR_HTTP_EAGAIN;
    }
    client->response.keep_early = true;
    if (esp_transport_get_errno(client->transport) == ENOTCONN) {
        ESP_LOGW(TAG, "Close connection due to FIN received");
        esp_http_client_close(client);
        http_event_error(client);
        return ESP_ERR_HTTP_CONNECTION_CLOSED;
    }
    http_event_error(client);
    return ESP_ERR_HTTP_FETCH_HEADER;
}

static bool body_remains(const http_response_t *response) {
    return (response->is_chunked && !response->is_complete) ||
           response->body_bytes < response->content_length;
}

// ESP-IDF compares what a read returned with codes that it never returns, so a body that is cut short is
// ESP_ERR_HTTP_INCOMPLETE_DATA whatever the reason.
static esp_err_t receive_body(esp_http_client_handle_t client) {
    const http_response_t *response = &client->response;
    while (body_remains(response)) {
        int n = http_receive_body(client);
        if (n > 0) {
            continue;
        }
        if (client->is_async && errno == EAGAIN) {
            return ESP_ERR_HTTP_EAGAIN;
        }
        if (client->target.method == HTTP_METHOD_HEAD || !body_remains(response)) {
            return ESP_OK;
        }
        ESP_LOGE(TAG, "Incomplete data received, ret=%d, %lld/%lld bytes", n, (long long)response->body_bytes,
                 (long long)response->content_length);
        return ESP_ERR_HTTP_INCOMPLETE_DATA;
    }
    return ESP_OK;
}

static void finish(esp_http_client_handle_t client, esp_err_t err) {
    if (err != ESP_OK) {
        http_event_error(client);
    } else {
        http_event_both(client, HTTP_EVENT_ON_FINISH);
    }
    http_drop_early_body(&client->response);
    if (!http_should_keep_alive(&client->parser)) {
        esp_http_client_close(client);
    } else if (client->state > HTTP_STATE_CONNECTED) {
        client->state = HTTP_STATE_CONNECTED;
        client->request.first_line_prepared = false;
    }
}

static esp_err_t perform_once(esp_http_client_handle_t client) {
    esp_err_t err = client->state < HTTP_STATE_REQUEST_SENT ? send_request(client) : ESP_OK;
    if (err == ESP_OK && client->state == HTTP_STATE_REQUEST_SENT) {
        err = receive_headers(client);
    }
    if (err != ESP_OK || client->state != HTTP_STATE_BODY) {
        return err;
    }
    client->response.keep_early = true;
    err = check_status(client);
    if (err != ESP_OK) {
        ESP_LOGE(TAG, "Error response");
        http_event_error(client);
        return err;
    }
    err = receive_body(client);
    if (err != ESP_ERR_HTTP_EAGAIN) {
        finish(client, err);
    }
    return err;
}

esp_err_t esp_http_client_perform(esp_http_client_handle_t client) {
    esp_err_t err;
    do {
        if (client->again) {
            esp_http_client_prepare(client);
        }
        err = perform_once(client);
    } while (client->again && err == ESP_OK);
    return err;
}
