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
    CHECK_SOON(xTimerIsTimerActive(timer));
    TickType_t first = xTimerGetExpiryTime(timer);
    for (int i = 0; i < 3; i++) {
        CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    }
    CHECK_EQUAL((xTimerGetExpiryTime(timer) - first) % 2, 0);
    xTimerStop(timer, 0);
    CHECK_SOON(!xTimerIsTimerActive(timer));
    while (xSemaphoreTake(s_done, 0)) {
    }
    CHECK(!xSemaphoreTake(s_done, 6));
    xTimerDelete(timer, 0);
}

static TaskHandle_t s_called_by;
static void *s_seen_after_delete;
static SemaphoreHandle_t s_inside;
static SemaphoreHandle_t s_go_on;

/* Deletes itself, or is deleted while it is here, and then looks at its timer. */
static void outlive(TimerHandle_t timer) {
    s_called_by = xTaskGetCurrentTaskHandle();
    if (pvTimerGetTimerID(timer) == NULL) {
        CHECK_EQUAL(xTimerDelete(timer, 0), pdPASS);
    }
    xSemaphoreGive(s_inside);
    CHECK(xSemaphoreTake(s_go_on, portMAX_DELAY));
    s_seen_after_delete = (void *)(uintptr_t)xTimerGetPeriod(timer);
    xSemaphoreGive(s_done);
}

/* A timer that is deleted in its callback, or while that runs, lives until it has returned. */
static void test_delete_during_callback(void) {
    static int by_others;
    for (int own = 0; own < 2; own++) {
        s_seen_after_delete = NULL;
        TimerHandle_t timer = xTimerCreate("test", 3, pdTRUE, own ? NULL : &by_others, outlive);
        xTimerStart(timer, 0);
        CHECK(xSemaphoreTake(s_inside, portMAX_DELAY));
        if (!own) {
            CHECK_EQUAL(xTimerDelete(timer, 0), pdPASS);
        }
        xSemaphoreGive(s_go_on);
        CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
        CHECK_EQUAL((uintptr_t)s_seen_after_delete, 3);
        CHECK(s_called_by == xTimerGetTimerDaemonTaskHandle());
        CHECK(!xSemaphoreTake(s_inside, 7));
    }
}

static void hold(void *semaphore, uint32_t number) {
    CHECK_EQUAL(number, 7);
    xSemaphoreGive(s_inside);
    CHECK(xSemaphoreTake(semaphore, portMAX_DELAY));
}

static void release(void *argument) {
    (void)argument;
    vTaskDelay(3);
    xSemaphoreGive(s_go_on);
    vTaskDelete(NULL);
}

/* While the timer task is busy, commands wait in its queue; one too many fails at once, or waits as told. */
static void test_full_queue(void) {
    TimerHandle_t timer = create(1000, pdFALSE, 5);
    CHECK_EQUAL(xTimerPendFunctionCall(hold, s_go_on, 7, 0), pdPASS);
    CHECK(xSemaphoreTake(s_inside, portMAX_DELAY));
    for (int i = 0; i < CONFIG_FREERTOS_TIMER_QUEUE_LENGTH; i++) {
        CHECK_EQUAL(xTimerStart(timer, 0), pdPASS);
    }
    CHECK_EQUAL(xTimerStart(timer, 0), pdFAIL);
    CHECK_EQUAL(xTimerStart(timer, 2), pdFAIL);
    CHECK_EQUAL(xTimerStartFromISR(timer, NULL), pdFAIL);
    CHECK(!xTimerIsTimerActive(timer));
    spawn(release, NULL, 12, 0);
    CHECK_EQUAL(xTimerStop(timer, portMAX_DELAY), pdPASS);
    CHECK_SOON(!xTimerIsTimerActive(timer));
    xTimerDelete(timer, portMAX_DELAY);
}

/* A start counts from its call: one that the busy timer task sees too late calls back at once. */
static void test_late_command(void) {
    TimerHandle_t timer = create(2, pdFALSE, 6);
    while (xSemaphoreTake(s_done, 0)) {
    }
    CHECK_EQUAL(xTimerPendFunctionCall(hold, s_go_on, 7, 0), pdPASS);
    CHECK(xSemaphoreTake(s_inside, portMAX_DELAY));
    CHECK_EQUAL(xTimerStart(timer, 0), pdPASS);
    TickType_t due = xTaskGetTickCount() + 2;
    vTaskDelay(5);
    s_fired = 0;
    xSemaphoreGive(s_go_on);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    CHECK((TickType_t)(xTimerGetExpiryTime(timer) - due) == 0 || xTimerGetExpiryTime(timer) + 1 == due);
    xTimerDelete(timer, 0);
}

/* A timer in the caller's memory is not freed, and can be made anew there. */
static void test_static(void) {
    static StaticTimer_t memory;
    for (int round = 0; round < 2; round++) {
        s_fired = 0;
        TimerHandle_t timer = xTimerCreateStatic("static", 1, pdFALSE, (void *)9, note, &memory);
        CHECK(timer == (TimerHandle_t)(void *)&memory);
        xTimerStart(timer, 0);
        CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
        CHECK_EQUAL(xTimerDelete(timer, 0), pdPASS);
        CHECK_SOON(!xTimerIsTimerActive(timer));
    }
}

void app_main(void) {
    s_done = xSemaphoreCreateCounting(8, 0);
    vTaskPrioritySet(NULL, 10);
    test_order_of_expiry();
    s_fired = 0;
    test_reload();
    s_inside = xSemaphoreCreateBinary();
    s_go_on = xSemaphoreCreateBinary();
    test_delete_during_callback();
    test_full_queue();
    test_late_command();
    test_static();
    exit(0);
}
