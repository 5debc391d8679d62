/* SPDX-License-Identifier: Apache-2.0 */
/* App slots: which one runs, which one boots next, writing the other one.
 *
 * otadata has two sectors with one entry each; the valid entry with the higher sequence number rules, and
 * sequence number n boots slot (n - 1) modulo the number of slots. */
#include "esp_ota_ops.h"

#include <string.h>

#include "esp_image_format.h"
#include "esp_rom_crc.h"
#include "image.h"
#include "nor.h"
#include "vboard.h"

#define NO_SEQUENCE 0xffffffffU

static struct {
    esp_ota_handle_t handle; /* 0: none open */
    const esp_partition_t *partition;
    uint32_t written_bytes;
} s_update;
static esp_ota_handle_t s_last_handle;

static const esp_partition_t *slot(uint32_t index) {
    return esp_partition_find_first(ESP_PARTITION_TYPE_APP, ESP_PARTITION_SUBTYPE_OTA(index), NULL);
}

static const esp_partition_t *otadata(void) {
    return esp_partition_find_first(ESP_PARTITION_TYPE_DATA, ESP_PARTITION_SUBTYPE_DATA_OTA, NULL);
}

static const esp_partition_t *factory(void) {
    return esp_partition_find_first(ESP_PARTITION_TYPE_APP, ESP_PARTITION_SUBTYPE_APP_FACTORY, NULL);
}

static bool is_slot(const esp_partition_t *partition) {
    return partition->type == ESP_PARTITION_TYPE_APP &&
           partition->subtype >= ESP_PARTITION_SUBTYPE_APP_OTA_MIN &&
           partition->subtype < ESP_PARTITION_SUBTYPE_APP_OTA_MAX;
}

uint8_t esp_ota_get_app_partition_count(void) {
    uint8_t count = 0;
    while (count < 16 && slot(count) != NULL) {
        count++;
    }
    return count;
}

static uint32_t entry_crc(const esp_ota_select_entry_t *entry) {
    return esp_rom_crc32_le(UINT32_MAX, (const uint8_t *)&entry->ota_seq, sizeof entry->ota_seq);
}

static bool entry_valid(const esp_ota_select_entry_t *entry) {
    return entry->ota_seq != NO_SEQUENCE && entry->crc == entry_crc(entry) &&
           entry->ota_state != ESP_OTA_IMG_INVALID && entry->ota_state != ESP_OTA_IMG_ABORTED;
}

/* Index of the sector that rules, -1 when none is valid. */
static int ruling_sector(esp_ota_select_entry_t entries[2]) {
    const esp_partition_t *data = otadata();
    int ruling = -1;
    for (int i = 0; i < 2; i++) {
        if (data == NULL || esp_partition_read(data, (size_t)i * NOR_SECTOR_BYTES, &entries[i],
                                               sizeof entries[i]) != ESP_OK) {
            return -1;
        }
        if (entry_valid(&entries[i]) && (ruling < 0 || entries[i].ota_seq > entries[ruling].ota_seq)) {
            ruling = i;
        }
    }
    return ruling;
}

const esp_partition_t *esp_ota_get_boot_partition(void) {
    esp_ota_select_entry_t entries[2];
    int ruling = ruling_sector(entries);
    uint8_t slots = esp_ota_get_app_partition_count();
    if (ruling < 0 || slots == 0) {
        return factory() != NULL ? factory() : slot(0);
    }
    return slot((entries[ruling].ota_seq - 1) % slots);
}

static const esp_partition_t *app_at(uint32_t address) {
    esp_partition_iterator_t iterator =
        esp_partition_find(ESP_PARTITION_TYPE_APP, ESP_PARTITION_SUBTYPE_ANY, NULL);
    while (iterator != NULL && esp_partition_get(iterator)->address != address) {
        iterator = esp_partition_next(iterator);
    }
    const esp_partition_t *partition = iterator != NULL ? esp_partition_get(iterator) : NULL;
    esp_partition_iterator_release(iterator);
    return partition;
}

const esp_partition_t *esp_ota_get_running_partition(void) {
    const esp_partition_t *partition = app_at(vboard()->app_offset);
    return partition != NULL ? partition : esp_ota_get_boot_partition();
}

const esp_partition_t *esp_ota_get_next_update_partition(const esp_partition_t *start_from) {
    const esp_partition_t *from = start_from != NULL ? start_from : esp_ota_get_running_partition();
    uint8_t slots = esp_ota_get_app_partition_count();
    if (from == NULL || slots == 0) {
        return NULL;
    }
    return is_slot(from) ? slot((from->subtype - ESP_PARTITION_SUBTYPE_APP_OTA_MIN + 1U) % slots) : slot(0);
}

static esp_err_t write_entry(int sector, uint32_t sequence, uint32_t state) {
    esp_ota_select_entry_t entry;
    memset(&entry, 0xff, sizeof entry);
    entry.ota_seq = sequence;
    entry.ota_state = state;
    entry.crc = entry_crc(&entry);
    size_t offset = (size_t)sector * NOR_SECTOR_BYTES;
    esp_err_t result = esp_partition_erase_range(otadata(), offset, NOR_SECTOR_BYTES);
    return result == ESP_OK ? esp_partition_write(otadata(), offset, &entry, sizeof entry) : result;
}

