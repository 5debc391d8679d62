/* SPDX-License-Identifier: Apache-2.0 */
/* glibc's heap, reported as an esp32's: a budget less what is in use beyond the start, less the tasks'
 * stacks as asked for. The minimum is the lowest figure anyone has asked to see.
 *
 * What is refused goes by what the firmware has itself, and its tasks' stacks: libraries of the host, which
 * are in the reported figures, are never starved, nor do they starve the firmware. */
#define _GNU_SOURCE
#include "esp_heap_caps.h"

#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../kernel/kernel.h"
#include "esp_system.h"
#include "heap.h"
#include "sdkconfig.h"
#include "strict.h"

#define BUDGET_BYTES (280U * 1024U)
#define HEADER_BYTES 8 /* glibc's of a block */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *block);

static pthread_once_t s_once = PTHREAD_ONCE_INIT;
static size_t s_in_use_at_start;
static size_t s_minimum_free = BUDGET_BYTES;
static size_t s_taken;
static esp_alloc_failed_hook_t s_failed_hook;

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

static void call_failed_hook(size_t bytes, uint32_t caps, const char *function) {
    esp_alloc_failed_hook_t hook = __atomic_load_n(&s_failed_hook, __ATOMIC_ACQUIRE);
    if (hook != NULL) {
        hook(bytes, caps, function);
    }
#if CONFIG_HEAP_ABORT_WHEN_ALLOCATION_FAILS
    esp_system_abort("Memory allocation failed");
#endif
}

esp_err_t heap_caps_register_failed_alloc_callback(esp_alloc_failed_hook_t callback) {
    if (callback == NULL) {
        return ESP_ERR_INVALID_ARG;
    }
    __atomic_store_n(&s_failed_hook, callback, __ATOMIC_RELEASE);
    return ESP_OK;
}

/* ESP-IDF lets an interrupt allocate, and advises against it. */
static void check_context(const void *place) {
    if (strict_in_interrupt() &&
        strict_is_violated(STRICT_HEAP_IN_INTERRUPT, place, "the heap is used in an interrupt (at 0x%lx)",
                           strict_offset(place))) {
        strict_say(
            "the heap is used in an interrupt (at 0x%lx): it may wait for whoever has it, and is not made "
            "for that",
            strict_offset(place));
        abort();
    }
}

/* Bytes that the firmware's heap has not: refused in strict mode, with what a chip does then. */
static bool is_refused(size_t bytes, uint32_t caps, const char *function, const void *place) {
    check_context(place);
    if (!available(caps)) {
        call_failed_hook(bytes, caps, function);
        return true;
    }
    size_t taken = __atomic_load_n(&s_taken, __ATOMIC_RELAXED);
    size_t left = taken < BUDGET_BYTES ? BUDGET_BYTES - taken : 0;
    if (bytes <= left ||
        !strict_is_violated(
            STRICT_HEAP, place,
            "%zu bytes asked of a heap with %zu free, in task %s (at 0x%lx): a chip gives none", bytes, left,
            strict_task_name(), strict_offset(place))) {
        return false;
    }
    call_failed_hook(bytes, caps, function);
    return true;
}

static size_t size_of(void *block) {
    return block != NULL ? malloc_usable_size(block) + HEADER_BYTES : 0;
}

void heap_take(size_t bytes) {
    __atomic_add_fetch(&s_taken, bytes, __ATOMIC_RELAXED);
}

