/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a burst: when each row is due. It is fixed before the clock starts (open loop). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esp_err.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    LOAD_RANDOM,   /* intervals uniform in 0.5 .. 1.5 of the mean: no beat with the beacon or the tick */
    LOAD_PERIODIC, /* all intervals alike, a whole number of ticks */
} load_schedule_t;

/* Choices of a parameter `schedule`, in the order of load_schedule_t. */
extern const char *const load_schedules[];

typedef struct {
    load_schedule_t schedule;
    uint32_t interval_us; /* mean */
    uint32_t random;      /* state of the generator: start with the seed, which is not 0 */
    int64_t t0_us;        /* the run's zero, as esp_timer counts: set it when measuring starts */
    uint32_t *planned_us; /* of each row, since t0 */
    size_t row_count;     /* of this burst */
} load_plan_t;

/* The next of a sequence of numbers above 0; the same seed, which is not 0, gives the same on every board. */
uint32_t load_random(uint32_t *state);

/* Why this many rows, each of which keeps the producer for `hold_us`, cannot be planned, as a sentence; NULL
 * where they can. */
const char *load_plan_conflict(const load_plan_t *plan, uint32_t hold_us, int64_t rows);

/* Whether so much time has passed since t0 that 32-bit microseconds have begun anew (71 min). */
bool load_plan_outlived(const load_plan_t *plan);

/* Room for `capacity` rows. Returns ESP_ERR_NO_MEM. */
esp_err_t load_plan_create(load_plan_t *plan, size_t capacity);
void load_plan_delete(load_plan_t *plan);

/* Plan all rows; the generator goes on where the last burst left it. */
void load_plan_make(load_plan_t *plan, uint32_t first_us);

/* Microseconds since t0. */
uint32_t load_now_us(const load_plan_t *plan);

#ifdef __cplusplus
}
#endif
