/* SPDX-License-Identifier: Apache-2.0 */
#include "handles.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "nvs_flash.h"

typedef struct open_handle {
    nvs_handle_t number;
    nvs_open_t open;
    struct open_handle *next;
} open_handle_t;

static pthread_mutex_t s_lock = PTHREAD_MUTEX_INITIALIZER;
static nvs_store_t *s_stores;
static open_handle_t *s_open;
static nvs_handle_t s_last_number;

void nvs_lock(void) {
    pthread_mutex_lock(&s_lock);
}

void nvs_unlock(void) {
    pthread_mutex_unlock(&s_lock);
}

nvs_store_t *nvs_find_store(const char *label) {
    nvs_store_t *store = s_stores;
    while (store != NULL && strcmp(store->partition->label, label) != 0) {
        store = store->next;
    }
    return store;
}

bool nvs_any_store(void) {
    return s_stores != NULL;
}

static const esp_partition_t *partition_of(const char *label) {
    return esp_partition_find_first(ESP_PARTITION_TYPE_DATA, ESP_PARTITION_SUBTYPE_DATA_NVS, label);
}

static esp_err_t open_store(const esp_partition_t *partition) {
    if (nvs_find_store(partition->label) != NULL) {
        return ESP_OK;
    }
    nvs_store_t *store = calloc(1, sizeof *store);
    if (store == NULL) {
        return ESP_ERR_NO_MEM;
    }
    esp_err_t result = nvs_store_open(store, partition);
    if (result != ESP_OK) {
        free(store);
        return result;
    }
    store->next = s_stores;
    s_stores = store;
    return ESP_OK;
}

static void close_handles_of(const nvs_store_t *store) {
    for (open_handle_t **link = &s_open; *link != NULL;) {
        open_handle_t *handle = *link;
        if (handle->open.store == store) {
            *link = handle->next;
            free(handle);
        } else {
            link = &handle->next;
        }
    }
}

static esp_err_t close_store(const char *label) {
    nvs_store_t *store = nvs_find_store(label);
    if (store == NULL) {
        return ESP_ERR_NVS_NOT_INITIALIZED;
    }
    close_handles_of(store);
    nvs_store_t **link = &s_stores;
    while (*link != store) {
        link = &(*link)->next;
    }
    *link = store->next;
    nvs_store_close(store);
    free(store);
    return ESP_OK;
}

