/* SPDX-License-Identifier: Apache-2.0 */
#include "page.h"

#include <string.h>

#include "../flash/nor.h"
#include "esp_rom_crc.h"

#define BITMAP_OFFSET 32U
#define ENTRIES_OFFSET 64U

_Static_assert(sizeof(page_header_t) == NVS_ENTRY_BYTES, "a page's header has the size of an entry");
_Static_assert(sizeof(nvs_item_t) == NVS_ENTRY_BYTES, "an item's header has the size of an entry");

uint32_t nvs_crc(uint32_t crc, const void *data, size_t bytes) {
    return esp_rom_crc32_le(crc, data, (uint32_t)bytes);
}

const page_header_t *page_header(const nvs_store_t *store, uint32_t page) {
    return (const page_header_t *)(const void *)(store->flash + page * PAGE_BYTES);
}

static uint32_t header_crc(const page_header_t *header) {
    return nvs_crc(UINT32_MAX, &header->sequence,
                   offsetof(page_header_t, crc) - offsetof(page_header_t, sequence));
}

bool page_is_blank(const nvs_store_t *store, uint32_t page) {
    const uint8_t *bytes = store->flash + page * PAGE_BYTES;
    for (size_t i = 0; i < PAGE_BYTES; i++) {
        if (bytes[i] != 0xff) {
            return false;
        }
    }
    return true;
}

page_state_t page_state(const nvs_store_t *store, uint32_t page) {
    const page_header_t *header = page_header(store, page);
    switch (header->state) {
    case PAGE_BLANK:
        return PAGE_BLANK;
    case PAGE_ACTIVE:
    case PAGE_FULL:
    case PAGE_FREEING:
        return header->crc == header_crc(header) ? (page_state_t)header->state : PAGE_CORRUPT;
    default:
        return PAGE_CORRUPT;
    }
}

bool page_holds_items(const nvs_store_t *store, uint32_t page) {
    page_state_t state = page_state(store, page);
    return state == PAGE_ACTIVE || state == PAGE_FULL || state == PAGE_FREEING;
}

static uint32_t bitmap_word(const nvs_store_t *store, uint32_t page, uint32_t entry) {
    uint32_t word;
    memcpy(&word, store->flash + page * PAGE_BYTES + BITMAP_OFFSET + entry / 16 * 4, sizeof word);
    return word;
}

entry_state_t page_entry_state(const nvs_store_t *store, uint32_t page, uint32_t entry) {
    uint32_t bits = bitmap_word(store, page, entry) >> (entry % 16 * 2) & 3;
    return bits == 1 ? ENTRY_ERASED : (entry_state_t)bits;
}

uint32_t page_count(const nvs_store_t *store, uint32_t page, entry_state_t state) {
    uint32_t count = 0;
    for (uint32_t entry = 0; entry < NVS_PAGE_ENTRIES; entry++) {
        count += page_entry_state(store, page, entry) == state;
    }
    return count;
}

static esp_err_t program(nvs_store_t *store, size_t offset, const void *data, size_t bytes) {
    nor_wait_program(bytes);
    return esp_partition_write(store->partition, offset, data, bytes);
}

esp_err_t page_begin(nvs_store_t *store, uint32_t page) {
    page_header_t header;
    memset(&header, 0xff, sizeof header);
    header.state = PAGE_ACTIVE;
    header.sequence = store->next_sequence++;
    header.version = PAGE_VERSION;
    header.crc = header_crc(&header);
    return program(store, page * PAGE_BYTES, &header, sizeof header);
}

esp_err_t page_set_state(nvs_store_t *store, uint32_t page, page_state_t state) {
    uint32_t word = (uint32_t)state;
    return program(store, page * PAGE_BYTES, &word, sizeof word);
}

/* The span's words of the bitmap, one write each, as two entries may be in two words. */
esp_err_t page_set_entries(nvs_store_t *store, nvs_place_t place, uint32_t span, entry_state_t state) {
    esp_err_t result = ESP_OK;
    uint32_t end = place.entry + span;
    for (uint32_t entry = place.entry; entry < end && result == ESP_OK;) {
        uint32_t word = bitmap_word(store, place.page, entry);
        uint32_t offset = place.page * PAGE_BYTES + BITMAP_OFFSET + entry / 16 * 4;
        uint32_t word_end = (entry / 16 + 1) * 16;
        for (; entry < end && entry < word_end; entry++) {
            uint32_t shift = entry % 16 * 2;
            word = (word & ~(3U << shift)) | (uint32_t)state << shift;
        }
        result = program(store, offset, &word, sizeof word);
    }
    return result;
}

esp_err_t page_write(nvs_store_t *store, nvs_place_t place, const void *data, size_t bytes) {
    size_t offset = place.page * PAGE_BYTES + ENTRIES_OFFSET + place.entry * NVS_ENTRY_BYTES;
    return program(store, offset, data, bytes);
}

esp_err_t page_erase(nvs_store_t *store, uint32_t page) {
    nor_wait_erase(1);
    return esp_partition_erase_range(store->partition, page * PAGE_BYTES, PAGE_BYTES);
}

const nvs_item_t *nvs_store_item(const nvs_store_t *store, nvs_place_t place) {
    return (const nvs_item_t *)(const void *)(store->flash + place.page * PAGE_BYTES + ENTRIES_OFFSET +
                                              place.entry * NVS_ENTRY_BYTES);
}

const uint8_t *nvs_store_data(const nvs_store_t *store, nvs_place_t place) {
    return (const uint8_t *)(nvs_store_item(store, place) + 1);
}
