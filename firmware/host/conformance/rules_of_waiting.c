/* SPDX-License-Identifier: Apache-2.0 */
/* Who is served: queues, semaphores, mutexes, notifications. */
#include "conformance.h"

static QueueHandle_t s_queue;
static SemaphoreHandle_t s_mutex, s_go;

static void receive_one(void *unused) {
    (void)unused;
    char item = '?';
    xQueueReceive(s_queue, &item, portMAX_DELAY);
    note(item);
    end_task();
}

static void send_three(void) {
    for (const char *item = "xyz"; *item != '\0'; item++) {
        xQueueSend(s_queue, item, 0);
    }
}

static bool queue_is_first_in_first_out(void) {
    s_queue = xQueueCreate(4, sizeof(char));
    send_three();
    xQueueSendToFront(s_queue, "w", 0);
    char item = '?';
    while (xQueueReceive(s_queue, &item, 0) == pdTRUE) {
        note(item);
    }
    vQueueDelete(s_queue);
    return noted_is("wxyz");
}

static void receive_and_note_self(void *letter) {
    char item = '?';
    xQueueReceive(s_queue, &item, portMAX_DELAY);
    note(*(const char *)letter);
    end_task();
}

static bool serves(const UBaseType_t priorities[3], const char *wanted) {
    static const char *const letters[] = {"a", "b", "c"};
    s_queue = xQueueCreate(4, sizeof(char));
    for (int i = 0; i < 3; i++) {
        start_task(receive_and_note_self, (void *)letters[i], priorities[i], 0);
        vTaskDelay(2); /* so that it waits before the next one */
    }
    for (int i = 0; i < 3; i++) {
        xQueueSend(s_queue, "x", 0);
        vTaskDelay(1);
    }
    bool ended = await_tasks();
    vQueueDelete(s_queue);
    return ended && noted_is(wanted);
}

static bool waiters_by_priority(void) {
    return serves((const UBaseType_t[]){3, 7, 5}, "bca");
}

static bool equal_waiters_in_turn(void) {
    return serves((const UBaseType_t[]){5, 5, 5}, "abc");
}

static bool waiting_receiver_gets_each_item(void) {
    s_queue = xQueueCreate(1, sizeof(char));
    start_task(receive_one, NULL, CHECK_PRIORITY + 1, 0);
    xQueueSend(s_queue, "x", 0);
    start_task(receive_one, NULL, CHECK_PRIORITY + 1, 0);
    xQueueSend(s_queue, "y", 0);
    bool ended = await_tasks();
    vQueueDelete(s_queue);
    return ended && noted_is("xy");
}

static void hold_then_give(void *ticks) {
    xSemaphoreTake(s_mutex, portMAX_DELAY);
    xSemaphoreGive(s_go);
    compute_ticks(*(const TickType_t *)ticks);
    note(uxTaskPriorityGet(NULL) == 8 ? 'I' : 'n'); /* inherited, or not */
    xSemaphoreGive(s_mutex);
    note(uxTaskPriorityGet(NULL) == 3 ? 'o' : '!'); /* its own again */
    end_task();
}

static void take_mutex(void *unused) {
    (void)unused;
    xSemaphoreTake(s_mutex, portMAX_DELAY);
    note('h');
    xSemaphoreGive(s_mutex);
    end_task();
}

static void hog(void *unused) {
    (void)unused;
    note('m');
    compute_ticks(6);
    end_task();
}

/* The owner (3) has the mutex, a task of 8 waits for it, and one of 5 would run between them. */
static bool mutex_owner_inherits(void) {
    static const TickType_t held = 6;
    s_mutex = xSemaphoreCreateMutex();
    s_go = xSemaphoreCreateBinary();
    start_task(hold_then_give, (void *)&held, 3, 0);
    xSemaphoreTake(s_go, portMAX_DELAY); /* it holds the mutex */
    start_task(take_mutex, NULL, 8, 0);
    vTaskDelay(2); /* it waits for it */
    start_task(hog, NULL, 5, 0);
    bool ended = await_tasks();
    vSemaphoreDelete(s_mutex);
    vSemaphoreDelete(s_go);
    return ended && noted_is("Ihmo");
}

