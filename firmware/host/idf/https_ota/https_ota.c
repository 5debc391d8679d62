/* SPDX-License-Identifier: Apache-2.0 */
// An update's life: begin, perform, finish or abort.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "esp_image_format.h"
#include "esp_log.h"
#include "https_ota_priv.h"

ESP_EVENT_DEFINE_BASE(ESP_HTTPS_OTA_EVENT);

#define REQUEST_BYTES (64 * 1024)
#define AUTHORIZATIONS_MAX 10

#if CONFIG_ESP_HTTPS_OTA_EVENT_POST_TIMEOUT == -1
#define POST_TICKS portMAX_DELAY
#else
#define POST_TICKS pdMS_TO_TICKS(CONFIG_ESP_HTTPS_OTA_EVENT_POST_TIMEOUT)
#endif

static const char *TAG = "esp_https_ota";

void https_ota_event(esp_https_ota_event_t id, const void *data, size_t size) {
    static const char *const names[] = {
        "START",      "CONNECTED",   "GET_IMG_DESC",          "VERIFY_CHIP_ID", "VERIFY_CHIP_REVISION",
        "DECRYPT_CB", "WRITE_FLASH", "UPDATE_BOOT_PARTITION", "FINISH",         "ABORT"};
    if (esp_event_post(ESP_HTTPS_OTA_EVENT, (int32_t)id, data, size, POST_TICKS) != ESP_OK) {
        ESP_LOGE(TAG, "Failed to post https_ota event: ESP_HTTPS_OTA_%s", names[id]);
    }
}

static bool is_verified(const esp_http_client_config_t *config) {
    return config->cert_pem != NULL || config->use_global_ca_store || config->crt_bundle_attach != NULL;
}

static esp_err_t check_config(const esp_https_ota_config_t *config) {
    if (config == NULL || config->http_config == NULL) {
        ESP_LOGE(TAG, "esp_https_ota_begin: Invalid argument");
        return ESP_ERR_INVALID_ARG;
    }
    if (!is_verified(config->http_config)) {
#ifdef CONFIG_ESP_HTTPS_OTA_ALLOW_HTTP
        ESP_LOGW(TAG, "Continuing with insecure option because CONFIG_ESP_HTTPS_OTA_ALLOW_HTTP is set.");
#else
        ESP_LOGE(TAG, "No option for server verification is enabled in esp_http_client config.");
        return ESP_ERR_INVALID_ARG;
#endif
    }
    return ESP_OK;
}

static void take_config(https_ota_t *ota, const esp_https_ota_config_t *config) {
    int retries = config->http_config->max_authorization_retries;
    ota->partial = config->partial_http_download;
    ota->request_bytes = config->max_http_request_size == 0 ? REQUEST_BYTES : config->max_http_request_size;
    ota->resumes = config->ota_resumption;
    ota->bulk_erase = config->bulk_flash_erase;
    ota->authorizations_left = retries == 0 ? AUTHORIZATIONS_MAX : retries == -1 ? 0 : retries;
    if (ota->resumes && config->ota_image_bytes_written >= HTTPS_OTA_HEAD_BYTES) {
        ota->written_bytes = (int)config->ota_image_bytes_written;
    }
}

static esp_err_t open_download(https_ota_t *ota, const esp_https_ota_config_t *config) {
    ota->client = esp_http_client_init(config->http_config);
    if (ota->client == NULL) {
        ESP_LOGE(TAG, "Failed to initialise HTTP connection");
        return ESP_FAIL;
    }
    if (config->http_client_init_cb != NULL) {
        esp_err_t err = config->http_client_init_cb(ota->client);
        if (err != ESP_OK) {
            ESP_LOGE(TAG, "http_client_init_cb returned 0x%x", (unsigned)err);
            return err;
        }
    }
    esp_err_t err = https_ota_connect(ota);
    if (err == ESP_OK) {
        https_ota_event(ESP_HTTPS_OTA_CONNECTED, NULL, 0);
    }
    return err;
}

