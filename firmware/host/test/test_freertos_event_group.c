/* SPDX-License-Identifier: Apache-2.0 */
/* Event groups: wait for any or all bits, clear on the way out, meet at a barrier. */
#include "freertos/event_groups.h"

#include "idf_check.h"

#define A 0x1U
#define B 0x2U
#define C 0x4U

static EventGroupHandle_t s_group;
static SemaphoreHandle_t s_done;

static EventBits_t wait_now(EventBits_t bits, BaseType_t clear, BaseType_t all) {
    return xEventGroupWaitBits(s_group, bits, clear, all, 0);
}

/* Any is satisfied by one bit, all by every bit; what was waited for is cleared only when satisfied. */
static void test_any_and_all(void) {
    CHECK_EQUAL(xEventGroupSetBits(s_group, A | C), A | C);
    CHECK_EQUAL(wait_now(A | B, pdTRUE, pdTRUE), A | C);
    CHECK_EQUAL(xEventGroupGetBits(s_group), A | C);
    CHECK_EQUAL(wait_now(A | B, pdTRUE, pdFALSE), A | C);
    CHECK_EQUAL(xEventGroupGetBits(s_group), C);
    CHECK_EQUAL(wait_now(C, pdFALSE, pdTRUE), C);
    CHECK_EQUAL(xEventGroupClearBits(s_group, C), C);
    CHECK_EQUAL(xEventGroupGetBits(s_group), 0);
}

/* A wait that is not satisfied ends at its tick with the bits of that moment. */
static void test_timeout(void) {
    xEventGroupSetBits(s_group, A);
    TickType_t start = xTaskGetTickCount();
    CHECK_EQUAL(xEventGroupWaitBits(s_group, A | B, pdTRUE, pdTRUE, 3), A);
    CHECK(xTaskGetTickCount() - start >= 3);
    CHECK_EQUAL(xEventGroupClearBits(s_group, A), A);
}

static void wait_for_both(void *argument) {
    CHECK_EQUAL(xEventGroupWaitBits(s_group, A | B, (BaseType_t)(intptr_t)argument, pdTRUE, portMAX_DELAY),
                A | B);
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

/* One setting satisfies every waiter, also those behind one that clears the bits. */
static void test_set_wakes_all_waiters(void) {
    TaskHandle_t clearing = spawn(wait_for_both, (void *)pdTRUE, 8, 1);
    TaskHandle_t keeping = spawn(wait_for_both, (void *)pdFALSE, 3, 0);
    CHECK_SOON(eTaskGetState(clearing) == eBlocked && eTaskGetState(keeping) == eBlocked);
    xEventGroupSetBits(s_group, A);
    CHECK_EQUAL(eTaskGetState(clearing), eBlocked);
    CHECK_EQUAL(xEventGroupSetBits(s_group, B), 0);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
}

static void meet(void *argument) {
    EventBits_t mine = (EventBits_t)(uintptr_t)argument;
    EventBits_t seen = xEventGroupSync(s_group, mine, A | B | C, portMAX_DELAY);
    CHECK_EQUAL(seen & (A | B | C), A | B | C);
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

/* At a barrier all leave when the last arrives, and the bits are cleared for the next round. */
static void test_sync(void) {
    for (int round = 0; round < 20; round++) {
        spawn(meet, (void *)(uintptr_t)A, 5, 0);
        spawn(meet, (void *)(uintptr_t)B, 5, 1);
        CHECK_EQUAL(xEventGroupSync(s_group, C, A | B | C, portMAX_DELAY) & (A | B | C), A | B | C);
        CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
        CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
        CHECK_EQUAL(xEventGroupGetBits(s_group), 0);
    }
}

static SemaphoreHandle_t s_held;
static SemaphoreHandle_t s_go_on;

static void hold(void *argument, uint32_t number) {
    (void)argument;
    (void)number;
    xSemaphoreGive(s_held);
    CHECK(xSemaphoreTake(s_go_on, portMAX_DELAY));
}

static BaseType_t s_accepted[3];

static int64_t set_from_interrupt(void *argument) {
    (void)argument;
    BaseType_t woken = pdFALSE;
    s_accepted[0] = xEventGroupSetBitsFromISR(s_group, A | B, &woken);
    s_accepted[1] = xEventGroupClearBitsFromISR(s_group, B);
    for (int i = 2; i < CONFIG_FREERTOS_TIMER_QUEUE_LENGTH; i++) {
        CHECK_EQUAL(xEventGroupSetBitsFromISR(s_group, A, &woken), pdPASS);
    }
    s_accepted[2] = xEventGroupSetBitsFromISR(s_group, C, &woken);
    CHECK_EQUAL(xEventGroupGetBitsFromISR(s_group), 0);
    return INT64_MAX;
}

/* What an interrupt sets and clears waits for the timer task, and is refused when that has too much to do. */
static void test_from_interrupt(void) {
    s_held = xSemaphoreCreateBinary();
    s_go_on = xSemaphoreCreateBinary();
    xEventGroupClearBits(s_group, A | B | C);
    CHECK_EQUAL(xTimerPendFunctionCall(hold, NULL, 0, 0), pdPASS);
    CHECK(xSemaphoreTake(s_held, portMAX_DELAY));
    vboard_interrupt_t *interrupt = vboard_interrupt_new(0, set_from_interrupt, NULL);
    vboard_interrupt_raise(interrupt);
    vboard_interrupt_wait(interrupt);
    CHECK_EQUAL(s_accepted[0], pdPASS);
    CHECK_EQUAL(s_accepted[1], pdPASS);
    CHECK_EQUAL(s_accepted[2], pdFAIL);
    CHECK_EQUAL(xEventGroupGetBits(s_group), 0);
    xSemaphoreGive(s_go_on);
    CHECK_SOON(xEventGroupGetBits(s_group) == A);
    vboard_interrupt_delete(interrupt);
}

void app_main(void) {
    vTaskPrioritySet(NULL, 10);
    s_group = xEventGroupCreate();
    s_done = xSemaphoreCreateCounting(4, 0);
    test_any_and_all();
    test_timeout();
    test_set_wakes_all_waiters();
    test_sync();
    test_from_interrupt();
    vEventGroupDelete(s_group);
    exit(0);
}
