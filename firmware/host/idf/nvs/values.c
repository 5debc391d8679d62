/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and strings, and what all types share. */
#include <string.h>

#include "handles.h"

#define STRING_MAX_BYTES 4000U /* all but one entry of a page */

bool nvs_lookup(const nvs_open_t *open, int type, const char *key, nvs_place_t *place) {
    nvs_query_t query = {open->namespace_index, type, key, NVS_ANY_CHUNK};
    *place = (nvs_place_t){0, 0};
    return nvs_store_find(open->store, &query, place);
}

esp_err_t nvs_make_room(nvs_store_t *store, uint32_t span) {
    esp_err_t result = nvs_store_room(store) >= span ? ESP_OK : nvs_store_new_page(store);
    return result == ESP_OK && nvs_store_room(store) < span ? ESP_ERR_NVS_NOT_ENOUGH_SPACE : result;
}

nvs_item_t nvs_new_item(const nvs_open_t *open, int type, const char *key) {
    nvs_item_t item = {
        .namespace_index = open->namespace_index, .type = (uint8_t)type, .span = 1, .chunk = NVS_NO_CHUNK};
    memset(item.value, 0xff, sizeof item.value);
    strncpy(item.key, key, sizeof item.key - 1);
    return item;
}

/* Erases the versions of a value other than the one that was just written, of whatever type they are. */
esp_err_t nvs_erase_others(const nvs_open_t *open, const char *key, nvs_place_t keep) {
    esp_err_t result = ESP_OK;
    nvs_query_t query = {open->namespace_index, NVS_TYPE_ANY, key, NVS_ANY_CHUNK};
    for (nvs_place_t place = {0, 0}; result == ESP_OK && nvs_store_find(open->store, &query, &place);
         nvs_store_step(open->store, &place)) {
        if (place.page == keep.page && place.entry == keep.entry) {
            continue;
        }
        const nvs_item_t *item = nvs_store_item(open->store, place);
        if (item->type == NVS_TYPE_BLOB_INDEX) {
            result = nvs_erase_chunks(open, key, item->blob.first_chunk);
        }
        result = result == ESP_OK ? nvs_store_erase(open->store, place) : result;
    }
    return result;
}

static bool is_stored(const nvs_open_t *open, const nvs_item_t *item, const void *data, size_t bytes) {
    nvs_place_t place;
    if (!nvs_lookup(open, item->type, item->key, &place)) {
        return false;
    }
    const nvs_item_t *old = nvs_store_item(open->store, place);
    if (data == NULL) {
        return memcmp(old->value, item->value, sizeof item->value) == 0;
    }
    return old->data.bytes == bytes && memcmp(nvs_store_data(open->store, place), data, bytes) == 0;
}

/* The new version first, then the old one goes: a reset in between leaves one of them. */
static esp_err_t replace(const nvs_open_t *open, nvs_item_t *item, const void *data, size_t bytes) {
    uint32_t span = 1 + (uint32_t)((bytes + NVS_ENTRY_BYTES - 1) / NVS_ENTRY_BYTES);
    if (is_stored(open, item, data, bytes)) {
        return ESP_OK;
    }
    esp_err_t result = nvs_make_room(open->store, span);
    if (result != ESP_OK) {
        return result;
    }
    nvs_place_t place = {open->store->active, NVS_PAGE_ENTRIES - nvs_store_room(open->store)};
    result = nvs_store_append(open->store, item, data, bytes);
    return result == ESP_OK ? nvs_erase_others(open, item->key, place) : result;
}

static esp_err_t set(nvs_handle_t handle, const char *key, int type, const void *value, size_t bytes) {
    nvs_open_t open;
    esp_err_t result = nvs_check_key(key);
    nvs_lock();
    result = result == ESP_OK ? nvs_use(handle, true, &open) : result;
    if (result == ESP_OK) {
        nvs_item_t item = nvs_new_item(&open, type, key);
        bool text = type == NVS_TYPE_STR;
        if (!text) {
            memcpy(item.value, value, bytes);
        }
        result = replace(&open, &item, text ? value : NULL, text ? bytes : 0);
    }
    nvs_unlock();
    return result;
}

static esp_err_t get(nvs_handle_t handle, const char *key, int type, void *value, size_t bytes) {
    nvs_open_t open;
    nvs_place_t place;
    esp_err_t result = nvs_check_key(key);
    nvs_lock();
    result = result == ESP_OK ? nvs_use(handle, false, &open) : result;
    if (result == ESP_OK && !nvs_lookup(&open, type, key, &place)) {
        result = ESP_ERR_NVS_NOT_FOUND;
    }
    if (result == ESP_OK) {
        memcpy(value, nvs_store_item(open.store, place)->value, bytes);
    }
    nvs_unlock();
    return result;
}

