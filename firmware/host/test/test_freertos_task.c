/* SPDX-License-Identifier: Apache-2.0 */
/* Creating, pinning, naming, suspending and deleting tasks. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>

#include "idf_check.h"

static SemaphoreHandle_t s_done;
static uint32_t s_turns;
static cpu_set_t s_cpus;

static void spin(void *argument) {
    (void)argument;
    for (;;) {
        __atomic_add_fetch(&s_turns, 1, __ATOMIC_RELAXED);
    }
}

static uint32_t turns(void) {
    return __atomic_load_n(&s_turns, __ATOMIC_RELAXED);
}

static void check_stands_still(void) {
    uint32_t before = turns();
    vTaskDelay(5);
    CHECK_EQUAL(turns(), before);
}

static void check_runs(void) {
    uint32_t before = turns();
    CHECK_SOON(turns() != before);
}

/* A computing task stops where it is when another suspends it, and goes on when resumed. */
static void test_suspend_stops_a_computing_task(void) {
    TaskHandle_t task = spawn(spin, NULL, 1, 1);
    check_runs();
    vTaskSuspend(task);
    CHECK_EQUAL(eTaskGetState(task), eSuspended);
    vTaskDelay(2);
    check_stands_still();
    vTaskResume(task);
    check_runs();
    vTaskDelete(task);
}

/* When vTaskDelete returns, the computing task is gone: it does not run and is not counted. */
static void test_delete_ends_a_computing_task(void) {
    UBaseType_t before = uxTaskGetNumberOfTasks();
    TaskHandle_t task = spawn(spin, NULL, 1, 1);
    CHECK_EQUAL(uxTaskGetNumberOfTasks(), before + 1);
    check_runs();
    vTaskDelete(task);
    CHECK_EQUAL(uxTaskGetNumberOfTasks(), before);
    check_stands_still();
}

static void wait_for_ever(void *argument) {
    xSemaphoreTake((SemaphoreHandle_t)argument, portMAX_DELAY);
    CHECK(false);
}

/* A task deleted while it waits does not take what comes afterwards. */
static void test_delete_ends_a_waiting_task(void) {
    SemaphoreHandle_t semaphore = xSemaphoreCreateBinary();
    TaskHandle_t task = spawn(wait_for_ever, semaphore, 5, 0);
    CHECK_SOON(eTaskGetState(task) == eBlocked);
    vTaskDelete(task);
    CHECK(xSemaphoreGive(semaphore));
    CHECK_EQUAL(uxSemaphoreGetCount(semaphore), 1);
    vSemaphoreDelete(semaphore);
}

static void receive_once(void *argument) {
    xSemaphoreTake((SemaphoreHandle_t)argument, portMAX_DELAY);
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

/* A suspended task that waited takes nothing until it is resumed, then what is there. */
static void test_suspended_waiter_takes_nothing(void) {
    SemaphoreHandle_t semaphore = xSemaphoreCreateBinary();
    TaskHandle_t task = spawn(receive_once, semaphore, 5, 1);
    CHECK_SOON(eTaskGetState(task) == eBlocked);
    vTaskSuspend(task);
    xSemaphoreGive(semaphore);
    CHECK(!xSemaphoreTake(s_done, 5));
    CHECK_EQUAL(uxSemaphoreGetCount(semaphore), 1);
    vTaskResume(task);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    vSemaphoreDelete(semaphore);
}

static void suspend_self(void *argument) {
    (void)argument;
    vTaskSuspend(NULL);
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

/* A task that suspends itself stays until another resumes it. */
static void test_suspend_self(void) {
    TaskHandle_t task = spawn(suspend_self, NULL, 5, tskNO_AFFINITY);
    CHECK_SOON(eTaskGetState(task) == eSuspended);
    CHECK(!xSemaphoreTake(s_done, 3));
    vTaskResume(task);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
}

static void read_cpus(void *argument) {
    BaseType_t core = (BaseType_t)(intptr_t)argument;
    pthread_getaffinity_np(pthread_self(), sizeof s_cpus, &s_cpus);
    CHECK_EQUAL(xTaskGetCoreID(NULL), core);
    if (core == tskNO_AFFINITY) {
        CHECK(taskVALID_CORE_ID(xPortGetCoreID()));
    } else {
        CHECK_EQUAL(xPortGetCoreID(), core);
        CHECK(CPU_ISSET((unsigned)sched_getcpu(), &s_cpus));
    }
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

static cpu_set_t cpus_of_core(BaseType_t core) {
    spawn(read_cpus, (void *)(intptr_t)core, 3, core);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    return s_cpus;
}

/* A core is one CPU, two cores are two, no affinity is both. */
static void test_affinity(void) {
    cpu_set_t first = cpus_of_core(0);
    cpu_set_t second = cpus_of_core(1);
    cpu_set_t both = cpus_of_core(tskNO_AFFINITY);
    cpu_set_t united;
    CPU_OR(&united, &first, &second);
    CHECK_EQUAL(CPU_COUNT(&first), 1);
    CHECK_EQUAL(CPU_COUNT(&second), 1);
    CHECK(CPU_EQUAL(&united, &both));
    if (sysconf(_SC_NPROCESSORS_ONLN) > 1) {
        CHECK(!CPU_EQUAL(&first, &second));
    }
}

/* app_main runs in the task "main", priority 1, core 0. */
static void test_main_task(void) {
    CHECK(strcmp(pcTaskGetName(NULL), "main") == 0);
    CHECK(xTaskGetCurrentTaskHandle() == xTaskGetHandle("main"));
    CHECK_EQUAL(uxTaskPriorityGet(NULL), 1);
    CHECK_EQUAL(xPortGetCoreID(), 0);
}

static void *call_in(void *argument) {
    (void)argument;
    CHECK(xTaskGetCurrentTaskHandle() != NULL);
    xSemaphoreGive(s_done);
    return NULL;
}

/* A library's thread may use the API. */
static void test_foreign_thread(void) {
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, call_in, NULL), 0);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    pthread_join(thread, NULL);
}

static void end_at_once(void *argument) {
    (void)argument;
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

/* Guard pages: one inaccessible page below each stack. */
static int mapped_stacks(void) {
    int count = 0;
    char line[512];
    FILE *file = fopen("/proc/self/maps", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned long start = 0;
        unsigned long end = 0;
        char access[5] = "";
        CHECK_EQUAL(sscanf(line, "%lx-%lx %4s", &start, &end, access), 3);
        count += end - start == 4096 && strcmp(access, "---p") == 0;
    }
    fclose(file);
    return count;
}

static void run_short_tasks(int count) {
    for (int i = 0; i < count; i++) {
        spawn(end_at_once, NULL, 5, i % 2);
        CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    }
}

/* Tasks that have ended give their memory back: many one after the other need no more than a few. */
static void test_ended_tasks_are_freed(void) {
    run_short_tasks(20);
    CHECK(mapped_stacks() >= 2); /* this task's and the esp_timer task's */
    int before = mapped_stacks();
    run_short_tasks(200);
    CHECK(mapped_stacks() - before < 20);
}

void app_main(void) {
    s_done = xSemaphoreCreateCounting(10, 0);
    test_main_task();
    vTaskPrioritySet(NULL, 10);
    test_affinity();
    test_suspend_self();
    test_suspended_waiter_takes_nothing();
    test_suspend_stops_a_computing_task();
    test_delete_ends_a_computing_task();
    test_delete_ends_a_waiting_task();
    test_foreign_thread();
    test_ended_tasks_are_freed();
    exit(0);
}