esp_err_t nvs_flash_init_partition_ptr(const esp_partition_t *partition) {
    if (partition == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    nvs_lock();
    esp_err_t result = open_store(partition);
    nvs_unlock();
    return result;
}

esp_err_t nvs_flash_init_partition(const char *partition_label) {
    const esp_partition_t *partition = partition_of(partition_label);
    return partition != NULL ? nvs_flash_init_partition_ptr(partition) : ESP_ERR_NOT_FOUND;
}

esp_err_t nvs_flash_init(void) {
    return nvs_flash_init_partition(NVS_DEFAULT_PART_NAME);
}

esp_err_t nvs_flash_deinit_partition(const char *partition_label) {
    nvs_lock();
    esp_err_t result = close_store(partition_label);
    nvs_unlock();
    return result;
}

esp_err_t nvs_flash_deinit(void) {
    return nvs_flash_deinit_partition(NVS_DEFAULT_PART_NAME);
}

esp_err_t nvs_flash_erase_partition_ptr(const esp_partition_t *partition) {
    if (partition == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    nvs_lock();
    (void)close_store(partition->label);
    esp_err_t result = esp_partition_erase_range(partition, 0, partition->size);
    nvs_unlock();
    return result;
}

esp_err_t nvs_flash_erase_partition(const char *part_name) {
    const esp_partition_t *partition = partition_of(part_name);
    return partition != NULL ? nvs_flash_erase_partition_ptr(partition) : ESP_ERR_NOT_FOUND;
}

esp_err_t nvs_flash_erase(void) {
    return nvs_flash_erase_partition(NVS_DEFAULT_PART_NAME);
}

esp_err_t nvs_check_key(const char *key) {
    if (key == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    return strlen(key) < NVS_KEY_NAME_MAX_SIZE ? ESP_OK : ESP_ERR_NVS_KEY_TOO_LONG;
}

static uint8_t free_namespace(nvs_store_t *store) {
    bool taken[NVS_ANY_NAMESPACE] = {true};
    nvs_query_t names = {NVS_NAMES, NVS_TYPE_U8, NULL, NVS_ANY_CHUNK};
    for (nvs_place_t place = {0, 0}; nvs_store_find(store, &names, &place); nvs_store_step(store, &place)) {
        taken[nvs_store_item(store, place)->value[0]] = true;
    }
    uint8_t index = 1;
    while (index < NVS_ANY_NAMESPACE - 1 && taken[index]) {
        index++;
    }
    return taken[index] ? 0 : index;
}

static esp_err_t create_namespace(nvs_store_t *store, const char *name, uint8_t *index) {
    *index = free_namespace(store);
    if (*index == 0) {
        return ESP_ERR_NVS_NOT_ENOUGH_SPACE;
    }
    const nvs_open_t names = {store, NVS_NAMES, false};
    nvs_item_t item = nvs_new_item(&names, NVS_TYPE_U8, name);
    item.value[0] = *index;
    esp_err_t result = nvs_make_room(store, 1);
    return result == ESP_OK ? nvs_store_append(store, &item, NULL, 0) : result;
}

esp_err_t nvs_namespace(nvs_store_t *store, const char *name, bool create, uint8_t *index) {
    esp_err_t result = nvs_check_key(name);
    if (result != ESP_OK) {
        return result;
    }
    nvs_place_t place;
    const nvs_open_t names = {store, NVS_NAMES, true};
    if (nvs_lookup(&names, NVS_TYPE_U8, name, &place)) {
        *index = nvs_store_item(store, place)->value[0];
        return ESP_OK;
    }
    return create ? create_namespace(store, name, index) : ESP_ERR_NVS_NOT_FOUND;
}

static esp_err_t open_namespace(const char *label, const char *name, bool read_only, nvs_open_t *open) {
    if (!nvs_any_store()) {
        return ESP_ERR_NVS_NOT_INITIALIZED;
    }
    *open = (nvs_open_t){.store = nvs_find_store(label), .read_only = read_only};
    if (open->store == NULL) {
        return ESP_ERR_NVS_PART_NOT_FOUND;
    }
    return nvs_namespace(open->store, name, !read_only, &open->namespace_index);
}

esp_err_t nvs_open_from_partition(const char *part_name, const char *namespace_name,
                                  nvs_open_mode_t open_mode, nvs_handle_t *out_handle) {
    if (part_name == NULL || out_handle == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    open_handle_t *handle = calloc(1, sizeof *handle);
    if (handle == NULL) {
        return ESP_ERR_NO_MEM;
    }
    nvs_lock();
    esp_err_t result = open_namespace(part_name, namespace_name, open_mode == NVS_READONLY, &handle->open);
    if (result == ESP_OK) {
        *out_handle = handle->number = ++s_last_number;
        handle->next = s_open;
        s_open = handle;
    } else {
        free(handle);
    }
    nvs_unlock();
    return result;
}

esp_err_t nvs_open(const char *namespace_name, nvs_open_mode_t open_mode, nvs_handle_t *out_handle) {
    return nvs_open_from_partition(NVS_DEFAULT_PART_NAME, namespace_name, open_mode, out_handle);
}

static open_handle_t **find_handle(nvs_handle_t number) {
    open_handle_t **link = &s_open;
    while (*link != NULL && (*link)->number != number) {
        link = &(*link)->next;
    }
    return link;
}

void nvs_close(nvs_handle_t handle) {
    nvs_lock();
    open_handle_t **link = find_handle(handle);
    open_handle_t *found = *link;
    if (found != NULL) {
        *link = found->next;
        free(found);
    }
    nvs_unlock();
}

esp_err_t nvs_use(nvs_handle_t handle, bool to_write, nvs_open_t *open) {
    const open_handle_t *found = *find_handle(handle);
    if (found == NULL) {
        return ESP_ERR_NVS_INVALID_HANDLE;
    }
    *open = found->open;
    return to_write && open->read_only ? ESP_ERR_NVS_READ_ONLY : ESP_OK;
}

esp_err_t nvs_commit(nvs_handle_t handle) {
    nvs_open_t open;
    nvs_lock();
    esp_err_t result = nvs_use(handle, false, &open);
    nvs_unlock();
    return result;
}
