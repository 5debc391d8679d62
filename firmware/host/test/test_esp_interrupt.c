/* SPDX-License-Identifier: Apache-2.0 */
/* The software interrupt of components/rtos, and what the kernel's calls do in an interrupt. */
#include "freertos/event_groups.h"
#include "freertos/queue.h"
#include "idf_check.h"
#include "rtos/interrupt.h"

#define RAISES 100

typedef struct {
    BaseType_t core;
    int ran;
} count_t;

static bool count(void *context) {
    count_t *counter = context;
    CHECK(xPortInIsrContext());
    CHECK_EQUAL(xPortGetCoreID(), counter->core);
    counter->ran++;
    return false;
}

static void raise_on_this_core(void *argument) {
    count_t counter = {.core = xPortGetCoreID()};
    CHECK(!xPortInIsrContext());
    CHECK_EQUAL(rtos_interrupt_install(count, &counter), ESP_OK);
    CHECK_EQUAL(rtos_interrupt_install(count, &counter), ESP_ERR_INVALID_STATE);
    for (int i = 1; i <= RAISES; i++) {
        rtos_interrupt_raise();
        CHECK_EQUAL(counter.ran, i);
    }
    rtos_interrupt_remove();
    xTaskNotifyGive(argument);
    vTaskDelete(NULL);
}

/* The handler has run when raising returns, on the core that it is installed on; once removed it can be
 * installed elsewhere. */
static void test_raise(BaseType_t core) {
    spawn(raise_on_this_core, xTaskGetCurrentTaskHandle(), 20, core);
    ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
}

static QueueHandle_t s_queue;
static SemaphoreHandle_t s_semaphore;
static EventGroupHandle_t s_events;
static TaskHandle_t s_waiter;
enum { EVENT_GROUP_STEP = 6 };
static int s_step;
static int s_done;

/* Nothing waits in the odd steps: nobody is woken. Bits of an event group are left to the timer task, so it
 * is that one which is woken, waiter or not. */
static bool give(void *context) {
    (void)context;
    BaseType_t woken = pdFALSE;
    uint32_t item = 7;
    if (s_step == 0 || s_step == 1) {
        CHECK_EQUAL(xQueueSendFromISR(s_queue, &item, &woken), pdPASS);
    } else if (s_step == 2 || s_step == 3) {
        CHECK_EQUAL(xSemaphoreGiveFromISR(s_semaphore, &woken), pdPASS);
    } else if (s_step == 4 || s_step == 5) {
        vTaskNotifyGiveFromISR(s_waiter, &woken);
    } else {
        CHECK_EQUAL(xEventGroupSetBitsFromISR(s_events, 1, &woken), pdPASS);
    }
    if (s_step < EVENT_GROUP_STEP) {
        CHECK_EQUAL(woken, s_step % 2 == 0);
    }
    return woken;
}

static void take_each(void *argument) {
    (void)argument;
    uint32_t item = 0;
    CHECK(xQueueReceive(s_queue, &item, portMAX_DELAY));
    CHECK_EQUAL(item, 7);
    __atomic_store_n(&s_done, 1, __ATOMIC_RELEASE);
    CHECK(xSemaphoreTake(s_semaphore, portMAX_DELAY));
    __atomic_store_n(&s_done, 2, __ATOMIC_RELEASE);
    CHECK_EQUAL(ulTaskNotifyTake(pdTRUE, portMAX_DELAY), 1);
    __atomic_store_n(&s_done, 3, __ATOMIC_RELEASE);
    CHECK_EQUAL(xEventGroupWaitBits(s_events, 1, pdFALSE, pdFALSE, portMAX_DELAY), 1);
    __atomic_store_n(&s_done, 4, __ATOMIC_RELEASE);
    vTaskSuspend(NULL);
}

/* Each …FromISR call wakes who waits, says so, and says nothing where nobody was woken. With real-time
 * priority a task of higher priority on this core has run when raising returns. */
static void test_wake(void) {
    s_queue = xQueueCreate(4, sizeof(uint32_t));
    s_semaphore = xSemaphoreCreateCounting(4, 0);
    s_events = xEventGroupCreate();
    CHECK_EQUAL(rtos_interrupt_install(give, NULL), ESP_OK);
    s_waiter = spawn(take_each, NULL, 20, 0);
    for (s_step = 0; s_step < 8; s_step += 2) {
        CHECK_SOON(eTaskGetState(s_waiter) == eBlocked);
        CHECK_EQUAL(s_done, s_step / 2);
        rtos_interrupt_raise();
        if (realtime() && s_step < EVENT_GROUP_STEP) {
            CHECK_EQUAL(s_done, s_step / 2 + 1);
        }
        CHECK_SOON(__atomic_load_n(&s_done, __ATOMIC_ACQUIRE) == s_step / 2 + 1);
    }
    CHECK_SOON(eTaskGetState(s_waiter) == eSuspended);
    for (s_step = 1; s_step < 9; s_step += 2) {
        rtos_interrupt_raise();
    }
    rtos_interrupt_remove();
    vTaskDelete(s_waiter);
}

void app_main(void) {
    vTaskPrioritySet(NULL, 10);
    test_raise(0);
    test_raise(portNUM_PROCESSORS - 1);
    test_wake();
    exit(0);
}
