/* SPDX-License-Identifier: Apache-2.0 */
/* What an app says of itself after an update, and what is left of the one before. */
#include "esp_image_format.h"
#include "esp_log.h"
#include "esp_ota_ops.h"
#include "esp_system.h"
#include "image.h"
#include "otadata.h"

static const char *TAG = "esp_ota_ops";

static bool holds_image(const esp_partition_t *partition) {
    uint8_t digest[IMAGE_DIGEST_BYTES];
    return partition != NULL && image_digest(partition, digest) == ESP_OK;
}

esp_err_t esp_ota_get_state_partition(const esp_partition_t *partition, esp_ota_img_states_t *ota_state) {
    if (partition == NULL || ota_state == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    if (!otadata_is_slot(partition)) {
        return ESP_ERR_NOT_SUPPORTED;
    }
    esp_ota_select_entry_t entries[2];
    if (!otadata_read(entries)) {
        return ESP_ERR_NOT_FOUND;
    }
    for (int i = 0; i < 2; i++) {
        if (otadata_is_whole(&entries[i]) && otadata_slot_of(&entries[i]) == partition) {
            *ota_state = entries[i].ota_state;
            return ESP_OK;
        }
    }
    return ESP_ERR_NOT_FOUND;
}

/* The entry that rules; ESP_FAIL where none does. */
static esp_err_t ruling_entry(esp_ota_select_entry_t entries[2], int *ruling) {
    if (!otadata_read(entries)) {
        return ESP_ERR_NOT_FOUND;
    }
    *ruling = otadata_active(entries);
    if (*ruling < 0 || esp_ota_get_app_partition_count() == 0) {
        ESP_LOGE(TAG, "Running firmware is factory");
        return ESP_FAIL;
    }
    return ESP_OK;
}

esp_err_t esp_ota_mark_app_valid_cancel_rollback(void) {
    esp_ota_select_entry_t entries[2];
    int ruling;
    esp_err_t result = ruling_entry(entries, &ruling);
    if (result != ESP_OK || entries[ruling].ota_state == ESP_OTA_IMG_VALID) {
        return result;
    }
    return otadata_write(ruling, entries[ruling].ota_seq, ESP_OTA_IMG_VALID);
}

bool esp_ota_check_rollback_is_possible(void) {
    esp_ota_select_entry_t entries[2];
    int ruling = otadata_read(entries) ? otadata_active(entries) : -1;
    if (ruling < 0 || esp_ota_get_app_partition_count() == 0) {
        return false;
    }
    const esp_ota_select_entry_t *other = &entries[!ruling];
    return holds_image(
        otadata_is_valid(other)
            ? otadata_slot_of(other)
            : esp_partition_find_first(ESP_PARTITION_TYPE_APP, ESP_PARTITION_SUBTYPE_APP_FACTORY, NULL));
}

esp_err_t esp_ota_mark_app_invalid_rollback(void) {
    esp_ota_select_entry_t entries[2];
    int ruling;
    esp_err_t result = ruling_entry(entries, &ruling);
    if (result != ESP_OK) {
        return result;
    }
    if (!esp_ota_check_rollback_is_possible()) {
        ESP_LOGE(TAG, "Rollback is not possible, do not have any suitable apps in slots");
        return ESP_ERR_OTA_ROLLBACK_FAILED;
    }
    result = otadata_write(ruling, entries[ruling].ota_seq, ESP_OTA_IMG_INVALID);
    if (result == ESP_OK) {
        ESP_LOGI(TAG, "Rollback to previously worked partition.");
    }
    return result;
}

esp_err_t esp_ota_mark_app_invalid_rollback_and_reboot(void) {
    esp_err_t result = esp_ota_mark_app_invalid_rollback();
    if (result == ESP_OK) {
        esp_restart();
    }
    return result;
}

static bool is_given_up(const esp_ota_select_entry_t *entry) {
    return otadata_is_whole(entry) && !otadata_is_valid(entry);
}

/* Of two the older one, as ESP-IDF has it. */
const esp_partition_t *esp_ota_get_last_invalid_partition(void) {
    esp_ota_select_entry_t entries[2];
    if (!otadata_read(entries)) {
        return NULL;
    }
    bool first = is_given_up(&entries[0]);
    bool second = is_given_up(&entries[1]);
    if (!first && !second) {
        return NULL;
    }
    bool takes_first = first && (!second || entries[0].ota_seq <= entries[1].ota_seq);
    const esp_partition_t *partition = otadata_slot_of(&entries[takes_first ? 0 : 1]);
    return holds_image(partition) ? partition : NULL;
}

/* The entry that does not rule goes; its slot only where that does not run. */
static esp_err_t drop_inactive(bool erases_app) {
    esp_ota_select_entry_t entries[2];
    int ruling = otadata_read(entries) ? otadata_active(entries) : -1;
    if (ruling < 0 || !otadata_is_whole(&entries[!ruling])) {
        return ESP_FAIL;
    }
    const esp_partition_t *partition = otadata_slot_of(&entries[!ruling]);
    if (partition == NULL || partition == esp_ota_get_running_partition()) {
        return ESP_FAIL;
    }
    esp_err_t result = erases_app ? esp_partition_erase_range(partition, 0, partition->size) : ESP_OK;
    return result == ESP_OK ? otadata_erase(!ruling) : result;
}

esp_err_t esp_ota_erase_last_boot_app_partition(void) {
    return drop_inactive(true);
}

esp_err_t esp_ota_invalidate_inactive_ota_data_slot(void) {
    return drop_inactive(false);
}
