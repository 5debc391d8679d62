/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel tells the trace: who waits for what, who is made ready, who runs, who inherits. */
#include "freertos/event_groups.h"
#include "freertos/idf_additions.h"
#include "freertos/queue.h"
#include "trace_rig.h"

static SemaphoreHandle_t s_lock;
static SemaphoreHandle_t s_done;
static QueueHandle_t s_queue;
static EventGroupHandle_t s_group;
static volatile bool s_low_has_it;

static void end_task(void) {
    xSemaphoreGive(s_done);
    vTaskDelete(NULL);
}

static void low(void *argument) {
    (void)argument;
    xSemaphoreTake(s_lock, portMAX_DELAY);
    s_low_has_it = true;
    CHECK_SOON(has_event("high", TRACE_WAITS));
    xSemaphoreGive(s_lock);
    end_task();
}

static void high(void *argument) {
    (void)argument;
    CHECK_SOON(s_low_has_it);
    xSemaphoreTake(s_lock, portMAX_DELAY);
    xSemaphoreGive(s_lock);
    end_task();
}

/* Two tasks meet at s_lock. */
static void meet(void) {
    CHECK_SOON(xTaskGetHandle("low") == NULL && xTaskGetHandle("high") == NULL);
    trace_start();
    s_low_has_it = false;
    spawn_named("high", high, 20, 0);
    spawn_named("low", low, 6, 0);
    for (int i = 0; i < 2; i++) {
        CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    }
    trace_stop();
}

static void check_mutex(void) {
    s_lock = xSemaphoreCreateMutex();
    meet();
    uint32_t at = ring_first();
    ring_event_t event = expect_event(&at, "low", TRACE_READY);
    CHECK_EQUAL(event.argument, 6);
    expect_event(&at, "low", TRACE_SWITCHED_IN);
    ring_event_t taken = expect_event(&at, "low", TRACE_TAKEN);
    expect_object(taken, "mutex");
    CHECK_EQUAL(taken.core, 0);
    event = expect_event(&at, "high", TRACE_WAITS);
    CHECK_EQUAL(event.argument, taken.argument);
    CHECK_EQUAL(expect_event(&at, "low", TRACE_INHERITS).argument, 20);
    expect_event(&at, "high", TRACE_SWITCHED_OUT);
    CHECK_EQUAL(expect_event(&at, "low", TRACE_GIVEN).argument, taken.argument);
    CHECK_EQUAL(expect_event(&at, "low", TRACE_DISINHERITS).argument, 6);
    CHECK_EQUAL(expect_event(&at, "high", TRACE_READY).argument, 20);
    expect_event(&at, "high", TRACE_SWITCHED_IN);
    CHECK_EQUAL(expect_event(&at, "high", TRACE_TAKEN).argument, taken.argument);
    expect_event(&at, "high", TRACE_SWITCHED_OUT); /* it ends */
    vSemaphoreDelete(s_lock);
}

/* The same with a binary semaphore: nobody inherits. */
static void check_binary_semaphore(void) {
    s_lock = xSemaphoreCreateBinary();
    xSemaphoreGive(s_lock);
    meet();
    uint32_t at = ring_first();
    expect_object(expect_event(&at, "low", TRACE_TAKEN), "binary");
    expect_event(&at, "high", TRACE_WAITS);
    expect_event(&at, "low", TRACE_GIVEN);
    CHECK(!has_event("low", TRACE_INHERITS));
    vSemaphoreDelete(s_lock);
}

static void check_names(void) {
    names_complete();
    names_task_t task = names_task(number_of_task("low"));
    CHECK_EQUAL(task.priority, 6);
    CHECK_EQUAL(task.core, 0);
    task = names_task(number_of_task("main")); /* it was there before, and ran all the time */
    CHECK_EQUAL(task.priority, uxTaskPriorityGet(NULL));
}

static void take_all(void *argument) {
    (void)argument;
    uint32_t item = 0;
    CHECK(xQueueReceive(s_queue, &item, portMAX_DELAY));
    CHECK(xSemaphoreTakeRecursive(s_lock, portMAX_DELAY));
    xSemaphoreGiveRecursive(s_lock);
    CHECK(ulTaskNotifyTake(pdTRUE, portMAX_DELAY));
    CHECK_EQUAL(ulTaskNotifyTake(pdTRUE, 1), 0);
    CHECK(xEventGroupWaitBits(s_group, 1, pdTRUE, pdTRUE, portMAX_DELAY));
    end_task();
}

static bool waits_for(TaskHandle_t task, const char *kind) {
    bool waits = false;
    for (uint32_t number = ring_first(); number != ring_end(); number++) {
        ring_event_t event;
        if (ring_read(number, &event) && event.event == TRACE_WAITS && event.task == names_of_task(task)) {
            waits = waits || strcmp(names_object_kind(event.argument), kind) == 0;
        }
    }
    return waits && eTaskGetState(task) == eBlocked;
}

