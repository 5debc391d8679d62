/* SPDX-License-Identifier: Apache-2.0 */
// Whether an image is for this chip.
#include "esp_log.h"
#include "https_ota_priv.h"

static const char *TAG = "esp_https_ota";

esp_err_t https_ota_verify_chip(const void *head) {
    const esp_image_header_t *header = head;
    const esp_chip_id_t chip = header->chip_id;
    const uint16_t revision = header->min_chip_rev_full;
    https_ota_event(ESP_HTTPS_OTA_VERIFY_CHIP_ID, &chip, sizeof(chip));
    if (chip != CONFIG_IDF_FIRMWARE_CHIP_ID) {
        ESP_LOGE(TAG, "Mismatch chip id, expected %d, found %d", CONFIG_IDF_FIRMWARE_CHIP_ID, (int)chip);
        return ESP_ERR_INVALID_VERSION;
    }
    https_ota_event(ESP_HTTPS_OTA_VERIFY_CHIP_REVISION, &revision, sizeof(revision));
    return bootloader_common_check_chip_revision_validity(header, true) ? ESP_OK : ESP_ERR_INVALID_VERSION;
}
