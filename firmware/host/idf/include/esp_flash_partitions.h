/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdint.h>

#include "esp_err.h"
#include "sdkconfig.h"

#define ESP_PARTITION_MAGIC 0x50AA
#define ESP_PARTITION_MAGIC_MD5 0xEBEB
#define ESP_PARTITION_TABLE_OFFSET CONFIG_PARTITION_TABLE_OFFSET
#define ESP_PARTITION_TABLE_SIZE (0x1000)
#define ESP_PARTITION_TABLE_MAX_LEN 0xC00
#define ESP_BOOTLOADER_OFFSET CONFIG_BOOTLOADER_OFFSET_IN_FLASH
#define ESP_PRIMARY_BOOTLOADER_OFFSET CONFIG_BOOTLOADER_OFFSET_IN_FLASH
#define ESP_BOOTLOADER_SIZE (ESP_PARTITION_TABLE_OFFSET - ESP_BOOTLOADER_OFFSET)
#define ESP_PARTITION_TABLE_MAX_ENTRIES (ESP_PARTITION_TABLE_MAX_LEN / sizeof(esp_partition_info_t))
#define PART_FLAG_ENCRYPTED (1 << 0)
#define PART_FLAG_READONLY (1 << 1)

typedef enum {
    ESP_OTA_IMG_NEW = 0x0U,
    ESP_OTA_IMG_PENDING_VERIFY = 0x1U,
    ESP_OTA_IMG_VALID = 0x2U,
    ESP_OTA_IMG_INVALID = 0x3U,
    ESP_OTA_IMG_ABORTED = 0x4U,
    ESP_OTA_IMG_UNDEFINED = 0xFFFFFFFFU,
} esp_ota_img_states_t;

typedef struct {
    uint32_t ota_seq;
    uint8_t seq_label[20];
    uint32_t ota_state;
    uint32_t crc; /* of ota_seq alone */
} esp_ota_select_entry_t;

typedef struct {
    uint32_t offset;
    uint32_t size;
} esp_partition_pos_t;

typedef struct {
    uint16_t magic;
    uint8_t type;
    uint8_t subtype;
    esp_partition_pos_t pos;
    uint8_t label[16];
    uint32_t flags;
} esp_partition_info_t;
