/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of different priority share a core and the heap: whoever is preempted in the allocator is waited for
 * asleep. A lock that is spun on would never be given back under real-time priority. */
#include <stdatomic.h>
#include <stdlib.h>

#include "idf_check.h"

enum { BLOCKS = 64, DEPTH = 20, ROUNDS = 500, STACK_BYTES = 16384 };

static atomic_bool s_stop;
static SemaphoreHandle_t s_ended;

static void *allocate(uint32_t path, int depth);

/* Two ways down, which no compiler makes one of, so that there are many stacks that allocate: a sanitizer
 * keeps each that it has not seen. */
static __attribute__((noinline)) void *go_left(uint32_t path, int depth) {
    void *volatile block = allocate(path >> 1, depth - 1);
    return block;
}

static __attribute__((noinline)) void *go_right(uint32_t path, int depth) {
    void *volatile block = allocate(path >> 1, depth - 1);
    __asm__ volatile("nop");
    return block;
}

static void *allocate(uint32_t path, int depth) {
    if (depth == 0) {
        return malloc(16 + path % 1024);
    }
    return (path & 1) != 0 ? go_right(path, depth) : go_left(path, depth);
}

static void allocate_and_free(uint32_t *random) {
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        *random = *random * 1103515245U + 12345U;
        blocks[i] = allocate(*random >> 8, DEPTH);
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
}

static void allocate_all_the_time(void *unused) {
    (void)unused;
    uint32_t random = 1;
    while (!atomic_load(&s_stop)) {
        allocate_and_free(&random);
    }
    xSemaphoreGive(s_ended);
    vTaskDelete(NULL);
}

static void allocate_each_tick(void *unused) {
    (void)unused;
    uint32_t random = 2;
    for (int i = 0; i < ROUNDS; i++) {
        vTaskDelay(1);
        allocate_and_free(&random);
    }
    atomic_store(&s_stop, true);
    xSemaphoreGive(s_ended);
    vTaskDelete(NULL);
}

/* It ends, which is what is asked of it. */
static void test_preempted_allocation(void) {
    s_ended = xSemaphoreCreateCounting(2, 0);
    CHECK_EQUAL(xTaskCreatePinnedToCore(allocate_all_the_time, "low", STACK_BYTES, NULL, 3, NULL, 0), pdPASS);
    CHECK_EQUAL(xTaskCreatePinnedToCore(allocate_each_tick, "high", STACK_BYTES, NULL, 20, NULL, 0), pdPASS);
    CHECK_EQUAL(xSemaphoreTake(s_ended, portMAX_DELAY), pdTRUE);
    CHECK_EQUAL(xSemaphoreTake(s_ended, portMAX_DELAY), pdTRUE);
    vSemaphoreDelete(s_ended);
}

void app_main(void) {
    vTaskPrioritySet(NULL, 21);
    test_preempted_allocation();
    exit(0);
}