static esp_err_t choose_partitions(https_ota_t *ota, const esp_https_ota_config_t *config) {
    const esp_partition_t *staging = config->partition.staging, *final = config->partition.final;
    ESP_LOGI(TAG, "Starting OTA...");
    ota->staging = staging == NULL ? esp_ota_get_next_update_partition(NULL) : esp_partition_verify(staging);
    if (ota->staging == NULL) {
        ESP_LOGE(TAG, "Given staging partition or another suitable Passive OTA partition could not be found");
        return ESP_FAIL;
    }
    ESP_LOGI(TAG, "Writing to <%s> partition at offset 0x%x", ota->staging->label,
             (unsigned)ota->staging->address);
    ota->final = ota->staging;
    if (final != NULL && final != staging) {
        ota->final = esp_partition_verify(final);
        ota->copies = config->partition.finalize_with_copy;
    }
    if (ota->final == NULL) {
        ESP_LOGE(TAG, "Given final partition not found");
        return ESP_FAIL;
    }
    return ESP_OK;
}

static esp_err_t create_buffer(https_ota_t *ota, const esp_http_client_config_t *config) {
    ota->buffer_bytes =
        config->buffer_size > HTTPS_OTA_HEAD_BYTES ? (size_t)config->buffer_size : HTTPS_OTA_HEAD_BYTES;
    ota->buffer = malloc(ota->buffer_bytes);
    if (ota->buffer == NULL) {
        ESP_LOGE(TAG, "Couldn't allocate memory to upgrade data buffer");
    }
    return ota->buffer == NULL ? ESP_ERR_NO_MEM : ESP_OK;
}

static void https_ota_free(https_ota_t *ota) {
    if (ota->client != NULL) {
        esp_http_client_close(ota->client);
        esp_http_client_cleanup(ota->client);
    }
    free(ota->buffer);
    free(ota);
}

esp_err_t esp_https_ota_begin(const esp_https_ota_config_t *ota_config, esp_https_ota_handle_t *handle) {
    https_ota_event(ESP_HTTPS_OTA_START, NULL, 0);
    if (handle == NULL) {
        ESP_LOGE(TAG, "esp_https_ota_begin: Invalid argument");
        return ESP_ERR_INVALID_ARG;
    }
    *handle = NULL;
    esp_err_t err = check_config(ota_config);
    if (err != ESP_OK) {
        return err;
    }
    https_ota_t *ota = calloc(1, sizeof(*ota));
    if (ota == NULL) {
        ESP_LOGE(TAG, "Couldn't allocate memory to upgrade data buffer");
        return ESP_ERR_NO_MEM;
    }
    take_config(ota, ota_config);
    err = open_download(ota, ota_config);
    err = err == ESP_OK ? choose_partitions(ota, ota_config) : err;
    err = err == ESP_OK ? create_buffer(ota, ota_config->http_config) : err;
    if (err != ESP_OK) {
        https_ota_free(ota);
        return err;
    }
    ota->state = ota->written_bytes > 0 ? HTTPS_OTA_RESUME : HTTPS_OTA_BEGIN;
    *handle = ota;
    return ESP_OK;
}

static bool is_image(const https_ota_t *ota) {
    return ota->final->type == ESP_PARTITION_TYPE_APP || ota->final->type == ESP_PARTITION_TYPE_BOOTLOADER;
}

static esp_err_t write_flash(https_ota_t *ota, int bytes) {
    esp_err_t err = esp_ota_write(ota->update, ota->buffer, (size_t)bytes);
    if (err != ESP_OK) {
        ESP_LOGE(TAG, "Error: esp_ota_write failed! err=0x%x", (unsigned)err);
    } else {
        ota->written_bytes += bytes;
        err = ESP_ERR_HTTPS_OTA_IN_PROGRESS;
    }
    https_ota_event(ESP_HTTPS_OTA_WRITE_FLASH, &ota->written_bytes, sizeof(ota->written_bytes));
    return err;
}

