/* SPDX-License-Identifier: Apache-2.0 */
/* Writing an image, piece by piece, into a slot that does not run. */
#include <stdlib.h>
#include <string.h>

#include "esp_image_format.h"
#include "esp_log.h"
#include "esp_ota_ops.h"
#include "image.h"
#include "nor.h"
#include "otadata.h"

#define COPY_BYTES 4096U

static const char *TAG = "esp_ota_ops";

typedef struct update {
    esp_ota_handle_t handle;
    const esp_partition_t *staging; /* what is written */
    const esp_partition_t *final;   /* what is replaced by it */
    bool copies;                    /* to `final`, at the end */
    bool erases;                    /* sector by sector, as it writes */
    bool resumed;
    uint32_t written_bytes;
    struct update *next;
} update_t;

static update_t *s_updates;
static esp_ota_handle_t s_last_handle;

static update_t *find(esp_ota_handle_t handle) {
    update_t *update = s_updates;
    while (update != NULL && update->handle != handle) {
        update = update->next;
    }
    return update;
}

static void forget(update_t *update) {
    update_t **link = &s_updates;
    while (*link != update) {
        link = &(*link)->next;
    }
    *link = update->next;
    free(update);
}

/* What may be written to. */
static esp_err_t check(const esp_partition_t *partition) {
    if (partition == NULL) {
        return ESP_ERR_NOT_FOUND;
    }
    if (partition->type == ESP_PARTITION_TYPE_APP && !otadata_is_slot(partition)) {
        return ESP_ERR_INVALID_ARG;
    }
    return partition == esp_ota_get_running_partition() ? ESP_ERR_OTA_PARTITION_CONFLICT : ESP_OK;
}

static update_t *create(const esp_partition_t *partition) {
    update_t *update = calloc(1, sizeof *update);
    if (update != NULL) {
        update->handle = ++s_last_handle;
        update->staging = update->final = partition;
        update->next = s_updates;
        s_updates = update;
    }
    return update;
}

#ifdef CONFIG_BOOTLOADER_APP_ROLLBACK_ENABLE
static bool waits_to_be_confirmed(void) {
    esp_ota_img_states_t state;
    return esp_ota_get_state_partition(esp_ota_get_running_partition(), &state) == ESP_OK &&
           state == ESP_OTA_IMG_PENDING_VERIFY;
}
#endif

