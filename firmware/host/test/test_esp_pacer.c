/* SPDX-License-Identifier: Apache-2.0 */
/* load/pacer.c: whoever has stopped a run is not called any more. The timer's task is held up where it arms
 * the next alarm. */
#include "load/pacer.h"

#include <stdatomic.h>

#include "idf_check.h"

enum { ROWS = 3, HELD_UP_MS = 100, INTERVAL_US = 2000 };

static uint32_t s_planned_us[ROWS];
static load_plan_t s_plan = {.schedule = LOAD_RANDOM, .planned_us = s_planned_us, .row_count = ROWS};
static load_workers_t s_workers;
static load_pacer_t s_pacer = {.plan = &s_plan, .workers = &s_workers};
static atomic_int s_armed;
static atomic_bool s_returned;

esp_err_t __real_esp_timer_start_once(esp_timer_handle_t timer, uint64_t timeout_us);
esp_err_t __wrap_esp_timer_start_once(esp_timer_handle_t timer, uint64_t timeout_us);

/* The second alarm is set by the timer's task: the run is stopped meanwhile. */
esp_err_t __wrap_esp_timer_start_once(esp_timer_handle_t timer, uint64_t timeout_us) {
    if (timer == s_pacer.timer && ++s_armed == 2) {
        s_workers.stop = true;
        for (int ms = 0; ms < HELD_UP_MS && !atomic_load(&s_returned); ms++) {
            vTaskDelay(1);
        }
    }
    return __real_esp_timer_start_once(timer, timeout_us);
}

static void produce(void *context, size_t row) {
    (void)context, (void)row;
}

static void plan_from_now(void) {
    s_plan.t0_us = esp_timer_get_time();
    for (uint32_t row = 0; row < ROWS; row++) {
        s_planned_us[row] = (row + 1) * INTERVAL_US;
    }
}

static void test_a_stopped_run_stays_stopped(void) {
    CHECK_EQUAL(load_pacer_create(&s_pacer, ROWS), ESP_OK);
    plan_from_now();
    load_pacer_run(&s_pacer, produce, NULL);
    atomic_store(&s_returned, true);
    UBaseType_t due = uxSemaphoreGetCount(s_pacer.due);
    vTaskDelay(pdMS_TO_TICKS(2 * HELD_UP_MS));
    CHECK(!esp_timer_is_active(s_pacer.timer));
    CHECK_EQUAL(uxSemaphoreGetCount(s_pacer.due), due);
    CHECK_EQUAL(s_armed, 2);
}

static void test_the_next_run_is_paced_as_the_first(void) {
    s_workers.stop = false;
    while (xSemaphoreTake(s_pacer.due, 0) == pdTRUE) {
    }
    plan_from_now();
    load_pacer_run(&s_pacer, produce, NULL);
    CHECK_EQUAL(s_armed, 2 + ROWS);
    load_pacer_delete(&s_pacer);
}

void app_main(void) {
    test_a_stopped_run_stays_stopped();
    test_the_next_run_is_paced_as_the_first();
    exit(0);
}
