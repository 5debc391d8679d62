/* SPDX-License-Identifier: Apache-2.0 */
/* On one core the ready task of the highest priority runs. Without real-time permission the host promises
 * less: every task runs, in any order. */
#include "idf_check.h"

#define TASKS 5

static int s_order[2 * TASKS];
static int s_ran;
static SemaphoreHandle_t s_done;
static SemaphoreHandle_t s_go;

static void note(int what) {
    s_order[__atomic_fetch_add(&s_ran, 1, __ATOMIC_SEQ_CST)] = what;
}

static void note_priority(void *argument) {
    (void)argument;
    note((int)uxTaskPriorityGet(NULL));
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

/* Tasks created in rising priority by one that outranks them run in falling priority once it waits. */
static void test_highest_ready_runs_first(void) {
    for (UBaseType_t priority = 1; priority <= TASKS; priority++) {
        spawn(note_priority, NULL, priority, 0);
    }
    if (realtime()) {
        CHECK_EQUAL(s_ran, 0);
    }
    for (int i = 0; i < TASKS; i++) {
        CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    }
    CHECK_EQUAL(s_ran, TASKS);
    for (int i = 0; i < TASKS && realtime(); i++) {
        CHECK_EQUAL(s_order[i], TASKS - i);
    }
}

static void take_and_note(void *argument) {
    (void)argument;
    xSemaphoreTake(s_go, portMAX_DELAY);
    note(1);
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

static void give_and_note(void *argument) {
    (void)argument;
    xSemaphoreGive(s_go);
    note(2);
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

/* Giving to a waiting task of higher priority lets that one run before the giver goes on. */
static void test_woken_higher_priority_preempts(void) {
    s_ran = 0;
    TaskHandle_t taker = spawn(take_and_note, NULL, 5, 0);
    CHECK_SOON(eTaskGetState(taker) == eBlocked);
    spawn(give_and_note, NULL, 3, 0);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    CHECK_EQUAL(s_order[0] + s_order[1], 3);
    if (realtime()) {
        CHECK_EQUAL(s_order[0], 1);
    }
}

static void wait_then_note(void *argument) {
    xSemaphoreTake(s_go, portMAX_DELAY);
    note((int)(intptr_t)argument);
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

/* One item goes to the waiting task of the highest priority, and raising a waiting task's priority moves it
 * to the front of the line. */
static void test_waiters_are_served_by_priority(void) {
    s_ran = 0;
    TaskHandle_t first = spawn(wait_then_note, (void *)1, 2, 1);
    TaskHandle_t second = spawn(wait_then_note, (void *)2, 4, 1);
    CHECK_SOON(eTaskGetState(first) == eBlocked && eTaskGetState(second) == eBlocked);
    vTaskPrioritySet(first, 6);
    CHECK_EQUAL(uxTaskPriorityGet(first), 6);
    for (int i = 1; i <= 2; i++) {
        xSemaphoreGive(s_go);
        CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
        CHECK_EQUAL(s_order[i - 1], i);
    }
}

static void count_up(void *argument) {
    int *count = argument;
    __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
    vTaskDelete(NULL);
}

/* Between vTaskSuspendAll and xTaskResumeAll no other task of this core runs. */
static void test_suspended_scheduler_keeps_the_core(void) {
    int count = 0;
    vTaskPrioritySet(NULL, 10);
    vTaskSuspendAll();
    CHECK_EQUAL(xTaskGetSchedulerState(), taskSCHEDULER_SUSPENDED);
    spawn(count_up, &count, 24, 0);
    if (realtime()) {
        CHECK_EQUAL(__atomic_load_n(&count, __ATOMIC_SEQ_CST), 0);
    }
    xTaskResumeAll();
    CHECK_EQUAL(xTaskGetSchedulerState(), taskSCHEDULER_RUNNING);
    CHECK_SOON(__atomic_load_n(&count, __ATOMIC_SEQ_CST) == 1);
}

void app_main(void) {
    vTaskPrioritySet(NULL, 20);
    s_done = xSemaphoreCreateCounting(2 * TASKS, 0);
    s_go = xSemaphoreCreateBinary();
    test_highest_ready_runs_first();
    test_woken_higher_priority_preempts();
    test_waiters_are_served_by_priority();
    test_suspended_scheduler_keeps_the_core();
    exit(0);
}