/* The same with a binary semaphore: nobody inherits, and the middle one runs. */
static bool semaphore_lends_nothing(void) {
    static const TickType_t held = 6;
    s_mutex = xSemaphoreCreateBinary();
    s_go = xSemaphoreCreateBinary();
    xSemaphoreGive(s_mutex);
    start_task(hold_then_give, (void *)&held, 3, 0);
    xSemaphoreTake(s_go, portMAX_DELAY);
    start_task(take_mutex, NULL, 8, 0);
    vTaskDelay(2);
    start_task(hog, NULL, 5, 0);
    bool ended = await_tasks();
    vSemaphoreDelete(s_mutex);
    vSemaphoreDelete(s_go);
    return ended && noted_is("mnho");
}

static void give_up(void *unused) {
    (void)unused;
    note(xSemaphoreTake(s_mutex, 2) == pdTRUE ? '!' : 't');
    end_task();
}

static bool inheritance_ends_with_the_wait(void) {
    s_mutex = xSemaphoreCreateMutex();
    s_go = xSemaphoreCreateBinary();
    static const TickType_t held = 8;
    TaskHandle_t owner = start_task(hold_then_give, (void *)&held, 3, 0);
    xSemaphoreTake(s_go, portMAX_DELAY);
    start_task(give_up, NULL, 8, 0);
    vTaskDelay(1);
    bool raised = uxTaskPriorityGet(owner) == 8;
    vTaskDelay(4);
    bool lowered = uxTaskPriorityGet(owner) == 3;
    bool ended = await_tasks();
    vSemaphoreDelete(s_mutex);
    vSemaphoreDelete(s_go);
    return ended && raised && lowered && noted_is("tno");
}

static void await_notification(void *unused) {
    (void)unused;
    uint32_t count = ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
    note((char)('0' + count));
    end_task();
}

static bool notifications_count(void) {
    TaskHandle_t task = start_task(await_notification, NULL, 3, 0); /* does not run before this task waits */
    for (int i = 0; i < 3; i++) {
        xTaskNotifyGive(task);
    }
    return await_tasks() && noted_is("3");
}

static void receive_after_resume(void *unused) {
    receive_one(unused);
}

static bool suspended_waiter_takes_nothing(void) {
    s_queue = xQueueCreate(1, sizeof(char));
    TaskHandle_t task = start_task(receive_after_resume, NULL, CHECK_PRIORITY + 1, 0);
    vTaskSuspend(task);
    xQueueSend(s_queue, "x", 0);
    bool there = uxQueueMessagesWaiting(s_queue) == 1 && noted_is("");
    vTaskResume(task);
    bool ended = await_tasks();
    vQueueDelete(s_queue);
    return ended && there && noted_is("x");
}

const rule_t rules_of_waiting[] = {
    {"queue-order", "a queue is first in, first out; an item to the front overtakes",
     queue_is_first_in_first_out, 1, 0},
    {"waiters-by-priority", "an item goes to the waiting task of the highest priority", waiters_by_priority,
     1, 0},
    {"equal-waiters-in-turn", "of waiting tasks of equal priority the first comes first",
     equal_waiters_in_turn, 1, 0},
    {"receiver-before-sender", "a receiver that outranks the sender has the item before the sender goes on",
     waiting_receiver_gets_each_item, 1, 0},
    {"mutex-owner-inherits", "a mutex's owner has its waiter's priority until it gives: no middle one runs",
     mutex_owner_inherits, 1, 0},
    {"semaphore-lends-nothing", "who holds a binary semaphore inherits nothing: the middle one runs",
     semaphore_lends_nothing, 1, 0},
    {"inheritance-ends-with-wait", "an inherited priority ends when the waiter gives up",
     inheritance_ends_with_the_wait, 1, 20},
    {"notifications-count", "gives to a task that does not wait yet are counted", notifications_count, 1, 0},
    {"suspended-waiter", "a suspended task takes nothing, and what is there when it is resumed",
     suspended_waiter_takes_nothing, 1, 0},
};
const size_t rules_of_waiting_count = sizeof(rules_of_waiting) / sizeof(rules_of_waiting[0]);
