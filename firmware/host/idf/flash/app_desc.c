/* SPDX-License-Identifier: Apache-2.0 */
#include "esp_app_desc.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "esp_app_format.h"
#include "esp_idf_version.h"
#include "esp_ota_ops.h"
#include "image.h"

#ifndef PROJECT_NAME
#define PROJECT_NAME "hil-firmware"
#endif
#ifndef PROJECT_VER
#define PROJECT_VER "host"
#endif

static esp_app_desc_t s_description;
static pthread_once_t s_once = PTHREAD_ONCE_INIT;

static void describe_elf(void) {
    s_description = (esp_app_desc_t){.magic_word = ESP_APP_DESC_MAGIC_WORD,
                                     .version = PROJECT_VER,
                                     .project_name = PROJECT_NAME,
                                     .idf_ver = IDF_VER};
    (void)image_elf_digest(s_description.app_elf_sha256);
}

static void load(void) {
    if (esp_ota_get_partition_description(esp_ota_get_running_partition(), &s_description) != ESP_OK) {
        describe_elf();
    }
}

esp_err_t esp_ota_get_partition_description(const esp_partition_t *partition, esp_app_desc_t *app_desc) {
    if (partition == NULL || app_desc == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (partition->type != ESP_PARTITION_TYPE_APP) {
        return ESP_ERR_NOT_SUPPORTED;
    }
    esp_err_t result =
        esp_partition_read(partition, sizeof(esp_image_header_t) + sizeof(esp_image_segment_header_t),
                           app_desc, sizeof *app_desc);
    if (result == ESP_OK && app_desc->magic_word != ESP_APP_DESC_MAGIC_WORD) {
        result = ESP_ERR_NOT_FOUND;
    }
    return result;
}

const esp_app_desc_t *esp_app_get_description(void) {
    pthread_once(&s_once, load);
    return &s_description;
}

int esp_app_get_elf_sha256(char *dst, size_t size) {
    const uint8_t *digest = esp_app_get_description()->app_elf_sha256;
    size_t length = 0;
    for (; size > 0 && length / 2 < IMAGE_DIGEST_BYTES && length + 2 < size; length += 2) {
        snprintf(dst + length, size - length, "%02x", digest[length / 2]);
    }
    if (size > 0) {
        dst[length] = '\0';
    }
    return (int)length + 1;
}

char *esp_app_get_elf_sha256_str(void) {
    static char text[2 * IMAGE_DIGEST_BYTES + 1];
    (void)esp_app_get_elf_sha256(text, 10); /* the chip's default length: nine characters */
    return text;
}
