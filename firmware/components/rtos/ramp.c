/* SPDX-License-Identifier: Apache-2.0 */
#include "rtos/ramp.h"

enum {
    BASE_TASKS = 5,
    MIDDLE = 2,
    FASTEST = BASE_TASKS - 1,
    EVENTS_PERMILLE = 50, /* what the events of AH and SA ask for, in each step */
    EVENTS_PER_BASE = 4,  /* as many in the slowest task's period, on the average */
    LOCKED_DIVISOR = 5,   /* under the lock: a fifth of the fastest task's work at first */
    PERIOD_MIN_US = 200,  /* below it a release costs more than the work */
    EVENTS_PRIORITY = 7,  /* above the console's task, so that all of it is measured alike */
    LOWEST_PRIORITY = EVENTS_PRIORITY + 1,
};

const char *const rtos_series[] = {"PH", "PN", "AH", "SH", "SA", NULL};
const char *const rtos_raises[] = {"fastest", "all", "work", "tasks", NULL};

static const uint32_t HARMONIC[BASE_TASKS] = {1, 2, 4, 8, 16}, PRIMES[BASE_TASKS] = {2, 3, 5, 7, 11};

static bool has_events(const rtos_ramp_t *ramp) {
    return ramp->series == RTOS_SERIES_AH || ramp->series == RTOS_SERIES_SA;
}

static bool has_lock(const rtos_ramp_t *ramp) {
    return ramp->series == RTOS_SERIES_SH || ramp->series == RTOS_SERIES_SA;
}

/* Of each of the five at first, and of all five. */
static uint32_t periodic_permille(const rtos_ramp_t *ramp) {
    return ramp->base_permille - (has_events(ramp) ? EVENTS_PERMILLE : 0);
}

static uint32_t base_period_us(const rtos_ramp_t *ramp, size_t task) {
    const uint32_t *ratios = ramp->series == RTOS_SERIES_PN ? PRIMES : HARMONIC;
    return ramp->base_us * ratios[0] / ratios[task];
}

static uint32_t loops_of(const rtos_ramp_t *ramp, uint32_t permille, uint32_t period_us) {
    uint64_t loops = (uint64_t)permille * period_us * ramp->loops_per_ms / 1000000;
    return loops > 0 ? (uint32_t)loops : 1;
}

/* A fifth of `permille` of each base period, with nothing raised. */
static uint32_t base_loops(const rtos_ramp_t *ramp, uint32_t permille, size_t task) {
    uint32_t loops = loops_of(ramp, permille, base_period_us(ramp, task)) / BASE_TASKS;
    return loops > 0 ? loops : 1;
}

static uint32_t scaled_us(uint32_t period_us, uint32_t permille, uint32_t raised_permille) {
    return (uint32_t)((uint64_t)period_us * permille / raised_permille);
}

static rtos_task_t base_task(const rtos_ramp_t *ramp, size_t index, uint32_t risen_permille) {
    uint32_t permille = periodic_permille(ramp), period_us = base_period_us(ramp, index);
    rtos_task_t task = {.period_us = period_us, .work_loops = base_loops(ramp, permille, index)};
    if (ramp->raise == RTOS_RAISE_WORK) {
        task.work_loops = base_loops(ramp, permille + risen_permille, index);
    } else if (ramp->raise == RTOS_RAISE_ALL) {
        task.period_us = scaled_us(period_us, permille, permille + risen_permille);
    } else if (ramp->raise == RTOS_RAISE_FASTEST && index == FASTEST) {
        task.period_us = scaled_us(period_us, permille, permille + BASE_TASKS * risen_permille);
    }
    if (has_lock(ramp) && index % 2 == 0) {
        uint32_t locked_loops = base_loops(ramp, permille, FASTEST) / LOCKED_DIVISOR;
        task.locked_loops = locked_loops > 0 ? locked_loops : 1;
    }
    return task;
}

static void add(rtos_task_set_t *set, rtos_task_t task) {
    task.priority = task.aperiodic ? EVENTS_PRIORITY : LOWEST_PRIORITY + (UBaseType_t)set->count;
    set->tasks[set->count++] = task;
}

void rtos_ramp_make(const rtos_ramp_t *ramp, size_t step, rtos_task_set_t *set) {
    const uint32_t risen_permille = (uint32_t)step * ramp->raise_permille;
    const uint32_t middle_us = base_period_us(ramp, MIDDLE), events_us = ramp->base_us / EVENTS_PER_BASE;
    set->count = 0;
    for (size_t i = 0; i < BASE_TASKS; i++) {
        add(set, base_task(ramp, i, risen_permille));
        for (size_t more = 0; ramp->raise == RTOS_RAISE_TASKS && i == MIDDLE && more < step; more++) {
            uint32_t loops = loops_of(ramp, ramp->raise_permille, middle_us);
            add(set, (rtos_task_t){.period_us = middle_us, .work_loops = loops});
        }
    }
    if (has_events(ramp)) {
        uint32_t loops = loops_of(ramp, EVENTS_PERMILLE, events_us);
        add(set, (rtos_task_t){.period_us = events_us, .work_loops = loops, .aperiodic = true});
    }
}

size_t rtos_ramp_steps(const rtos_ramp_t *ramp) {
    return (ramp->cap_permille - ramp->base_permille) / ramp->raise_permille + 1;
}

size_t rtos_ramp_tasks(const rtos_ramp_t *ramp) {
    size_t more = ramp->raise == RTOS_RAISE_TASKS ? rtos_ramp_steps(ramp) - 1 : 0;
    return BASE_TASKS + more + (has_events(ramp) ? 1 : 0);
}

const char *rtos_ramp_conflict(const rtos_ramp_t *ramp) {
    if (ramp->base_permille > ramp->cap_permille) {
        return "base_permille is above cap_permille: there is no step to measure";
    }
    if (rtos_ramp_tasks(ramp) > RTOS_TASK_SET_MAX) {
        return "raise=tasks comes to more than 14 tasks; choose a larger raise_permille, or a lower "
               "cap_permille";
    }
    rtos_task_t fastest =
        base_task(ramp, FASTEST, (uint32_t)(rtos_ramp_steps(ramp) - 1) * ramp->raise_permille);
    if (fastest.period_us < PERIOD_MIN_US) {
        return "the fastest task's period would end below 200 us; choose a longer base_ms";
    }
    return NULL;
}
