/* SPDX-License-Identifier: Apache-2.0 */
#include "otadata.h"

#include <string.h>

#include "esp_ota_ops.h"
#include "esp_rom_crc.h"
#include "nor.h"

const esp_partition_t *otadata_partition(void) {
    return esp_partition_find_first(ESP_PARTITION_TYPE_DATA, ESP_PARTITION_SUBTYPE_DATA_OTA, NULL);
}

const esp_partition_t *otadata_slot(uint32_t index) {
    return esp_partition_find_first(ESP_PARTITION_TYPE_APP, ESP_PARTITION_SUBTYPE_OTA(index), NULL);
}

const esp_partition_t *otadata_slot_of(const esp_ota_select_entry_t *entry) {
    uint32_t slots = esp_ota_get_app_partition_count();
    return slots == 0 ? NULL : otadata_slot((entry->ota_seq - 1) % slots);
}

bool otadata_is_slot(const esp_partition_t *partition) {
    return partition->type == ESP_PARTITION_TYPE_APP &&
           partition->subtype >= ESP_PARTITION_SUBTYPE_APP_OTA_MIN &&
           partition->subtype < ESP_PARTITION_SUBTYPE_APP_OTA_MAX;
}

bool otadata_read(esp_ota_select_entry_t entries[2]) {
    const esp_partition_t *data = otadata_partition();
    memset(entries, 0xff, 2 * sizeof entries[0]);
    return data != NULL && esp_partition_read(data, 0, &entries[0], sizeof entries[0]) == ESP_OK &&
           esp_partition_read(data, NOR_SECTOR_BYTES, &entries[1], sizeof entries[1]) == ESP_OK;
}

static uint32_t crc_of(const esp_ota_select_entry_t *entry) {
    return esp_rom_crc32_le(UINT32_MAX, (const uint8_t *)&entry->ota_seq, sizeof entry->ota_seq);
}

bool otadata_is_whole(const esp_ota_select_entry_t *entry) {
    return entry->ota_seq != OTADATA_NO_SEQUENCE && entry->crc == crc_of(entry);
}

bool otadata_is_valid(const esp_ota_select_entry_t *entry) {
    return otadata_is_whole(entry) && entry->ota_state != ESP_OTA_IMG_INVALID &&
           entry->ota_state != ESP_OTA_IMG_ABORTED;
}

int otadata_active(const esp_ota_select_entry_t entries[2]) {
    bool first = otadata_is_valid(&entries[0]);
    bool second = otadata_is_valid(&entries[1]);
    if (first && second) {
        return entries[1].ota_seq > entries[0].ota_seq;
    }
    return first ? 0 : second ? 1 : -1;
}

esp_err_t otadata_erase(int sector) {
    return esp_partition_erase_range(otadata_partition(), (size_t)sector * NOR_SECTOR_BYTES,
                                     NOR_SECTOR_BYTES);
}

esp_err_t otadata_write(int sector, uint32_t sequence, uint32_t state) {
    esp_ota_select_entry_t entry;
    memset(&entry, 0xff, sizeof entry);
    entry.ota_seq = sequence;
    entry.ota_state = state;
    entry.crc = crc_of(&entry);
    esp_err_t result = otadata_erase(sector);
    return result == ESP_OK ? esp_partition_write(otadata_partition(), (size_t)sector * NOR_SECTOR_BYTES,
                                                  &entry, sizeof entry)
                            : result;
}
