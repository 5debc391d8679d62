/* SPDX-License-Identifier: Apache-2.0 */
/* glibc's heap, reported as an esp32's: a budget less what is in use beyond the start, less the tasks'
 * stacks as asked for. The minimum is the lowest figure anyone has asked to see. */
#include "esp_heap_caps.h"

#include <malloc.h>
#include <pthread.h>
#include <string.h>

#include "../kernel/kernel.h"
#include "esp_system.h"

#define BUDGET_BYTES (280U * 1024U)

static pthread_once_t s_once = PTHREAD_ONCE_INIT;
static size_t s_in_use_at_start;
static size_t s_minimum_free = BUDGET_BYTES;

static size_t in_use(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void remember_start(void) {
    s_in_use_at_start = in_use();
}

static size_t used_bytes(void) {
    pthread_once(&s_once, remember_start);
    size_t now = in_use();
    return (now > s_in_use_at_start ? now - s_in_use_at_start : 0) + task_stacks_bytes();
}

static size_t free_bytes(void) {
    size_t used = used_bytes();
    size_t available = used < BUDGET_BYTES ? BUDGET_BYTES - used : 0;
    size_t minimum = __atomic_load_n(&s_minimum_free, __ATOMIC_RELAXED);
    while (available < minimum && !__atomic_compare_exchange_n(&s_minimum_free, &minimum, available, false,
                                                               __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return available;
}

static bool available(uint32_t caps) {
    return (caps & MALLOC_CAP_SPIRAM) == 0;
}

void *heap_caps_malloc(size_t size, uint32_t caps) {
    return available(caps) ? malloc(size) : NULL;
}

void *heap_caps_calloc(size_t n, size_t size, uint32_t caps) {
    return available(caps) ? calloc(n, size) : NULL;
}

void *heap_caps_realloc(void *ptr, size_t size, uint32_t caps) {
    return available(caps) ? realloc(ptr, size) : NULL;
}

void *heap_caps_aligned_alloc(size_t alignment, size_t size, uint32_t caps) {
    return available(caps) ? aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment) : NULL;
}

void heap_caps_free(void *ptr) {
    free(ptr);
}

size_t heap_caps_get_total_size(uint32_t caps) {
    return available(caps) ? BUDGET_BYTES : 0;
}

size_t heap_caps_get_free_size(uint32_t caps) {
    return available(caps) ? free_bytes() : 0;
}

size_t heap_caps_get_minimum_free_size(uint32_t caps) {
    (void)free_bytes();
    return available(caps) ? __atomic_load_n(&s_minimum_free, __ATOMIC_RELAXED) : 0;
}

/* No fragmentation is modelled. */
size_t heap_caps_get_largest_free_block(uint32_t caps) {
    return heap_caps_get_free_size(caps);
}

void heap_caps_get_info(multi_heap_info_t *info, uint32_t caps) {
    memset(info, 0, sizeof *info);
    info->total_free_bytes = heap_caps_get_free_size(caps);
    info->total_allocated_bytes = heap_caps_get_total_size(caps) - info->total_free_bytes;
    info->largest_free_block = info->total_free_bytes;
    info->minimum_free_bytes = heap_caps_get_minimum_free_size(caps);
}

bool heap_caps_check_integrity_all(bool print_errors) {
    (void)print_errors;
    return true; /* glibc checks as it goes and aborts */
}

uint32_t esp_get_free_heap_size(void) {
    return (uint32_t)free_bytes();
}

uint32_t esp_get_free_internal_heap_size(void) {
    return esp_get_free_heap_size();
}

uint32_t esp_get_minimum_free_heap_size(void) {
    return (uint32_t)heap_caps_get_minimum_free_size(MALLOC_CAP_DEFAULT);
}
