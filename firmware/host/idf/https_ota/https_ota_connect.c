/* SPDX-License-Identifier: Apache-2.0 */
// The requests of an update.
#include <stdio.h>

#include "esp_log.h"
#include "https_ota_priv.h"

static const char *TAG = "esp_https_ota";

static bool is_redirect(int status) {
    return status == HttpStatus_MovedPermanently || status == HttpStatus_Found ||
           status == HttpStatus_SeeOther || status == HttpStatus_TemporaryRedirect ||
           status == HttpStatus_PermanentRedirect;
}

static bool leads_on(int status) {
    return is_redirect(status) || status == HttpStatus_Unauthorized;
}

static esp_err_t authorize(https_ota_t *ota) {
    if (ota->authorizations_left == 0) {
        ESP_LOGE(TAG, "Reached max_authorization_retries (%d)", HttpStatus_Unauthorized);
        return ESP_FAIL;
    }
    ota->authorizations_left--;
    esp_err_t err = esp_http_client_add_auth(ota->client);
    if (err != ESP_OK) {
        ESP_LOGE(TAG, "Authorization Failed");
    }
    return err;
}

static esp_err_t refuse(int status) {
    if (status == HttpStatus_NotFound || status == HttpStatus_Forbidden) {
        ESP_LOGE(TAG, "File not found(%d)", status);
    } else {
        ESP_LOGE(TAG, "%s error (%d)", status < HttpStatus_InternalError ? "Client" : "Server", status);
    }
    return ESP_FAIL;
}

static esp_err_t follow(https_ota_t *ota, int status) {
    if (is_redirect(status)) {
        esp_err_t err = esp_http_client_set_redirection(ota->client);
        if (err != ESP_OK) {
            ESP_LOGE(TAG, "URL redirection Failed");
        }
        return err;
    }
    if (status == HttpStatus_NotModified) {
        ESP_LOGI(TAG, "OTA image not modified since last request (status code: %d)", status);
        return ESP_ERR_HTTP_NOT_MODIFIED;
    }
    if (status == HttpStatus_RangeNotSatisfiable) {
        ESP_LOGI(TAG, "Requested range is incorrect (status code: %d)", status);
        return ESP_ERR_HTTP_RANGE_NOT_SATISFIABLE;
    }
    if (status == HttpStatus_Unauthorized) {
        return authorize(ota);
    }
    if (status >= HttpStatus_BadRequest) {
        return refuse(status);
    }
    if (ota->resumes && status != HttpStatus_PartialContent) {
        ESP_LOGW(TAG, "Server ignored the requested Range header");
        ESP_LOGW(TAG, "OTA resumption requires server with range request support.");
        return ESP_ERR_HTTP_RANGE_NOT_SATISFIABLE;
    }
    return ESP_OK;
}

// The body of an answer that leads on is of no use, and in the way of the next one.
static void drop_body(https_ota_t *ota) {
    char dropped[256];
    while (esp_http_client_read(ota->client, dropped, sizeof(dropped)) > 0) {
    }
}

static esp_err_t send_request(https_ota_t *ota) {
    char *data = NULL;
    int left = esp_http_client_get_post_field(ota->client, &data);
    esp_err_t err = esp_http_client_open(ota->client, left);
    if (err != ESP_OK) {
        ESP_LOGE(TAG, "Failed to open HTTP connection: %s", esp_err_to_name(err));
        return err;
    }
    while (left > 0) {
        int n = esp_http_client_write(ota->client, data, left);
        if (n < 0) {
            ESP_LOGE(TAG, "Write failed");
            return ESP_FAIL;
        }
        left -= n;
        data += n;
    }
    return ESP_OK;
}

// Until an answer does not lead on.
static esp_err_t request(https_ota_t *ota) {
    for (;;) {
        esp_err_t err = send_request(ota);
        if (err != ESP_OK) {
            return err;
        }
        int64_t received = esp_http_client_fetch_headers(ota->client);
        if (received < 0) {
            return (esp_err_t)received;
        }
        int status = esp_http_client_get_status_code(ota->client);
        err = follow(ota, status);
        if (err != ESP_OK || !leads_on(status)) {
            return err;
        }
        drop_body(ota);
    }
}

