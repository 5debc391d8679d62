/* SPDX-License-Identifier: Apache-2.0 */
/* Software timers: called back in order of expiry, once or again and again. */
#include "freertos/timers.h"

#include "idf_check.h"

static SemaphoreHandle_t s_done;
static int s_order[8];
static int s_fired;

static void note(TimerHandle_t timer) {
    s_order[s_fired++] = (int)(intptr_t)pvTimerGetTimerID(timer);
    xSemaphoreGive(s_done);
}

static TimerHandle_t create(TickType_t period, BaseType_t reload, int id) {
    TimerHandle_t timer = xTimerCreate("test", period, reload, (void *)(intptr_t)id, note);
    CHECK(timer != NULL && !xTimerIsTimerActive(timer));
    return timer;
}

/* The timer that expires first is called first, whatever the order of starting. */
static void test_order_of_expiry(void) {
    TimerHandle_t late = create(12, pdFALSE, 2);
    TimerHandle_t early = create(4, pdFALSE, 1);
    xTimerStart(late, 0);
    xTimerStart(early, 0);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY) && xSemaphoreTake(s_done, portMAX_DELAY));
    CHECK_EQUAL(s_order[0], 1);
    CHECK_EQUAL(s_order[1], 2);
    CHECK(!xTimerIsTimerActive(late) && !xTimerIsTimerActive(early));
    xTimerDelete(late, 0);
    xTimerDelete(early, 0);
}

/* An auto-reload timer fires until it is stopped, on a grid of its period; a stopped one is silent. */
static void test_reload(void) {
    TimerHandle_t timer = create(2, pdTRUE, 3);
    xTimerStart(timer, 0);
    TickType_t first = xTimerGetExpiryTime(timer);
    for (int i = 0; i < 3; i++) {
        CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    }
    CHECK_EQUAL((xTimerGetExpiryTime(timer) - first) % 2, 0);
    xTimerStop(timer, 0);
    (void)xSemaphoreTake(s_done, 0);
    CHECK(!xSemaphoreTake(s_done, 6));
    xTimerDelete(timer, 0);
}

void app_main(void) {
    s_done = xSemaphoreCreateCounting(8, 0);
    vTaskPrioritySet(NULL, 10);
    test_order_of_expiry();
    s_fired = 0;
    test_reload();
    exit(0);
}
