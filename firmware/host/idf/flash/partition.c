/* SPDX-License-Identifier: Apache-2.0 */
/* The partition table as it lies in flash. A blank flash (a program started by hand) gets the table of
 * firmware/partitions.csv's shape: two OTA slots, and what the benches may write to. */
#include "esp_partition.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "esp_flash_partitions.h"
#include "esp_log.h"
#include "nor.h"
#include "vboard.h"

#define MAX_MAPPINGS 16

struct esp_partition_iterator_opaque_ {
    esp_partition_type_t type;
    esp_partition_subtype_t subtype;
    const char *label;
    size_t next;
    const esp_partition_t *found;
};

static const char *TAG = "partition";
static esp_partition_t s_partitions[ESP_PARTITION_TABLE_MAX_ENTRIES];
static size_t s_count;
static pthread_once_t s_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t s_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    void *memory;
    size_t bytes;
} s_mappings[MAX_MAPPINGS];

#define ENTRY(TYPE, SUBTYPE, OFFSET, BYTES, LABEL)                                                           \
    {                                                                                                        \
        ESP_PARTITION_MAGIC, ESP_PARTITION_TYPE_##TYPE, ESP_PARTITION_SUBTYPE_##TYPE##_##SUBTYPE,            \
            {OFFSET, BYTES}, LABEL, 0                                                                        \
    }

static void write_default_table(void) {
    static const esp_partition_info_t entries[] = {
        ENTRY(DATA, NVS, 0x9000, 0x4000, "nvs"),        ENTRY(DATA, OTA, 0xd000, 0x2000, "otadata"),
        ENTRY(DATA, PHY, 0xf000, 0x1000, "phy_init"),   ENTRY(APP, OTA_0, 0x10000, 0x1f0000, "ota_0"),
        ENTRY(APP, OTA_1, 0x200000, 0x1f0000, "ota_1"), ENTRY(DATA, UNDEFINED, 0x3f0000, 0x10000, "scratch"),
    };
    nor_program(ESP_PARTITION_TABLE_OFFSET, entries, sizeof entries);
}

static void add(const esp_partition_info_t *entry) {
    esp_partition_t *partition = &s_partitions[s_count++];
    partition->type = entry->type;
    partition->subtype = entry->subtype;
    partition->address = entry->pos.offset;
    partition->size = entry->pos.size;
    partition->erase_size = NOR_SECTOR_BYTES;
    partition->encrypted = (entry->flags & PART_FLAG_ENCRYPTED) != 0;
    partition->readonly = (entry->flags & PART_FLAG_READONLY) != 0;
    memcpy(partition->label, entry->label, sizeof entry->label);
}

static void load(void) {
    if (!vboard()->flash_given) {
        write_default_table();
    }
    esp_partition_info_t entries[ESP_PARTITION_TABLE_MAX_ENTRIES];
    if (nor_read(ESP_PARTITION_TABLE_OFFSET, entries, sizeof entries) != ESP_OK) {
        ESP_LOGE(TAG, "no partition table can be read at 0x%x", ESP_PARTITION_TABLE_OFFSET);
        return;
    }
    for (size_t i = 0; i < ESP_PARTITION_TABLE_MAX_ENTRIES && entries[i].magic == ESP_PARTITION_MAGIC; i++) {
        add(&entries[i]);
    }
}

static bool matches(const esp_partition_t *partition, esp_partition_iterator_t wanted) {
    return (wanted->type == ESP_PARTITION_TYPE_ANY || wanted->type == partition->type) &&
           (wanted->subtype == ESP_PARTITION_SUBTYPE_ANY || wanted->subtype == partition->subtype) &&
           (wanted->label == NULL || strcmp(wanted->label, partition->label) == 0);
}

esp_partition_iterator_t esp_partition_find(esp_partition_type_t type, esp_partition_subtype_t subtype,
                                            const char *label) {
    pthread_once(&s_once, load);
    esp_partition_iterator_t iterator = calloc(1, sizeof *iterator);
    if (iterator == NULL) {
        return NULL;
    }
    iterator->type = type;
    iterator->subtype = subtype;
    iterator->label = label;
    return esp_partition_next(iterator);
}

esp_partition_iterator_t esp_partition_next(esp_partition_iterator_t iterator) {
    while (iterator->next < s_count) {
        const esp_partition_t *partition = &s_partitions[iterator->next++];
        if (matches(partition, iterator)) {
            iterator->found = partition;
            return iterator;
        }
    }
    esp_partition_iterator_release(iterator);
    return NULL;
}

const esp_partition_t *esp_partition_get(esp_partition_iterator_t iterator) {
    return iterator->found;
}

void esp_partition_iterator_release(esp_partition_iterator_t iterator) {
    free(iterator);
}