esp_err_t esp_ota_begin(const esp_partition_t *partition, size_t image_size, esp_ota_handle_t *out_handle) {
    if (partition == NULL || out_handle == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    partition = esp_partition_verify(partition);
    esp_err_t result = check(partition);
    if (result != ESP_OK) {
        return result;
    }
#ifdef CONFIG_BOOTLOADER_APP_ROLLBACK_ENABLE
    if (otadata_is_slot(partition) && waits_to_be_confirmed()) {
        ESP_LOGE(TAG, "Running app has not confirmed state (ESP_OTA_IMG_PENDING_VERIFY)");
        return ESP_ERR_OTA_ROLLBACK_INVALID_STATE;
    }
#endif
    update_t *update = create(partition);
    if (update == NULL) {
        return ESP_ERR_NO_MEM;
    }
    *out_handle = update->handle;
    update->erases = image_size == OTA_WITH_SEQUENTIAL_WRITES;
    if (!update->erases) {
        bool whole = image_size == 0 || image_size == OTA_SIZE_UNKNOWN;
        size_t sectors = (image_size + NOR_SECTOR_BYTES - 1) / NOR_SECTOR_BYTES;
        result =
            esp_partition_erase_range(partition, 0, whole ? partition->size : sectors * NOR_SECTOR_BYTES);
    }
#ifdef CONFIG_BOOTLOADER_APP_ROLLBACK_ENABLE
    if (result == ESP_OK && otadata_is_slot(partition)) {
        (void)esp_ota_invalidate_inactive_ota_data_slot();
    }
#endif
    return result;
}

esp_err_t esp_ota_resume(const esp_partition_t *partition, const size_t erase_size, const size_t image_offset,
                         esp_ota_handle_t *out_handle) {
    if (partition == NULL || out_handle == NULL || image_offset > partition->size) {
        return ESP_ERR_INVALID_ARG;
    }
    partition = esp_partition_verify(partition);
    esp_err_t result = check(partition);
    if (result != ESP_OK) {
        return result;
    }
    update_t *update = create(partition);
    if (update == NULL) {
        return ESP_ERR_NO_MEM;
    }
    update->resumed = true;
    update->written_bytes = (uint32_t)image_offset;
    update->erases = erase_size == OTA_WITH_SEQUENTIAL_WRITES;
    *out_handle = update->handle;
    return ESP_OK;
}

esp_err_t esp_ota_set_final_partition(esp_ota_handle_t handle, const esp_partition_t *final,
                                      bool finalize_with_copy) {
    update_t *update = find(handle);
    if (final == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (update == NULL) {
        return ESP_ERR_NOT_FOUND;
    }
    if (!update->resumed && update->written_bytes != 0) {
        return ESP_ERR_INVALID_STATE;
    }
    if (update->staging == final) {
        return ESP_OK;
    }
    final = esp_partition_verify(final);
    if (final == NULL) {
        return ESP_ERR_NOT_FOUND;
    }
    ESP_LOGI(TAG, "Staging partition - <%s>. Final partition - <%s>.", update->staging->label, final->label);
    update->final = final;
    update->copies = finalize_with_copy;
    return ESP_OK;
}

/* The sectors that these bytes are the first in. */
static esp_err_t erase_for(const update_t *update, size_t size) {
    uint32_t first = (update->written_bytes + NOR_SECTOR_BYTES - 1) / NOR_SECTOR_BYTES;
    uint32_t end = (uint32_t)((update->written_bytes + size + NOR_SECTOR_BYTES - 1) / NOR_SECTOR_BYTES);
    return end <= first ? ESP_OK
                        : esp_partition_erase_range(update->staging, (size_t)first * NOR_SECTOR_BYTES,
                                                    (size_t)(end - first) * NOR_SECTOR_BYTES);
}

static bool is_image(const esp_partition_t *partition) {
    return partition->type == ESP_PARTITION_TYPE_APP || partition->type == ESP_PARTITION_TYPE_BOOTLOADER;
}

static esp_err_t check_start(const update_t *update, const uint8_t *data, size_t size) {
    if (is_image(update->final) && data[0] != ESP_IMAGE_HEADER_MAGIC) {
        ESP_LOGE(TAG, "OTA image has invalid magic byte (expected 0xE9, saw 0x%02x)", data[0]);
        return ESP_ERR_OTA_VALIDATE_FAILED;
    }
    if (update->final->type == ESP_PARTITION_TYPE_PARTITION_TABLE &&
        (size < 2 || data[0] != 0xaa || data[1] != 0x50)) {
        ESP_LOGE(TAG, "Partition table image has invalid magic word (expected 0x50AA)");
        return ESP_ERR_OTA_VALIDATE_FAILED;
    }
    return ESP_OK;
}

esp_err_t esp_ota_write(esp_ota_handle_t handle, const void *data, size_t size) {
    update_t *update = find(handle);
    if (data == NULL || (update == NULL && size > 0)) {
        return ESP_ERR_INVALID_ARG;
    }
    if (size == 0) {
        return ESP_OK;
    }
    esp_err_t result = update->erases ? erase_for(update, size) : ESP_OK;
    if (result == ESP_OK && update->written_bytes == 0) {
        result = check_start(update, data, size);
    }
    if (result == ESP_OK) {
        result = esp_partition_write(update->staging, update->written_bytes, data, size);
    }
    update->written_bytes += result == ESP_OK ? (uint32_t)size : 0;
    return result;
}

esp_err_t esp_ota_write_with_offset(esp_ota_handle_t handle, const void *data, size_t size, uint32_t offset) {
    update_t *update = find(handle);
    if (data == NULL || update == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    assert(!update->erases && "must erase the partition before writing to it");
    esp_err_t result = esp_partition_write(update->staging, offset, data, size);
    update->written_bytes += result == ESP_OK ? (uint32_t)size : 0;
    return result;
}

static esp_err_t copy_to_final(const update_t *update) {
    ESP_LOGI(TAG, "Copy from <%s> staging partition to <%s>...", update->staging->label,
             update->final->label);
    uint8_t piece[COPY_BYTES];
    esp_err_t result = update->staging->size < update->final->size
                           ? ESP_ERR_INVALID_ARG
                           : esp_partition_erase_range(update->final, 0, update->final->size);
    for (uint32_t done = 0; result == ESP_OK && done < update->final->size; done += COPY_BYTES) {
        result = esp_partition_read(update->staging, done, piece, sizeof piece);
        result = result == ESP_OK ? esp_partition_write(update->final, done, piece, sizeof piece) : result;
    }
    return result;
}

static esp_err_t finish(const update_t *update) {
    uint8_t digest[IMAGE_DIGEST_BYTES];
    if (update->written_bytes == 0) {
        return ESP_ERR_INVALID_ARG;
    }
    if (is_image(update->final) && image_digest(update->staging, digest) != ESP_OK) {
        ESP_LOGE(TAG, "New image failed verification");
        return ESP_ERR_OTA_VALIDATE_FAILED;
    }
    return update->copies ? copy_to_final(update) : ESP_OK;
}

esp_err_t esp_ota_end(esp_ota_handle_t handle) {
    update_t *update = find(handle);
    if (update == NULL) {
        return ESP_ERR_NOT_FOUND;
    }
    esp_err_t result = finish(update);
    forget(update);
    return result;
}

esp_err_t esp_ota_abort(esp_ota_handle_t handle) {
    update_t *update = find(handle);
    if (update == NULL) {
        return ESP_ERR_NOT_FOUND;
    }
    forget(update);
    return ESP_OK;
}
