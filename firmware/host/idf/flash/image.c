/* SPDX-License-Identifier: Apache-2.0 */
#include "image.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <string.h>
#include <unistd.h>

#include "esp_app_format.h"
#include "esp_image_format.h"
#include "esp_ota_ops.h"
#include "vboard.h"

#define PIECE_BYTES 4096U

typedef esp_err_t (*reader_t)(const void *source, uint32_t offset, uint8_t *buffer, uint32_t bytes);

static esp_err_t read_partition(const void *source, uint32_t offset, uint8_t *buffer, uint32_t bytes) {
    return esp_partition_read(source, offset, buffer, bytes);
}

static esp_err_t read_file(const void *source, uint32_t offset, uint8_t *buffer, uint32_t bytes) {
    return pread(*(const int *)source, buffer, bytes, offset) == (ssize_t)bytes ? ESP_OK : ESP_FAIL;
}

static esp_err_t update(EVP_MD_CTX *context, reader_t reader, const void *source, uint32_t total_bytes) {
    uint8_t piece[PIECE_BYTES];
    for (uint32_t done = 0; done < total_bytes;) {
        uint32_t bytes = total_bytes - done < PIECE_BYTES ? total_bytes - done : PIECE_BYTES;
        esp_err_t result = reader(source, done, piece, bytes);
        if (result != ESP_OK || EVP_DigestUpdate(context, piece, bytes) != 1) {
            return result != ESP_OK ? result : ESP_FAIL;
        }
        done += bytes;
    }
    return ESP_OK;
}

static esp_err_t sha256(reader_t reader, const void *source, uint32_t bytes, uint8_t *digest) {
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (context == NULL) {
        return ESP_ERR_NO_MEM;
    }
    esp_err_t result = EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 ? ESP_OK : ESP_FAIL;
    if (result == ESP_OK) {
        result = update(context, reader, source, bytes);
    }
    if (result == ESP_OK && EVP_DigestFinal_ex(context, digest, NULL) != 1) {
        result = ESP_FAIL;
    }
    EVP_MD_CTX_free(context);
    return result;
}

/* Address after the last segment. */
static esp_err_t walk_segments(const esp_partition_t *partition, uint8_t count, uint32_t *end) {
    uint32_t offset = sizeof(esp_image_header_t);
    for (uint8_t i = 0; i < count; i++) {
        esp_image_segment_header_t segment;
        if (esp_partition_read(partition, offset, &segment, sizeof segment) != ESP_OK ||
            segment.data_len > partition->size) {
            return ESP_ERR_IMAGE_INVALID;
        }
        offset += (uint32_t)sizeof segment + segment.data_len;
    }
    *end = offset;
    return ESP_OK;
}

esp_err_t image_content_bytes(const esp_partition_t *partition, uint32_t *content_bytes) {
    esp_image_header_t header;
    esp_err_t result = esp_partition_read(partition, 0, &header, sizeof header);
    if (result != ESP_OK) {
        return result;
    }
    if (header.magic != ESP_IMAGE_HEADER_MAGIC || header.segment_count > ESP_IMAGE_MAX_SEGMENTS ||
        header.hash_appended != 1) {
        return ESP_ERR_IMAGE_INVALID;
    }
    uint32_t end = 0;
    result = walk_segments(partition, header.segment_count, &end);
    *content_bytes = (end + 1 + 15) / 16 * 16; /* the checksum byte ends a line of 16 */
    return result;
}

esp_err_t image_digest(const esp_partition_t *partition, uint8_t digest[IMAGE_DIGEST_BYTES]) {
    uint32_t content_bytes = 0;
    uint8_t computed[IMAGE_DIGEST_BYTES];
    esp_err_t result = image_content_bytes(partition, &content_bytes);
    if (result == ESP_OK) {
        result = esp_partition_read(partition, content_bytes, digest, IMAGE_DIGEST_BYTES);
    }
    if (result == ESP_OK) {
        result = sha256(read_partition, partition, content_bytes, computed);
    }
    if (result == ESP_OK && memcmp(computed, digest, sizeof computed) == 0) {
        return ESP_OK;
    }
    return result == ESP_ERR_NO_MEM ? result : ESP_ERR_IMAGE_INVALID;
}

static const esp_partition_t *app_partition_at(uint32_t address) {
    const esp_partition_t *found = NULL;
    esp_partition_iterator_t at = esp_partition_find(ESP_PARTITION_TYPE_APP, ESP_PARTITION_SUBTYPE_ANY, NULL);
    for (; at != NULL && found == NULL; at = esp_partition_next(at)) {
        const esp_partition_t *partition = esp_partition_get(at);
        found = partition->address == address ? partition : NULL;
    }
    esp_partition_iterator_release(at);
    return found;
}

esp_err_t esp_image_get_metadata(const esp_partition_pos_t *part, esp_image_metadata_t *metadata) {
    const esp_partition_t *partition =
        part == NULL || metadata == NULL ? NULL : app_partition_at(part->offset);
    if (partition == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    memset(metadata, 0, sizeof(*metadata));
    metadata->start_addr = part->offset;
    uint32_t content_bytes = 0;
    esp_err_t result = esp_partition_read(partition, 0, &metadata->image, sizeof metadata->image);
    result = result == ESP_OK ? image_content_bytes(partition, &content_bytes) : result;
    metadata->image_len = result == ESP_OK ? content_bytes + IMAGE_DIGEST_BYTES : 0;
    return result;
}

esp_err_t image_elf_digest(uint8_t digest[IMAGE_DIGEST_BYTES]) {
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return ESP_FAIL;
    }
    off_t bytes = lseek(fd, 0, SEEK_END);
    esp_err_t result = bytes > 0 ? sha256(read_file, &fd, (uint32_t)bytes, digest) : ESP_FAIL;
    close(fd);
    return result;
}

static bool runs_unflashed(const esp_partition_t *partition) {
    return !vboard()->flash_given && partition == esp_ota_get_running_partition();
}

esp_err_t esp_partition_get_sha256(const esp_partition_t *partition, uint8_t *sha_256) {
    if (partition == NULL || sha_256 == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (runs_unflashed(partition)) {
        return image_elf_digest(sha_256);
    }
    if (partition->type == ESP_PARTITION_TYPE_APP) {
        return image_digest(partition, sha_256);
    }
    return sha256(read_partition, partition, partition->size, sha_256);
}
