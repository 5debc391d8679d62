/* SPDX-License-Identifier: Apache-2.0 */
/* A ramp asks step by step for what it says, with priorities that rise with the frequency, and ends at the
 * first miss, which a planted load makes. A miss while the host was late is void: its step is repeated, and
 * no more often than told. */
#include "agent/watch.h"
#include "expect.h"
#include "rtos/climb.h"
#include "rtos/resource.h"
#include "rtos/work.h"

enum { BASE_US = 32000, STEP_US = 70000, TIMEOUT_MS = 1000, ROWS = 128, REPEATS_MAX = 5, LATE_US = 2000 };

static uint32_t s_load_factor = 1;
static uint32_t s_late_us;
static bool s_aborted;

void __real_rtos_work(uint32_t loops);
void __wrap_rtos_work(uint32_t loops);
uint32_t __wrap_bench_watch_late_us(BaseType_t core, int64_t from_us, int64_t until_us);
bool __wrap_bench_aborted(const bench_run_t *run);

/* The tasks' work; the calibration's is called within its own file and stays as it is. */
void __wrap_rtos_work(uint32_t loops) {
    __real_rtos_work(loops * s_load_factor);
}

uint32_t __wrap_bench_watch_late_us(BaseType_t core, int64_t from_us, int64_t until_us) {
    (void)core;
    (void)from_us;
    (void)until_us;
    return s_late_us;
}

bool __wrap_bench_aborted(const bench_run_t *run) {
    (void)run;
    return s_aborted;
}

static rtos_ramp_t make_ramp(rtos_series_t series, rtos_raise_t raise) {
    return (rtos_ramp_t){
        .series = series,
        .raise = raise,
        .base_us = 2 * BASE_US,
        .base_permille = 300,
        .raise_permille = 100,
        .cap_permille = 900,
        .loops_per_ms = 100000,
    };
}

static void check_order(const rtos_task_set_t *set) {
    for (size_t i = 1; i < set->count; i++) {
        const rtos_task_t *slower = &set->tasks[i - 1], *task = &set->tasks[i];
        EXPECT(task->aperiodic ? task->priority < set->tasks[0].priority
                               : task->period_us <= slower->period_us && task->priority > slower->priority);
        EXPECT(task->work_loops >= task->locked_loops && task->work_loops > 0);
    }
}

static void check_steps(rtos_series_t series, rtos_raise_t raise) {
    rtos_ramp_t ramp = make_ramp(series, raise);
    rtos_task_set_t set = {0};
    EXPECT(rtos_ramp_conflict(&ramp) == NULL);
    EXPECT(rtos_ramp_steps(&ramp) == 7);
    for (size_t step = 0; step < 7; step++) {
        rtos_ramp_make(&ramp, step, &set);
        uint32_t wanted = 300 + 100 * (uint32_t)step, asked = rtos_task_set_permille(&set, ramp.loops_per_ms);
        EXPECT(asked + 2 >= wanted && asked <= wanted + 2);
        EXPECT(set.count <= rtos_ramp_tasks(&ramp));
        check_order(&set);
    }
    EXPECT(set.count == rtos_ramp_tasks(&ramp));
}

static void check_conflicts(void) {
    rtos_ramp_t ramp = make_ramp(RTOS_SERIES_PH, RTOS_RAISE_TASKS);
    ramp.raise_permille = 50;
    EXPECT(strstr(rtos_ramp_conflict(&ramp), "more than 14 tasks") != NULL);
    ramp = make_ramp(RTOS_SERIES_PH, RTOS_RAISE_FASTEST);
    ramp.base_us = 16000;
    EXPECT(strstr(rtos_ramp_conflict(&ramp), "below 200 us") != NULL);
    ramp.base_permille = 950;
    EXPECT(strstr(rtos_ramp_conflict(&ramp), "above cap_permille") != NULL);
}

static rtos_climb_row_t s_rows[ROWS];

static uint32_t s_loops_per_ms;

static void calibrate(void *context) {
    (void)context;
    s_loops_per_ms = rtos_work_calibrate();
}

