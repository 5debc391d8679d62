/* SPDX-License-Identifier: Apache-2.0 */
/* A partition in NVS's format, version 2, as ESP-IDF writes and reads it: pages of one sector, each of 126
 * entries of 32 bytes; what changes is written anew, and the old entry marked as erased. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esp_partition.h"
#include "nvs.h"

#define NVS_PAGE_ENTRIES 126U
#define NVS_ENTRY_BYTES 32U
#define NVS_ANY_NAMESPACE 255U
#define NVS_NAMES 0U /* the namespace that holds the others' names */
#define NVS_NO_CHUNK 0xffU
#define NVS_ANY_CHUNK (-1)
#define NVS_TYPE_BLOB_INDEX 0x48 /* a blob: how long, how many chunks; the chunks are NVS_TYPE_BLOB */
#define NVS_SECOND_CHUNK 0x80U   /* the first chunk's number of every other version of a blob */

typedef struct {
    uint8_t namespace_index;
    uint8_t type;
    uint8_t span; /* entries, with those of the data behind it */
    uint8_t chunk;
    uint32_t crc;
    char key[NVS_KEY_NAME_MAX_SIZE];
    union {
        uint8_t value[8];
        struct {
            uint16_t bytes;
            uint16_t reserved;
            uint32_t crc;
        } data;
        struct {
            uint32_t bytes;
            uint8_t chunks;
            uint8_t first_chunk;
            uint16_t reserved;
        } blob;
    };
} nvs_item_t;

typedef struct nvs_store {
    const esp_partition_t *partition;
    const uint8_t *flash; /* the partition's content, mapped */
    esp_partition_mmap_handle_t mapping;
    uint32_t pages;
    uint32_t active; /* page that is written to */
    uint32_t next_sequence;
    struct nvs_store *next;
} nvs_store_t;

/* Where an item begins. */
typedef struct {
    uint32_t page;
    uint32_t entry;
} nvs_place_t;

/* What is looked for. */
typedef struct {
    uint8_t namespace_index; /* or NVS_ANY_NAMESPACE */
    int type;                /* or NVS_TYPE_ANY, which finds no chunk */
    const char *key;         /* or NULL */
    int chunk;               /* or NVS_ANY_CHUNK */
} nvs_query_t;

/* Reads the pages, makes good what a reset cut short. ESP_ERR_NVS_NO_FREE_PAGES where none is left to write
 * to, ESP_ERR_NVS_NEW_VERSION_FOUND for another format. */
esp_err_t nvs_store_open(nvs_store_t *store, const esp_partition_t *partition);
void nvs_store_close(nvs_store_t *store);

const nvs_item_t *nvs_store_item(const nvs_store_t *store, nvs_place_t place);
const uint8_t *nvs_store_data(const nvs_store_t *store, nvs_place_t place);
/* The first place at or after *place that the query finds; begin with {0, 0}. */
bool nvs_store_find(const nvs_store_t *store, const nvs_query_t *query, nvs_place_t *place);
/* Moves on behind the item. */
void nvs_store_step(const nvs_store_t *store, nvs_place_t *place);

/* Entries of the active page that are left. */
uint32_t nvs_store_room(const nvs_store_t *store);
/* Begins a new page, and frees the one with the most erased entries when only one is blank.
 * ESP_ERR_NVS_NOT_ENOUGH_SPACE where nothing can be freed. */
esp_err_t nvs_store_new_page(nvs_store_t *store);
/* Appends an item, whose digests are filled in, with data behind it. */
esp_err_t nvs_store_append(nvs_store_t *store, nvs_item_t *item, const void *data, size_t bytes);
esp_err_t nvs_store_erase(nvs_store_t *store, nvs_place_t place);
void nvs_store_count(const nvs_store_t *store, nvs_stats_t *stats);
