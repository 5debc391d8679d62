/* SPDX-License-Identifier: Apache-2.0 */
// ESP-IDF's update over HTTPS, on the host's esp_http_client and the board's flash. Names, values, order of
// events and return codes are those of ESP-IDF v5.5; docs/explain/host-network.md has what differs.
#pragma once

#include "bootloader_common.h"
#include "esp_app_desc.h"
#include "esp_bootloader_desc.h"
#include "esp_event.h"
#include "esp_http_client.h"
#include "esp_partition.h"
#include "sdkconfig.h"

#ifdef __cplusplus
extern "C" {
#endif

// On the default event loop.
ESP_EVENT_DECLARE_BASE(ESP_HTTPS_OTA_EVENT);

typedef enum {
    ESP_HTTPS_OTA_START,
    ESP_HTTPS_OTA_CONNECTED,
    ESP_HTTPS_OTA_GET_IMG_DESC,
    ESP_HTTPS_OTA_VERIFY_CHIP_ID,       // the image's esp_chip_id_t
    ESP_HTTPS_OTA_VERIFY_CHIP_REVISION, // the image's least revision, uint16_t
    ESP_HTTPS_OTA_DECRYPT_CB,
    ESP_HTTPS_OTA_WRITE_FLASH,           // bytes written so far, int
    ESP_HTTPS_OTA_UPDATE_BOOT_PARTITION, // esp_partition_subtype_t
    ESP_HTTPS_OTA_FINISH,
    ESP_HTTPS_OTA_ABORT,
} esp_https_ota_event_t;

typedef void *esp_https_ota_handle_t;
typedef esp_err_t (*http_client_init_cb_t)(esp_http_client_handle_t);

typedef struct {
    const esp_http_client_config_t *http_config;
    http_client_init_cb_t http_client_init_cb;
    bool bulk_flash_erase;
    bool partial_http_download; // by ranges, after a HEAD
    int max_http_request_size;  // of a range; 0: 64 KiB
    uint32_t buffer_caps;
    bool ota_resumption;
    size_t ota_image_bytes_written; // what a resumed download begins after
    struct {
        const esp_partition_t *staging; // NULL: the next slot
        const esp_partition_t *final;   // NULL: staging
        bool finalize_with_copy;
    } partition;
} esp_https_ota_config_t;

#define ESP_ERR_HTTPS_OTA_BASE (0x9000)
#define ESP_ERR_HTTPS_OTA_IN_PROGRESS (ESP_ERR_HTTPS_OTA_BASE + 1)

// The whole of it; on ESP_OK the next reset boots the new image.
esp_err_t esp_https_ota(const esp_https_ota_config_t *ota_config);

// In steps: perform until it is not ESP_ERR_HTTPS_OTA_IN_PROGRESS, then finish, or abort.
esp_err_t esp_https_ota_begin(const esp_https_ota_config_t *ota_config, esp_https_ota_handle_t *handle);
esp_err_t esp_https_ota_perform(esp_https_ota_handle_t https_ota_handle);
bool esp_https_ota_is_complete_data_received(esp_https_ota_handle_t https_ota_handle);
esp_err_t esp_https_ota_finish(esp_https_ota_handle_t https_ota_handle);
esp_err_t esp_https_ota_abort(esp_https_ota_handle_t https_ota_handle);

// Reads the image's head, before perform.
esp_err_t esp_https_ota_get_img_desc(esp_https_ota_handle_t https_ota_handle, esp_app_desc_t *new_app_info);
esp_err_t esp_https_ota_get_bootloader_img_desc(esp_https_ota_handle_t https_ota_handle,
                                                esp_bootloader_desc_t *new_img_info);
int esp_https_ota_get_image_len_read(esp_https_ota_handle_t https_ota_handle);
int esp_https_ota_get_status_code(esp_https_ota_handle_t https_ota_handle);
int esp_https_ota_get_image_size(esp_https_ota_handle_t https_ota_handle); // -1: not said

#ifdef __cplusplus
}
#endif
