/* SPDX-License-Identifier: Apache-2.0 */
/* The app image's layout: header, segments, a checksum at the end of a 16-byte line, SHA-256 of all that. */
#pragma once
#include <stdint.h>

#include "esp_partition.h"

#define IMAGE_DIGEST_BYTES 32

/* Address of the digest within the partition; ESP_ERR_IMAGE_INVALID for what is no image with one. */
esp_err_t image_content_bytes(const esp_partition_t *partition, uint32_t *content_bytes);
/* The image's own digest, checked against its content. */
esp_err_t image_digest(const esp_partition_t *partition, uint8_t digest[IMAGE_DIGEST_BYTES]);
/* Digest of this program's ELF: the identity of a program that was not flashed. */
esp_err_t image_elf_digest(uint8_t digest[IMAGE_DIGEST_BYTES]);
