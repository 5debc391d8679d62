/* SPDX-License-Identifier: Apache-2.0 */
/* One page of a store: its state, its entries' states, and the flash operations on it. */
#pragma once
#include "store.h"

typedef enum {
    PAGE_BLANK = 0xffffffff,
    PAGE_ACTIVE = 0xfffffffe,
    PAGE_FULL = 0xfffffffc,
    PAGE_FREEING = 0xfffffff8,
    PAGE_CORRUPT = 0,
} page_state_t;

typedef enum {
    ENTRY_ERASED = 0,
    ENTRY_WRITTEN = 2,
    ENTRY_BLANK = 3,
} entry_state_t;

typedef struct {
    uint32_t state;
    uint32_t sequence;
    uint8_t version;
    uint8_t unused[19];
    uint32_t crc;
} page_header_t;

#define PAGE_VERSION 0xfeU
#define PAGE_BYTES 4096U

uint32_t nvs_crc(uint32_t crc, const void *data, size_t bytes);
const page_header_t *page_header(const nvs_store_t *store, uint32_t page);
/* PAGE_CORRUPT where the header is not one. */
page_state_t page_state(const nvs_store_t *store, uint32_t page);
bool page_is_blank(const nvs_store_t *store, uint32_t page);
bool page_holds_items(const nvs_store_t *store, uint32_t page);
entry_state_t page_entry_state(const nvs_store_t *store, uint32_t page, uint32_t entry);
uint32_t page_count(const nvs_store_t *store, uint32_t page, entry_state_t state);
esp_err_t page_begin(nvs_store_t *store, uint32_t page);
esp_err_t page_set_state(nvs_store_t *store, uint32_t page, page_state_t state);
esp_err_t page_set_entries(nvs_store_t *store, nvs_place_t place, uint32_t span, entry_state_t state);
esp_err_t page_write(nvs_store_t *store, nvs_place_t place, const void *data, size_t bytes);
esp_err_t page_erase(nvs_store_t *store, uint32_t page);
