/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include <string.h>

#include "page.h"

static uint32_t item_crc(const nvs_item_t *item) {
    uint32_t crc = nvs_crc(UINT32_MAX, item, offsetof(nvs_item_t, crc));
    crc = nvs_crc(crc, item->key, sizeof item->key);
    return nvs_crc(crc, item->value, sizeof item->value);
}

static bool has_data(const nvs_item_t *item) {
    return item->type == NVS_TYPE_STR || item->type == NVS_TYPE_BLOB;
}

/* A reset may have cut a write short: then a digest does not fit. */
static bool is_whole(const nvs_store_t *store, nvs_place_t place) {
    const nvs_item_t *item = nvs_store_item(store, place);
    if (item->crc != item_crc(item) || item->span == 0 || place.entry + item->span > NVS_PAGE_ENTRIES) {
        return false;
    }
    if (!has_data(item)) {
        return item->span == 1;
    }
    return item->data.bytes <= (item->span - 1U) * NVS_ENTRY_BYTES &&
           item->data.crc == nvs_crc(UINT32_MAX, nvs_store_data(store, place), item->data.bytes);
}

void nvs_store_step(const nvs_store_t *store, nvs_place_t *place) {
    bool item =
        page_entry_state(store, place->page, place->entry) == ENTRY_WRITTEN && is_whole(store, *place);
    place->entry += item ? nvs_store_item(store, *place)->span : 1;
}

static bool suits(const nvs_item_t *item, const nvs_query_t *query) {
    bool any_type = query->type == NVS_TYPE_ANY;
    return (query->namespace_index == NVS_ANY_NAMESPACE ? item->namespace_index != NVS_NAMES
                                                        : item->namespace_index == query->namespace_index) &&
           (any_type ? item->type != NVS_TYPE_BLOB : item->type == query->type) &&
           (query->key == NULL || strncmp(item->key, query->key, sizeof item->key) == 0) &&
           (query->chunk == NVS_ANY_CHUNK || item->chunk == query->chunk);
}

bool nvs_store_find(const nvs_store_t *store, const nvs_query_t *query, nvs_place_t *place) {
    for (; place->page < store->pages; place->page++, place->entry = 0) {
        if (!page_holds_items(store, place->page)) {
            continue;
        }
        for (; place->entry < NVS_PAGE_ENTRIES; nvs_store_step(store, place)) {
            if (page_entry_state(store, place->page, place->entry) == ENTRY_WRITTEN &&
                is_whole(store, *place) && suits(nvs_store_item(store, *place), query)) {
                return true;
            }
        }
    }
    return false;
}

uint32_t nvs_store_room(const nvs_store_t *store) {
    if (page_state(store, store->active) != PAGE_ACTIVE) {
        return 0;
    }
    uint32_t entry = NVS_PAGE_ENTRIES;
    while (entry > 0 && page_entry_state(store, store->active, entry - 1) == ENTRY_BLANK) {
        entry--;
    }
    return NVS_PAGE_ENTRIES - entry;
}

esp_err_t nvs_store_append(nvs_store_t *store, nvs_item_t *item, const void *data, size_t bytes) {
    item->span = (uint8_t)(1 + (bytes + NVS_ENTRY_BYTES - 1) / NVS_ENTRY_BYTES);
    if (has_data(item)) {
        item->data.bytes = (uint16_t)bytes;
        item->data.reserved = UINT16_MAX;
        item->data.crc = nvs_crc(UINT32_MAX, data, bytes);
    }
    item->crc = item_crc(item);
    nvs_place_t place = {store->active, NVS_PAGE_ENTRIES - nvs_store_room(store)};
    nvs_place_t behind = {place.page, place.entry + 1};
    esp_err_t result = page_write(store, place, item, sizeof *item);
    result = result == ESP_OK && bytes > 0 ? page_write(store, behind, data, bytes) : result;
    return result == ESP_OK ? page_set_entries(store, place, item->span, ENTRY_WRITTEN) : result;
}

esp_err_t nvs_store_erase(nvs_store_t *store, nvs_place_t place) {
    return page_set_entries(store, place, nvs_store_item(store, place)->span, ENTRY_ERASED);
}

