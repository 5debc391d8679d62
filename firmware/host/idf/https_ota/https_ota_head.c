/* SPDX-License-Identifier: Apache-2.0 */
// An image's head, and what it says of itself there.
#include <errno.h>
#include <string.h>

#include "esp_image_format.h"
#include "esp_log.h"
#include "https_ota_priv.h"

static const char *TAG = "esp_https_ota";

esp_err_t https_ota_read_head(https_ota_t *ota) {
    int read = 0;
    while (read < HTTPS_OTA_HEAD_BYTES && !esp_http_client_is_complete_data_received(ota->client)) {
        int n = esp_http_client_read(ota->client, ota->buffer + read, HTTPS_OTA_HEAD_BYTES - read);
        if (n == -ESP_ERR_HTTP_EAGAIN) {
            continue;
        }
        if (n < 0) {
            ESP_LOGE(TAG, "Connection closed, errno = %d", errno);
            break;
        }
        read += n;
    }
    if (read < HTTPS_OTA_HEAD_BYTES) {
        ESP_LOGE(TAG, "Complete headers were not received");
        return ESP_FAIL;
    }
    ota->written_bytes = read;
    return ESP_OK;
}

// What was written already is read from the slot: before the first write that is what was there before.
static esp_err_t description(https_ota_t *ota, void *found, size_t size) {
    const size_t offset = sizeof(esp_image_header_t) + sizeof(esp_image_segment_header_t);
    if ((size_t)ota->written_bytes >= offset + size) {
        esp_err_t err = esp_partition_read(ota->staging, offset, ota->buffer, size);
        memcpy(found, ota->buffer, size);
        return err;
    }
    if (https_ota_read_head(ota) != ESP_OK) {
        return ESP_FAIL;
    }
    memcpy(found, ota->buffer + offset, size);
    return ESP_OK;
}

static esp_err_t check_described(const https_ota_t *ota, const void *wanted, esp_partition_type_t type) {
    if (ota == NULL || wanted == NULL) {
        ESP_LOGE(TAG, "esp_https_ota_get_img_desc: Invalid argument");
        return ESP_ERR_INVALID_ARG;
    }
    if (ota->final->type != type) {
        ESP_LOGE(TAG, "This partition type (%d) is not supported", ota->final->type);
        return ESP_FAIL;
    }
    return ESP_OK;
}

esp_err_t esp_https_ota_get_img_desc(esp_https_ota_handle_t https_ota_handle, esp_app_desc_t *new_app_info) {
    https_ota_event(ESP_HTTPS_OTA_GET_IMG_DESC, NULL, 0);
    esp_err_t err = check_described(https_ota_handle, new_app_info, ESP_PARTITION_TYPE_APP);
    if (err != ESP_OK) {
        return err;
    }
    esp_app_desc_t found;
    err = description(https_ota_handle, &found, sizeof(found));
    if (err == ESP_OK && found.magic_word != ESP_APP_DESC_MAGIC_WORD) {
        ESP_LOGE(TAG, "Incorrect app descriptor magic");
        err = ESP_FAIL;
    }
    if (err == ESP_OK) {
        *new_app_info = found;
    }
    return err;
}

esp_err_t esp_https_ota_get_bootloader_img_desc(esp_https_ota_handle_t https_ota_handle,
                                                esp_bootloader_desc_t *new_img_info) {
    https_ota_event(ESP_HTTPS_OTA_GET_IMG_DESC, NULL, 0);
    esp_err_t err = check_described(https_ota_handle, new_img_info, ESP_PARTITION_TYPE_BOOTLOADER);
    if (err != ESP_OK) {
        return err;
    }
    esp_bootloader_desc_t found;
    err = description(https_ota_handle, &found, sizeof(found));
    if (err == ESP_OK && found.magic_byte != ESP_BOOTLOADER_DESC_MAGIC_BYTE) {
        ESP_LOGE(TAG, "Incorrect bootloader descriptor magic");
        err = ESP_FAIL;
    }
    if (err == ESP_OK) {
        *new_img_info = found;
    }
    return err;
}
