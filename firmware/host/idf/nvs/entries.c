/* SPDX-License-Identifier: Apache-2.0 */
/* What is stored: by iterator, by key, in numbers. */
#include <stdlib.h>
#include <string.h>

#include "handles.h"

struct nvs_opaque_iterator_t {
    char label[NVS_PART_NAME_MAX_SIZE + 1];
    uint8_t namespace_index;
    nvs_type_t type;
    nvs_place_t place;
};

static nvs_type_t type_told(uint8_t type) {
    return type == NVS_TYPE_BLOB_INDEX ? NVS_TYPE_BLOB : (nvs_type_t)type;
}

static int type_stored(nvs_type_t type) {
    return type == NVS_TYPE_BLOB ? NVS_TYPE_BLOB_INDEX : (int)type;
}

static bool find_from(const nvs_store_t *store, nvs_iterator_t iterator) {
    nvs_query_t query = {iterator->namespace_index, type_stored(iterator->type), NULL, NVS_ANY_CHUNK};
    return nvs_store_find(store, &query, &iterator->place);
}

/* With the lock. */
static esp_err_t begin(const nvs_store_t *store, uint8_t namespace_index, nvs_type_t type,
                       nvs_iterator_t *output_iterator) {
    nvs_iterator_t iterator = calloc(1, sizeof *iterator);
    if (iterator == NULL) {
        return ESP_ERR_NO_MEM;
    }
    memcpy(iterator->label, store->partition->label, sizeof iterator->label);
    iterator->namespace_index = namespace_index;
    iterator->type = type;
    if (!find_from(store, iterator)) {
        free(iterator);
        return ESP_ERR_NVS_NOT_FOUND;
    }
    *output_iterator = iterator;
    return ESP_OK;
}

esp_err_t nvs_entry_find(const char *part_name, const char *namespace_name, nvs_type_t type,
                         nvs_iterator_t *output_iterator) {
    if (part_name == NULL || output_iterator == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    *output_iterator = NULL;
    nvs_lock();
    nvs_store_t *store = nvs_find_store(part_name);
    uint8_t index = NVS_ANY_NAMESPACE;
    esp_err_t result = store != NULL ? ESP_OK : ESP_ERR_NVS_NOT_FOUND;
    if (result == ESP_OK && namespace_name != NULL) {
        result = nvs_namespace(store, namespace_name, false, &index);
    }
    result = result == ESP_OK ? begin(store, index, type, output_iterator) : result;
    nvs_unlock();
    return result;
}

esp_err_t nvs_entry_find_in_handle(nvs_handle_t handle, nvs_type_t type, nvs_iterator_t *output_iterator) {
    if (output_iterator == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    *output_iterator = NULL;
    nvs_open_t open;
    nvs_lock();
    esp_err_t result = nvs_use(handle, false, &open);
    result = result == ESP_OK ? begin(open.store, open.namespace_index, type, output_iterator) : result;
    nvs_unlock();
    return result;
}

/* At the end the iterator is released, and NULL. */
esp_err_t nvs_entry_next(nvs_iterator_t *iterator) {
    if (iterator == NULL || *iterator == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    nvs_lock();
    const nvs_store_t *store = nvs_find_store((*iterator)->label);
    if (store != NULL) {
        nvs_store_step(store, &(*iterator)->place);
    }
    bool found = store != NULL && find_from(store, *iterator);
    nvs_unlock();
    if (!found) {
        free(*iterator);
        *iterator = NULL;
    }
    return found ? ESP_OK : ESP_ERR_NVS_NOT_FOUND;
}

static void copy_namespace_name(const nvs_store_t *store, uint8_t index, char *name) {
    nvs_query_t names = {NVS_NAMES, NVS_TYPE_U8, NULL, NVS_ANY_CHUNK};
    for (nvs_place_t place = {0, 0}; nvs_store_find(store, &names, &place); nvs_store_step(store, &place)) {
        if (nvs_store_item(store, place)->value[0] == index) {
            memcpy(name, nvs_store_item(store, place)->key, NVS_NS_NAME_MAX_SIZE);
        }
    }
}

esp_err_t nvs_entry_info(const nvs_iterator_t iterator, nvs_entry_info_t *out_info) {
    if (iterator == NULL || out_info == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    nvs_lock();
    const nvs_store_t *store = nvs_find_store(iterator->label);
    if (store != NULL) {
        const nvs_item_t *item = nvs_store_item(store, iterator->place);
        *out_info = (nvs_entry_info_t){.type = type_told(item->type)};
        memcpy(out_info->key, item->key, sizeof out_info->key);
        copy_namespace_name(store, item->namespace_index, out_info->namespace_name);
    }
    nvs_unlock();
    return store != NULL ? ESP_OK : ESP_ERR_NVS_NOT_INITIALIZED;
}

void nvs_release_iterator(nvs_iterator_t iterator) {
    free(iterator);
}

esp_err_t nvs_find_key(nvs_handle_t handle, const char *key, nvs_type_t *out_type) {
    nvs_open_t open;
    nvs_place_t place;
    esp_err_t result = nvs_check_key(key);
    nvs_lock();
    result = result == ESP_OK ? nvs_use(handle, false, &open) : result;
    if (result == ESP_OK && !nvs_lookup(&open, NVS_TYPE_ANY, key, &place)) {
        result = ESP_ERR_NVS_NOT_FOUND;
    }
    if (result == ESP_OK && out_type != NULL) {
        *out_type = type_told(nvs_store_item(open.store, place)->type);
    }
    nvs_unlock();
    return result;
}

esp_err_t nvs_get_stats(const char *part_name, nvs_stats_t *nvs_stats) {
    if (nvs_stats == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    *nvs_stats = (nvs_stats_t){0};
    nvs_lock();
    const nvs_store_t *store = nvs_find_store(part_name != NULL ? part_name : NVS_DEFAULT_PART_NAME);
    if (store != NULL) {
        nvs_store_count(store, nvs_stats);
    }
    nvs_unlock();
    return store != NULL ? ESP_OK : ESP_ERR_NVS_NOT_INITIALIZED;
}

static size_t count_of(const nvs_open_t *open, int type) {
    size_t entries = 0;
    nvs_query_t query = {open->namespace_index, type, NULL, NVS_ANY_CHUNK};
    for (nvs_place_t place = {0, 0}; nvs_store_find(open->store, &query, &place);
         nvs_store_step(open->store, &place)) {
        entries += nvs_store_item(open->store, place)->span;
    }
    return entries;
}

esp_err_t nvs_get_used_entry_count(nvs_handle_t handle, size_t *used_entries) {
    if (used_entries == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    *used_entries = 0;
    nvs_open_t open;
    nvs_lock();
    esp_err_t result = nvs_use(handle, false, &open);
    if (result == ESP_OK) {
        *used_entries = count_of(&open, NVS_TYPE_ANY) + count_of(&open, NVS_TYPE_BLOB);
    }
    nvs_unlock();
    return result;
}
