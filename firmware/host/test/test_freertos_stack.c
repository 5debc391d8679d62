/* SPDX-License-Identifier: Apache-2.0 */
/* The high-water mark is what the deepest call left free of the stack the task asked for. */
#include "idf_check.h"

#define STACK_BYTES 16384
#define DEEP_BYTES 6000

static SemaphoreHandle_t s_done;

__attribute__((noinline)) static void use_stack(void) {
    volatile char deep[DEEP_BYTES];
    for (size_t i = 0; i < sizeof deep; i++) {
        deep[i] = 1;
    }
}

static void measure(void *argument) {
    (void)argument;
    UBaseType_t before = uxTaskGetStackHighWaterMark(NULL);
    CHECK(before > 0 && before < STACK_BYTES);
    use_stack();
    UBaseType_t after = uxTaskGetStackHighWaterMark(NULL);
    CHECK(after + DEEP_BYTES / 2 < before);
    CHECK(after <= STACK_BYTES - DEEP_BYTES);
    CHECK_EQUAL(uxTaskGetStackHighWaterMark(NULL), after);
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

/* A deep call lowers the mark by what it used, and the mark stays. */
void app_main(void) {
    s_done = xSemaphoreCreateBinary();
    CHECK_EQUAL(xTaskCreate(measure, "measure", STACK_BYTES, NULL, 5, NULL), pdPASS);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    exit(0);
}
