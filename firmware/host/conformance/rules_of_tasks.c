/* SPDX-License-Identifier: Apache-2.0 */
/* Who runs on a core: priorities, preemption, suspension. */
#include "conformance.h"

static SemaphoreHandle_t s_go;
static volatile bool s_stop;
static volatile unsigned s_count;

static void note_letter(void *letter) {
    note(*(const char *)letter);
    end_task();
}

static bool highest_ready_runs_first(void) {
    start_task(note_letter, "c", 3, 0);
    start_task(note_letter, "a", 7, 0);
    start_task(note_letter, "b", 5, 0);
    bool nobody_yet = noted_is("");
    return await_tasks() && nobody_yet && noted_is("abc");
}

static bool equals_run_in_order_of_readiness(void) {
    start_task(note_letter, "a", 5, 0);
    start_task(note_letter, "b", 5, 0);
    start_task(note_letter, "c", 5, 0);
    return await_tasks() && noted_is("abc");
}

static void note_twice(void *letter) {
    note(*(const char *)letter);
    taskYIELD();
    note(*(const char *)letter);
    end_task();
}

static bool yield_gives_way_to_equals(void) {
    start_task(note_twice, "a", 5, 0);
    start_task(note_twice, "b", 5, 0);
    return await_tasks() && noted_is("abab");
}

static bool yield_gives_way_to_nobody_lower(void) {
    start_task(note_twice, "a", 5, 0);
    start_task(note_letter, "b", 4, 0);
    return await_tasks() && noted_is("aab");
}

static void compute_and_note(void *letter) {
    compute_ticks(4);
    note(*(const char *)letter);
    end_task();
}

static void note_at_once(void *letter) {
    note(*(const char *)letter);
    compute_ticks(8);
    end_task();
}

/* b starts while a computes, though a never yields. */
static bool equals_take_turns_by_tick(void) {
    start_task(compute_and_note, "a", 5, 0);
    start_task(note_at_once, "b", 5, 0);
    return await_tasks() && noted_is("ba");
}

static void take_then_note(void *letter) {
    xSemaphoreTake(s_go, portMAX_DELAY);
    note(*(const char *)letter);
    end_task();
}

static void give_then_note(void *letter) {
    xSemaphoreGive(s_go);
    note(*(const char *)letter);
    end_task();
}

static bool woken_higher_preempts(void) {
    s_go = xSemaphoreCreateBinary();
    start_task(take_then_note, "h", 8, 0);
    start_task(give_then_note, "l", 4, 0);
    bool ended = await_tasks();
    vSemaphoreDelete(s_go);
    return ended && noted_is("hl");
}

static bool woken_lower_waits(void) {
    s_go = xSemaphoreCreateBinary();
    start_task(take_then_note, "l", 4, 0);
    vTaskDelay(2);
    start_task(give_then_note, "h", 8, 0);
    bool ended = await_tasks();
    vSemaphoreDelete(s_go);
    return ended && noted_is("hl");
}

static void raise_other(void *other) {
    vTaskPrioritySet(*(TaskHandle_t *)other, 9);
    note('r');
    end_task();
}

static bool raised_task_preempts(void) {
    TaskHandle_t ready = start_task(note_letter, "a", 3, 0);
    start_task(raise_other, &ready, 6, 0);
    return await_tasks() && noted_is("ar");
}

static void lower_self(void *unused) {
    (void)unused;
    vTaskPrioritySet(NULL, 2);
    note('l');
    end_task();
}

static bool lowering_oneself_gives_way(void) {
    start_task(lower_self, NULL, 6, 0);
    start_task(note_letter, "a", 4, 0);
    return await_tasks() && noted_is("al");
}

static void lower_to_equals(void *unused) {
    (void)unused;
    vTaskPrioritySet(NULL, 4);
    note('l');
    end_task();
}

static bool lowered_task_goes_behind_equals(void) {
    start_task(lower_to_equals, NULL, 6, 0);
    start_task(note_letter, "a", 4, 0);
    start_task(note_letter, "b", 4, 0);
    return await_tasks() && noted_is("abl");
}

static void count_until_stopped(void *unused) {
    (void)unused;
    while (!s_stop) {
        s_count++;
    }
    end_task();
}

static bool stands_still(void) {
    unsigned before = s_count;
    vTaskDelay(5);
    return s_count == before;
}

static bool suspended_task_stands_still(void) {
    s_stop = false;
    s_count = 0;
    TaskHandle_t task = start_task(count_until_stopped, NULL, 5, 0);
    vTaskDelay(5);
    vTaskSuspend(task);
    bool still = s_count > 0 && stands_still();
    vTaskResume(task);
    bool goes_on = !stands_still();
    s_stop = true;
    return await_tasks() && still && goes_on;
}

static bool one_resume_ends_every_suspend(void) {
    s_stop = false;
    TaskHandle_t task = start_task(count_until_stopped, NULL, 5, 0);
    vTaskSuspend(task);
    vTaskSuspend(task);
    vTaskResume(task);
    bool runs = !stands_still();
    s_stop = true;
    return await_tasks() && runs;
}

static bool suspended_scheduler_keeps_the_core(void) {
    vTaskSuspendAll();
    start_task(note_letter, "a", CHECK_PRIORITY + 2, 0);
    bool nobody = noted_is("");
    xTaskResumeAll();
    return await_tasks() && nobody && noted_is("a");
}

const rule_t rules_of_tasks[] = {
    {"highest-ready-runs-first", "of ready tasks the one of the highest priority runs first",
     highest_ready_runs_first, 1, 0},
    {"equals-in-order", "tasks of equal priority run in the order that they became ready",
     equals_run_in_order_of_readiness, 1, 20},
    {"yield-to-equals", "taskYIELD() lets the next of equal priority run", yield_gives_way_to_equals, 1, 20},
    {"yield-not-to-lower", "taskYIELD() never lets a lower priority run", yield_gives_way_to_nobody_lower, 1,
     0},
    {"equals-take-turns-by-tick", "tasks of equal priority that compute take turns at each tick",
     equals_take_turns_by_tick, 1, 0},
    {"woken-higher-preempts", "a woken task of higher priority runs before the giver goes on",
     woken_higher_preempts, 1, 0},
    {"woken-lower-waits", "a woken task of lower priority waits until the giver waits", woken_lower_waits, 1,
     0},
    {"raised-task-preempts", "a ready task that is raised above the caller runs at once",
     raised_task_preempts, 1, 0},
    {"lowering-oneself-gives-way", "who lowers its own priority gives way to those above it at once",
     lowering_oneself_gives_way, 1, 0},
    {"lowered-goes-behind-equals", "who lowers its own priority runs after the ready tasks of the new one",
     lowered_task_goes_behind_equals, 1, 20},
    {"suspended-stands-still", "a computing task stands still while suspended, and goes on when resumed",
     suspended_task_stands_still, 1, 0},
    {"one-resume-is-enough", "one resume ends any number of suspends", one_resume_ends_every_suspend, 1, 0},
    {"suspended-scheduler", "while the scheduler is suspended no other task of the core runs",
     suspended_scheduler_keeps_the_core, 1, 0},
};
const size_t rules_of_tasks_count = sizeof(rules_of_tasks) / sizeof(rules_of_tasks[0]);
