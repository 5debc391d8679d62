/* SPDX-License-Identifier: Apache-2.0 */
#include "bootloader_common.h"
#include "esp_chip_info.h"
#include "esp_log.h"

static const char *TAG = "boot_comm";

static bool refuse(const char *relation, unsigned wanted, unsigned found) {
    ESP_LOGE(TAG, "chip revision check failed. Required %s v%u.%u, found v%u.%u.", relation, wanted / 100,
             wanted % 100, found / 100, found % 100);
    return false;
}

bool bootloader_common_check_chip_revision_validity(const esp_image_header_t *image_header,
                                                    bool check_max_revision) {
    if (image_header == NULL) {
        return false;
    }
    esp_chip_info_t chip;
    esp_chip_info(&chip);
    const unsigned min = image_header->min_chip_rev_full, max = image_header->max_chip_rev_full;
    if (chip.revision < min) {
        return refuse(">=", min, chip.revision);
    }
    const bool bounded = max != 0 && max != UINT16_MAX;
    return !check_max_revision || !bounded || chip.revision <= max || refuse("<=", max, chip.revision);
}