const esp_partition_t *esp_partition_find_first(esp_partition_type_t type, esp_partition_subtype_t subtype,
                                                const char *label) {
    esp_partition_iterator_t iterator = esp_partition_find(type, subtype, label);
    const esp_partition_t *partition = iterator != NULL ? esp_partition_get(iterator) : NULL;
    esp_partition_iterator_release(iterator);
    return partition;
}

const esp_partition_t *esp_partition_verify(const esp_partition_t *partition) {
    const esp_partition_t *known =
        esp_partition_find_first(partition->type, partition->subtype, partition->label);
    return known != NULL && esp_partition_check_identity(known, partition) ? known : NULL;
}

static esp_err_t check(const esp_partition_t *partition, size_t offset, size_t size) {
    if (partition == NULL || offset > partition->size) {
        return ESP_ERR_INVALID_ARG;
    }
    return size > partition->size - offset ? ESP_ERR_INVALID_SIZE : ESP_OK;
}

static esp_err_t check_writable(const esp_partition_t *partition, size_t offset, size_t size) {
    esp_err_t result = check(partition, offset, size);
    return result == ESP_OK && partition->readonly ? ESP_ERR_NOT_ALLOWED : result;
}

esp_err_t esp_partition_read(const esp_partition_t *partition, size_t src_offset, void *dst, size_t size) {
    esp_err_t result = check(partition, src_offset, size);
    return result == ESP_OK ? nor_read(partition->address + (uint32_t)src_offset, dst, size) : result;
}

esp_err_t esp_partition_write(const esp_partition_t *partition, size_t dst_offset, const void *src,
                              size_t size) {
    esp_err_t result = check_writable(partition, dst_offset, size);
    return result == ESP_OK ? nor_program(partition->address + (uint32_t)dst_offset, src, size) : result;
}

esp_err_t esp_partition_erase_range(const esp_partition_t *partition, size_t offset, size_t size) {
    esp_err_t result = check_writable(partition, offset, size);
    if (result == ESP_OK && offset % NOR_SECTOR_BYTES != 0) {
        result = ESP_ERR_INVALID_ARG;
    }
    return result == ESP_OK ? nor_erase(partition->address + (uint32_t)offset, size) : result;
}

static esp_err_t keep_mapping(void *memory, size_t bytes, esp_partition_mmap_handle_t *out_handle) {
    esp_err_t result = ESP_ERR_NO_MEM;
    pthread_mutex_lock(&s_lock);
    for (uint32_t i = 0; i < MAX_MAPPINGS && result != ESP_OK; i++) {
        if (s_mappings[i].memory == NULL) {
            s_mappings[i].memory = memory;
            s_mappings[i].bytes = bytes;
            *out_handle = i + 1;
            result = ESP_OK;
        }
    }
    pthread_mutex_unlock(&s_lock);
    return result;
}

esp_err_t esp_partition_mmap(const esp_partition_t *partition, size_t offset, size_t size,
                             esp_partition_mmap_memory_t memory, const void **out_ptr,
                             esp_partition_mmap_handle_t *out_handle) {
    (void)memory;
    esp_err_t result = check(partition, offset, size);
    if (result != ESP_OK) {
        return result;
    }
    size_t start = partition->address + offset;
    size_t into_page = start % (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = size + into_page;
    uint8_t *page = mmap(NULL, bytes, PROT_READ, MAP_SHARED, vboard()->flash_fd, (off_t)(start - into_page));
    if (page == MAP_FAILED) {
        return ESP_ERR_NO_MEM;
    }
    result = keep_mapping(page, bytes, out_handle);
    if (result != ESP_OK) {
        munmap(page, bytes);
        return result;
    }
    *out_ptr = page + into_page;
    return ESP_OK;
}

void esp_partition_munmap(esp_partition_mmap_handle_t handle) {
    if (handle == 0 || handle > MAX_MAPPINGS) {
        return;
    }
    pthread_mutex_lock(&s_lock);
    if (s_mappings[handle - 1].memory != NULL) {
        munmap(s_mappings[handle - 1].memory, s_mappings[handle - 1].bytes);
        s_mappings[handle - 1].memory = NULL;
    }
    pthread_mutex_unlock(&s_lock);
}

bool esp_partition_check_identity(const esp_partition_t *partition_1, const esp_partition_t *partition_2) {
    uint8_t digest_1[32];
    uint8_t digest_2[32];
    if (partition_1->type != partition_2->type || partition_1->subtype != partition_2->subtype) {
        return false;
    }
    if (partition_1->address == partition_2->address && partition_1->size == partition_2->size) {
        return true;
    }
    return esp_partition_get_sha256(partition_1, digest_1) == ESP_OK &&
           esp_partition_get_sha256(partition_2, digest_2) == ESP_OK &&
           memcmp(digest_1, digest_2, sizeof digest_1) == 0;
}

uint32_t esp_partition_get_main_flash_sector_size(void) {
    return NOR_SECTOR_BYTES;
}