#define NUMBER(name, c_type, nvs_type)                                                                       \
    esp_err_t nvs_set_##name(nvs_handle_t handle, const char *key, c_type value) {                           \
        return set(handle, key, nvs_type, &value, sizeof value);                                             \
    }                                                                                                        \
    esp_err_t nvs_get_##name(nvs_handle_t handle, const char *key, c_type *out_value) {                      \
        return get(handle, key, nvs_type, out_value, sizeof *out_value);                                     \
    }

NUMBER(i8, int8_t, NVS_TYPE_I8)
NUMBER(u8, uint8_t, NVS_TYPE_U8)
NUMBER(i16, int16_t, NVS_TYPE_I16)
NUMBER(u16, uint16_t, NVS_TYPE_U16)
NUMBER(i32, int32_t, NVS_TYPE_I32)
NUMBER(u32, uint32_t, NVS_TYPE_U32)
NUMBER(i64, int64_t, NVS_TYPE_I64)
NUMBER(u64, uint64_t, NVS_TYPE_U64)

esp_err_t nvs_set_str(nvs_handle_t handle, const char *key, const char *value) {
    if (value == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    size_t bytes = strlen(value) + 1;
    return bytes <= STRING_MAX_BYTES ? set(handle, key, NVS_TYPE_STR, value, bytes)
                                     : ESP_ERR_NVS_VALUE_TOO_LONG;
}

/* Without a buffer: how long it is, with the terminating zero. */
static esp_err_t copy_string(const nvs_open_t *open, nvs_place_t place, char *text, size_t *length) {
    size_t bytes = nvs_store_item(open->store, place)->data.bytes;
    if (text == NULL) {
        *length = bytes;
        return ESP_OK;
    }
    bool fits = length != NULL && *length >= bytes;
    if (length != NULL) {
        *length = bytes;
    }
    if (!fits) {
        return ESP_ERR_NVS_INVALID_LENGTH;
    }
    memcpy(text, nvs_store_data(open->store, place), bytes);
    return ESP_OK;
}

esp_err_t nvs_get_str(nvs_handle_t handle, const char *key, char *out_value, size_t *length) {
    nvs_open_t open;
    nvs_place_t place;
    esp_err_t result = out_value == NULL && length == NULL ? ESP_ERR_INVALID_ARG : nvs_check_key(key);
    nvs_lock();
    result = result == ESP_OK ? nvs_use(handle, false, &open) : result;
    if (result == ESP_OK) {
        result = nvs_lookup(&open, NVS_TYPE_STR, key, &place) ? copy_string(&open, place, out_value, length)
                                                              : ESP_ERR_NVS_NOT_FOUND;
    }
    nvs_unlock();
    return result;
}

esp_err_t nvs_erase_key(nvs_handle_t handle, const char *key) {
    nvs_open_t open;
    nvs_place_t place;
    const nvs_place_t keep_none = {UINT32_MAX, 0};
    esp_err_t result = nvs_check_key(key);
    nvs_lock();
    result = result == ESP_OK ? nvs_use(handle, true, &open) : result;
    if (result == ESP_OK) {
        result = nvs_lookup(&open, NVS_TYPE_ANY, key, &place) ? nvs_erase_others(&open, key, keep_none)
                                                              : ESP_ERR_NVS_NOT_FOUND;
    }
    nvs_unlock();
    return result;
}

static esp_err_t erase_type(const nvs_open_t *open, int type) {
    esp_err_t result = ESP_OK;
    nvs_query_t query = {open->namespace_index, type, NULL, NVS_ANY_CHUNK};
    for (nvs_place_t place = {0, 0}; result == ESP_OK && nvs_store_find(open->store, &query, &place);
         nvs_store_step(open->store, &place)) {
        result = nvs_store_erase(open->store, place);
    }
    return result;
}

esp_err_t nvs_erase_all(nvs_handle_t handle) {
    nvs_open_t open;
    nvs_lock();
    esp_err_t result = nvs_use(handle, true, &open);
    result = result == ESP_OK ? erase_type(&open, NVS_TYPE_ANY) : result;
    result = result == ESP_OK ? erase_type(&open, NVS_TYPE_BLOB) : result;
    nvs_unlock();
    return result;
}
