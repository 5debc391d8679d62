/* SPDX-License-Identifier: Apache-2.0 */
/* When: ticks, delays, periods, software timers. */
#include "conformance.h"

static SemaphoreHandle_t s_fired;

static bool delay_is_never_short(void) {
    bool never = true;
    for (TickType_t ticks = 1; ticks <= 5; ticks++) {
        TickType_t begin = xTaskGetTickCount();
        vTaskDelay(ticks);
        never = xTaskGetTickCount() - begin >= ticks && never;
    }
    return never;
}

static bool periods_do_not_drift(void) {
    const TickType_t begin = xTaskGetTickCount();
    TickType_t wake = begin;
    for (TickType_t n = 1; n <= 20; n++) {
        vTaskDelayUntil(&wake, 3);
        if (n % 5 == 0) {
            compute_ticks(1); /* late work does not move the grid */
        }
        if (wake != begin + 3 * n || (int32_t)(xTaskGetTickCount() - wake) < 0) {
            return false;
        }
    }
    return true;
}

static bool a_missed_period_is_told(void) {
    TickType_t wake = xTaskGetTickCount();
    const TickType_t begin = wake;
    compute_ticks(5);
    bool delayed = xTaskDelayUntil(&wake, 2) == pdTRUE;
    return !delayed && wake == begin + 2;
}

static bool time_out_is_never_short(void) {
    SemaphoreHandle_t never_given = xSemaphoreCreateBinary();
    TickType_t begin = xTaskGetTickCount();
    bool taken = xSemaphoreTake(never_given, 4) == pdTRUE;
    TickType_t waited = xTaskGetTickCount() - begin;
    vSemaphoreDelete(never_given);
    return !taken && waited >= 4;
}

static void note_letter_at(void *argument) {
    TickType_t ticks = (TickType_t)(*(const char *)argument - '0');
    vTaskDelay(3 * ticks);
    note(*(const char *)argument);
    end_task();
}

static bool sleepers_wake_in_order(void) {
    start_task(note_letter_at, "3", 5, 0);
    start_task(note_letter_at, "1", 5, 0);
    start_task(note_letter_at, "2", 5, 0);
    return await_tasks() && noted_is("123");
}

static void note_timer(TimerHandle_t timer) {
    note(*(const char *)pvTimerGetTimerID(timer));
    xSemaphoreGive(s_fired);
}

static bool fire(const TickType_t periods[3]) {
    static const char *const letters[] = {"a", "b", "c"};
    TimerHandle_t timers[3];
    s_fired = xSemaphoreCreateCounting(3, 0);
    for (int i = 0; i < 3; i++) {
        timers[i] = xTimerCreate("rule", periods[i], pdFALSE, (void *)letters[i], note_timer);
        xTimerStart(timers[i], 0);
    }
    bool fired = true;
    for (int i = 0; i < 3; i++) {
        fired = xSemaphoreTake(s_fired, 1000) == pdTRUE && fired;
    }
    for (int i = 0; i < 3; i++) {
        xTimerDelete(timers[i], portMAX_DELAY);
    }
    vTaskDelay(2); /* the timer task frees them */
    vSemaphoreDelete(s_fired);
    return fired;
}

static bool timers_by_expiry(void) {
    return fire((const TickType_t[]){9, 3, 6}) && noted_is("bca");
}

static bool equal_timers_in_order_of_start(void) {
    return fire((const TickType_t[]){5, 5, 5}) && noted_is("abc");
}

static volatile unsigned s_lower;

static void count_lower(void *stop) {
    while (!*(volatile bool *)stop) {
        s_lower++;
    }
    end_task();
}

/* Half a second, which is beyond what a slice or an accident of timing would give to a lower priority. */
static bool higher_never_gives_way(void) {
    static bool stop;
    stop = false;
    s_lower = 0;
    start_task(count_lower, &stop, 3, 0);
    compute_ticks(pdMS_TO_TICKS(500));
    bool alone = s_lower == 0;
    stop = true;
    return await_tasks() && alone;
}

const rule_t rules_of_time[] = {
    {"delay-never-short", "a delay of n ticks ends at the n-th tick from now, not before",
     delay_is_never_short, 1, 0},
    {"periods-do-not-drift", "a periodic task wakes at start + n periods, however late it was",
     periods_do_not_drift, 1, 0},
    {"missed-period-is-told", "a wake time that has passed does not delay, and says so",
     a_missed_period_is_told, 1, 0},
    {"time-out-never-short", "a wait of n ticks lasts until the n-th tick from now", time_out_is_never_short,
     1, 0},
    {"sleepers-wake-in-order", "sleeping tasks wake in the order of their times", sleepers_wake_in_order, 1,
     0},
    {"timers-by-expiry", "software timers call back in the order that they expire", timers_by_expiry, 1, 0},
    {"equal-timers-in-order", "timers that expire together call back in the order that they were started",
     equal_timers_in_order_of_start, 1, 0},
    {"higher-never-gives-way",
     "while a higher priority computes, for half a second, a lower one does not run", higher_never_gives_way,
     1, 0},
};
const size_t rules_of_time_count = sizeof(rules_of_time) / sizeof(rules_of_time[0]);
