/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan.h"

#include <stdlib.h>

#include "esp_timer.h"
#include "freertos/FreeRTOS.h"

const char *const load_schedules[] = {"random", "periodic", NULL};

/* xorshift32 (Marsaglia 2003) */
uint32_t load_random(uint32_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static uint32_t next_interval_us(load_plan_t *plan) {
    if (plan->schedule == LOAD_PERIODIC) {
        return plan->interval_us;
    }
    return plan->interval_us / 2 + load_random(&plan->random) % (plan->interval_us + 1);
}

const char *load_plan_conflict(const load_plan_t *plan, uint32_t hold_us, int64_t rows) {
    if (plan->schedule == LOAD_PERIODIC && plan->interval_us % (portTICK_PERIOD_MS * 1000) != 0) {
        return "schedule=periodic needs interval_us to be a whole number of ticks";
    }
    if (plan->schedule == LOAD_RANDOM && hold_us >= plan->interval_us) {
        return "schedule=random needs hold_us to be less than interval_us: a producer that never waits "
               "starves the idle task, whose watchdog fires";
    }
    /* 32-bit microseconds since t0; a random plan is at most half as long again */
    int64_t longest_us = (int64_t)plan->interval_us + plan->interval_us / 2;
    longest_us = hold_us > longest_us ? hold_us : longest_us;
    if (rows * longest_us > (int64_t)UINT32_MAX / 10 * 9) {
        return "count * interval_us, or count * hold_us, is more than 32-bit microseconds hold";
    }
    return NULL;
}

bool load_plan_outlived(const load_plan_t *plan) {
    return esp_timer_get_time() - plan->t0_us > (int64_t)UINT32_MAX;
}

esp_err_t load_plan_create(load_plan_t *plan, size_t capacity) {
    plan->planned_us = calloc(capacity, sizeof(*plan->planned_us));
    return plan->planned_us != NULL ? ESP_OK : ESP_ERR_NO_MEM;
}

void load_plan_delete(load_plan_t *plan) {
    free(plan->planned_us);
    plan->planned_us = NULL;
}

void load_plan_make(load_plan_t *plan, uint32_t first_us) {
    uint32_t planned_us = first_us;
    for (size_t row = 0; row < plan->row_count; row++) {
        plan->planned_us[row] = planned_us;
        planned_us += next_interval_us(plan);
    }
}

uint32_t load_now_us(const load_plan_t *plan) {
    return (uint32_t)(esp_timer_get_time() - plan->t0_us);
}
