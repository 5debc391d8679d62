/* SPDX-License-Identifier: Apache-2.0 */
/* The cycle counter: one a core, core 1's behind core 0's by what the board says. */
#include "esp_cpu.h"
#include "esp_timer.h"
#include "idf_check.h"

#define READINGS 1000

typedef struct {
    TaskHandle_t waiter;
    int core;
    esp_cpu_cycle_count_t before;
    esp_cpu_cycle_count_t after;
} reading_t;

static void read_counter(void *argument) {
    reading_t *reading = argument;
    reading->core = esp_cpu_get_core_id();
    reading->before = esp_cpu_get_cycle_count();
    reading->after = esp_cpu_get_cycle_count();
    xTaskNotifyGive(reading->waiter);
    vTaskDelete(NULL);
}

static reading_t read_on(BaseType_t core) {
    reading_t reading = {.waiter = xTaskGetCurrentTaskHandle()};
    spawn(read_counter, &reading, 20, core);
    ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
    return reading;
}

/* A reading on core 1 between two on core 0 is what core 0's counter was at some moment between them, less
 * the offset. */
static void test_offset(uint32_t behind_us) {
    reading_t first = read_on(0);
    reading_t second = read_on(1);
    reading_t third = read_on(0);
    CHECK_EQUAL(first.core, 0);
    CHECK_EQUAL(second.core, 1);
    esp_cpu_cycle_count_t on_core0 = second.before + behind_us * CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ;
    CHECK(on_core0 - first.after < 1U << 31);
    CHECK(third.before - on_core0 < 1U << 31);
}

/* A difference across the cores that leaves the offset in is no time: begun on core 1 and ended on core 0 it
 * is longer by the offset than what really passed. */
static void test_raw_difference(uint32_t behind_us) {
    int64_t begin_us = esp_timer_get_time();
    reading_t begin = read_on(1);
    reading_t end = read_on(0);
    int64_t most_us = esp_timer_get_time() - begin_us + 1;
    int64_t raw_us = (end.before - begin.after) / CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ;
    CHECK(raw_us >= behind_us);
    CHECK(raw_us <= behind_us + most_us);
}

/* On one core, and for a task that moves, each reading is some core's: the counter never goes by both at
 * once. */
static void test_free_task(uint32_t behind_us) {
    const uint32_t offset = behind_us * CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ;
    for (int i = 0; i < READINGS; i++) {
        int64_t before_us = esp_timer_get_time();
        esp_cpu_cycle_count_t before = esp_cpu_get_cycle_count();
        esp_cpu_cycle_count_t after = esp_cpu_get_cycle_count();
        uint32_t most = (uint32_t)(esp_timer_get_time() - before_us + 1) * CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ;
        CHECK(after - before <= most || after - before - offset <= most || after - before + offset <= most);
    }
}

static void free_task(void *argument) {
    reading_t *reading = argument;
    test_free_task((uint32_t)vboard()->core1_behind_us);
    xTaskNotifyGive(reading->waiter);
    vTaskDelete(NULL);
}

void app_main(void) {
    uint32_t behind_us = (uint32_t)vboard()->core1_behind_us;
    const char *expected = getenv("EXPECTED_BEHIND_US");
    CHECK_EQUAL(behind_us, expected != NULL ? atoi(expected) : 190322);
    vTaskPrioritySet(NULL, 10);
#if CONFIG_SOC_CPU_CORES_NUM > 1
    test_offset(behind_us);
    test_raw_difference(behind_us);
#endif
    reading_t reading = {.waiter = xTaskGetCurrentTaskHandle()};
    spawn(free_task, &reading, 20, tskNO_AFFINITY);
    ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
    exit(0);
}
