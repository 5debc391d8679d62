/* SPDX-License-Identifier: Apache-2.0 */
/* Notifications: a task's own counter, bits or mailbox. */
#include "idf_check.h"

static TaskHandle_t s_main;

/* Every give counts: taken one by one or all at once. */
static void test_counts(void) {
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(xTaskNotifyGive(s_main), pdPASS);
    }
    CHECK_EQUAL(ulTaskNotifyTake(pdFALSE, 0), 3);
    CHECK_EQUAL(ulTaskNotifyTake(pdFALSE, 0), 2);
    xTaskNotifyGive(s_main);
    CHECK_EQUAL(ulTaskNotifyTake(pdTRUE, 0), 2);
    CHECK_EQUAL(ulTaskNotifyTake(pdTRUE, 0), 0);
}

/* Bits add up, are cleared as told, and a value is not overwritten unless told. */
static void test_values(void) {
    uint32_t value = 0;
    xTaskNotify(s_main, 0x1, eSetBits);
    xTaskNotify(s_main, 0x4, eSetBits);
    CHECK(xTaskNotifyWait(0, 0x1, &value, 0));
    CHECK_EQUAL(value, 0x5);
    CHECK(!xTaskNotifyWait(0, 0, &value, 0));
    CHECK_EQUAL(value, 0x4);
    CHECK_EQUAL(ulTaskNotifyValueClear(NULL, UINT32_MAX), 0x4);
    CHECK_EQUAL(xTaskNotify(s_main, 11, eSetValueWithoutOverwrite), pdPASS);
    CHECK_EQUAL(xTaskNotify(s_main, 12, eSetValueWithoutOverwrite), pdFAIL);
    uint32_t previous = 0;
    CHECK_EQUAL(xTaskNotifyAndQuery(s_main, 13, eSetValueWithOverwrite, &previous), pdPASS);
    CHECK_EQUAL(previous, 11);
    CHECK(xTaskNotifyWait(0, UINT32_MAX, &value, 0));
    CHECK_EQUAL(value, 13);
}

/* A wait without a notification ends at its tick. */
static void test_timeout(void) {
    TickType_t start = xTaskGetTickCount();
    CHECK_EQUAL(ulTaskNotifyTake(pdTRUE, 3), 0);
    CHECK(!xTaskNotifyWait(0, 0, NULL, 3));
    CHECK(xTaskGetTickCount() - start >= 6);
    xTaskNotify(s_main, 0, eNoAction);
    CHECK_EQUAL(xTaskNotifyStateClear(NULL), pdPASS);
    CHECK(!xTaskNotifyWait(0, 0, NULL, 0));
}

static void give_many(void *argument) {
    int count = (int)(intptr_t)argument;
    for (int i = 0; i < count; i++) {
        xTaskNotifyGive(s_main);
    }
    vTaskDelete(NULL);
}

/* Gives from tasks on both cores to a waiting task are all counted. */
static void test_gives_from_both_cores(void) {
    const uint32_t each = 1000;
    spawn(give_many, (void *)(intptr_t)each, 5, 0);
    spawn(give_many, (void *)(intptr_t)each, 5, 1);
    uint32_t taken = 0;
    while (taken < 2 * each) {
        taken += ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
    }
    CHECK_EQUAL(taken, 2 * each);
}

void app_main(void) {
    s_main = xTaskGetCurrentTaskHandle();
    vTaskPrioritySet(NULL, 10);
    test_counts();
    test_values();
    test_timeout();
    test_gives_from_both_cores();
    exit(0);
}
