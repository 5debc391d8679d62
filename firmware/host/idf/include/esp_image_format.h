/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "esp_app_format.h"
#include "esp_err.h"
#include "esp_flash_partitions.h"

#define ESP_ERR_IMAGE_BASE 0x2000
#define ESP_ERR_IMAGE_FLASH_FAIL (ESP_ERR_IMAGE_BASE + 1)
#define ESP_ERR_IMAGE_INVALID (ESP_ERR_IMAGE_BASE + 2)

typedef struct {
    uint32_t start_addr;
    esp_image_header_t image;
    uint32_t image_len; /* bytes in flash, the digest included */
} esp_image_metadata_t;

#ifdef __cplusplus
extern "C" {
#endif

esp_err_t esp_image_get_metadata(const esp_partition_pos_t *part, esp_image_metadata_t *metadata);

#ifdef __cplusplus
}
#endif