static void check_queue_notification_and_group(void) {
    const uint32_t item = 1;
    s_lock = xSemaphoreCreateRecursiveMutex();
    trace_start();
    TaskHandle_t taker = spawn_named("taker", take_all, 10, tskNO_AFFINITY);
    CHECK_SOON(has_event("taker", TRACE_WAITS));
    xQueueSend(s_queue, &item, portMAX_DELAY);
    CHECK_SOON(waits_for(taker, "notification"));
    xTaskNotifyGive(taker);
    CHECK_SOON(waits_for(taker, "event_group"));
    xEventGroupSetBits(s_group, 1);
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    trace_stop();
    uint32_t at = ring_first();
    expect_object(expect_event(&at, "taker", TRACE_WAITS), "queue");
    expect_object(expect_event(&at, "main", TRACE_GIVEN), "queue");
    expect_object(expect_event(&at, "taker", TRACE_TAKEN), "queue");
    expect_object(expect_event(&at, "taker", TRACE_TAKEN), "recursive");
    expect_object(expect_event(&at, "taker", TRACE_GIVEN), "recursive");
    expect_object(expect_event(&at, "taker", TRACE_WAITS), "notification");
    expect_object(expect_event(&at, "main", TRACE_GIVEN), "notification");
    expect_object(expect_event(&at, "taker", TRACE_TAKEN), "notification");
    expect_object(expect_event(&at, "taker", TRACE_WAITS), "notification");
    expect_event(&at, "taker", TRACE_READY); /* by the time-out: nothing taken */
    ring_event_t event = expect_event(&at, "taker", TRACE_WAITS);
    expect_object(event, "event_group");
    expect_object(expect_event(&at, "main", TRACE_GIVEN), "event_group");
    expect_object(expect_event(&at, "taker", TRACE_TAKEN), "event_group");
    CHECK_EQUAL(names_task(number_of_task("taker")).core, -1);
}

static void sleep_and_compute(void *argument) {
    volatile bool *stop = argument;
    TickType_t now = xTaskGetTickCount();
    vTaskDelay(2);
    trace_mark(TRACE_MARK_WOKE, 77);
    xTaskDelayUntil(&now, 5);
    trace_isr_enter();
    trace_isr_exit();
    while (!*stop) {
    }
    end_task();
}

/* A computing task is suspended in the middle, and resumed. */
static void check_delay_mark_and_suspend(void) {
    static volatile bool stop = false;
    vTaskPrioritySet(NULL, 4); /* above it, for machines with one CPU */
    trace_start();
    TaskHandle_t task = NULL;
    CHECK(xTaskCreatePinnedToCore(sleep_and_compute, "sleeper", TEST_STACK_BYTES, (void *)&stop, 3, &task,
                                  portNUM_PROCESSORS - 1));
    CHECK_SOON(has_event("sleeper", TRACE_ISR_EXIT));
    vTaskSuspend(task);
    vTaskDelay(10);
    vTaskResume(task);
    stop = true;
    CHECK(xSemaphoreTake(s_done, portMAX_DELAY));
    trace_stop();
    uint32_t at = ring_first();
    expect_event(&at, "sleeper", TRACE_DELAYS);
    expect_event(&at, "sleeper", TRACE_SWITCHED_OUT);
    CHECK_EQUAL(expect_event(&at, "sleeper", TRACE_READY).argument, 3);
    CHECK_EQUAL(expect_event(&at, "sleeper", TRACE_SWITCHED_IN).core, portNUM_PROCESSORS - 1);
    CHECK_EQUAL(expect_event(&at, "sleeper", TRACE_MARK + TRACE_MARK_WOKE).argument, 77);
    expect_event(&at, "sleeper", TRACE_DELAYS);
    expect_event(&at, "sleeper", TRACE_ISR_ENTER);
    expect_event(&at, "sleeper", TRACE_ISR_EXIT);
    expect_event(&at, "sleeper", TRACE_SUSPENDED);
    expect_event(&at, "sleeper", TRACE_SWITCHED_OUT);
    expect_event(&at, "sleeper", TRACE_READY);
    expect_event(&at, "sleeper", TRACE_SWITCHED_IN);
}

/* Addresses are used again: a new task gets a new number; more of them than there are numbers are "other". */
static void check_numbers(void) {
    trace_start();
    uint32_t main_number = names_of_task(xTaskGetCurrentTaskHandle());
    CHECK_EQUAL(names_of_task(xTaskGetCurrentTaskHandle()), main_number);
    trace_hook_new_task(xTaskGetCurrentTaskHandle());
    CHECK(names_of_task(xTaskGetCurrentTaskHandle()) != main_number);
    static char objects[NAMES_OBJECTS + 2];
    uint32_t before = names_of_object(&objects[0], TRACE_QUEUE);
    for (uint32_t i = 1; i < NAMES_OBJECTS + 2; i++) {
        uint32_t number = names_of_object(&objects[i], TRACE_QUEUE);
        CHECK(number == before + i || number == 0);
    }
    CHECK_EQUAL(names_of_object(&objects[NAMES_OBJECTS + 1], TRACE_QUEUE), 0);
    CHECK_EQUAL(names_of_object(&objects[0], TRACE_QUEUE), before);
    trace_stop();
}

void app_main(void) {
    s_done = xSemaphoreCreateCounting(4, 0);
    s_queue = xQueueCreate(2, sizeof(uint32_t));
    s_group = xEventGroupCreate();
    check_mutex();
    check_names();
    check_binary_semaphore();
    check_queue_notification_and_group();
    check_delay_mark_and_suspend();
    check_numbers();
    _exit(0);
}