static size_t erase_bytes(const https_ota_t *ota) {
    if (!ota->bulk_erase) {
        return OTA_WITH_SEQUENTIAL_WRITES;
    }
    return ota->image_bytes > 0 ? (size_t)ota->image_bytes : OTA_SIZE_UNKNOWN;
}

// Opens the slot; the image's head is verified before it is written.
static esp_err_t begin_writing(https_ota_t *ota) {
    esp_err_t err = esp_ota_begin(ota->staging, erase_bytes(ota), &ota->update);
    if (err != ESP_OK) {
        ESP_LOGE(TAG, "esp_ota_begin failed (%s)", esp_err_to_name(err));
        return err;
    }
    esp_ota_set_final_partition(ota->update, ota->final, ota->copies);
    ota->state = HTTPS_OTA_IN_PROGRESS;
    if (!is_image(ota)) {
        return ESP_ERR_HTTPS_OTA_IN_PROGRESS;
    }
    if (ota->written_bytes == 0 && https_ota_read_head(ota) != ESP_OK) {
        return ESP_FAIL;
    }
    int head = ota->written_bytes;
    ota->written_bytes = 0;
    err = https_ota_verify_chip(ota->buffer);
    return err == ESP_OK ? write_flash(ota, head) : err;
}

static esp_err_t resume_writing(https_ota_t *ota) {
    esp_err_t err = esp_ota_resume(ota->staging, erase_bytes(ota), (size_t)ota->written_bytes, &ota->update);
    if (err != ESP_OK) {
        ESP_LOGE(TAG, "esp_ota_resume failed (%s)", esp_err_to_name(err));
        return err;
    }
    esp_ota_set_final_partition(ota->update, ota->final, ota->copies);
    ota->state = HTTPS_OTA_IN_PROGRESS;
    return ESP_OK;
}

static esp_err_t end_of_answer(https_ota_t *ota) {
    if (!esp_http_client_is_complete_data_received(ota->client)) {
        ESP_LOGE(TAG, "Connection closed before complete data was received!");
        return ESP_FAIL;
    }
    if (!ota->partial || ota->image_bytes == ota->written_bytes) {
        ota->state = HTTPS_OTA_SUCCESS;
    }
    if (ota->partial && ota->state == HTTPS_OTA_IN_PROGRESS && ota->image_bytes > ota->written_bytes) {
        esp_err_t err = https_ota_next_range(ota);
        return err == ESP_OK ? ESP_ERR_HTTPS_OTA_IN_PROGRESS : err;
    }
    return ESP_OK;
}

static esp_err_t write_piece(https_ota_t *ota) {
    int n = esp_http_client_read(ota->client, ota->buffer, (int)ota->buffer_bytes);
    if (n > 0) {
        return write_flash(ota, n);
    }
    if (n == 0) {
        return end_of_answer(ota);
    }
    if (n == -ESP_ERR_HTTP_EAGAIN) {
        return ESP_ERR_HTTPS_OTA_IN_PROGRESS;
    }
    ESP_LOGE(TAG, "data read %d, errno %d", n, errno);
    return ESP_FAIL;
}

esp_err_t esp_https_ota_perform(esp_https_ota_handle_t https_ota_handle) {
    https_ota_t *ota = https_ota_handle;
    if (ota == NULL) {
        ESP_LOGE(TAG, "esp_https_ota_perform: Invalid argument");
        return ESP_ERR_INVALID_ARG;
    }
    if (ota->state == HTTPS_OTA_BEGIN) {
        return begin_writing(ota);
    }
    if (ota->state == HTTPS_OTA_RESUME) {
        esp_err_t err = resume_writing(ota);
        if (err != ESP_OK) {
            return err;
        }
    }
    if (ota->state != HTTPS_OTA_IN_PROGRESS) {
        ESP_LOGE(TAG, "Invalid ESP HTTPS OTA State");
        return ESP_FAIL;
    }
    return write_piece(ota);
}

