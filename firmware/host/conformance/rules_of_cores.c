/* SPDX-License-Identifier: Apache-2.0 */
/* What two cores have to do with each other. */
#include "conformance.h"
#include "esp_timer.h"

enum { INSIDE_US = 10000 };

static SemaphoreHandle_t s_go;
static volatile bool s_running, s_stop;
static volatile unsigned s_count;

static void count_until_stopped(void *unused) {
    (void)unused;
    while (!s_stop) {
        s_count++;
    }
    end_task();
}

static void note_when_given(void *unused) {
    (void)unused;
    xSemaphoreTake(s_go, portMAX_DELAY);
    s_running = true;
    end_task();
}

/* On the chip interrupts are off: not even a higher priority preempts before the section is left. The waker
 * is another core's. */
static void give_soon(void *unused) {
    (void)unused;
    compute_ticks(1);
    xSemaphoreGive(s_go);
    end_task();
}

static bool critical_section_is_not_preempted(void) {
    static portMUX_TYPE lock = portMUX_INITIALIZER_UNLOCKED;
    s_go = xSemaphoreCreateBinary();
    s_running = false;
    start_task(note_when_given, NULL, CHECK_PRIORITY + 2, 0);
    start_task(give_soon, NULL, 5, 1);
    taskENTER_CRITICAL(&lock);
    int64_t begin_us = esp_timer_get_time(); /* ticks stand still here */
    while (esp_timer_get_time() - begin_us < INSIDE_US) {
    }
    bool preempted = s_running;
    taskEXIT_CRITICAL(&lock);
    bool ended = await_tasks();
    vSemaphoreDelete(s_go);
    return ended && !preempted;
}

static void note_core(void *unused) {
    (void)unused;
    note(xPortGetCoreID() == 0 ? '0' : '1');
    taskYIELD();
    vTaskDelay(2);
    note(xPortGetCoreID() == 0 ? '0' : '1');
    end_task();
}

static bool pinned_task_stays(void) {
    start_task(note_core, NULL, 5, 1);
    bool ended = await_tasks();
    start_task(note_core, NULL, 5, 0);
    return await_tasks() && ended && noted_is("1100");
}

/* Core 0 is this task's, which outranks it and does not wait: there is only the other core. */
static bool free_task_takes_the_free_core(void) {
    s_stop = false;
    s_count = 0;
    start_task(count_until_stopped, NULL, 5, tskNO_AFFINITY);
    compute_ticks(100);
    bool ran = s_count > 0;
    s_stop = true;
    return await_tasks() && ran;
}

static bool cores_run_side_by_side(void) {
    s_stop = false;
    s_count = 0;
    start_task(count_until_stopped, NULL, 1, 1);
    compute_ticks(100);
    bool ran = s_count > 0;
    s_stop = true;
    return await_tasks() && ran;
}

const rule_t rules_of_cores[] = {
    {"critical-not-preempted", "inside a critical section not even a higher priority preempts",
     critical_section_is_not_preempted, 2, 0},
    {"pinned-task-stays", "a pinned task runs on its core only", pinned_task_stays, 2, 0},
    {"free-task-takes-free-core", "a task without affinity runs on the core that is free",
     free_task_takes_the_free_core, 2, 0},
    {"cores-side-by-side", "the lowest priority of one core runs beside the highest of the other",
     cores_run_side_by_side, 2, 0},
};
const size_t rules_of_cores_count = sizeof(rules_of_cores) / sizeof(rules_of_cores[0]);
