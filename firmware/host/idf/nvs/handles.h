/* SPDX-License-Identifier: Apache-2.0 */
/* The stores that are initialised, and the namespaces that are open in them. */
#pragma once
#include "store.h"

typedef struct {
    nvs_store_t *store;
    uint8_t namespace_index;
    bool read_only;
} nvs_open_t;

/* All of NVS has one lock, as ESP-IDF's. */
void nvs_lock(void);
void nvs_unlock(void);
/* With the lock. NULL where it is not initialised. */
nvs_store_t *nvs_find_store(const char *label);
bool nvs_any_store(void);
/* With the lock: what a handle stands for. ESP_ERR_NVS_INVALID_HANDLE, or _READ_ONLY where it is to write. */
esp_err_t nvs_use(nvs_handle_t handle, bool to_write, nvs_open_t *open);
/* With the lock: the number of a namespace, made anew where told. */
esp_err_t nvs_namespace(nvs_store_t *store, const char *name, bool create, uint8_t *index);
esp_err_t nvs_check_key(const char *key);

/* values.c, with the lock. */
bool nvs_lookup(const nvs_open_t *open, int type, const char *key, nvs_place_t *place);
/* Room for an item of this many entries in the active page, a new one where it is full. */
esp_err_t nvs_make_room(nvs_store_t *store, uint32_t span);
esp_err_t nvs_erase_others(const nvs_open_t *open, const char *key, nvs_place_t keep);
nvs_item_t nvs_new_item(const nvs_open_t *open, int type, const char *key);

/* blobs.c, with the lock. */
esp_err_t nvs_erase_chunks(const nvs_open_t *open, const char *key, int first_chunk);