bool esp_https_ota_is_complete_data_received(esp_https_ota_handle_t https_ota_handle) {
    const https_ota_t *ota = https_ota_handle;
    return ota->partial ? ota->image_bytes == ota->written_bytes
                        : esp_http_client_is_complete_data_received(ota->client);
}

static esp_err_t select_image(const https_ota_t *ota) {
    esp_err_t err = ESP_OK;
    if (ota->final->subtype >= ESP_PARTITION_SUBTYPE_APP_OTA_0 &&
        ota->final->subtype < ESP_PARTITION_SUBTYPE_APP_OTA_MAX) {
        err = esp_ota_set_boot_partition(ota->staging);
    }
    if (err != ESP_OK) {
        ESP_LOGE(TAG, "esp_ota_set_boot_partition failed! err=0x%x", (unsigned)err);
        return err;
    }
    https_ota_event(ESP_HTTPS_OTA_UPDATE_BOOT_PARTITION, &ota->final->subtype,
                    sizeof(esp_partition_subtype_t));
    return ESP_OK;
}

static bool writes(const https_ota_t *ota) {
    return ota->state == HTTPS_OTA_IN_PROGRESS || ota->state == HTTPS_OTA_SUCCESS;
}

esp_err_t esp_https_ota_finish(esp_https_ota_handle_t https_ota_handle) {
    https_ota_t *ota = https_ota_handle;
    if (ota == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    esp_err_t err = writes(ota) ? esp_ota_end(ota->update) : ESP_OK;
    if (err == ESP_OK && ota->state == HTTPS_OTA_SUCCESS && ota->final->type == ESP_PARTITION_TYPE_APP) {
        err = select_image(ota);
    }
    https_ota_free(ota);
    https_ota_event(ESP_HTTPS_OTA_FINISH, NULL, 0);
    return err;
}

esp_err_t esp_https_ota_abort(esp_https_ota_handle_t https_ota_handle) {
    https_ota_t *ota = https_ota_handle;
    https_ota_event(ESP_HTTPS_OTA_ABORT, NULL, 0);
    if (ota == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    esp_err_t err = writes(ota) ? esp_ota_abort(ota->update) : ESP_OK;
    https_ota_free(ota);
    return err;
}

int esp_https_ota_get_status_code(esp_https_ota_handle_t https_ota_handle) {
    const https_ota_t *ota = https_ota_handle;
    return ota == NULL || ota->client == NULL ? -1 : esp_http_client_get_status_code(ota->client);
}

int esp_https_ota_get_image_len_read(esp_https_ota_handle_t https_ota_handle) {
    const https_ota_t *ota = https_ota_handle;
    return ota == NULL || ota->state < HTTPS_OTA_IN_PROGRESS ? -1 : ota->written_bytes;
}

int esp_https_ota_get_image_size(esp_https_ota_handle_t https_ota_handle) {
    const https_ota_t *ota = https_ota_handle;
    return ota == NULL || ota->state < HTTPS_OTA_BEGIN ? -1 : ota->image_bytes;
}

esp_err_t esp_https_ota(const esp_https_ota_config_t *ota_config) {
    if (ota_config == NULL || ota_config->http_config == NULL) {
        ESP_LOGE(TAG, "esp_https_ota: Invalid argument");
        return ESP_ERR_INVALID_ARG;
    }
    if (ota_config->ota_resumption) {
        ESP_LOGE(TAG, "OTA resumption is not supported in esp_https_ota API");
        return ESP_ERR_NOT_SUPPORTED;
    }
    esp_https_ota_handle_t handle = NULL;
    esp_err_t err = esp_https_ota_begin(ota_config, &handle);
    if (err != ESP_OK) {
        return err;
    }
    do {
        err = esp_https_ota_perform(handle);
    } while (err == ESP_ERR_HTTPS_OTA_IN_PROGRESS);
    if (err != ESP_OK) {
        esp_https_ota_abort(handle);
        return err;
    }
    return esp_https_ota_finish(handle);
}
