/* SPDX-License-Identifier: Apache-2.0 */
/* load/plan.c: which plans are refused, and when a run has outlived its clock. */
#include "expect.h"

#include "load/plan.h"

#include "esp_timer.h"

enum { TICK_US = 10000 };

static load_plan_t plan_of(load_schedule_t schedule, uint32_t interval_us) {
    return (load_plan_t){.schedule = schedule, .interval_us = interval_us, .random = 1};
}

static bool refused_for(load_plan_t plan, uint32_t hold_us, int64_t rows, const char *word) {
    const char *problem = load_plan_conflict(&plan, hold_us, rows);
    return problem != NULL && strstr(problem, word) != NULL;
}

/* A random plan's producer waits for its timer, so it must be done before the next one is due. */
static void a_random_producer_must_come_to_wait(void) {
    const load_plan_t plan = plan_of(LOAD_RANDOM, TICK_US);
    EXPECT(load_plan_conflict(&plan, TICK_US - 1, 100) == NULL);
    EXPECT(refused_for(plan, TICK_US, 100, "hold_us to be less than interval_us"));
}

/* Rows last as long as they are held, where that is longer than the plan. */
static void held_rows_count_into_the_length(void) {
    const load_plan_t plan = plan_of(LOAD_PERIODIC, TICK_US);
    EXPECT(load_plan_conflict(&plan, 0, 100000) == NULL);
    EXPECT(load_plan_conflict(&plan, 1000000, 3000) == NULL);
    EXPECT(refused_for(plan, 1000000, 100000, "32-bit microseconds"));
    EXPECT(refused_for(plan_of(LOAD_RANDOM, 60000000), 0, 100, "32-bit microseconds"));
}

static void a_run_outlives_32_bits(void) {
    load_plan_t plan = plan_of(LOAD_RANDOM, TICK_US);
    plan.t0_us = esp_timer_get_time();
    EXPECT(!load_plan_outlived(&plan));
    plan.t0_us -= (int64_t)UINT32_MAX + 1;
    EXPECT(load_plan_outlived(&plan));
}

int main(void) {
    a_random_producer_must_come_to_wait();
    held_rows_count_into_the_length();
    a_run_outlives_32_bits();
    return 0;
}
