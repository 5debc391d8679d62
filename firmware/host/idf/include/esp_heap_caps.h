/* SPDX-License-Identifier: Apache-2.0 */
/* One heap, glibc's; the sizes are modelled on an esp32's budget, see docs/explain/host-idf.md. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "esp_attr.h"
#include "esp_err.h"
#include "multi_heap.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MALLOC_CAP_EXEC (1 << 0)
#define MALLOC_CAP_32BIT (1 << 1)
#define MALLOC_CAP_8BIT (1 << 2)
#define MALLOC_CAP_DMA (1 << 3)
#define MALLOC_CAP_SPIRAM (1 << 10)
#define MALLOC_CAP_INTERNAL (1 << 11)
#define MALLOC_CAP_DEFAULT (1 << 12)

/* Memory with MALLOC_CAP_SPIRAM is refused (NULL, size 0), as on a module without PSRAM. */
void *heap_caps_malloc(size_t size, uint32_t caps);
void *heap_caps_calloc(size_t n, size_t size, uint32_t caps);
void *heap_caps_realloc(void *ptr, size_t size, uint32_t caps);
void *heap_caps_aligned_alloc(size_t alignment, size_t size, uint32_t caps);
void heap_caps_free(void *ptr);
size_t heap_caps_get_total_size(uint32_t caps);
size_t heap_caps_get_free_size(uint32_t caps);
size_t heap_caps_get_minimum_free_size(uint32_t caps);
size_t heap_caps_get_largest_free_block(uint32_t caps);
void heap_caps_get_info(multi_heap_info_t *info, uint32_t caps);
bool heap_caps_check_integrity_all(bool print_errors);

/* Called for each allocation that is refused. */
typedef void (*esp_alloc_failed_hook_t)(size_t size, uint32_t caps, const char *function_name);
esp_err_t heap_caps_register_failed_alloc_callback(esp_alloc_failed_hook_t callback);

#ifdef __cplusplus
}
#endif