/* The item is somewhere else as well. */
static bool is_copied(const nvs_store_t *store, nvs_place_t item_place) {
    const nvs_item_t *item = nvs_store_item(store, item_place);
    nvs_query_t same = {item->namespace_index, item->type, item->key, item->chunk};
    for (nvs_place_t place = {0, 0}; nvs_store_find(store, &same, &place); nvs_store_step(store, &place)) {
        if (place.page != item_place.page || place.entry != item_place.entry) {
            return true;
        }
    }
    return false;
}

/* Copies what is left in a page to the active one, and erases it. */
static esp_err_t free_page(nvs_store_t *store, uint32_t page) {
    esp_err_t result = page_set_state(store, page, PAGE_FREEING);
    for (nvs_place_t place = {page, 0}; place.entry < NVS_PAGE_ENTRIES && result == ESP_OK;
         nvs_store_step(store, &place)) {
        bool left = page_entry_state(store, page, place.entry) == ENTRY_WRITTEN && is_whole(store, place) &&
                    !is_copied(store, place);
        if (left) {
            nvs_item_t item = *nvs_store_item(store, place);
            size_t bytes = has_data(&item) ? item.data.bytes : 0;
            result = nvs_store_append(store, &item, nvs_store_data(store, place), bytes);
        }
    }
    return result == ESP_OK ? page_erase(store, page) : result;
}

/* How many pages are blank, and the one that follows the active page. */
static uint32_t count_blank(const nvs_store_t *store, uint32_t *next) {
    uint32_t blank = 0;
    for (uint32_t i = 1; i <= store->pages; i++) {
        uint32_t page = (store->active + i) % store->pages;
        if (page_state(store, page) == PAGE_BLANK) {
            *next = blank++ == 0 ? page : *next;
        }
    }
    return blank;
}

/* The page with the most entries that are not used; the oldest of several. */
static uint32_t most_to_gain(const nvs_store_t *store, uint32_t *gain) {
    uint32_t best = 0;
    *gain = 0;
    for (uint32_t page = 0; page < store->pages; page++) {
        uint32_t unused = NVS_PAGE_ENTRIES - page_count(store, page, ENTRY_WRITTEN);
        bool older = page_header(store, page)->sequence < page_header(store, best)->sequence;
        if (page_state(store, page) == PAGE_FULL &&
            (unused > *gain || (unused > 0 && unused == *gain && older))) {
            *gain = unused;
            best = page;
        }
    }
    return best;
}

esp_err_t nvs_store_new_page(nvs_store_t *store) {
    uint32_t next = 0;
    uint32_t blank = count_blank(store, &next);
    esp_err_t result = ESP_OK;
    if (page_state(store, store->active) == PAGE_ACTIVE) {
        result = page_set_state(store, store->active, PAGE_FULL);
    }
    uint32_t gain = NVS_PAGE_ENTRIES;
    uint32_t to_free = blank < 2 ? most_to_gain(store, &gain) : 0;
    if (result == ESP_OK && (gain == 0 || blank == 0)) {
        return ESP_ERR_NVS_NOT_ENOUGH_SPACE;
    }
    result = result == ESP_OK ? page_begin(store, next) : result;
    store->active = next;
    return result == ESP_OK && blank < 2 ? free_page(store, to_free) : result;
}

/* What was written anew just before a reset may still be there in its old version, too. */
static esp_err_t erase_old_versions(nvs_store_t *store) {
    esp_err_t result = ESP_OK;
    nvs_place_t last = {store->active, NVS_PAGE_ENTRIES};
    for (nvs_place_t place = {store->active, 0}; place.entry < NVS_PAGE_ENTRIES;
         nvs_store_step(store, &place)) {
        if (page_entry_state(store, place.page, place.entry) == ENTRY_WRITTEN && is_whole(store, place)) {
            last = place;
        }
    }
    if (last.entry == NVS_PAGE_ENTRIES || nvs_store_item(store, last)->type == NVS_TYPE_BLOB) {
        return ESP_OK;
    }
    const nvs_item_t *item = nvs_store_item(store, last);
    nvs_query_t same = {item->namespace_index, item->type, item->key, NVS_ANY_CHUNK};
    for (nvs_place_t place = {0, 0}; result == ESP_OK && nvs_store_find(store, &same, &place);
         nvs_store_step(store, &place)) {
        if (place.page != last.page || place.entry != last.entry) {
            result = nvs_store_erase(store, place);
        }
    }
    return result;
}