/* Climb from 20 % to at most 40 %, and return the ramp's own row. */
static rtos_climb_row_t climb(rtos_series_t series, uint32_t load_factor, uint32_t late_us) {
    load_workers_t workers = {0};
    EXPECT(load_workers_create(&workers, NULL) == ESP_OK);
    load_worker_t calibration = {.name = "calibration", .work = calibrate, .priority = 20};
    EXPECT(s_loops_per_ms != 0 || load_workers_run(&workers, &calibration, 1) == ESP_OK);
    rtos_climb_t climb = {
        .ramp = make_ramp(series, RTOS_RAISE_WORK),
        .set = {.duration_us = STEP_US, .timeout_ms = TIMEOUT_MS, .workers = &workers},
        .seed = 1,
        .void_late_us = LATE_US,
        .rows = s_rows,
    };
    climb.ramp.base_us = BASE_US;
    climb.ramp.base_permille = 200;
    climb.ramp.cap_permille = 400;
    climb.ramp.loops_per_ms = s_loops_per_ms;
    climb.set.lock = rtos_resource_create();
    s_load_factor = load_factor;
    s_late_us = late_us;
    EXPECT(rtos_climb(&climb, 1) == ESP_OK);
    EXPECT(climb.row_count <= rtos_climb_rows_max(&climb.ramp));
    vSemaphoreDelete(climb.set.lock);
    load_workers_delete(&workers);
    EXPECT(s_rows[climb.row_count - 1].task == 0);
    return s_rows[climb.row_count - 1];
}

/* Six times the work: 20 % asked for is more than a core has. */
static void check_that_a_miss_ends_a_ramp(void) {
    rtos_climb_row_t own = climb(RTOS_SERIES_PH, 6, 0);
    EXPECT(own.missed > 0 && own.step == 1 && own.outcome == RTOS_CLIMB_OK);
    EXPECT(own.sustained_permille == 0 && own.sustained_steps == 0 && own.repeats == 0);
    EXPECT(s_rows[0].outcome == RTOS_CLIMB_MISSED || s_rows[1].outcome == RTOS_CLIMB_MISSED);
}

static void check_that_a_late_host_voids_a_miss(void) {
    rtos_climb_row_t own = climb(RTOS_SERIES_PH, 6, LATE_US);
    EXPECT(own.outcome == RTOS_CLIMB_VOID && own.repeats == REPEATS_MAX && own.host_late_us == LATE_US);
    EXPECT(s_rows[0].outcome == RTOS_CLIMB_VOID);
}

static void check_that_an_abort_ends_a_ramp(void) {
    load_workers_t workers = {0};
    EXPECT(load_workers_create(&workers, NULL) == ESP_OK);
    /* a busy host may keep a task waiting for longer than the usual second */
    rtos_task_set_t set = {.duration_us = 60000000, .timeout_ms = 20 * TIMEOUT_MS, .workers = &workers};
    rtos_ramp_t ramp = make_ramp(RTOS_SERIES_PH, RTOS_RAISE_WORK);
    ramp.loops_per_ms = s_loops_per_ms;
    rtos_ramp_make(&ramp, 0, &set);
    /* so that no task can miss: on a busy host a miss might end the set before the abort does */
    for (size_t i = 0; i < set.count; i++) {
        set.tasks[i].aperiodic = true;
    }
    s_load_factor = 1;
    s_aborted = true;
    EXPECT(rtos_task_set_run(&set) == ESP_ERR_INVALID_STATE);
    s_aborted = false;
    load_workers_delete(&workers);
}

void app_main(void) {
    for (int series = RTOS_SERIES_PH; series <= RTOS_SERIES_SA; series++) {
        for (int raise = RTOS_RAISE_FASTEST; raise <= RTOS_RAISE_TASKS; raise++) {
            check_steps((rtos_series_t)series, (rtos_raise_t)raise);
        }
    }
    check_conflicts();
    check_that_a_miss_ends_a_ramp();
    check_that_a_late_host_voids_a_miss();
    check_that_an_abort_ends_a_ramp();
    exit(EXIT_SUCCESS);
}
