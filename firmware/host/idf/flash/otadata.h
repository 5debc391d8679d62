/* SPDX-License-Identifier: Apache-2.0 */
/* What boots: otadata has two sectors with one entry each; the valid entry with the higher sequence number
 * rules, and sequence number n boots slot (n - 1) modulo the number of slots. */
#pragma once
#include "esp_flash_partitions.h"
#include "esp_partition.h"

#define OTADATA_NO_SEQUENCE 0xffffffffU

/* NULL where the table has none. */
const esp_partition_t *otadata_partition(void);
const esp_partition_t *otadata_slot(uint32_t index);
const esp_partition_t *otadata_slot_of(const esp_ota_select_entry_t *entry);
bool otadata_is_slot(const esp_partition_t *partition);

/* False where there is no otadata. */
bool otadata_read(esp_ota_select_entry_t entries[2]);
bool otadata_is_whole(const esp_ota_select_entry_t *entry);
/* Whole, and not given up. */
bool otadata_is_valid(const esp_ota_select_entry_t *entry);
/* Index of the entry that rules, -1 when none is valid. */
int otadata_active(const esp_ota_select_entry_t entries[2]);
esp_err_t otadata_write(int sector, uint32_t sequence, uint32_t state);
esp_err_t otadata_erase(int sector);