/* The next sequence number that stands for this slot, into the sector that does not rule. */
static esp_err_t select_slot(uint32_t index) {
    esp_ota_select_entry_t entries[2];
    int ruling = ruling_sector(entries);
    uint32_t slots = esp_ota_get_app_partition_count();
    uint32_t sequence = ruling < 0 ? 1 : entries[ruling].ota_seq + 1;
    if (ruling >= 0 && (entries[ruling].ota_seq - 1) % slots == index) {
        return ESP_OK;
    }
    while ((sequence - 1) % slots != index) {
        sequence++;
    }
    return write_entry(ruling == 0 ? 1 : 0, sequence, ESP_OTA_IMG_UNDEFINED);
}

esp_err_t esp_ota_set_boot_partition(const esp_partition_t *partition) {
    uint8_t digest[IMAGE_DIGEST_BYTES];
    if (partition == NULL || partition->type != ESP_PARTITION_TYPE_APP) {
        return ESP_ERR_INVALID_ARG;
    }
    if (image_digest(partition, digest) != ESP_OK) {
        return ESP_ERR_OTA_VALIDATE_FAILED;
    }
    if (otadata() == NULL) {
        return ESP_ERR_NOT_FOUND;
    }
    if (!is_slot(partition)) {
        return esp_partition_erase_range(otadata(), 0, otadata()->size); /* nothing rules: the factory app */
    }
    return select_slot(partition->subtype - ESP_PARTITION_SUBTYPE_APP_OTA_MIN);
}

esp_err_t esp_ota_get_state_partition(const esp_partition_t *partition, esp_ota_img_states_t *ota_state) {
    if (partition == NULL || ota_state == NULL || !is_slot(partition)) {
        return ESP_ERR_INVALID_ARG;
    }
    esp_ota_select_entry_t entries[2];
    uint32_t slots = esp_ota_get_app_partition_count();
    (void)ruling_sector(entries);
    for (int i = 0; otadata() != NULL && i < 2; i++) {
        if (entries[i].ota_seq != NO_SEQUENCE && entries[i].crc == entry_crc(&entries[i]) &&
            slot((entries[i].ota_seq - 1) % slots) == partition) {
            *ota_state = entries[i].ota_state;
            return ESP_OK;
        }
    }
    return ESP_ERR_NOT_FOUND;
}

esp_err_t esp_ota_mark_app_valid_cancel_rollback(void) {
    esp_ota_select_entry_t entries[2];
    int ruling = ruling_sector(entries);
    if (ruling < 0 || esp_ota_get_boot_partition() != esp_ota_get_running_partition()) {
        return ESP_FAIL;
    }
    if (entries[ruling].ota_state == ESP_OTA_IMG_VALID) {
        return ESP_OK;
    }
    return write_entry(ruling, entries[ruling].ota_seq, ESP_OTA_IMG_VALID);
}

/* One update at a time, erased whole at the start. */
esp_err_t esp_ota_begin(const esp_partition_t *partition, size_t image_size, esp_ota_handle_t *out_handle) {
    if (partition == NULL || out_handle == NULL || !is_slot(partition)) {
        return ESP_ERR_INVALID_ARG;
    }
    if (partition == esp_ota_get_running_partition()) {
        return ESP_ERR_OTA_PARTITION_CONFLICT;
    }
    if (s_update.handle != 0) {
        return ESP_ERR_NO_MEM;
    }
    bool sized =
        image_size != OTA_SIZE_UNKNOWN && image_size != OTA_WITH_SEQUENTIAL_WRITES && image_size != 0;
    if (sized && image_size > partition->size) {
        return ESP_ERR_INVALID_SIZE;
    }
    esp_err_t result = esp_partition_erase_range(partition, 0, partition->size);
    if (result == ESP_OK) {
        s_update.handle = *out_handle = ++s_last_handle;
        s_update.partition = partition;
        s_update.written_bytes = 0;
    }
    return result;
}

static bool is_open(esp_ota_handle_t handle) {
    return handle != 0 && handle == s_update.handle;
}

esp_err_t esp_ota_write(esp_ota_handle_t handle, const void *data, size_t size) {
    if (!is_open(handle) || data == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (s_update.written_bytes == 0 && size > 0 && *(const uint8_t *)data != ESP_IMAGE_HEADER_MAGIC) {
        return ESP_ERR_OTA_VALIDATE_FAILED;
    }
    esp_err_t result = esp_partition_write(s_update.partition, s_update.written_bytes, data, size);
    s_update.written_bytes += result == ESP_OK ? (uint32_t)size : 0;
    return result;
}

esp_err_t esp_ota_end(esp_ota_handle_t handle) {
    uint8_t digest[IMAGE_DIGEST_BYTES];
    if (!is_open(handle)) {
        return ESP_ERR_NOT_FOUND;
    }
    s_update.handle = 0;
    if (s_update.written_bytes == 0) {
        return ESP_ERR_INVALID_ARG;
    }
    return image_digest(s_update.partition, digest) == ESP_OK ? ESP_OK : ESP_ERR_OTA_VALIDATE_FAILED;
}

esp_err_t esp_ota_abort(esp_ota_handle_t handle) {
    if (!is_open(handle)) {
        return ESP_ERR_NOT_FOUND;
    }
    s_update.handle = 0;
    return ESP_OK;
}
