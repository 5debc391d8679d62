/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions of non-volatile storage. No encryption. */
#pragma once
#include "esp_partition.h"
#include "nvs.h"

#ifdef __cplusplus
extern "C" {
#endif

esp_err_t nvs_flash_init(void);
esp_err_t nvs_flash_init_partition(const char *partition_label);
esp_err_t nvs_flash_init_partition_ptr(const esp_partition_t *partition);
esp_err_t nvs_flash_deinit(void);
esp_err_t nvs_flash_deinit_partition(const char *partition_label);
esp_err_t nvs_flash_erase(void);
esp_err_t nvs_flash_erase_partition(const char *part_name);
esp_err_t nvs_flash_erase_partition_ptr(const esp_partition_t *partition);

#ifdef __cplusplus
}
#endif
