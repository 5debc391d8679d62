/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks and delays: an absolute grid from the board's reset. */
#include "esp_timer.h"

#include "idf_check.h"

enum { TICK_US = 1000000 / configTICK_RATE_HZ };

/* The tick count is the time since reset divided by the tick. */
static void test_tick_follows_the_clock(void) {
    int64_t before_us = esp_timer_get_time();
    TickType_t ticks = xTaskGetTickCount();
    int64_t after_us = esp_timer_get_time();
    CHECK(ticks >= before_us / TICK_US && ticks <= after_us / TICK_US);
    CHECK_EQUAL(pdMS_TO_TICKS(250), 250 * configTICK_RATE_HZ / 1000);
    CHECK_EQUAL(portTICK_PERIOD_MS, TICK_US / 1000);
}

/* A delay of n ticks ends at the n-th tick from now, not before. */
static void test_delay(void) {
    for (TickType_t ticks = 1; ticks <= 4; ticks++) {
        TickType_t start = xTaskGetTickCount();
        vTaskDelay(ticks);
        CHECK(xTaskGetTickCount() - start >= ticks);
    }
}

/* Wake times of a periodic task are start + n periods, however late a wake-up was. */
static void test_delay_until_does_not_drift(void) {
    const TickType_t start = xTaskGetTickCount();
    TickType_t wake = start;
    for (TickType_t n = 1; n <= 50; n++) {
        (void)xTaskDelayUntil(&wake, 2);
        CHECK_EQUAL(wake, start + 2 * n);
        CHECK((int32_t)(xTaskGetTickCount() - wake) >= 0);
    }
}

/* A wake time that has passed does not delay, and says so; the grid stays. */
static void test_missed_wake_time(void) {
    const TickType_t start = xTaskGetTickCount();
    TickType_t wake = start;
    vTaskDelay(6);
    CHECK_EQUAL(xTaskDelayUntil(&wake, 2), pdFALSE);
    CHECK_EQUAL(wake, start + 2);
}

/* The grid holds across the wrap of the 32-bit tick count. */
static void test_wrapped_wake_time(void) {
    TickType_t wake = xTaskGetTickCount() - 5;
    CHECK_EQUAL(xTaskDelayUntil(&wake, 0x7fffffffU + 0x7fffffffU), pdFALSE);
}

static void sleep_long(void *argument) {
    vTaskDelay(portMAX_DELAY - 1);
    xSemaphoreGive((SemaphoreHandle_t)argument);
    vTaskDelete(NULL);
}

/* A delay is cut short by xTaskAbortDelay and, as in FreeRTOS, by suspend and resume. */
static void test_cut_short(void) {
    SemaphoreHandle_t done = xSemaphoreCreateBinary();
    TaskHandle_t sleeper = spawn(sleep_long, done, 5, 1);
    CHECK_SOON(eTaskGetState(sleeper) == eBlocked);
    CHECK_EQUAL(xTaskAbortDelay(sleeper), pdPASS);
    CHECK(xSemaphoreTake(done, portMAX_DELAY));
    sleeper = spawn(sleep_long, done, 5, 1);
    CHECK_SOON(eTaskGetState(sleeper) == eBlocked);
    vTaskSuspend(sleeper);
    vTaskResume(sleeper);
    CHECK(xSemaphoreTake(done, portMAX_DELAY));
    vSemaphoreDelete(done);
}

void app_main(void) {
    vTaskPrioritySet(NULL, 10);
    test_tick_follows_the_clock();
    test_delay();
    test_delay_until_does_not_drift();
    test_missed_wake_time();
    test_wrapped_wake_time();
    test_cut_short();
    exit(0);
}