// last -1: to the image's end.
static esp_err_t ask_for_range(https_ota_t *ota, int first, int last) {
    char text[48];
    int length = snprintf(text, sizeof(text), "bytes=%d-", first);
    if (last >= 0) {
        snprintf(text + length, sizeof(text) - (size_t)length, "%d", last);
    }
    return esp_http_client_set_header(ota->client, "Range", text);
}

// The image's size by HEAD, then the first range.
static esp_err_t begin_partial(https_ota_t *ota) {
    esp_http_client_set_method(ota->client, HTTP_METHOD_HEAD);
    esp_err_t err = esp_http_client_perform(ota->client);
    if (err != ESP_OK) {
        ESP_LOGE(TAG, "ESP HTTP client perform failed: %d", err);
        return err;
    }
    int status = esp_http_client_get_status_code(ota->client);
    if (status != HttpStatus_Ok) {
        ESP_LOGE(TAG, "Received incorrect http status %d", status);
        return ESP_FAIL;
    }
    ota->image_bytes = (int)esp_http_client_get_content_length(ota->client);
    esp_http_client_close(ota->client);
    int first = ota->written_bytes;
    int last =
        ota->image_bytes > ota->request_bytes + first ? first + ota->request_bytes - 1 : ota->image_bytes;
    if (last - first < ota->image_bytes) {
        err = ask_for_range(ota, first, last);
    }
    esp_http_client_set_method(ota->client, HTTP_METHOD_GET);
    return err;
}

// From the beginning, where the server has not the range that was to be gone on with.
static esp_err_t begin_again(https_ota_t *ota) {
    ESP_LOGI(TAG, "Falling back to OTA without resumption and restarting download from beginning");
    ota->resumes = false;
    ota->written_bytes = 0;
    esp_http_client_delete_header(ota->client, "Range");
    if (ota->partial && ota->image_bytes > ota->request_bytes) {
        ask_for_range(ota, 0, ota->request_bytes - 1);
    }
    esp_http_client_close(ota->client);
    esp_http_client_clear_response_buffer(ota->client);
    return request(ota);
}

esp_err_t https_ota_connect(https_ota_t *ota) {
    esp_err_t err = ESP_OK;
    if (ota->resumes && !ota->partial) {
        err = ask_for_range(ota, ota->written_bytes, -1);
    }
    if (err == ESP_OK && ota->partial) {
        err = begin_partial(ota);
    }
    if (err != ESP_OK) {
        return err;
    }
    err = request(ota);
    if (err == ESP_ERR_HTTP_RANGE_NOT_SATISFIABLE && ota->resumes) {
        ESP_LOGE(TAG, "OTA resumption failed with err: %d.", err);
        err = begin_again(ota);
    }
    if (err != ESP_OK && err != ESP_ERR_HTTP_NOT_MODIFIED) {
        ESP_LOGE(TAG, "Failed to establish HTTP connection");
    }
    if (err == ESP_OK && !ota->partial) {
        ota->image_bytes = (int)esp_http_client_get_content_length(ota->client);
    }
    return err;
}

esp_err_t https_ota_next_range(https_ota_t *ota) {
    if (!esp_http_client_is_persistent_connection(ota->client)) {
        esp_http_client_close(ota->client);
    }
    bool last = ota->image_bytes - ota->written_bytes <= ota->request_bytes;
    esp_err_t err =
        ask_for_range(ota, ota->written_bytes, last ? -1 : ota->written_bytes + ota->request_bytes - 1);
    if (err == ESP_OK && request(ota) != ESP_OK) {
        ESP_LOGE(TAG, "Failed to establish HTTP connection");
        err = ESP_FAIL;
    }
    return err;
}