/* A block that a library made may be freed by the firmware: what is taken does not fall below nothing. */
void heap_give(size_t bytes) {
    size_t taken = __atomic_load_n(&s_taken, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&s_taken, &taken, taken > bytes ? taken - bytes : 0, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

bool heap_has_room(size_t bytes) {
    return !is_refused(bytes, MALLOC_CAP_DEFAULT, "xTaskCreate", __builtin_return_address(0));
}

static void *counted(void *block) {
    heap_take(size_of(block));
    return block;
}

static void *allocate(size_t bytes, uint32_t caps, const char *function, const void *place) {
    return is_refused(bytes, caps, function, place) ? NULL : counted(__real_malloc(bytes));
}

static void *allocate_zeroed(size_t n, size_t bytes, uint32_t caps, const char *function, const void *place) {
    size_t product;
    bool refused = __builtin_mul_overflow(n, bytes, &product) || is_refused(product, caps, function, place);
    return refused ? NULL : counted(__real_calloc(n, bytes));
}

static void *reallocate(void *block, size_t bytes, uint32_t caps, const char *function, const void *place) {
    size_t before = size_of(block);
    if (is_refused(bytes > before ? bytes - before : 0, caps, function, place)) {
        return NULL;
    }
    void *moved = __real_realloc(block, bytes);
    if (moved != NULL || bytes == 0) {
        heap_give(before);
        heap_take(size_of(moved));
    }
    return moved;
}

static void *allocate_aligned(size_t alignment, size_t bytes, uint32_t caps, const void *place) {
    bool refused = is_refused(bytes, caps, "heap_caps_aligned_alloc", place);
    return refused
               ? NULL
               : counted(__real_aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment));
}

static void give_back(void *block, const void *place) {
    if (block != NULL) {
        check_context(place);
        heap_give(size_of(block));
        __real_free(block);
    }
}

void *heap_caps_malloc(size_t size, uint32_t caps) {
    return allocate(size, caps, __func__, __builtin_return_address(0));
}

void *heap_caps_calloc(size_t n, size_t size, uint32_t caps) {
    return allocate_zeroed(n, size, caps, __func__, __builtin_return_address(0));
}

void *heap_caps_realloc(void *ptr, size_t size, uint32_t caps) {
    return reallocate(ptr, size, caps, __func__, __builtin_return_address(0));
}

void *heap_caps_aligned_alloc(size_t alignment, size_t size, uint32_t caps) {
    return allocate_aligned(alignment, size, caps, __builtin_return_address(0));
}

void heap_caps_free(void *ptr) {
    give_back(ptr, __builtin_return_address(0));
}

/* The firmware's own calls (ld --wrap); libraries have glibc's. Weak: a test may play memory that is not
 * there.
 */
#define WRAPPED __attribute__((weak))

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *block);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t most);
int __wrap_vasprintf(char **text, const char *format, va_list arguments);
int __wrap_asprintf(char **text, const char *format, ...);

WRAPPED void *__wrap_malloc(size_t size) {
    return allocate(size, MALLOC_CAP_DEFAULT, "heap_caps_malloc_default", __builtin_return_address(0));
}

WRAPPED void *__wrap_calloc(size_t n, size_t size) {
    return allocate_zeroed(n, size, MALLOC_CAP_DEFAULT, "heap_caps_calloc", __builtin_return_address(0));
}

WRAPPED void *__wrap_realloc(void *block, size_t size) {
    return reallocate(block, size, MALLOC_CAP_DEFAULT, "heap_caps_realloc_default",
                      __builtin_return_address(0));
}

WRAPPED void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return allocate_aligned(alignment, size, MALLOC_CAP_DEFAULT, __builtin_return_address(0));
}

WRAPPED void __wrap_free(void *block) {
    give_back(block, __builtin_return_address(0));
}

WRAPPED char *__wrap_strndup(const char *text, size_t most) {
    size_t length = strnlen(text, most);
    char *copy =
        allocate(length + 1, MALLOC_CAP_DEFAULT, "heap_caps_malloc_default", __builtin_return_address(0));
    if (copy != NULL) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

WRAPPED char *__wrap_strdup(const char *text) {
    return __wrap_strndup(text, SIZE_MAX);
}

WRAPPED int __wrap_vasprintf(char **text, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    *text = length < 0 ? NULL
                       : allocate((size_t)length + 1, MALLOC_CAP_DEFAULT, "heap_caps_malloc_default",
                                  __builtin_return_address(0));
    return *text != NULL ? vsnprintf(*text, (size_t)length + 1, format, arguments) : -1;
}

WRAPPED int __wrap_asprintf(char **text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = __wrap_vasprintf(text, format, arguments);
    va_end(arguments);
    return length;
}

/* Of a product that uses cJSON, which is a library here and a component there: its memory is the firmware's.
 */
typedef struct {
    void *(*malloc_fn)(size_t size);
    void (*free_fn)(void *block);
} cjson_hooks_t;
__attribute__((weak)) void cJSON_InitHooks(cjson_hooks_t *hooks);

void heap_init(void) {
    (void)free_bytes(); /* what is in use now is the host's, not the firmware's */
    if (cJSON_InitHooks != NULL) {
        cjson_hooks_t hooks = {.malloc_fn = __wrap_malloc, .free_fn = __wrap_free};
        cJSON_InitHooks(&hooks);
    }
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
