/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes exclude, and lend their owner the priority of who waits. */
#include "idf_check.h"

#define TASKS 4
#define ROUNDS 2000

static SemaphoreHandle_t s_mutex;
static SemaphoreHandle_t s_done;
static SemaphoreHandle_t s_release;
static int s_inside;
static int s_total;
static portMUX_TYPE s_spinlock = portMUX_INITIALIZER_UNLOCKED;

static void add_under_mutex(void *argument) {
    (void)argument;
    for (int i = 0; i < ROUNDS; i++) {
        xSemaphoreTake(s_mutex, portMAX_DELAY);
        CHECK_EQUAL(s_inside++, 0);
        s_total++;
        s_inside--;
        xSemaphoreGive(s_mutex);
    }
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

static void add_under_spinlock(void *argument) {
    (void)argument;
    for (int i = 0; i < ROUNDS; i++) {
        portENTER_CRITICAL(&s_spinlock);
        portENTER_CRITICAL(&s_spinlock); /* recursive, as on the chip */
        CHECK_EQUAL(s_inside++, 0);
        s_total++;
        s_inside--;
        portEXIT_CRITICAL(&s_spinlock);
        portEXIT_CRITICAL(&s_spinlock);
    }
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

/* Of tasks on both cores and of several priorities one at a time is inside. */
static void check_excludes(TaskFunction_t adder) {
    s_total = 0;
    for (int i = 0; i < TASKS; i++) {
        spawn(adder, NULL, (UBaseType_t)(2 + i / 2), i % 2);
    }
    for (int i = 0; i < TASKS; i++) {
        CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    }
    CHECK_EQUAL(s_total, TASKS * ROUNDS);
}

static void hold(void *argument) {
    (void)argument;
    xSemaphoreTake(s_mutex, portMAX_DELAY);
    xSemaphoreTake(s_release, portMAX_DELAY);
    xSemaphoreGive(s_mutex);
    CHECK_EQUAL(uxTaskPriorityGet(NULL), 2); /* given back with the mutex */
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

static void want(void *argument) {
    TickType_t ticks = (TickType_t)(uintptr_t)argument;
    bool taken = xSemaphoreTake(s_mutex, ticks);
    CHECK_EQUAL(taken, ticks == portMAX_DELAY);
    if (taken) {
        xSemaphoreGive(s_mutex);
    }
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

static TaskHandle_t start_owner(void) {
    TaskHandle_t owner = spawn(hold, NULL, 2, 0);
    CHECK_SOON(xSemaphoreGetMutexHolder(s_mutex) == owner && eTaskGetState(owner) == eBlocked);
    return owner;
}

/* The owner has its waiter's priority until it gives the mutex. */
static void test_owner_inherits(void) {
    TaskHandle_t owner = start_owner();
    TaskHandle_t waiter = spawn(want, (void *)(uintptr_t)portMAX_DELAY, 9, 0);
    CHECK_SOON(eTaskGetState(waiter) == eBlocked);
    CHECK_EQUAL(uxTaskPriorityGet(owner), 9);
    xSemaphoreGive(s_release);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
}

/* A waiter that gives up takes its priority back. */
static void test_inheritance_ends_with_the_wait(void) {
    TaskHandle_t owner = start_owner();
    spawn(want, (void *)(uintptr_t)5, 9, 0);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    CHECK_EQUAL(uxTaskPriorityGet(owner), 2);
    xSemaphoreGive(s_release);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
}

static int s_hogged;
static int s_hogged_when_taken;

static void hold_while_computing(void *argument) {
    (void)argument;
    xSemaphoreTake(s_mutex, portMAX_DELAY);
    xSemaphoreGive(s_release);
    for (volatile int i = 0; i < 20000; i = i + 1) {
    }
    xSemaphoreGive(s_mutex);
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

static void take_urgently(void *argument) {
    (void)argument;
    xSemaphoreTake(s_mutex, portMAX_DELAY);
    s_hogged_when_taken = __atomic_load_n(&s_hogged, __ATOMIC_SEQ_CST);
    xSemaphoreGive(s_mutex);
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

static void hog(void *argument) {
    (void)argument;
    __atomic_store_n(&s_hogged, 1, __ATOMIC_SEQ_CST);
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

/* A task between the owner's priority and the waiter's does not run before the waiter has the mutex. */
static void test_no_inversion_by_the_middle_priority(void) {
    spawn(hold_while_computing, NULL, 2, 0);
    CHECK(xSemaphoreTake(s_release, portMAX_DELAY));
    vTaskSuspendAll(); /* so that both become ready at one moment */
    spawn(hog, NULL, 5, 0);
    spawn(take_urgently, NULL, 9, 0);
    xTaskResumeAll();
    for (int i = 0; i < 3; i++) {
        CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    }
    if (realtime()) {
        CHECK_EQUAL(s_hogged_when_taken, 0);
    }
}

static void try_recursive(void *argument) {
    CHECK(!xSemaphoreTakeRecursive((SemaphoreHandle_t)argument, 0));
    CHECK(!xSemaphoreGiveRecursive((SemaphoreHandle_t)argument));
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

/* A recursive mutex is free after as many gives as takes, and to its owner alone before. */
static void test_recursive(void) {
    StaticSemaphore_t storage;
    SemaphoreHandle_t mutex = xSemaphoreCreateRecursiveMutexStatic(&storage);
    CHECK(xSemaphoreTakeRecursive(mutex, 0) && xSemaphoreTakeRecursive(mutex, 0));
    CHECK(xSemaphoreGiveRecursive(mutex));
    spawn(try_recursive, mutex, 3, 1);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    CHECK(xSemaphoreGiveRecursive(mutex));
    CHECK(xSemaphoreGetMutexHolder(mutex) == NULL);
    vSemaphoreDelete(mutex);
}

void app_main(void) {
    vTaskPrioritySet(NULL, 20);
    s_mutex = xSemaphoreCreateMutex();
    s_done = xSemaphoreCreateCounting(10, 0);
    s_release = xSemaphoreCreateBinary();
    check_excludes(add_under_mutex);
    check_excludes(add_under_spinlock);
    test_owner_inherits();
    test_inheritance_ends_with_the_wait();
    test_no_inversion_by_the_middle_priority();
    test_recursive();
    exit(0);
}
