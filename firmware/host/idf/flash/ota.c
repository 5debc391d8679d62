/* SPDX-License-Identifier: Apache-2.0 */
/* App slots: which one runs, which one boots next. */
#include "esp_ota_ops.h"

#include "image.h"
#include "otadata.h"
#include "vboard.h"

#ifdef CONFIG_BOOTLOADER_APP_ROLLBACK_ENABLE
#define STATE_OF_UPDATE ESP_OTA_IMG_NEW /* it has one boot to confirm itself */
#else
#define STATE_OF_UPDATE ESP_OTA_IMG_UNDEFINED
#endif

static const esp_partition_t *factory(void) {
    return esp_partition_find_first(ESP_PARTITION_TYPE_APP, ESP_PARTITION_SUBTYPE_APP_FACTORY, NULL);
}

uint8_t esp_ota_get_app_partition_count(void) {
    uint8_t count = 0;
    while (count < 16 && otadata_slot(count) != NULL) {
        count++;
    }
    return count;
}

const esp_partition_t *esp_ota_get_boot_partition(void) {
    esp_ota_select_entry_t entries[2];
    int ruling = otadata_read(entries) ? otadata_active(entries) : -1;
    if (ruling < 0 || esp_ota_get_app_partition_count() == 0) {
        return factory() != NULL ? factory() : otadata_slot(0);
    }
    return otadata_slot_of(&entries[ruling]);
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
    return otadata_is_slot(from)
               ? otadata_slot((from->subtype - ESP_PARTITION_SUBTYPE_APP_OTA_MIN + 1U) % slots)
               : otadata_slot(0);
}

/* The next sequence number that stands for this slot, into the sector that does not rule. For the slot that
 * rules already that is the number it has. */
static esp_err_t select_slot(uint32_t index) {
    esp_ota_select_entry_t entries[2];
    int ruling = otadata_read(entries) ? otadata_active(entries) : -1;
    uint32_t slots = esp_ota_get_app_partition_count();
    uint32_t sequence = ruling < 0 ? 1 : entries[ruling].ota_seq;
    if (index >= slots) {
        return ESP_ERR_INVALID_ARG;
    }
    while ((sequence - 1) % slots != index) {
        sequence++;
    }
    return otadata_write(ruling == 0 ? 1 : 0, sequence, STATE_OF_UPDATE);
}

esp_err_t esp_ota_set_boot_partition(const esp_partition_t *partition) {
    uint8_t digest[IMAGE_DIGEST_BYTES];
    if (partition == NULL || partition->type != ESP_PARTITION_TYPE_APP) {
        return ESP_ERR_INVALID_ARG;
    }
    if (image_digest(partition, digest) != ESP_OK) {
        return ESP_ERR_OTA_VALIDATE_FAILED;
    }
    if (otadata_partition() == NULL) {
        return ESP_ERR_NOT_FOUND;
    }
    if (!otadata_is_slot(partition)) { /* nothing rules: the factory app */
        return esp_partition_erase_range(otadata_partition(), 0, otadata_partition()->size);
    }
    return select_slot(partition->subtype - ESP_PARTITION_SUBTYPE_APP_OTA_MIN);
}