/* An entry that was being written when the board was reset is not blank, and nothing will be written there.
 */
static esp_err_t erase_cut_short(nvs_store_t *store) {
    esp_err_t result = ESP_OK;
    static const uint8_t blank[NVS_ENTRY_BYTES] = {[0 ... NVS_ENTRY_BYTES - 1] = 0xff};
    for (uint32_t entry = 0; entry < NVS_PAGE_ENTRIES && result == ESP_OK; entry++) {
        nvs_place_t place = {store->active, entry};
        if (page_entry_state(store, place.page, entry) == ENTRY_BLANK &&
            memcmp(nvs_store_item(store, place), blank, sizeof blank) != 0) {
            result = page_set_entries(store, place, 1, ENTRY_ERASED);
        }
    }
    return result;
}

/* Erases what is no page; finds the newest one. */
static esp_err_t look_at_pages(nvs_store_t *store) {
    esp_err_t result = ESP_OK;
    for (uint32_t page = 0; page < store->pages && result == ESP_OK; page++) {
        page_state_t state = page_state(store, page);
        const page_header_t *header = page_header(store, page);
        if (state == PAGE_CORRUPT || (state == PAGE_BLANK && !page_is_blank(store, page))) {
            result = page_erase(store, page);
        } else if (state != PAGE_BLANK && header->version != PAGE_VERSION) {
            return ESP_ERR_NVS_NEW_VERSION_FOUND;
        } else if (state != PAGE_BLANK && header->sequence >= store->next_sequence) {
            store->next_sequence = header->sequence + 1;
            store->active = page;
        }
    }
    return result;
}

static esp_err_t finish_freeing(nvs_store_t *store) {
    for (uint32_t page = 0; page < store->pages; page++) {
        if (page_state(store, page) == PAGE_FREEING) {
            return free_page(store, page);
        }
    }
    return ESP_OK;
}

static esp_err_t load(nvs_store_t *store) {
    uint32_t next = 0;
    esp_err_t result = look_at_pages(store);
    if (result == ESP_OK && count_blank(store, &next) == store->pages) {
        store->active = next;
        result = page_begin(store, next);
    }
    result = result == ESP_OK ? erase_cut_short(store) : result;
    result = result == ESP_OK ? finish_freeing(store) : result;
    result = result == ESP_OK ? erase_old_versions(store) : result;
    return result == ESP_OK && count_blank(store, &next) == 0 ? ESP_ERR_NVS_NO_FREE_PAGES : result;
}

esp_err_t nvs_store_open(nvs_store_t *store, const esp_partition_t *partition) {
    *store = (nvs_store_t){.partition = partition, .pages = partition->size / PAGE_BYTES};
    store->active = store->pages - 1; /* of a blank partition the first page is the next one */
    const void *flash = NULL;
    esp_err_t result =
        esp_partition_mmap(partition, 0, partition->size, ESP_PARTITION_MMAP_DATA, &flash, &store->mapping);
    store->flash = flash;
    result = result == ESP_OK ? load(store) : result;
    if (result != ESP_OK) {
        nvs_store_close(store);
    }
    return result;
}

void nvs_store_close(nvs_store_t *store) {
    esp_partition_munmap(store->mapping);
    store->flash = NULL;
}

void nvs_store_count(const nvs_store_t *store, nvs_stats_t *stats) {
    *stats = (nvs_stats_t){.total_entries = store->pages * NVS_PAGE_ENTRIES};
    for (uint32_t page = 0; page < store->pages; page++) {
        bool blank = page_state(store, page) == PAGE_BLANK;
        stats->used_entries += blank ? 0 : page_count(store, page, ENTRY_WRITTEN);
    }
    stats->free_entries = stats->total_entries - stats->used_entries;
    /* A page is kept blank, to free others into. */
    stats->available_entries = stats->free_entries - NVS_PAGE_ENTRIES;
    nvs_query_t names = {NVS_NAMES, NVS_TYPE_U8, NULL, NVS_ANY_CHUNK};
    for (nvs_place_t place = {0, 0}; nvs_store_find(store, &names, &place); nvs_store_step(store, &place)) {
        stats->namespace_count++;
    }
}
