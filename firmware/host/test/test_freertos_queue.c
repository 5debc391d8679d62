/* SPDX-License-Identifier: Apache-2.0 */
/* Queues and semaphores: order, blocking, time-outs. */
#include "freertos/queue.h"

#include "idf_check.h"

#define LENGTH 4
#define ITEMS 1000

static QueueHandle_t s_queue;
static SemaphoreHandle_t s_done;

static int received(TickType_t ticks) {
    int item = -1;
    return xQueueReceive(s_queue, &item, ticks) ? item : -1;
}

static bool sent(int item, TickType_t ticks) {
    return xQueueSend(s_queue, &item, ticks) == pdPASS;
}

/* First in, first out; a front item overtakes; a peek leaves the item. */
static void test_order(void) {
    int front = 9;
    CHECK(sent(1, 0) && sent(2, 0));
    CHECK_EQUAL(xQueueSendToFront(s_queue, &front, 0), pdPASS);
    CHECK_EQUAL(uxQueueMessagesWaiting(s_queue), 3);
    CHECK_EQUAL(uxQueueSpacesAvailable(s_queue), LENGTH - 3);
    int peeked = 0;
    CHECK(xQueuePeek(s_queue, &peeked, 0));
    CHECK_EQUAL(peeked, 9);
    CHECK_EQUAL(received(0), 9);
    CHECK_EQUAL(received(0), 1);
    CHECK_EQUAL(received(0), 2);
    CHECK_EQUAL(received(0), -1);
}

/* A full queue refuses, an empty one too, and a wait of n ticks lasts until the n-th tick from now. */
static void test_timeouts(void) {
    for (int i = 0; i < LENGTH; i++) {
        CHECK(sent(i, 0));
    }
    CHECK(!sent(0, 0));
    TickType_t start = xTaskGetTickCount();
    CHECK(!sent(0, 3));
    CHECK(xTaskGetTickCount() - start >= 3);
    CHECK_EQUAL(xQueueReset(s_queue), pdPASS);
    start = xTaskGetTickCount();
    CHECK_EQUAL(received(3), -1);
    CHECK(xTaskGetTickCount() - start >= 3);
}

/* A queue of one is overwritten. */
static void test_overwrite(void) {
    QueueHandle_t latest = xQueueCreate(1, sizeof(int));
    for (int i = 1; i <= 3; i++) {
        CHECK_EQUAL(xQueueOverwrite(latest, &i), pdPASS);
    }
    int value = 0;
    CHECK(xQueueReceive(latest, &value, 0));
    CHECK_EQUAL(value, 3);
    CHECK(!xQueueReceive(latest, &value, 0));
    vQueueDelete(latest);
}

static void produce(void *argument) {
    (void)argument;
    for (int i = 0; i < ITEMS; i++) {
        CHECK(sent(i, portMAX_DELAY));
    }
    vTaskDelete(NULL);
}

/* Between a producer and a consumer that both block, nothing is lost, doubled or swapped. */
static void check_stream(UBaseType_t producer_priority, BaseType_t producer_core) {
    spawn(produce, NULL, producer_priority, producer_core);
    for (int i = 0; i < ITEMS; i++) {
        CHECK_EQUAL(received(portMAX_DELAY), i);
    }
}

static void receive_and_report(void *argument) {
    int *item = argument;
    CHECK(xQueueReceive(s_queue, item, portMAX_DELAY));
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

/* Items go to the waiting receivers by priority, whatever the order they came in. */
static void test_receivers_by_priority(void) {
    int low = 0;
    int high = 0;
    TaskHandle_t low_task = spawn(receive_and_report, &low, 3, 1);
    TaskHandle_t high_task = spawn(receive_and_report, &high, 8, 1);
    CHECK_SOON(eTaskGetState(low_task) == eBlocked && eTaskGetState(high_task) == eBlocked);
    CHECK(sent(1, 0));
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    CHECK_EQUAL(high, 1);
    CHECK(sent(2, 0));
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    CHECK_EQUAL(low, 2);
}

/* A binary semaphore starts empty and counts to one, a counting one starts and ends where it is told. */
static void test_semaphores(void) {
    SemaphoreHandle_t binary = xSemaphoreCreateBinary();
    CHECK(!xSemaphoreTake(binary, 0));
    CHECK(xSemaphoreGive(binary));
    CHECK(!xSemaphoreGive(binary));
    CHECK(xSemaphoreTake(binary, 0));
    SemaphoreHandle_t counting = xSemaphoreCreateCounting(3, 2);
    CHECK(xSemaphoreGive(counting));
    CHECK(!xSemaphoreGive(counting));
    CHECK_EQUAL(uxSemaphoreGetCount(counting), 3);
    vSemaphoreDelete(counting);
    vSemaphoreDelete(binary);
}

/* A static queue lives in the caller's memory. */
static void test_static(void) {
    StaticQueue_t storage;
    uint8_t items[2 * sizeof(int)];
    QueueHandle_t queue = xQueueCreateStatic(2, sizeof(int), items, &storage);
    CHECK((void *)queue == (void *)&storage);
    int value = 7;
    CHECK(xQueueSend(queue, &value, 0));
    value = 0;
    CHECK(xQueueReceive(queue, &value, 0));
    CHECK_EQUAL(value, 7);
    vQueueDelete(queue);
}

void app_main(void) {
    vTaskPrioritySet(NULL, 10);
    s_queue = xQueueCreate(LENGTH, sizeof(int));
    s_done = xSemaphoreCreateCounting(4, 0);
    test_order();
    test_timeouts();
    test_overwrite();
    check_stream(5, 0);
    check_stream(15, 0);
    check_stream(5, 1);
    check_stream(5, tskNO_AFFINITY);
    test_receivers_by_priority();
    test_semaphores();
    test_static();
    exit(0);
}
