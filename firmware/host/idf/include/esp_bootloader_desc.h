/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdint.h>

#include "esp_assert.h"

#define ESP_BOOTLOADER_DESC_MAGIC_BYTE (80)

typedef struct {
    uint8_t magic_byte;
    uint8_t reserved[2];
    uint8_t secure_version;
    uint32_t version;
    char idf_ver[32];
    char date_time[24];
    uint8_t reserved2[16];
} esp_bootloader_desc_t;

ESP_STATIC_ASSERT(sizeof(esp_bootloader_desc_t) == 80, "esp_bootloader_desc_t should be 80 bytes");
