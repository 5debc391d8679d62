/* SPDX-License-Identifier: Apache-2.0 */
#include "nvs_flash.h"

static const esp_partition_t *partition(void) {
    return esp_partition_find_first(ESP_PARTITION_TYPE_DATA, ESP_PARTITION_SUBTYPE_DATA_NVS, NULL);
}

esp_err_t nvs_flash_init(void) {
    return partition() != NULL ? ESP_OK : ESP_ERR_NOT_FOUND;
}

esp_err_t nvs_flash_deinit(void) {
    return ESP_OK;
}

esp_err_t nvs_flash_erase(void) {
    const esp_partition_t *nvs = partition();
    return nvs != NULL ? esp_partition_erase_range(nvs, 0, nvs->size) : ESP_ERR_NOT_FOUND;
}
