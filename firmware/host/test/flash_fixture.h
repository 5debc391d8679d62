/* SPDX-License-Identifier: Apache-2.0 */
/* A NOR flash file with a partition table and app images in ESP-IDF's format, for tests with a main(). */
#pragma once
#define _GNU_SOURCE
#include <openssl/sha.h>
#include <sys/mman.h>

#include "esp_app_desc.h"
#include "esp_app_format.h"
#include "esp_flash_partitions.h"
#include "esp_partition.h"
#include "idf_check.h"

#define FLASH_BYTES (4U * 1024U * 1024U)
#define OTA_0 0x10000U
#define OTA_1 0x200000U
#define SLOT_BYTES 0x1f0000U

static const esp_partition_info_t s_flash_table[] = {
    {ESP_PARTITION_MAGIC, 1, ESP_PARTITION_SUBTYPE_DATA_NVS, {0x9000, 0x4000}, "nvs", 0},
    {ESP_PARTITION_MAGIC, 1, ESP_PARTITION_SUBTYPE_DATA_OTA, {0xd000, 0x2000}, "otadata", 0},
    {ESP_PARTITION_MAGIC,
     1,
     ESP_PARTITION_SUBTYPE_DATA_PHY,
     {0xf000, 0x1000},
     "phy_init",
     PART_FLAG_READONLY},
    {ESP_PARTITION_MAGIC, 0, ESP_PARTITION_SUBTYPE_APP_OTA_0, {OTA_0, SLOT_BYTES}, "ota_0", 0},
    {ESP_PARTITION_MAGIC, 0, ESP_PARTITION_SUBTYPE_APP_OTA_1, {OTA_1, SLOT_BYTES}, "ota_1", 0},
};

/* The file's content, mapped; the environment tells host/idf about it. */
static inline uint8_t *flash_create(const char *app_offset_hex) {
    int fd = memfd_create("flash", 0);
    CHECK(fd >= 0 && ftruncate(fd, FLASH_BYTES) == 0);
    uint8_t *flash = mmap(NULL, FLASH_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(flash != MAP_FAILED);
    memset(flash, 0xff, FLASH_BYTES);
    memcpy(flash + ESP_PARTITION_TABLE_OFFSET, s_flash_table, sizeof s_flash_table);
    char number[16];
    snprintf(number, sizeof number, "%d", fd);
    setenv("VBOARD_FLASH_FD", number, 1);
    setenv("VBOARD_APP_OFFSET", app_offset_hex, 1);
    return flash;
}

/* Two segments, the first with the app description, the second of `bytes`, then checksum line and digest.
 * Returns its size. */
static inline size_t image_create_of(uint8_t *at, const char *version, uint32_t bytes, uint8_t digest[32]) {
    const esp_image_header_t header = {.magic = ESP_IMAGE_HEADER_MAGIC,
                                       .segment_count = 2,
                                       .chip_id = (esp_chip_id_t)CONFIG_IDF_FIRMWARE_CHIP_ID,
                                       .hash_appended = 1};
    esp_app_desc_t description = {.magic_word = ESP_APP_DESC_MAGIC_WORD, .project_name = "crafted"};
    snprintf(description.version, sizeof description.version, "%s", version);
    const esp_image_segment_header_t segments[2] = {{0x3f400020, sizeof description}, {0x40080000, bytes}};
    size_t size = 0;
    memcpy(at, &header, sizeof header);
    size += sizeof header;
    memcpy(at + size, &segments[0], sizeof segments[0]);
    size += sizeof segments[0];
    memcpy(at + size, &description, sizeof description);
    size += sizeof description;
    memcpy(at + size, &segments[1], sizeof segments[1]);
    size += sizeof segments[1];
    memset(at + size, 0x5a, bytes);
    size += bytes;
    memset(at + size, 0, 15 - size % 16);
    size += 15 - size % 16;
    at[size++] = 0xef; /* the checksum: not looked at here, but part of the digest */
    SHA256(at, size, digest);
    memcpy(at + size, digest, 32);
    return size + 32;
}

static inline size_t image_create(uint8_t *at, const char *version, uint8_t digest[32]) {
    return image_create_of(at, version, 100, digest);
}
