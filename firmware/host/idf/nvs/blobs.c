/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs: chunks that fill up pages, and an index written last. */
#include <string.h>

#include "handles.h"

/* ESP-IDF's limit: a chunk fills a page, and a version has 127 of them. */
#define CHUNK_MAX_BYTES 4000U
#define BLOB_MAX_CHUNKS 127U

static bool find_chunk(const nvs_open_t *open, const char *key, int chunk, nvs_place_t *place) {
    nvs_query_t query = {open->namespace_index, NVS_TYPE_BLOB, key, chunk};
    *place = (nvs_place_t){0, 0};
    return nvs_store_find(open->store, &query, place);
}

esp_err_t nvs_erase_chunks(const nvs_open_t *open, const char *key, int first_chunk) {
    nvs_place_t place;
    esp_err_t result = ESP_OK;
    for (int chunk = first_chunk; result == ESP_OK && find_chunk(open, key, chunk, &place); chunk++) {
        result = nvs_store_erase(open->store, place);
    }
    return result;
}

/* The entries that a blob takes at most, were the pages' ends of no use. */
static bool can_fit(const nvs_open_t *open, size_t bytes) {
    nvs_stats_t stats;
    nvs_store_count(open->store, &stats);
    size_t entries = (bytes + NVS_ENTRY_BYTES - 1) / NVS_ENTRY_BYTES + 2;
    return entries <= stats.available_entries && bytes <= (size_t)CHUNK_MAX_BYTES * BLOB_MAX_CHUNKS;
}

static esp_err_t write_chunks(const nvs_open_t *open, const char *key, const uint8_t *data, size_t bytes,
                              nvs_item_t *index) {
    uint8_t chunk = index->blob.first_chunk;
    esp_err_t result = ESP_OK;
    while (result == ESP_OK && (bytes > 0 || chunk == index->blob.first_chunk)) {
        result = nvs_make_room(open->store, bytes > 0 ? 2 : 1);
        if (result != ESP_OK) {
            break;
        }
        size_t room = (nvs_store_room(open->store) - 1) * NVS_ENTRY_BYTES;
        size_t piece = bytes < room ? bytes : room;
        nvs_item_t item = nvs_new_item(open, NVS_TYPE_BLOB, key);
        item.chunk = chunk++;
        result = nvs_store_append(open->store, &item, data, piece);
        data += piece;
        bytes -= piece;
    }
    index->blob.chunks = (uint8_t)(chunk - index->blob.first_chunk);
    return result;
}

static bool read_blob(const nvs_open_t *open, nvs_place_t place, const char *key, uint8_t *data) {
    nvs_item_t index = *nvs_store_item(open->store, place);
    for (int chunk = 0; chunk < index.blob.chunks; chunk++) {
        nvs_place_t at;
        if (!find_chunk(open, key, index.blob.first_chunk + chunk, &at)) {
            return false;
        }
        size_t bytes = nvs_store_item(open->store, at)->data.bytes;
        memcpy(data, nvs_store_data(open->store, at), bytes);
        data += bytes;
    }
    return true;
}

/* Whether the blob's chunks hold just these bytes. */
static bool same_blob(const nvs_open_t *open, nvs_place_t place, const char *key, const uint8_t *data,
                      size_t bytes) {
    nvs_item_t index = *nvs_store_item(open->store, place);
    bool same = index.blob.bytes == bytes;
    for (int chunk = 0; same && chunk < index.blob.chunks; chunk++) {
        nvs_place_t at;
        same = find_chunk(open, key, index.blob.first_chunk + chunk, &at);
        size_t piece = same ? nvs_store_item(open->store, at)->data.bytes : 0;
        same = same && memcmp(nvs_store_data(open->store, at), data, piece) == 0;
        data += piece;
    }
    return same;
}

static esp_err_t write_blob(const nvs_open_t *open, const char *key, const void *data, size_t bytes) {
    nvs_place_t place;
    nvs_item_t index = nvs_new_item(open, NVS_TYPE_BLOB_INDEX, key);
    index.blob.bytes = (uint32_t)bytes;
    index.blob.first_chunk = 0;
    if (nvs_lookup(open, NVS_TYPE_BLOB_INDEX, key, &place)) {
        if (same_blob(open, place, key, data, bytes)) {
            return ESP_OK;
        }
        bool first = nvs_store_item(open->store, place)->blob.first_chunk == 0;
        index.blob.first_chunk = first ? NVS_SECOND_CHUNK : 0;
    }
    if (!can_fit(open, bytes)) {
        return ESP_ERR_NVS_NOT_ENOUGH_SPACE;
    }
    esp_err_t result = nvs_erase_chunks(open, key, index.blob.first_chunk); /* of a write cut short */
    result = result == ESP_OK ? write_chunks(open, key, data, bytes, &index) : result;
    result = result == ESP_OK ? nvs_make_room(open->store, 1) : result;
    if (result != ESP_OK) {
        (void)nvs_erase_chunks(open, key, index.blob.first_chunk);
        return result;
    }
    place = (nvs_place_t){open->store->active, NVS_PAGE_ENTRIES - nvs_store_room(open->store)};
    result = nvs_store_append(open->store, &index, NULL, 0);
    return result == ESP_OK ? nvs_erase_others(open, key, place) : result;
}

esp_err_t nvs_set_blob(nvs_handle_t handle, const char *key, const void *value, size_t length) {
    nvs_open_t open;
    esp_err_t result = value == NULL && length > 0 ? ESP_ERR_INVALID_ARG : nvs_check_key(key);
    nvs_lock();
    result = result == ESP_OK ? nvs_use(handle, true, &open) : result;
    result = result == ESP_OK ? write_blob(&open, key, value, length) : result;
    nvs_unlock();
    return result;
}

static esp_err_t copy_blob(const nvs_open_t *open, const char *key, void *data, size_t *length) {
    nvs_place_t place;
    if (!nvs_lookup(open, NVS_TYPE_BLOB_INDEX, key, &place)) {
        return ESP_ERR_NVS_NOT_FOUND;
    }
    size_t bytes = nvs_store_item(open->store, place)->blob.bytes;
    bool fits = length != NULL && *length >= bytes;
    if (length != NULL) {
        *length = bytes;
    }
    if (data == NULL) {
        return ESP_OK;
    }
    if (!fits) {
        return ESP_ERR_NVS_INVALID_LENGTH;
    }
    return read_blob(open, place, key, data) ? ESP_OK : ESP_ERR_NVS_NOT_FOUND;
}

esp_err_t nvs_get_blob(nvs_handle_t handle, const char *key, void *out_value, size_t *length) {
    nvs_open_t open;
    esp_err_t result = out_value == NULL && length == NULL ? ESP_ERR_INVALID_ARG : nvs_check_key(key);
    nvs_lock();
    result = result == ESP_OK ? nvs_use(handle, false, &open) : result;
    result = result == ESP_OK ? copy_blob(&open, key, out_value, length) : result;
    nvs_unlock();
    return result;
}
